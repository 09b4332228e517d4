// The Matmul object. Pages: "Matmul Kernel侧接口" with its members.
//
// On an AIC a call is issued where it stands; on an AIV it is a message to the AIC of the block,
// which is in `REGIST_MATMUL_OBJ`. The program of a call is that of cubecore's own kernel: the
// recorder makes it of the tiling and puts it here.
#pragma once

#include "cubecore/copy.h"
#include "cubecore/matmul/batches.h"
#include "cubecore/matmul/call.h"
#include "cubecore/matmul/config.h"
#include "cubecore/matmul/policy.h"
#include "cubecore/sync.h"

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto& MM_CFG = CFG_NORM, class MM_CB = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
class MatmulImpl {
 public:
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;

  static constexpr const MatmulConfig& config = detail::config_of(MM_CFG);
  static constexpr bool takes_turns = config.enableMixDualMaster;
  static constexpr Triangle triangle = POLICY<MM_CFG>::triangle;

  static_assert(!MM_CB::given,
                "Matmul: functions of MatmulCallBackFunc are not supported; see docs/cpp.md");
  static_assert(POLICY<MM_CFG>::provided,
                "Matmul: MatmulWithScalePolicy, SplitMMatmulPolicy and SplitNMatmulPolicy are for "
                "architecture 3510, which is not supported");
  static_assert(!config.intraBlockPartSum && !config.isPartialOutput,
                "Matmul: intraBlockPartSum and isPartialOutput are not supported; see docs/cpp.md");
  static_assert(A_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    B_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    C_TYPE::format != CubeFormat::COLUMN_MAJOR,
                "Matmul: COLUMN_MAJOR is for architecture 3510, which is not supported");

  MatmulImpl() {
    call_.types[0] = cubecore::Element<SrcAT>::name;
    call_.types[1] = cubecore::Element<SrcBT>::name;
    call_.types[2] = cubecore::Element<DstT>::name;
    call_.types[3] = "";
    call_.formats[0] = Format(A_TYPE::format);
    call_.formats[1] = Format(B_TYPE::format);
    call_.formats[2] = Format(C_TYPE::format);
    call_.template_ = config.doMultiDataLoad || config.doSpecialMDL ? 1
                      : A_TYPE::ibShare || B_TYPE::ibShare          ? 2
                                                                    : 0;
    call_.preload = config.doMTE2Preload != 0;
    call_.channel_split = config.isEnableChannelSplit;
    ClearBias();
  }

  // --- what it computes

  void Init(const tiling::TCubeTiling* cubeTiling, TPipe* = nullptr) {
    if (cubeTiling != nullptr) call_.tiling = *cubeTiling;
    detail::take_constants(call_.tiling, MM_CFG);
    const tiling::TCubeTiling& t = call_.tiling;
    SetOrgShape(t.M, t.N, t.Ka, t.Kb);
    SetSingleShape(t.singleCoreM, t.singleCoreN, t.singleCoreK);
    ClearBias();
  }
  void SetOrgShape(int orgM, int orgN, int orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0) {
    const int all[] = {orgM, orgN, orgKa, orgKb, orgKc};
    for (int n = 0; n < 5; ++n) call_.org[n] = all[n];
  }
  void SetSingleShape(int singleM, int singleN, int singleK) { SetTail(singleM, singleN, singleK); }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1) {
    const int all[] = {tailM, tailN, tailK};
    for (int n = 0; n < 3; ++n)
      if (all[n] != -1) call_.single[n] = all[n];
    next_ = 0;
  }
  void SetTensorA(const GlobalTensor<SrcAT>& gm, bool isTransposeA = false) {
    Operand(cubecore::MM_A, gm.address(0), isTransposeA);
  }
  void SetTensorB(const GlobalTensor<SrcBT>& gm, bool isTransposeB = false) {
    Operand(cubecore::MM_B, gm.address(0), isTransposeB);
  }
  void SetTensorA(const LocalTensor<SrcAT>& leftMatrix, bool isTransposeA = false, CUBECORE_AT) {
    RequireVector("SetTensorA's leftMatrix", leftMatrix.memory(), at);
    local_a_ = leftMatrix;
    Operand(cubecore::MM_A, FROM_UB, isTransposeA);
  }
  void SetTensorB(const LocalTensor<SrcBT>& rightMatrix, bool isTransposeB = false, CUBECORE_AT) {
    RequireVector("SetTensorB's rightMatrix", rightMatrix.memory(), at);
    local_b_ = rightMatrix;
    Operand(cubecore::MM_B, FROM_UB, isTransposeB);
  }
  void SetBias(const GlobalTensor<BiasT>& biasGlobal) {
    call_.types[3] = cubecore::Element<BiasT>::name;
    call_.at[cubecore::MM_BIAS] = biasGlobal.address(0);
  }
  void SetBias(const LocalTensor<BiasT>& inputBias, CUBECORE_AT) {
    RequireVector("SetBias's inputBias", inputBias.memory(), at);
    call_.types[3] = cubecore::Element<BiasT>::name;
    local_bias_ = inputBias;
    call_.at[cubecore::MM_BIAS] = FROM_UB;
  }
  void ClearBias() {
    call_.types[3] = call_.tiling.isBias ? cubecore::Element<BiasT>::name : "";
    call_.at[cubecore::MM_BIAS] = -1;
  }
  void DisableBias() { ClearBias(); }
  void SetQuantScalar(const uint64_t quantScalar) {
    call_.quantises = 1;
    call_.scale = quantScalar;
  }
  void SetQuantVector(const GlobalTensor<uint64_t>& quantTensor) {
    call_.quantises = 2;
    call_.at[cubecore::MM_SCALE] = quantTensor.address(0);
  }
  void SetHF32(bool enableHF32 = false, int32_t transMode = 0) {
    (void)transMode;
    call_.hf32 = enableHF32;
  }
  void SetBatchNum(int32_t batchA, int32_t batchB) {
    batch_a_ = batchA;
    batch_b_ = batchB;
  }
  template <class T>
  void SetWorkspace(GlobalTensor<T>& addr) {
    workspace_ = addr.address(0);
  }
  template <class T>
  void SetWorkspace(const T* addr, int) {
    workspace_ = cubecore::gm_address(addr);
  }
  void SetLocalWorkspace(const LocalTensor<uint8_t>&) {}
  void SetSubBlockIdx(uint8_t) {}
  uint8_t GetSubBlockIdx() const { return static_cast<uint8_t>(cubecore_launch()->part); }
  void SetUserDefInfo(const uint64_t) {}
  template <class T>
  void SetSelfDefineData(T) {}
  MatrixOffset GetOffsetC() const { return {}; }

  // --- all tiles at once

  template <bool sync = true>
  void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, bool waitIterateAll = false, bool fakeMsg = false,
                  CUBECORE_AT) {
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
    if (!idle()) DataCopy(ubCmatrix, At<DstT>(call_.at[cubecore::MM_C]), count, at);
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
    while (next_ < Tiles() && !Kept(next_)) ++next_;
    if (next_ == Tiles()) {
      next_ = 0;
      return false;
    }
    Ask(cubecore::MM_COMPUTES | Apart() | (enPartialSum ? cubecore::MM_SUMS_ON : 0), next_, 1, 0,
        false, at);
    ++next_;
    return true;
  }
  template <bool sync = true>
  void GetTensorC(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, CUBECORE_AT) {
    static_assert(sync, "Matmul::GetTensorC<false> to global memory is not supported");
    call_.at[cubecore::MM_C] = gm.address(0);
    Ask(cubecore::MM_STORES | Sequence(enSequentialWrite), next_ - 1, 1, enAtomic, true, at);
    Await(at);
  }
  template <bool sync = true>
  void GetTensorC(const LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0,
                  bool enSequentialWrite = false, CUBECORE_AT) {
    RequireVector("GetTensorC's co2Local", co2Local.memory(), at);
    if constexpr (sync) {
      call_.at[cubecore::MM_C] = Scratch(TileBytes(), cubecore::MM_C, at);
      Ask(cubecore::MM_STORES | cubecore::MM_IN_SEQUENCE, next_ - 1, 1, enAtomic, true, at);
      Await(at);
      Fetch(co2Local, call_.at[cubecore::MM_C], next_ - 1, enSequentialWrite, at);
      Arrived(at);
    } else {
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
    StoreTile(gm, co2Local, sync ? next_ - 1 : got_ - 1, enSequentialWrite, at);
  }
  template <bool sync = true>
  GlobalTensor<DstT> GetTensorC(uint8_t enAtomic = 0, bool enSequentialWrite = false, CUBECORE_AT) {
    static_assert(!sync, "Matmul::GetTensorC without a tensor is GetTensorC<false>");
    (void)enAtomic;
    (void)enSequentialWrite;
    Await(at);
    return At<DstT>(ahead_ + got_++ * TileBytes());
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
    uint8_t atomic = enAtomic;
    if constexpr (std::is_same_v<X, bool>) {
      atomic = static_cast<uint8_t>(second);
    } else {
      batch_a_ = static_cast<int32_t>(first);
      batch_b_ = static_cast<int32_t>(second);
    }
    (void)enPartialSum;
    cubecore::MatmulCall plain = call_;
    call_.at[cubecore::MM_C] = gm.address(0);
    set_batch<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>(call_, batch_a_, batch_b_,
                                                 {matrixStrideA, matrixStrideB, matrixStrideC},
                                                 config.isBiasBatch);
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | Sequence(enSequentialWrite), 0, 0, atomic,
        sync || waitIterateBatch, at);
    call_ = plain;
    if (sync)
      Await(at);
    else if (waitIterateBatch)
      ++answers_;
  }
  void WaitIterateBatch(CUBECORE_AT) { WaitIterateAll(at); }

  void End(CUBECORE_AT) {
    if (CUBECORE_PART == 1 && !idle()) cubecore_matmul(cubecore::MM_FREE, nullptr, 0, &at);
    answers_ = 0;
    next_ = 0;
  }

  // Ours: of an object that this core does not run.
  void MakeIdle() { idle_ = true; }

 private:
  static constexpr int64_t FROM_UB = -2;

  static constexpr int32_t Format(CubeFormat format) {
    return format == CubeFormat::NZ ? 1 : format == CubeFormat::ND_ALIGN ? 3 : 0;
  }
  static constexpr uint32_t PerBlock() { return 32 / sizeof(DstT); }
  static constexpr uint32_t Blocks(uint32_t count) { return (count + PerBlock() - 1) / PerBlock(); }
  static constexpr int32_t Sequence(bool on) { return on ? cubecore::MM_IN_SEQUENCE : 0; }
  static int32_t Parts(int32_t whole, int32_t base) {
    return base <= 0 ? 0 : (whole + base - 1) / base;
  }
  template <typename T>
  static GlobalTensor<T> At(int64_t address) {
    GlobalTensor<T> made;
    made.SetGlobalBuffer(reinterpret_cast<T*>(cubecore_launch()->gm_base + address));
    return made;
  }
  static void RequireVector(const char* what, uint8_t memory, const cubecore::Where& at) {
    if (memory == static_cast<uint8_t>(cubecore::Mem::UB) && CUBECORE_PART != 1) return;
    cubecore_refuse(what, "lie in UB of an AIV (TPosition VECIN, VECOUT or VECCALC)",
                    CUBECORE_PART == 1 ? "a tensor of an AIC" : "another memory", &at);
  }

  bool idle() const { return idle_ || (takes_turns && CUBECORE_PART == 2); }
  int32_t Tiles() const {
    return Parts(call_.single[0], call_.tiling.baseM) * Parts(call_.single[1], call_.tiling.baseN);
  }
  uint64_t TileBytes() const {
    return static_cast<uint64_t>(call_.tiling.baseM) * call_.tiling.baseN * sizeof(DstT);
  }
  void Operand(cubecore::MatmulOperand operand, int64_t address, bool trans) {
    call_.at[operand] = address;
    call_.trans[operand] = trans;
    next_ = 0;
  }

  // Asks for tiles of the product: here, or by a message to the AIC.
  void Ask(int32_t bits, int32_t first, int32_t tiles, uint8_t atomic, bool answers,
           const cubecore::Where& at) {
    if (idle()) return;
    cubecore::MatmulCall call = call_;
    call.bits = bits;
    call.first = first;
    call.tiles = tiles;
    call.atomic = atomic;
    // Sums in L0C go on from one call to the next: its tile is not passed on in between.
    // Fixpipe splits channels without the unit flag alone.
    bool alone = tiles == 1 && Tiles() == 1;
    call.unit_flag = config.enUnitFlag && !config.isEnableChannelSplit && !alone;
    Brought(call, at);
    if constexpr (CUBECORE_PART == 1) {
      cubecore_matmul(cubecore::MM_RUN, &call, 0, &at);
    } else {
      if (answers) call.bits |= cubecore::MM_ANSWERS;
      if (A_TYPE::ibShare && B_TYPE::ibShare) call.bits |= cubecore::MM_SHARED;
      cubecore_matmul(cubecore::MM_SEND, &call, 0, &at);
    }
  }
  void Await(const cubecore::Where& at) {
    if (CUBECORE_PART != 1 && !idle()) cubecore_matmul(cubecore::MM_AWAIT, nullptr, 0, &at);
  }

  // Tiles among which some are left out stand for themselves.
  static constexpr int32_t Apart() { return triangle == Triangle::NONE ? 0 : cubecore::MM_ALONE; }
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
    static_assert(triangle == Triangle::NONE,
                  "Matmul::Iterate<false> with a policy of a triangle is not supported");
    if (got_ > 0) Arrived(at);
    got_ = 0;
    uint64_t bytes = static_cast<uint64_t>(Tiles()) * TileBytes();
    ahead_ = workspace_ >= 0 ? workspace_ : Scratch(bytes, cubecore::MM_C, at);
    call_.at[cubecore::MM_C] = ahead_;
    Ask(cubecore::MM_COMPUTES | cubecore::MM_STORES | cubecore::MM_IN_SEQUENCE | cubecore::MM_EACH,
        0, 0, 0, true, at);
  }

  // Copies what lies in UB to global memory, where the AIC finds it.
  void Brought(cubecore::MatmulCall& call, const cubecore::Where& at) {
    using namespace cubecore;
    if (call.at[MM_A] == FROM_UB) {
      call.at[MM_A] = Bring(local_a_, call.single[0] * call.single[2], MM_A, at);
      call.org[call.trans[0] ? 0 : 2] = call.single[call.trans[0] ? 0 : 2];
    }
    if (call.at[MM_B] == FROM_UB) {
      call.at[MM_B] = Bring(local_b_, call.single[1] * call.single[2], MM_B, at);
      if (call.trans[1]) {
        call.org[3] = call.single[2];
      } else {
        if (call.org[4] == 0) call.org[4] = call.org[1];
        call.org[1] = call.single[1];
      }
    }
    if (call.at[MM_BIAS] == FROM_UB)
      call.at[MM_BIAS] = Bring(local_bias_, call.single[1], MM_BIAS, at);
  }
  template <typename T>
  int64_t Bring(const LocalTensor<T>& from, int32_t count, cubecore::MatmulOperand operand,
                const cubecore::Where& at) {
    int64_t bytes = (cubecore::bytes_of<T>(count) + 31) / 32 * 32;
    int64_t address = Scratch(static_cast<uint64_t>(bytes), operand, at);
    DataCopy(At<T>(address), from, static_cast<uint32_t>(bytes * 8 / cubecore::Element<T>::bits),
             at);
    return address;
  }
  int64_t Scratch(uint64_t bytes, cubecore::MatmulOperand operand, const cubecore::Where& at) {
    cubecore::MatmulCall call = call_;
    call.bits = operand;
    return idle() ? 0
                  : cubecore_matmul(cubecore::MM_SCRATCH, &call, static_cast<int64_t>(bytes), &at);
  }

  // --- tiles on their way to UB

  struct Tile {
    uint32_t m, n, row, column;
  };
  Tile TileAt(int32_t number) const {
    const tiling::TCubeTiling& t = call_.tiling;
    int32_t along_m = Parts(call_.single[0], t.baseM), along_n = Parts(call_.single[1], t.baseN);
    int32_t mi = number % along_m, ni = number / along_m;
    if (t.iterateOrder == 1) {
      ni = number % along_n;
      mi = number / along_n;
    }
    int32_t row = mi * t.baseM, column = ni * t.baseN;
    return {static_cast<uint32_t>(std::min(t.baseM, call_.single[0] - row)),
            static_cast<uint32_t>(std::min(t.baseN, call_.single[1] - column)),
            static_cast<uint32_t>(row), static_cast<uint32_t>(column)};
  }
  void Fetch(const LocalTensor<DstT>& to, int64_t from, int32_t number, bool sequence,
             const cubecore::Where& at) {
    if (idle()) return;
    Tile tile = TileAt(number);
    uint32_t pitch = static_cast<uint32_t>(call_.tiling.baseN);
    if (C_TYPE::format == CubeFormat::NZ || sequence ||
        static_cast<int32_t>(pitch) == call_.single[1]) {
      uint32_t offset = sequence ? 0 : tile.row * pitch;
      uint32_t rows =
          C_TYPE::format == CubeFormat::NZ ? static_cast<uint32_t>(call_.tiling.baseM) : tile.m;
      DataCopy(to[offset], At<DstT>(from), rows * pitch, at);
      return;
    }
    uint32_t whole = Blocks(static_cast<uint32_t>(call_.single[1])) * PerBlock();
    DataCopyParams runs(static_cast<uint16_t>(tile.m), static_cast<uint16_t>(Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(pitch) - Blocks(tile.n)),
                        static_cast<uint16_t>(Blocks(whole) - Blocks(tile.n)));
    DataCopy(to[tile.row * whole + tile.column], At<DstT>(from), runs, at);
  }
  void StoreTile(const GlobalTensor<DstT>& gm, const LocalTensor<DstT>& from, int32_t number,
                 bool sequence, const cubecore::Where& at) {
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

  cubecore::MatmulCall call_ = {};
  LocalTensor<SrcAT> local_a_;
  LocalTensor<SrcBT> local_b_;
  LocalTensor<BiasT> local_bias_;
  int64_t workspace_ = -1, ahead_ = 0;
  int32_t next_ = 0, got_ = 0, answers_ = 0;
  int32_t batch_a_ = 1, batch_b_ = 1;
  bool idle_ = false;
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE,
          const auto& MM_CFG = CFG_NORM, class MM_CB = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
using Matmul = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, POLICY>;

}  // namespace AscendC

namespace matmul {
using namespace AscendC;
}
