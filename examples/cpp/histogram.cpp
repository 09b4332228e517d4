// How often each of BINS numbers is in an int32 vector; others are left out.
//
// Every block (an AIV) reads its share element by element and adds to the element's bin, a block of
// eight equal counts; the blocks add up their counts in global memory. Shapes: x is [share times
// the blocks], share a multiple of 8 and at most TILE; counts is [BINS, 8], zeros before. Run it
// with
//   cubecore run histogram.cpp --blocks 2 --arg x=x.npy --arg share=64
//     --out-arg counts=int32:16x8:counts.npy

#include "kernel_operator.h"

constexpr uint32_t TILE = 4096;
constexpr int32_t BINS = 16;

extern "C" __global__ __aicore__ void histogram(GM_ADDR x, GM_ADDR counts, uint32_t share) {
  using namespace AscendC;
  GlobalTensor<int32_t> from, to;
  from.SetGlobalBuffer((__gm__ int32_t*)x + static_cast<uint64_t>(share) * GetBlockIdx(), share);
  to.SetGlobalBuffer((__gm__ int32_t*)counts, 8 * BINS);
  LocalTensor<int32_t> given(TPosition::VECIN, 0, TILE);
  LocalTensor<int32_t> bins(TPosition::VECOUT, 4 * TILE, 8 * BINS);
  DataCopy(given, from, share);
  Duplicate(bins, 0, 8 * BINS);
  SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
  for (uint32_t at = 0; at < share; ++at) {
    int32_t bin = given.GetValue(at);
    if (bin < 0 || bin >= BINS) continue;
    PipeBarrier<PIPE_V>();
    Adds(bins[8 * bin], bins[8 * bin], 1, 8);
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  SetAtomicAdd<int32_t>();
  DataCopy(to, bins, 8 * BINS);
  SetAtomicNone();
}
