// Counts numbers by their value with threads of Ascend 950 (SIMT), and atomics.
//
// A block counts its part in UB, which its threads share, and adds its counts to those in global
// memory: one atomic for each bin of a block instead of one for each number. Barriers stand between
// clearing, counting and adding. Run it with
//   cubecore run simt_histogram.cpp --chip Ascend950PR_9589 --grid 8 --block 256 --arg x=x.npy
//     --arg bins=bins.npy --arg count=100000

#include "simt_api/asc_simt.h"

constexpr uint32_t BINS = 256;

__global__ __launch_bounds__(256) void simt_histogram(uint8_t* x, uint32_t* bins, uint32_t count) {
  __ubuf__ uint32_t part[BINS];
  for (uint32_t bin = threadIdx.x; bin < BINS; bin += blockDim.x) part[bin] = 0;
  asc_syncthreads();
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
    asc_atomic_add(&part[x[at]], 1u);
  asc_syncthreads();
  for (uint32_t bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    if (part[bin] != 0) asc_atomic_add(&bins[bin], part[bin]);
}
