// Gathers rows of a table by indices with threads of Ascend 950 (SIMT).
//
// A thread copies one float: blockIdx and threadIdx say which. Threads beyond the end return at
// once. Run it with
//   cubecore run simt_gather.cpp --chip Ascend950PR_9589 --grid 40 --block 256 --arg table=table.npy
//     --arg index=index.npy --arg width=64 --arg count=10000 --out-arg out=float32:10000:out.npy

#include "simt_api/asc_simt.h"

__global__ __launch_bounds__(256) void simt_gather(float* table, uint32_t* index, float* out,
                                                   uint32_t width, uint32_t count) {
  const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  out[at] = table[index[at / width] * width + at % width];
}
