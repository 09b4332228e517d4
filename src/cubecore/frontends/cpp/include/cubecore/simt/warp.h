// Warp functions: of the active lanes alone. Pages: asc_shfl and its kin, votes, reductions.
#pragma once

#include <cstring>

#include "cubecore/simt/sync.h"
#include "cubecore/simt/vectors.h"

namespace cubecore::simt {

template <typename T>
constexpr bool is_exchanged =
    (std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) || std::is_same_v<T, float> ||
    is_half<T> || std::is_same_v<T, half2> || std::is_same_v<T, bfloat16x2_t>;

template <typename T>
CUBECORE_SIMT uint64_t bits_of(T value) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
CUBECORE_SIMT T of_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// Smaller integers go as the int32_t that a call of the page's overloads promotes them to.
template <typename T>
CUBECORE_SIMT T exchanged(Warp how, T value, int32_t by, int32_t width) {
  constexpr bool promoted = std::is_integral_v<T> && sizeof(T) < sizeof(int32_t);
  static_assert(promoted || is_exchanged<T>,
                "a value that lanes exchange must be of 32 or 64 bits, a half or a pair, got another");
  if constexpr (promoted)
    return static_cast<T>(exchanged<int32_t>(how, value, by, width));
  else
    return of_bits<T>(cubecore_simt_warp(how, Lane::BITS, bits_of(value), by, width));
}

template <typename T>
constexpr Lane lane_type = std::is_same_v<T, float>  ? Lane::FLOAT
                           : std::is_same_v<T, half> ? Lane::HALF
                           : std::is_signed_v<T>     ? Lane::INT32
                                                     : Lane::UINT32;
template <typename T>
CUBECORE_SIMT T reduced(Warp how, T value) {
  static_assert((std::is_integral_v<T> && sizeof(T) == 4) || std::is_same_v<T, float> ||
                    std::is_same_v<T, half>,
                "lanes reduce int32_t, uint32_t, float and half, got another type");
  return of_bits<T>(cubecore_simt_warp(how, lane_type<T>, bits_of(value), 0, 32));
}

}  // namespace cubecore::simt

template <typename T>
CUBECORE_SIMT T asc_shfl(T var, int32_t src_lane, int32_t width = 32) {
  return cubecore::simt::exchanged(cubecore::simt::Warp::SHUFFLE, var, src_lane, width);
}
template <typename T>
CUBECORE_SIMT T asc_shfl_up(T var, uint32_t delta, int32_t width = 32) {
  return cubecore::simt::exchanged(cubecore::simt::Warp::UP, var, static_cast<int32_t>(delta), width);
}
template <typename T>
CUBECORE_SIMT T asc_shfl_down(T var, uint32_t delta, int32_t width = 32) {
  return cubecore::simt::exchanged(cubecore::simt::Warp::DOWN, var, static_cast<int32_t>(delta),
                                   width);
}
template <typename T>
CUBECORE_SIMT T asc_shfl_xor(T var, int32_t lane_mask, int32_t width = 32) {
  return cubecore::simt::exchanged(cubecore::simt::Warp::XOR, var, lane_mask, width);
}
template <typename T>
CUBECORE_SIMT T __shfl(T var, int32_t src_lane, int32_t width = 32) {  // without a page
  return cubecore::simt::exchanged(cubecore::simt::Warp::SHUFFLE, var, src_lane, width);
}

#define CUBECORE_VOTE(NAME, TYPE, WHAT)                                                        \
  CUBECORE_SIMT TYPE NAME(int32_t predicate) {                                                 \
    return static_cast<TYPE>(cubecore_simt_warp(cubecore::simt::Warp::WHAT,                    \
                                                cubecore::simt::Lane::BITS, predicate != 0, 0, 32)); \
  }
CUBECORE_VOTE(asc_all, int32_t, ALL)
CUBECORE_VOTE(asc_any, int32_t, ANY)
CUBECORE_VOTE(asc_ballot, uint32_t, BALLOT)
#undef CUBECORE_VOTE
CUBECORE_SIMT uint32_t asc_activemask() {
  return static_cast<uint32_t>(
      cubecore_simt_warp(cubecore::simt::Warp::ACTIVE, cubecore::simt::Lane::BITS, 0, 0, 32));
}

#define CUBECORE_REDUCE(NAME, WHAT)                                    \
  template <typename T>                                                \
  CUBECORE_SIMT T NAME(T val) {                                        \
    return cubecore::simt::reduced(cubecore::simt::Warp::WHAT, val);   \
  }
CUBECORE_REDUCE(asc_reduce_add, ADD)
CUBECORE_REDUCE(asc_reduce_max, MAX)
CUBECORE_REDUCE(asc_reduce_min, MIN)
#undef CUBECORE_REDUCE
