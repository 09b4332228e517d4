// Activations. Pages of the high-level API: Gelu, FasterGelu, FasterGeluV2, Silu, Swish, SwiGLU,
// GeGLU, ReGlu, with those of their temporary space.
#pragma once

#include "cubecore/math/steps.h"
#include "cubecore/workspaces.h"

namespace AscendC {

namespace detail {

// x / (1 + exp(-scale * x)); `d` is not `x`.
inline void swish(const Steps& s, const Floats& d, const Floats& x, float scale) {
  s.muls(d, x, -scale);
  s.exp(d, d);
  s.adds(d, d, 1.0f);
  s.div(d, x, d);
}
// Gelu by the tanh's approximation: x / (1 + exp(-1.5957691216 (x + 0.044715 x^3))).
inline void gelu(const Steps& s, const Floats& d, const Floats& x) {
  s.mul(d, x, x);
  s.muls(d, d, 0.044715f);
  s.adds(d, d, 1.0f);
  s.mul(d, d, x);
  s.muls(d, d, -1.5957691216057308f);
  s.exp(d, d);
  s.adds(d, d, 1.0f);
  s.div(d, x, d);
}
// x exp(0.851 (x - |x|)) / (1 + exp(-1.702 |x|)).
inline void faster_gelu(const Steps& s, const Floats& d, const Floats& x, const Floats& t) {
  s.abs(d, x);
  s.sub(t, x, d);
  s.muls(t, t, 0.851f);
  s.exp(t, t);
  s.mul(t, t, x);
  s.muls(d, d, -1.702f);
  s.exp(d, d);
  s.adds(d, d, 1.0f);
  s.div(d, t, d);
}

// x (s (a / 2 (min(|x|, -b) + b)^2 + 0.5) + 0.5) with s the sign of x. Uncertain: a = -0.2888 and
// b = -1.769 of |x / sqrt(2)|, as the operator FastGeluV2 has them.
inline void faster_gelu_v2(const Steps& s, const Floats& d, const Floats& x, const Floats& t) {
  constexpr float half_a = -0.1444f, b = -1.769f, root = 0.70710678f;
  s.muls(d, x, root);
  s.sign(t, d);
  s.abs(d, d);
  s.mins(d, d, -b);
  s.adds(d, d, b);
  s.mul(d, d, d);
  s.muls(d, d, half_a);
  s.adds(d, d, 0.5f);
  s.mul(d, d, t);
  s.adds(d, d, 0.5f);
  s.mul(d, d, x);
}

}  // namespace detail

#define CUBECORE_ACTIVATION(NAME, TEMPORARIES, BODY)                                             \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  inline void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,               \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize,         \
                   CUBECORE_AT) {                                                                \
    detail::of_one<TEMPORARIES>(dstLocal, srcLocal, sharedTmpBuffer, dataSize, at, BODY);        \
  }                                                                                              \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  inline void NAME(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,               \
                   const uint32_t dataSize, CUBECORE_AT) {                                       \
    NAME<T, highPrecision, highPerformance>(dstLocal, srcLocal, detail::free_memory(), dataSize, \
                                            at);                                                 \
  }
CUBECORE_ACTIVATION(Gelu, 1, [](const auto& s, const auto& d, const auto& x, const auto& t) {
  detail::gelu(s, t[0], x);
  s.adds(d, t[0], 0.0f);
})
CUBECORE_ACTIVATION(FasterGelu, 2, [](const auto& s, const auto& d, const auto& x, const auto& t) {
  detail::faster_gelu(s, t[0], x, t[1]);
  s.adds(d, t[0], 0.0f);
})
CUBECORE_ACTIVATION(FasterGeluV2, 2,
                    [](const auto& s, const auto& d, const auto& x, const auto& t) {
                      detail::faster_gelu_v2(s, t[0], x, t[1]);
                      s.adds(d, t[0], 0.0f);
                    })
#undef CUBECORE_ACTIVATION

template <typename T, bool isReuseSource = false>
inline void Swish(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                  const T scalarValue, CUBECORE_AT) {
  float scale = static_cast<float>(scalarValue);
  detail::of_one<1>(dstLocal, srcLocal, detail::free_memory(), dataSize, at,
                    [scale](const auto& s, const auto& d, const auto& x, const auto& t) {
                      detail::swish(s, t[0], x, scale);
                      s.adds(d, t[0], 0.0f);
                    });
}
template <typename T, bool isReuseSource = false>
inline void Silu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                 CUBECORE_AT) {
  Swish<T, isReuseSource>(dstLocal, srcLocal, dataSize, T(1.0f), at);
}

namespace detail {

template <typename T, typename Body>
inline void gated(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                  const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at,
                  const Body& gate) {
  of_two<1>(dst, src0, src1, given, count, at,
            [gate](const auto& s, const auto& d, const auto& a, const auto& b, const auto& t) {
              gate(s, t[0], b);
              s.mul(d, t[0], a);
            });
}

}  // namespace detail

// srcTensor0 by the activation of srcTensor1. GATE(steps, d, x) makes d, which is not x.
#define CUBECORE_GATED(NAME, GATE)                                                                \
  template <typename T, bool isReuseSource = false>                                               \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,             \
                   const LocalTensor<T>& srcTensor1, const LocalTensor<uint8_t>& sharedTmpBuffer, \
                   const uint32_t calCount, CUBECORE_AT) {                                        \
    detail::gated(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at, GATE);        \
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
CUBECORE_GATED(GeGLU, [](const auto& s, const auto& d, const auto& x) { detail::gelu(s, d, x); })
CUBECORE_GATED(ReGlu, [](const auto& s, const auto& d, const auto& x) { s.maxs(d, x, 0.0f); })
#undef CUBECORE_GATED

template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                   const LocalTensor<T>& srcTensor1, const float& scalarValue,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                   CUBECORE_AT) {
  float scale = scalarValue;
  detail::gated(
      dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, calCount, at,
      [scale](const auto& s, const auto& d, const auto& x) { detail::swish(s, d, x, scale); });
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
