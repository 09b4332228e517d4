// Programs that call kernels as the vendor's CPU twin does: a launch is checked as any other.
// Pages: GmAlloc, GmFree, ICPU_RUN_KF, ICPU_SET_TILING_KEY, SetKernelMode.
#pragma once

#include <cstddef>

#include "cubecore/host/program.h"
#include "kernel_operator.h"

enum class KernelMode { MIX_MODE = 0, AIC_MODE, AIV_MODE };

namespace AscendC {

// The host may write it at any time, so that all of it counts as initialised.
inline void* GmAlloc(size_t size) {
  uint64_t found = cubecore_host(cubecore::ALLOCATE, size, 0, nullptr, nullptr, nullptr);
  cubecore_host(cubecore::WRITTEN, found, size, nullptr, nullptr, nullptr);
  return reinterpret_cast<void*>(found);
}
inline void GmFree(void* pointer) {
  cubecore_host(cubecore::FREE, reinterpret_cast<uint64_t>(pointer), 0, nullptr, nullptr, nullptr);
}
inline void SetKernelMode(KernelMode mode) {
  cubecore_host(cubecore::KERNEL_MODE, static_cast<uint64_t>(mode), 0, nullptr, nullptr, nullptr);
}

}  // namespace AscendC

#define ICPU_SET_TILING_KEY(tilingKey) \
  cubecore_host(cubecore::KEY_OF_TILING, (uint64_t)(tilingKey), 0, nullptr, nullptr, nullptr)
#define ICPU_RUN_KF(func, numBlocks, ...) \
  CUBECORE_LAUNCH((func), (static_cast<int64_t>(numBlocks)), (__VA_ARGS__))
