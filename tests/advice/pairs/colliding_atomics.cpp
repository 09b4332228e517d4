// All cores add their tiles onto the same rows in one order; better: each begins at another row.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILE = 2048, ROWS = 8;

extern "C" __global__ __aicore__ void add_up(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> queue;
  pipe.InitBuffer(queue, 2, TILE * sizeof(float));
  GlobalTensor<float> xs, zs;
  xs.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  zs.SetGlobalBuffer((__gm__ float*)z, ROWS * TILE);
  SetAtomicAdd<float>();
  for (uint32_t i = 0; i < ROWS; ++i) {
#ifdef BETTER
    uint32_t row = (i + GetBlockIdx()) % ROWS;
#else
    uint32_t row = i;
#endif
    LocalTensor<float> a = queue.AllocTensor<float>();
    DataCopy(a, xs[row * TILE], TILE);
    queue.EnQue(a);
    a = queue.DeQue<float>();
    DataCopy(zs[row * TILE], a, TILE);  // slow
    queue.FreeTensor(a);
  }
  SetAtomicNone();
}
