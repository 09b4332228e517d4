// Squares in tiles, each tile in parts.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void weigh(GM_ADDR x, GM_ADDR z, GM_ADDR workspace,
                                            GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + data.share * GetBlockIdx(), data.share);
  to.SetGlobalBuffer((__gm__ float*)z + data.share * GetBlockIdx(), data.share);
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, data.tile * sizeof(float));
  pipe.InitBuffer(out, 2, data.tile * sizeof(float));
  for (uint32_t at = 0; at < data.share; at += data.tile) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], data.tile);  // slow: small_copies
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    for (uint32_t part = 0; part < data.tile; part += data.part)
      Mul(c[part], a[part], a[part], data.part);  // slow: short_vectors
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, data.tile);
    out.FreeTensor(c);
  }
}
