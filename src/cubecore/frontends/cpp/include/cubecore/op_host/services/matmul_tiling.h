// Tilings of products for host code: the setters record their calls, and GetTiling asks the
// planner. Pages: "Matmul Tiling类" with its members, "TCubeTiling结构体".
#pragma once

#include <string>

#include "cubecore/host/device.h"
#include "cubecore/op_host/types.h"
#include "cubecore/seam/enums.h"
#include "cubecore_tcubetiling.h"
#include "platform/platform_ascendc.h"

namespace optiling {
using AscendC::tiling::TCubeTiling;
}

namespace matmul_tiling {

using DataType = ge::DataType;
using AscendC::TPosition;
enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, VECTOR, SCALAR, ND_ALIGN, COLUMN_MAJOR };
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1, MXMODE = 2 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };
enum class ScheduleType : int32_t { INNER_PRODUCT = 0, OUTER_PRODUCT = 1, N_BUFFER_33 = 2 };

struct MatmulConfigParams {
  int32_t mmConfigType;
  bool enableL1CacheUB;
  ScheduleType scheduleType;
  MatrixTraverse traverse;
  bool enVecND2NZ;
  MatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                     ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                     MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false)
      : mmConfigType(mmConfigTypeIn),
        enableL1CacheUB(enableL1CacheUBIn),
        scheduleType(scheduleTypeIn),
        traverse(traverseIn),
        enVecND2NZ(enVecND2NZIn) {}
};

struct PlatformInfo {
  platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::ASCEND910B;
  uint64_t l1Size = 0, l0CSize = 0, ubSize = 0, l0ASize = 0, l0BSize = 0, btSize = 0, fbSize = 0;
  platform_ascendc::NpuArch npuArch = platform_ascendc::NpuArch::DAV_2201;
};

class MatmulApiTilingBase {
 public:
  int32_t SetAType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false) {
    return Call("set_a_type", Name(pos), Name(type), ge::NameOf(dataType), isTrans);
  }
  int32_t SetBType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false) {
    return Call("set_b_type", Name(pos), Name(type), ge::NameOf(dataType), isTrans);
  }
  int32_t SetCType(TPosition pos, CubeFormat type, DataType dataType) {
    // C goes to UB as a queue's input, whatever of UB the kernel takes for it.
    const char* place = pos == TPosition::VECCALC ? "VECIN" : Name(pos);
    return Call("set_c_type", place, Name(type), ge::NameOf(dataType));
  }
  int32_t SetBiasType(TPosition pos, CubeFormat type, DataType dataType) {
    return Call("set_bias_type", Name(pos), Name(type), ge::NameOf(dataType));
  }
  int32_t SetScaleAType(TPosition pos, CubeFormat type, bool isTrans = false) {
    return Call("set_scale_a_type", Name(pos), Name(type), isTrans);
  }
  int32_t SetScaleBType(TPosition pos, CubeFormat type, bool isTrans = true) {
    return Call("set_scale_b_type", Name(pos), Name(type), isTrans);
  }
  int32_t EnableBias(bool isBiasIn = false) { return Call("enable_bias", isBiasIn); }
  int32_t SetBias(bool isBiasIn = false) { return Call("set_bias", isBiasIn); }
  int32_t SetMadType(MatrixMadType type) {
    static const char* names[] = {"NORMAL", "HF32", "MXMODE"};
    return Call("set_mad_type", names[static_cast<int32_t>(type)]);
  }
  int32_t SetDequantType(DequantType type) {
    return Call("set_dequant_type", type == DequantType::TENSOR ? "TENSOR" : "SCALAR");
  }
  int32_t SetSparse(bool isSparseIn = false) { return Call("set_sparse", isSparseIn); }
  int32_t SetOrgShape(int32_t orgM, int32_t orgN, int32_t orgK) {
    return Call("set_org_shape", orgM, orgN, orgK);
  }
  int32_t SetOrgShape(int32_t orgM, int32_t orgN, int32_t orgKa, int32_t orgKb) {
    return Call("set_org_shape", orgM, orgN, orgKa, orgKb);
  }
  int32_t SetShape(int32_t m, int32_t n, int32_t k) { return Call("set_shape", m, n, k); }
  int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    return Call("set_a_layout", b, s, n, g, d);
  }
  int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    return Call("set_b_layout", b, s, n, g, d);
  }
  int32_t SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    return Call("set_c_layout", b, s, n, g, d);
  }
  int32_t SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k) {
    return Call("set_batch_info_for_normal", batchA, batchB, m, n, k);
  }
  int32_t SetBatchNum(int32_t batch) { return Call("set_batch_num", batch); }
  int32_t SetFixSplit(int32_t baseM = -1, int32_t baseN = -1, int32_t baseK = -1) {
    return Call("set_fix_split", baseM, baseN, baseK);
  }
  int32_t SetSplitRange(int32_t maxBaseM = -1, int32_t maxBaseN = -1, int32_t maxBaseK = -1,
                        int32_t minBaseM = -1, int32_t minBaseN = -1, int32_t minBaseK = -1) {
    return Call("set_split_range", maxBaseM, maxBaseN, maxBaseK, minBaseM, minBaseN, minBaseK);
  }
  int32_t SetTraverse(MatrixTraverse traverse) {
    if (traverse == MatrixTraverse::NOSET) return 0;
    return Call("set_traverse", Name(traverse));
  }
  int32_t SetBufferSpace(int32_t l1Size = -1, int32_t l0CSize = -1, int32_t ubSize = -1,
                         int32_t btSize = -1) {
    return Call("set_buffer_space", l1Size, l0CSize, ubSize, btSize);
  }
  int32_t SetDoubleBuffer(bool a, bool b, bool c, bool bias, bool transND2NZ = true,
                          bool transNZ2ND = true) {
    return Call("set_double_buffer", a, b, c, bias, transND2NZ, transNZ2ND);
  }
  void SetMatmulConfigParams(const MatmulConfigParams& params) {
    SetMatmulConfigParams(params.mmConfigType, params.enableL1CacheUB, params.scheduleType,
                          params.traverse, params.enVecND2NZ);
  }
  void SetMatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                             ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                             MatrixTraverse traverseIn = MatrixTraverse::NOSET,
                             bool enVecND2NZIn = false) {
    // The kernel loads along K, and as the tiling says, whichever schedule is asked for.
    (void)scheduleTypeIn;
    Call("set_matmul_config_params", mmConfigTypeIn, enableL1CacheUBIn, "INNER_PRODUCT",
         Name(traverseIn), enVecND2NZIn);
  }
  bool EnableL1BankConflictOptimise() { return false; }
  // 0, or -1 where the planner has none; the reason is shown with what fails then.
  int64_t GetTiling(AscendC::tiling::TCubeTiling& tiling) {
    struct {
      AscendC::tiling::TCubeTiling tiling;
      int32_t cores[5];
    } answer;
    uint64_t size = cubecore_host(cubecore::MATMUL_TILING, reinterpret_cast<uint64_t>(&answer),
                                  sizeof(answer), calls_.c_str(), nullptr, nullptr);
    if (size != sizeof(answer)) return -1;
    tiling = last_ = answer.tiling;
    for (int n = 0; n < 5; ++n) cores_[n] = answer.cores[n];
    return 0;
  }
  int32_t GetBaseM() const { return last_.baseM; }
  int32_t GetBaseN() const { return last_.baseN; }
  int32_t GetBaseK() const { return last_.baseK; }

 protected:
  explicit MatmulApiTilingBase(const char* kind) : calls_(kind) {}
  template <typename... A>
  int32_t Call(const char* name, A... words) {
    calls_ += std::string("\n") + name;
    ((calls_ += " " + Text(words)), ...);
    return 0;
  }

  AscendC::tiling::TCubeTiling last_;
  int32_t cores_[5] = {};

 private:
  static std::string Text(const char* word) { return word; }
  static std::string Text(int64_t number) { return std::to_string(number); }
  static const char* Name(TPosition pos) {
    static const char* names[] = {"GM",  "A1",  "A2",    "B1",     "B2",      "C1",  "C2",
                                  "CO1", "CO2", "VECIN", "VECOUT", "VECCALC", "SPM", "TSCM"};
    size_t number = static_cast<size_t>(pos);
    return number < std::size(names) ? names[number] : "MAX";
  }
  // A vector is a matrix of one row, and padded rows of C are the kernel's to know of.
  static const char* Name(CubeFormat format) {
    static const char* names[] = {"ND", "NZ",     "ZN", "ZZ",          "NN",
                                  "ND", "SCALAR", "ND", "COLUMN_MAJOR"};
    return names[static_cast<int32_t>(format)];
  }
  static const char* Name(MatrixTraverse traverse) {
    static const char* names[] = {"NOSET", "FIRSTM", "FIRSTN"};
    return names[static_cast<int32_t>(traverse)];
  }

  std::string calls_;
};

class MatmulApiTiling : public MatmulApiTilingBase {
 public:
  MatmulApiTiling() : MatmulApiTilingBase("MatmulApiTiling") {}
  template <typename Platform>
  explicit MatmulApiTiling(const Platform&) : MatmulApiTiling() {}
};

class ManyCoreTiling : public MatmulApiTilingBase {
 public:
  int32_t SetDim(int32_t dim) { return Call("set_dim", dim); }
  int32_t SetSingleShape(int32_t singleM = -1, int32_t singleN = -1, int32_t singleK = -1) {
    return Call("set_single_shape", singleM, singleN, singleK);
  }
  int32_t SetSingleRange(int32_t maxM = -1, int32_t maxN = -1, int32_t maxK = -1, int32_t minM = -1,
                         int32_t minN = -1, int32_t minK = -1) {
    return Call("set_single_range", maxM, maxN, maxK, minM, minN, minK);
  }
  int32_t SetAlignSplit(int32_t alignM, int32_t alignN, int32_t alignK) {
    return Call("set_align_split", alignM, alignN, alignK);
  }
  void EnableMultiCoreSplitK(bool flag) { Call("enable_multi_core_split_k", flag); }
  void SetSplitK(bool flag) { Call("set_split_k", flag); }
  int32_t GetSingleShape(int32_t& shapeM, int32_t& shapeN, int32_t& shapeK) {
    shapeM = last_.singleCoreM;
    shapeN = last_.singleCoreN;
    shapeK = last_.singleCoreK;
    return 0;
  }
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim) {
    dim = cores_[0];
    mDim = cores_[1];
    nDim = cores_[2];
    return 0;
  }

 protected:
  using MatmulApiTilingBase::MatmulApiTilingBase;
};

class MultiCoreMatmulTiling : public ManyCoreTiling {
 public:
  MultiCoreMatmulTiling() : ManyCoreTiling("MultiCoreMatmulTiling") {}
  template <typename Platform>
  explicit MultiCoreMatmulTiling(const Platform&) : MultiCoreMatmulTiling() {}
};

class BatchMatmulTiling : public ManyCoreTiling {
 public:
  BatchMatmulTiling() : ManyCoreTiling("BatchMatmulTiling") {}
  template <typename Platform>
  explicit BatchMatmulTiling(const Platform&) : BatchMatmulTiling() {}
  using ManyCoreTiling::GetCoreNum;
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim, int32_t& batchCoreM,
                     int32_t& batchCoreN) {
    batchCoreM = cores_[3];
    batchCoreN = cores_[4];
    return ManyCoreTiling::GetCoreNum(dim, mDim, nDim);
  }
};

// Page "获取Matmul计算所需空间": what a tiling says of each memory.
struct SysTilingTempBufSize {
  int32_t ubSize = 0, l1Size = 0, l0cSize = 0;
};

}  // namespace matmul_tiling

// The functions of that page; their second forms take the tiling of another namespace.
#define CUBECORE_TMP_BUF(NAME)                                                       \
  template <typename T>                                                              \
  inline int32_t NAME(T& tiling, matmul_tiling::SysTilingTempBufSize& bufSize) {     \
    const AscendC::tiling::TCubeTiling& t = tiling;                                  \
    bufSize = {t.shareUbSize, t.shareL1Size, t.shareL0CSize};                        \
    return 0;                                                                        \
  }                                                                                  \
  template <typename T>                                                              \
  inline int32_t NAME##V2(T& tiling, matmul_tiling::SysTilingTempBufSize& bufSize) { \
    return NAME(tiling, bufSize);                                                    \
  }
CUBECORE_TMP_BUF(MatmulGetTmpBufSize)
CUBECORE_TMP_BUF(MultiCoreMatmulGetTmpBufSize)
CUBECORE_TMP_BUF(BatchMatmulGetTmpBufSize)
#undef CUBECORE_TMP_BUF
