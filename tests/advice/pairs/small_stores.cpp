// Stores a product in tiles of 16 x 16; better: at once.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t M = 128, K = 128;

extern "C" __global__ __cube__ void powers(GM_ADDR x, GM_ADDR z, uint32_t share) {
  GlobalTensor<half> from;
  GlobalTensor<float> to;
  from.SetGlobalBuffer((__gm__ half*)x, M * K);
  to.SetGlobalBuffer((__gm__ float*)z + M * M * GetBlockIdx(), M * M);
  LocalTensor<half> l1(TPosition::A1, 0, M * K);
  LocalTensor<half> a(TPosition::A2, 0, M * K), b(TPosition::B2, 0, M * K);
  LocalTensor<float> sum(TPosition::CO1, 0, M * M);
  DataCopy(l1, from, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
  SetFlag<HardEvent::MTE2_MTE1>(0);
  WaitFlag<HardEvent::MTE2_MTE1>(0);
  for (uint32_t row = 0; row < M / 16; ++row)
    LoadData(a[row * K * 16], l1, LoadData2DParams(row, K / 16, M / 16, 0, 0, false, 0));
  LoadData(b, l1, LoadData2DParams(0, M / 16 * K / 16, 1, 0, 0, false, 0));
  SetFlag<HardEvent::MTE1_M>(0);
  WaitFlag<HardEvent::MTE1_M>(0);
  MmadParams params(M, M, K);
  params.cmatrixInitVal = true;
  Mmad(sum, a, b, params);
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
#ifdef BETTER
  Fixpipe(to, sum, FixpipeParamsV220(M, M, M, M, false));
#else
  for (uint32_t r = 0; r < M; r += 16)
    for (uint32_t n = 0; n < M; n += 16)
      Fixpipe(to[r * M + n], sum[n * M + r * 16],  // slow
              FixpipeParamsV220(16, 16, M, M, false));
#endif
}
