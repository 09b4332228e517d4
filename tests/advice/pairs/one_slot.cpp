// Hands tiles from AICs to AIVs through one place; better: through two that take turns.
#include "../../../examples/cpp/cube_tiles.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t PLACES = 2;
#else
constexpr uint32_t PLACES = 1;
#endif
constexpr uint16_t READY = 0, FREE = 1;
constexpr uint32_t TILE = M / 2 * N, TILES = 8, K = 512;

__aicore__ inline void Multiply(GM_ADDR x, GM_ADDR w) {
  GlobalTensor<float> no_bias, made;
  made.SetGlobalBuffer((__gm__ float*)w);
  Products products;
  products.Init(x, x, N, K);
  for (uint32_t turn = 0; turn < TILES; ++turn) {
    uint32_t out = turn % SLOTS;
    products.Sum<false>(out, 0, 0, 0, K, no_bias);
    CrossCoreWaitFlag<2, PIPE_FIX>(FREE);  // slow
    Fixpipe(made[(2 * GetBlockIdx() + turn % PLACES) * M * N], products.sums[out],
            FixpipeParamsV220(N, M, M, N, false));
    CrossCoreSetFlag<2, PIPE_FIX>(READY);
    SetFlag<HardEvent::FIX_M>(out);
  }
  products.Finish();
  for (uint32_t place = 0; place < PLACES; ++place) CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
}

__aicore__ inline void Activate(GM_ADDR z, GM_ADDR w) {
  GlobalTensor<float> sums, to;
  sums.SetGlobalBuffer((__gm__ float*)w);
  uint32_t ai_core = GetBlockIdx() / GetSubBlockNum(), half_of = GetSubBlockIdx();
  to.SetGlobalBuffer((__gm__ float*)z + ai_core * M * N + half_of * TILE);
  LocalTensor<float> given[2] = {LocalTensor<float>(TPosition::VECIN, 0, TILE),
                                 LocalTensor<float>(TPosition::VECIN, 4 * TILE, TILE)};
  LocalTensor<float> added(TPosition::VECOUT, 8 * TILE, TILE / 2);
  for (uint32_t slot = 0; slot < 2; ++slot) SetFlag<HardEvent::V_MTE2>(slot);
  for (uint32_t place = 0; place < PLACES; ++place) CrossCoreSetFlag<2, PIPE_MTE2>(FREE);
  Duplicate(added, 0.0f, TILE / 2);
  for (uint32_t turn = 0; turn < TILES; ++turn) {
    uint32_t slot = turn % 2;
    WaitFlag<HardEvent::V_MTE2>(slot);
    CrossCoreWaitFlag<2, PIPE_MTE2>(READY);
    DataCopy(given[slot], sums[(2 * ai_core + turn % PLACES) * M * N + half_of * TILE], TILE);
    CrossCoreSetFlag<2, PIPE_MTE2>(FREE);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    PipeBarrier<PIPE_V>();
    Add(added, added, given[slot], TILE / 2);
    SetFlag<HardEvent::V_MTE2>(slot);
  }
  for (uint32_t slot = 0; slot < 2; ++slot) WaitFlag<HardEvent::V_MTE2>(slot);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, added, TILE / 2);
}

extern "C" __global__ __mix__(1, 2) void hand_over(GM_ADDR x, GM_ADDR w, GM_ADDR z,
                                                   uint32_t share) {
  if ASCEND_IS_AIC {
    Multiply(x, w);
  }
  if ASCEND_IS_AIV {
    Activate(z, w);
  }
}
