// Adds up rows in one accumulator; better: in four.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LANES = 64, ROWS = 80, COLUMNS = 4;
constexpr uint32_t IN = ROWS * COLUMNS * LANES, OUT = COLUMNS * LANES, TIMES = 40;

__simd_vf__ inline void add_up(__ubuf__ float* x, __ubuf__ float* z) {
  Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
  Reg::RegTensor<float> sum, more;
#ifdef BETTER
  Reg::RegTensor<float> sum1, sum2, sum3, more1, more2, more3;
#endif
  for (uint16_t c = 0; c < COLUMNS; ++c) {
    Reg::Duplicate(sum, 0.0f, all);
#ifdef BETTER
    Reg::Duplicate(sum1, 0.0f, all);
    Reg::Duplicate(sum2, 0.0f, all);
    Reg::Duplicate(sum3, 0.0f, all);
    for (uint16_t r = 0; r < ROWS / 4; ++r) {
      Reg::LoadAlign(more, x + (4 * r * COLUMNS + c) * LANES);
      Reg::LoadAlign(more1, x + ((4 * r + 1) * COLUMNS + c) * LANES);
      Reg::LoadAlign(more2, x + ((4 * r + 2) * COLUMNS + c) * LANES);
      Reg::LoadAlign(more3, x + ((4 * r + 3) * COLUMNS + c) * LANES);
      Reg::Add(sum, sum, more, all);
      Reg::Add(sum1, sum1, more1, all);
      Reg::Add(sum2, sum2, more2, all);
      Reg::Add(sum3, sum3, more3, all);
    }
    Reg::Add(sum, sum, sum1, all);
    Reg::Add(sum2, sum2, sum3, all);
    Reg::Add(sum, sum, sum2, all);
#else
    for (uint16_t r = 0; r < ROWS; ++r) {
      Reg::LoadAlign(more, x + (r * COLUMNS + c) * LANES);
      Reg::Add(sum, sum, more, all);  // slow
    }
#endif
    Reg::StoreAlign(z + c * LANES, sum, all);
  }
}

extern "C" __global__ __aicore__ void column_sums(GM_ADDR x, GM_ADDR z) {
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
    asc_vf_call<add_up>((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr());
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(zs, b, OUT);
}
