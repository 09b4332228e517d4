// Sums over K in chunks of 32 columns; better: of 256.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t CHUNK = 256;
#else
constexpr uint32_t CHUNK = 32;
#endif
constexpr uint32_t M = 128, K = 2048;

extern "C" __global__ __cube__ void powers(GM_ADDR x, GM_ADDR z, uint32_t share) {
  GlobalTensor<half> from;
  GlobalTensor<float> to;
  from.SetGlobalBuffer((__gm__ half*)x + M * K * GetBlockIdx(), M * K);
  to.SetGlobalBuffer((__gm__ float*)z + M * M * GetBlockIdx(), M * M);
  LocalTensor<half> l1[2] = {LocalTensor<half>(TPosition::A1, 0, M * CHUNK),
                             LocalTensor<half>(TPosition::A1, 2 * M * CHUNK, M * CHUNK)};
  LocalTensor<half> a(TPosition::A2, 0, M * CHUNK), b(TPosition::B2, 0, M * CHUNK);
  LocalTensor<float> sum(TPosition::CO1, 0, M * M);
  for (uint32_t s = 0; s < 2; ++s) SetFlag<HardEvent::MTE1_MTE2>(s);
  SetFlag<HardEvent::M_MTE1>(0);
  for (uint32_t k = 0; k < K; k += CHUNK) {
    uint32_t s = k / CHUNK % 2;
    WaitFlag<HardEvent::MTE1_MTE2>(s);
    DataCopy(l1[s], from[k], Nd2NzParams(1, M, CHUNK, 0, K, M, 1, 0));  // slow
    SetFlag<HardEvent::MTE2_MTE1>(s);
    WaitFlag<HardEvent::MTE2_MTE1>(s);
    WaitFlag<HardEvent::M_MTE1>(0);
    for (uint32_t row = 0; row < M / 16; ++row)
      LoadData(a[row * CHUNK * 16], l1[s],
               LoadData2DParams(row, CHUNK / 16, M / 16, 0, 0, false, 0));
    LoadData(b, l1[s], LoadData2DParams(0, M / 16 * CHUNK / 16, 1, 0, 0, false, 0));
    SetFlag<HardEvent::MTE1_MTE2>(s);
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
    MmadParams params(M, M, CHUNK);
    params.cmatrixInitVal = k == 0;
    Mmad(sum, a, b, params);
    SetFlag<HardEvent::M_MTE1>(0);
  }
  for (uint32_t s = 0; s < 2; ++s) WaitFlag<HardEvent::MTE1_MTE2>(s);
  WaitFlag<HardEvent::M_MTE1>(0);
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
  Fixpipe(to, sum, FixpipeParamsV220(M, M, M, M, false));
}
