// An AIC waits for its AIVs' half of each turn; better: it begins the next turn before it waits.
#include "../../../examples/cpp/cube_tiles.h"
using namespace AscendC;
constexpr uint16_t READY = 0, BACK = 1;
constexpr uint32_t HALF = M / 2 * N, TURNS = 8, K = 256;

// Rows of x: M of all cores, and M of each turn of each AI Core, which AIVs write.
__aicore__ inline uint32_t RowOf(uint32_t ai_core, uint32_t turn) {
  return (1 + ai_core * TURNS + turn) * M;
}

__aicore__ inline void First(Products& products, GlobalTensor<float>& made, uint32_t turn) {
  GlobalTensor<float> no_bias;
  products.Sum<false>(0, 0, 0, 0, K, no_bias);
  Fixpipe(made[(TURNS * GetBlockIdx() + turn) * M * N], products.sums[0],
          FixpipeParamsV220(N, M, M, N, false));
  CrossCoreSetFlag<2, PIPE_FIX>(READY);
  SetFlag<HardEvent::FIX_M>(0);
}

__aicore__ inline void Second(Products& products, GlobalTensor<float>& to, uint32_t turn) {
  GlobalTensor<float> no_bias;
  CrossCoreWaitFlag(BACK);  // slow
  products.Sum<false>(1, RowOf(GetBlockIdx(), turn), 0, 0, K, no_bias);
  Fixpipe(to[(TURNS * GetBlockIdx() + turn) * M * N], products.sums[1],
          FixpipeParamsV220(N, M, M, N, false));
  SetFlag<HardEvent::FIX_M>(1);
}

__aicore__ inline void Multiply(GM_ADDR x, GM_ADDR w, GM_ADDR z) {
  GlobalTensor<float> made, to;
  made.SetGlobalBuffer((__gm__ float*)w);
  to.SetGlobalBuffer((__gm__ float*)z);
  Products products;
  products.Init(x, x, N, K);
#ifdef BETTER
  First(products, made, 0);
  for (uint32_t turn = 0; turn < TURNS; ++turn) {
    if (turn + 1 < TURNS) First(products, made, turn + 1);
    Second(products, to, turn);
  }
#else
  for (uint32_t turn = 0; turn < TURNS; ++turn) {
    First(products, made, turn);
    Second(products, to, turn);
  }
#endif
  products.Finish();
}

__aicore__ inline void Activate(GM_ADDR x, GM_ADDR w) {
  GlobalTensor<float> sums;
  GlobalTensor<half> rows;
  sums.SetGlobalBuffer((__gm__ float*)w);
  rows.SetGlobalBuffer((__gm__ half*)x);
  uint32_t ai_core = GetBlockIdx() / GetSubBlockNum(), half_of = GetSubBlockIdx();
  LocalTensor<float> given(TPosition::VECIN, 0, HALF);
  LocalTensor<half> made(TPosition::VECOUT, 4 * HALF, HALF);
  DataCopyParams strided(M / 2, N / 16, 0, (K - N) / 16);
  SetFlag<HardEvent::V_MTE2>(0);
  SetFlag<HardEvent::MTE3_V>(0);
  for (uint32_t turn = 0; turn < TURNS; ++turn) {
    WaitFlag<HardEvent::V_MTE2>(0);
    CrossCoreWaitFlag<2, PIPE_MTE2>(READY);
    DataCopy(given, sums[(TURNS * ai_core + turn) * M * N + half_of * HALF], HALF);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE3_V>(0);
    Maxs(given, given, 0.0f, HALF);
    PipeBarrier<PIPE_V>();
    Muls(given, given, 0.125f, HALF);
    PipeBarrier<PIPE_V>();
    Cast(made, given, RoundMode::CAST_RINT, HALF);
    SetFlag<HardEvent::V_MTE2>(0);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(rows[(RowOf(ai_core, turn) + half_of * M / 2) * K], made, strided);
    CrossCoreSetFlag<2, PIPE_MTE3>(BACK);
    SetFlag<HardEvent::MTE3_V>(0);
  }
  WaitFlag<HardEvent::V_MTE2>(0);
  WaitFlag<HardEvent::MTE3_V>(0);
}

extern "C" __global__ __mix__(1, 2) void take_turns(GM_ADDR x, GM_ADDR w, GM_ADDR z) {
  if ASCEND_IS_AIC {
    Multiply(x, w, z);
  }
  if ASCEND_IS_AIV {
    Activate(x, w);
  }
}
