// Synchronisation of threads. Pages: asc_syncthreads, asc_threadfence, asc_threadfence_block.
#pragma once

#include "cubecore/simt/record.h"

// In the user's code, so that findings name the user's line.
#define CUBECORE_SIMT inline __attribute__((__always_inline__))

CUBECORE_SIMT void asc_syncthreads() { cubecore_simt_barrier(); }
CUBECORE_SIMT void asc_threadfence() { cubecore_simt_fence(true); }
CUBECORE_SIMT void asc_threadfence_block() { cubecore_simt_fence(false); }
// Without pages: earlier spellings of public files.
CUBECORE_SIMT void __syncthreads() { asc_syncthreads(); }
CUBECORE_SIMT void __threadfence() { asc_threadfence(); }
CUBECORE_SIMT void __threadfence_block() { asc_threadfence_block(); }
// A builtin of the vendor's compiler that public threads call: memory is one for all cores here.
CUBECORE_SIMT void __builtin_cce_dcci(const volatile void*, uint64_t, uint64_t) {}
inline void asc_nop() {}
