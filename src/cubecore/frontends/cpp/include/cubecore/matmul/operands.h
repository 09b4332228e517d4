// What a Matmul object computes: its operands and their setters. Pages: those of the setters.
#pragma once

#include "cubecore/copy.h"
#include "cubecore/matmul/batches.h"
#include "cubecore/matmul/call.h"
#include "cubecore/matmul/config.h"
#include "cubecore/sync.h"
#include "cubecore/unary.h"

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
    ClearBias();
  }

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
  void SetSparseIndex(const GlobalTensor<uint8_t>& indexGlobal) { index_ = indexGlobal.address(0); }
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
  void SetUserDefInfo(const uint64_t tilingPtr) { call_.user[0] = tilingPtr; }
  void SetSelfDefineData(const uint64_t dataPtr) { call_.user[1] = dataPtr; }
  MatrixOffset GetOffsetC() const { return {}; }

  // Ours: of an object that this core does not run, and its number among a kernel's.
  void MakeIdle() { idle_ = true; }
  void SetNumber(int32_t number) { call_.object = number; }
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
  uint64_t TileBytes() const {
    return static_cast<uint64_t>(call_.tiling.baseM) * call_.tiling.baseN * sizeof(DstT);
  }
  void Operand(cubecore::MatmulOperand operand, int64_t address, bool trans) {
    call_.at[operand] = address;
    call_.trans[operand] = trans;
    next_ = 0;
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
  int32_t next_ = 0, got_ = 0, answers_ = 0;
  int32_t batch_a_ = 1, batch_b_ = 1;
  bool idle_ = false;
};

}  // namespace AscendC
