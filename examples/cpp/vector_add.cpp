// z = x + y in float32, with queues: tiles are loaded, added and stored at the same time.
//
// Every block (an AIV) adds an equal share of the vectors. Shapes: x, y, z are [n], n a multiple of
// TILE times the blocks. Run it with
//   cubecore run vector_add.cpp --blocks 8 --arg x=x.npy --arg y=y.npy --arg n=16384
//     --out-arg z=float32:16384:z.npy

#include "kernel_operator.h"

constexpr uint32_t TILE = 1024;
constexpr int32_t BUFFERS = 2;

class VectorAdd {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n) {
    share_ = n / AscendC::GetBlockNum();
    uint64_t begin = share_ * AscendC::GetBlockIdx();
    x_.SetGlobalBuffer((__gm__ float*)x + begin, share_);
    y_.SetGlobalBuffer((__gm__ float*)y + begin, share_);
    z_.SetGlobalBuffer((__gm__ float*)z + begin, share_);
    pipe_.InitBuffer(in_x_, BUFFERS, TILE * sizeof(float));
    pipe_.InitBuffer(in_y_, BUFFERS, TILE * sizeof(float));
    pipe_.InitBuffer(out_z_, BUFFERS, TILE * sizeof(float));
  }

  __aicore__ inline void Process() {
    for (uint32_t tile = 0; tile < share_ / TILE; ++tile) {
      CopyIn(tile);
      Compute();
      CopyOut(tile);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t tile) {
    AscendC::LocalTensor<float> x = in_x_.AllocTensor<float>();
    AscendC::LocalTensor<float> y = in_y_.AllocTensor<float>();
    AscendC::DataCopy(x, x_[tile * TILE], TILE);
    AscendC::DataCopy(y, y_[tile * TILE], TILE);
    in_x_.EnQue(x);
    in_y_.EnQue(y);
  }

  __aicore__ inline void Compute() {
    AscendC::LocalTensor<float> x = in_x_.DeQue<float>();
    AscendC::LocalTensor<float> y = in_y_.DeQue<float>();
    AscendC::LocalTensor<float> z = out_z_.AllocTensor<float>();
    AscendC::Add(z, x, y, TILE);
    out_z_.EnQue(z);
    in_x_.FreeTensor(x);
    in_y_.FreeTensor(y);
  }

  __aicore__ inline void CopyOut(uint32_t tile) {
    AscendC::LocalTensor<float> z = out_z_.DeQue<float>();
    AscendC::DataCopy(z_[tile * TILE], z, TILE);
    out_z_.FreeTensor(z);
  }

  AscendC::TPipe pipe_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> in_x_, in_y_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_z_;
  AscendC::GlobalTensor<float> x_, y_, z_;
  uint32_t share_ = 0;
};

extern "C" __global__ __aicore__ void add_queued(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n) {
  VectorAdd add;
  add.Init(x, y, z, n);
  add.Process();
}
