// Atomics of C++ in instrumented code, those of host functions and of static variables' guards:
// the plain operations of the host.
#pragma once

#include <stdint.h>

#define CUBECORE_FETCH(BITS, NAME, BUILTIN)                                                  \
  uint##BITS##_t __tsan_atomic##BITS##_##NAME(volatile void* at, uint##BITS##_t value, int) { \
    return BUILTIN(static_cast<volatile uint##BITS##_t*>(at), value, __ATOMIC_SEQ_CST);       \
  }
#define CUBECORE_EXCHANGE_IF(BITS, NAME)                                                     \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile void* at, void* expected,       \
                                                    uint##BITS##_t value, int, int) {        \
    return __atomic_compare_exchange_n(static_cast<volatile uint##BITS##_t*>(at),            \
                                       static_cast<uint##BITS##_t*>(expected), value, false, \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
  }
#define CUBECORE_ATOMICS(BITS)                                                               \
  uint##BITS##_t __tsan_atomic##BITS##_load(const volatile void* at, int) {                  \
    return __atomic_load_n(static_cast<const volatile uint##BITS##_t*>(at), __ATOMIC_SEQ_CST); \
  }                                                                                          \
  void __tsan_atomic##BITS##_store(volatile void* at, uint##BITS##_t value, int) {           \
    __atomic_store_n(static_cast<volatile uint##BITS##_t*>(at), value, __ATOMIC_SEQ_CST);    \
  }                                                                                          \
  CUBECORE_FETCH(BITS, exchange, __atomic_exchange_n)                                        \
  CUBECORE_FETCH(BITS, fetch_add, __atomic_fetch_add)                                        \
  CUBECORE_FETCH(BITS, fetch_sub, __atomic_fetch_sub)                                        \
  CUBECORE_FETCH(BITS, fetch_and, __atomic_fetch_and)                                        \
  CUBECORE_FETCH(BITS, fetch_or, __atomic_fetch_or)                                          \
  CUBECORE_FETCH(BITS, fetch_xor, __atomic_fetch_xor)                                        \
  CUBECORE_FETCH(BITS, fetch_nand, __atomic_fetch_nand)                                      \
  CUBECORE_EXCHANGE_IF(BITS, strong)                                                         \
  CUBECORE_EXCHANGE_IF(BITS, weak)                                                           \
  uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(                                 \
      volatile void* at, uint##BITS##_t expected, uint##BITS##_t value, int, int) {          \
    __atomic_compare_exchange_n(static_cast<volatile uint##BITS##_t*>(at), &expected, value, \
                                false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
    return expected;                                                                         \
  }

extern "C" {
CUBECORE_ATOMICS(8)
CUBECORE_ATOMICS(16)
CUBECORE_ATOMICS(32)
CUBECORE_ATOMICS(64)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
