// Flash attention, forward: O = softmax(Q K^T / sqrt(D)) V for one head, without a mask.
//
// Every AI Core takes ROWS rows of Q and goes over the keys, KEYS at a time. Its AIC multiplies,
// its two AIVs, each with half the rows, keep the softmax as it grows: the largest score so far,
// the sum of the exponentials, and O's sum, which is scaled down whenever a larger score turns up.
//
//   AIC   S_j = Q K_j^T                               scores, float, to the workspace
//   AIV   P_j = exp(S_j / sqrt(D) - top_j)            probabilities, half, to the workspace
//         sum = sum * fade_j + rows of P_j, with fade_j = exp(top_(j-1) - top_j)
//   AIC   O_j = P_j V_j                               float, to the workspace
//   AIV   O = O * fade_j + O_j; at the end O / sum
//
// The AIC multiplies Q K_(j+1)^T before it waits for P_j, and the AIVs compute P_(j+1) before they
// wait for O_j, so that both sides work. Three flags between them count blocks of keys: SCORES,
// CHANCES and VALUES are in the workspace. They suffice for two slots of each: who writes a slot
// again has waited for what was made of it.
//
// Q, K, V and O are [n, D], half; the workspaces of an AI Core are two slots each of [ROWS, KEYS]
// floats, [ROWS, KEYS] halves and [ROWS, D] floats. n is a multiple of KEYS, and ROWS times the
// blocks for Q and O. Run it with
//   cubecore run flash_attention.cpp --blocks 2 --arg q=q.npy --arg k=k.npy --arg v=v.npy
//     --arg n=768 --out-arg o=float16:128x128:o.npy --out-arg scores=float32:65536:s.npy
//     --out-arg chances=float16:65536:p.npy --out-arg values=float32:32768:w.npy

#include "cube_tiles.h"

constexpr uint32_t D = 128;
constexpr uint32_t ROWS = 64, KEYS = 256;
constexpr uint32_t SHARE = ROWS / 2;  // rows of an AIV
constexpr uint32_t PART = 128;        // keys that L0B takes at a time
constexpr uint32_t PARTS = KEYS / PART;
constexpr uint32_t LANES = 64;                // floats of a repeat
constexpr uint8_t STATS = SHARE * 8 / LANES;  // repeats of one block for each row
constexpr uint16_t SCORES = 0, CHANCES = 1, VALUES = 2;
constexpr uint32_t SUM = 2;  // the event of what O_j is summed in; 0 and 1 are those of S_j's parts
constexpr float LOWEST = -1.2676506e30f;
constexpr float SCALE = 0.08838834764831845f;  // 1 / sqrt(D)
constexpr uint64_t ALL = ~0ull;

// What AIC and AIVs hand over, in global memory: an AI Core's two slots of each.
struct Workspace {
  AscendC::GlobalTensor<float> scores, values;
  AscendC::GlobalTensor<half> chances;

  __aicore__ inline Workspace(GM_ADDR s, GM_ADDR p, GM_ADDR o) {
    scores.SetGlobalBuffer((__gm__ float*)s);
    chances.SetGlobalBuffer((__gm__ half*)p);
    values.SetGlobalBuffer((__gm__ float*)o);
  }
  __aicore__ static inline uint32_t Row(uint32_t ai_core, uint32_t slot, uint32_t row = 0) {
    return (SLOTS * ai_core + slot) * ROWS + row;
  }
};

// The AIC's part.
class Attention {
 public:
  __aicore__ inline Attention(GM_ADDR k, GM_ADDR v, const Workspace& workspace)
      : workspace_(workspace) {
    using namespace AscendC;
    k_.SetGlobalBuffer((__gm__ half*)k);
    v_.SetGlobalBuffer((__gm__ half*)v);
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    q_l1_ = l1.Alloc<TPosition::A1, half>(ROWS * D);
    for (auto& one : k_l1_) one = l1.Alloc<TPosition::B1, half>(KEYS * D);
    for (auto& one : v_l1_) one = l1.Alloc<TPosition::B1, half>(KEYS * D);
    for (auto& one : p_l1_) one = l1.Alloc<TPosition::A1, half>(ROWS * KEYS);
    q_l0_ = l0a.Alloc<TPosition::A2, half>(ROWS * D);
    for (auto& one : p_l0_) one = l0a.Alloc<TPosition::A2, half>(ROWS * PART);
    for (auto& one : b_l0_) one = l0b.Alloc<TPosition::B2, half>(PART * D);
    for (auto& one : s_l0_) one = l0c.Alloc<TPosition::CO1, float>(ROWS * PART);
    o_l0_ = l0c.Alloc<TPosition::CO1, float>(ROWS * D);
  }

  __aicore__ inline void Run(const AscendC::GlobalTensor<half>& q, uint32_t blocks) {
    using namespace AscendC;
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      SetFlag<HardEvent::MTE1_MTE2>(slot);      // K
      SetFlag<HardEvent::MTE1_MTE2>(2 + slot);  // V and P
      SetFlag<HardEvent::M_MTE1>(slot);
    }
    for (uint32_t event = 0; event <= SUM; ++event) SetFlag<HardEvent::FIX_M>(event);
    Fetch(q_l1_, q, ROWS, D, D);
    Scores(0);
    for (uint32_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) Scores(block + 1);
      Values(block);
    }
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      WaitFlag<HardEvent::MTE1_MTE2>(slot);
      WaitFlag<HardEvent::MTE1_MTE2>(2 + slot);
      WaitFlag<HardEvent::M_MTE1>(slot);
    }
    for (uint32_t event = 0; event <= SUM; ++event) WaitFlag<HardEvent::FIX_M>(event);
  }

 private:
  // Loads K_j and V_j; multiplies Q by K_j^T, which does not wait for V_j.
  __aicore__ inline void Scores(uint32_t block) {
    using namespace AscendC;
    uint32_t slot = block % SLOTS;
    WaitFlag<HardEvent::MTE1_MTE2>(slot);
    FetchBlock(k_l1_[slot], k_, block);
    SetFlag<HardEvent::MTE2_MTE1>(slot);
    WaitFlag<HardEvent::MTE1_MTE2>(2 + slot);
    FetchBlock(v_l1_[slot], v_, block);
    WaitFlag<HardEvent::MTE2_MTE1>(slot);
    if (block == 0) LoadA<ROWS, D>(q_l0_, q_l1_, 0);
    GlobalTensor<float> made = workspace_.scores[Workspace::Row(GetBlockIdx(), slot) * KEYS];
    for (uint32_t part = 0; part < PARTS; ++part) {
      uint32_t l0 = NextSlot();
      LoadData(b_l0_[l0], k_l1_[slot][part * PART * D],
               LoadData2DParams(0, PART / EDGE * D / EDGE, 1, 0, 0, false, 0));
      SetFlag<HardEvent::MTE1_M>(l0);
      WaitFlag<HardEvent::MTE1_M>(l0);
      WaitFlag<HardEvent::FIX_M>(part);
      Mmad(s_l0_[part], q_l0_, b_l0_[l0], MmadParams(ROWS, PART, D));
      SetFlag<HardEvent::M_MTE1>(l0);
      Store(made[part * PART], s_l0_[part], KEYS, part);
    }
    SetFlag<HardEvent::MTE1_MTE2>(slot);
    CrossCoreSetFlag<2, PIPE_FIX>(SCORES);
  }

  // Multiplies P_j by V_j.
  __aicore__ inline void Values(uint32_t block) {
    using namespace AscendC;
    uint32_t slot = block % SLOTS, row = Workspace::Row(GetBlockIdx(), slot);
    CrossCoreWaitFlag<2, PIPE_MTE2>(CHANCES);
    Fetch(p_l1_[slot], workspace_.chances[row * KEYS], ROWS, KEYS, KEYS);
    SetFlag<HardEvent::MTE2_MTE1>(2 + slot);
    WaitFlag<HardEvent::MTE2_MTE1>(2 + slot);
    WaitFlag<HardEvent::FIX_M>(SUM);
    for (uint32_t part = 0; part < PARTS; ++part) {
      uint32_t l0 = NextSlot();
      LoadA<ROWS, PART>(p_l0_[l0], p_l1_[slot], part * PART);
      LoadB<PART, D, PART>(b_l0_[l0], v_l1_[slot][part * PART * D], 0);
      SetFlag<HardEvent::MTE1_M>(l0);
      WaitFlag<HardEvent::MTE1_M>(l0);
      MmadParams params(ROWS, D, PART);
      params.cmatrixInitVal = part == 0;
      Mmad(o_l0_, p_l0_[l0], b_l0_[l0], params);
      SetFlag<HardEvent::M_MTE1>(l0);
    }
    SetFlag<HardEvent::MTE1_MTE2>(2 + slot);
    Store(workspace_.values[row * D], o_l0_, D, SUM);
    CrossCoreSetFlag<2, PIPE_FIX>(VALUES);
  }

  // Loads a block of K or V into L1, in parts that are matrices of their own.
  __aicore__ inline void FetchBlock(const AscendC::LocalTensor<half>& to,
                                    const AscendC::GlobalTensor<half>& matrix, uint32_t block) {
    for (uint32_t part = 0; part < PARTS; ++part)
      Fetch(to[part * PART * D], matrix[(block * KEYS + part * PART) * D], PART, D, D);
  }

  // The slot of L0 whose turn it is, once the Cube is done with it.
  __aicore__ inline uint32_t NextSlot() {
    uint32_t l0 = turn_++ % SLOTS;
    AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(l0);
    return l0;
  }

  // Writes a tile of ROWS x 128 row by row once it is summed.
  __aicore__ inline void Store(const AscendC::GlobalTensor<float>& to,
                               const AscendC::LocalTensor<float>& tile, uint32_t pitch,
                               uint32_t event) {
    using namespace AscendC;
    SetFlag<HardEvent::M_FIX>(event);
    WaitFlag<HardEvent::M_FIX>(event);
    Fixpipe(to, tile, FixpipeParamsV220(128, ROWS, ROWS, pitch, false));
    SetFlag<HardEvent::FIX_M>(event);
  }

  const Workspace& workspace_;
  AscendC::GlobalTensor<half> k_, v_;
  AscendC::LocalTensor<half> q_l1_, k_l1_[SLOTS], v_l1_[SLOTS], p_l1_[SLOTS], q_l0_, p_l0_[SLOTS];
  AscendC::LocalTensor<half> b_l0_[SLOTS];
  AscendC::LocalTensor<float> s_l0_[PARTS], o_l0_;
  uint32_t turn_ = 0;
};

// An AIV's part. What it keeps of each row fills a block, so that it meets rows by stride 0.
class Softmax {
 public:
  __aicore__ inline explicit Softmax(const Workspace& workspace)
      : workspace_(workspace),
        ai_core_(AscendC::GetBlockIdx() / AscendC::GetSubBlockNum()),
        row_(AscendC::GetSubBlockIdx() * SHARE) {
    using namespace AscendC;
    LocalMemAllocator<Hardware::UB> ub;
    for (auto& one : s_) one = ub.Alloc<TPosition::VECIN, float>(SHARE * KEYS);
    for (auto& one : p_) one = ub.Alloc<TPosition::VECOUT, half>(SHARE * KEYS);
    for (auto& one : o_j_) one = ub.Alloc<TPosition::VECIN, float>(SHARE * D);
    o_ = ub.Alloc<TPosition::VECCALC, float>(SHARE * D);
    out_ = ub.Alloc<TPosition::VECOUT, half>(SHARE * D);
    for (auto& one : folded_) one = ub.Alloc<TPosition::VECCALC, float>(SHARE * LANES);
    eighth_ = ub.Alloc<TPosition::VECCALC, float>(SHARE * 8);
    one_ = ub.Alloc<TPosition::VECCALC, float>(SHARE);
    for (auto& one : top_) one = ub.Alloc<TPosition::VECCALC, float>(SHARE * 8);
    for (auto& one : fade_) one = ub.Alloc<TPosition::VECCALC, float>(SHARE * 8);
    sum_ = ub.Alloc<TPosition::VECCALC, float>(SHARE * 8);
    new_ = ub.Alloc<TPosition::VECCALC, float>(SHARE * 8);
  }

  __aicore__ inline void Run(GM_ADDR o, uint32_t blocks) {
    using namespace AscendC;
    SetVectorMask<float>(ALL, ALL);
    Duplicate<float, false>(top_[1], LOWEST, MASK_PLACEHOLDER, STATS, 1, 8);
    Duplicate<float, false>(sum_, 0.0f, MASK_PLACEHOLDER, STATS, 1, 8);
    Duplicate<float, false>(o_, 0.0f, MASK_PLACEHOLDER, SHARE * D / LANES, 1, 8);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      SetFlag<HardEvent::V_MTE2>(slot);      // S
      SetFlag<HardEvent::V_MTE2>(2 + slot);  // O
      SetFlag<HardEvent::MTE3_V>(slot);
    }
    Chances(0);
    for (uint32_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) Chances(block + 1);
      AddValues(block);
    }
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < D; part += LANES)
      Div<float, false>(o_[part], o_[part], sum_, MASK_PLACEHOLDER, SHARE, ByRow(D));
    PipeBarrier<PIPE_V>();
    Cast<half, float, false>(out_, o_, RoundMode::CAST_RINT, MASK_PLACEHOLDER, SHARE * D / LANES,
                             {1, 1, 4, 8});
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    GlobalTensor<half> to;
    to.SetGlobalBuffer((__gm__ half*)o + (ai_core_ * ROWS + row_) * D, SHARE * D);
    DataCopy(to, out_, SHARE * D);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      WaitFlag<HardEvent::V_MTE2>(slot);
      WaitFlag<HardEvent::V_MTE2>(2 + slot);
      WaitFlag<HardEvent::MTE3_V>(slot);
    }
  }

 private:
  // Makes P_j of S_j.
  __aicore__ inline void Chances(uint32_t block) {
    using namespace AscendC;
    uint32_t slot = block % SLOTS, row = Workspace::Row(ai_core_, slot, row_);
    constexpr uint8_t repeats = SHARE * KEYS / LANES;
    LocalTensor<float> s = s_[slot];
    WaitFlag<HardEvent::V_MTE2>(slot);
    CrossCoreWaitFlag<2, PIPE_MTE2>(SCORES);
    DataCopy(s, workspace_.scores[row * KEYS], SHARE * KEYS);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    Muls<float, false>(s, s, SCALE, MASK_PLACEHOLDER, repeats, {1, 1, 8, 8});
    Grow(s, slot);
    for (uint32_t part = 0; part < KEYS; part += LANES)
      Sub<float, false>(s[part], s[part], top_[slot], MASK_PLACEHOLDER, SHARE, ByRow(KEYS));
    PipeBarrier<PIPE_V>();
    Exp<float, false>(s, s, MASK_PLACEHOLDER, repeats, {1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(slot);
    Cast<half, float, false>(p_[slot], s, RoundMode::CAST_RINT, MASK_PLACEHOLDER, repeats,
                             {1, 1, 4, 8});
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(workspace_.chances[row * KEYS], p_[slot], SHARE * KEYS);
    CrossCoreSetFlag<2, PIPE_MTE3>(CHANCES);
    SetFlag<HardEvent::MTE3_V>(slot);
    Reduce<false>(s);
    SetFlag<HardEvent::V_MTE2>(slot);
    Mul<float, false>(sum_, sum_, fade_[slot], MASK_PLACEHOLDER, STATS, {1, 1, 1, 8, 8, 8});
    PipeBarrier<PIPE_V>();
    Add<float, false>(sum_, sum_, new_, MASK_PLACEHOLDER, STATS, {1, 1, 1, 8, 8, 8});
  }

  // Takes the largest scores into `top`, and how much that fades what was summed before.
  __aicore__ inline void Grow(const AscendC::LocalTensor<float>& s, uint32_t slot) {
    using namespace AscendC;
    BinaryRepeatParams all(1, 1, 1, 8, 8, 8);
    LocalTensor<float> before = top_[1 - slot];
    Reduce<true>(s);
    Max<float, false>(top_[slot], before, new_, MASK_PLACEHOLDER, STATS, all);
    PipeBarrier<PIPE_V>();
    Sub<float, false>(fade_[slot], before, top_[slot], MASK_PLACEHOLDER, STATS, all);
    PipeBarrier<PIPE_V>();
    Exp<float, false>(fade_[slot], fade_[slot], MASK_PLACEHOLDER, STATS, {1, 1, 8, 8});
  }

  // Adds O_j to O.
  __aicore__ inline void AddValues(uint32_t block) {
    using namespace AscendC;
    uint32_t slot = block % SLOTS;
    WaitFlag<HardEvent::V_MTE2>(2 + slot);
    CrossCoreWaitFlag<2, PIPE_MTE2>(VALUES);
    DataCopy(o_j_[slot], workspace_.values[Workspace::Row(ai_core_, slot, row_) * D], SHARE * D);
    SetFlag<HardEvent::MTE2_V>(2 + slot);
    WaitFlag<HardEvent::MTE2_V>(2 + slot);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < D; part += LANES)
      Mul<float, false>(o_[part], o_[part], fade_[slot], MASK_PLACEHOLDER, SHARE, ByRow(D));
    PipeBarrier<PIPE_V>();
    Add<float, false>(o_, o_, o_j_[slot], MASK_PLACEHOLDER, SHARE * D / LANES, {1, 1, 1, 8, 8, 8});
    SetFlag<HardEvent::V_MTE2>(2 + slot);
  }

  // 64 columns of all rows, with what is kept of each row.
  __aicore__ static inline AscendC::BinaryRepeatParams ByRow(uint32_t width) {
    uint8_t pitch = width / 8;
    return {1, 1, 0, pitch, pitch, 1};
  }

  // Reduces every row of S or P to one number, and fills a block of `new` with it.
  template <bool largest>
  __aicore__ inline void Reduce(const AscendC::LocalTensor<float>& s) {
    using namespace AscendC;
    constexpr uint8_t pitch = KEYS / 8;
    LocalTensor<float> one = folded_[0], other = folded_[1];
    PipeBarrier<PIPE_V>();
    Fold<largest>(one, s, s[LANES], pitch);
    Fold<largest>(other, s[2 * LANES], s[3 * LANES], pitch);
    PipeBarrier<PIPE_V>();
    Fold<largest>(one, one, other, 8);
    PipeBarrier<PIPE_V>();
    Across<largest>(eighth_, one, SHARE);
    PipeBarrier<PIPE_V>();
    Across<largest>(one_, eighth_, STATS);
    PipeBarrier<PIPE_V>();
    Brcb(new_, one_, SHARE / 8, {1, 8});
    PipeBarrier<PIPE_V>();
  }

  template <bool largest>
  __aicore__ static inline void Fold(const AscendC::LocalTensor<float>& to,
                                     const AscendC::LocalTensor<float>& one,
                                     const AscendC::LocalTensor<float>& other, uint8_t pitch) {
    using namespace AscendC;
    BinaryRepeatParams params(1, 1, 1, 8, pitch, pitch);
    if constexpr (largest)
      Max<float, false>(to, one, other, MASK_PLACEHOLDER, SHARE, params);
    else
      Add<float, false>(to, one, other, MASK_PLACEHOLDER, SHARE, params);
  }

  template <bool largest>
  __aicore__ static inline void Across(const AscendC::LocalTensor<float>& to,
                                       const AscendC::LocalTensor<float>& from, int32_t repeats) {
    using namespace AscendC;
    if constexpr (largest)
      BlockReduceMax<float, false>(to, from, repeats, MASK_PLACEHOLDER, 1, 1, 8);
    else
      BlockReduceSum<float, false>(to, from, repeats, MASK_PLACEHOLDER, 1, 1, 8);
  }

  const Workspace& workspace_;
  uint32_t ai_core_, row_;
  AscendC::LocalTensor<float> s_[SLOTS], o_j_[SLOTS], o_, folded_[SLOTS], eighth_, one_;
  AscendC::LocalTensor<float> top_[SLOTS], fade_[SLOTS], sum_, new_;
  AscendC::LocalTensor<half> p_[SLOTS], out_;
};

extern "C" __global__ __mix__(1, 2) void flash_attention(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR o,
                                                         GM_ADDR scores, GM_ADDR chances,
                                                         GM_ADDR values, uint32_t n) {
  Workspace workspace(scores, chances, values);
  if ASCEND_IS_AIC {
    AscendC::GlobalTensor<half> own;
    own.SetGlobalBuffer((__gm__ half*)q + AscendC::GetBlockIdx() * ROWS * D, ROWS * D);
    Attention(k, v, workspace).Run(own, n / KEYS);
  }
  if ASCEND_IS_AIV {
    Softmax(workspace).Run(o, n / KEYS);
  }
}
