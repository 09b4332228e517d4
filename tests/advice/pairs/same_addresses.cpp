// All cores multiply by the same parts of w in one order; better: each begins at another part.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 8192, PARTS = 8;

extern "C" __global__ __aicore__ void run(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TBuf<TPosition::VECCALC> own, sum;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(own, TILE * sizeof(float));
  pipe.InitBuffer(sum, TILE * sizeof(float));
  GlobalTensor<float> xs, ws, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  ws.SetGlobalBuffer((__gm__ float*)w, PARTS * TILE);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  LocalTensor<float> a = own.Get<float>(), c = sum.Get<float>();
  DataCopy(a, xs, TILE);
  Duplicate(c, 0.0f, TILE);
  PipeBarrier<PIPE_ALL>();
  for (uint32_t i = 0; i < PARTS; ++i) {
#ifdef BETTER
    uint32_t part = (i + GetBlockIdx()) % PARTS;
#else
    uint32_t part = i;
#endif
    LocalTensor<float> b = in.AllocTensor<float>();
    DataCopy(b, ws[part * TILE], TILE);  // slow
    in.EnQue(b);
    b = in.DeQue<float>();
    MulAddDst(c, a, b, TILE);
    in.FreeTensor(b);
  }
  PipeBarrier<PIPE_ALL>();
  DataCopy(zs, c, TILE);
}
