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
#if __NPU_ARCH__ == 3510
#define CUBECORE_POST_MODES(WRITE)                                                        \
  WRITE(NoConv) WRITE(QS162B8_POST) WRITE(VQS162B8_POST) WRITE(QS162S4_POST)              \
  WRITE(VQS162S4_POST) WRITE(QS162S16_POST) WRITE(VQS162S16_POST) WRITE(QF162B8_POST)     \
  WRITE(VQF162B8_POST) WRITE(QF162S4_POST) WRITE(VQF162S4_POST) WRITE(QF162S16_POST)      \
  WRITE(VQF162S16_POST)
}  // namespace cubecore

// The conversion behind the first (page asc_copy_l0c2ub).
enum QuantMode_post : uint8_t { CUBECORE_POST_MODES(CUBECORE_ENUMERATOR) };

namespace cubecore {

constexpr const char* post_word(QuantMode_post mode) {
  constexpr const char* words[] = {CUBECORE_POST_MODES(CUBECORE_WORD)};
  constexpr uint8_t all = sizeof(words) / sizeof(words[0]);
  return static_cast<uint8_t>(mode) < all ? words[static_cast<uint8_t>(mode)] : "another";
}
#undef CUBECORE_POST_MODES
#endif
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
  uint16_t m = 0, n = 0, k = 0;
  bool isBias = false;
  int32_t fmOffset = 0;
  bool enSsparse = false, enWinogradA = false, enWinogradB = false;
  uint8_t unitFlag = 0;
  bool kDirectionAlign = false;
  bool cmatrixSource = false;
  bool cmatrixInitVal = true;
  bool disableGemv = false;
  CUBECORE_TAKES(m, n, k)
  CUBECORE_TAKES(m, n, k, isBias, fmOffset, enSsparse, enWinogradA, enWinogradB)
  CUBECORE_TAKES(m, n, k, unitFlag, cmatrixSource, cmatrixInitVal)
};

struct LoadData2DParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;
  uint8_t sid = 0;
  uint16_t dstGap = 0;
  bool ifTranspose = false;
  uint8_t addrMode = 0;
  CUBECORE_TAKES(startIndex, repeatTimes, srcStride, sid, dstGap, ifTranspose, addrMode)
};
using LoadData2dParams = LoadData2DParams;

// Architecture 3510 alone has its load; kernels name it beside that of 2201.
struct LoadData2DParamsV2 {
  uint32_t mStartPosition = 0;
  uint32_t kStartPosition = 0;
  uint16_t mStep = 0;
  uint16_t kStep = 0;
  int32_t srcStride = 0;
  uint16_t dstStride = 0;
  bool ifTranspose = false;
  uint8_t sid = 0;
  CUBECORE_TAKES(mStartPosition, kStartPosition, mStep, kStep, srcStride, dstStride, ifTranspose,
                 sid)
};

struct LoadData2dTransposeParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
  uint8_t addrMode = 0;
  CUBECORE_TAKES(startIndex, repeatTimes, srcStride, dstGap, dstFracGap, [addrMode])
};

#if __NPU_ARCH__ == 3510
// Steps count fractals here, squares above.
struct LoadData2dTransposeParamsV2 {
  uint16_t startIndex = 0;
  uint16_t repeatTimes = 0;
  uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0, srcFracGap = 0;
  uint8_t addrMode = 0;
  CUBECORE_TAKES(startIndex, repeatTimes, srcStride, dstGap, dstFracGap, srcFracGap, [addrMode])
};
#endif

struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;
  bool isSetPadding = true;
};
inline constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

template <typename T>
struct LoadData3DParamsV2 {
  using TYPE = T;
  uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
  uint16_t l1H = 0, l1W = 0, channelSize = 0, kExtension = 0, mExtension = 0, kStartPt = 0,
      mStartPt = 0;
  uint8_t strideW = 1, strideH = 1, filterW = 1, filterH = 1, dilationFilterW = 1,
      dilationFilterH = 1;
  bool enTranspose = false;
  bool enSmallK = false;
  T padValue = T();
  bool filterSizeW = false, filterSizeH = false, fMatrixCtrl = false;
  CUBECORE_TAKES(padList, l1H, l1W, channelSize, kExtension, mExtension, kStartPt, mStartPt,
                 strideW, strideH, filterW, filterH, dilationFilterW, dilationFilterH, enTranspose,
                 enSmallK, padValue, [filterSizeW, filterSizeH, fMatrixCtrl])
};

struct LoadData3DParamsV2Pro {
  uint16_t channelSize = 0;
  bool enTranspose = false, enSmallK = false, filterSizeW = false, filterSizeH = false,
      fMatrixCtrl = false;
  uint64_t extConfig = 0;
  uint64_t filterConfig = 0X10101010101;
  CUBECORE_TAKES(channelSize, enTranspose, enSmallK, filterSizeW, filterSizeH, fMatrixCtrl,
                 extConfig, filterConfig)
};

struct LoadDataRepeatParam {
  uint16_t repeatStride = 0;
  uint8_t repeatTime = 1;
  uint8_t repeatMode = 0;
  uint16_t dstStride = 0;
  CUBECORE_TAKES(repeatStride, repeatTime, repeatMode, [dstStride])
};
#if __NPU_ARCH__ == 3510
using LoadDataRepeatParamWithStride = LoadDataRepeatParam;
#endif

template <typename T>
struct InitConstValueParams {
  using TYPE = T;
  uint16_t repeatTimes = 0, blockNum = 0, dstGap = 0;
  T initValue = T();
  CUBECORE_TAKES(repeatTimes, blockNum, dstGap, initValue)
  CUBECORE_TAKES(repeatTimes, initValue)
};

struct FixpipeParamsV220 {
  uint16_t nSize = 0, mSize = 0, srcStride = 0;
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
  CUBECORE_TAKES(nSize, mSize, srcStride, dstStride, reluEn)
  CUBECORE_TAKES(nSize, mSize, srcStride, dstStride, reluEn, quantPre, deqScalar, ndNum,
                 srcNdStride, dstNdStride, unitFlag)
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
  uint16_t nSize = 0, mSize = 0, srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  typename TransformParams<format>::PARAMS params = {};
  uint8_t dualDstCtl = 0;
  bool subBlockId = false;
  bool isChannelSplit = false;
  CUBECORE_TAKES(nSize, mSize, srcStride, dstStride)
};
// Without a page: public kernels have its earlier name.
template <CO2Layout format = CO2Layout::ROW_MAJOR>
using FixpipeParamsC310 = FixpipeParamsArch3510<format>;
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
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  CUBECORE_TAKES(quantPre)
  CUBECORE_TAKES(quantPre, deqScalar)
};
template <typename T>
struct FixpipeParams {
  uint16_t cburstNum = 0;
  uint16_t burstLen = 1;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantParams quantParams;
  bool reluEn = false;
  Nz2NdParams nz2ndParams;
  uint8_t unitFlag = 0;
  CUBECORE_TAKES(cburstNum, burstLen, srcStride, dstStride)
};
#endif

struct DataCopyCO12DstParams {
  uint8_t sid = 0;
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  uint8_t unitFlag = 0, clipReluPre = 0, eltWiseOp = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint8_t reluPre = 0;
  bool channelSplit = false;
  bool nz2ndEn = false;
  CUBECORE_TAKES(nSize, mSize, dstStride, srcStride, quantPre, reluPre, channelSplit, nz2ndEn)
};

}  // namespace AscendC
