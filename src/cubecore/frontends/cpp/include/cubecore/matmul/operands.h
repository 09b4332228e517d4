// What a Matmul object computes: its operands and their setters. Pages: those of the setters.
#pragma once

#include "cubecore/basic/copy.h"
#include "cubecore/basic/unary.h"
#include "cubecore/matmul/batches.h"
#include "cubecore/matmul/call.h"
#include "cubecore/matmul/config.h"
#include "cubecore/matmul/findings.h"
#include "cubecore/sync/flags.h"

namespace AscendC {

namespace detail {

// A base block of C: its extents, and where it begins.
struct Tile {
  uint32_t m, n, row, column;
};

// What lies in global memory at an address of the launch.
template <typename T>
inline GlobalTensor<T> gm_at(int64_t address) {
  GlobalTensor<T> made;
  made.SetGlobalBuffer(reinterpret_cast<T*>(cubecore_launch()->gm_base + address));
  return made;
}

}  // namespace detail

// The part of a Matmul object that no policy changes.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE, const auto& MM_CFG>
class MatmulOperands {
 public:
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;

  static constexpr const MatmulConfig& config = detail::config_of(MM_CFG);
  static constexpr bool takes_turns = config.enableMixDualMaster;

  MatmulOperands() {
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
    NoBias();
  }

  void Init(const tiling::TCubeTiling* cubeTiling, TPipe* = nullptr) {
    if (cubeTiling != nullptr) call_.tiling = *cubeTiling;
    detail::take_constants(call_.tiling, MM_CFG);
    const tiling::TCubeTiling& t = call_.tiling;
    Shape({t.M, t.N, t.Ka, t.Kb, 0});
    const int32_t single[] = {t.singleCoreM, t.singleCoreN, t.singleCoreK};
    for (int n = 0; n < 3; ++n) call_.single[n] = single[n];
    next_ = 0;
    NoBias();
  }
  void SetOrgShape(int orgM, int orgN, int orgK, CUBECORE_AT) {
    SetOrgShape(orgM, orgN, orgK, orgK, 0, at);
  }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0, CUBECORE_AT) {
    const int all[] = {orgM, orgN, orgKa, orgKb, orgKc};
    constexpr const char* names[] = {"orgM", "orgN", "orgKa", "orgKb"};
    RequireEnabled(config.enableSetOrgShape, "SetOrgShape", at);
    if (set_ != 0)
      Found(at, "SetOrgShape",
            "it must be called before SetTensorA, SetTensorB, SetBias and SetSingleShape, got a "
            "call behind one of them");
    for (int n = 0; n < 4; ++n)
      if (all[n] < 1) Found(at, "SetOrgShape", "%s must be at least 1, got %d", names[n], all[n]);
    Shape(all);
    reshaped_ = true;
  }
  void SetSingleShape(int singleM, int singleN, int singleK, CUBECORE_AT) {
    constexpr const char* names[] = {"singleM", "singleN", "singleK"};
    Single("SetSingleShape", names, {singleM, singleN, singleK}, at);
  }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1, CUBECORE_AT) {
    constexpr const char* names[] = {"tailM", "tailN", "tailK"};
    RequireEnabled(config.enableSetTail, "SetTail", at);
    Single("SetTail", names, {tailM, tailN, tailK}, at);
  }
  void SetTensorA(const GlobalTensor<SrcAT>& gm, bool isTransposeA = false, CUBECORE_AT) {
    RequireBuffer("SetTensorA", "gm", gm.GetPhyAddr(), at);
    RequireTransposed<A_TYPE>("SetTensorA", "isTransposeA", isTransposeA, at);
    Operand(cubecore::MM_A, gm.address(0), isTransposeA);
  }
  void SetTensorB(const GlobalTensor<SrcBT>& gm, bool isTransposeB = false, CUBECORE_AT) {
    RequireBuffer("SetTensorB", "gm", gm.GetPhyAddr(), at);
    RequireTransposed<B_TYPE>("SetTensorB", "isTransposeB", isTransposeB, at);
    Operand(cubecore::MM_B, gm.address(0), isTransposeB);
  }
  void SetTensorA(const LocalTensor<SrcAT>& leftMatrix, bool isTransposeA = false, CUBECORE_AT) {
    RequireVector("SetTensorA's leftMatrix", leftMatrix.memory(), at);
    RequireTransposed<A_TYPE>("SetTensorA", "isTransposeA", isTransposeA, at);
    local_a_ = leftMatrix;
    Operand(cubecore::MM_A, FROM_UB, isTransposeA);
  }
  void SetTensorB(const LocalTensor<SrcBT>& rightMatrix, bool isTransposeB = false, CUBECORE_AT) {
    RequireVector("SetTensorB's rightMatrix", rightMatrix.memory(), at);
    RequireTransposed<B_TYPE>("SetTensorB", "isTransposeB", isTransposeB, at);
    local_b_ = rightMatrix;
    Operand(cubecore::MM_B, FROM_UB, isTransposeB);
  }
  // A of one row, or B of one column, of equal elements.
  void SetTensorA(SrcAT aScalar, CUBECORE_AT) {
    static_assert(repeats<SrcAT>, "SetTensorA's aScalar must be half or float, got another type");
    RequireVector("SetTensorA with a number", static_cast<uint8_t>(cubecore::Mem::UB), at);
    scalar_a_ = aScalar;
    Operand(cubecore::MM_A, FROM_SCALAR, false);
  }
  void SetTensorB(SrcBT bScalar, CUBECORE_AT) {
    static_assert(repeats<SrcBT>, "SetTensorB's bScalar must be half or float, got another type");
    RequireVector("SetTensorB with a number", static_cast<uint8_t>(cubecore::Mem::UB), at);
    scalar_b_ = bScalar;
    Operand(cubecore::MM_B, FROM_SCALAR, true);
  }
  void SetBias(const GlobalTensor<BiasT>& biasGlobal, CUBECORE_AT) {
    RequireBuffer("SetBias", "biasGlobal", biasGlobal.GetPhyAddr(), at);
    RequireBias(at);
    call_.types[3] = cubecore::Element<BiasT>::name;
    call_.at[cubecore::MM_BIAS] = biasGlobal.address(0);
  }
  void SetBias(const LocalTensor<BiasT>& inputBias, CUBECORE_AT) {
    RequireVector("SetBias's inputBias", inputBias.memory(), at);
    RequireBias(at);
    call_.types[3] = cubecore::Element<BiasT>::name;
    local_bias_ = inputBias;
    call_.at[cubecore::MM_BIAS] = FROM_UB;
  }
  void ClearBias() {
    NoBias();
    ever_ |= LEFT_BIAS;
  }
  void DisableBias() { ClearBias(); }
  void SetQuantScalar(const uint64_t quantScalar, CUBECORE_AT) {
    RequireEnabled(config.enableQuantVector, "SetQuantScalar", at);
    if (!RequireQuantised("SetQuantScalar", at)) return;
    call_.quantises = 1;
    call_.scale = quantScalar;
  }
  void SetQuantVector(const GlobalTensor<uint64_t>& quantTensor, CUBECORE_AT) {
    RequireEnabled(config.enableQuantVector, "SetQuantVector", at);
    RequireBuffer("SetQuantVector", "quantTensor", quantTensor.GetPhyAddr(), at);
    if (!RequireQuantised("SetQuantVector", at)) return;
    call_.quantises = 2;
    call_.at[cubecore::MM_SCALE] = quantTensor.address(0);
  }
  template <typename T>
  void SetSparseIndex(const GlobalTensor<T>& indexGlobal) {
    static_assert(!cubecore::is_950 || sizeof(T) == 0,
                  "Matmul.SetSparseIndex is of architecture 2201; use a dense B");
    static_assert(std::is_same_v<T, uint8_t>,
                  "SetSparseIndex.indexGlobal must be of uint8_t, got another type");
    index_ = indexGlobal.address(0);
  }
  void SetHF32(bool enableHF32 = false, int32_t transMode = 0, CUBECORE_AT) {
    RequireCubeOnly("SetHF32", at);
    if (transMode != 0 && transMode != 1)
      Found(at, "SetHF32", "transMode must be 0 or 1, got %d", transMode);
    call_.hf32 = enableHF32;
  }
  void SetBatchNum(int32_t batchA, int32_t batchB, CUBECORE_AT) {
    RequireCubeOnly("SetBatchNum", at);
    RequireNoTurns("SetBatchNum", at);
    Counts(batchA, batchB);
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
  void SetUserDefInfo(const uint64_t tilingPtr) { call_.user[0] = tilingPtr; }
  void SetSelfDefineData(const uint64_t dataPtr, CUBECORE_AT) {
    RequireEnabled(config.enableSetDefineData, "SetSelfDefineData", at);
    if ((set_ & (HAS_A | HAS_B)) != 0)
      Found(at, "SetSelfDefineData",
            "it must be called before SetTensorA and SetTensorB, got a call behind one of them");
    call_.user[1] = dataPtr;
  }
  MatrixOffset GetOffsetC() const { return {}; }

  // Ours: of an object that this core does not run, and its number among a kernel's.
  void MakeIdle() { idle_ = true; }
  void SetNumber(int32_t number) {
    call_.object = number;
    registered_ = true;
  }
  int32_t GetNumber() const { return call_.object; }

 protected:
  static constexpr int64_t FROM_UB = -2, FROM_SCALAR = -3;
  // Pages SetTensorA, SetTensorB: numbers are half or float.
  template <typename T>
  static constexpr bool repeats = std::is_same_v<T, half> || std::is_same_v<T, float>;

  static constexpr int32_t Format(CubeFormat format) {
    return format == CubeFormat::NZ ? 1 : format == CubeFormat::ND_ALIGN ? 3 : 0;
  }
  static constexpr uint32_t PerBlock() { return 32 / sizeof(DstT); }
  static constexpr uint32_t Blocks(uint32_t count) { return (count + PerBlock() - 1) / PerBlock(); }
  static constexpr int32_t Sequence(bool on) { return on ? cubecore::MM_IN_SEQUENCE : 0; }
  static int32_t Parts(int32_t whole, int32_t base) {
    return base <= 0 ? 0 : (whole + base - 1) / base;
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
  using Tile = detail::Tile;
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
  uint64_t TileBytes() const {
    return static_cast<uint64_t>(call_.tiling.baseM) * call_.tiling.baseN * sizeof(DstT);
  }
  void Operand(cubecore::MatmulOperand operand, int64_t address, bool trans) {
    call_.at[operand] = address;
    call_.trans[operand] = trans;
    next_ = 0;
    Have(operand == cubecore::MM_A ? HAS_A : HAS_B);
  }
  void Shape(const int (&all)[5]) {
    for (int n = 0; n < 5; ++n) call_.org[n] = all[n];
  }
  void Counts(int32_t batchA, int32_t batchB) {
    batch_a_ = batchA;
    batch_b_ = batchB;
  }
  void Single(const char* call, const char* const (&names)[3], const int (&all)[3],
              const cubecore::Where& at) {
    const tiling::TCubeTiling& t = call_.tiling;
    const int32_t most[] = {t.singleCoreM, t.singleCoreN, t.singleCoreK};
    for (int n = 0; n < 3; ++n) {
      if (all[n] == -1) continue;
      if (all[n] < 1)
        Found(at, call, "%s must be at least 1, or -1 to stay, got %d", names[n], all[n]);
      else if (all[n] > most[n] && most[n] > 0 && !reshaped_)
        Found(at, call, "%s must be at most the tiling's singleCore%c, %d, got %d", names[n],
              "MNK"[n], most[n], all[n]);
      call_.single[n] = all[n];
    }
    next_ = 0;
    Have(HAS_SHAPE);
  }

  // --- rules of the pages; objects that do not compute break none

  enum Bits : uint8_t { HAS_A = 1, HAS_B = 2, HAS_BIAS = 4, HAS_SHAPE = 8, LEFT_BIAS = 16 };
  void Have(uint8_t bit) {
    set_ |= bit;
    ever_ |= bit;
  }
  template <typename... V>
  void Found(const cubecore::Where& at, const char* call, const char* format, V... values) const {
    if (!idle()) detail::found_in_call(at, call, format, values...);
  }
  void RequireEnabled(bool enabled, const char* call, const cubecore::Where& at) const {
    if (!enabled)
      Found(at, call, "enable%s of MatmulConfig must be true, got false",
            detail::is_named(call, "SetSelfDefineData") ? "SetDefineData"
            : detail::is_named(call, "SetQuantVector") || detail::is_named(call, "SetQuantScalar")
                ? "QuantVector"
                : call);
  }
  void RequireBuffer(const char* call, const char* name, const void* buffer,
                     const cubecore::Where& at) const {
    if (buffer == nullptr)
      Found(at, call, "%s must have a buffer of SetGlobalBuffer, got none", name);
  }
  // Pages SetTensorA, SetTensorB: a type without ISTRANS is never transposed, and one that is no
  // half as ISTRANS says.
  template <class TYPE>
  void RequireTransposed(const char* call, const char* name, bool trans,
                         const cubecore::Where& at) const {
    using T = typename TYPE::T;
    const char* word = cubecore::Element<T>::word;
    if (trans && !TYPE::isTrans)
      Found(at, call, "%s must be false for a MatmulType with ISTRANS false, got true; "
            "pass false, or give its MatmulType true as ISTRANS", name);
    else if (!cubecore::is_half<T> && trans != TYPE::isTrans)
      Found(at, call, "%s must be true for %s with ISTRANS true, got false", name, word);
  }
  void NoBias() {
    call_.types[3] = call_.tiling.isBias ? cubecore::Element<BiasT>::name : "";
    call_.at[cubecore::MM_BIAS] = -1;
  }
  // To the AIC that it calls, or without a tiling: nothing registered it.
  bool Unknown() const {
    return !registered_ && (CUBECORE_PART == 2 || call_.tiling.singleCoreM == 0);
  }
  void RequireBias(const cubecore::Where& at) {
    RequireEnabled(config.enableSetBias, "SetBias", at);
    if (call_.tiling.isBias == 0 && !Unknown()) Found(at, "SetBias", "isBias of the tiling must be 1, got 0");
    Have(HAS_BIAS);
  }
  void RequireCubeOnly(const char* call, const cubecore::Where& at) const {
    if (CUBECORE_PART != 1)
      Found(at, call, "it must be called with ASCENDC_CUBE_ONLY, got an object of AIVs");
  }
  void RequireNoTurns(const char* call, const cubecore::Where& at) const {
    if (takes_turns)
      Found(at, call, "enableMixDualMaster of MatmulConfig must be false, got true");
  }
  // Pages SetQuantScalar, SetQuantVector: whether the types are quantised.
  static constexpr bool quantised =
      std::is_integral_v<SrcAT> || std::is_same_v<SrcAT, int4b_t>
          ? cubecore::is_half<DstT> || sizeof(DstT) == 1
          : cubecore::is_half<SrcAT> && std::is_integral_v<DstT> && sizeof(DstT) == 1;
  bool RequireQuantised(const char* call, const cubecore::Where& at) const {
    if (!quantised)
      Found(at, call, "A and C must be int8_t or int4b_t and half or int8_t, or half and int8_t, "
                      "got %s and %s",
            cubecore::Element<SrcAT>::word, cubecore::Element<DstT>::word);
    return quantised;
  }
  // Whether a call can be made; one that cannot, for want of operands, leaves the object idle.
  bool Ready(int32_t bits, int32_t first, int32_t tiles, uint8_t& atomic,
             const cubecore::Where& at) {
    if (idle()) return false;
    const bool computes = (bits & cubecore::MM_COMPUTES) != 0;
    const bool by_tiles = tiles != 0 || (bits & cubecore::MM_EACH) != 0;
    const char* call = !computes           ? "GetTensorC"
                       : by_tiles          ? "Iterate"
                       : call_.batches > 0 ? "IterateBatch"
                                           : "IterateAll";
    if (by_tiles || call_.batches > 0) RequireNoTurns(call, at);
    if (atomic > 3) {
      Found(at, call, "enAtomic must be in [0, 3], got %d", static_cast<int>(atomic));
      atomic = 0;
    }
    if (!computes) {
      RequireEnabled(config.enableGetTensorC, call, at);
      return RequireTile(first, at);
    }
    const char* missing = Unknown()              ? "REGIST_MATMUL_OBJ"
                          : (ever_ & HAS_A) == 0 ? "SetTensorA"
                          : (ever_ & HAS_B) == 0 ? "SetTensorB"
                                                 : nullptr;
    set_ = 0;
    if (missing != nullptr) {
      Found(at, call, "%s must be called before it, got no call", missing);
      idle_ = true;
      return false;
    }
    // Page DisableBias: the tiling's isBias alone enables the bias.
    if (config.enableSetBias && call_.tiling.isBias != 0 && (ever_ & (HAS_BIAS | LEFT_BIAS)) == 0)
      Found(at, call, "SetBias must be called before it for isBias 1 of the tiling, got no call; "
                      "DisableBias leaves the bias out");
    if (quantised && call_.quantises == 0) {
      Found(at, call, "SetQuantScalar or SetQuantVector must be called before it for C of %s, got "
                      "neither",
            cubecore::Element<DstT>::word);
      call_.quantises = 1;
      call_.scale = cubecore::float_bits(1.0f);  // lets the call go on
    }
    if (by_tiles && first > 0 && untaken_)
      Found(at, call, "GetTensorC must take a tile before the next one, got no call");
    untaken_ = tiles != 0 && (bits & cubecore::MM_STORES) == 0;
    if ((bits & cubecore::MM_SUMS_ON) != 0 && Tiles() > 1)
      Found(at, call, "enPartialSum must be false for more than one tile, got true for %d tiles",
            Tiles());
    return true;
  }
  bool RequireTile(int32_t first, const cubecore::Where& at) {
    if (first >= 0 && std::exchange(untaken_, false)) return true;
    if (first < 0)
      Found(at, "GetTensorC", "it must follow an Iterate that returned true, got none");
    else
      Found(at, "GetTensorC", "it must be called once for each Iterate, got a second call");
    unanswered_ = true;
    return false;
  }
  // Whether Iterate<false> has a tile that GetTensorC<false> has not taken.
  bool Promised(const cubecore::Where& at) const {
    if (idle() || got_ < promised_) return true;
    Found(at, "GetTensorC<false>",
          "it must be called once for each tile of Iterate<false>, got one more than %d",
          promised_);
    return false;
  }
  void RequireSync(bool sync, const cubecore::Where& at) const {
    if (!sync) Found(at, "IterateBatch", "sync must be true into UB, got false");
  }
  // Page IterateBatch.
  bool ReadyBatch(bool behind, int32_t bits, const cubecore::Where& at) {
    const bool sequence = (bits & cubecore::MM_IN_SEQUENCE) != 0;
    const char* call = "IterateBatch";
    const int32_t a = batch_a_, b = batch_b_;
    constexpr bool heads =
        C_TYPE::layout == LayoutMode::BSNGD || C_TYPE::layout == LayoutMode::SBNGD;
    if (a < 1 || b < 1 || (a % b != 0 && b % a != 0)) {
      Found(at, call, "batchA and batchB must be positive and one a multiple of the other, got %d "
                      "and %d",
            a, b);
      idle_ = true;
      return false;
    }
    if (A_TYPE::layout != B_TYPE::layout)
      Found(at, call, "A and B must have one layout, got two");
    if (call_.quantises != 0) Found(at, call, "C must not be quantised, got a scale");
    if (heads && sequence && !behind)
      Found(at, call, "enSequentialWrite must be false for BSNGD and SBNGD, got true");
    return true;
  }

  // The elements from one row of a matrix in UB to the next. 950's rows begin at blocks, since its
  // copies from UB to L1 take blocks (sample matmul_vecout, K = 31); A2's pages name no gap.
  template <class TYPE>
  static int32_t UbPitch(int32_t columns) {
    if (!cubecore::is_950 || TYPE::format == CubeFormat::NZ) return columns;
    const int32_t block = 256 / cubecore::Element<typename TYPE::T>::bits;
    return (columns + block - 1) / block * block;
  }
  // Copies what lies in UB to global memory, where the AIC finds it.
  void Brought(cubecore::MatmulCall& call, const cubecore::Where& at) {
    using namespace cubecore;
    if constexpr (repeats<SrcAT>) {
      if (call.at[MM_A] == FROM_SCALAR) {
        call.at[MM_A] = Repeat(scalar_a_, call.single[2], MM_A, at);
        call.org[2] = call.single[2];
      }
    }
    if constexpr (repeats<SrcBT>) {
      if (call.at[MM_B] == FROM_SCALAR) {
        call.at[MM_B] = Repeat(scalar_b_, call.single[2], MM_B, at);
        call.org[3] = call.single[2];
      }
    }
    if (call.at[MM_A] == FROM_UB) {
      const int32_t rows = call.single[call.trans[0] ? 2 : 0];
      const int32_t pitch = UbPitch<A_TYPE>(call.single[call.trans[0] ? 0 : 2]);
      call.at[MM_A] = Bring(local_a_, rows * pitch, MM_A, at);
      call.org[call.trans[0] ? 0 : 2] = pitch;
    }
    if (call.at[MM_B] == FROM_UB) {
      const int32_t rows = call.single[call.trans[1] ? 1 : 2];
      const int32_t pitch = UbPitch<B_TYPE>(call.single[call.trans[1] ? 2 : 1]);
      call.at[MM_B] = Bring(local_b_, rows * pitch, MM_B, at);
      if (!call.trans[1] && call.org[4] == 0) call.org[4] = call.org[1];
      call.org[call.trans[1] ? 3 : 1] = pitch;
    }
    if (call.at[MM_BIAS] == FROM_UB)
      call.at[MM_BIAS] = Bring(local_bias_, call.single[1], MM_BIAS, at);
  }
  template <typename T>
  int64_t Bring(const LocalTensor<T>& from, int32_t count, cubecore::MatmulOperand operand,
                const cubecore::Where& at) {
    int64_t bytes = (cubecore::bytes_of<T>(count) + 31) / 32 * 32;
    int64_t address = Scratch(static_cast<uint64_t>(bytes), operand, at);
    DataCopy(detail::gm_at<T>(address), from,
             static_cast<uint32_t>(bytes * 8 / cubecore::Element<T>::bits), at);
    return address;
  }
  // A number so many times over, through the memory of UB that no buffer has.
  template <typename T>
  int64_t Repeat(T value, int32_t count, cubecore::MatmulOperand operand,
                 const cubecore::Where& at) {
    LocalTensor<T> room;
    detail::take_free<T, TPosition::LCM>(room);
    Duplicate(room, value, count, at);
    PipeBarrier<PIPE_ALL>(at);
    return Bring(room, count, operand, at);
  }
  int64_t Scratch(uint64_t bytes, cubecore::MatmulOperand operand, const cubecore::Where& at) {
    cubecore::MatmulCall call = call_;
    call.bits = operand;
    const int64_t size = static_cast<int64_t>(bytes);
    return idle() ? 0 : cubecore::matmul(cubecore::MM_SCRATCH, &call, size, at);
  }

  cubecore::MatmulCall call_ = {};
  SrcAT scalar_a_ = {};
  SrcBT scalar_b_ = {};
  LocalTensor<SrcAT> local_a_;
  LocalTensor<SrcBT> local_b_;
  LocalTensor<BiasT> local_bias_;
  int64_t workspace_ = -1, ahead_ = 0, index_ = -1;
  int32_t next_ = 0, got_ = 0, answers_ = 0, promised_ = 0;
  uint8_t set_ = 0, ever_ = 0;  // what was set since the last product, and ever
  bool reshaped_ = false, unanswered_ = false;
  bool untaken_ = false;  // a tile was computed that GetTensorC has not taken
  int32_t batch_a_ = 1, batch_b_ = 1;
  bool idle_ = false, registered_ = false;
};

}  // namespace AscendC
