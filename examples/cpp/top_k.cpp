// The 64 largest of each row of 2048 floats, with their places, by sorting: rows are sorted in
// groups of 32, and groups merged four at a time; from queues of 128 on only the first 64 of each
// are taken, since no other can be among the 64 largest.
//
// Shapes: x is [rows, 2048], places is [2048]: 0, 1, 2 ...; scores and picks are [rows, 64]. Blocks
// take rows in turn. Run it with
//   cubecore run top_k.cpp --blocks 8 --arg x=x.npy --arg places=places.npy --arg rows=16
//     --out-arg scores=float32:1024:scores.npy --out-arg picks=uint32:1024:picks.npy

#include "kernel_operator.h"

constexpr uint32_t COLUMNS = 2048;
constexpr uint32_t K = 64;
constexpr uint32_t GROUP = 32;
constexpr uint32_t QUEUE = 4 * GROUP;
constexpr uint32_t WORDS = 2;  // of a record: a score and its place
constexpr uint32_t SLOTS = 2;

using Records = AscendC::LocalTensor<float>;

// Merges four queues that lie `step` records apart, `taken` records of each, `times` times.
inline void merge(const Records& to, const Records& from, uint32_t step, uint16_t taken,
                  uint16_t times) {
  const uint16_t lengths[4] = {taken, taken, taken, taken};
  AscendC::MrgSortSrcList<float> queues(from, from[WORDS * step], from[2 * WORDS * step],
                                        from[3 * WORDS * step]);
  AscendC::MrgSort(to, queues, AscendC::MrgSort4Info(lengths, false, 15, times));
}

extern "C" __global__ __aicore__ void top_k(GM_ADDR x, GM_ADDR places, GM_ADDR scores,
                                            GM_ADDR picks, uint32_t rows) {
  using namespace AscendC;
  GlobalTensor<float> from, values;
  GlobalTensor<uint32_t> order, indices;
  from.SetGlobalBuffer((__gm__ float*)x);
  order.SetGlobalBuffer((__gm__ uint32_t*)places, COLUMNS);
  values.SetGlobalBuffer((__gm__ float*)scores);
  indices.SetGlobalBuffer((__gm__ uint32_t*)picks);
  LocalMemAllocator<Hardware::UB> memory;
  LocalTensor<float> row_at[SLOTS], score[SLOTS];
  LocalTensor<uint32_t> pick[SLOTS];
  for (auto& row : row_at) row = memory.Alloc<float, COLUMNS>();
  LocalTensor<uint32_t> place = memory.Alloc<uint32_t, COLUMNS>();
  Records groups = memory.Alloc<float, WORDS * COLUMNS>();
  Records queues = memory.Alloc<float, WORDS * COLUMNS>();
  Records halfway = memory.Alloc<float, 4 * WORDS * 4 * K>();
  Records merged = memory.Alloc<float, WORDS * 4 * K>();
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    score[slot] = memory.Alloc<float, K>();
    pick[slot] = memory.Alloc<uint32_t, K>();
  }
  DataCopy(place, order, COLUMNS);
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  uint32_t turn = 0;
  for (uint32_t row = GetBlockIdx(); row < rows; row += GetBlockNum(), ++turn) {
    uint32_t slot = turn % SLOTS;
    WaitFlag<HardEvent::V_MTE2>(slot);
    DataCopy(row_at[slot], from[row * COLUMNS], COLUMNS);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    PipeBarrier<PIPE_V>();
    Sort32(groups, row_at[slot], place, COLUMNS / GROUP);
    SetFlag<HardEvent::V_MTE2>(slot);
    PipeBarrier<PIPE_V>();
    merge(queues, groups, GROUP, GROUP, COLUMNS / QUEUE);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < 4; ++part)
      merge(halfway[WORDS * 4 * K * part], queues[WORDS * QUEUE * 4 * part], QUEUE, K, 1);
    PipeBarrier<PIPE_V>();
    merge(merged, halfway, 4 * K, K, 1);
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(slot);
    Extract(score[slot], pick[slot], merged, K / GROUP);
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(values[row * K], score[slot], K);
    DataCopy(indices[row * K], pick[slot], K);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    WaitFlag<HardEvent::V_MTE2>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);
  }
}
