// Activations. Pages of the high-level API: Gelu, FasterGelu, FasterGeluV2, Silu, Swish, SwiGLU,
// GeGLU, ReGlu, with those of their temporary space.
#pragma once

#include "cubecore/host/workspaces.h"
#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

// x / (1 + e^(-scale x)). `d` may be `x`.
inline void swish(const Steps& s, const Floats& d, const Floats& x, double scale, const Floats* t) {
  if (scale == 1.0) {
    over_one_and_exp(s, d, &x, x, nullptr, t[0], t[1]);
  } else {
    scaled_in_two(s, t[0], t[1], x, scale, t[2], t[3]);
    over_one_and_exp(s, d, &x, t[0], &t[1], t[2], t[3]);
  }
}

// Gelu by the tanh's approximation is x / (1 + e^-u): u = x (c + d x^2) in two parts, u and rest,
// with c = 1.5957691216 and d = 0.044715 c. Temporaries 2 to 8.
inline void gelu_exponent(const Steps& s, const Floats& u, const Floats& rest, const Floats& x,
                          const Floats* t) {
  constexpr double linear = 1.5957691216057308, cubic = 0.0713548162726008527;
  constexpr float linear_high = linear, cubic_high = cubic;
  const Floats &cut = t[2], &square = t[3], &lost = t[4], &sum = t[5], &part = t[6];
  const Floats &other = t[7], &more = t[8];
  s.clamp(cut, x, -30.0f, 30.0f);
  s.mul(square, cut, cut);
  product_error(s, lost, square, cut, cut, sum, part);
  s.muls(u, square, cubic_high);
  s.fill(other, cubic_high);
  product_error(s, more, u, square, other, sum, part);
  s.axpy(more, lost, cubic_high);
  s.axpy(more, square, cubic - cubic_high);
  s.adds(sum, u, linear_high);
  sum_error(s, other, sum, u, linear_high, part);
  s.add(more, more, other);
  s.adds(more, more, linear - linear_high);
  s.mul(u, cut, sum);
  product_error(s, rest, u, cut, sum, square, lost);
  s.mla(rest, cut, more);
}

// q + error = |x| / (1 + e^-(u + rest)), where x is within 1 and `far`, and `part` beyond, so that
// their product is x. Temporaries 0 and 1 are u and rest and 2 is q, 4 the error, 5 `part`.
inline void gate_in_two(const Steps& s, const Floats& x, const Floats* rest, const Floats* t) {
  constexpr float least = -512.0f, most = 0x1p63f;
  const Floats &by = t[3], &lost = t[6], &size = t[4], &q = t[2], &scratch = t[7];
  one_and_exp_in_two(s, by, lost, t[0], rest, q, scratch);
  s.maxs(t[5], x, least);
  s.mins(q, x, 0.0f);
  s.muls(q, q, 0.0f);
  s.add(t[5], t[5], q);  // -infinity gives no number, as the formula does
  s.abs(size, t[5]);
  s.clamp(size, size, 1.0f, most);
  s.div(t[5], t[5], size);
  s.div(q, size, by);
  quotient_error(s, size, nullptr, by, lost, q, scratch, t[8], t[9]);
}

inline void gelu(const Steps& s, const Floats& d, const Floats& x, const Floats* t) {
  constexpr float largest = 0x1.fffffep127f;
  gelu_exponent(s, t[0], t[1], x, t);
  gate_in_two(s, x, &t[1], t);
  s.adds(t[0], t[0], LOGISTIC_FAR);
  s.mins(t[0], t[0], 0.0f);
  s.exp(t[0], t[0]);
  s.mul(t[0], t[0], t[5]);
  s.mul(t[2], t[2], t[0]);
  s.clamp(t[0], t[0], -largest, largest);
  s.mul(t[4], t[4], t[0]);
  s.add(d, t[2], t[4]);
}

// The same as its formula stands, for highPerformance.
inline void plain_gelu(const Steps& s, const Floats& d, const Floats& x, const Floats& t) {
  s.mul(t, x, x);
  s.muls(t, t, 0.044715f);
  s.adds(t, t, 1.0f);
  s.mul(t, t, x);
  s.muls(t, t, -1.5957691216057308f);
  s.exp(t, t);
  s.adds(t, t, 1.0f);
  s.div(d, x, t);
}

// x (s (a / 2 (min(|x / sqrt 2|, -b) + b)^2 + 0.5) + 0.5) with s the sign of x: x v below 0 and
// x (1 - v) above, v = -a / 4 (min(|x|, -b sqrt 2) + b sqrt 2)^2 in two parts. Uncertain: a =
// -0.2888 and b = -1.769, as the operator FastGeluV2 has them.
inline void faster_gelu_v2(const Steps& s, const Floats& d, const Floats& x, const Floats* t) {
  constexpr double scale = 0.0722, edge = 1.769 * 1.41421356237309504880;
  constexpr float high = scale, edge_high = edge, largest = 0x1.fffffep127f;
  const Floats &square = t[0], &v = t[1], &lost = t[2], &root = t[3], &more = t[4];
  const Floats &half_a = t[5], &half_b = t[6];
  s.abs(square, x);
  s.mins(square, square, edge_high);
  s.adds(v, square, -edge_high);
  s.adds(lost, v, edge_high);
  s.sub(lost, square, lost);
  s.adds(lost, lost, edge_high - edge);
  s.add(root, v, lost);
  s.mins(root, root, 0.0f);
  s.sub(v, root, v);
  s.sub(v, lost, v);  // what the root lost
  s.mul(square, root, root);
  product_error(s, lost, square, root, root, half_a, half_b);
  s.mul(v, v, root);
  s.axpy(lost, v, 2.0f);
  s.muls(v, square, high);
  s.fill(root, high);
  product_error(s, more, v, square, root, half_a, half_b);
  s.axpy(more, square, scale - high);
  s.axpy(more, lost, high);
  s.signed_one(square, x, lost);
  s.mul(v, v, square);
  s.mul(more, more, square);
  s.muls(square, square, 0.5f);
  s.adds(square, square, 0.5f);
  s.sub(lost, square, v);
  s.sub(root, lost, square);
  s.add(root, root, v);
  s.add(more, more, root);
  s.clamp(root, x, -largest, largest);
  s.mul(more, more, root);
  s.mul(lost, lost, x);
  s.sub(d, lost, more);
}

}  // namespace detail

#define CUBECORE_ACTIVATION(NAME, TEMPORARIES, BODY)                                             \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  inline void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,               \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize,         \
                   CUBECORE_AT) {                                                                \
    detail::of_one<TEMPORARIES>(                                                                 \
        dstLocal, srcLocal, sharedTmpBuffer, dataSize, at,                                       \
        [](const auto& s, const auto& d, const auto& x, const auto& t) { BODY; });               \
  }                                                                                              \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  inline void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,               \
                   const uint32_t dataSize, CUBECORE_AT) {                                       \
    NAME<T, highPrecision, highPerformance>(dstLocal, srcLocal, detail::free_memory(), dataSize, \
                                            at);                                                 \
  }
// Half in float is as good without what rounding loses.
CUBECORE_ACTIVATION(Gelu, (highPerformance || std::is_same_v<PrimT<T>, half> ? 1 : 10),
                    if constexpr (highPerformance || std::is_same_v<PrimT<T>, half>)
                        detail::plain_gelu(s, d, x, t[0]);
                    else detail::gelu(s, d, x, t))
CUBECORE_ACTIVATION(FasterGelu, 4, detail::swish(s, d, x, 1.702, t))
CUBECORE_ACTIVATION(FasterGeluV2, 7, detail::faster_gelu_v2(s, d, x, t))
#undef CUBECORE_ACTIVATION

template <typename T, bool isReuseSource = false>
inline void Swish(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                  const T scalarValue, CUBECORE_AT) {
  double scale = static_cast<float>(scalarValue);
  detail::of_one<4>(dstLocal, srcLocal, detail::free_memory(), dataSize, at,
                    [scale](const auto& s, const auto& d, const auto& x, const auto& t) {
                      detail::swish(s, d, x, scale, t);
                    });
}
template <typename T, bool isReuseSource = false>
inline void Silu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                 CUBECORE_AT) {
  Swish<T, isReuseSource>(dstLocal, srcLocal, dataSize, T(1.0f), at);
}

namespace detail {

// d = a x / (1 + e^-(u + rest)), with u and rest as the first two temporaries of ten; `rest` may be
// left out. `d` may be `a` or `x`. Both factors are in two parts, the smaller one scaled where they
// are tiny, and so is the exponential beyond LOGISTIC_FAR, since `a` may be as large.
inline void gate_by(const Steps& s, const Floats& d, const Floats& a, const Floats& x,
                    const Floats* rest, const Floats* t) {
  constexpr float tiny = 0x1p-60f, huge = 0x1p126f, scale = 0x1p32f, largest = 0x1.fffffep127f;
  constexpr float further = 60.625f;  // e^-further is all but a float
  constexpr float most = 0x1p105f;    // more than a product loses
  const Floats &q = t[2], &error = t[4], &part = t[5];
  const Floats &product = t[1], &back = t[3], &by = t[6], &lost = t[7];
  gate_in_two(s, x, rest, t);
  s.mul(product, a, part);
  s.abs(back, product);
  s.rsubs(back, back, tiny);
  s.muls(back, back, huge);
  s.clamp(back, back, 0.0f, 1.0f);  // 1 where the product is tiny
  s.muls(by, back, scale);
  s.adds(by, by, 1.0f);
  s.rsubs(back, back, 1.0f);
  s.maxs(back, back, 1.0f / scale);
  s.mul(by, by, a);
  s.clamp(by, by, -largest, largest);
  s.clamp(lost, a, -largest, largest);
  s.sub(lost, a, lost);
  s.add(lost, by, lost);  // infinite where `a` is
  s.mul(d, lost, part);
  s.mul(product, q, d);
  for (const Floats* each : {&part, &d}) s.clamp(*each, *each, -largest, largest);
  product_error(s, lost, d, by, part, t[8], t[9]);
  s.clamp(by, product, -largest, largest);
  product_error(s, part, by, q, d, t[8], t[9]);
  s.mul(lost, q, lost);
  s.mul(error, error, d);
  for (const Floats* each : {&part, &lost, &error}) s.clamp(*each, *each, -most, most);
  s.add(part, part, lost);
  s.add(part, part, error);
  s.adds(by, t[0], LOGISTIC_FAR);
  s.mins(by, by, 0.0f);
  s.maxs(lost, by, -further);
  s.exp(lost, lost);
  s.mul(product, product, lost);
  s.mul(part, part, lost);
  s.adds(by, by, further);
  s.mins(by, by, 0.0f);
  s.exp(by, by);
  s.mul(product, product, by);
  s.mul(part, part, by);
  s.add(product, product, part);
  s.mul(d, product, back);
}

}  // namespace detail

// srcTensor0 by the activation of srcTensor1: GATE(steps, d, a, x, t). Half in float is as good
// without what rounding loses.
#define CUBECORE_GATED(NAME, TEMPORARIES, GATE)                                                   \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, const LocalTensor<uint8_t>& sharedTmpBuffer, \
                   const uint32_t calCount, CUBECORE_AT) {                                        \
    detail::of_two<TEMPORARIES>(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at, \
                                GATE);                                                            \
  }                                                                                               \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, const LocalTensor<uint8_t>& sharedTmpBuffer, \
                   CUBECORE_AT) {                                                                 \
    NAME<T>(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, srcTensor0.GetSize(), at);        \
  }                                                                                               \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, const uint32_t calCount, CUBECORE_AT) {      \
    NAME<T>(dstTensor, srcTensor0, srcTensor1, detail::free_memory(), calCount, at);              \
  }                                                                                               \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, CUBECORE_AT) {                               \
    NAME<T>(dstTensor, srcTensor0, srcTensor1, detail::free_memory(), srcTensor0.GetSize(), at);  \
  }
CUBECORE_GATED(GeGLU, (std::is_same_v<PrimT<T>, half> ? 2 : 10),
               [](const auto& s, const auto& d, const auto& a, const auto& x, const auto& t) {
                 if constexpr (std::is_same_v<PrimT<T>, half>) {
                   detail::plain_gelu(s, t[0], x, t[1]);
                   s.mul(d, t[0], a);
                 } else {
                   detail::gelu_exponent(s, t[0], t[1], x, t);
                   detail::gate_by(s, d, a, x, &t[1], t);
                 }
               })
CUBECORE_GATED(ReGlu, 1,
               [](const auto& s, const auto& d, const auto& a, const auto& x, const auto& t) {
                 s.maxs(t[0], x, 0.0f);
                 s.mul(d, t[0], a);
               })
#undef CUBECORE_GATED

template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                   CUBECORE_AT) {
  double scale = scalarValue;
  constexpr bool plain = std::is_same_v<PrimT<T>, half>;
  detail::of_two<plain ? 5 : 10>(
      dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at,
      [scale](const auto& s, const auto& d, const auto& a, const auto& x, const auto& t) {
        if constexpr (plain) {
          detail::swish(s, t[0], x, scale, t + 1);
          s.mul(d, t[0], a);
        } else if (scale == 1.0) {
          s.adds(t[0], x, 0.0f);
          detail::gate_by(s, d, a, x, nullptr, t);
        } else {
          detail::scaled_in_two(s, t[0], t[1], x, scale, t[2], t[3]);
          detail::gate_by(s, d, a, x, &t[1], t);
        }
      });
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, sharedTmpBuffer, srcTensor0.GetSize(),
            at);
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue,
                   const uint32_t calCount, CUBECORE_AT) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, detail::free_memory(), calCount, at);
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue, CUBECORE_AT) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, detail::free_memory(),
            srcTensor0.GetSize(), at);
}

}  // namespace AscendC
