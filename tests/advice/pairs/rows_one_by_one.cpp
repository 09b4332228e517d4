// Copies the rows of a tile one by one; better: in one copy of so many rows.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 100, PITCH = 104, ROWS = 32, TILE = ROWS * PITCH;

extern "C" __global__ __aicore__ void run(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  DataCopyExtParams one(1, WIDTH * 4, 0, 0, 0), all(ROWS, WIDTH * 4, 0, 0, 0);
  DataCopyPadExtParams<float> none(false, 0, 0, 0);
  for (uint32_t at = 0; at < share; at += WIDTH * ROWS) {
    LocalTensor<float> a = in.AllocTensor<float>();
#ifdef BETTER
    DataCopyPad(a, xs[at], all, none);
#else
    for (uint32_t r = 0; r < ROWS; ++r)
      DataCopyPad(a[r * PITCH], xs[at + r * WIDTH], one, none);  // slow
#endif
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Exp(c, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
#ifdef BETTER
    DataCopyPad(zs[at], c, all);
#else
    for (uint32_t r = 0; r < ROWS; ++r)
      DataCopyPad(zs[at + r * WIDTH], c[r * PITCH], one);  // slow
#endif
    out.FreeTensor(c);
  }
}
