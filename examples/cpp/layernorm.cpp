// Layer normalisation over rows of 512 halves, computed in float:
// y = (x - mean) / sqrt(variance + EPSILON) * gamma + beta, the variance that of the differences.
//
// Every block (an AIV) takes `rows` rows, ROWS of them at a time, two buffers taking turns; gamma
// and beta stay in UB. Shapes: x and y are [rows times the blocks, 512], rows a multiple of ROWS;
// gamma and beta are [512] floats. Run it with
//   cubecore run layernorm.cpp --blocks 2 --arg x=x.npy --arg gamma=gamma.npy --arg beta=beta.npy
//     --arg rows=48 --out-arg y=float16:96x512:y.npy

#include "row_tiles.h"

constexpr float EPSILON = 1e-5f;
constexpr uint8_t SPREAD = ROWS * 8 / LANES;  // repeats of one block for each row

extern "C" __global__ __aicore__ void layernorm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y,
                                                uint32_t rows) {
  using namespace AscendC;
  Memory memory;
  RowReduction reduction;
  LocalTensor<half> given[SLOTS], made[SLOTS];
  for (auto& one : given) one = memory.Take<half>(TILE);
  for (auto& one : made) one = memory.Take<half>(TILE);
  LocalTensor<float> wide = memory.Take<float>(TILE), square = memory.Take<float>(TILE);
  reduction.Init(memory);
  LocalTensor<float> scale = memory.Take<float>(COLUMNS), shift = memory.Take<float>(COLUMNS);
  GlobalTensor<half> from, to;
  GlobalTensor<float> from_gamma, from_beta;
  uint64_t begin = static_cast<uint64_t>(GetBlockIdx()) * rows * COLUMNS;
  from.SetGlobalBuffer((__gm__ half*)x + begin, rows * COLUMNS);
  to.SetGlobalBuffer((__gm__ half*)y + begin, rows * COLUMNS);
  from_gamma.SetGlobalBuffer((__gm__ float*)gamma, COLUMNS);
  from_beta.SetGlobalBuffer((__gm__ float*)beta, COLUMNS);
  BinaryRepeatParams by_rows(1, 1, 0, PITCH, PITCH, 1), by_columns(1, 1, 1, PITCH, PITCH, 0);
  UnaryRepeatParams dense(1, 1, 8, 8);
  SetVectorMask<float>(ALL, ALL);
  DataCopy(scale, from_gamma, COLUMNS);
  DataCopy(shift, from_beta, COLUMNS);
  BeginSlots();
  for (uint32_t tile = 0; tile < rows / ROWS; ++tile) {
    uint32_t slot = tile % SLOTS;
    Load(wide, given[slot], from[tile * TILE], slot);
    LocalTensor<float> spread = reduction.Reduce<false>(wide);
    Muls<float, false>(spread, spread, 1.0f / COLUMNS, MASK_PLACEHOLDER, SPREAD, dense);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Sub<float, false>(wide[part], wide[part], spread, MASK_PLACEHOLDER, ROWS, by_rows);
    PipeBarrier<PIPE_V>();
    Mul<float, false>(square, wide, wide, MASK_PLACEHOLDER, REPEATS, {1, 1, 1, 8, 8, 8});
    spread = reduction.Reduce<false>(square);
    Muls<float, false>(spread, spread, 1.0f / COLUMNS, MASK_PLACEHOLDER, SPREAD, dense);
    PipeBarrier<PIPE_V>();
    Adds<float, false>(spread, spread, EPSILON, MASK_PLACEHOLDER, SPREAD, dense);
    PipeBarrier<PIPE_V>();
    Sqrt<float, false>(spread, spread, MASK_PLACEHOLDER, SPREAD, dense);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Div<float, false>(wide[part], wide[part], spread, MASK_PLACEHOLDER, ROWS, by_rows);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Mul<float, false>(wide[part], wide[part], scale[part], MASK_PLACEHOLDER, ROWS, by_columns);
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < COLUMNS; part += LANES)
      Add<float, false>(wide[part], wide[part], shift[part], MASK_PLACEHOLDER, ROWS, by_columns);
    Store(to[tile * TILE], made[slot], wide, slot);
  }
  EndSlots();
}
