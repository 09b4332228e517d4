// The Matmul object by a B of which half is left out. Pages: SetSparseIndex, "4:2稀疏矩阵乘",
// MmadWithSparse, "4选2稀疏索引矩阵".
//
// Uncertain: no page has the steps. Here one base block of C after another is summed up in L0C,
// over parts of K that are loaded into two buffers by turns.
#pragma once

#include "cubecore/cube/copy.h"
#include "cubecore/cube/fixpipe.h"
#include "cubecore/cube/load_data.h"
#include "cubecore/cube/mmad.h"
#include "cubecore/matmul/operands.h"
#include "cubecore/sync/flags.h"

namespace AscendC {

template <TPosition POSITION, TPosition INDEX_POSITION, CubeFormat FORMAT, typename TYPE,
          bool ISTRANS = false, LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct SparseMatmulType : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE> {
  static_assert(POSITION == TPosition::GM && INDEX_POSITION == TPosition::GM,
                "SparseMatmulType must have B and its index in TPosition::GM, got another");
  static_assert(FORMAT == CubeFormat::ND || FORMAT == CubeFormat::NZ,
                "SparseMatmulType must be CubeFormat::ND or NZ, got another");
  static_assert(std::is_same_v<TYPE, int8_t>,
                "SparseMatmulType must be of int8_t, got another type");
  static_assert(ISTRANS, "SparseMatmulType must be with ISTRANS true, got false");
  static_assert(LAYOUT == LayoutMode::NONE && !IBSHARE,
                "SparseMatmulType must be without a layout and IBSHARE, got one");
};

namespace detail {

template <class TYPE>
constexpr bool is_sparse = false;
template <TPosition P, TPosition I, CubeFormat F, typename T, bool R, LayoutMode L, bool S>
constexpr bool is_sparse<SparseMatmulType<P, I, F, T, R, L, S>> = true;

template <class A_TYPE, class C_TYPE, bool mdl>
constexpr void require_sparse() {
  static_assert(mdl, "Matmul by a SparseMatmulType must be with the template MDL, got another");
  static_assert(std::is_same_v<typename A_TYPE::T, int8_t> &&
                    std::is_same_v<typename C_TYPE::T, int32_t>,
                "Matmul by a SparseMatmulType must be of int8_t into int32_t, got other types");
  static_assert(A_TYPE::format == CubeFormat::ND && C_TYPE::format == CubeFormat::ND,
                "Matmul by a SparseMatmulType must have A and C in CubeFormat::ND, got another");
}

// Base blocks of C on an AIC. B is stored as [N, K / 2], its index in blocks of 16 columns by 64 of
// K, 128 B each, those of the same K one behind another.
class SparseProduct {
 public:
  SparseProduct(const cubecore::MatmulCall& call, int64_t index, bool nz, const cubecore::Where& at)
      : call_(call), index_(index), nz_(nz), at_(at) {
    const auto& t = call.tiling;
    Require(index >= 0, "have an index by SetSparseIndex", "none");
    Require(!call.trans[0] && call.trans[1], "have A as it is and B transposed", "another order");
    Require(call.batches <= 1 && call.quantises == 0, "have no batches and no scales", "some");
    step_ = std::max(uint32_t{PART}, static_cast<uint32_t>(t.baseK) / PART * PART);
    a_bytes_ = Whole(static_cast<uint32_t>(t.baseM)) * step_;
    b_bytes_ = Whole(static_cast<uint32_t>(t.baseN)) * step_ / 2;
    const auto& core = *cubecore_launch();
    const uint64_t held = a_bytes_ + b_bytes_ + b_bytes_ / 4;
    const uint64_t bias = Whole(static_cast<uint32_t>(t.baseN)) * sizeof(int32_t);
    l1_ = 2 * held + bias <= core.l1_bytes ? 2 : 1;
    l0_ = 2 * a_bytes_ <= core.l0a_bytes && 2 * b_bytes_ <= core.l0b_bytes ? 2 : 1;
    Require(a_bytes_ <= core.l0a_bytes && b_bytes_ <= core.l0b_bytes,
            "have base blocks of 64 columns of A in L0A and L0B", "larger ones");
    bias_at_ = static_cast<uint32_t>(l1_ * held);
  }

  void Compute(const Tile& tile, bool sums_on) const {
    const uint32_t k_all = static_cast<uint32_t>(call_.single[2]);
    const uint32_t parts = (k_all + step_ - 1) / step_;
    const bool biased = call_.at[cubecore::MM_BIAS] >= 0 && !sums_on;
    if (biased) TakeBias(tile);
    for (uint32_t part = 0; part < parts; ++part) {
      const uint32_t first = part * step_, k = std::min(step_, k_all - first);
      const uint8_t l1 = static_cast<uint8_t>(part % l1_), l0 = static_cast<uint8_t>(part % l0_);
      if (part >= l1_) await_flag(HardEvent::MTE1_MTE2, l1, at_);
      Load(tile, first, k, l1);
      Handed(HardEvent::MTE2_MTE1, l1);
      if (part >= l0_) await_flag(HardEvent::M_MTE1, l0, at_);
      Move(tile, k, l1, l0);
      raise_flag(HardEvent::MTE1_MTE2, l1, at_);
      Handed(HardEvent::MTE1_M, l0);
      MmadParams p(static_cast<uint16_t>(tile.m), static_cast<uint16_t>(tile.n),
                   static_cast<uint16_t>(k));
      if (part > 0 || sums_on) barrier(PIPE_M, at_);
      p.cmatrixInitVal = part == 0 && !sums_on && !biased;
      p.cmatrixSource = part == 0 && biased;
      MmadWithSparse(C(), A(TPosition::A2, l0), B(TPosition::B2, l0), p, at_);
      raise_flag(HardEvent::M_MTE1, l0, at_);
    }
    for (uint32_t n = 0; n < std::min(parts, l1_); ++n)
      await_flag(HardEvent::MTE1_MTE2, static_cast<uint8_t>(n), at_);
    for (uint32_t n = 0; n < std::min(parts, l0_); ++n)
      await_flag(HardEvent::M_MTE1, static_cast<uint8_t>(n), at_);
  }

  // In rows of C, or by itself at its start.
  void Store(const Tile& tile, bool in_sequence) const {
    const uint32_t pitch = static_cast<uint32_t>(call_.org[4] != 0 ? call_.org[4] : call_.org[1]);
    const uint32_t rows_of = in_sequence ? static_cast<uint32_t>(call_.tiling.baseN) : pitch;
    const uint64_t offset = in_sequence ? 0 : static_cast<uint64_t>(tile.row) * pitch + tile.column;
    Handed(HardEvent::M_FIX, 0);
    constexpr const char* operations[] = {"", "asc_set_atomic_add_int", "asc_set_atomic_max_int",
                                          "asc_set_atomic_min_int"};
    if (call_.atomic != 0) cubecore::issue(operations[call_.atomic & 3], at_);
    FixpipeParamsV220 p;
    p.nSize = static_cast<uint16_t>(tile.n);
    p.mSize = static_cast<uint16_t>(tile.m);
    p.srcStride = static_cast<uint16_t>(Whole(tile.m));
    p.dstStride = rows_of;
    Fixpipe(At<int32_t>(cubecore::MM_C)[offset], C(), p, at_);
    if (call_.atomic != 0) cubecore::issue("asc_set_atomic_none", at_);
    Handed(HardEvent::FIX_M, 0);
  }

 private:
  static constexpr uint32_t PART = 64;  // of K in a block of the index
  static constexpr uint32_t COLUMN = 32, ROWS = 16;
  static constexpr uint32_t Whole(uint32_t rows) { return (rows + ROWS - 1) / ROWS * ROWS; }
  static constexpr uint32_t Fractals(uint32_t k) { return (k + COLUMN - 1) / COLUMN; }
  void Require(bool met, const char* need, const char* got) const {
    if (!met) cubecore_refuse("a Matmul object with a sparse B", need, got, &at_);
  }
  void Handed(HardEvent event, uint8_t number) const {
    raise_flag(event, number, at_);
    await_flag(event, number, at_);
  }
  template <typename T>
  GlobalTensor<T> At(cubecore::MatmulOperand operand) const {
    return gm_at<T>(call_.at[operand]);
  }
  // Buffers: in L1 A, B and its index lie behind each other.
  LocalTensor<int8_t> A(TPosition where, uint32_t slot) const {
    return {where, static_cast<uint32_t>(slot * (where == TPosition::A2 ? a_bytes_ : Slot())),
            static_cast<uint32_t>(a_bytes_)};
  }
  LocalTensor<int8_t> B(TPosition where, uint32_t slot) const {
    const uint64_t start = where == TPosition::B2 ? slot * b_bytes_ : slot * Slot() + a_bytes_;
    return {where, static_cast<uint32_t>(start), static_cast<uint32_t>(b_bytes_)};
  }
  LocalTensor<uint8_t> Index(uint32_t slot) const {
    return {TPosition::B1, static_cast<uint32_t>(slot * Slot() + a_bytes_ + b_bytes_),
            static_cast<uint32_t>(b_bytes_ / 4)};
  }
  LocalTensor<int32_t> C() const {
    return {TPosition::CO1, 0,
            Whole(static_cast<uint32_t>(call_.tiling.baseM)) *
                Whole(static_cast<uint32_t>(call_.tiling.baseN))};
  }
  uint64_t Slot() const { return a_bytes_ + b_bytes_ + b_bytes_ / 4; }

  void TakeBias(const Tile& tile) const {
    const uint32_t blocks = Whole(tile.n) * 4 / 32;
    LocalTensor<int32_t> staged(TPosition::C1, bias_at_, Whole(tile.n));
    LocalTensor<int32_t> table(TPosition::C2, 0, Whole(tile.n));
    Nd2NzParams row = Matrix(1, tile.n, tile.n);
    row.dstNzC0Stride = 1;
    DataCopy(staged, At<int32_t>(cubecore::MM_BIAS)[tile.column], row, at_);
    Handed(HardEvent::MTE2_MTE1, 7);
    cubecore::issue("asc_copy_l12bt", at_, table.pointer(), staged.pointer(), 0, 1, blocks, 0, 0);
    Handed(HardEvent::MTE1_M, 7);
  }
  void Load(const Tile& tile, uint32_t first, uint32_t k, uint32_t slot) const {
    const uint32_t k_a = static_cast<uint32_t>(call_.org[2]);
    const uint32_t k_b = static_cast<uint32_t>(call_.org[3]) / 2;
    const uint32_t columns = Whole(static_cast<uint32_t>(call_.org[1])), n = Whole(tile.n);
    DataCopy(A(TPosition::A1, slot),
             At<int8_t>(cubecore::MM_A)[static_cast<uint64_t>(tile.row) * k_a + first],
             Matrix(tile.m, k, k_a), at_);
    const GlobalTensor<int8_t> b = At<int8_t>(cubecore::MM_B);
    const uint32_t kept = (k + 3) / 4 * 2;
    if (nz_)
      DataCopy(B(TPosition::B1, slot),
               b[static_cast<uint64_t>(first) / 2 * columns + tile.column * COLUMN],
               Runs(Fractals(kept), n, columns - n), at_);
    else
      DataCopy(B(TPosition::B1, slot), b[static_cast<uint64_t>(tile.column) * k_b + first / 2],
               Matrix(tile.n, kept, k_b), at_);
    constexpr uint32_t per_column = PART / 8, blocks = 32 / per_column;
    const uint64_t begin = static_cast<uint64_t>(first / PART) * columns + tile.column;
    DataCopy(Index(slot), gm_at<uint8_t>(index_)[begin * per_column],
             Runs((k + PART - 1) / PART, n / blocks, (columns - n) / blocks), at_);
  }
  static Nd2NzParams Matrix(uint32_t rows, uint32_t columns, uint32_t pitch) {
    Nd2NzParams p;
    p.ndNum = 1;
    p.nValue = static_cast<uint16_t>(rows);
    p.dValue = static_cast<uint16_t>(columns);
    p.srcDValue = static_cast<uint16_t>(pitch);
    p.dstNzC0Stride = static_cast<uint16_t>(Whole(rows));
    p.dstNzNStride = 1;
    return p;
  }
  static DataCopyParams Runs(uint32_t count, uint32_t length, uint32_t gap) {
    return DataCopyParams(static_cast<uint16_t>(count), static_cast<uint16_t>(length),
                          static_cast<uint16_t>(gap), 0);
  }
  void Move(const Tile& tile, uint32_t k, uint32_t l1, uint32_t l0) const {
    const uint32_t across = Fractals(k), down = Whole(tile.m) / ROWS;
    const LocalTensor<int8_t> from = A(TPosition::A1, l1), to = A(TPosition::A2, l0);
    for (uint32_t row = 0; row < down; ++row) {
      LoadData2DParams p;
      p.repeatTimes = static_cast<uint8_t>(across);
      p.srcStride = static_cast<uint16_t>(down);
      LoadData(to[row * across * FRACTAL], from[row * FRACTAL], p, at_);
    }
    const uint32_t all = Fractals((k + 3) / 4 * 2) * Whole(tile.n) / ROWS;
    for (uint32_t done = 0; done < all; done += MOST) {
      LoadData2DParams p;
      p.startIndex = static_cast<uint16_t>(done);
      p.repeatTimes = static_cast<uint8_t>(std::min(MOST, all - done));
      LoadDataWithSparse(B(TPosition::B2, l0)[done * FRACTAL], B(TPosition::B1, l1), Index(l1), p,
                         at_);
    }
  }
  static constexpr uint32_t FRACTAL = 512, MOST = 255;

  const cubecore::MatmulCall& call_;
  int64_t index_;
  bool nz_;
  cubecore::Where at_;
  uint32_t step_, l1_, l0_, bias_at_;
  uint64_t a_bytes_, b_bytes_;
};

}  // namespace detail

}  // namespace AscendC
