// Works with 16 of 64 lanes in each repeat; better: with all of them.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048;

extern "C" __global__ __aicore__ void functions(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xs[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
#ifdef BETTER
    Exp(c, a, 64, TILE / 64, {1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Ln(c, c, 64, TILE / 64, {1, 1, 8, 8});
#else
    Exp(c, a, 16, TILE / 16, {1, 1, 2, 2});  // slow
    PipeBarrier<PIPE_V>();
    Ln(c, c, 16, TILE / 16, {1, 1, 2, 2});  // slow
#endif
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
}
