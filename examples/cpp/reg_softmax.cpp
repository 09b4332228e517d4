// Softmax over rows of 256 floats in the registers of Ascend 950's vector unit.
//
// Every block (an AIV) takes `rows` rows, at most 64. A row is four registers: its maximum and its
// sum are reduced over them first, then over the lanes of one, and lane 0 goes to all lanes. No
// value leaves the registers between the load of a row and its store. Run it with
//   cubecore run reg_softmax.cpp --chip Ascend950PR_9589 --blocks 2 --arg x=x.npy --arg rows=24
//     --out-arg y=float32:48x256:y.npy

#include "kernel_operator.h"

constexpr uint32_t COLUMNS = 256;
constexpr uint32_t MOST_ROWS = 64;
constexpr uint32_t LANES = AscendC::GetVecLen() / sizeof(float);

__simd_vf__ inline void softmax_rows(__ubuf__ float* x, __ubuf__ float* y, uint16_t rows) {
  using namespace AscendC::Reg;
  static_assert(COLUMNS == 4 * LANES);
  MaskReg all = CreateMask<float>();
  RegTensor<float> a, b, c, d, left, right, whole;
  for (uint16_t row = 0; row < rows; ++row) {
    __ubuf__ float* from = x + row * COLUMNS;
    __ubuf__ float* to = y + row * COLUMNS;
    LoadAlign(a, from);
    LoadAlign(b, from + LANES);
    LoadAlign(c, from + 2 * LANES);
    LoadAlign(d, from + 3 * LANES);

    Max(left, a, b, all);
    Max(right, c, d, all);
    Max(left, left, right, all);
    Reduce<ReduceType::MAX>(whole, left, all);
    Duplicate(whole, whole, all);
    ExpSub(a, a, whole, all);
    ExpSub(b, b, whole, all);
    ExpSub(c, c, whole, all);
    ExpSub(d, d, whole, all);

    Add(left, a, b, all);
    Add(right, c, d, all);
    Add(left, left, right, all);
    Reduce<ReduceType::SUM>(whole, left, all);
    Duplicate(whole, whole, all);
    Div(a, a, whole, all);
    Div(b, b, whole, all);
    Div(c, c, whole, all);
    Div(d, d, whole, all);

    StoreAlign(to, a, all);
    StoreAlign(to + LANES, b, all);
    StoreAlign(to + 2 * LANES, c, all);
    StoreAlign(to + 3 * LANES, d, all);
  }
}

extern "C" __global__ __aicore__ void reg_softmax(GM_ADDR x, GM_ADDR y, uint32_t rows) {
  using namespace AscendC;
  LocalMemAllocator<Hardware::UB> memory;
  LocalTensor<float> given = memory.Alloc<float, MOST_ROWS * COLUMNS>();
  LocalTensor<float> made = memory.Alloc<float, MOST_ROWS * COLUMNS>();
  GlobalTensor<float> from, to;
  const uint64_t begin = static_cast<uint64_t>(GetBlockIdx()) * rows * COLUMNS;
  from.SetGlobalBuffer((__gm__ float*)x + begin, rows * COLUMNS);
  to.SetGlobalBuffer((__gm__ float*)y + begin, rows * COLUMNS);
  DataCopy(given, from, rows * COLUMNS);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  asc_vf_call<softmax_rows>((__ubuf__ float*)given.GetPhyAddr(),
                            (__ubuf__ float*)made.GetPhyAddr(), static_cast<uint16_t>(rows));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, made, rows * COLUMNS);
}
