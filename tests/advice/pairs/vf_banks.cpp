// Adds to rows whose starts are off 256 B in UB; better: to rows on it.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t PITCH = 11 * 64;
#else
constexpr uint32_t PITCH = 10 * 64 + 16;
#endif
constexpr uint32_t LANES = 64, ROWS = 16, COLUMNS = 10;
constexpr uint32_t IN = ROWS * PITCH, OUT = COLUMNS * LANES, TIMES = 40;

__simd_vf__ inline void add_one(__ubuf__ float* x, __ubuf__ float* z) {
  Reg::MaskReg all = Reg::CreateMask<float, Reg::MaskPattern::ALL>();
  Reg::RegTensor<float> value;
  for (uint16_t r = 0; r < ROWS; ++r) {
    for (uint16_t c = 0; c < COLUMNS; ++c) {
      Reg::LoadAlign(value, x + r * PITCH + c * LANES);
      Reg::Adds(value, value, 1.0f, all);
      Reg::StoreAlign(z + r * PITCH + c * LANES, value, all);  // slow
    }
  }
}

extern "C" __global__ __aicore__ void add_ones(GM_ADDR x, GM_ADDR z) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> from, to;
  pipe.InitBuffer(from, IN * sizeof(float));
  pipe.InitBuffer(to, IN * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x, IN);
  zs.SetGlobalBuffer((__gm__ float*)z + OUT * GetBlockIdx(), OUT);
  LocalTensor<float> a = from.Get<float>(), b = to.Get<float>();
  DataCopy(a, xs, IN);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  for (uint32_t i = 0; i < TIMES; ++i) {
    asc_vf_call<add_one>((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr());
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(zs, b, OUT);
}
