// Normalisation of rows. Pages of the high-level API: RmsNorm, "RmsNorm Tiling".
#pragma once

#include "cubecore/gather.h"
#include "cubecore/math/steps.h"
#include "cubecore/norm_tilings.h"
#include "cubecore/workspaces.h"

namespace AscendC {

namespace detail {

// Bytes for rows of a length: three temporaries in float, an element for each repeat of one, and
// two repeats for what a row has one of.
constexpr uint32_t norm_bytes(uint32_t length) {
  uint32_t padded = (length + 63) / 64 * 64;
  return padded * 12 + (padded / 64 + 7) / 8 * 32 + 512;
}

}  // namespace detail

inline bool GetRmsNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                    uint32_t& maxValue, uint32_t& minValue,
                                    const bool isBasicBlock = false) {
  (void)typeSize;
  (void)isBasicBlock;
  if (srcShape.GetDimNum() != 3) return false;
  maxValue = minValue = detail::norm_bytes(static_cast<uint32_t>(srcShape.GetDim(2)));
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
  constexpr bool casts = std::is_same_v<PrimT<T>, half>;
  uint32_t length = tiling.hLength, padded = (length + 63) / 64 * 64;
  const LocalTensor<uint8_t> given = detail::enough(sharedTmpBuffer, detail::norm_bytes(length));
  if (given.GetSize() < detail::norm_bytes(length))
    cubecore_refuse("RmsNorm.sharedTmpBuffer", "have as much as GetRmsNormMaxMinTmpSize answers",
                    detail::Digits(given.GetSize(), " B").text, &at);
  const detail::Floats work = given.template ReinterpretCast<float>();
  const detail::Floats x = work[0], t = work[padded], gamma = work[2 * padded];
  const detail::Floats sum = work[3 * padded], spread = work[3 * padded + 64];
  const detail::Floats repeats = work[3 * padded + 128];
  detail::Steps row(length, at), one(8, at);
  if constexpr (casts) row.cast(gamma, gammaLocal, RoundMode::CAST_NONE);
  for (uint32_t begin = 0; begin < tiling.bLength * tiling.sLength * length; begin += length) {
    const LocalTensor<T> from = srcLocal[begin], to = dstLocal[begin];
    detail::Floats source, result, scale;
    if constexpr (casts) {
      row.cast(x, from, RoundMode::CAST_NONE);
      source = x, result = x, scale = gamma;
    } else {
      source = from, result = to, scale = gammaLocal;
    }
    row.mul(t, source, source);
    Duplicate(sum, 0.0f, 8, at);
    detail::barrier(PIPE_V, at);
    detail::sum_through(sum, t, repeats, static_cast<int32_t>(tiling.originalHLength), at);
    detail::barrier(PIPE_V, at);
    one.muls(sum, sum, tiling.reciprocalOfHLength);
    one.adds(sum, sum, static_cast<float>(epsilon));
    Sqrt(sum, sum, 8, at);
    detail::barrier(PIPE_V, at);
    cubecore::issue("asc_brcb", at, detail::plain(spread), detail::plain(sum), 1, 8, 1);
    detail::barrier(PIPE_V, at);
    for (uint32_t done = 0; done < length; done += 64) {
      uint32_t count = length - done < 64 ? length - done : 64;
      Div(result[done], source[done], spread, count, 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0), at);
    }
    detail::barrier(PIPE_V, at);
    row.mul(result, result, scale);
    if constexpr (casts) row.cast(to, x, RoundMode::CAST_RINT);
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
