// Sums up each row of a matrix from its start on, with threads of Ascend 950 (SIMT).
//
// A block has a row of at most 1,024 floats. Lanes of a warp hand sums up by asc_shfl_up, without
// memory; the last lane of each warp leaves its sum in UB, the first warp sums those up, and each
// thread adds what the warps before its own have. Run it with
//   cubecore run simt_scan.cpp --chip Ascend950PR_9589 --grid 16 --block 1024 --arg x=x.npy
//     --arg width=1000 --out-arg out=float32:16000:out.npy

#include "simt_api/asc_simt.h"

__aicore__ inline float summed_up(float value) {
  for (int32_t by = 1; by < warpSize; by *= 2) {
    const float before = asc_shfl_up(value, by);
    if (laneid() >= by) value += before;
  }
  return value;
}

__global__ __launch_bounds__(1024) void simt_scan(float* x, float* out, uint32_t width) {
  __ubuf__ float warps[32];
  const uint32_t warp = threadIdx.x / warpSize, at = blockIdx.x * width + threadIdx.x;
  const bool inside = threadIdx.x < width;
  float sum = summed_up(inside ? x[at] : 0.0f);
  if (laneid() == warpSize - 1) warps[warp] = sum;
  asc_syncthreads();
  if (warp == 0) warps[laneid()] = summed_up(warps[laneid()]);
  asc_syncthreads();
  if (warp != 0) sum += warps[warp - 1];
  if (inside) out[at] = sum;
}
