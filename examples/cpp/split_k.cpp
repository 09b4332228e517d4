// C += A B with K shared out: blocks that have one tile of C and another part of K add their sums
// in global memory, by atomic stores. C must hold zeros, or what the product is added to.
//
// A is [m, k], B is [k, n], both half; C is [m, n] in float. m and n are multiples of M and N, k of
// CHUNK times `shares`; there are shares * m / M * n / N blocks. Run it with
//   cubecore run split_k.cpp --blocks 4 --arg a=a.npy --arg b=b.npy --arg c=c.npy --arg n=128
//     --arg k=1024 --arg shares=4

#include "cube_tiles.h"

extern "C" __global__ __cube__ void split_k(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t n, uint32_t k,
                                            uint32_t shares) {
  using namespace AscendC;
  GlobalTensor<float> to, no_bias;
  to.SetGlobalBuffer((__gm__ float*)c);
  Products products;
  products.Init(a, b, n, k);
  uint32_t tile = GetBlockIdx() / shares, share = GetBlockIdx() % shares;
  uint32_t row = tile / (n / N) * M, column = tile % (n / N) * N;
  products.Sum<false>(0, row, column, k / shares * share, k / shares * (share + 1), no_bias);
  SetAtomicAdd<float>();
  Fixpipe(to[row * n + column], products.sums[0], FixpipeParamsV220(N, M, M, n, false));
  SetAtomicNone();
  SetFlag<HardEvent::FIX_M>(0);
  products.Finish();
}
