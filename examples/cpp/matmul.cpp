// C = A B + bias on the Cube, by queues, for any extents.
//
// Blocks (AICs) take tiles of M x N in turn; the last ones of a row and of a column are smaller. A
// tile is summed over K in steps of STEP, the last of which may be shorter. Queues hold two steps
// of A and B in L1 and in L0, and two tiles in L0C; a tile starts from the bias in the BiasTable.
//
// A is [m, k], B is [k, n], both half; bias is [n] and C is [m, n] in float. No tile may have a
// single row, which the Cube reads as a vector. Run it with
//   cubecore run matmul.cpp --blocks 2 --arg a=a.npy --arg b=b.npy --arg bias=bias.npy --arg m=200
//     --arg n=300 --arg k=333 --out-arg c=float32:200x300:c.npy

#include "kernel_operator.h"

constexpr uint32_t M = 128, N = 128, STEP = 128;
constexpr uint32_t EDGE = 16;  // rows and columns of a fractal of halves
constexpr uint32_t FRACTAL = EDGE * EDGE;
constexpr uint32_t SLOTS = 2;
constexpr uint32_t DEPENDENT = 10;  // fractals of a sum that the Cube needs a barrier below

__aicore__ inline uint32_t Least(uint32_t one, uint32_t other) { return one < other ? one : other; }
__aicore__ inline uint32_t Fractals(uint32_t extent) { return (extent + EDGE - 1) / EDGE; }

class Matmul {
 public:
  __aicore__ inline Matmul(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t n, uint32_t k)
      : n_(n), k_(k) {
    a_.SetGlobalBuffer((__gm__ half*)a);
    b_.SetGlobalBuffer((__gm__ half*)b);
    bias_.SetGlobalBuffer((__gm__ float*)bias);
    c_.SetGlobalBuffer((__gm__ float*)c);
    pipe_.InitBuffer(a1_, SLOTS, M * STEP * sizeof(half));
    pipe_.InitBuffer(b1_, SLOTS, STEP * N * sizeof(half));
    pipe_.InitBuffer(c1_, 1, N * sizeof(float));
    pipe_.InitBuffer(a2_, SLOTS, M * STEP * sizeof(half));
    pipe_.InitBuffer(b2_, SLOTS, STEP * N * sizeof(half));
    pipe_.InitBuffer(c2_, 1, N * sizeof(float));
    pipe_.InitBuffer(co1_, SLOTS, M * N * sizeof(float));
  }

  __aicore__ inline void Tile(uint32_t row, uint32_t column, uint32_t m) {
    rows_ = Least(M, m - row);
    columns_ = Least(N, n_ - column);
    LoadBias(column);
    AscendC::LocalTensor<float> sum = co1_.AllocTensor<float>();
    for (uint32_t step = 0; step < k_; step += STEP) {
      uint32_t depth = Least(STEP, k_ - step);
      CopyIn(row, column, step, depth);
      Split(depth);
      Multiply(sum, depth, step == 0);
    }
    co1_.EnQue(sum);
    CopyOut(c_[row * n_ + column]);
  }

 private:
  // A row-major piece as NZ in L1; its last row and column of fractals may be ragged.
  template <typename T>
  __aicore__ inline void Fetch(const AscendC::LocalTensor<T>& to,
                               const AscendC::GlobalTensor<T>& from, uint32_t rows,
                               uint32_t columns, uint32_t pitch) {
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = columns;
    params.srcNdMatrixStride = 0;
    params.srcDValue = pitch;
    params.dstNzC0Stride = rows == 1 ? 1 : Fractals(rows) * EDGE;
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 0;
    AscendC::DataCopy(to, from, params);
  }

  __aicore__ inline void LoadBias(uint32_t column) {
    AscendC::LocalTensor<float> c1 = c1_.AllocTensor<float>();
    Fetch(c1, bias_[column], 1, columns_, n_);  // rounded up to whole blocks
    c1_.EnQue(c1);
    c1 = c1_.DeQue<float>();
    AscendC::LocalTensor<float> c2 = c2_.AllocTensor<float>();
    AscendC::DataCopyParams params(1, Fractals(columns_), 0, 0);  // 64 B hold 16 floats
    AscendC::DataCopy(c2, c1, params);
    c2_.EnQue(c2);
    c1_.FreeTensor(c1);
  }

  __aicore__ inline void CopyIn(uint32_t row, uint32_t column, uint32_t step, uint32_t depth) {
    AscendC::LocalTensor<half> a1 = a1_.AllocTensor<half>();
    Fetch(a1, a_[row * k_ + step], rows_, depth, k_);
    a1_.EnQue(a1);
    AscendC::LocalTensor<half> b1 = b1_.AllocTensor<half>();
    Fetch(b1, b_[step * n_ + column], depth, columns_, n_);
    b1_.EnQue(b1);
  }

  // NZ becomes ZZ in L0A, row of fractals by row, and ZN in L0B, every fractal transposed.
  __aicore__ inline void Split(uint32_t depth) {
    uint8_t down = Fractals(rows_), across = Fractals(columns_), deep = Fractals(depth);
    AscendC::LocalTensor<half> a1 = a1_.DeQue<half>(), a2 = a2_.AllocTensor<half>();
    AscendC::LoadData2DParams row_of_a(0, deep, down, 0, 0, false, 0);
    for (uint32_t row = 0; row < down; ++row)
      AscendC::LoadData(a2[row * deep * FRACTAL], a1[row * FRACTAL], row_of_a);
    a2_.EnQue(a2);
    a1_.FreeTensor(a1);
    AscendC::LocalTensor<half> b1 = b1_.DeQue<half>(), b2 = b2_.AllocTensor<half>();
    AscendC::LoadData2DParams row_of_b(0, across, deep, 0, 0, true, 0);
    for (uint32_t row = 0; row < deep; ++row)
      AscendC::LoadData(b2[row * across * FRACTAL], b1[row * FRACTAL], row_of_b);
    b2_.EnQue(b2);
    b1_.FreeTensor(b1);
  }

  __aicore__ inline void Multiply(const AscendC::LocalTensor<float>& sum, uint32_t depth,
                                  bool first) {
    AscendC::LocalTensor<half> a2 = a2_.DeQue<half>(), b2 = b2_.DeQue<half>();
    AscendC::MmadParams params(rows_, columns_, depth);
    params.cmatrixInitVal = false;
    if (first) {
      AscendC::LocalTensor<float> c2 = c2_.DeQue<float>();
      AscendC::Mmad(sum, a2, b2, c2, params);
      c2_.FreeTensor(c2);
    } else {
      if (Fractals(rows_) * Fractals(columns_) < DEPENDENT) AscendC::PipeBarrier<PIPE_M>();
      AscendC::Mmad(sum, a2, b2, params);
    }
    a2_.FreeTensor(a2);
    b2_.FreeTensor(b2);
  }

  __aicore__ inline void CopyOut(const AscendC::GlobalTensor<float>& to) {
    AscendC::LocalTensor<float> sum = co1_.DeQue<float>();
    AscendC::FixpipeParamsV220 params(columns_, rows_, Fractals(rows_) * EDGE, n_, false);
    AscendC::Fixpipe(to, sum, params);
    co1_.FreeTensor(sum);
  }

  AscendC::TPipe pipe_;
  AscendC::TQue<AscendC::TPosition::A1, SLOTS> a1_;
  AscendC::TQue<AscendC::TPosition::B1, SLOTS> b1_;
  AscendC::TQue<AscendC::TPosition::C1, 1> c1_;
  AscendC::TQue<AscendC::TPosition::A2, SLOTS> a2_;
  AscendC::TQue<AscendC::TPosition::B2, SLOTS> b2_;
  AscendC::TQue<AscendC::TPosition::C2, 1> c2_;
  AscendC::TQue<AscendC::TPosition::CO1, SLOTS> co1_;
  AscendC::GlobalTensor<half> a_, b_;
  AscendC::GlobalTensor<float> bias_, c_;
  uint32_t n_, k_, rows_ = 0, columns_ = 0;
};

extern "C" __global__ __cube__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c,
                                           uint32_t m, uint32_t n, uint32_t k) {
  Matmul made(a, b, bias, c, n, k);
  uint32_t across = (n + N - 1) / N, tiles = (m + M - 1) / M * across;
  for (uint32_t tile = AscendC::GetBlockIdx(); tile < tiles; tile += AscendC::GetBlockNum())
    made.Tile(tile / across * M, tile % across * N, m);
}
