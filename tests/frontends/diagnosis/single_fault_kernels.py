"""Kernels of the class API and the C API, and one fault of each, by its name.

A kernel is named `k`; faults are pairs of a text and what stands for it.
"""

QUEUE = """
constexpr uint32_t TILE = 1024;

class Op {
 public:
  __aicore__ inline Op() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
    share_ = share;
    xGm.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
    yGm.SetGlobalBuffer((__gm__ float*)y + share * GetBlockIdx(), share);
    zGm.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
    pipe.InitBuffer(inX, 2, TILE * sizeof(float));
    pipe.InitBuffer(inY, 2, TILE * sizeof(float));
    pipe.InitBuffer(outZ, 2, TILE * sizeof(float));
    pipe.InitBuffer(work, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    uint32_t tiles = share_ / TILE;
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      CopyIn(tile);
      Compute();
      CopyOut(tile);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t tile) {
    LocalTensor<float> x = inX.AllocTensor<float>();
    LocalTensor<float> y = inY.AllocTensor<float>();
    DataCopy(x, xGm[tile * TILE], TILE);
    DataCopy(y, yGm[tile * TILE], TILE);
    inX.EnQue(x);
    inY.EnQue(y);
  }
  __aicore__ inline void Compute() {
    LocalTensor<float> x = inX.DeQue<float>();
    LocalTensor<float> y = inY.DeQue<float>();
    LocalTensor<float> z = outZ.AllocTensor<float>();
    LocalTensor<float> t = work.Get<float>();
    PipeBarrier<PIPE_V>();
    Mul(t, x, y, TILE);
    PipeBarrier<PIPE_V>();
    Muls(t, t, 2.0f, TILE);
    PipeBarrier<PIPE_V>();
    Add(z, t, x, TILE);
    outZ.EnQue(z);
    inX.FreeTensor(x);
    inY.FreeTensor(y);
  }
  __aicore__ inline void CopyOut(uint32_t tile) {
    LocalTensor<float> z = outZ.DeQue<float>();
    DataCopy(zGm[tile * TILE], z, TILE);
    outZ.FreeTensor(z);
  }

  TPipe pipe;
  TQue<TPosition::VECIN, 1> inX, inY;
  TQue<TPosition::VECOUT, 1> outZ;
  TBuf<TPosition::VECCALC> work;
  GlobalTensor<float> xGm, yGm, zGm;
  uint32_t share_;
};

extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
  Op op;
  op.Init(x, y, z, share);
  op.Process();
}
"""
"""Two tiles of z = 2 x y + x at a time, by queues."""
PAD = """
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z, uint32_t rows) {
  GlobalTensor<float> xGm, zGm;
  xGm.SetGlobalBuffer((__gm__ float*)x);
  zGm.SetGlobalBuffer((__gm__ float*)z);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 16 * 64 * sizeof(float));
  pipe.InitBuffer(out, 1, 16 * 64 * sizeof(float));
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopyPadExtParams<float> pad{true, 0, 4, 0.0f};
  DataCopyExtParams rowsIn{static_cast<uint16_t>(rows), 60 * sizeof(float), 0, 0, 0};
  DataCopyPad(a, xGm, rowsIn, pad);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  Exp(b, a, rows * 64);
  out.EnQue(b);
  in.FreeTensor(a);
  b = out.DeQue<float>();
  DataCopyExtParams rowsOut{static_cast<uint16_t>(rows), 60 * sizeof(float), 0, 0, 0};
  DataCopyPad(zGm, b, rowsOut);
  out.FreeTensor(b);
}
"""
"""Rows of 60 floats, 64 apart in UB."""
RED = """
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z, uint32_t n) {
  GlobalTensor<float> xGm, zGm;
  xGm.SetGlobalBuffer((__gm__ float*)x);
  zGm.SetGlobalBuffer((__gm__ float*)z);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> lanes, total;
  pipe.InitBuffer(in, 1, n * sizeof(float));
  pipe.InitBuffer(out, 1, n * sizeof(float));
  pipe.InitBuffer(lanes, 64 * sizeof(float));
  pipe.InitBuffer(total, 32);
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, xGm, n);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> p = lanes.Get<float>(), s = total.Get<float>();
  WholeReduceMax<float>(p, a, 64, n / 64, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  PipeBarrier<PIPE_V>();
  WholeReduceMax<float>(s, p, n / 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  event_t done = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_S));
  SetFlag<HardEvent::V_S>(done);
  WaitFlag<HardEvent::V_S>(done);
  float most = s.GetValue(0);
  event_t back = static_cast<event_t>(pipe.FetchEventID(HardEvent::S_V));
  SetFlag<HardEvent::S_V>(back);
  WaitFlag<HardEvent::S_V>(back);
  LocalTensor<float> b = out.AllocTensor<float>();
  Adds(b, a, -most, n);
  out.EnQue(b);
  in.FreeTensor(a);
  b = out.DeQue<float>();
  DataCopy(zGm, b, n);
  out.FreeTensor(b);
}
"""
"""x less its greatest element, which the scalar unit reads."""
MASK = """
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {
  GlobalTensor<half> xGm, zGm;
  xGm.SetGlobalBuffer((__gm__ half*)x + 2048 * GetBlockIdx());
  zGm.SetGlobalBuffer((__gm__ half*)z + 2048 * GetBlockIdx());
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> wide;
  pipe.InitBuffer(in, 1, 2048 * sizeof(half));
  pipe.InitBuffer(out, 1, 2048 * sizeof(half));
  pipe.InitBuffer(wide, 2048 * sizeof(float));
  LocalTensor<half> a = in.AllocTensor<half>();
  DataCopy(a, xGm, 2048);
  in.EnQue(a);
  a = in.DeQue<half>();
  LocalTensor<float> w = wide.Get<float>();
  Cast(w, a, RoundMode::CAST_NONE, 64, 32, {1, 1, 8, 4});
  PipeBarrier<PIPE_V>();
  Sqrt(w, w, 64, 32, {1, 1, 8, 8});
  PipeBarrier<PIPE_V>();
  LocalTensor<half> b = out.AllocTensor<half>();
  Cast(b, w, RoundMode::CAST_RINT, 64, 32, {1, 1, 4, 8});
  out.EnQue(b);
  in.FreeTensor(a);
  b = out.DeQue<half>();
  DataCopy(zGm, b, 2048);
  out.FreeTensor(b);
}
"""
"""The root of halves, in float, by repeats."""
SYNC = """
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z, GM_ADDR work) {
  GlobalTensor<float> xGm, zGm, workGm;
  xGm.SetGlobalBuffer((__gm__ float*)x + 256 * GetBlockIdx());
  zGm.SetGlobalBuffer((__gm__ float*)z + 256 * GetBlockIdx());
  workGm.SetGlobalBuffer((__gm__ float*)work);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 256 * sizeof(float));
  pipe.InitBuffer(out, 1, 256 * sizeof(float));
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, xGm, 256);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  Relu(b, a, 256);
  out.EnQue(b);
  in.FreeTensor(a);
  b = out.DeQue<float>();
  DataCopy(workGm[256 * GetBlockIdx()], b, 256);
  out.FreeTensor(b);
  SyncAll();
  LocalTensor<float> c = in.AllocTensor<float>();
  DataCopy(c, workGm[256 * (GetBlockNum() - 1 - GetBlockIdx())], 256);
  in.EnQue(c);
  c = in.DeQue<float>();
  LocalTensor<float> d = out.AllocTensor<float>();
  Abs(d, c, 256);
  out.EnQue(d);
  in.FreeTensor(c);
  d = out.DeQue<float>();
  DataCopy(zGm, d, 256);
  out.FreeTensor(d);
}
"""
"""A block takes what the one opposite has stored."""
LOOPED = """constexpr uint32_t TILE = 512;
extern "C" __vector__ __global__ __aicore__ void k(__gm__ float* x, __gm__ float* z,
                                                   uint32_t tiles) {
  __ubuf__ float a[2 * TILE];
  __ubuf__ float b[2 * TILE];
  __ubuf__ float w[TILE];
  uint64_t begin = static_cast<uint64_t>(tiles) * TILE * asc_get_block_idx();
  for (int slot = 0; slot < 2; ++slot) {
    asc_sync_notify(PIPE_V, PIPE_MTE2, slot);
    asc_sync_notify(PIPE_MTE3, PIPE_V, slot);
  }
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    uint32_t slot = tile % 2, at = slot * TILE;
    asc_sync_wait(PIPE_V, PIPE_MTE2, slot);
    asc_copy_gm2ub(a + at, x + begin + tile * TILE, TILE * sizeof(float));
    asc_sync_notify(PIPE_MTE2, PIPE_V, slot);
    asc_sync_wait(PIPE_MTE2, PIPE_V, slot);
    asc_sync_pipe(PIPE_V);
    asc_mul(w, a + at, a + at, TILE);
    asc_sync_notify(PIPE_V, PIPE_MTE2, slot);
    asc_sync_wait(PIPE_MTE3, PIPE_V, slot);
    asc_sync_pipe(PIPE_V);
    asc_add_scalar(b + at, w, 1.0f, TILE);
    asc_sync_notify(PIPE_V, PIPE_MTE3, slot);
    asc_sync_wait(PIPE_V, PIPE_MTE3, slot);
    asc_copy_ub2gm(z + begin + tile * TILE, b + at, TILE * sizeof(float));
    asc_sync_notify(PIPE_MTE3, PIPE_V, slot);
  }
  for (int slot = 0; slot < 2; ++slot) {
    asc_sync_wait(PIPE_V, PIPE_MTE2, slot);
    asc_sync_wait(PIPE_MTE3, PIPE_V, slot);
  }
}
"""
"""Two slots, by flags."""
COUNTED = """extern "C" __vector__ __global__ __aicore__ void k(__gm__ float* x, __gm__ float* z) {
  __ubuf__ float a[512];
  __ubuf__ float b[512];
  __ubuf__ float s[64];
  uint64_t begin = 512 * asc_get_block_idx();
  asc_copy_gm2ub(a, x + begin, 2048);
  asc_sync_notify(PIPE_MTE2, PIPE_V, 0);
  asc_sync_wait(PIPE_MTE2, PIPE_V, 0);
  asc_set_mask_count();
  asc_set_vector_mask(0, 512);
  asc_mul(b, a, a, 1, 1, 1, 1, 8, 8, 8);
  asc_set_mask_norm();
  asc_set_vector_mask(-1, -1);
  asc_sync_pipe(PIPE_V);
  asc_repeat_reduce_sum(s, b, 8, 1, 1, 8);
  asc_sync_notify(PIPE_V, PIPE_MTE3, 0);
  asc_sync_wait(PIPE_V, PIPE_MTE3, 0);
  asc_copy_ub2gm(z + 8 * asc_get_block_idx(), s, 32);
}
"""
"""A sum under a count, then under a full mask."""
