// Page Fmod.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

// x - trunc(x / y) y, twice and without rounding: exact for quotients below 2^46. The first
// quotient may be one too large, which the last step puts right.
struct Remainder {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats& y,
                  const Floats* t) const {
    constexpr float largest = 0x1.fffffep127f, huge = 0x1p126f;
    const Floats &left = t[0], &whole = t[1], &by = t[2], &part = t[3], &rest = t[4],
                 &product = t[5];
    s.adds(left, x, 0.0f);
    for (uint32_t round = 0; round < 2; ++round) {
      s.clamp(by, y, -largest, largest);
      s.div(whole, left, by);
      s.cast(whole, whole, RoundMode::CAST_TRUNC);
      s.mul(product, whole, by);
      s.sub(left, left, product);
      s.muls(product, product, -1.0f);
      s.first_half(part, by);
      s.sub(by, by, part);
      s.first_half(rest, whole);
      s.mla(product, part, rest);
      s.sub(whole, whole, rest);
      s.mla(product, by, rest);
      s.mla(product, part, whole);
      s.mla(product, by, whole);
      s.sub(left, left, product);
    }
    s.signed_one(by, x, part);
    s.mul(left, left, by);
    s.muls(part, left, huge);
    s.clamp(part, part, -1.0f, 0.0f);
    s.muls(part, part, huge);
    s.maxs(part, part, -1.0f);  // -1 where too much was taken
    s.abs(rest, y);
    s.mins(rest, rest, largest);
    s.mul(rest, rest, part);
    s.sub(left, left, rest);
    s.mul(d, left, by);
  }
};

}  // namespace detail

constexpr uint32_t FMOD_ITERATION_NUM_MAX = 11;
enum class FmodAlgo { NORMAL = 0, ITERATION_COMPENSATION = 1 };
struct FmodConfig {
  FmodAlgo algo = FmodAlgo::NORMAL;
  uint32_t iterationNum = FMOD_ITERATION_NUM_MAX;
};
constexpr FmodConfig DEFAULT_FMOD_CONFIG = {};

template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                 CUBECORE_AT) {
  detail::of_two<6>(dst, src0, src1, sharedTmpBuffer, calCount, at, detail::Remainder());
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, sharedTmpBuffer, src0.GetSize(), at);
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const uint32_t calCount, CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, detail::free_memory(), calCount, at);
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, detail::free_memory(), src0.GetSize(), at);
}

}  // namespace AscendC
