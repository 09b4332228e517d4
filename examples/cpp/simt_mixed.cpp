// Gathers floats with threads of Ascend 950 (SIMT) and adds a number to them in registers (SIMD).
//
// What memory holds in no order is a thread's work, what lies in a row the vector unit's: threads
// gather from global memory into UB, a vector function adds there, and a copy brings the sums out.
// Both functions run on pipe V, one behind the other; the copy waits for them by a flag. Run it with
//   cubecore run simt_mixed.cpp --chip Ascend950PR_9589 --blocks 8 --arg table=table.npy
//     --arg index=index.npy --arg share=1024 --out-arg out=float32:8192:out.npy

#include "kernel_operator.h"
#include "c_api/asc_simd.h"
#include "simt_api/asc_simt.h"

constexpr uint32_t MOST = 8192;  // elements of a block in UB
constexpr uint32_t LANES = 64;

__simt_vf__ __launch_bounds__(1024) inline void gathered(__gm__ float* table, __gm__ uint32_t* index,
                                                         __ubuf__ float* to, uint32_t count) {
  for (uint32_t at = threadIdx.x; at < count; at += blockDim.x)
    to[at] = table[index[blockIdx.x * count + at]];
}

__simd_vf__ inline void plus_one(__ubuf__ float* x, uint32_t count, uint16_t trips) {
  vector_float value;
  vector_bool mask;
  for (uint16_t trip = 0; trip < trips; ++trip) {
    mask = asc_update_mask_b32(count);
    asc_loadalign(value, x + trip * LANES);
    asc_add_scalar(value, value, 1.0f, mask);
    asc_storealign(x + trip * LANES, value, mask);
  }
}

__global__ __vector__ void simt_mixed(__gm__ float* table, __gm__ uint32_t* index,
                                      __gm__ float* out, uint32_t share) {
  __ubuf__ float part[MOST];
  asc_vf_call<gathered>(dim3(1024), table, index, part, share);
  asc_vf_call<plus_one>(part, share, static_cast<uint16_t>((share + LANES - 1) / LANES));
  asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
  asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
  asc_copy_ub2gm_align(out + share * block_idx, part, 1, share * sizeof(float),
                       asc_store_l2_cache_mode::NORMAL_FIRST_VICTIM, 0, 0);
}
