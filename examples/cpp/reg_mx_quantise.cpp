// Floats to mxfp8 in the registers of Ascend 950: float8_e4m3fn, a scale for 32.
//
// The 32 floats of a column that lie in successive rows share a scale, as B of an MX product has
// them along K. A scale is a power of two, of which float8_e8m0 keeps the exponent: that of the
// largest magnitude less 8, which is that of 448, the largest float8_e4m3fn. Every block (an AIV)
// takes `groups` times 32 rows of 256 columns, at most 4. Run it with
//   cubecore run reg_mx_quantise.cpp --chip Ascend950PR_9589 --blocks 2 --arg x=x.npy
//     --arg groups=2 --out-arg codes=uint8:128x256:y.npy --out-arg scales=uint8:4x256:s.npy

#include "kernel_operator.h"

constexpr uint32_t COLUMNS = 256;
constexpr uint32_t GROUP = 32;
constexpr uint32_t MOST_GROUPS = 4;
constexpr uint32_t LANES = AscendC::GetVecLen() / sizeof(float);
constexpr int32_t LARGEST_EXPONENT = 8;    // of 448
constexpr int32_t OF_ONE = 127;            // the exponent of 1 in float and in float8_e8m0
constexpr int16_t FRACTION = 23;           // bits of a float below its exponent

__simd_vf__ inline void quantise(__ubuf__ float* x, __ubuf__ uint8_t* codes,
                                 __ubuf__ uint8_t* scales, uint16_t groups) {
  using namespace AscendC::Reg;
  static constexpr CastTrait nearest = {RegLayout::ZERO, SatMode::SAT, MaskMergeMode::ZEROING,
                                        AscendC::RoundMode::CAST_RINT};
  MaskReg all = CreateMask<float>();
  for (uint16_t group = 0; group < groups; ++group) {
    for (uint16_t strip = 0; strip < COLUMNS / LANES; ++strip) {
      const uint32_t begin = group * GROUP * COLUMNS + strip * LANES;
      RegTensor<float> largest, number;
      RegTensor<fp8_e4m3fn_t> code;
      Duplicate(largest, 0.0f, all);
      for (uint16_t row = 0; row < GROUP; ++row) {
        LoadAlign(number, x + begin + row * COLUMNS);
        Abs(number, number, all);
        Max(largest, largest, number, all);
      }
      // Magnitudes have no sign: what is above the fraction is the exponent. Of the scale it is 8
      // less; that of its inverse has the other sign.
      RegTensor<int32_t>& exponent = (RegTensor<int32_t>&)largest;
      ShiftRights(exponent, exponent, FRACTION, all);
      Maxs(exponent, exponent, LARGEST_EXPONENT, all);
      Adds(exponent, exponent, -LARGEST_EXPONENT, all);
      StoreAlign<uint8_t, StoreDist::DIST_PACK4_B32>(scales + group * COLUMNS + strip * LANES,
                                                     (RegTensor<uint8_t>&)largest, all);
      Muls(exponent, exponent, -1, all);
      Adds(exponent, exponent, 2 * OF_ONE, all);
      ShiftLefts(exponent, exponent, FRACTION, all);
      for (uint16_t row = 0; row < GROUP; ++row) {
        LoadAlign(number, x + begin + row * COLUMNS);
        Mul(number, number, largest, all);
        Cast<fp8_e4m3fn_t, float, nearest>(code, number, all);
        StoreAlign<uint8_t, StoreDist::DIST_PACK4_B32>(codes + begin + row * COLUMNS,
                                                       (RegTensor<uint8_t>&)code, all);
      }
    }
  }
}

extern "C" __global__ __aicore__ void reg_mx_quantise(GM_ADDR x, GM_ADDR codes, GM_ADDR scales,
                                                      uint32_t groups) {
  using namespace AscendC;
  constexpr uint32_t MOST = MOST_GROUPS * GROUP * COLUMNS;
  LocalMemAllocator<Hardware::UB> memory;
  LocalTensor<float> given = memory.Alloc<float, MOST>();
  LocalTensor<uint8_t> made = memory.Alloc<uint8_t, MOST>();
  LocalTensor<uint8_t> shared = memory.Alloc<uint8_t, MOST_GROUPS * COLUMNS>();
  GlobalTensor<float> from;
  GlobalTensor<uint8_t> to, to_scales;
  const uint32_t few = groups * COLUMNS, many = few * GROUP;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * many, many);
  to.SetGlobalBuffer((__gm__ uint8_t*)codes + GetBlockIdx() * many, many);
  to_scales.SetGlobalBuffer((__gm__ uint8_t*)scales + GetBlockIdx() * few, few);
  DataCopy(given, from, many);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  asc_vf_call<quantise>((__ubuf__ float*)given.GetPhyAddr(), (__ubuf__ uint8_t*)made.GetPhyAddr(),
                        (__ubuf__ uint8_t*)shared.GetPhyAddr(), static_cast<uint16_t>(groups));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, made, many);
  DataCopy(to_scales, shared, few);
}
