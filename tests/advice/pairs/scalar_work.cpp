// Fills a vector element by element; better: by a vector instruction.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 1024;

extern "C" __global__ __aicore__ void run(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  TBuf<TPosition::VECCALC> idx;
  pipe.InitBuffer(in, 2, TILE * sizeof(float));
  pipe.InitBuffer(out, 2, TILE * sizeof(float));
  pipe.InitBuffer(idx, TILE * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  for (uint32_t at = 0; at < share; at += TILE) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xs[at], TILE);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> ramp = idx.Get<float>();
#ifdef BETTER
    Duplicate(ramp, 2.0f, TILE);
#else
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    for (uint32_t i = 0; i < TILE; ++i) ramp.SetValue(i, 2.0f);  // slow
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
#endif
    LocalTensor<float> c = out.AllocTensor<float>();
    Mul(c, a, ramp, TILE);
    out.EnQue(c);
    in.FreeTensor(a);
    c = out.DeQue<float>();
    DataCopy(zs[at], c, TILE);
    out.FreeTensor(c);
  }
}
