// Tiles of halves on the Cube: what split_k.cpp and matmul_leaky_relu.cpp share. A tile of M x N is
// summed over K in chunks, which lie two deep in L1, and a chunk in steps, two deep in L0A and L0B;
// two tiles find room in L0C.
#pragma once

#include "kernel_operator.h"

constexpr uint32_t M = 128, N = 128, STEP = 128, CHUNK = 256;
constexpr uint32_t EDGE = 16;  // rows and columns of a fractal of halves
constexpr uint32_t FRACTAL = EDGE * EDGE;
constexpr uint32_t SLOTS = 2;
constexpr uint32_t BIAS = 2;  // the event of the BiasTable; 0 and 1 are those of the slots

// ROWS x STEP of A, from NZ in L1 to ZZ in L0A: row of fractals by row.
template <uint32_t rows, uint32_t width>
__aicore__ inline void LoadA(const AscendC::LocalTensor<half>& to,
                             const AscendC::LocalTensor<half>& from, uint32_t column) {
  for (uint32_t row = 0; row < rows / EDGE; ++row) {
    uint16_t first = column / EDGE * (rows / EDGE) + row;
    AscendC::LoadData(to[row * (width / EDGE) * FRACTAL], from,
                      AscendC::LoadData2DParams(first, width / EDGE, rows / EDGE, 0, 0, false, 0));
  }
}

// STEP x N of B, from NZ in L1 to ZN in L0B: every fractal is transposed.
template <uint32_t rows, uint32_t width, uint32_t pitch>
__aicore__ inline void LoadB(const AscendC::LocalTensor<half>& to,
                             const AscendC::LocalTensor<half>& from, uint32_t row) {
  for (uint32_t each = 0; each < rows / EDGE; ++each) {
    uint16_t first = row / EDGE + each;
    AscendC::LoadData(to[each * (width / EDGE) * FRACTAL], from,
                      AscendC::LoadData2DParams(first, width / EDGE, pitch / EDGE, 0, 0, true, 0));
  }
}

// A rows x columns piece of a row-major matrix, `pitch` elements from row to row, as NZ in L1.
__aicore__ inline void Fetch(const AscendC::LocalTensor<half>& to,
                             const AscendC::GlobalTensor<half>& from, uint32_t rows,
                             uint32_t columns, uint32_t pitch) {
  AscendC::Nd2NzParams params;
  params.ndNum = 1;
  params.nValue = rows;
  params.dValue = columns;
  params.srcNdMatrixStride = 0;
  params.srcDValue = pitch;
  params.dstNzC0Stride = rows;
  params.dstNzNStride = 1;
  params.dstNzMatrixStride = 0;
  AscendC::DataCopy(to, from, params);
}

// Sums of products: the memory of an AIC and the flags between its pipes.
class Products {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, uint32_t n, uint32_t k) {
    using namespace AscendC;
    a_.SetGlobalBuffer((__gm__ half*)a);
    b_.SetGlobalBuffer((__gm__ half*)b);
    n_ = n;
    k_ = k;
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    LocalMemAllocator<Hardware::BIAS> table;
    for (auto& one : a_l1_) one = l1.Alloc<TPosition::A1, half>(M * CHUNK);
    for (auto& one : b_l1_) one = l1.Alloc<TPosition::B1, half>(CHUNK * N);
    for (auto& one : bias_l1_) one = l1.Alloc<TPosition::C1, float>(N);
    for (auto& one : a_l0_) one = l0a.Alloc<TPosition::A2, half>(M * STEP);
    for (auto& one : b_l0_) one = l0b.Alloc<TPosition::B2, half>(STEP * N);
    for (auto& one : sums) one = l0c.Alloc<TPosition::CO1, float>(M * N);
    bias_ = table.Alloc<TPosition::C2, float>(N);
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      SetFlag<HardEvent::MTE1_MTE2>(slot);
      SetFlag<HardEvent::M_MTE1>(slot);
      SetFlag<HardEvent::FIX_M>(slot);
    }
  }

  // sums[out] = A's M rows from `row` on times B's N columns from `column` on, over K from `begin`
  // to `end`, after the bias if there is one.
  template <bool biased>
  __aicore__ inline void Sum(uint32_t out, uint32_t row, uint32_t column, uint32_t begin,
                             uint32_t end, const AscendC::GlobalTensor<float>& bias) {
    using namespace AscendC;
    WaitFlag<HardEvent::FIX_M>(out);
    for (uint32_t chunk = begin; chunk < end; chunk += CHUNK) {
      uint32_t l1 = chunks_++ % SLOTS;
      bool first = chunk == begin;
      WaitFlag<HardEvent::MTE1_MTE2>(l1);
      Fetch(a_l1_[l1], a_[row * k_ + chunk], M, CHUNK, k_);
      Fetch(b_l1_[l1], b_[chunk * n_ + column], CHUNK, N, n_);
      if (biased && first) DataCopy(bias_l1_[l1], bias[column], N);
      SetFlag<HardEvent::MTE2_MTE1>(l1);
      WaitFlag<HardEvent::MTE2_MTE1>(l1);
      if (biased && first) {
        WaitFlag<HardEvent::M_MTE1>(BIAS);
        DataCopy(bias_, bias_l1_[l1], N);
      }
      for (uint32_t step = 0; step < CHUNK; step += STEP) Multiply<biased>(out, l1, step, first);
      SetFlag<HardEvent::MTE1_MTE2>(l1);
    }
    SetFlag<HardEvent::M_FIX>(out);
    WaitFlag<HardEvent::M_FIX>(out);
  }

  __aicore__ inline void Finish() {
    using namespace AscendC;
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
      WaitFlag<HardEvent::MTE1_MTE2>(slot);
      WaitFlag<HardEvent::M_MTE1>(slot);
      WaitFlag<HardEvent::FIX_M>(slot);
    }
  }

  AscendC::LocalTensor<float> sums[SLOTS];

 private:
  template <bool biased>
  __aicore__ inline void Multiply(uint32_t out, uint32_t l1, uint32_t step, bool first) {
    using namespace AscendC;
    uint32_t l0 = steps_++ % SLOTS;
    first = first && step == 0;
    WaitFlag<HardEvent::M_MTE1>(l0);
    LoadA<M, STEP>(a_l0_[l0], a_l1_[l1], step);
    LoadB<STEP, N, CHUNK>(b_l0_[l0], b_l1_[l1], step);
    SetFlag<HardEvent::MTE1_M>(l0);
    WaitFlag<HardEvent::MTE1_M>(l0);
    MmadParams params(M, N, STEP);
    params.cmatrixInitVal = first;
    if (biased && first)
      Mmad(sums[out], a_l0_[l0], b_l0_[l0], bias_, params);
    else
      Mmad(sums[out], a_l0_[l0], b_l0_[l0], params);
    SetFlag<HardEvent::M_MTE1>(l0);
    if (biased && first) SetFlag<HardEvent::M_MTE1>(BIAS);
  }

  AscendC::GlobalTensor<half> a_, b_;
  AscendC::LocalTensor<half> a_l1_[SLOTS], b_l1_[SLOTS], a_l0_[SLOTS], b_l0_[SLOTS];
  AscendC::LocalTensor<float> bias_l1_[SLOTS], bias_;
  uint32_t n_ = 0, k_ = 0, chunks_ = 0, steps_ = 0;
};
