// Softmax of rows: their tiling and shapes. Pages of
// the high-level API: SoftMax with its tiling pages (SoftMaxTiling, SoftMaxShapeInfo,
// SoftmaxConfig), IsBasicBlockInSoftMax.
#pragma once

#include "cubecore/host/workspaces.h"
#include "cubecore/library/rows.h"

// Host code fills it, kernels hand it on. Rows are taken one by one here, so that of the fields
// only the shape matters.
struct SoftMaxTiling {
  uint32_t srcM = 0, srcK = 0, srcSize = 0;
  uint32_t outMaxM = 0, outMaxK = 0, outMaxSize = 0;
  uint32_t splitM = 0, splitK = 0, splitSize = 0;
  uint32_t reduceM = 0, reduceK = 0, reduceSize = 0;
  uint32_t rangeM = 0, tailM = 0, tailSplitSize = 0, tailReduceSize = 0;
};

using LogSoftMaxTiling = SoftMaxTiling;

namespace optiling {
using ::LogSoftMaxTiling;
using ::SoftMaxTiling;
}  // namespace optiling

namespace AscendC {

namespace tiling {
using ::LogSoftMaxTiling;
using ::SoftMaxTiling;
}  // namespace tiling

struct SoftMaxShapeInfo {
  uint32_t srcM = 0, srcK = 0, oriSrcM = 0, oriSrcK = 0;
};

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
  bool isCheckTiling = true;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
  SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};

constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

namespace detail {

inline void softmax_tiling(uint32_t m, uint32_t k, uint32_t block, SoftMaxTiling& tiling) {
  tiling = SoftMaxTiling();
  tiling.srcM = tiling.outMaxM = tiling.splitM = tiling.reduceM = m;
  tiling.srcK = tiling.splitK = k;
  tiling.outMaxK = tiling.reduceK = block;
  tiling.srcSize = tiling.splitSize = m * k;
  tiling.outMaxSize = tiling.reduceSize = m * block;
  tiling.rangeM = 1;
}

inline uint32_t rows_of(const TensorShape& shape) {
  int64_t last = shape.GetDimNum() == 0 ? 1 : shape.GetDim(shape.GetDimNum() - 1);
  return static_cast<uint32_t>(shape.GetShapeSize() / (last == 0 ? 1 : last));
}
inline uint32_t row_length(const TensorShape& shape) {
  return shape.GetDimNum() == 0 ? 1 : static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
}

template <const SoftmaxConfig& config>
inline SoftMaxShapeInfo softmax_shape(const SoftMaxTiling& tiling, const SoftMaxShapeInfo& given) {
  static_assert(config.mode == SoftmaxMode::SOFTMAX_NORMAL,
                "softmax: SOFTMAX_OUTPUT_WITHOUT_BRC is not supported; see docs/cpp.md");
  SoftMaxShapeInfo shape = given;
  if (shape.srcM == 0) shape = {tiling.srcM, tiling.srcK, tiling.srcM, tiling.srcK};
  if (shape.oriSrcK == 0) shape.oriSrcK = shape.srcK;
  return shape;
}

}  // namespace detail

// Page IsBasicBlockInSoftMax: rows of 64 to 2047 elements, by 64, eight rows at a time.
inline bool IsBasicBlockInSoftMax(SoftMaxTiling& tiling, const uint32_t dataTypeSize = 2) {
  return tiling.reduceM % 8 == 0 && tiling.srcK < 2048 && tiling.srcK % 64 == 0 &&
         tiling.srcK * dataTypeSize >= 256;
}

}  // namespace AscendC
