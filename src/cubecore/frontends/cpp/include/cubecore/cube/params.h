// Structs and words of the Cube. Pages: Mmad, LoadData (2D, 3D, GM to L1), LoadDataWithTranspose,
// Fixpipe (L0C to GM, L0C to L1), DataCopy (L0C to GM), Fill, SetFmatrix, SetLoadDataRepeat,
// SetHF32Mode, SetHF32TransMode. Where a page has a table and no declaration, fields stand in the
// table's order and constructors take what public kernels give them.
#pragma once

#include "cubecore/seam/abi.h"
#include "cubecore/seam/enums.h"
#include "cubecore/seam/types.h"

#define CUBECORE_QUANT_MODES(WRITE)                                                               \
  WRITE(NoQuant) WRITE(F322F16) WRITE(F322BF16) WRITE(DEQF16) WRITE(VDEQF16) WRITE(QF322B8_PRE)    \
  WRITE(VQF322B8_PRE) WRITE(REQ8) WRITE(VREQ8)
#if __NPU_ARCH__ == 3510
#define CUBECORE_QUANT_MODES_950(WRITE)                                                           \
  WRITE(QF322FP8_PRE) WRITE(VQF322FP8_PRE) WRITE(QF322HIF8_PRE) WRITE(VQF322HIF8_PRE)              \
  WRITE(QF322HIF8_PRE_HYBRID) WRITE(VQF322HIF8_PRE_HYBRID) WRITE(QS322BF16_PRE)                    \
  WRITE(VQS322BF16_PRE) WRITE(QF322F16_PRE) WRITE(VQF322F16_PRE) WRITE(QF322BF16_PRE)              \
  WRITE(VQF322BF16_PRE) WRITE(QF322F32_PRE) WRITE(VQF322F32_PRE)
#else
#define CUBECORE_QUANT_MODES_950(WRITE)
#endif
#define CUBECORE_ENUMERATOR(MODE) MODE,
#define CUBECORE_WORD(MODE) #MODE,

enum QuantMode_t : uint8_t {
  CUBECORE_QUANT_MODES(CUBECORE_ENUMERATOR) CUBECORE_QUANT_MODES_950(CUBECORE_ENUMERATOR)
};

namespace cubecore {

// The conversion's name in the declarations. Behind the third, every second one has a scale for
// each column.
constexpr const char* quant_word(QuantMode_t mode) {
  constexpr const char* words[] = {CUBECORE_QUANT_MODES(CUBECORE_WORD)
                                       CUBECORE_QUANT_MODES_950(CUBECORE_WORD)};
  constexpr uint8_t all = sizeof(words) / sizeof(words[0]);
  return static_cast<uint8_t>(mode) < all ? words[static_cast<uint8_t>(mode)] : "another";
}
#undef CUBECORE_QUANT_MODES
#undef CUBECORE_QUANT_MODES_950
#undef CUBECORE_ENUMERATOR
#undef CUBECORE_WORD

constexpr bool scale_of_each_column(QuantMode_t mode) {
  return mode > QuantMode_t::F322BF16 && static_cast<uint8_t>(mode) % 2 == 0;
}

constexpr bool one_scale(QuantMode_t mode) {
  return mode > QuantMode_t::F322BF16 && !scale_of_each_column(mode);
}

}  // namespace cubecore

namespace AscendC {

using ::QuantMode_t;

enum class HF32Mode : uint8_t { DISABLE, ENABLE };
enum class HF32TransMode : uint8_t { NEAREST_EVEN, NEAREST_ZERO };
enum class FmatrixMode : uint8_t { FMATRIX_LEFT, FMATRIX_RIGHT };
enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };

struct FixpipeConfig {
  CO2Layout format = CO2Layout::ROW_MAJOR;
  bool isToUB = false;
};

inline constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
inline constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};
inline constexpr FixpipeConfig CFG_COLUMN_MAJOR = {CO2Layout::COLUMN_MAJOR};

constexpr uint32_t PAD_SIZE = 4;
#ifndef __NPU_HOST__  // where public op_hosts have a name of their own
// Of 64 bits on architecture 3510, whose kernels divide by it in overloads of such numbers.
constexpr std::conditional_t<cubecore::is_950, int64_t, uint32_t> BLOCK_CUBE = 16;
#endif
constexpr uint32_t CUBE_MAX_SIZE = 256;
constexpr uint32_t BYTE_PER_FRACTAL = 512;

struct MmadParams {
  MmadParams() = default;
  MmadParams(const uint16_t mIn, const uint16_t nIn, const uint16_t kIn) : m(mIn), n(nIn), k(kIn) {}
  MmadParams(const uint16_t mIn, const uint16_t nIn, const uint16_t kIn, const bool isBiasIn,
             const int32_t fmOffsetIn, const bool enSsparseIn, const bool enWinogradAIn,
             const bool enWinogradBIn)
      : m(mIn),
        n(nIn),
        k(kIn),
        isBias(isBiasIn),
        fmOffset(fmOffsetIn),
        enSsparse(enSsparseIn),
        enWinogradA(enWinogradAIn),
        enWinogradB(enWinogradBIn) {}
  MmadParams(const uint16_t mIn, const uint16_t nIn, const uint16_t kIn, const uint8_t unitFlagIn,
             const bool cmatrixSourceIn, const bool cmatrixInitValIn)
      : m(mIn),
        n(nIn),
        k(kIn),
        unitFlag(unitFlagIn),
        cmatrixSource(cmatrixSourceIn),
        cmatrixInitVal(cmatrixInitValIn) {}

  uint16_t m = 0;
  uint16_t n = 0;
  uint16_t k = 0;
  bool isBias = false;
  int32_t fmOffset = 0;
  bool enSsparse = false;
  bool enWinogradA = false;
  bool enWinogradB = false;
  uint8_t unitFlag = 0;
  bool kDirectionAlign = false;
  bool cmatrixSource = false;
  bool cmatrixInitVal = true;
  bool disableGemv = false;
};

struct LoadData2DParams {
  LoadData2DParams() = default;
  LoadData2DParams(const uint16_t startIndexIn, const uint8_t repeatTimesIn,
                   const uint16_t srcStrideIn, const uint8_t sidIn, const uint16_t dstGapIn,
                   const bool ifTransposeIn, const uint8_t addrModeIn)
      : startIndex(startIndexIn),
        repeatTimes(repeatTimesIn),
        srcStride(srcStrideIn),
        sid(sidIn),
        dstGap(dstGapIn),
        ifTranspose(ifTransposeIn),
        addrMode(addrModeIn) {}

  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;
  uint8_t sid = 0;
  uint16_t dstGap = 0;
  bool ifTranspose = false;
  uint8_t addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;

// Architecture 3510 alone has its load; kernels name it beside that of 2201.
struct LoadData2DParamsV2 {
  LoadData2DParamsV2() = default;
  LoadData2DParamsV2(const uint32_t mStartIn, const uint32_t kStartIn, const uint16_t mStepIn,
                     const uint16_t kStepIn, const int32_t srcStrideIn, const uint16_t dstStrideIn,
                     const bool ifTransposeIn, const uint8_t sidIn)
      : mStartPosition(mStartIn),
        kStartPosition(kStartIn),
        mStep(mStepIn),
        kStep(kStepIn),
        srcStride(srcStrideIn),
        dstStride(dstStrideIn),
        ifTranspose(ifTransposeIn),
        sid(sidIn) {}

  uint32_t mStartPosition = 0;
  uint32_t kStartPosition = 0;
  uint16_t mStep = 0;
  uint16_t kStep = 0;
  int32_t srcStride = 0;
  uint16_t dstStride = 0;
  bool ifTranspose = false;
  uint8_t sid = 0;
};

struct LoadData2dTransposeParams {
  LoadData2dTransposeParams() = default;
  LoadData2dTransposeParams(const uint16_t startIndexIn, const uint8_t repeatTimesIn,
                            const uint16_t srcStrideIn, const uint16_t dstGapIn,
                            const uint16_t dstFracGapIn, const uint8_t addrModeIn = 0)
      : startIndex(startIndexIn),
        repeatTimes(repeatTimesIn),
        srcStride(srcStrideIn),
        dstGap(dstGapIn),
        dstFracGap(dstFracGapIn),
        addrMode(addrModeIn) {}

  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;
  uint16_t dstGap = 0;
  uint16_t dstFracGap = 0;
  uint8_t addrMode = 0;
};

struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;
  bool isSetPadding = true;
};
inline constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

template <typename T>
struct LoadData3DParamsV2 {
  using TYPE = T;
  LoadData3DParamsV2() = default;
  LoadData3DParamsV2(const uint8_t padListIn[PAD_SIZE], const uint16_t l1HIn, const uint16_t l1WIn,
                     const uint16_t channelSizeIn, const uint16_t kExtensionIn,
                     const uint16_t mExtensionIn, const uint16_t kStartPtIn,
                     const uint16_t mStartPtIn, const uint8_t strideWIn, const uint8_t strideHIn,
                     const uint8_t filterWIn, const uint8_t filterHIn,
                     const uint8_t dilationFilterWIn, const uint8_t dilationFilterHIn,
                     const bool enTransposeIn, const bool enSmallKIn, const T padValueIn,
                     const bool filterSizeWIn = false, const bool filterSizeHIn = false,
                     const bool fMatrixCtrlIn = false)
      : l1H(l1HIn),
        l1W(l1WIn),
        channelSize(channelSizeIn),
        kExtension(kExtensionIn),
        mExtension(mExtensionIn),
        kStartPt(kStartPtIn),
        mStartPt(mStartPtIn),
        strideW(strideWIn),
        strideH(strideHIn),
        filterW(filterWIn),
        filterH(filterHIn),
        dilationFilterW(dilationFilterWIn),
        dilationFilterH(dilationFilterHIn),
        enTranspose(enTransposeIn),
        enSmallK(enSmallKIn),
        padValue(padValueIn),
        filterSizeW(filterSizeWIn),
        filterSizeH(filterSizeHIn),
        fMatrixCtrl(fMatrixCtrlIn) {
    for (uint32_t n = 0; n < PAD_SIZE; ++n) padList[n] = padListIn[n];
  }

  uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
  uint16_t l1H = 0;
  uint16_t l1W = 0;
  uint16_t channelSize = 0;
  uint16_t kExtension = 0;
  uint16_t mExtension = 0;
  uint16_t kStartPt = 0;
  uint16_t mStartPt = 0;
  uint8_t strideW = 1;
  uint8_t strideH = 1;
  uint8_t filterW = 1;
  uint8_t filterH = 1;
  uint8_t dilationFilterW = 1;
  uint8_t dilationFilterH = 1;
  bool enTranspose = false;
  bool enSmallK = false;
  T padValue = T();
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
};

struct LoadData3DParamsV2Pro {
  LoadData3DParamsV2Pro() = default;
  LoadData3DParamsV2Pro(const uint16_t channelSizeIn, const bool enTransposeIn,
                        const bool enSmallKIn, const bool filterSizeWIn, const bool filterSizeHIn,
                        const bool fMatrixCtrlIn, const uint64_t extConfigIn,
                        const uint64_t filterConfigIn)
      : channelSize(channelSizeIn),
        enTranspose(enTransposeIn),
        enSmallK(enSmallKIn),
        filterSizeW(filterSizeWIn),
        filterSizeH(filterSizeHIn),
        fMatrixCtrl(fMatrixCtrlIn),
        extConfig(extConfigIn),
        filterConfig(filterConfigIn) {}

  uint16_t channelSize = 0;
  bool enTranspose = false;
  bool enSmallK = false;
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
  uint64_t extConfig = 0;
  uint64_t filterConfig = 0X10101010101;
};

struct LoadDataRepeatParam {
  LoadDataRepeatParam() = default;
  LoadDataRepeatParam(const uint16_t repeatStrideIn, const uint8_t repeatTimeIn,
                      const uint8_t repeatModeIn, const uint16_t dstStrideIn = 0)
      : repeatStride(repeatStrideIn),
        repeatTime(repeatTimeIn),
        repeatMode(repeatModeIn),
        dstStride(dstStrideIn) {}

  uint16_t repeatStride = 0;
  uint8_t repeatTime = 1;
  uint8_t repeatMode = 0;
  uint16_t dstStride = 0;
};

template <typename T>
struct InitConstValueParams {
  using TYPE = T;
  InitConstValueParams() = default;
  InitConstValueParams(const uint16_t repeatTimesIn, const uint16_t blockNumIn,
                       const uint16_t dstGapIn, const T initValueIn)
      : repeatTimes(repeatTimesIn),
        blockNum(blockNumIn),
        dstGap(dstGapIn),
        initValue(initValueIn) {}
  InitConstValueParams(const uint16_t repeatTimesIn, const T initValueIn)
      : repeatTimes(repeatTimesIn), initValue(initValueIn) {}

  uint16_t repeatTimes = 0;
  uint16_t blockNum = 0;
  uint16_t dstGap = 0;
  T initValue = T();
};

struct FixpipeParamsV220 {
  FixpipeParamsV220() = default;
  FixpipeParamsV220(const uint16_t nSizeIn, const uint16_t mSizeIn, const uint16_t srcStrideIn,
                    const uint32_t dstStrideIn, const bool reluEnIn)
      : nSize(nSizeIn),
        mSize(mSizeIn),
        srcStride(srcStrideIn),
        dstStride(dstStrideIn),
        reluEn(reluEnIn) {}
  FixpipeParamsV220(const uint16_t nSizeIn, const uint16_t mSizeIn, const uint16_t srcStrideIn,
                    const uint32_t dstStrideIn, const bool reluEnIn, const QuantMode_t quantPreIn,
                    const uint64_t deqScalarIn, const uint16_t ndNumIn,
                    const uint16_t srcNdStrideIn, const uint16_t dstNdStrideIn,
                    const uint8_t unitFlagIn)
      : nSize(nSizeIn),
        mSize(mSizeIn),
        srcStride(srcStrideIn),
        dstStride(dstStrideIn),
        quantPre(quantPreIn),
        deqScalar(deqScalarIn),
        ndNum(ndNumIn),
        srcNdStride(srcNdStrideIn),
        dstNdStride(dstNdStrideIn),
        reluEn(reluEnIn),
        unitFlag(unitFlagIn) {}

  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint16_t dstNdStride = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  union {  // the page of today calls it channelSplit, those before isChannelSplit
    bool isChannelSplit = false;
    bool channelSplit;
  };
};

#if __NPU_ARCH__ == 3510
struct Nz2NdParams {
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint32_t dstNdStride = 0;
};
struct Nz2DnParams {
  uint16_t dnNum = 1;
  uint16_t srcNzMatrixStride = 0;
  uint32_t dstDnMatrixStride = 0;
  uint16_t srcNzC0Stride = 0;
};
template <CO2Layout format>
struct TransformParams {
  using PARAMS = uint8_t;
};
template <>
struct TransformParams<CO2Layout::ROW_MAJOR> {
  using PARAMS = Nz2NdParams;
};
template <>
struct TransformParams<CO2Layout::COLUMN_MAJOR> {
  using PARAMS = Nz2DnParams;
};
template <CO2Layout format = CO2Layout::ROW_MAJOR>
struct FixpipeParamsArch3510 {
  FixpipeParamsArch3510() = default;
  FixpipeParamsArch3510(const uint16_t nSizeIn, const uint16_t mSizeIn, const uint16_t srcStrideIn,
                        const uint32_t dstStrideIn)
      : nSize(nSizeIn), mSize(mSizeIn), srcStride(srcStrideIn), dstStride(dstStrideIn) {}

  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  typename TransformParams<format>::PARAMS params = {};
  uint8_t dualDstCtl = 0;
  bool subBlockId = false;
  bool isChannelSplit = false;
};
#else
// The struct of older kernels: bursts of L0C, one for each column of fractals.
struct Nz2NdParams {
  bool nz2ndEn = false;
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint16_t dstNdStride = 0;
  uint16_t originalNSize = 0;
};
struct QuantParams {
  QuantParams() = default;
  QuantParams(const QuantMode_t quantPreIn) : quantPre(quantPreIn) {}
  QuantParams(const QuantMode_t quantPreIn, const uint64_t deqScalarIn)
      : quantPre(quantPreIn), deqScalar(deqScalarIn) {}

  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
};
template <typename T>
struct FixpipeParams {
  FixpipeParams() = default;
  FixpipeParams(const uint16_t count, const uint16_t len, const uint16_t srcStrideIn,
                const uint32_t dstStrideIn)
      : cburstNum(count), burstLen(len), srcStride(srcStrideIn), dstStride(dstStrideIn) {}

  uint16_t cburstNum = 0;
  uint16_t burstLen = 1;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantParams quantParams;
  bool reluEn = false;
  Nz2NdParams nz2ndParams;
  uint8_t unitFlag = 0;
};
#endif

struct DataCopyCO12DstParams {
  DataCopyCO12DstParams() = default;
  DataCopyCO12DstParams(const uint16_t nSizeIn, const uint16_t mSizeIn, const uint32_t dstStrideIn,
                        const uint16_t srcStrideIn, const QuantMode_t quantPreIn,
                        const uint8_t reluPreIn, const bool channelSplitIn, const bool nz2ndEnIn)
      : nSize(nSizeIn),
        mSize(mSizeIn),
        dstStride(dstStrideIn),
        srcStride(srcStrideIn),
        quantPre(quantPreIn),
        reluPre(reluPreIn),
        channelSplit(channelSplitIn),
        nz2ndEn(nz2ndEnIn) {}

  uint8_t sid = 0;
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  uint8_t unitFlag = 0;
  uint8_t clipReluPre = 0;
  uint8_t eltWiseOp = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint8_t reluPre = 0;
  bool channelSplit = false;
  bool nz2ndEn = false;
};

}  // namespace AscendC
