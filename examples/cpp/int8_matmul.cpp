// An int8 layer on the Cube: Y = requantised(X W^T + bias), with a scale for each column.
//
// The product is int32, and starts from the bias, which stands in the BiasTable. Fixpipe multiplies
// it by its column's scale, rounds, adds the offset and clamps to int8; scales and offsets stand in
// the Fixpipe buffer, a word each. Every block (an AIC) computes whole columns of tiles of M x N,
// for all rows; a column's bias and scales are loaded once. W is stored row by row, [n, k], so that
// nothing is transposed: the fractals of W in NZ are those of W^T in ZN.
//
// X is [m, k], W is [n, k], Y is [m, n], all int8; bias is [n] in int32, scales is [n] in words of
// 64 bits. m and n are multiples of M and N times the blocks, k of CHUNK. Run it with
//   cubecore run int8_matmul.cpp --blocks 2 --arg x=x.npy --arg w=w.npy --arg bias=bias.npy
//     --arg scales=scales.npy --arg m=256 --arg n=512 --arg k=1024 --out-arg y=int8:256x512:y.npy

#include "kernel_operator.h"

constexpr uint32_t M = 128, N = 128, STEP = 256, CHUNK = 512;
constexpr uint32_t ROWS = 16, C0 = 32;  // of a fractal of int8
constexpr uint32_t FRACTAL = ROWS * C0;
constexpr uint32_t SLOTS = 2;

class Layer {
 public:
  __aicore__ inline Layer(GM_ADDR x, GM_ADDR w, GM_ADDR bias, GM_ADDR scales, GM_ADDR y, uint32_t n,
                          uint32_t k)
      : n_(n), k_(k) {
    using namespace AscendC;
    x_.SetGlobalBuffer((__gm__ int8_t*)x);
    w_.SetGlobalBuffer((__gm__ int8_t*)w);
    bias_.SetGlobalBuffer((__gm__ int32_t*)bias);
    scales_.SetGlobalBuffer((__gm__ uint64_t*)scales);
    y_.SetGlobalBuffer((__gm__ int8_t*)y);
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    LocalMemAllocator<Hardware::BIAS> table;
    LocalMemAllocator<Hardware::FIXBUF> factors;
    for (auto& one : x_l1_) one = l1.Alloc<TPosition::A1, int8_t>(M * CHUNK);
    for (auto& one : w_l1_) one = l1.Alloc<TPosition::B1, int8_t>(N * CHUNK);
    bias_l1_ = l1.Alloc<TPosition::C1, int32_t>(N);
    scales_l1_ = l1.Alloc<TPosition::C1, uint64_t>(N);
    for (auto& one : x_l0_) one = l0a.Alloc<TPosition::A2, int8_t>(M * STEP);
    for (auto& one : w_l0_) one = l0b.Alloc<TPosition::B2, int8_t>(N * STEP);
    for (auto& one : sums_) one = l0c.Alloc<TPosition::CO1, int32_t>(M * N);
    bias_bt_ = table.Alloc<TPosition::C2, int32_t>(N);
    scales_fb_ = factors.Alloc<TPosition::C2PIPE2GM, uint64_t>(N);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      SetFlag<HardEvent::MTE1_MTE2>(slot);
      SetFlag<HardEvent::M_MTE1>(slot);
      SetFlag<HardEvent::FIX_M>(slot);
    }
  }

  // The column before is done with its bias and scales before the next ones come.
  __aicore__ inline void LoadColumn(uint32_t column) {
    using namespace AscendC;
    PipeBarrier<PIPE_ALL>();
    DataCopy(bias_l1_, bias_[column], N);
    DataCopy(scales_l1_, scales_[column], N);
    SetFlag<HardEvent::MTE2_MTE1>(2);
    WaitFlag<HardEvent::MTE2_MTE1>(2);
    DataCopy(bias_bt_, bias_l1_, N);
    SetFlag<HardEvent::MTE2_FIX>(0);
    WaitFlag<HardEvent::MTE2_FIX>(0);
    DataCopy(scales_fb_, scales_l1_, N);
    PipeBarrier<PIPE_FIX>();
    SetFixPipeConfig(scales_fb_);
  }

  __aicore__ inline void Tile(uint32_t row, uint32_t column) {
    using namespace AscendC;
    uint32_t out = tiles_++ % SLOTS;
    WaitFlag<HardEvent::FIX_M>(out);
    for (uint32_t chunk = 0; chunk < k_; chunk += CHUNK) {
      uint32_t l1 = chunks_++ % SLOTS;
      WaitFlag<HardEvent::MTE1_MTE2>(l1);
      Fetch(x_l1_[l1], x_[row * k_ + chunk], M);
      Fetch(w_l1_[l1], w_[column * k_ + chunk], N);
      SetFlag<HardEvent::MTE2_MTE1>(l1);
      WaitFlag<HardEvent::MTE2_MTE1>(l1);
      for (uint32_t step = 0; step < CHUNK; step += STEP)
        Multiply(out, l1, step, chunk + step == 0);
      SetFlag<HardEvent::MTE1_MTE2>(l1);
    }
    SetFlag<HardEvent::M_FIX>(out);
    WaitFlag<HardEvent::M_FIX>(out);
    FixpipeParamsV220 params(N, M, M, n_, false);
    params.quantPre = QuantMode_t::VREQ8;
    Fixpipe(y_[row * n_ + column], sums_[out], params);
    SetFlag<HardEvent::FIX_M>(out);
  }

  __aicore__ inline void Finish() {
    using namespace AscendC;
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      WaitFlag<HardEvent::MTE1_MTE2>(slot);
      WaitFlag<HardEvent::M_MTE1>(slot);
      WaitFlag<HardEvent::FIX_M>(slot);
    }
  }

 private:
  // Rows of a row-major matrix of CHUNK columns as NZ in L1.
  __aicore__ inline void Fetch(const AscendC::LocalTensor<int8_t>& to,
                               const AscendC::GlobalTensor<int8_t>& from, uint32_t rows) {
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = CHUNK;
    params.srcNdMatrixStride = 0;
    params.srcDValue = k_;
    params.dstNzC0Stride = rows;
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 0;
    AscendC::DataCopy(to, from, params);
  }

  __aicore__ inline void Multiply(uint32_t out, uint32_t l1, uint32_t step, bool first) {
    using namespace AscendC;
    uint32_t l0 = steps_++ % SLOTS;
    WaitFlag<HardEvent::M_MTE1>(l0);
    LoadData2DParams rows(0, STEP / C0, M / ROWS, 0, 0, false, 0);
    for (uint32_t row = 0; row < M / ROWS; ++row) {
      rows.startIndex = step / C0 * (M / ROWS) + row;
      LoadData(x_l0_[l0][row * (STEP / C0) * FRACTAL], x_l1_[l1], rows);
    }
    LoadData2DParams all(0, N / ROWS * STEP / C0, 1, 0, 0, false, 0);
    LoadData(w_l0_[l0], w_l1_[l1][N * step], all);
    SetFlag<HardEvent::MTE1_M>(l0);
    WaitFlag<HardEvent::MTE1_M>(l0);
    MmadParams params(M, N, STEP);
    params.cmatrixInitVal = false;
    if (first)
      Mmad(sums_[out], x_l0_[l0], w_l0_[l0], bias_bt_, params);
    else
      Mmad(sums_[out], x_l0_[l0], w_l0_[l0], params);
    SetFlag<HardEvent::M_MTE1>(l0);
  }

  AscendC::GlobalTensor<int8_t> x_, w_, y_;
  AscendC::GlobalTensor<int32_t> bias_;
  AscendC::GlobalTensor<uint64_t> scales_;
  AscendC::LocalTensor<int8_t> x_l1_[SLOTS], w_l1_[SLOTS], x_l0_[SLOTS], w_l0_[SLOTS];
  AscendC::LocalTensor<int32_t> sums_[SLOTS], bias_l1_, bias_bt_;
  AscendC::LocalTensor<uint64_t> scales_l1_, scales_fb_;
  uint32_t n_, k_, tiles_ = 0, chunks_ = 0, steps_ = 0;
};

extern "C" __global__ __cube__ void layer(GM_ADDR x, GM_ADDR w, GM_ADDR bias, GM_ADDR scales,
                                          GM_ADDR y, uint32_t m, uint32_t n, uint32_t k) {
  Layer made(x, w, bias, scales, y, n, k);
  for (uint32_t column = AscendC::GetBlockIdx() * N; column < n;
       column += AscendC::GetBlockNum() * N) {
    made.LoadColumn(column);
    for (uint32_t row = 0; row < m; row += M) made.Tile(row, column);
  }
  made.Finish();
}
