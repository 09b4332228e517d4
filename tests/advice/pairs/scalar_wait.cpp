// Reads the first value of each row of a tile to scale by it; better: scales by a constant.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t ROWS = 8, WIDTH = 1024, TILE = ROWS * WIDTH;

extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR z, uint32_t share) {
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
    for (uint32_t row = 0; row < TILE; row += WIDTH) {
      Exp(c[row], a[row], WIDTH);
      Ln(c[row], c[row], WIDTH);
      float factor = 2;
#ifndef BETTER
      SetFlag<HardEvent::V_S>(0);
      WaitFlag<HardEvent::V_S>(0);  // slow
      factor = c.GetValue(row);
#endif
      Muls(c[row], c[row], factor, WIDTH);
    }
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
}
