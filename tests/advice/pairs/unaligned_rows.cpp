// Squares the left 64 columns of rows of 72 floats; better: of rows padded to 128.
#include "kernel_operator.h"
using namespace AscendC;
#ifdef BETTER
constexpr uint32_t PITCH = 128;
#else
constexpr uint32_t PITCH = 72;
#endif
constexpr uint32_t WIDTH = 64, ROWS = 64, TILE = WIDTH * ROWS, TILES = 8;

extern "C" __global__ __aicore__ void square(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + TILES * ROWS * PITCH * GetBlockIdx(), TILES * ROWS * PITCH);
  zs.SetGlobalBuffer((__gm__ float*)z + TILES * TILE * GetBlockIdx(), TILES * TILE);
  for (uint32_t tile = 0; tile < TILES; ++tile) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopyParams rows(ROWS, WIDTH / 8, (PITCH - WIDTH) / 8, 0);
    DataCopy(a, xs[tile * ROWS * PITCH], rows);  // slow
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Mul(c, a, a, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[tile * TILE], c, TILE);
    out.FreeTensor(c);
  }
}
