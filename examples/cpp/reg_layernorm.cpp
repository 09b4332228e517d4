// LayerNorm over rows of 256 floats in the registers of Ascend 950's vector unit.
//
// Every block (an AIV) takes `rows` rows, at most 64. A row is four registers, gamma and beta four
// each, which stay while the rows go by. The mean is subtracted before the squares are added up, so
// that a mean far from 0 costs no digits. Run it with
//   cubecore run reg_layernorm.cpp --chip Ascend950PR_9589 --blocks 2 --arg x=x.npy
//     --arg gamma=gamma.npy --arg beta=beta.npy --arg rows=24 --out-arg y=float32:48x256:y.npy

#include "kernel_operator.h"

constexpr uint32_t COLUMNS = 256;
constexpr uint32_t MOST_ROWS = 64;
constexpr uint32_t LANES = AscendC::GetVecLen() / sizeof(float);
constexpr float EPSILON = 1e-5f;
using Lanes = AscendC::Reg::RegTensor<float>;
using Mask = AscendC::Reg::MaskReg;

// The sum of a row over its length, in all lanes of `whole`.
__simd_callee__ inline void mean_of(Lanes& whole, Lanes& a, Lanes& b, Lanes& c, Lanes& d,
                                    Mask& all) {
  using namespace AscendC::Reg;
  Lanes left, right;
  Add(left, a, b, all);
  Add(right, c, d, all);
  Add(left, left, right, all);
  Reduce<ReduceType::SUM>(whole, left, all);
  Muls(whole, whole, 1.0f / COLUMNS, all);
  Duplicate(whole, whole, all);
}

// Leaves what a part of a row has more than the mean, and its square.
__simd_callee__ inline void centre(Lanes& part, Lanes& square, Lanes& mean, Mask& all) {
  using namespace AscendC::Reg;
  Sub(part, part, mean, all);
  Mul(square, part, part, all);
}

__simd_callee__ inline void finish(__ubuf__ float* to, Lanes& part, Lanes& deviation, Lanes& gamma,
                                   Lanes& beta, Mask& all) {
  using namespace AscendC::Reg;
  Div(part, part, deviation, all);
  Mul(part, part, gamma, all);
  Add(part, part, beta, all);
  StoreAlign(to, part, all);
}

__simd_vf__ inline void normalise(__ubuf__ float* x, __ubuf__ float* gamma, __ubuf__ float* beta,
                                  __ubuf__ float* y, uint16_t rows) {
  using namespace AscendC::Reg;
  static_assert(COLUMNS == 4 * LANES);
  Mask all = CreateMask<float>();
  Lanes a, b, c, d, aa, bb, cc, dd, mean, deviation;
  Lanes gamma_a, gamma_b, gamma_c, gamma_d, beta_a, beta_b, beta_c, beta_d;
  LoadAlign(gamma_a, gamma);
  LoadAlign(beta_a, beta);
  LoadAlign(gamma_b, gamma + LANES);
  LoadAlign(beta_b, beta + LANES);
  LoadAlign(gamma_c, gamma + 2 * LANES);
  LoadAlign(beta_c, beta + 2 * LANES);
  LoadAlign(gamma_d, gamma + 3 * LANES);
  LoadAlign(beta_d, beta + 3 * LANES);
  for (uint16_t row = 0; row < rows; ++row) {
    __ubuf__ float* from = x + row * COLUMNS;
    __ubuf__ float* to = y + row * COLUMNS;
    LoadAlign(a, from);
    LoadAlign(b, from + LANES);
    LoadAlign(c, from + 2 * LANES);
    LoadAlign(d, from + 3 * LANES);
    mean_of(mean, a, b, c, d, all);
    centre(a, aa, mean, all);
    centre(b, bb, mean, all);
    centre(c, cc, mean, all);
    centre(d, dd, mean, all);
    mean_of(deviation, aa, bb, cc, dd, all);
    Adds(deviation, deviation, EPSILON, all);
    Sqrt(deviation, deviation, all);
    finish(to, a, deviation, gamma_a, beta_a, all);
    finish(to + LANES, b, deviation, gamma_b, beta_b, all);
    finish(to + 2 * LANES, c, deviation, gamma_c, beta_c, all);
    finish(to + 3 * LANES, d, deviation, gamma_d, beta_d, all);
  }
}

extern "C" __global__ __aicore__ void reg_layernorm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta,
                                                    GM_ADDR y, uint32_t rows) {
  using namespace AscendC;
  LocalMemAllocator<Hardware::UB> memory;
  LocalTensor<float> given = memory.Alloc<float, MOST_ROWS * COLUMNS>();
  LocalTensor<float> made = memory.Alloc<float, MOST_ROWS * COLUMNS>();
  LocalTensor<float> scale = memory.Alloc<float, COLUMNS>();
  LocalTensor<float> shift = memory.Alloc<float, COLUMNS>();
  GlobalTensor<float> from, to, from_gamma, from_beta;
  const uint64_t begin = static_cast<uint64_t>(GetBlockIdx()) * rows * COLUMNS;
  from.SetGlobalBuffer((__gm__ float*)x + begin, rows * COLUMNS);
  to.SetGlobalBuffer((__gm__ float*)y + begin, rows * COLUMNS);
  from_gamma.SetGlobalBuffer((__gm__ float*)gamma, COLUMNS);
  from_beta.SetGlobalBuffer((__gm__ float*)beta, COLUMNS);
  DataCopy(given, from, rows * COLUMNS);
  DataCopy(scale, from_gamma, COLUMNS);
  DataCopy(shift, from_beta, COLUMNS);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  asc_vf_call<normalise>((__ubuf__ float*)given.GetPhyAddr(), (__ubuf__ float*)scale.GetPhyAddr(),
                         (__ubuf__ float*)shift.GetPhyAddr(), (__ubuf__ float*)made.GetPhyAddr(),
                         static_cast<uint16_t>(rows));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, made, rows * COLUMNS);
}
