// Adds two vectors of floats in the registers of Ascend 950's vector unit.
//
// Every block (an AIV) takes `share` elements. The vector function is called directly; asc_vf_call
// and __VEC_SCOPE__ begin one, too. The mask of the last trip lets the elements through that are
// left, so that `share` may be any number. Run it with
//   cubecore run reg_add.cpp --chip Ascend950PR_9589 --blocks 2 --arg x=x.npy --arg y=y.npy
//     --arg share=1000 --out-arg z=float32:2000:z.npy

#include "kernel_operator.h"

constexpr uint32_t MOST = 16384;  // elements of a block in UB
constexpr uint16_t LANES = AscendC::GetVecLen() / sizeof(float);

__simd_vf__ inline void add_rows(__ubuf__ float* x, __ubuf__ float* y, __ubuf__ float* z,
                                 uint32_t count, uint16_t trips) {
  using namespace AscendC::Reg;
  RegTensor<float> a, b, sum;
  uint32_t left = count;
  for (uint16_t trip = 0; trip < trips; ++trip) {
    MaskReg mask = UpdateMask<float>(left);  // left is less by a register's lanes afterwards
    LoadAlign(a, x + trip * LANES);
    LoadAlign(b, y + trip * LANES);
    Add(sum, a, b, mask);
    StoreAlign(z + trip * LANES, sum, mask);
  }
}

extern "C" __global__ __aicore__ void reg_add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
  using namespace AscendC;
  LocalMemAllocator<Hardware::UB> memory;
  LocalTensor<float> a = memory.Alloc<float, MOST>();
  LocalTensor<float> b = memory.Alloc<float, MOST>();
  LocalTensor<float> sum = memory.Alloc<float, MOST>();
  GlobalTensor<float> from_x, from_y, to;
  const uint32_t begin = GetBlockIdx() * share, bytes = share * sizeof(float);
  from_x.SetGlobalBuffer((__gm__ float*)x + begin, share);
  from_y.SetGlobalBuffer((__gm__ float*)y + begin, share);
  to.SetGlobalBuffer((__gm__ float*)z + begin, share);

  // What lies behind the last element is 0, up to a whole register: loads take no mask.
  const uint16_t trips = (share + LANES - 1) / LANES;
  const DataCopyPadExtParams<float> zeros{false, 0, 0, 0};
  Duplicate(a[(trips - 1) * LANES], 0.0f, LANES);
  Duplicate(b[(trips - 1) * LANES], 0.0f, LANES);
  SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
  DataCopyPad(a, from_x, {1, bytes, 0, 0, 0}, zeros);
  DataCopyPad(b, from_y, {1, bytes, 0, 0, 0}, zeros);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  add_rows((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr(),
           (__ubuf__ float*)sum.GetPhyAddr(), share, trips);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopyPad(to, sum, {1, bytes, 0, 0, 0});
}
