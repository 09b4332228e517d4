// Y = leaky_relu(A B + bias), the product on the AIC and the activation on its two AIVs.
//
// AI Cores take tiles of M x N in turn. The AIC sums a tile, starting from the bias, and writes it
// in float to a workspace, which is two tiles deep for each AI Core. Its AIVs take the upper and
// the lower half of the rows, compute the activation, and write Y in half. Two flags between the
// cores count tiles: READY when the AIC has written one, FREE when both AIVs have read one.
//
// A is [m, k], B is [k, n], Y is [m, n], all half; bias is [n] in float; the workspace holds
// 2 * M * N floats for each AI Core. m, n and k are multiples of M, N and CHUNK. Run it with
//   cubecore run matmul_leaky_relu.cpp --blocks 2 --arg a=a.npy --arg b=b.npy --arg bias=bias.npy
//     --arg m=256 --arg n=512 --arg k=512 --out-arg workspace=float32:65536:w.npy
//     --out-arg y=float16:256x512:y.npy

#include "cube_tiles.h"

constexpr uint16_t READY = 0, FREE = 1;
constexpr uint32_t HALF_TILE = M / 2 * N;  // what an AIV takes
constexpr float SLOPE = 0.01f;

__aicore__ inline void Multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR workspace, uint32_t m,
                                uint32_t n, uint32_t k) {
  using namespace AscendC;
  GlobalTensor<float> biases, made;
  biases.SetGlobalBuffer((__gm__ float*)bias);
  made.SetGlobalBuffer((__gm__ float*)workspace);
  Products products;
  products.Init(a, b, n, k);
  SetFlag<HardEvent::M_MTE1>(BIAS);
  uint32_t turn = 0;
  for (uint32_t tile = GetBlockIdx(); tile < m / M * (n / N); tile += GetBlockNum(), ++turn) {
    uint32_t out = turn % SLOTS;
    products.Sum<true>(out, tile / (n / N) * M, tile % (n / N) * N, 0, k, biases);
    CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
    Fixpipe(made[(2 * GetBlockIdx() + out) * M * N], products.sums[out],
            FixpipeParamsV220(N, M, M, N, false));
    CrossCoreSetFlag<2, PIPE_FIX>(READY);
    SetFlag<HardEvent::FIX_M>(out);
  }
  products.Finish();
  for (uint32_t slot = 0; slot < SLOTS; ++slot) CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
  WaitFlag<HardEvent::M_MTE1>(BIAS);
}

__aicore__ inline void Activate(GM_ADDR y, GM_ADDR workspace, uint32_t m, uint32_t n) {
  using namespace AscendC;
  GlobalTensor<float> sums;
  GlobalTensor<half> to;
  sums.SetGlobalBuffer((__gm__ float*)workspace);
  to.SetGlobalBuffer((__gm__ half*)y);
  uint32_t half_of = GetSubBlockIdx(), ai_core = GetBlockIdx() / GetSubBlockNum();
  LocalMemAllocator<Hardware::UB> ub;
  LocalTensor<float> given[SLOTS];
  LocalTensor<half> made[SLOTS];
  for (auto& one : given) one = ub.Alloc<TPosition::VECIN, float>(HALF_TILE);
  for (auto& one : made) one = ub.Alloc<TPosition::VECOUT, half>(HALF_TILE);
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::MTE3_V>(slot);
    CrossCoreSetFlag<2, PIPE_MTE2>(FREE);
  }
  uint32_t turn = 0;
  for (uint32_t tile = ai_core; tile < m / M * (n / N); tile += GetBlockNum(), ++turn) {
    uint32_t row = tile / (n / N) * M + half_of * M / 2, column = tile % (n / N) * N;
    uint32_t slot = turn % SLOTS;
    WaitFlag<HardEvent::V_MTE2>(slot);
    CrossCoreWaitFlag<2, PIPE_MTE2>(READY);
    DataCopy(given[slot], sums[(2 * ai_core + slot) * M * N + half_of * HALF_TILE], HALF_TILE);
    CrossCoreSetFlag<2, PIPE_MTE2>(FREE);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    LeakyRelu(given[slot], given[slot], SLOPE, HALF_TILE);
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(slot);
    Cast(made[slot], given[slot], RoundMode::CAST_RINT, HALF_TILE);
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(to[row * n + column], made[slot], DataCopyParams(M / 2, N / EDGE, 0, (n - N) / EDGE));
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    WaitFlag<HardEvent::V_MTE2>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);
  }
}

extern "C" __global__ __mix__(1, 2) void matmul_leaky_relu(GM_ADDR a, GM_ADDR b, GM_ADDR bias,
                                                           GM_ADDR y, GM_ADDR workspace, uint32_t m,
                                                           uint32_t n, uint32_t k) {
  if ASCEND_IS_AIC {
    Multiply(a, b, bias, workspace, m, n, k);
  }
  if ASCEND_IS_AIV {
    Activate(y, workspace, m, n);
  }
}
