// Y = leaky_relu(A B + bias) by the Matmul object: AIVs ask for tiles, their AIC computes them.
//
// Each AIV takes a share of singleCoreM x singleCoreN of Y. The object brings a tile of
// baseM x baseN to UB; the AIV applies the activation and writes it out. The first tiles are under
// way before they are asked for. A and B are half, bias and Y float; extents and blocks come in a
// TCubeTiling, whose shares must be whole base blocks:
//   tiling = cubecore.plan(m=256, n=512, k=512, bias="float32", launch="mix", template="NORM",
//     cores=4, fix={"singleCoreM": 128, "singleCoreN": 256, "baseM": 64, "baseN": 128}).tiling
//   cubecore.load("matmul_object.cpp").leaky_product[2](a, b, bias, y, tiling_bytes)

#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

namespace {

constexpr float SLOPE = 0.01f;

using Left = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Right = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Result = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;
using Bias = MatmulType<TPosition::GM, CubeFormat::ND, float>;

class LeakyProduct {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR y, TPipe* pipe) {
    uint32_t along = tiling.M / tiling.singleCoreM;
    uint64_t row = GetBlockIdx() % along * tiling.singleCoreM;
    uint64_t column = GetBlockIdx() / along * tiling.singleCoreN;
    left_.SetGlobalBuffer((__gm__ half*)a + row * tiling.Ka);
    right_.SetGlobalBuffer((__gm__ half*)b + column);
    bias_.SetGlobalBuffer((__gm__ float*)bias + column);
    y_.SetGlobalBuffer((__gm__ float*)y + row * tiling.N + column);
    uint32_t bytes = tiling.baseM * tiling.baseN * sizeof(float);
    pipe->InitBuffer(given_, 2, bytes);
    pipe->InitBuffer(made_, 2, bytes);
  }
  __aicore__ inline void Process() {
    product.SetTensorA(left_);
    product.SetTensorB(right_);
    product.SetBias(bias_);
    product.Iterate<false>();
    uint32_t along = tiling.singleCoreM / tiling.baseM;
    uint32_t tiles = along * (tiling.singleCoreN / tiling.baseN);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      LocalTensor<float> sums = given_.AllocTensor<float>();
      product.GetTensorC<false>(sums, 0, true);
      given_.EnQue(sums);
      Activate();
      Write(tile % along * tiling.baseM, tile / along * tiling.baseN);
    }
    product.End();
  }

  TCubeTiling tiling;
  Matmul<Left, Right, Result, Bias> product;

 private:
  __aicore__ inline void Activate() {
    LocalTensor<float> sums = given_.DeQue<float>(), y = made_.AllocTensor<float>();
    LeakyRelu(y, sums, SLOPE, tiling.baseM * tiling.baseN);
    made_.EnQue(y);
    given_.FreeTensor(sums);
  }
  __aicore__ inline void Write(uint64_t row, uint32_t column) {
    LocalTensor<float> y = made_.DeQue<float>();
    DataCopyParams rows(tiling.baseM, tiling.baseN / 8, 0, (tiling.N - tiling.baseN) / 8);
    DataCopy(y_[row * tiling.N + column], y, rows);
    made_.FreeTensor(y);
  }

  GlobalTensor<half> left_, right_;
  GlobalTensor<float> bias_, y_;
  TQue<QuePosition::VECIN, 2> given_;
  TQue<QuePosition::VECOUT, 2> made_;
};

}  // namespace

extern "C" __global__ __aicore__ void leaky_product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR y,
                                                    GM_ADDR tiling) {
  TPipe pipe;
  LeakyProduct work;
  GET_TILING_DATA_WITH_STRUCT(TCubeTiling, given, tiling);
  work.tiling = given;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), work.product, &work.tiling);
  work.Init(a, b, bias, y, &pipe);
  work.Process();
}
