// Earlier spellings of SIMT code, without pages: `AscendC::Simt`, as public files have them.
#pragma once

#include "cubecore/seam/enums.h"
#include "cubecore/simt/atomics.h"
#include "cubecore/simt/identity.h"
#include "cubecore/simt/launch.h"
#include "cubecore/simt/rounding.h"

namespace AscendC::Simt {

namespace detail {
constexpr cubecore::simt::Round round_of(RoundMode mode) {
  using cubecore::simt::Round;
  return mode == RoundMode::CAST_FLOOR                                    ? Round::RD
         : mode == RoundMode::CAST_CEIL                                   ? Round::RU
         : mode == RoundMode::CAST_ROUND                                  ? Round::RNA
         : mode == RoundMode::CAST_TRUNC || mode == RoundMode::CAST_ZERO  ? Round::RZ
         : mode == RoundMode::CAST_ODD                                    ? Round::RO
                                                                          : Round::RN;
}
template <typename To, RoundMode mode, typename From>
inline To cast(From x, bool saturating) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>)
    return cubecore::simt::integer_of<To>(x, round_of(mode));
  else if constexpr (std::is_integral_v<To>)
    return static_cast<To>(x);
  else
    return cubecore::simt::real_of<To>(x, round_of(mode), saturating);
}
}  // namespace detail
template <typename To, typename From, RoundMode mode>
inline To Cast(From x) {
  return detail::cast<To, mode>(x, false);
}
enum class SatMode { NO_SAT, SAT };
template <typename To, typename From, RoundMode mode, SatMode saturation>
inline To Cast(From x) {
  return detail::cast<To, mode>(x, saturation == SatMode::SAT && !std::is_same_v<To, float>);
}
template <typename To, typename From, RoundMode mode>
inline To CastSat(From x) {
  return detail::cast<To, mode>(x, !std::is_same_v<To, float>);
}

using Dim3 = ::dim3;

// The 3 numbers of an index or of a size.
template <int axis = 0>
constexpr unsigned int axis_of(const dim3& of) {
  static_assert(axis >= 0 && axis < 3, "an axis must be 0, 1 or 2, got another");
  return axis == 0 ? of.x : axis == 1 ? of.y : of.z;
}
template <int axis = 0>
inline int32_t GetThreadIdx() {
  return static_cast<int32_t>(axis_of<axis>(cubecore_threadIdx));
}
template <int axis = 0>
inline int32_t GetThreadNum() {
  return static_cast<int32_t>(axis_of<axis>(cubecore_blockDim));
}
inline int32_t GetBlockIdx() { return static_cast<int32_t>(cubecore_blockIdx.x); }
inline int32_t GetBlockNum() { return static_cast<int32_t>(cubecore_gridDim.x); }
CUBECORE_SIMT void ThreadBarrier() { asc_syncthreads(); }
CUBECORE_SIMT void ThreadFence() { asc_threadfence(); }

template <auto function, typename... A>
inline void VF_CALL(const dim3& threads, A&&... arguments) {
  cubecore::simt::call_block(function, threads, *cubecore_last(), static_cast<A&&>(arguments)...);
}

// The quotient by a constant of a call: the upper half of a product, shifted (page of integer
// division, `__umulhi`).
template <typename T>
CUBECORE_SIMT T UintDiv(T dividend, T magic, T shift) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>((static_cast<T>(static_cast<unsigned __int128>(dividend) * magic >> 64) +
                           dividend) >> shift);
  else
    return static_cast<T>(
        (static_cast<T>(static_cast<uint64_t>(dividend) * magic >> 32) + dividend) >> shift);
}

template <typename T>
inline bool IsNan(T x) {
  return std::isnan(static_cast<float>(x));
}
inline float Sin(float x) { return ::sinf(x); }
inline float Cos(float x) { return ::cosf(x); }
inline float Log(float x) { return ::logf(x); }
template <typename T>
constexpr T Min(T x, T y) {
  return y < x ? y : x;
}
template <typename T>
constexpr T Max(T x, T y) {
  return x < y ? y : x;
}

template <typename T, typename V>
CUBECORE_SIMT cubecore::simt::Old<T> AtomicAdd(T* address, V val) {
  return asc_atomic_add(address, static_cast<T>(val));
}
template <typename T, typename V>
CUBECORE_SIMT cubecore::simt::Old<T> AtomicMax(T* address, V val) {
  return asc_atomic_max(address, static_cast<T>(val));
}
template <typename T, typename V>
CUBECORE_SIMT cubecore::simt::Old<T> AtomicMin(T* address, V val) {
  return asc_atomic_min(address, static_cast<T>(val));
}
template <typename T, typename C, typename V>
CUBECORE_SIMT T AtomicCas(T* address, C compare, V val) {
  return asc_atomic_cas(address, static_cast<T>(compare), static_cast<T>(val));
}
template <typename T, typename V>
CUBECORE_SIMT T AtomicExch(T* address, V val) {
  return asc_atomic_exch(address, static_cast<T>(val));
}

}  // namespace AscendC::Simt

namespace AscendC {

// What UintDiv divides by: of 2^N m the smallest number above 2^(N + shift) / divisor, without its
// highest bit, and the bits that the divisor has.
template <typename T>
inline void GetUintDivMagicAndShift(T& magic, T& shift, T divisor) {
  constexpr int bits = 8 * sizeof(T);
  shift = 0;
  while (shift < bits && (static_cast<unsigned __int128>(1) << shift) < divisor) ++shift;
  const unsigned __int128 power = static_cast<unsigned __int128>(1) << shift;
  magic = static_cast<T>(((power - divisor) << bits) / divisor + 1);
}

}  // namespace AscendC

// Names that C's library keeps for itself as well, so that they are macros.
#define __expf(X) ::expf(X)
#define __logf(X) ::logf(X)
#define __floorf(X) ::floorf(X)
