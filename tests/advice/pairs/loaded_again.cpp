// Loads its weights for each tile; better: once.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, WEIGHTS = 4 * TILE;

extern "C" __global__ __aicore__ void weigh(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in, weights;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(weights, 2, WEIGHTS * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, ws, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  ws.SetGlobalBuffer((__gm__ float*)w, WEIGHTS);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
#ifdef BETTER
  LocalTensor<float> v = weights.AllocTensor<float>();
  DataCopy(v, ws, WEIGHTS);
  weights.EnQue(v);
  v = weights.DeQue<float>();
#endif
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xs[at], TILE);
    in.EnQue(a);
#ifndef BETTER
    LocalTensor<float> v = weights.AllocTensor<float>();
    DataCopy(v, ws, WEIGHTS);  // slow
    weights.EnQue(v);
    v = weights.DeQue<float>();
#endif
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Mul(c, a, v, TILE);
    for (uint32_t n = 1; n < 4; ++n) Mul(c, c, v[n * TILE], TILE);
    out.EnQue(c);
    in.FreeTensor(a);
#ifndef BETTER
    weights.FreeTensor(v);
#endif
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
#ifdef BETTER
  weights.FreeTensor(v);
#endif
}
