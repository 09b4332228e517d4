// Normalisation of rows. Pages of the high-level API: RmsNorm, "RmsNorm Tiling".
#pragma once

#include "cubecore/host/workspaces.h"
#include "cubecore/library/norms/rows.h"
#include "cubecore/library/norms/tilings.h"

namespace AscendC {

inline bool GetRmsNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                    uint32_t& maxValue, uint32_t& minValue,
                                    const bool isBasicBlock = false) {
  (void)typeSize;
  (void)isBasicBlock;
  if (srcShape.GetDimNum() != 3) return false;
  detail::norm_sizes(static_cast<uint32_t>(srcShape.GetDim(2)), maxValue, minValue);
  return true;
}
inline bool GetRmsNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                                 const uint32_t stackBufferByteSize, const uint32_t typeSize,
                                 RmsNormTiling& tiling, const bool isBasicBlock = false) {
  uint32_t most = 0, least = 0;
  if (!GetRmsNormMaxMinTmpSize(srcShape, typeSize, most, least, isBasicBlock)) return false;
  if (originSrcShape.GetDimNum() != 3 || stackBufferByteSize < least) return false;
  tiling.bLength = static_cast<uint32_t>(srcShape.GetDim(0));
  tiling.sLength = static_cast<uint32_t>(srcShape.GetDim(1));
  tiling.hLength = static_cast<uint32_t>(srcShape.GetDim(2));
  tiling.originalHLength = static_cast<uint32_t>(originSrcShape.GetDim(2));
  tiling.reciprocalOfHLength = 1.0f / static_cast<float>(tiling.originalHLength);
  return true;
}

// x / sqrt(mean(x * x) + epsilon) * gamma, row by row, in float.
template <typename T, bool isBasicBlock = false>
inline void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const T epsilon, const RmsNormTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.bLength * tiling.sLength, tiling.hLength, false};
  const LocalTensor<T>* none = nullptr;
  detail::NormRows<T> norm("RmsNorm", tiling.hLength, tiling.originalHLength, &gammaLocal, none,
                           sharedTmpBuffer, at);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    norm.rows.load(norm.rows.x(), srcLocal, n, lie);
    norm.squares();
    norm.deviate(static_cast<float>(epsilon));
    norm.finish();
    norm.rows.store(dstLocal, n, norm.rows.x(), lie);
  }
  ResetMask(at);
}
template <typename T, bool isBasicBlock = false>
inline void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<T>& gammaLocal, const T epsilon, const RmsNormTiling& tiling,
                    CUBECORE_AT) {
  RmsNorm<T, isBasicBlock>(dstLocal, srcLocal, gammaLocal, detail::free_memory(), epsilon, tiling,
                           at);
}

}  // namespace AscendC
