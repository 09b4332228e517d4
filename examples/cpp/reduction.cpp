// The sum of a float vector: every block sums its share, all wait for each other, and the first
// one adds what they have.
//
// Shapes: x is [share times the blocks], share a multiple of TILE; partial is [8 times the blocks],
// total is [8], the sum in its first element. Run it with
//   cubecore run reduction.cpp --blocks 8 --arg x=x.npy --arg share=8192
//     --out-arg partial=float32:64 --out-arg total=float32:8:total.npy

#include "kernel_operator.h"

constexpr uint32_t TILE = 4096;
constexpr uint32_t LANES = 64;
constexpr uint32_t SLOTS = 2;
constexpr uint32_t MOST_BLOCKS = 64;

extern "C" __global__ __aicore__ void add_up_together(GM_ADDR x, GM_ADDR partial, GM_ADDR total,
                                                      uint32_t share) {
  using namespace AscendC;
  GlobalTensor<float> from, parts, result;
  from.SetGlobalBuffer((__gm__ float*)x + static_cast<uint64_t>(share) * GetBlockIdx(), share);
  parts.SetGlobalBuffer((__gm__ float*)partial, 8 * GetBlockNum());
  result.SetGlobalBuffer((__gm__ float*)total, 8);
  LocalTensor<float> tiles[SLOTS] = {{TPosition::VECIN, 0, TILE},
                                     {TPosition::VECIN, 4 * TILE, TILE}};
  LocalTensor<float> sums(TPosition::VECCALC, 8 * TILE, TILE);
  LocalTensor<float> lanes(TPosition::VECCALC, 12 * TILE, LANES);
  LocalTensor<float> one(TPosition::VECOUT, 12 * TILE + 4 * LANES, 8);
  LocalTensor<float> all(TPosition::VECIN, 12 * TILE + 4 * LANES + 32, 8 * MOST_BLOCKS);
  Duplicate(sums, 0.0f, TILE);
  Duplicate(one, 0.0f, 8);
  for (uint32_t slot = 0; slot < SLOTS; ++slot) SetFlag<HardEvent::V_MTE2>(slot);
  for (uint32_t tile = 0; tile < share / TILE; ++tile) {
    uint32_t slot = tile % SLOTS;
    WaitFlag<HardEvent::V_MTE2>(slot);
    DataCopy(tiles[slot], from[tile * TILE], TILE);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    PipeBarrier<PIPE_V>();
    Add(sums, sums, tiles[slot], TILE);
    SetFlag<HardEvent::V_MTE2>(slot);
  }
  for (uint32_t slot = 0; slot < SLOTS; ++slot) WaitFlag<HardEvent::V_MTE2>(slot);
  PipeBarrier<PIPE_V>();
  WholeReduceSum<float>(lanes, sums, LANES, TILE / LANES, 1, 1, 8);
  PipeBarrier<PIPE_V>();
  WholeReduceSum<float>(one, lanes, LANES, 1, 1, 1, 8);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(parts[8 * GetBlockIdx()], one, 8);
  SyncAll();
  if (GetBlockIdx() != 0) return;
  DataCopy(all, parts, 8 * GetBlockNum());
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  for (int64_t block = 1; block < GetBlockNum(); ++block) {
    PipeBarrier<PIPE_V>();
    Add(all, all, all[8 * block], 8);
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(result, all, 8);
}
