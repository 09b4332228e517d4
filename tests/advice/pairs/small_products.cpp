// Powers of matrices in L1, summed up in products of 16 along K; better: of 128.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t STEP = 128;
#else
constexpr uint32_t STEP = 16;
#endif
constexpr uint32_t EDGE = 16, M = 128, K = 256, ROUNDS = 16;

extern "C" __global__ __cube__ void powers(GM_ADDR x, GM_ADDR z, uint32_t share) {
  GlobalTensor<half> from;
  GlobalTensor<float> to;
  from.SetGlobalBuffer((__gm__ half*)x, M * K);
  to.SetGlobalBuffer((__gm__ float*)z + M * M * GetBlockIdx(), M * M);
  LocalTensor<half> l1(TPosition::A1, 0, M * K);
  LocalTensor<half> a[2] = {LocalTensor<half>(TPosition::A2, 0, M * STEP),
                            LocalTensor<half>(TPosition::A2, M * STEP * 2, M * STEP)};
  LocalTensor<half> b[2] = {LocalTensor<half>(TPosition::B2, 0, M * STEP),
                            LocalTensor<half>(TPosition::B2, M * STEP * 2, M * STEP)};
  LocalTensor<float> sum(TPosition::CO1, 0, M * M);
  DataCopy(l1, from, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
  SetFlag<HardEvent::MTE2_MTE1>(0);
  WaitFlag<HardEvent::MTE2_MTE1>(0);
  for (uint32_t slot = 0; slot < 2; ++slot) SetFlag<HardEvent::M_MTE1>(slot);
  for (uint32_t step = 0; step < ROUNDS * K; step += STEP) {
    uint32_t slot = step / STEP % 2;
    uint16_t first = step % K / EDGE * (M / EDGE);
    WaitFlag<HardEvent::M_MTE1>(slot);
    // fractals of A row by row; those of B are A's columns as they lie
    for (uint32_t row = 0; row < M / EDGE; ++row)
      LoadData(a[slot][row * STEP * EDGE], l1,
               LoadData2DParams(first + row, STEP / EDGE, M / EDGE, 0, 0, false, 0));
    LoadData(b[slot], l1, LoadData2DParams(first, M / EDGE * STEP / EDGE, 1, 0, 0, false, 0));
    SetFlag<HardEvent::MTE1_M>(slot);
    WaitFlag<HardEvent::MTE1_M>(slot);
    MmadParams params(M, M, STEP);
    params.cmatrixInitVal = step == 0;
    Mmad(sum, a[slot], b[slot], params);  // slow
    SetFlag<HardEvent::M_MTE1>(slot);
  }
  for (uint32_t slot = 0; slot < 2; ++slot) WaitFlag<HardEvent::M_MTE1>(slot);
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
  Fixpipe(to, sum, FixpipeParamsV220(M, M, M, M, false));
}
