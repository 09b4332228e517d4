// Flash attention on Ascend 950: scores go from L0C to the AIVs, probabilities from them to L1.
//
// O = softmax(Q K^T / sqrt(D)) V for one head, without a mask. Every AI Core takes ROWS rows of Q
// and goes over the keys, KEYS at a time. Nothing that its parts hand over leaves the core:
//
//   AIC   S_j = Q K_j^T                             L0C to UB, half of the rows to each AIV
//   AIV   P_j = exp(S_j / sqrt(D) - top_j)          registers; half, UB to L1, as the Cube reads it
//         sum = sum * fade_j + rows of P_j, with fade_j = exp(top_(j-1) - top_j)
//   AIC   O_j = P_j V_j                             L0C to UB again
//   AIV   O = O * fade_j + O_j; at the end O / sum
//
// The AIC multiplies Q K_(j+1)^T before it waits for P_j, and the AIVs compute P_(j+1) before they
// wait for O_j. Flags of mode 4 between the AIC and each AIV count blocks of keys. Two slots of
// each suffice: who writes a slot again has waited for what was made of it.
//
// Q, K, V and O are [n, D], half; n is a multiple of KEYS, and ROWS times the blocks for Q and O.
// Run it with
//   cubecore run flash_attention_950.cpp --chip Ascend950PR_9589 --blocks 2 --arg q=q.npy
//     --arg k=k.npy --arg v=v.npy --arg n=384 --out-arg o=float16:128x64:o.npy

#include "kernel_operator.h"

constexpr uint32_t D = 64;
constexpr uint32_t ROWS = 64, KEYS = 128;
constexpr uint32_t SHARE = ROWS / 2;  // rows of an AIV
constexpr uint32_t EDGE = 16;         // rows and columns of a fractal of halves
constexpr uint32_t LANES = AscendC::GetVecLen() / sizeof(float);
constexpr uint32_t STAT = 8;  // floats from one row's number to the next: a load of one reads 32 B
constexpr uint32_t SLOTS = 2;
constexpr uint16_t SCORES = 0, CHANCES = 1, VALUES = 2;
constexpr uint16_t AIV1 = 16;  // what an AIC adds to a flag of its second AIV
constexpr float LOWEST = -1.2676506e30f;
constexpr float SCALE = 0.125f;  // 1 / sqrt(D)

// Addresses of what the parts hand over, which both know; what a part keeps comes behind.
constexpr uint32_t SCORES_BYTES = 4 * SHARE * KEYS, VALUES_BYTES = 4 * SHARE * D;
constexpr uint32_t CHANCES_BYTES = 2 * SHARE * KEYS;
constexpr uint32_t VALUES_UB = SLOTS * SCORES_BYTES;
constexpr uint32_t CHANCES_UB = VALUES_UB + SLOTS * VALUES_BYTES;
constexpr uint32_t KEPT_UB = CHANCES_UB + SLOTS * CHANCES_BYTES;
constexpr uint32_t CHANCES_L1_BYTES = 2 * ROWS * KEYS, KEPT_L1 = SLOTS * CHANCES_L1_BYTES;
constexpr AscendC::FixpipeConfig ROWS_OF_UB = {AscendC::CO2Layout::ROW_MAJOR, true};

__aicore__ inline AscendC::LocalTensor<float> ScoresOf(uint32_t slot) {
  return {AscendC::TPosition::VECIN, slot * SCORES_BYTES, SHARE * KEYS};
}
__aicore__ inline AscendC::LocalTensor<float> ValuesOf(uint32_t slot) {
  return {AscendC::TPosition::VECIN, VALUES_UB + slot * VALUES_BYTES, SHARE * D};
}
__aicore__ inline AscendC::LocalTensor<half> ChancesOf(uint32_t slot) {
  return {AscendC::TPosition::A1, slot * CHANCES_L1_BYTES, ROWS * KEYS};
}

// The AIC's part.
class Products {
 public:
  __aicore__ inline Products(GM_ADDR k, GM_ADDR v) {
    using namespace AscendC;
    k_.SetGlobalBuffer((__gm__ half*)k);
    v_.SetGlobalBuffer((__gm__ half*)v);
    uint32_t at = KEPT_L1;
    q_l1_ = LocalTensor<half>(TPosition::A1, at, ROWS * D);
    at += 2 * ROWS * D;
    for (auto* matrix : {k_l1_, v_l1_})
      for (uint32_t slot = 0; slot < SLOTS; ++slot, at += 2 * KEYS * D)
        matrix[slot] = LocalTensor<half>(TPosition::B1, at, KEYS * D);
    a_l0_ = LocalTensor<half>(TPosition::A2, 0, ROWS * KEYS);
    b_l0_ = LocalTensor<half>(TPosition::B2, 0, KEYS * D);
    s_l0_ = LocalTensor<float>(TPosition::CO1, 0, ROWS * KEYS);
    o_l0_ = LocalTensor<float>(TPosition::CO1, 4 * ROWS * KEYS, ROWS * D);
  }

  __aicore__ inline void Run(const AscendC::GlobalTensor<half>& q, uint32_t blocks) {
    using namespace AscendC;
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      SetFlag<HardEvent::MTE1_MTE2>(slot);
      SetFlag<HardEvent::FIX_M>(slot);
    }
    SetFlag<HardEvent::M_MTE1>(0);
    Fetch(q_l1_, q, ROWS);
    Scores(0);
    for (uint32_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) Scores(block + 1);
      Values(block);
    }
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      WaitFlag<HardEvent::MTE1_MTE2>(slot);
      WaitFlag<HardEvent::FIX_M>(slot);
    }
    WaitFlag<HardEvent::M_MTE1>(0);
  }

 private:
  // Loads K_j and V_j; multiplies Q by K_j^T, and gives each AIV half of the rows.
  __aicore__ inline void Scores(uint32_t block) {
    using namespace AscendC;
    const uint32_t slot = block % SLOTS;
    WaitFlag<HardEvent::MTE1_MTE2>(slot);
    Fetch(k_l1_[slot], k_[block * KEYS * D], KEYS);
    Fetch(v_l1_[slot], v_[block * KEYS * D], KEYS);
    SetFlag<HardEvent::MTE2_MTE1>(slot);
    WaitFlag<HardEvent::MTE2_MTE1>(slot);
    WaitFlag<HardEvent::M_MTE1>(0);
    LoadLeft(q_l1_, D);
    LoadRight(k_l1_[slot], false);
    Multiply(s_l0_, KEYS, D, 0);
    HandOver(ScoresOf(slot), s_l0_, KEYS, SCORES, 0);
  }

  // Multiplies P_j, which the AIVs have put into L1, by V_j.
  __aicore__ inline void Values(uint32_t block) {
    using namespace AscendC;
    const uint32_t slot = block % SLOTS;
    CrossCoreWaitFlag<4, PIPE_MTE1>(CHANCES);
    CrossCoreWaitFlag<4, PIPE_MTE1>(CHANCES + AIV1);
    WaitFlag<HardEvent::M_MTE1>(0);
    LoadLeft(ChancesOf(slot), KEYS);
    LoadRight(v_l1_[slot], true);
    SetFlag<HardEvent::MTE1_MTE2>(slot);
    Multiply(o_l0_, D, KEYS, 1);
    HandOver(ValuesOf(slot), o_l0_, D, VALUES, 1);
  }

  // Loads rows of D halves into L1 in NZ.
  __aicore__ inline void Fetch(const AscendC::LocalTensor<half>& to,
                               const AscendC::GlobalTensor<half>& from, uint32_t rows) {
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = D;
    params.srcNdMatrixStride = 0;
    params.srcDValue = D;
    params.dstNzC0Stride = rows;
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 0;
    AscendC::DataCopy(to, from, params);
  }

  // ROWS x depth from L1 to L0A, and KEYS x D to L0B, as K^T or V.
  __aicore__ inline void LoadLeft(const AscendC::LocalTensor<half>& from, uint32_t depth) {
    AscendC::LoadData(a_l0_, from, Window(ROWS, depth, ROWS, false));
  }
  __aicore__ inline void LoadRight(const AscendC::LocalTensor<half>& from, bool transposed) {
    AscendC::LoadData(b_l0_, from, Window(KEYS, D, transposed ? D : KEYS, transposed));
  }
  __aicore__ static inline AscendC::LoadData2DParamsV2 Window(uint32_t rows, uint32_t columns,
                                                              uint32_t pitch, bool transposed) {
    AscendC::LoadData2DParamsV2 window;
    window.mStartPosition = window.kStartPosition = 0;
    window.mStep = rows / EDGE;
    window.kStep = columns / EDGE;
    window.srcStride = rows / EDGE;
    window.dstStride = pitch / EDGE;
    window.ifTranspose = transposed;
    return window;
  }

  // Multiplies what is in L0A and L0B, once the tile before has left L0C.
  __aicore__ inline void Multiply(const AscendC::LocalTensor<float>& total, uint32_t columns,
                                  uint32_t depth, uint32_t event) {
    using namespace AscendC;
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::FIX_M>(event);
    Mmad(total, a_l0_, b_l0_, MmadParams(ROWS, columns, depth));
    SetFlag<HardEvent::M_MTE1>(0);
    SetFlag<HardEvent::M_FIX>(event);
    WaitFlag<HardEvent::M_FIX>(event);
  }

  // Writes half of a tile's rows to each AIV's Unified Buffer, and tells both.
  __aicore__ inline void HandOver(const AscendC::LocalTensor<float>& to,
                                  const AscendC::LocalTensor<float>& tile, uint32_t columns,
                                  uint16_t flag, uint32_t event) {
    using namespace AscendC;
    FixpipeParamsArch3510<CO2Layout::ROW_MAJOR> params;
    params.nSize = columns;
    params.mSize = ROWS;
    params.srcStride = ROWS;
    params.dstStride = columns;
    params.dualDstCtl = 1;
    Fixpipe<float, float, ROWS_OF_UB>(to, tile, params);
    SetFlag<HardEvent::FIX_M>(event);
    CrossCoreSetFlag<4, PIPE_FIX>(flag);
    CrossCoreSetFlag<4, PIPE_FIX>(flag + AIV1);
  }

  AscendC::GlobalTensor<half> k_, v_;
  AscendC::LocalTensor<half> q_l1_, k_l1_[SLOTS], v_l1_[SLOTS], a_l0_, b_l0_;
  AscendC::LocalTensor<float> s_l0_, o_l0_;
};

using Floats = __ubuf__ float*;
using Halves = __ubuf__ half*;
constexpr AscendC::Reg::CastTrait TO_HALF = {
    AscendC::Reg::RegLayout::ZERO, AscendC::Reg::SatMode::NO_SAT,
    AscendC::Reg::MaskMergeMode::ZEROING, AscendC::RoundMode::CAST_RINT};

// Sets what is kept of each row, and O's sum, to those of no keys.
__simd_vf__ inline void BeginRows(Floats top, Floats total, Floats o) {
  using namespace AscendC::Reg;
  MaskReg all = CreateMask<float>();
  RegTensor<float> lowest, zero;
  Duplicate(lowest, LOWEST, all);
  Duplicate(zero, 0.0f, all);
  for (uint16_t i = 0; i < SHARE * STAT / LANES; ++i) {
    StoreAlign(top + i * LANES, lowest, all);
    StoreAlign(total + i * LANES, zero, all);
  }
  for (uint16_t row = 0; row < SHARE; ++row) StoreAlign(o + row * D, zero, all);
}

// Makes P_j of S_j, in NZ; what is kept of each row grows.
__simd_vf__ inline void ChancesOfRows(Floats s, Halves p, Floats top, Floats fade, Floats total) {
  using namespace AscendC::Reg;
  MaskReg all = CreateMask<float>(), halves = CreateMask<half>();
  RegTensor<float> a, b, largest, before, faded, summed;
  RegTensor<half> left, right, packed, rest;
  for (uint16_t row = 0; row < SHARE; ++row) {
    LoadAlign(a, s + row * KEYS);
    LoadAlign(b, s + row * KEYS + LANES);
    Muls(a, a, SCALE, all);
    Muls(b, b, SCALE, all);
    Max(largest, a, b, all);
    Reduce<ReduceType::MAX>(largest, largest, all);
    Duplicate(largest, largest, all);
    LoadAlign<float, LoadDist::DIST_BRC_B32>(before, top + row * STAT);
    Max(largest, largest, before, all);
    ExpSub(a, a, largest, all);
    ExpSub(b, b, largest, all);
    ExpSub(faded, before, largest, all);
    StoreAlign<float, StoreDist::DIST_FIRST_ELEMENT_B32>(top + row * STAT, largest, all);
    StoreAlign<float, StoreDist::DIST_FIRST_ELEMENT_B32>(fade + row * STAT, faded, all);

    Add(summed, a, b, all);
    Reduce<ReduceType::SUM>(summed, summed, all);
    LoadAlign<float, LoadDist::DIST_BRC_B32>(before, total + row * STAT);
    Mul(before, before, faded, all);
    Add(summed, summed, before, all);
    StoreAlign<float, StoreDist::DIST_FIRST_ELEMENT_B32>(total + row * STAT, summed, all);

    // Halves stand in every second lane; a row's pieces of 32 B lie SHARE rows apart in NZ.
    Cast<half, float, TO_HALF>(left, a, all);
    Cast<half, float, TO_HALF>(right, b, all);
    DeInterleave(packed, rest, left, right);
    StoreAlign<half, DataCopyMode::DATA_BLOCK_COPY>(p + row * EDGE, packed, SHARE, halves);
  }
}

// Adds O_j to O, which fades.
__simd_vf__ inline void AddRows(Floats o, Floats made, Floats fade) {
  using namespace AscendC::Reg;
  MaskReg all = CreateMask<float>();
  RegTensor<float> total, more, factor;
  for (uint16_t row = 0; row < SHARE; ++row) {
    LoadAlign(total, o + row * D);
    LoadAlign(more, made + row * D);
    LoadAlign<float, LoadDist::DIST_BRC_B32>(factor, fade + row * STAT);
    Mul(total, total, factor, all);
    Add(total, total, more, all);
    StoreAlign(o + row * D, total, all);
  }
}

// Divides O by the sums, as halves.
__simd_vf__ inline void DivideRows(Floats o, Floats total, Halves out) {
  using namespace AscendC::Reg;
  MaskReg all = CreateMask<float>();
  RegTensor<float> row_o, divisor;
  RegTensor<half> result;
  for (uint16_t row = 0; row < SHARE; ++row) {
    LoadAlign(row_o, o + row * D);
    LoadAlign<float, LoadDist::DIST_BRC_B32>(divisor, total + row * STAT);
    Div(row_o, row_o, divisor, all);
    Cast<half, float, TO_HALF>(result, row_o, all);
    StoreAlign<half, StoreDist::DIST_PACK_B32>(out + row * D, result, all);
  }
}

// An AIV's part.
class Softmax {
 public:
  __aicore__ inline void Run(GM_ADDR o, uint32_t blocks) {
    using namespace AscendC;
    BeginRows(top_, total_, o_);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) SetFlag<HardEvent::MTE3_V>(slot);
    Chances(0);
    for (uint32_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) Chances(block + 1);
      AddValues(block);
    }
    DivideRows(o_, total_, (Halves)OUT);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    const uint32_t ai_core = GetBlockIdx() / GetSubBlockNum();
    GlobalTensor<half> to;
    to.SetGlobalBuffer((__gm__ half*)o + (ai_core * ROWS + part_ * SHARE) * D, SHARE * D);
    DataCopy(to, LocalTensor<half>(TPosition::VECOUT, OUT, SHARE * D), SHARE * D);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) WaitFlag<HardEvent::MTE3_V>(slot);
  }

 private:
  // Makes P_j of S_j, and puts this AIV's rows of it into L1.
  __aicore__ inline void Chances(uint32_t block) {
    using namespace AscendC;
    const uint32_t slot = block % SLOTS, made = CHANCES_UB + slot * CHANCES_BYTES;
    CrossCoreWaitFlag<4, PIPE_V>(SCORES);
    WaitFlag<HardEvent::MTE3_V>(slot);
    ChancesOfRows((Floats)ScoresOf(slot).GetPhyAddr(), (Halves)made, top_, fade_[slot], total_);
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(ChancesOf(slot)[part_ * SHARE * EDGE],
             LocalTensor<half>(TPosition::VECOUT, made, SHARE * KEYS),
             DataCopyParams(KEYS / EDGE, SHARE, 0, ROWS - SHARE));
    SetFlag<HardEvent::MTE3_V>(slot);
    CrossCoreSetFlag<4, PIPE_MTE3>(CHANCES);
  }

  // Adds O_j to O.
  __aicore__ inline void AddValues(uint32_t block) {
    const uint32_t slot = block % SLOTS;
    AscendC::CrossCoreWaitFlag<4, PIPE_V>(VALUES);
    AddRows(o_, (Floats)ValuesOf(slot).GetPhyAddr(), fade_[slot]);
  }

  static constexpr uint32_t KEPT_BYTES = 4 * SHARE * STAT, OUT = KEPT_UB + 4 * KEPT_BYTES +
                                                                 4 * SHARE * D;
  Floats top_ = (Floats)KEPT_UB, total_ = (Floats)(KEPT_UB + KEPT_BYTES);
  Floats fade_[SLOTS] = {(Floats)(KEPT_UB + 2 * KEPT_BYTES), (Floats)(KEPT_UB + 3 * KEPT_BYTES)};
  Floats o_ = (Floats)(KEPT_UB + 4 * KEPT_BYTES);
  uint32_t part_ = AscendC::GetSubBlockIdx();
};

extern "C" __global__ __mix__(1, 2) void flash_attention_950(GM_ADDR q, GM_ADDR k, GM_ADDR v,
                                                             GM_ADDR o, uint32_t n) {
  if ASCEND_IS_AIC {
    AscendC::GlobalTensor<half> own;
    own.SetGlobalBuffer((__gm__ half*)q + AscendC::GetBlockIdx() * ROWS * D, ROWS * D);
    Products(k, v).Run(own, n / KEYS);
  }
  if ASCEND_IS_AIV {
    Softmax().Run(o, n / KEYS);
  }
}
