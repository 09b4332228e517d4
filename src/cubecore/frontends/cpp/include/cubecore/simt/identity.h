// A thread's place. Pages: built-in variables; lane ids of warp functions.
#pragma once

#include "cubecore/simt/record.h"

inline constexpr const dim3& threadIdx = cubecore_threadIdx;
inline constexpr const dim3& blockIdx = cubecore_blockIdx;
inline constexpr const dim3& blockDim = cubecore_blockDim;
inline constexpr const dim3& gridDim = cubecore_gridDim;
inline constexpr int32_t warpSize = 32;

inline int32_t laneid() { return static_cast<int32_t>(cubecore_thread_number % 32); }
inline uint32_t lanemask_eq() { return 1u << laneid(); }
inline uint32_t lanemask_lt() { return lanemask_eq() - 1; }
inline uint32_t lanemask_le() { return lanemask_eq() | lanemask_lt(); }
inline uint32_t lanemask_gt() { return ~lanemask_le(); }
inline uint32_t lanemask_ge() { return ~lanemask_lt(); }
