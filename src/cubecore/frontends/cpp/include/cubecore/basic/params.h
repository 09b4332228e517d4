// Structs of parameters. Their fields' order is part of the API: kernels write them in braces.
// Pages: BinaryRepeatParams, UnaryRepeatParams, DataCopyParams and their kin under the functions.
#pragma once

#include <cstdint>

#include "cubecore/seam/enums.h"

namespace AscendC {

struct UnaryRepeatParams {
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
  uint16_t srcBlkStride = DEFAULT_BLK_STRIDE;
  uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
  uint8_t srcRepStride = DEFAULT_REPEAT_STRIDE;
  bool repeatStrideMode = false, strideSizeMode = false, halfBlock = false;
  CUBECORE_TAKES(dstBlkStride, srcBlkStride, dstRepStride, srcRepStride)
  CUBECORE_TAKES(dstBlkStride, srcBlkStride, dstRepStride, srcRepStride, halfBlock)
};

struct BinaryRepeatParams {
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint8_t dstBlkStride = DEFAULT_BLK_STRIDE, src0BlkStride = DEFAULT_BLK_STRIDE,
      src1BlkStride = DEFAULT_BLK_STRIDE;
  uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE, src0RepStride = DEFAULT_REPEAT_STRIDE,
      src1RepStride = DEFAULT_REPEAT_STRIDE;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
  CUBECORE_TAKES(dstBlkStride, src0BlkStride, src1BlkStride, dstRepStride, src0RepStride,
                 src1RepStride)
};

struct DataCopyParams {
  uint16_t blockCount = 1;
  uint16_t blockLen = 0;
  union {
    uint16_t srcGap;
    uint16_t srcStride = 0;
  };
  union {
    uint16_t dstGap;
    uint16_t dstStride = 0;
  };
  CUBECORE_TAKES(blockCount, blockLen, srcStride, dstStride)
};

// Page "DataCopy（L0C到UB数据搬运）": of no effect on these chips.
struct DataCopyEnhancedParams {
  BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
  DeqScale deqScale = DeqScale::DEQ_NONE;
  uint64_t deqValue = 0;
  uint64_t deqTensorAddr = 0;
  uint8_t sidStoreMode = 0;
  bool isRelu = false;
  pad_t padMode = pad_t::PAD_NONE;
  uint64_t padValue = 0;
  CUBECORE_TAKES(blockMode, deqScale, deqValue, sidStoreMode, isRelu, padMode, padValue)
};

struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  int64_t srcStride = 0;
  int64_t dstStride = 0;
  uint32_t rsv = 0;
  CUBECORE_TAKES(blockCount, blockLen, uint32_t srcStride, uint32_t dstStride, rsv)
};

struct DataCopyPadParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  uint64_t paddingValue = 0;
  CUBECORE_TAKES(isPad, leftPadding, rightPadding, paddingValue)
};

template <typename T>
struct DataCopyPadExtParams {
  using TYPE = T;
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue = static_cast<T>(0);
  CUBECORE_TAKES(isPad, leftPadding, rightPadding, paddingValue)
};

struct CopyRepeatParams {
  uint16_t dstStride = DEFAULT_BLK_STRIDE;
  uint16_t srcStride = DEFAULT_BLK_STRIDE;
  uint16_t dstRepeatSize = DEFAULT_REPEAT_STRIDE;
  uint16_t srcRepeatSize = DEFAULT_REPEAT_STRIDE;
  CUBECORE_TAKES(dstStride, srcStride, dstRepeatSize, srcRepeatSize)
};

constexpr uint32_t K_MAX_DIM = 8;

struct SliceInfo {
  uint32_t startIndex = 0, endIndex = 0, stride = 0, burstLen = 0, shapeValue = 0;
  CUBECORE_TAKES(startIndex, endIndex, stride, burstLen, [shapeValue])
};

struct Nd2NzParams {
  uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0,
      dstNzC0Stride = 0, dstNzNStride = 0, dstNzMatrixStride = 0;
  CUBECORE_TAKES(ndNum, nValue, dValue, srcNdMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride,
                 dstNzMatrixStride)
};

#if __NPU_ARCH__ == 3510
// Distances at the source count 16 elements, 256 between matrices; those at the target elements.
struct Nz2NdParamsFull {
  uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcNStride = 0, dstDStride = 0,
      dstNdMatrixStride = 0;
  CUBECORE_TAKES(ndNum, nValue, dValue, srcNdMatrixStride, srcNStride, dstDStride,
                 dstNdMatrixStride)
};
#endif

}  // namespace AscendC
