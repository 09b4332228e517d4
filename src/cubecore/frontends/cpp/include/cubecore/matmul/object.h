// The Matmul object. Pages: "Matmul Kernel侧接口" with its members.
//
// On an AIC a call is issued where it stands; on an AIV it is a message to the AIC of the block,
// which is in `REGIST_MATMUL_OBJ`. The program of a call is that of cubecore's own kernel: the
// recorder makes it of the tiling and puts it here.
#pragma once

#include "cubecore/matmul/callbacks.h"
#include "cubecore/matmul/policy.h"
#include "cubecore/matmul/scales.h"
#include "cubecore/matmul/sparse.h"
#include "cubecore/sync/flags.h"

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto& MM_CFG = CFG_NORM, class MM_CB = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
class MatmulImpl
    : public MatmulScales<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, POLICY<MM_CFG>::scaled> {
  using Operands =
      MatmulScales<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, POLICY<MM_CFG>::scaled>;

 public:
  using Operands::config;
  using Operands::SetBatchNum;
  using typename Operands::DstT;
  static constexpr Triangle triangle = POLICY<MM_CFG>::triangle;

  static_assert(POLICY<MM_CFG>::provided,
                "Matmul: MatmulWithScalePolicy is for architecture 3510; SplitMMatmulPolicy and "
                "SplitNMatmulPolicy are not supported");
  static_assert(!config.intraBlockPartSum,
                "MatmulConfig.intraBlockPartSum must be false on 2201, got true");
  static_assert(!config.isPartialOutput || config.doMultiDataLoad,
                "MatmulConfig.isPartialOutput must be with the template MDL, got another");
  static_assert(A_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    B_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    C_TYPE::format != CubeFormat::COLUMN_MAJOR,
                "Matmul: COLUMN_MAJOR is for architecture 3510, which is not supported");

  // Ours: a move of a program, by a function of the user's own.
  static void MakeMove(const cubecore::OwnMove& move) { MM_CB::Make(move); }

  // --- all tiles at once

  template <bool sync = true>
  void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, bool waitIterateAll = false, bool fakeMsg = false,
                  CUBECORE_AT) {
    RequireWhole();
    if (fakeMsg) return;
    call_.at[cubecore::MM_C] = gm.address(0);
    if constexpr (triangle != Triangle::NONE) {
      IterateKept(Sequence(enSequentialWrite), enAtomic, at);
      return;
    }
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | Sequence(enSequentialWrite), 0, 0, enAtomic,
        sync || waitIterateAll, at);
    if (sync)
      Await(at);
    else if (waitIterateAll)
      ++answers_;
  }
  template <bool sync = true>
  void IterateAll(const LocalTensor<DstT>& ubCmatrix, uint8_t enAtomic = 0, CUBECORE_AT) {
    RequireWhole();
    static_assert(triangle == Triangle::NONE,
                  "Matmul::IterateAll to UB with a policy of a triangle is not supported");
    RequireVector("IterateAll's ubCmatrix", ubCmatrix.memory(), at);
    int32_t columns = call_.org[4];
    uint32_t pitch = Blocks(static_cast<uint32_t>(call_.single[1])) * PerBlock();
    uint32_t count = static_cast<uint32_t>(call_.single[0]) * pitch;
    call_.org[4] = static_cast<int32_t>(pitch);
    call_.at[cubecore::MM_C] = Scratch(count * sizeof(DstT), cubecore::MM_C, at);
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES, 0, 0, enAtomic, true, at);
    call_.org[4] = columns;
    Await(at);
    if (!idle()) DataCopy(ubCmatrix, detail::gm_at<DstT>(call_.at[cubecore::MM_C]), count, at);
    Arrived(at);
  }
  void WaitIterateAll(CUBECORE_AT) {
    for (; answers_ > 0; --answers_) Await(at);
  }

  // --- tile by tile

  template <bool sync = true>
  bool Iterate(bool enPartialSum = false, CUBECORE_AT) {
    if constexpr (!sync) {
      Ahead(at);
      return false;
    }
    const int32_t parts = KParts();
    while (next_ < Tiles() * parts && !Kept(next_ / parts)) ++next_;
    if (next_ == Tiles() * parts) {
      next_ = 0;
      return false;
    }
    if (config.isPartialOutput && call_.at[cubecore::MM_BIAS] != -1)
      cubecore_refuse("a Matmul object with isPartialOutput", "have no bias", "one", &at);
    call_.k_first = next_ % parts * call_.tiling.baseK;
    Ask(cubecore::MM_COMPUTES | Apart() | (enPartialSum ? cubecore::MM_SUMS_ON : 0), next_ / parts,
        1, 0, false, at);
    call_.k_first = 0;
    ++next_;
    return true;
  }
  template <bool sync = true>
  void GetTensorC(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, CUBECORE_AT) {
    if constexpr (sync) {
      RequireSequence(enSequentialWrite, at);
      call_.at[cubecore::MM_C] = gm.address(0);
      Ask(cubecore::MM_STORES | Sequence(enSequentialWrite), Last(), 1, enAtomic, true, at);
      Await(at);
    } else {
      LocalTensor<DstT> room;
      detail::take_free<DstT, TPosition::LCM>(room);
      GetTensorC<false>(gm, room, enAtomic, enSequentialWrite, at);
      Arrived(at);
    }
  }
  template <bool sync = true>
  void GetTensorC(const LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, CUBECORE_AT) {
    RequireVector("GetTensorC's co2Local", co2Local.memory(), at);
    if constexpr (sync) {
      RequireSequence(enSequentialWrite, at);
      call_.at[cubecore::MM_C] = Scratch(TileBytes(), cubecore::MM_C, at);
      Ask(cubecore::MM_STORES | cubecore::MM_IN_SEQUENCE, Last(), 1, enAtomic, true, at);
      Await(at);
      Fetch(co2Local, call_.at[cubecore::MM_C], Last(), enSequentialWrite, at);
      Arrived(at);
    } else if (Promised(at)) {
      Await(at);
      Fetch(co2Local, ahead_ + got_ * TileBytes(), got_, enSequentialWrite, at);
      ++got_;
    }
  }
  template <bool sync = true>
  void GetTensorC(const GlobalTensor<DstT>& gm, const LocalTensor<DstT>& co2Local,
                  uint8_t enAtomic = 0, bool enSequentialWrite = false, CUBECORE_AT) {
    GetTensorC<sync>(co2Local, 0, true, at);
    if (idle()) return;
    next_ -= sync ? 0 : 1;
    (void)enAtomic;
    StoreTile(gm, co2Local, sync ? Last() : got_ - 1, enSequentialWrite, at);
  }
  template <bool sync = true>
  GlobalTensor<DstT> GetTensorC(uint8_t enAtomic = 0, bool enSequentialWrite = false, CUBECORE_AT) {
    static_assert(!sync, "Matmul::GetTensorC without a tensor is GetTensorC<false>");
    (void)enAtomic;
    (void)enSequentialWrite;
    if (!Promised(at)) return detail::gm_at<DstT>(ahead_);
    Await(at);
    return detail::gm_at<DstT>(ahead_ + got_++ * TileBytes());
  }
  // With parameters that are no longer used.
  template <bool sync = true, bool doPad>
  void GetTensorC(const LocalTensor<DstT>& c, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                  uint32_t height = 0, uint32_t width = 0, uint32_t srcGap = 0, uint32_t dstGap = 0,
                  CUBECORE_AT) {
    if (doPad || height + width + srcGap + dstGap != 0)
      cubecore_refuse("GetTensorC's doPad, height, width, srcGap and dstGap", "be 0", "others",
                      &at);
    GetTensorC<sync>(c, enAtomic, enSequentialWrite, at);
  }
  void AsyncGetTensorC(const LocalTensor<DstT>& c, CUBECORE_AT) {
    GetTensorC<false>(c, 0, false, at);
  }
  void WaitGetTensorC(CUBECORE_AT) { Arrived(at); }

  // --- several products at once

  // (gm, batchA, batchB, enSequentialWrite, strides...) on AIVs, (gm, enPartialSum, enAtomic,
  // enSequentialWrite, strides...) with ASCENDC_CUBE_ONLY.
  template <bool sync = true, bool waitIterateBatch = false, typename X, typename Y>
  void IterateBatch(const GlobalTensor<DstT>& gm, X first, Y second, bool enSequentialWrite,
                    const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                    const uint32_t matrixStrideC = 0, const bool enPartialSum = false,
                    const uint8_t enAtomic = 0, CUBECORE_AT) {
    (void)enPartialSum;
    uint8_t atomic = SetBatches(first, second, enAtomic);
    Batch(gm.address(0), false, {matrixStrideA, matrixStrideB, matrixStrideC},
          Sequence(enSequentialWrite), atomic, sync || waitIterateBatch, at);
    if (sync)
      Await(at);
    else if (waitIterateBatch)
      ++answers_;
  }
  // The same into UB, a matrix behind another.
  template <bool sync = true, typename X, typename Y>
  void IterateBatch(const LocalTensor<DstT>& ubCmatrix, X first, Y second, bool enSequentialWrite,
                    const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                    const uint32_t matrixStrideC = 0, const bool enPartialSum = false,
                    const uint8_t enAtomic = 0, CUBECORE_AT) {
    RequireVector("IterateBatch's ubCmatrix", ubCmatrix.memory(), at);
    RequireSync(sync, at);
    (void)matrixStrideC;
    (void)enPartialSum;
    uint8_t atomic = SetBatches(first, second, enAtomic);
    int64_t place = Scratch(BatchBytes(), cubecore::MM_C, at);
    Batch(place, true, {matrixStrideA, matrixStrideB, 0}, Sequence(enSequentialWrite), atomic, true,
          at);
    Await(at);
    Take(ubCmatrix, place, at);
  }
  // So many batches one after another, each into the next part of the workspace. Uncertain: the
  // page says how large a part is, not how its matrices lie; here one is behind another.
  template <bool sync = true, bool waitIterateBatch = false>
  void IterateNBatch(const uint32_t batchLoop, uint32_t batchA, uint32_t batchB,
                     bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                     const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                     CUBECORE_AT) {
    static_assert(config.isNBatch, "IterateNBatch must have MatmulConfig.isNBatch, got false");
    (void)matrixStrideC;
    if (workspace_ < 0)
      cubecore_refuse("IterateNBatch", "have the memory of SetWorkspace", "none", &at);
    Counts(static_cast<int32_t>(batchA), static_cast<int32_t>(batchB));
    const cubecore::MatmulCall first = call_;
    const tiling::TCubeTiling& t = call_.tiling;
    for (uint32_t n = 0; n < batchLoop; ++n) {
      using namespace cubecore;
      int64_t a = layout_of<A_TYPE>(t, call_.org, 0).start(n * batchA, matrixStrideA);
      int64_t b = layout_of<B_TYPE>(t, call_.org, 1).start(n * batchB, matrixStrideB);
      call_.at[MM_A] += bytes_of<typename A_TYPE::T>(a);
      call_.at[MM_B] += bytes_of<typename B_TYPE::T>(b);
      if (config.isBiasBatch && call_.at[MM_BIAS] >= 0)
        call_.at[MM_BIAS] += bytes_of<typename BIAS_TYPE::T>(n * Batches() * call_.single[1]);
      Batch(workspace_ + static_cast<int64_t>(n * BatchBytes()), true,
            {matrixStrideA, matrixStrideB, 0}, Sequence(enSequentialWrite), 0, true, at);
      if (sync)
        Await(at);
      else if (waitIterateBatch)
        ++answers_;
      call_ = first;
    }
    got_ = 0;
  }
  // The next part of what IterateNBatch<false> computes.
  template <bool sync = true>
  GlobalTensor<DstT> GetBatchTensorC(uint32_t batchA, uint32_t batchB,
                                     bool enSequentialWrite = false, CUBECORE_AT) {
    static_assert(!sync, "Matmul::GetBatchTensorC must be GetBatchTensorC<false>");
    (void)enSequentialWrite;
    Counts(static_cast<int32_t>(batchA), static_cast<int32_t>(batchB));
    Await(at);
    return detail::gm_at<DstT>(workspace_ + static_cast<int64_t>(got_++ * BatchBytes()));
  }
  template <bool sync = true>
  void GetBatchTensorC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB,
                       bool enSequentialWrite = false, CUBECORE_AT) {
    RequireVector("GetBatchTensorC's c", c.memory(), at);
    Take(c, GetBatchTensorC<sync>(batchA, batchB, enSequentialWrite, at).address(0), at);
  }
  // The name before.
  template <bool sync = true>
  GlobalTensor<DstT> GetBatchC(uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false,
                               CUBECORE_AT) {
    return GetBatchTensorC<sync>(batchA, batchB, enSequentialWrite, at);
  }
  template <bool sync = true>
  void GetBatchC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB,
                 bool enSequentialWrite = false, CUBECORE_AT) {
    GetBatchTensorC<sync>(c, batchA, batchB, enSequentialWrite, at);
  }
  void WaitIterateBatch(CUBECORE_AT) { WaitIterateAll(at); }

  void End(CUBECORE_AT) {
    if (CUBECORE_PART == 1 && !idle()) cubecore::matmul(cubecore::MM_FREE, nullptr, 0, at);
    answers_ = 0;
    next_ = 0;
  }

 private:
  using Operands::ahead_;
  using Operands::answers_;
  using Operands::batch_a_;
  using Operands::batch_b_;
  using Operands::Blocks;
  using Operands::Brought;
  using Operands::call_;
  using Operands::Counts;
  using Operands::got_;
  using Operands::idle;
  using Operands::index_;
  using Operands::next_;
  using Operands::Parts;
  using Operands::PerBlock;
  using Operands::Promised;
  using Operands::promised_;
  using Operands::Ready;
  using Operands::ReadyBatch;
  using Operands::RequireSync;
  using Operands::RequireVector;
  using Operands::Scratch;
  using Operands::Sequence;
  using Operands::TileAt;
  using Operands::TileBytes;
  using typename Operands::Tile;
  using Operands::Tiles;
  using Operands::unanswered_;
  using Operands::workspace_;

  // Asks for tiles of the product: here, or by a message to the AIC.
  void Ask(int32_t bits, int32_t first, int32_t tiles, uint8_t atomic, bool answers,
           const cubecore::Where& at) {
    if (!Ready(bits, first, tiles, atomic, at)) return;
    this->RequireScales(at);
    if constexpr (MM_CB::stores)
      cubecore_refuse("a Matmul object", "store C by itself", "a function of MatmulCallBackFunc",
                      &at);
    cubecore::MatmulCall call = call_;
    call.bits = bits | MM_CB::bits;
    call.first = first;
    call.tiles = tiles;
    call.atomic = atomic;
    // Sums in L0C go on from one call to the next: its tile is not passed on in between.
    // Fixpipe splits channels without the unit flag alone.
    bool alone = tiles == 1 && Tiles() == 1;
    call.unit_flag = config.enUnitFlag && !config.isEnableChannelSplit && !alone;
    Brought(call, at);
    if constexpr (detail::is_sparse<B_TYPE>) {
      AskSparse(call, at);
    } else if constexpr (CUBECORE_PART == 1) {
      const int64_t more = cubecore::matmul(cubecore::MM_RUN, &call, 0, at);
      cubecore::make_own_moves(more, at, MakeMove);
    } else {
      if (answers) call.bits |= cubecore::MM_ANSWERS;
      if (A_TYPE::ibShare && B_TYPE::ibShare) call.bits |= cubecore::MM_SHARED;
      cubecore::matmul(cubecore::MM_SEND, &call, 0, at);
    }
  }
  void AskSparse(const cubecore::MatmulCall& call, const cubecore::Where& at) {
    detail::require_sparse<A_TYPE, C_TYPE, config.doMultiDataLoad>();
    if (CUBECORE_PART != 1)
      cubecore_refuse("a Matmul object with a sparse B", "run with ASCENDC_CUBE_ONLY", "AIVs", &at);
    const detail::SparseProduct product(call, index_, B_TYPE::format == CubeFormat::NZ, at);
    const int32_t end = call.tiles == 0 ? Tiles() : call.first + call.tiles;
    for (int32_t number = call.first; number < end; ++number) {
      const Tile tile = TileAt(number);
      if (call.bits & cubecore::MM_COMPUTES)
        product.Compute(tile, (call.bits & cubecore::MM_SUMS_ON) != 0);
      if (call.bits & cubecore::MM_STORES)
        product.Store(tile, (call.bits & cubecore::MM_IN_SEQUENCE) != 0);
    }
  }
  void Await(const cubecore::Where& at) {
    if (std::exchange(unanswered_, false)) return;  // nothing was asked
    if (CUBECORE_PART != 1 && !idle()) cubecore::matmul(cubecore::MM_AWAIT, nullptr, 0, at);
  }

  // Tiles among which some are left out stand for themselves.
  static constexpr int32_t Apart() {
    if (config.isPartialOutput) return cubecore::MM_ALONE | cubecore::MM_PART;
    return triangle == Triangle::NONE ? 0 : cubecore::MM_ALONE;
  }
  // Parts of K that are not added up: one behind another, tile by tile.
  int32_t KParts() const {
    return config.isPartialOutput ? Parts(call_.single[2], call_.tiling.baseK) : 1;
  }
  // The tile that Iterate computed last.
  int32_t Last() const { return next_ == 0 ? -1 : (next_ - 1) / KParts(); }
  static void RequireWhole() {
    static_assert(!config.isPartialOutput,
                  "a Matmul object with isPartialOutput must be called by Iterate and GetTensorC");
  }
  static void RequireSequence(bool on, const cubecore::Where& at) {
    if (config.isPartialOutput && !on)
      cubecore_refuse("GetTensorC's enSequentialWrite", "be true with isPartialOutput", "false",
                      &at);
  }
  // Whether the policy keeps a tile: those on the diagonal and on one side of it.
  bool Kept(int32_t number) const {
    if constexpr (triangle == Triangle::NONE) return true;
    Tile tile = TileAt(number);
    uint32_t down = tile.row / static_cast<uint32_t>(call_.tiling.baseM);
    uint32_t across = tile.column / static_cast<uint32_t>(call_.tiling.baseN);
    return triangle == Triangle::UPPER ? down <= across : down >= across;
  }
  // The tiles that are kept, one by one.
  void IterateKept(int32_t bits, uint8_t atomic, const cubecore::Where& at) {
    for (int32_t number = 0; number < Tiles(); ++number) {
      if (!Kept(number)) continue;
      Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | Apart() | bits, number, 1, atomic, true,
          at);
      Await(at);
    }
  }

  // All tiles into the workspace, an answer for each.
  void Ahead(const cubecore::Where& at) {
    RequireWhole();
    static_assert(triangle == Triangle::NONE,
                  "Matmul::Iterate<false> with a policy of a triangle is not supported");
    if (got_ > 0) Arrived(at);
    got_ = 0;
    promised_ = Tiles();
    uint64_t bytes = static_cast<uint64_t>(Tiles()) * TileBytes();
    ahead_ = workspace_ >= 0 ? workspace_ : Scratch(bytes, cubecore::MM_C, at);
    call_.at[cubecore::MM_C] = ahead_;
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | cubecore::MM_IN_SEQUENCE | cubecore::MM_EACH,
        0, 0, 0, true, at);
  }

  // --- batches

  // Counts of matrices, or (enPartialSum, enAtomic) where SetBatchNum has given them; returns how
  // results are added.
  template <typename X, typename Y>
  uint8_t SetBatches(X first, Y second, uint8_t atomic) {
    if constexpr (std::is_same_v<X, bool>) return static_cast<uint8_t>(second);
    Counts(static_cast<int32_t>(first), static_cast<int32_t>(second));
    return atomic;
  }
  int32_t Batches() const { return std::max(batch_a_, batch_b_); }
  // Of matrices one behind another, with rows of whole blocks.
  uint32_t Pitch() const { return Blocks(static_cast<uint32_t>(call_.single[1])) * PerBlock(); }
  uint64_t BatchBytes() const {
    return static_cast<uint64_t>(Batches()) * call_.single[0] * Pitch() * sizeof(DstT);
  }
  // Computes a batch; `behind`: its matrices lie one behind another.
  void Batch(int64_t place, bool behind, const uint32_t (&strides)[3], int32_t bits, uint8_t atomic,
             bool answers, const cubecore::Where& at) {
    RequireWhole();
    if (!ReadyBatch(behind, bits, at)) return;
    cubecore::MatmulCall plain = call_;
    call_.at[cubecore::MM_C] = place;
    set_batch<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>(call_, batch_a_, batch_b_, strides,
                                                 config.isBiasBatch);
    if (behind) {
      call_.org[4] = static_cast<int32_t>(Pitch());
      call_.strides[cubecore::MM_C] = static_cast<int64_t>(BatchBytes()) / Batches();
    }
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | bits, 0, 0, atomic, answers, at);
    call_ = plain;
  }
  void Take(const LocalTensor<DstT>& to, int64_t place, const cubecore::Where& at) {
    if (idle()) return;
    DataCopy(to, detail::gm_at<DstT>(place), static_cast<uint32_t>(BatchBytes() / sizeof(DstT)),
             at);
    Arrived(at);
  }

  // --- tiles on their way to UB

  void Fetch(const LocalTensor<DstT>& to, int64_t from, int32_t number, bool sequence,
             const cubecore::Where& at) {
    if (idle() || number < 0) return;
    Tile tile = TileAt(number);
    uint32_t pitch = static_cast<uint32_t>(call_.tiling.baseN);
    if (C_TYPE::format == CubeFormat::NZ || sequence ||
        static_cast<int32_t>(pitch) == call_.single[1]) {
      uint32_t offset = sequence ? 0 : tile.row * pitch;
      uint32_t rows =
          C_TYPE::format == CubeFormat::NZ ? static_cast<uint32_t>(call_.tiling.baseM) : tile.m;
      DataCopy(to[offset], detail::gm_at<DstT>(from), rows * pitch, at);
      return;
    }
    uint32_t whole = Pitch();
    DataCopyParams runs(static_cast<uint16_t>(tile.m), static_cast<uint16_t>(Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(pitch) - Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(whole) - Blocks(tile.n)));
    DataCopy(to[tile.row * whole + tile.column], detail::gm_at<DstT>(from), runs, at);
  }
  void StoreTile(const GlobalTensor<DstT>& gm, const LocalTensor<DstT>& from, int32_t number,
                 bool sequence, const cubecore::Where& at) {
    if (number < 0) return;
    Tile tile = TileAt(number);
    uint32_t pitch = static_cast<uint32_t>(call_.tiling.baseN);
    Arrived(at);
    if (sequence) {
      DataCopy(gm, from, tile.m * pitch, at);
      return;
    }
    uint32_t whole = static_cast<uint32_t>(call_.org[4] != 0 ? call_.org[4] : call_.org[1]);
    DataCopyParams runs(static_cast<uint16_t>(tile.m), static_cast<uint16_t>(Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(pitch) - Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(whole - tile.n)));
    DataCopy(gm[static_cast<uint64_t>(tile.row) * whole + tile.column], from, runs, at);
  }
  // What comes later finds a tile copied.
  void Arrived(const cubecore::Where& at) {
    if (!idle()) PipeBarrier<PIPE_ALL>(at);
  }
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto& MM_CFG = CFG_NORM, class MM_CB = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
using Matmul = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, POLICY>;

}  // namespace AscendC

namespace matmul {
using namespace AscendC;
}
