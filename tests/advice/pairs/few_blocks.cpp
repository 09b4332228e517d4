// Adds on the blocks of the launch; better: on all cores.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 8192;

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, 2 * TILE * sizeof(half));
  pipe.InitBuffer(out, 2, TILE * sizeof(half));
  GlobalTensor<half> xs, ys, zs;
  xs.SetGlobalBuffer((__gm__ half*)x + share * GetBlockIdx(), share);
  ys.SetGlobalBuffer((__gm__ half*)y + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ half*)z + share * GetBlockIdx(), share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xs[at], TILE);
    DataCopy(a[TILE], ys[at], TILE);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    Add(c, a, a[TILE], TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<half>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
}
