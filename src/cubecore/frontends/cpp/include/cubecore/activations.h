// Activations. Pages of the high-level API: Gelu, FasterGelu, FasterGeluV2, Silu, Swish, SwiGLU,
// GeGLU, ReGlu, with those of their temporary space.
#pragma once

#include "cubecore/math/compensated.h"
#include "cubecore/workspaces.h"

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

// Gelu by the tanh's approximation: x / (1 + e^-(c x + d x^3)), c = 1.5957691216, d = 0.044715 c.
// What is left of x by rounding it to eight bits has an exact x (c + d x^2); the rest is small.
inline void gelu(const Steps& s, const Floats& d, const Floats& x, const Floats* t) {
  constexpr float linear = 1.5957691216057308f, cubic = 0.0713548162726008527f;
  constexpr float linear_high = 1.5957698822021484f, linear_low = -7.605964176260471e-7f;
  constexpr float cubic_high = 0.0712890625f, cubic_low = 6.5753772600253e-5f;
  const Floats &cut = t[0], &high = t[1], &low = t[2], &rest = t[3], &sum = t[4], &part = t[5];
  s.clamp(cut, x, -30.0f, 30.0f);
  s.shorten(high, cut, low);
  s.sub(low, cut, high);
  s.mul(rest, high, high);
  s.muls(sum, rest, cubic_high);
  s.adds(sum, sum, linear_high);
  s.muls(rest, rest, cubic_low);
  s.adds(rest, rest, linear_low);
  s.shorten(part, sum, t[6]);
  s.sub(sum, sum, part);
  s.add(sum, sum, rest);
  s.add(rest, part, sum);
  s.muls(rest, rest, 3.0f);
  s.adds(rest, rest, -2.0f * linear);
  s.muls(cut, cut, 3.0f * cubic);
  s.axpy(cut, low, -2.0f * cubic);
  s.mul(cut, cut, low);
  s.add(rest, rest, cut);
  s.mul(rest, rest, low);
  s.mla(rest, high, sum);
  s.mul(high, high, part);
  s.add(cut, high, rest);
  s.sub(high, cut, high);
  s.sub(rest, rest, high);
  over_one_and_exp(s, d, &x, cut, &rest, high, low);
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

// x (s (a / 2 (min(|x|, -b) + b)^2 + 0.5) + 0.5) with s the sign of x, |x| in terms of sqrt 2:
// x v below 0 and x (1 - v) above, v = -a / 2 (...)^2. Uncertain: a = -0.2888 and b = -1.769, as
// the operator FastGeluV2 has them.
inline void faster_gelu_v2(const Steps& s, const Floats& d, const Floats& x, const Floats* t) {
  constexpr float half_a = 0.1444f, b = 1.7690000534057617f, b_low = -5.340576181289691e-8f;
  constexpr double root = 0.70710678118654752440;
  scaled_in_two(s, t[0], t[1], x, root, t[2], t[3]);
  s.signed_one(t[2], x, t[3]);
  s.mul(t[0], t[0], t[2]);
  s.mul(t[1], t[1], t[2]);
  s.adds(t[0], t[0], -b);
  s.adds(t[1], t[1], -b_low);
  s.add(t[0], t[0], t[1]);
  s.mins(t[0], t[0], 0.0f);
  s.mul(t[0], t[0], t[0]);
  s.muls(t[0], t[0], half_a);
  s.mul(t[0], t[0], t[2]);
  s.muls(t[2], t[2], 0.5f);
  s.adds(t[2], t[2], 0.5f);
  s.sub(t[0], t[2], t[0]);
  s.mul(d, t[0], x);
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
CUBECORE_ACTIVATION(Gelu, 7,
                    if constexpr (highPerformance || std::is_same_v<PrimT<T>, half>)
                        detail::plain_gelu(s, d, x, t[0]);
                    else detail::gelu(s, d, x, t))
CUBECORE_ACTIVATION(FasterGelu, 4, detail::swish(s, d, x, 1.702, t))
CUBECORE_ACTIVATION(FasterGeluV2, 4, detail::faster_gelu_v2(s, d, x, t))
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

// `gate` leaves the activation in the last of its temporaries.
template <uint32_t temporaries, typename T, typename Body>
inline void gated(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                  const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at,
                  const Body& gate) {
  of_two<temporaries>(
      dst, src0, src1, given, count, at,
      [gate](const auto& s, const auto& d, const auto& a, const auto& b, const auto& t) {
        gate(s, t[temporaries - 1], b, t);
        s.mul(d, t[temporaries - 1], a);
      });
}

}  // namespace detail

// srcTensor0 by the activation of srcTensor1. GATE(steps, d, x, t) makes d, the
// last of its temporaries.
#define CUBECORE_GATED(NAME, TEMPORARIES, GATE)                                                   \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, const LocalTensor<uint8_t>& sharedTmpBuffer, \
                   const uint32_t calCount, CUBECORE_AT) {                                        \
    detail::gated<TEMPORARIES>(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at,  \
                               GATE);                                                             \
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
CUBECORE_GATED(GeGLU, 7, [](const auto& s, const auto& d, const auto& x, const auto& t) {
  if constexpr (std::is_same_v<PrimT<T>, half>)
    detail::plain_gelu(s, d, x, t[0]);
  else
    detail::gelu(s, d, x, t);
})
CUBECORE_GATED(ReGlu, 1,
               [](const auto& s, const auto& d, const auto& x, const auto&) { s.maxs(d, x, 0.0f); })
#undef CUBECORE_GATED

template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                   CUBECORE_AT) {
  double scale = scalarValue;
  detail::gated<4>(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at,
                   [scale](const auto& s, const auto& d, const auto& x, const auto& t) {
                     detail::swish(s, d, x, scale, t);
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
