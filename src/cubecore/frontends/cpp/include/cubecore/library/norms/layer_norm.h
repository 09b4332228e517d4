// Normalisation of rows by their mean and variance. Pages of the high-level API: LayerNorm,
// LayerNormGrad, LayerNormGradBeta, DeepNorm, Normalize, with their tiling pages.
#pragma once

#include "cubecore/host/workspaces.h"
#include "cubecore/library/norms/rows.h"
#include "cubecore/library/norms/tilings.h"

namespace AscendC {

struct LayerNormConfig {
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
  bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {false, false, false, true};

struct LayerNormPara {
  uint32_t aLength = 0;
  uint32_t rLength = 0;
  uint32_t rLengthWithPadding = 0;
};

struct LayerNormGradShapeInfo {
  DataFormat dataFormat = DataFormat::ND;
};

struct NormalizeConfig {
  ReducePattern reducePattern = ReducePattern::AR;
  int32_t aLength = -1;
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
};
constexpr NormalizeConfig NLCFG_NORM = {ReducePattern::AR, -1, false, false, false};

// No page has these two; public kernels call them.
constexpr LayerNormConfig GetLayerNormConfig(bool isNoBeta, bool isNoGamma) {
  return {isNoBeta, isNoGamma, false, true};
}
constexpr NormalizeConfig GetNormalizeConfig(bool isNoBeta, bool isNoGamma) {
  return {ReducePattern::AR, -1, isNoBeta, isNoGamma, false};
}

struct NormalizePara {
  uint32_t aLength = 0;
  uint32_t rLength = 0;
  uint32_t rLengthWithPadding = 0;
};

namespace detail {

constexpr uint32_t NORM_GRAD_ROWS = 4;

// Means and variances (or 1 / deviation) of rows, and the rows themselves.
template <typename T, typename M, typename U, typename Load>
inline void normalise(NormRows<U>& norm, const LocalTensor<T>& output, const LocalTensor<M>& means,
                      const LocalTensor<M>& seconds, bool inverse, float epsilon, const RowsAt& lie,
                      const cubecore::Where& at, const Load& load) {
  for (uint32_t n = 0; n < lie.rows; ++n) {
    load(n);
    norm.centre();
    norm.deviate(epsilon);
    norm.finish();
    norm.rows.store(output, n, norm.rows.x(), lie);
    norm.rows.put_element(means, n, norm.mean());
    if (inverse) norm.invert();
    norm.rows.put_element(seconds, n, norm.variance());
  }
  ResetMask(at);
}

inline uint32_t dim(const TensorShape& shape, size_t index) {
  return index < shape.GetDimNum() ? static_cast<uint32_t>(shape.GetDim(index)) : 1;
}
// H of {B, S, H, original H}, or R of {A, R}.
inline uint32_t norm_length(const TensorShape& shape) {
  return dim(shape, shape.GetDimNum() > 2 ? 2 : 1);
}
template <typename S>
inline void set_norm(S& tiling, const TensorShape& shape, uint32_t original) {
  tiling = S();
  tiling.bLength = dim(shape, 0);
  tiling.sLength = dim(shape, 1);
  tiling.hLength = dim(shape, 2);
  tiling.originalHLength = original;
}

}  // namespace detail

// --- host side

inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                      uint32_t& maxValue, uint32_t& minValue) {
  detail::norm_sizes(detail::norm_length(srcShape), maxValue, minValue);
}
inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                      const bool, const bool, uint32_t& maxValue,
                                      uint32_t& minValue) {
  detail::norm_sizes(detail::norm_length(srcShape), maxValue, minValue);
}
inline void GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t,
                                     const bool, LayerNormTiling& tiling) {
  detail::set_norm(tiling, srcShape, detail::dim(srcShape, srcShape.GetDimNum() > 3 ? 3 : 2));
}
// The name before.
inline void GetLayerNormNDTillingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize,
                                      const uint32_t typeSize, const bool isReuseSource,
                                      LayerNormTiling& tilling) {
  GetLayerNormNDTilingInfo(srcShape, stackBufferSize, typeSize, isReuseSource, tilling);
}
inline void GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t,
                                     const bool, const bool, LayerNormSeparateTiling& tiling) {
  tiling = LayerNormSeparateTiling();
  tiling.aLength = detail::dim(srcShape, 0);
  tiling.rLength = detail::dim(srcShape, 1);
}
inline void GetLayerNormGradMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                          uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = detail::rows_bytes(detail::norm_length(srcShape), detail::NORM_GRAD_ROWS);
}
inline void GetLayerNormGradNDTilingInfo(const TensorShape srcShape, const uint32_t stackBufferSize,
                                         const uint32_t, const bool, LayerNormGradTiling& tiling) {
  detail::set_norm(tiling, srcShape, detail::dim(srcShape, srcShape.GetDimNum() > 3 ? 3 : 2));
  tiling.stackBufferSize = stackBufferSize;
}
inline void GetLayerNormGradBetaMaxMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                              const bool, uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = detail::rows_bytes(detail::norm_length(srcShape), detail::NORM_ROWS);
}
inline void GetLayerNormGradBetaNDTilingInfo(const TensorShape srcShape,
                                             const uint32_t stackBufferSize, const uint32_t,
                                             const bool, LayerNormGradBetaTiling& tiling) {
  detail::set_norm(tiling, srcShape, detail::dim(srcShape, srcShape.GetDimNum() > 3 ? 3 : 2));
  tiling.stackBufferSize = stackBufferSize;
  tiling.bsLength = tiling.bLength * tiling.sLength;
  tiling.bshLength = tiling.bsLength * tiling.hLength;
}
inline bool GetDeepNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                     const bool, uint32_t& maxValue, uint32_t& minValue) {
  if (srcShape.GetDimNum() < 3) return false;
  detail::norm_sizes(detail::norm_length(srcShape), maxValue, minValue);
  return true;
}
inline bool GetDeepNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                                  const uint32_t stackBufferSize, const uint32_t typeSize,
                                  const bool isReuseSource, const bool isBasicBlock,
                                  DeepNormTiling& tiling) {
  uint32_t most = 0, least = 0;
  if (!GetDeepNormMaxMinTmpSize(srcShape, typeSize, isReuseSource, isBasicBlock, most, least) ||
      originSrcShape.GetDimNum() < 3 || stackBufferSize < least)
    return false;
  detail::set_norm(tiling, srcShape, detail::dim(originSrcShape, 2));
  return true;
}
inline void GetNormalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t,
                                      const bool, const bool, const bool, uint32_t& maxValue,
                                      uint32_t& minValue) {
  detail::norm_sizes(detail::dim(srcShape, 1), maxValue, minValue);
}

// --- kernel side

template <typename T, bool isReuseSource = false>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon,
                      const LayerNormTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.bLength * tiling.sLength, tiling.hLength, false};
  detail::NormRows<T> norm("LayerNorm", tiling.hLength, tiling.originalHLength, &gamma, &beta,
                           sharedTmpBuffer, at);
  detail::normalise(norm, output, outputMean, outputVariance, false, static_cast<float>(epsilon),
                    lie, at, [&](uint32_t n) { norm.rows.load(norm.rows.x(), inputX, n, lie); });
}
template <typename T, bool isReuseSource = false>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const T epsilon,
                      const LayerNormTiling& tiling, CUBECORE_AT) {
  LayerNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta,
                              detail::free_memory(), epsilon, tiling, at);
}
template <typename U, typename T, bool isReuseSource = false,
          const LayerNormConfig& config = LNCFG_NORM>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                      const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
                      const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const LayerNormPara& para,
                      const LayerNormSeparateTiling&, CUBECORE_AT) {
  static_assert(config.isOutputRstd,
                "LayerNormConfig.isOutputRstd must be true on 2201, got false");
  static_assert(!config.isOnlyOutput, "LayerNormConfig.isOnlyOutput must be false, got true");
  const detail::RowsAt lie{para.aLength, para.rLengthWithPadding, false};
  detail::NormRows<U> norm("LayerNorm", para.rLengthWithPadding, para.rLength,
                           config.isNoGamma ? nullptr : &gamma, config.isNoBeta ? nullptr : &beta,
                           sharedTmpBuffer, at);
  detail::normalise(norm, output, outputMean, outputRstd, true, epsilon, lie, at,
                    [&](uint32_t n) { norm.rows.load(norm.rows.x(), inputX, n, lie); });
}
template <typename U, typename T, bool isReuseSource = false,
          const LayerNormConfig& config = LNCFG_NORM>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                      const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
                      const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
                      const LayerNormPara& para, const LayerNormSeparateTiling& tiling,
                      CUBECORE_AT) {
  LayerNorm<U, T, isReuseSource, config>(output, outputMean, outputRstd, inputX, gamma, beta,
                                         epsilon, detail::free_memory(), para, tiling, at);
}

// Layer normalisation of alpha * src + gx. Uncertain: the page calls the third output the inverse
// of the deviation, but the vendor's examples verify that it is the variance.
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
inline void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
                     const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal,
                     const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                     const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                     const T alpha, const T epsilon, const DeepNormTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.bLength * tiling.sLength, tiling.hLength, false};
  detail::NormRows<T> norm("DeepNorm", tiling.hLength, tiling.originalHLength, &gammaLocal,
                           &betaLocal, sharedTmpBuffer, at);
  detail::normalise(norm, dstLocal, meanLocal, rstdLocal, false, static_cast<float>(epsilon), lie,
                    at, [&](uint32_t n) {
                      const detail::FloatRows& rows = norm.rows;
                      rows.load(rows.x(), srcLocal, n, lie);
                      rows.row().muls(rows.x(), rows.x(), static_cast<float>(alpha));
                      rows.load(rows.t(), gxLocal, n, lie);
                      rows.row().add(rows.x(), rows.x(), rows.t());
                    });
}
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
inline void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
                     const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal,
                     const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                     const LocalTensor<T>& gammaLocal, const T alpha, const T epsilon,
                     const DeepNormTiling& tiling, CUBECORE_AT) {
  DeepNorm<T, isReuseSrc, isBasicBlock>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal,
                                        betaLocal, gammaLocal, detail::free_memory(), alpha,
                                        epsilon, tiling, at);
}

// With means and variances that are given.
template <typename U, typename T, bool isReuseSource = false,
          const NormalizeConfig& config = NLCFG_NORM>
inline void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                      const LocalTensor<T>& inputX, const LocalTensor<U>& gamma,
                      const LocalTensor<U>& beta, const LocalTensor<uint8_t>& sharedTmpBuffer,
                      const float epsilon, const NormalizePara& para, CUBECORE_AT) {
  static_assert(config.reducePattern == ReducePattern::AR,
                "NormalizeConfig.reducePattern must be AR, got RA");
  static_assert(!config.isOnlyOutput, "NormalizeConfig.isOnlyOutput must be false, got true");
  const detail::RowsAt lie{para.aLength, para.rLengthWithPadding, false};
  detail::NormRows<U> norm("Normalize", para.rLengthWithPadding, para.rLength,
                           config.isNoGamma ? nullptr : &gamma, config.isNoBeta ? nullptr : &beta,
                           sharedTmpBuffer, at);
  const detail::FloatRows& rows = norm.rows;
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(rows.x(), inputX, n, lie);
    rows.get_element(norm.mean(), inputMean, n);
    rows.get_element(norm.variance(), inputVariance, n);
    norm.leave_mean();
    norm.deviate_from_variance(epsilon);
    norm.finish();
    rows.store(output, n, rows.x(), lie);
    norm.invert();
    rows.put_element(outputRstd, n, norm.variance());
  }
  ResetMask(at);
}
template <typename U, typename T, bool isReuseSource = false,
          const NormalizeConfig& config = NLCFG_NORM>
inline void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                      const LocalTensor<T>& inputX, const LocalTensor<U>& gamma,
                      const LocalTensor<U>& beta, const float epsilon, const NormalizePara& para,
                      CUBECORE_AT) {
  Normalize<U, T, isReuseSource, config>(output, outputRstd, inputMean, inputVariance, inputX,
                                         gamma, beta, detail::free_memory(), epsilon, para, at);
}

}  // namespace AscendC
