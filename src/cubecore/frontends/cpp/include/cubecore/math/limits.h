// Extreme and special numbers of the element types, of architecture 3510 alone. Pages: NumericLimits
// with Max, Min, Lowest, DeNormMin, Infinity, NegativeInfinity, QuietNaN, SignalingNaN.
#pragma once

#include <limits>

#include "cubecore/basic/unary.h"

namespace AscendC {

template <typename T>
class NumericLimits {
  using Own = std::numeric_limits<T>;
  static constexpr bool is_small = cubecore::is_half<T>;
  // Of 16 bits: those of the fraction, and all of the exponent.
  static constexpr int fraction = std::is_same_v<T, half> ? 10 : 7;
  static constexpr uint16_t exponent = static_cast<uint16_t>(0x7FFF >> fraction << fraction);
  static constexpr T small(int bits) {
    if constexpr (is_small) {
      T made = T(0.0f);
      made.bits = static_cast<uint16_t>(bits);
      return made;
    } else {
      return T(0);
    }
  }

 public:
#define CUBECORE_LIMIT(NAME, SMALL, OWN)                                                    \
  static constexpr T NAME() {                                                               \
    if constexpr (is_small)                                                                 \
      return small(SMALL);                                                                  \
    else                                                                                    \
      return Own::OWN();                                                                    \
  }                                                                                         \
  static void NAME(const LocalTensor<T>& dstLocal, uint32_t count, CUBECORE_AT) {           \
    Duplicate(dstLocal, NAME(), static_cast<int32_t>(count), at);                           \
  }
  CUBECORE_LIMIT(Max, exponent - 1, max)
  CUBECORE_LIMIT(Min, 1 << fraction, min)
  CUBECORE_LIMIT(Lowest, 0x8000 | (exponent - 1), lowest)
  CUBECORE_LIMIT(DeNormMin, 1, denorm_min)
  CUBECORE_LIMIT(Infinity, exponent, infinity)
  CUBECORE_LIMIT(QuietNaN, exponent | 1 << (fraction - 1), quiet_NaN)
  CUBECORE_LIMIT(SignalingNaN, exponent | 1 << (fraction - 2), signaling_NaN)
#undef CUBECORE_LIMIT
  static constexpr T NegativeInfinity() {
    if constexpr (is_small)
      return small(0x8000 | exponent);
    else
      return -Own::infinity();
  }
  static void NegativeInfinity(const LocalTensor<T>& dstLocal, uint32_t count, CUBECORE_AT) {
    Duplicate(dstLocal, NegativeInfinity(), static_cast<int32_t>(count), at);
  }
};

}  // namespace AscendC
