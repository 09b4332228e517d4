// Gradients of softmax, and results set by hand. Pages of the high-level API: SoftmaxGrad,
// SoftmaxGradFront, "SoftmaxGrad Tiling", AdjustSoftMaxRes.
#pragma once

#include "cubecore/library/softmax/softmax.h"

namespace AscendC {

namespace detail {

// x becomes x times `raised`, a power of two which is not 1 where the products with y are so small
// that float may not hold all their bits; `lowered` is its inverse. Large elements keep it at 1,
// those whose factor is 0 too.
inline void raise(const FloatRows& rows, const Floats& y, uint32_t used, const Floats& raised,
                  const Floats& lowered) {
  constexpr float power = 0x1p24f, small = 0x1p-66f, least = 0x1p-126f;
  const Steps &row = rows.row(), &one = rows.one();
  const Floats x = rows.x(), t = rows.t();
  row.abs(t, y);
  row.maxs(t, t, least);
  row.mul(t, t, x);
  row.abs(t, t);
  rows.largest(raised, t, used);
  one.rsubs(raised, raised, small);
  one.muls(raised, raised, 1.0f / least);
  one.clamp(raised, raised, 0.0f, 1.0f);
  one.muls(lowered, raised, 1.0f / power - 1.0f);
  one.adds(lowered, lowered, 1.0f);
  one.muls(raised, raised, power - 1.0f);
  one.adds(raised, raised, 1.0f);
  rows.times(x, raised);
}

// sum = the row's sum of grad * src; alone (`front`), or (grad - sum) * src.
template <typename T>
inline void softmax_gradient(const char* caller, const LocalTensor<T>& dst,
                             const LocalTensor<T>& grad, const LocalTensor<T>& src,
                             const LocalTensor<uint8_t>& given, const SoftMaxShapeInfo& shape,
                             bool front, bool nz, const cubecore::Where& at) {
  constexpr bool raises = std::is_same_v<PrimT<T>, float>;  // products of half are large enough
  const RowsAt lie{shape.srcM, shape.srcK, nz};
  FloatRows rows(caller, shape.srcK, given, at, 2);
  const Floats x = rows.x(), sum = rows.value(0), y = rows.spare(0), product = rows.spare(1);
  const Floats raised = rows.value(1), lowered = rows.value(2);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, grad, n, lie);
    rows.load(y, src, n, lie);
    if constexpr (raises) raise(rows, y, shape.oriSrcK, raised, lowered);
    rows.row().mul(product, x, y);
    rows.sum(sum, product, shape.oriSrcK);
    if (front) {
      if constexpr (raises) rows.one().mul(sum, sum, lowered);
      rows.put(dst, n, sum);
    } else {
      rows.minus(x, sum);
      rows.row().mul(x, x, y);
      if constexpr (raises) rows.times(x, lowered);
      rows.store(dst, n, x, lie);
    }
  }
  ResetMask(at);
}

}  // namespace detail

// --- host side

inline uint32_t GetSoftMaxGradMaxTmpSize(const TensorShape& srcShape, const uint32_t,
                                         const bool = false, const bool = false) {
  return detail::rows_bytes(detail::row_length(srcShape), 2);
}
inline uint32_t GetSoftMaxGradMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                         const bool = false, const bool = false) {
  return detail::rows_bytes(detail::row_length(srcShape), 2);
}
inline void SoftMaxGradTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize,
                                  const uint32_t, SoftMaxTiling& softmaxGradTiling,
                                  const bool = false) {
  SoftMaxTilingFunc(srcShape, dataTypeSize, 0, softmaxGradTiling);
}

// --- kernel side

template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                        const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                        bool isFront = false, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                        CUBECORE_AT) {
  detail::softmax_gradient("SoftmaxGrad", dstTensor, gradTensor, srcTensor, sharedTmpBuffer,
                           detail::softmax_shape<SOFTMAX_DEFAULT_CFG>(tiling, softmaxShapeInfo),
                           isFront, isDataFormatNZ, at);
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                        const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                        bool isFront = false, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                        CUBECORE_AT) {
  SoftmaxGrad<T, isReuseSource, isDataFormatNZ>(dstTensor, gradTensor, srcTensor,
                                                detail::free_memory(), tiling, isFront,
                                                softmaxShapeInfo, at);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor,
                             const LocalTensor<uint8_t>& sharedTmpBuffer,
                             const SoftMaxTiling& tiling,
                             const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  detail::softmax_gradient("SoftmaxGradFront", dstTensor, gradTensor, srcTensor, sharedTmpBuffer,
                           detail::softmax_shape<SOFTMAX_DEFAULT_CFG>(tiling, softmaxShapeInfo),
                           true, isDataFormatNZ, at);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                             const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  SoftmaxGradFront<T, isBasicBlock, isDataFormatNZ>(
      dstTensor, gradTensor, srcTensor, detail::free_memory(), tiling, softmaxShapeInfo, at);
}

// A row whose largest element has the bits `from` becomes `to`. The scalar unit reads maxTensor:
// for each row a block, or with a step an element.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
inline bool AdjustSoftMaxRes(const LocalTensor<T1>& softMaxRes, const LocalTensor<T2>& maxTensor,
                             const uint32_t from, const T1 to,
                             const SoftMaxShapeInfo& softmaxShapeInfo, CUBECORE_AT) {
  using Bits = std::conditional_t<sizeof(PrimT<T2>) == 2, uint16_t, uint32_t>;
  constexpr uint32_t step = stepSizeMode != 0 ? 1 : ONE_BLK_SIZE / sizeof(PrimT<T2>);
  const SoftMaxShapeInfo& shape = softmaxShapeInfo;
  auto most = maxTensor.template ReinterpretCast<Bits>();
  bool found = false;
  detail::hand(HardEvent::V_S, at);
  for (uint32_t row = 0; row < shape.srcM; ++row) {
    if (most.GetValue(row * step, at) != static_cast<Bits>(from)) continue;
    if (!found) detail::hand(HardEvent::S_V, at);
    found = true;
    if constexpr (isDataFormatNZ) {
      constexpr uint32_t width = 16;  // of a fractal
      for (uint32_t done = 0; done < shape.srcK; done += width)
        Duplicate(softMaxRes[(done * shape.srcM + row * width)], to, width, at);
    } else {
      Duplicate(softMaxRes[row * shape.srcK], to, static_cast<int32_t>(shape.srcK), at);
    }
  }
  detail::barrier(PIPE_V, at);
  return found;
}

}  // namespace AscendC
