// x faded by the four parts of w.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t PARTS = 4;

extern "C" __global__ __aicore__ void fade(GM_ADDR x, GM_ADDR w, GM_ADDR z, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  uint32_t tile = data.tile;
  GlobalTensor<half> from, weights, to;
  from.SetGlobalBuffer((__gm__ half*)x + data.share * GetBlockIdx(), data.share);
  to.SetGlobalBuffer((__gm__ half*)z + data.share * GetBlockIdx(), data.share);
  weights.SetGlobalBuffer((__gm__ half*)w, PARTS * tile);
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECIN, 1> aside;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, tile * sizeof(half));
  pipe.InitBuffer(aside, 1, PARTS * tile * sizeof(half));
  pipe.InitBuffer(out, 2, tile * sizeof(half));
  LocalTensor<half> b;
  for (uint32_t at = 0; at < data.share; at += tile) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, from[at], tile);  // slow: tile
    in.EnQue(a);
    if (at == 0 || !data.held) {
      b = aside.AllocTensor<half>();
      DataCopy(b, weights, PARTS * tile);  // slow: held
      aside.EnQue(b);
      b = aside.DeQue<half>();
    }
    a = in.DeQue<half>();
    LocalTensor<half> c = out.AllocTensor<half>();
    Mul(c, a, b, tile);
    for (uint32_t part = 1; part < PARTS; ++part) Mul(c, c, b[part * tile], tile);
    out.EnQue(c);
    in.FreeTensor(a);
    if (!data.held || at + tile >= data.share) aside.FreeTensor(b);
    c = out.DeQue<half>();
    DataCopy(to[at], c, tile);  // slow: tile
    out.FreeTensor(c);
  }
}
