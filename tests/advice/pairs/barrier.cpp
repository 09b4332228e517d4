// Waits for all pipes behind each step; better: queues of two buffers.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 4096;

extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR z, uint32_t share) {
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  TPipe pipe;
#ifdef BETTER
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xs[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Exp(c, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
#else
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 2 * TILE * sizeof(float));
  LocalTensor<float> a = buffer.Get<float>(), c = a[TILE];
  for (uint32_t at = 0; at < share; at += TILE) {
    DataCopy(a, xs[at], TILE);
    PipeBarrier<PIPE_ALL>();  // slow
    Exp(c, a, TILE);
    PipeBarrier<PIPE_ALL>();  // slow
    DataCopy(zs[at], c, TILE);
    PipeBarrier<PIPE_ALL>();  // slow
  }
#endif
}
