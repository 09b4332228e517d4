// Accesses with a cache hint, the data cache, and which memory an address is of. Pages: access
// functions, address predicates and conversions.
#pragma once

#include "cubecore/simt/vectors.h"
#include "cubecore/simt/sync.h"

#define CUBECORE_LOAD(NAME, HOW)                                                            \
  template <typename T>                                                                     \
  CUBECORE_SIMT std::remove_cv_t<T> NAME(T* address) {                                      \
    std::remove_cv_t<T> value;                                                              \
    cubecore_simt_load(address, &value, sizeof(T), cubecore::simt::Access::HOW);            \
    return value;                                                                           \
  }
#define CUBECORE_STORE(NAME, HOW)                                                           \
  template <typename T, typename V>                                                         \
  CUBECORE_SIMT void NAME(T* address, V given) {                                            \
    const T value = given;                                                                  \
    cubecore_simt_store(address, &value, sizeof(T), cubecore::simt::Access::HOW);           \
  }
CUBECORE_LOAD(asc_ldca, CACHED)
CUBECORE_LOAD(asc_ldcg, PAST_CACHE)
CUBECORE_STORE(asc_stwt, CACHED)
CUBECORE_STORE(asc_stcg, PAST_CACHE)
#undef CUBECORE_STORE
#undef CUBECORE_LOAD

CUBECORE_SIMT void asc_dcci_single(const void* dst) { cubecore_simt_drop_line(dst); }
CUBECORE_SIMT void asc_dcci_entire(const void*) { cubecore_simt_drop_line(nullptr); }

// An address that threads have is the host's; one of UB counts from UB's start as a number.
inline unsigned int __isUbuf(const void* ptr) { return cubecore_simt_in_ub(ptr); }
inline unsigned int __isGlobal(const void* ptr) { return cubecore_simt_in_gm(ptr); }
inline unsigned int __isLocal(const void* ptr) { return !__isUbuf(ptr) && !__isGlobal(ptr); }
inline size_t __cvta_generic_to_global(const void* ptr) { return reinterpret_cast<size_t>(ptr); }
inline size_t __cvta_generic_to_local(const void* ptr) { return reinterpret_cast<size_t>(ptr); }
inline size_t __cvta_generic_to_ubuf(const void* ptr) {
  return reinterpret_cast<size_t>(ptr) - reinterpret_cast<size_t>(cubecore_simt_pointer(0));
}
inline void* __cvta_global_to_generic(size_t rawbits) { return reinterpret_cast<void*>(rawbits); }
inline void* __cvta_local_to_generic(size_t rawbits) { return reinterpret_cast<void*>(rawbits); }
inline void* __cvta_ubuf_to_generic(size_t rawbits) { return cubecore_simt_pointer(rawbits); }
