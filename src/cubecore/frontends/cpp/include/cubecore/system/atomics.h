// Atomic operations of the scalar unit on global memory, of architecture 3510 alone. Pages:
// AtomicAdd, AtomicMax, AtomicMin, AtomicExch, AtomicCas; asc_atomic_add and its kin.
#pragma once

#include "cubecore/basic/tensors.h"

namespace AscendC {
namespace detail {

template <typename T>
constexpr bool is_counter = std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>;

// The old element; `values` are the value, or what is compared with and the value.
template <typename T, typename... V>
inline T atomically(const char* call, const T* address, const cubecore::Where& at, V... values) {
  return value_of<T>(static_cast<uint64_t>(
      cubecore::ask(0, call, at, cubecore::operand(cubecore::Mem::GM, address),
                    static_cast<T>(values)...)));
}

}  // namespace detail

#define CUBECORE_ATOMIC(NAME, CALL)                           \
  template <typename T>                                       \
  inline T NAME(__gm__ T* address, T value, CUBECORE_AT) {    \
    return detail::atomically(CALL, address, at, value);      \
  }
CUBECORE_ATOMIC(AtomicAdd, "asc_atomic_add")
CUBECORE_ATOMIC(AtomicMax, "asc_atomic_max")
CUBECORE_ATOMIC(AtomicMin, "asc_atomic_min")
#undef CUBECORE_ATOMIC

template <typename T>
inline T AtomicExch(__gm__ T* address, T value, CUBECORE_AT) {
  static_assert(detail::is_counter<T>, "AtomicExch.T must be uint32_t or uint64_t, got another");
  return detail::atomically("asc_atomic_exch", address, at, value);
}
template <typename T>
inline T AtomicCas(__gm__ T* address, T value1, T value2, CUBECORE_AT) {
  static_assert(detail::is_counter<T>, "AtomicCas.T must be uint32_t or uint64_t, got another");
  return detail::atomically("asc_atomic_cas", address, at, value1, value2);
}

}  // namespace AscendC

#define CUBECORE_ATOMIC(NAME)                                                    \
  template <typename T, typename V>                                              \
  inline T asc_atomic_##NAME(__gm__ T* address, V val, CUBECORE_AT) {            \
    return AscendC::detail::atomically("asc_atomic_" #NAME, address, at, val);   \
  }
CUBECORE_ATOMIC(add)
CUBECORE_ATOMIC(sub)
CUBECORE_ATOMIC(max)
CUBECORE_ATOMIC(min)
CUBECORE_ATOMIC(exch)
CUBECORE_ATOMIC(and)
CUBECORE_ATOMIC(or)
CUBECORE_ATOMIC(xor)
CUBECORE_ATOMIC(inc)
CUBECORE_ATOMIC(dec)
#undef CUBECORE_ATOMIC
template <typename T, typename C, typename V>
inline T asc_atomic_cas(__gm__ T* address, C compare, V val, CUBECORE_AT) {
  return AscendC::detail::atomically("asc_atomic_cas", address, at, compare, val);
}
