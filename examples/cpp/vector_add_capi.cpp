// z = x + y in float32 by the C API, synchronised in three ways.
//
// Every block (an AIV) adds `share` elements in tiles of TILE; the last may be shorter.
// `add_joined` lets every step wait for all pipes, as the _sync forms do. `add_flagged` raises a
// flag where bytes change hands. `add_doubled` has two buffers in turn. Shapes: x, y, z are
// [share times the blocks], share a multiple of 8. Run it with
//   cubecore run vector_add_capi.cpp --entry add_doubled --blocks 8 --arg x=x.npy --arg y=y.npy
//     --arg share=2048 --out-arg z=float32:16384:z.npy

#include "c_api/asc_simd.h"

constexpr uint32_t TILE = 4096;

__aicore__ inline uint32_t count_of(uint32_t share, uint32_t first) {
  return share - first < TILE ? share - first : TILE;
}

extern "C" __vector__ __global__ __aicore__ void add_joined(__gm__ float* x, __gm__ float* y,
                                                            __gm__ float* z, uint32_t share) {
  __ubuf__ float a[TILE];
  __ubuf__ float b[TILE];
  uint64_t begin = static_cast<uint64_t>(share) * asc_get_block_idx();
  for (uint32_t first = 0; first < share; first += TILE) {
    uint32_t count = count_of(share, first);
    asc_copy_gm2ub(a, x + begin + first, 4 * count);
    asc_copy_gm2ub_sync(b, y + begin + first, 4 * count);
    asc_add_sync(a, a, b, count);
    asc_copy_ub2gm_sync(z + begin + first, a, 4 * count);
  }
}

extern "C" __vector__ __global__ __aicore__ void add_flagged(__gm__ float* x, __gm__ float* y,
                                                             __gm__ float* z, uint32_t share) {
  __ubuf__ float a[TILE];
  __ubuf__ float b[TILE];
  __ubuf__ float c[TILE];
  uint64_t begin = static_cast<uint64_t>(share) * asc_get_block_idx();
  asc_sync_notify(PIPE_V, PIPE_MTE2, EVENT_ID0);  // a and b are free
  asc_sync_notify(PIPE_MTE3, PIPE_V, EVENT_ID0);  // c is free
  for (uint32_t first = 0; first < share; first += TILE) {
    uint32_t count = count_of(share, first);
    asc_sync_wait(PIPE_V, PIPE_MTE2, EVENT_ID0);
    asc_copy_gm2ub(a, x + begin + first, 4 * count);
    asc_copy_gm2ub(b, y + begin + first, 4 * count);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE3, PIPE_V, EVENT_ID0);
    asc_add(c, a, b, count);
    asc_sync_notify(PIPE_V, PIPE_MTE2, EVENT_ID0);
    asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_copy_ub2gm(z + begin + first, c, 4 * count);
    asc_sync_notify(PIPE_MTE3, PIPE_V, EVENT_ID0);
  }
  asc_sync_wait(PIPE_V, PIPE_MTE2, EVENT_ID0);
  asc_sync_wait(PIPE_MTE3, PIPE_V, EVENT_ID0);
}

extern "C" __vector__ __global__ __aicore__ void add_doubled(__gm__ float* x, __gm__ float* y,
                                                             __gm__ float* z, uint32_t share) {
  __ubuf__ float a[2 * TILE];
  __ubuf__ float b[2 * TILE];
  __ubuf__ float c[2 * TILE];
  uint64_t begin = static_cast<uint64_t>(share) * asc_get_block_idx();
  for (int slot = 0; slot < 2; ++slot) {
    asc_sync_notify(PIPE_V, PIPE_MTE2, slot);
    asc_sync_notify(PIPE_MTE3, PIPE_V, slot);
  }
  for (uint32_t first = 0, tile = 0; first < share; first += TILE, ++tile) {
    uint32_t slot = tile % 2, at = slot * TILE, count = count_of(share, first);
    asc_sync_wait(PIPE_V, PIPE_MTE2, slot);
    asc_copy_gm2ub(a + at, x + begin + first, 4 * count);
    asc_copy_gm2ub(b + at, y + begin + first, 4 * count);
    asc_sync_notify(PIPE_MTE2, PIPE_V, slot);
    asc_sync_wait(PIPE_MTE2, PIPE_V, slot);
    asc_sync_wait(PIPE_MTE3, PIPE_V, slot);
    asc_add(c + at, a + at, b + at, count);
    asc_sync_notify(PIPE_V, PIPE_MTE2, slot);
    asc_sync_notify(PIPE_V, PIPE_MTE3, slot);
    asc_sync_wait(PIPE_V, PIPE_MTE3, slot);
    asc_copy_ub2gm(z + begin + first, c + at, 4 * count);
    asc_sync_notify(PIPE_MTE3, PIPE_V, slot);
  }
  for (int slot = 0; slot < 2; ++slot) {
    asc_sync_wait(PIPE_V, PIPE_MTE2, slot);
    asc_sync_wait(PIPE_MTE3, PIPE_V, slot);
  }
}
