// Atomics on UB and global memory: they return the old value. Pages: atomic operations.
#pragma once

#include "cubecore/simt/warp.h"
#include "cubecore/system/atomics.h"

namespace cubecore::simt {

template <typename T>
constexpr bool is_pair = std::is_same_v<T, half2> || std::is_same_v<T, bfloat16x2_t>;
template <typename T>
constexpr bool is_word = std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);
// The arguments behind an address do not say the element type.
template <typename T>
struct Plain {
  using type = T;
};
template <typename T>
using Given = typename Plain<T>::type;

// What atomics of half and bfloat16_t return is no old value: a finding where it is used.
template <typename T>
struct NoOldValue {
  T value;
  CUBECORE_SIMT operator T() const {
    cubecore_simt_atomic_value();
    return value;
  }
};
template <typename T>
using Old = std::conditional_t<is_half<T>, NoOldValue<T>, T>;

template <typename T, typename F>
CUBECORE_SIMT T atomically(T* address, F&& of) {
  const T old = of_bits<T>(cubecore_simt_atomic(address, sizeof(T)));
  cubecore_simt_atomic_store(address, sizeof(T), bits_of(of(old)));
  return of_bits<T>(cubecore_simt_old_value(bits_of(old)));
}

template <typename T>
constexpr T larger(T a, T b) {
  if constexpr (is_pair<T>)
    return {larger(a.x, b.x), larger(a.y, b.y)};
  else
    return a < b || a != a ? b : a;
}
template <typename T>
constexpr T smaller(T a, T b) {
  if constexpr (is_pair<T>)
    return {smaller(a.x, b.x), smaller(a.y, b.y)};
  else
    return b < a || a != a ? b : a;
}

}  // namespace cubecore::simt

// Vector code around threads has the same names for the scalar unit (cubecore/system/atomics.h):
// who runs decides.
namespace cubecore::simt {

#define CUBECORE_NUMBER is_word<T> || std::is_same_v<T, float> || is_pair<T>
#define CUBECORE_ATOMIC(NAME, TAKES, RESULT)                                                 \
  template <typename T>                                                                      \
  CUBECORE_SIMT Old<T> asc_atomic_##NAME(T* address, Given<T> val, CUBECORE_AT) {            \
    static_assert(TAKES, "asc_atomic_" #NAME " must have a type of its page, got another");  \
    if constexpr (is_word<T> || std::is_same_v<T, float>)                                    \
      if (!cubecore_simt_runs()) return ::asc_atomic_##NAME(address, val, at);               \
    return {atomically(address, [&](T old) -> T { return RESULT; })};                        \
  }
CUBECORE_ATOMIC(add, CUBECORE_NUMBER || is_half<T>, static_cast<T>(old + val))
CUBECORE_ATOMIC(sub, CUBECORE_NUMBER, static_cast<T>(old - val))
CUBECORE_ATOMIC(max, CUBECORE_NUMBER || is_half<T>, larger(old, val))
CUBECORE_ATOMIC(min, CUBECORE_NUMBER || is_half<T>, smaller(old, val))
CUBECORE_ATOMIC(exch, CUBECORE_NUMBER, val)
#undef CUBECORE_ATOMIC
#undef CUBECORE_NUMBER
#define CUBECORE_ATOMIC(NAME, TAKES, RESULT)                                                 \
  template <typename T>                                                                      \
  CUBECORE_SIMT T asc_atomic_##NAME(T* address, Given<T> val, CUBECORE_AT) {                 \
    static_assert(TAKES, "asc_atomic_" #NAME " must have a type of its page, got another");  \
    if (!cubecore_simt_runs()) return ::asc_atomic_##NAME(address, val, at);                 \
    return atomically(address, [&](T old) -> T { return static_cast<T>(RESULT); });          \
  }
CUBECORE_ATOMIC(and, is_word<T>, old & val)
CUBECORE_ATOMIC(or, is_word<T>, old | val)
CUBECORE_ATOMIC(xor, is_word<T>, old ^ val)
CUBECORE_ATOMIC(inc, is_word<T>&& std::is_unsigned_v<T>, old >= val ? 0 : old + 1)
CUBECORE_ATOMIC(dec, is_word<T>&& std::is_unsigned_v<T>, old == 0 || old > val ? val : old - 1)
#undef CUBECORE_ATOMIC

template <typename T>
CUBECORE_SIMT T asc_atomic_cas(T* address, Given<T> compare, Given<T> val, CUBECORE_AT) {
  static_assert(is_word<T> || std::is_same_v<T, float> || is_pair<T>,
                "asc_atomic_cas must have a type of its page, got another");
  if constexpr (is_word<T> || std::is_same_v<T, float>)
    if (!cubecore_simt_runs()) return ::asc_atomic_cas(address, compare, val, at);
  return atomically(address, [&](T old) -> T { return bits_of(old) == bits_of(compare) ? val : old; });
}

}  // namespace cubecore::simt

#define asc_atomic_add ::cubecore::simt::asc_atomic_add
#define asc_atomic_sub ::cubecore::simt::asc_atomic_sub
#define asc_atomic_max ::cubecore::simt::asc_atomic_max
#define asc_atomic_min ::cubecore::simt::asc_atomic_min
#define asc_atomic_exch ::cubecore::simt::asc_atomic_exch
#define asc_atomic_and ::cubecore::simt::asc_atomic_and
#define asc_atomic_or ::cubecore::simt::asc_atomic_or
#define asc_atomic_xor ::cubecore::simt::asc_atomic_xor
#define asc_atomic_inc ::cubecore::simt::asc_atomic_inc
#define asc_atomic_dec ::cubecore::simt::asc_atomic_dec
#define asc_atomic_cas ::cubecore::simt::asc_atomic_cas
