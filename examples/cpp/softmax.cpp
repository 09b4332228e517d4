// Softmax over rows of 512 halves, computed in float.
//
// Every block (an AIV) takes `rows` rows, ROWS of them at a time, two buffers taking turns. Shapes:
// x and y are [rows times the blocks, 512], rows a multiple of ROWS. Run it with
//   cubecore run softmax.cpp --blocks 2 --arg x=x.npy --arg rows=48
//     --out-arg y=float16:96x512:y.npy

#include "row_tiles.h"

extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, uint32_t rows) {
  using namespace AscendC;
  Memory memory;
  RowReduction reduction;
  LocalTensor<half> given[SLOTS], made[SLOTS];
  for (auto& one : given) one = memory.Take<half>(TILE);
  for (auto& one : made) one = memory.Take<half>(TILE);
  LocalTensor<float> wide = memory.Take<float>(TILE);
  reduction.Init(memory);
  GlobalTensor<half> from, to;
  uint64_t begin = static_cast<uint64_t>(GetBlockIdx()) * rows * COLUMNS;
  from.SetGlobalBuffer((__gm__ half*)x + begin, rows * COLUMNS);
  to.SetGlobalBuffer((__gm__ half*)y + begin, rows * COLUMNS);
  BinaryRepeatParams by_rows(1, 1, 0, PITCH, PITCH, 1);
  SetVectorMask<float>(ALL, ALL);
  BeginSlots();
  for (uint32_t tile = 0; tile < rows / ROWS; ++tile) {
    uint32_t slot = tile % SLOTS;
    Load(wide, given[slot], from[tile * TILE], slot);
    LocalTensor<float> spread = reduction.Reduce<true>(wide);
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Sub<float, false>(wide[part], wide[part], spread, MASK_PLACEHOLDER, ROWS, by_rows);
    PipeBarrier<PIPE_V>();
    Exp<float, false>(wide, wide, MASK_PLACEHOLDER, REPEATS, {1, 1, 8, 8});
    spread = reduction.Reduce<false>(wide);
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Div<float, false>(wide[part], wide[part], spread, MASK_PLACEHOLDER, ROWS, by_rows);
    Store(to[tile * TILE], made[slot], wide, slot);
  }
  EndSlots();
}
