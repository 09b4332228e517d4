// Looks for the maximum of a tile element by element; better: by ReduceMax.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void largest(GM_ADDR x, GM_ADDR z, uint32_t share) {
  constexpr uint32_t TILE = 2048;
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<TPosition::VECCALC> rest;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  pipe.InitBuffer(rest, TILE * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  to.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    float most = 0;
#ifdef BETTER
    LocalTensor<float> top = rest.Get<float>();
    ReduceMax<float>(top, a, top[64], TILE, false);
    SetFlag<HardEvent::V_S>(1);
    WaitFlag<HardEvent::V_S>(1);
    most = top.GetValue(0);
#else
    SetFlag<HardEvent::MTE2_S>(1);
    WaitFlag<HardEvent::MTE2_S>(1);
    for (uint32_t i = 0; i < TILE; ++i) {
      float one = a.GetValue(i);  // slow
      most = one > most ? one : most;
    }
#endif
    Duplicate(c, most, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(to[at], c, TILE);
    out.FreeTensor(c);
  }
}
