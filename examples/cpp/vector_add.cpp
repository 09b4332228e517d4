// z = x + y in float32, two tiles in flight: one is added while the next is loaded and the last
// one stored.
//
// Every block (an AIV) adds `share` elements in tiles of TILE; the last may be shorter.
// `add_queued` has queues, which keep the order; `add_static` has tensors at fixed addresses and
// flags. Shapes: x, y, z are [share times the blocks], share a multiple of 8. Run it with
//   cubecore run vector_add.cpp --entry add_queued --blocks 8 --arg x=x.npy --arg y=y.npy
//     --arg share=2048 --out-arg z=float32:16384:z.npy

#include "kernel_operator.h"

constexpr uint32_t TILE = 4096;
constexpr uint32_t BUFFERS = 2;
constexpr uint32_t BYTES = TILE * sizeof(float);

__aicore__ inline uint32_t CountOf(uint32_t share, uint32_t first) {
  return share - first < TILE ? share - first : TILE;
}

class VectorAdd {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
    share_ = share;
    uint64_t begin = static_cast<uint64_t>(share) * AscendC::GetBlockIdx();
    x_.SetGlobalBuffer((__gm__ float*)x + begin, share);
    y_.SetGlobalBuffer((__gm__ float*)y + begin, share);
    z_.SetGlobalBuffer((__gm__ float*)z + begin, share);
    pipe_.InitBuffer(in_x_, BUFFERS, BYTES);
    pipe_.InitBuffer(in_y_, BUFFERS, BYTES);
    pipe_.InitBuffer(out_z_, BUFFERS, BYTES);
  }

  __aicore__ inline void Process() {
    for (uint32_t first = 0; first < share_; first += TILE) {
      CopyIn(first, CountOf(share_, first));
      Compute(CountOf(share_, first));
      CopyOut(first, CountOf(share_, first));
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t first, uint32_t count) {
    AscendC::LocalTensor<float> x = in_x_.AllocTensor<float>();
    AscendC::LocalTensor<float> y = in_y_.AllocTensor<float>();
    AscendC::DataCopy(x, x_[first], count);
    AscendC::DataCopy(y, y_[first], count);
    in_x_.EnQue(x);
    in_y_.EnQue(y);
  }

  __aicore__ inline void Compute(uint32_t count) {
    AscendC::LocalTensor<float> x = in_x_.DeQue<float>();
    AscendC::LocalTensor<float> y = in_y_.DeQue<float>();
    AscendC::LocalTensor<float> z = out_z_.AllocTensor<float>();
    AscendC::Add(z, x, y, count);
    out_z_.EnQue(z);
    in_x_.FreeTensor(x);
    in_y_.FreeTensor(y);
  }

  __aicore__ inline void CopyOut(uint32_t first, uint32_t count) {
    AscendC::LocalTensor<float> z = out_z_.DeQue<float>();
    AscendC::DataCopy(z_[first], z, count);
    out_z_.FreeTensor(z);
  }

  AscendC::TPipe pipe_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> in_x_, in_y_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_z_;
  AscendC::GlobalTensor<float> x_, y_, z_;
  uint32_t share_ = 0;
};

extern "C" __global__ __aicore__ void add_queued(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
  VectorAdd add;
  add.Init(x, y, z, share);
  add.Process();
}

extern "C" __global__ __aicore__ void add_static(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t share) {
  using namespace AscendC;
  GlobalTensor<float> from_x, from_y, to;
  uint64_t begin = static_cast<uint64_t>(share) * GetBlockIdx();
  from_x.SetGlobalBuffer((__gm__ float*)x + begin, share);
  from_y.SetGlobalBuffer((__gm__ float*)y + begin, share);
  to.SetGlobalBuffer((__gm__ float*)z + begin, share);
  LocalTensor<float> a[BUFFERS], b[BUFFERS], c[BUFFERS];
  for (uint32_t slot = 0; slot < BUFFERS; ++slot) {
    a[slot] = LocalTensor<float>(TPosition::VECIN, slot * BYTES, TILE);
    b[slot] = LocalTensor<float>(TPosition::VECIN, (BUFFERS + slot) * BYTES, TILE);
    c[slot] = LocalTensor<float>(TPosition::VECOUT, (2 * BUFFERS + slot) * BYTES, TILE);
  }
  for (uint32_t slot = 0; slot < BUFFERS; ++slot) {
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  for (uint32_t first = 0, tile = 0; first < share; first += TILE, ++tile) {
    uint32_t slot = tile % BUFFERS, count = CountOf(share, first);
    WaitFlag<HardEvent::V_MTE2>(slot);
    DataCopy(a[slot], from_x[first], count);
    DataCopy(b[slot], from_y[first], count);
    SetFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE2_V>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);
    Add(c[slot], a[slot], b[slot], count);
    SetFlag<HardEvent::V_MTE2>(slot);
    SetFlag<HardEvent::V_MTE3>(slot);
    WaitFlag<HardEvent::V_MTE3>(slot);
    DataCopy(to[first], c[slot], count);
    SetFlag<HardEvent::MTE3_V>(slot);
  }
  for (uint32_t slot = 0; slot < BUFFERS; ++slot) {
    WaitFlag<HardEvent::V_MTE2>(slot);
    WaitFlag<HardEvent::MTE3_V>(slot);
  }
}
