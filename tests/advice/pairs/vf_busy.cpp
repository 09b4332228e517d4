// Loads a row again for each other one; better: keeps its registers.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LANES = 64, ROWS = 40, COLUMNS = 4;
constexpr uint32_t IN = (ROWS + 1) * COLUMNS * LANES, OUT = ROWS * COLUMNS * LANES, TIMES = 40;

__simd_vf__ inline void add_row(__ubuf__ float* x, __ubuf__ float* z) {
  Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
  Reg::RegTensor<float> row, other;
#ifdef BETTER
  for (uint16_t c = 0; c < COLUMNS; ++c) {
    Reg::LoadAlign(row, x + c * LANES);
    for (uint16_t r = 0; r < ROWS; ++r) {
      Reg::LoadAlign(other, x + ((r + 1) * COLUMNS + c) * LANES);
      Reg::Add(other, other, row, all);
      Reg::StoreAlign(z + (r * COLUMNS + c) * LANES, other, all);
    }
  }
#else
  for (uint16_t r = 0; r < ROWS; ++r) {
    for (uint16_t c = 0; c < COLUMNS; ++c) {
      Reg::LoadAlign(row, x + c * LANES);  // slow
      Reg::LoadAlign(other, x + ((r + 1) * COLUMNS + c) * LANES);  // slow
      Reg::Add(other, other, row, all);
      Reg::StoreAlign(z + (r * COLUMNS + c) * LANES, other, all);
    }
  }
#endif
}

extern "C" __global__ __aicore__ void add_rows(GM_ADDR x, GM_ADDR z) {
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
    asc_vf_call<add_row>((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr());
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(zs, b, OUT);
}
