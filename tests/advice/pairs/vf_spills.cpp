// Keeps a column of 40 rows in registers; better: of 20.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t AT_ONCE = 20;
#else
constexpr uint32_t AT_ONCE = 40;
#endif
constexpr uint32_t LANES = 64, ROWS = 80, IN = ROWS * LANES, OUT = ROWS * LANES, TIMES = 40;

// Each row less the last one of its group.
__simd_vf__ inline void subtract_last(__ubuf__ float* x, __ubuf__ float* z) {
  Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
  for (uint16_t g = 0; g < ROWS / AT_ONCE; ++g) {
    Reg::RegTensor<float> rows[AT_ONCE];
    for (uint16_t r = 0; r < AT_ONCE; ++r) {
      Reg::LoadAlign(rows[r], x + (g * AT_ONCE + r) * LANES);  // slow
    }
    for (uint16_t r = 0; r < AT_ONCE; ++r) {
      Reg::Sub(rows[r], rows[r], rows[AT_ONCE - 1], all);
      Reg::StoreAlign(z + (g * AT_ONCE + r) * LANES, rows[r], all);
    }
  }
}

extern "C" __global__ __aicore__ void subtracted(GM_ADDR x, GM_ADDR z) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to;
  pipe.InitBuffer(from, IN * sizeof(float));
  pipe.InitBuffer(to, OUT * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x, IN);
  zs.SetGlobalBuffer((__gm__ float*)z + OUT * GetBlockIdx(), OUT);
  LocalTensor<float> a = from.Get<float>(), b = to.Get<float>();
  DataCopy(a, xs, IN);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  for (uint32_t i = 0; i < TIMES; ++i) {
    asc_vf_call<subtract_last>((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr());
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(zs, b, OUT);
}
