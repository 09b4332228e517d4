// Rows of 512 halves in UB, computed in float: what softmax.cpp and layernorm.cpp share.
#pragma once

#include "kernel_operator.h"

constexpr uint32_t COLUMNS = 512;
constexpr uint32_t ROWS = 16;
constexpr uint32_t LANES = 64;          // floats of a repeat
constexpr uint8_t PITCH = COLUMNS / 8;  // blocks of 8 floats from row to row
constexpr uint32_t TILE = ROWS * COLUMNS;
constexpr uint8_t REPEATS = TILE / LANES;
constexpr uint32_t SLOTS = 2;
constexpr uint64_t ALL = ~0ull;

// Local memory in the order in which it is asked for.
class Memory {
 public:
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Take(uint32_t count) {
    AscendC::LocalTensor<T> made(AscendC::TPosition::VECCALC, used_, count);
    used_ += count * sizeof(T);
    return made;
  }

 private:
  uint32_t used_ = 0;
};

// Every row of `wide` is summed, or its largest found, in three steps: 512 = 8^3. A block for each
// row has the result.
class RowReduction {
 public:
  __aicore__ inline void Init(Memory& memory) {
    eighth_ = memory.Take<float>(TILE / 8);
    few_ = memory.Take<float>(TILE / 64);
    one_ = memory.Take<float>(ROWS);
    spread_ = memory.Take<float>(ROWS * 8);
  }

  template <bool largest>
  __aicore__ inline AscendC::LocalTensor<float> Reduce(const AscendC::LocalTensor<float>& wide) {
    using namespace AscendC;
    PipeBarrier<PIPE_V>();
    Step<largest>(eighth_, wide, REPEATS);
    PipeBarrier<PIPE_V>();
    Step<largest>(few_, eighth_, REPEATS / 8);
    PipeBarrier<PIPE_V>();
    Step<largest>(one_, few_, REPEATS / 64);
    PipeBarrier<PIPE_V>();
    Brcb(spread_, one_, ROWS / 8, {1, 8});
    PipeBarrier<PIPE_V>();
    return spread_;
  }

 private:
  template <bool largest>
  __aicore__ inline void Step(const AscendC::LocalTensor<float>& to,
                              const AscendC::LocalTensor<float>& from, int32_t repeats) {
    if constexpr (largest)
      AscendC::BlockReduceMax<float, false>(to, from, repeats, AscendC::MASK_PLACEHOLDER, 1, 1, 8);
    else
      AscendC::BlockReduceSum<float, false>(to, from, repeats, AscendC::MASK_PLACEHOLDER, 1, 1, 8);
  }

  AscendC::LocalTensor<float> eighth_, few_, one_, spread_;
};

// The flags of two buffers on the way in and on the way out.
__aicore__ inline void BeginSlots() {
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(slot);
    AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(slot);
  }
}

__aicore__ inline void EndSlots() {
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(slot);
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(slot);
  }
}

// A tile of halves is loaded, and made floats.
__aicore__ inline void Load(const AscendC::LocalTensor<float>& wide,
                            const AscendC::LocalTensor<half>& given,
                            const AscendC::GlobalTensor<half>& from, uint32_t slot) {
  using namespace AscendC;
  WaitFlag<HardEvent::V_MTE2>(slot);
  DataCopy(given, from, TILE);
  SetFlag<HardEvent::MTE2_V>(slot);
  WaitFlag<HardEvent::MTE2_V>(slot);
  PipeBarrier<PIPE_V>();
  Cast<float, half, false>(wide, given, RoundMode::CAST_NONE, MASK_PLACEHOLDER, REPEATS,
                           {1, 1, 8, 4});
  SetFlag<HardEvent::V_MTE2>(slot);
}

// A tile of floats is made halves, and stored.
__aicore__ inline void Store(const AscendC::GlobalTensor<half>& to,
                             const AscendC::LocalTensor<half>& made,
                             const AscendC::LocalTensor<float>& wide, uint32_t slot) {
  using namespace AscendC;
  PipeBarrier<PIPE_V>();
  WaitFlag<HardEvent::MTE3_V>(slot);
  Cast<half, float, false>(made, wide, RoundMode::CAST_RINT, MASK_PLACEHOLDER, REPEATS,
                           {1, 1, 4, 8});
  SetFlag<HardEvent::V_MTE3>(slot);
  WaitFlag<HardEvent::V_MTE3>(slot);
  DataCopy(to, made, TILE);
  SetFlag<HardEvent::MTE3_V>(slot);
}
