// Slow kernels that no rule was written by, each with one cause; with BETTER, without it.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr bool SLOW = false;
#else
constexpr bool SLOW = true;
#endif

template <typename T>
__aicore__ inline GlobalTensor<T> Share(GM_ADDR at, uint32_t share) {
  GlobalTensor<T> made;
  made.SetGlobalBuffer((__gm__ T*)at + share * GetBlockIdx(), share);
  return made;
}

// Halves to floats, 512 B at a time.
extern "C" __global__ __aicore__ void widened(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = SLOW ? 256 : 8192;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<half> from = Share<half>(x, share);
  GlobalTensor<float> to = Share<float>(z, share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, from[at], TILE);  // slow: widened
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Cast(c, a, RoundMode::CAST_NONE, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);  // slow: widened
    out.FreeTensor(c);
  }
}

// On six of forty cores.
extern "C" __global__ __aicore__ void curved(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 4096;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> from = Share<half>(x, share), to = Share<half>(z, share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    Exp(c, a, TILE);
    Adds(c, c, (half)1.0, TILE);
    Ln(c, c, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<half>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}

// Flags by hand, with one buffer of each kind.
extern "C" __global__ __aicore__ void by_hand(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 2048, SLOTS = SLOW ? 1 : 2;
  LocalTensor<float> a[2] = {LocalTensor<float>(TPosition::VECIN, 0, TILE),
                             LocalTensor<float>(TPosition::VECIN, 4 * TILE, TILE)};
  LocalTensor<float> c[2] = {LocalTensor<float>(TPosition::VECOUT, 8 * TILE, TILE),
                             LocalTensor<float>(TPosition::VECOUT, 12 * TILE, TILE)};
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, share);
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  uint32_t turn = 0;
  for (uint32_t at = 0; at < share; at += TILE, ++turn) {
    uint32_t slot = turn % SLOTS;
    WaitFlag<HardEvent::V_MTE2>(slot);  // slow: by_hand
    DataCopy(a[slot], from[at], TILE);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);  // slow: by_hand
    Abs(c[slot], a[slot], TILE);
    PipeBarrier<PIPE_V>();
    Sqrt(c[slot], c[slot], TILE);
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(to[at], c[slot], TILE);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  for (uint32_t slot = 0; slot < SLOTS; ++slot) {
    WaitFlag<HardEvent::V_MTE2>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);
  }
}

// A barrier of all pipes behind each step.
extern "C" __global__ __aicore__ void in_steps(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 4096;
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, share);
  TPipe pipe;
#ifdef BETTER
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
#else
  TBuf<TPosition::VECCALC> given, made;
  pipe.InitBuffer(given, TILE * sizeof(float));
  pipe.InitBuffer(made, TILE * sizeof(float));
#endif
  for (uint32_t at = 0; at < share; at += TILE) {
#ifdef BETTER
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Maxs(c, a, 0.5f, TILE);
    PipeBarrier<PIPE_V>();
    Mins(c, c, 1.5f, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
#else
    LocalTensor<float> a = given.Get<float>(), c = made.Get<float>();
    DataCopy(a, from[at], TILE);
    PipeBarrier<PIPE_ALL>();  // slow: in_steps
    Maxs(c, a, 0.5f, TILE);
    PipeBarrier<PIPE_V>();
    Mins(c, c, 1.5f, TILE);
    PipeBarrier<PIPE_ALL>();  // slow: in_steps
    DataCopy(to[at], c, TILE);
    PipeBarrier<PIPE_ALL>();  // slow: in_steps
#endif
  }
}

// A ReLU of a row of 128 halves at a time.
extern "C" __global__ __aicore__ void by_rows(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t WIDTH = 128, TILE = 64 * WIDTH;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> from = Share<half>(x, share), to = Share<half>(z, share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    if (SLOW)
      for (uint32_t row = 0; row < TILE; row += WIDTH) Relu(c[row], a[row], WIDTH);  // slow: by_rows
    else
      Relu(c, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<half>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}

// The same four biases for each tile, loaded with each.
extern "C" __global__ __aicore__ void biased(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 2048, PARTS = 4;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECIN, 1> aside;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(aside, 1, PARTS * TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, share), bias;
  bias.SetGlobalBuffer((__gm__ float*)w, PARTS * TILE);
  LocalTensor<float> b;
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    if (SLOW || at == 0) {
      b = aside.AllocTensor<float>();
      DataCopy(b, bias, PARTS * TILE);  // slow: biased
      aside.EnQue(b);
      b = aside.DeQue<float>();
    }
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Add(c, a, b, TILE);
    for (uint32_t part = 1; part < PARTS; ++part) Add(c, c, b[part * TILE], TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    if (SLOW) aside.FreeTensor(b);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
  if (!SLOW) aside.FreeTensor(b);
}

// A quarter of the lanes in each repeat.
extern "C" __global__ __aicore__ void quarters(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 4096;
  constexpr uint64_t LANES = SLOW ? 32 : 128;
  constexpr uint8_t STRIDE = LANES / 16, REPEATS = TILE / LANES;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> from = Share<half>(x, share), to = Share<half>(z, share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    Exp(c, a, LANES, REPEATS, {1, 1, STRIDE, STRIDE});  // slow: quarters
    PipeBarrier<PIPE_V>();
    Sqrt(c, c, LANES, REPEATS, {1, 1, STRIDE, STRIDE});  // slow: quarters
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<half>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}

// Reads a maximum of each part back, to scale by it; without, scales by a constant.
extern "C" __global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 8192, PART = 1024;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<TPosition::VECCALC> rest;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  pipe.InitBuffer(rest, PART * sizeof(float));
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, share);
  LocalTensor<float> work = rest.Get<float>();
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    for (uint32_t part = 0; part < TILE; part += PART) {
      float by = 0.5f;
      Abs(c[part], a[part], PART);
      PipeBarrier<PIPE_V>();
#ifndef BETTER
      SetFlag<HardEvent::V_S>(1);
      WaitFlag<HardEvent::V_S>(1);  // slow: scaled
      by = c.GetValue(part);
#endif
      Muls(c[part], c[part], by, PART);
    }
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}

// How many elements are above a limit, counted one by one; better: by Adds, Maxs and Add.
extern "C" __global__ __aicore__ void counted(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 4096;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TBuf<TPosition::VECCALC> rest;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(rest, TILE * sizeof(float));
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, 8);
  LocalTensor<float> c = rest.Get<float>();
  Duplicate(c, 0.0f, TILE);
  float sum = 0;
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
#ifdef BETTER
    Adds(a, a, -1.0f, TILE);
    PipeBarrier<PIPE_V>();
    Maxs(a, a, 0.0f, TILE);
    PipeBarrier<PIPE_V>();
    Add(c, c, a, TILE);
#else
    SetFlag<HardEvent::MTE2_S>(1);
    WaitFlag<HardEvent::MTE2_S>(1);
    for (uint32_t i = 0; i < TILE; ++i) sum += a.GetValue(i) > 1.0f;  // slow: counted
#endif
    in.FreeTensor(a);
  }
  PipeBarrier<PIPE_ALL>();
  Adds(c, c, sum, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, c, 8);
}

// Rows of 96 halves that are 104 apart; better: 128 apart.
extern "C" __global__ __aicore__ void off_lines(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t WIDTH = 96, PITCH = SLOW ? 104 : 128, ROWS = 64, TILES = 10;
  constexpr uint32_t TILE = ROWS * WIDTH;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> from = Share<half>(x, TILES * ROWS * PITCH), to = Share<half>(z, TILES * TILE);
  DataCopyExtParams rows(ROWS, WIDTH * 2, (PITCH - WIDTH) * 2, 0, 0);
  DataCopyPadExtParams<half> none(false, 0, 0, 0);
  for (uint32_t tile = 0; tile < TILES; ++tile) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopyPad(a, from[tile * ROWS * PITCH], rows, none);  // slow: off_lines
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    Abs(c, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<half>();
    DataCopy(to[tile * TILE], c, TILE);
    out.FreeTensor(c);
  }
}

// 48 parts dealt to 40 blocks; better: 40 parts.
extern "C" __global__ __aicore__ void dealt(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t COUNT = SLOW ? 48 : 40, TILE = 2048, PART = 48 * 10 / COUNT * TILE;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, COUNT * PART);
  to.SetGlobalBuffer((__gm__ float*)z, COUNT * PART);
  uint32_t tiles = PART / TILE, own = (COUNT - GetBlockIdx() - 1) / GetBlockNum() + 1;
  for (uint32_t turn = 0; turn < own * tiles; ++turn) {
    uint32_t part = GetBlockIdx() + turn / tiles * GetBlockNum();
    uint32_t at = part * PART + turn % tiles * TILE;
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Exp(c, a, TILE);
    for (uint32_t again = 0; again < 6; ++again) Ln(c, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}

// Stores the rows of a tile one by one, 96 floats each, 128 apart.
extern "C" __global__ __aicore__ void spread_out(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  constexpr uint32_t WIDTH = 96, PITCH = 128, ROWS = 48, TILE = ROWS * WIDTH;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  uint32_t tiles = share / TILE;
  GlobalTensor<float> from = Share<float>(x, share), to = Share<float>(z, tiles * ROWS * PITCH);
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[tile * TILE], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Adds(c, a, 1.0f, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    if (SLOW)
      for (uint32_t row = 0; row < ROWS; ++row)
        DataCopy(to[(tile * ROWS + row) * PITCH], c[row * WIDTH], WIDTH);  // slow: spread_out
    else
      DataCopy(to[tile * ROWS * PITCH], c, {ROWS, WIDTH / 8, 0, (PITCH - WIDTH) / 8});
    out.FreeTensor(c);
  }
}
