// Gradients of layer normalisation. Pages of the high-level API: LayerNormGrad, LayerNormGradBeta.
#pragma once

#include "cubecore/library/norms/layer_norm.h"

namespace AscendC {

// With g = dy * gamma, d = x - mean and r = (variance + epsilon) ^ -0.5 of a row of h elements:
//   v = sum(-0.5 g d r^3)   m = sum(-g r) + v / h * sum(-2 d)
//   dx = g r + v * 2 / h * d + m / h   and d r for gamma.
template <typename T, bool isReuseSource = false>
inline void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                          const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                          const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                          const LocalTensor<T>& inputGamma,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, T epsilon,
                          const LayerNormGradTiling& tiling,
                          const LayerNormGradShapeInfo& shapeInfo = {}, CUBECORE_AT) {
  if (shapeInfo.dataFormat != DataFormat::ND)
    cubecore_refuse("LayerNormGrad.dataFormat", "be ND", "another", &at);
  const detail::RowsAt lie{tiling.bLength * tiling.sLength, tiling.hLength, false};
  uint32_t used = tiling.originalHLength;
  float part = 1.0f / static_cast<float>(used);
  detail::FloatRows rows("LayerNormGrad", tiling.hLength, sharedTmpBuffer, at,
                         detail::NORM_GRAD_ROWS);
  const detail::Floats d = rows.x(), g = rows.spare(1), product = rows.spare(2);
  const detail::Floats gamma = detail::factor_row(rows, inputGamma, 0);
  const detail::Floats root = rows.value(0), v = rows.value(1), m = rows.value(2);
  const detail::Floats other = rows.value(3);
  const detail::Steps &row = rows.row(), &one = rows.one();
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(g, inputDy, n, lie);
    row.mul(g, g, gamma);
    rows.load(d, inputX, n, lie);
    rows.get_element(m, inputMean, n);
    rows.minus(d, m);
    rows.get_element(other, inputVariance, n);
    one.adds(other, other, static_cast<float>(epsilon));
    one.sqrt(root, other);
    row.mul(product, g, d);
    rows.sum(v, product, used);
    one.muls(v, v, -0.5f);
    one.div(v, v, other);
    one.div(v, v, root);
    rows.by(g, root);  // from here on g r
    rows.sum(m, g, used);
    one.muls(m, m, -1.0f);
    rows.sum(other, d, used);
    one.muls(other, other, -2.0f * part);
    one.mul(other, other, v);
    one.add(m, m, other);
    one.muls(m, m, part);
    one.muls(v, v, 2 * part);
    row.adds(product, d, 0.0f);
    rows.by(product, root);
    rows.times(d, v);
    row.add(g, g, d);
    one.muls(m, m, -1.0f);
    rows.minus(g, m);
    rows.store(resForGamma, n, product, lie);
    rows.store(outputPdX, n, g, lie);
  }
  ResetMask(at);
}
template <typename T, bool isReuseSource = false>
inline void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                          const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                          const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                          const LocalTensor<T>& inputGamma, T epsilon,
                          const LayerNormGradTiling& tiling,
                          const LayerNormGradShapeInfo& shapeInfo = {}, CUBECORE_AT) {
  LayerNormGrad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean,
                                  inputGamma, detail::free_memory(), epsilon, tiling, shapeInfo,
                                  at);
}

// Sums over all rows: of dy by what LayerNormGrad left for gamma, and of dy.
template <typename T, bool isReuseSource = false>
inline void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma,
                              const LocalTensor<T>& outputPdBeta, const LocalTensor<T>& resForGamma,
                              const LocalTensor<T>& inputDy,
                              const LocalTensor<uint8_t>& sharedTmpBuffer,
                              const LayerNormGradBetaTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.bLength * tiling.sLength, tiling.hLength, false};
  detail::FloatRows rows("LayerNormGradBeta", tiling.hLength, sharedTmpBuffer, at,
                         detail::NORM_ROWS);
  const detail::Floats x = rows.x(), t = rows.t(), gamma = rows.spare(0), beta = rows.spare(1);
  rows.row().fill(gamma, 0.0f);
  rows.row().fill(beta, 0.0f);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(x, inputDy, n, lie);
    rows.load(t, resForGamma, n, lie);
    rows.row().add(beta, beta, x);
    rows.row().mul(t, t, x);
    rows.row().add(gamma, gamma, t);
  }
  rows.store(outputPdGamma, 0, gamma, lie);
  rows.store(outputPdBeta, 0, beta, lie);
}
template <typename T, bool isReuseSource = false>
inline void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma,
                              const LocalTensor<T>& outputPdBeta, const LocalTensor<T>& resForGamma,
                              const LocalTensor<T>& inputDy, const LayerNormGradBetaTiling& tiling,
                              CUBECORE_AT) {
  LayerNormGradBeta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy,
                                      detail::free_memory(), tiling, at);
}

}  // namespace AscendC
