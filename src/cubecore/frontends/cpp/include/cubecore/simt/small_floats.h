// Conversions of floats of 8 bits, two at a time. Pages: SIMT, fp8 conversions.
#pragma once

#include <cubecore_thread_math.h>

#include "cubecore/simt/rounding.h"

using __asc_fp8x2_storage_t = unsigned short;
enum __asc_saturation_t { __ASC_NOSAT, __ASC_SATFINITE };
enum __asc_fp8_interpretation_t { __ASC_E4M3, __ASC_E5M2 };

namespace cubecore::simt {

template <typename T>
struct SmallFloat;
template <>
struct SmallFloat<float8_e4m3_t> {
  static constexpr const float* values = float8_e4m3fn_values;
  static constexpr float largest = 448, next = 480;
  static constexpr uint8_t beyond = 0x7F, nan = 0x7F;
  static constexpr bool has_minus_zero = true;
};
template <>
struct SmallFloat<float8_e5m2_t> {
  static constexpr const float* values = float8_e5m2_values;
  static constexpr float largest = 57344, next = 65536;
  static constexpr uint8_t beyond = 0x7C, nan = 0x7E;
  static constexpr bool has_minus_zero = true;
};
template <>
struct SmallFloat<hifloat8_t> {
  static constexpr const float* values = hifloat8_values;
  static constexpr float largest = 32768, next = 49152;
  static constexpr uint8_t beyond = 0x6F, nan = 0x80;
  static constexpr bool has_minus_zero = false;
};

template <typename T>
inline float value_of(T small) {
  if (small.bits == 0x80 && !SmallFloat<T>::has_minus_zero)
    return std::numeric_limits<float>::quiet_NaN();
  const float size = SmallFloat<T>::values[small.bits & 0x7F];
  return small.bits & 0x80 ? -size : size;
}

// The nearest number: of two the one with the even code, or with RNA the larger one.
template <typename T>
inline T small_of(float x, Round how, bool saturating) {
  using F = SmallFloat<T>;
  T made(0);
  if (x != x) {
    made.bits = saturating ? 0 : F::nan;
    return made;
  }
  const double size = std::fabs(static_cast<double>(x));
  double off = std::numeric_limits<double>::infinity();
  for (int code = 0; code < 128; ++code) {
    const double value = F::values[code];
    if (!(value <= F::largest)) continue;
    const double by = std::fabs(value - size);
    const bool wins_tie = how == Round::RNA ? value > F::values[made.bits] : code % 2 == 0;
    if (by < off || (by == off && wins_tie)) made.bits = static_cast<uint8_t>(code), off = by;
  }
  const double middle = (static_cast<double>(F::largest) + F::next) / 2;
  const bool is_odd = made.bits % 2 != 0;
  const bool above = size > middle || (size == middle && (how == Round::RNA || is_odd));
  if (above && !saturating) made.bits = F::beyond;
  if (std::signbit(x) && (made.bits != 0 || F::has_minus_zero)) made.bits |= 0x80;
  return made;
}

// Hybrid rounding, as the page of Cast writes it: up to 2^4 to the nearest; of larger numbers the
// bits behind those that are kept are held against the lowest bits of the source.
template <typename S>
inline float hybrid(S x) {
  const float wide = x;
  uint32_t word;
  __builtin_memcpy(&word, &wide, sizeof(word));
  const int exponent = static_cast<int>(word >> 23 & 0xFF) - 127, size = std::abs(exponent);
  if (!std::isfinite(wide) || exponent > 15) return wide;
  if (exponent < -23) return std::copysign(0.0f, wide);
  const int kept = size <= 3 ? 3 : size <= 7 ? 2 : size <= 15 ? 1 : exponent < -22 ? -1 : 0;
  constexpr bool is_float = std::is_same_v<S, float>;
  const int bits = is_float ? 14 : 2;
  const uint32_t low = static_cast<uint32_t>(bits_of(x));
  const uint32_t threshold = is_float ? low & 0x3FFF : (low & 1) << 1 | 1;
  const uint32_t significand = (word & 0x7FFFFF) | 1u << 23;
  const uint32_t behind = significand >> (23 - kept - bits) & ((1u << bits) - 1);
  const bool holds = (significand & ((1u << (23 - kept)) - 1)) == 0;
  const bool up = size <= 3 ? significand >> (22 - kept) & 1 : behind >= threshold && !holds;
  const float whole = static_cast<float>((significand >> (23 - kept)) + up);
  return std::copysign(std::ldexp(whole, exponent - kept), wide);
}

}  // namespace cubecore::simt

#define CUBECORE_TO_HIF8(SOURCE, PAIR)                                                          \
  inline hifloat8x2_t __##SOURCE##2hif82_rna(const PAIR x) {                                    \
    using namespace cubecore::simt;                                                             \
    return {small_of<hifloat8_t>(x.x, Round::RNA, false),                                       \
            small_of<hifloat8_t>(x.y, Round::RNA, false)};                                      \
  }                                                                                             \
  inline hifloat8x2_t __##SOURCE##2hif82_rna_sat(const PAIR x) {                                \
    using namespace cubecore::simt;                                                             \
    return {small_of<hifloat8_t>(x.x, Round::RNA, saturates()),                                 \
            small_of<hifloat8_t>(x.y, Round::RNA, saturates())};                                \
  }                                                                                             \
  inline hifloat8x2_t __##SOURCE##2hif82_rh(const PAIR x) {                                     \
    using namespace cubecore::simt;                                                             \
    return {small_of<hifloat8_t>(hybrid(x.x), Round::RNA, false),                               \
            small_of<hifloat8_t>(hybrid(x.y), Round::RNA, false)};                              \
  }                                                                                             \
  inline hifloat8x2_t __##SOURCE##2hif82_rh_sat(const PAIR x) {                                 \
    using namespace cubecore::simt;                                                             \
    return {small_of<hifloat8_t>(hybrid(x.x), Round::RNA, saturates()),                         \
            small_of<hifloat8_t>(hybrid(x.y), Round::RNA, saturates())};                        \
  }
CUBECORE_TO_HIF8(float2, float2)
CUBECORE_TO_HIF8(half2, half2)
#undef CUBECORE_TO_HIF8

inline float2 __hif822float2(const hifloat8x2_t x) {
  return {cubecore::simt::value_of(x.x), cubecore::simt::value_of(x.y)};
}
inline half2 __hif822half2(const hifloat8x2_t x) {
  return {half(cubecore::simt::value_of(x.x)), half(cubecore::simt::value_of(x.y))};
}
inline float2 __e4m3x22float2(const float8_e4m3x2_t x) {
  return {cubecore::simt::value_of(x.x), cubecore::simt::value_of(x.y)};
}
inline float2 __e5m2x22float2(const float8_e5m2x2_t x) {
  return {cubecore::simt::value_of(x.x), cubecore::simt::value_of(x.y)};
}

inline __asc_fp8x2_storage_t __asc_cvt_float2_to_fp8x2(const float2 x, __asc_saturation_t saturate,
                                                       __asc_fp8_interpretation_t kind) {
  using namespace cubecore::simt;
  const bool within = saturate == __ASC_SATFINITE && saturates();
  auto bits = [&](float value) -> unsigned {
    return kind == __ASC_E4M3 ? small_of<float8_e4m3_t>(value, Round::RN, within).bits
                              : small_of<float8_e5m2_t>(value, Round::RN, within).bits;
  };
  return static_cast<__asc_fp8x2_storage_t>(bits(x.x) | bits(x.y) << 8);
}
