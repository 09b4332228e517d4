// Multiplies each of a block's rows by a strip of weights, loaded for each; better: kept in UB.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024, TILES = 8, ROWS = 8, STRIP = TILE * TILES, TERMS = 4;

extern "C" __global__ __aicore__ void weigh(GM_ADDR x, GM_ADDR w, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in, weights;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, ws, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  ws.SetGlobalBuffer((__gm__ float*)w, TERMS * STRIP);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
#ifdef BETTER
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, TERMS * STRIP * sizeof(float));
  LocalTensor<float> kept = buffer.Get<float>();
#else
  pipe.InitBuffer(weights, 2, TERMS * TILE * sizeof(float));
#endif
  for (uint32_t row = 0; row < ROWS; ++row) {
    for (uint32_t tile = 0; tile < STRIP; tile += TILE) {
      LocalTensor<float> a = in.AllocTensor<float>();
      DataCopy(a, xs[row * STRIP + tile], TILE);
#ifdef BETTER
      LocalTensor<float> v = kept[TERMS * tile];
      if (row == 0) DataCopy(v, ws[TERMS * tile], TERMS * TILE);
#else
      LocalTensor<float> v = weights.AllocTensor<float>();
      DataCopy(v, ws[TERMS * tile], TERMS * TILE);  // slow
      weights.EnQue(v);
      v = weights.DeQue<float>();
#endif
      in.EnQue(a);
      a = in.DeQue<float>();
      LocalTensor<float> c = out.AllocTensor<float>();
      Mul(c, a, v, TILE);
      for (uint32_t term = 1; term < TERMS; ++term) Mul(c, c, v[term * TILE], TILE);
      out.EnQue(c);
      in.FreeTensor(a);
#ifndef BETTER
      weights.FreeTensor(v);
#endif
      c = out.DeQue<float>();
      DataCopy(zs[row * STRIP + tile], c, TILE);
      out.FreeTensor(c);
    }
  }
}
