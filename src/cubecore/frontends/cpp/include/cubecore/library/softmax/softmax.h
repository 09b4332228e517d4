// Softmax of rows. Pages of the high-level API: SoftMax, SimpleSoftMax, LogSoftMax, with their
// tiling pages.
#pragma once

#include "cubecore/library/softmax/rows.h"

namespace AscendC {

namespace detail {

// The forms with and without sums and largest elements, which null tensors stand for.
template <typename T, typename U>
inline void softmax(const char* caller, const LocalTensor<T>& dst, const LocalTensor<U>* sums,
                    const LocalTensor<U>* most, const LocalTensor<T>& src,
                    const LocalTensor<uint8_t>& given, const SoftMaxShapeInfo& shape, bool takes,
                    bool logarithm, bool nz, const cubecore::Where& at) {
  const RowsAt lie{shape.srcM, shape.srcK, nz};
  FloatRows rows(caller, shape.srcK, given, at, 0, POWER_ROWS);
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, src, n, lie);
    if (takes) {
      rows.get(largest, *most, n);
      rows.get(sum, *sums, n);
    } else {
      rows.largest(largest, x, shape.oriSrcK);
      if (most != nullptr) rows.put(*most, n, largest);
    }
    if (logarithm) {
      rows.minus(x, largest);
      rows.row().exp(rows.t(), x);
      rows.sum(sum, rows.t(), shape.oriSrcK);
      if (sums != nullptr) rows.put(*sums, n, sum);
      rows.one().ln(sum, sum);
      rows.minus(x, sum);
      constexpr float to_tens = 0.4342944819032518f;  // the page takes logarithms to base 10
      rows.row().muls(x, x, to_tens);
    } else if (takes) {
      rows.template powers<T>(largest);
      rows.by(x, sum);
    } else {
      rows.template shares<T>(sum, largest, shape.oriSrcK);
      if (sums != nullptr) rows.put(*sums, n, sum);
    }
    rows.store(dst, n, x, lie);
  }
  ResetMask(at);
}

}  // namespace detail

// --- host side

inline uint32_t GetSoftMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return detail::rows_bytes(detail::row_length(srcShape));
}
inline uint32_t GetSoftMaxMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return detail::rows_bytes(detail::row_length(srcShape), detail::POWER_ROWS);
}
inline void SoftMaxTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize,
                              const uint32_t, SoftMaxTiling& softmaxTiling) {
  detail::softmax_tiling(detail::rows_of(srcShape), detail::row_length(srcShape),
                         32 / (dataTypeSize == 0 ? 4 : dataTypeSize), softmaxTiling);
}
inline uint32_t GetLogSoftMaxMaxTmpSize(const TensorShape srcShape, const uint32_t, const bool) {
  return detail::rows_bytes(detail::row_length(srcShape));
}
inline uint32_t GetLogSoftMaxMinTmpSize(const TensorShape srcShape, const uint32_t, const bool) {
  return detail::rows_bytes(detail::row_length(srcShape));
}
inline void LogSoftMaxTilingFunc(const TensorShape srcShape, const uint32_t dataTypeSize,
                                 const uint32_t localWorkSpaceSize, LogSoftMaxTiling& tiling) {
  SoftMaxTilingFunc(srcShape, dataTypeSize, localWorkSpaceSize, tiling);
}

// --- kernel side

// T need not be given: the tensors have their types.
#define CUBECORE_SOFTMAX(NAME, TAKES)                                                          \
  template <typename T = float, bool isReuseSource = false, bool isBasicBlock = false,         \
            bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,    \
            typename X, typename U>                                                            \
  inline void NAME(const LocalTensor<X>& dst, const LocalTensor<U>& sums,                      \
                   const LocalTensor<U>& most, const LocalTensor<X>& src,                      \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,   \
                   const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {               \
    detail::softmax(#NAME, dst, &sums, &most, src, sharedTmpBuffer,                            \
                    detail::softmax_shape<config>(tiling, softmaxShapeInfo), TAKES, false,     \
                    isDataFormatNZ, at);                                                       \
  }                                                                                            \
  template <typename T = float, bool isReuseSource = false, bool isBasicBlock = false,         \
            bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,    \
            typename X, typename U>                                                            \
  inline void NAME(const LocalTensor<X>& dst, const LocalTensor<U>& sums,                      \
                   const LocalTensor<U>& most, const LocalTensor<X>& src,                      \
                   const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, \
                   CUBECORE_AT) {                                                              \
    NAME<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(                              \
        dst, sums, most, src, detail::free_memory(), tiling, softmaxShapeInfo, at);            \
  }
CUBECORE_SOFTMAX(SoftMax, false)
CUBECORE_SOFTMAX(SimpleSoftMax, true)
#undef CUBECORE_SOFTMAX

template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename U>
inline void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<U>& sum,
                       const LocalTensor<U>& max, const LocalTensor<T>& src,
                       const LocalTensor<uint8_t>& sharedTmpBuffer, const LogSoftMaxTiling& tiling,
                       const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  detail::softmax("LogSoftMax", dst, &sum, &max, src, sharedTmpBuffer,
                  detail::softmax_shape<SOFTMAX_DEFAULT_CFG>(tiling, softmaxShapeInfo), false, true,
                  isDataFormatNZ, at);
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename U>
inline void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<U>& sum,
                       const LocalTensor<U>& max, const LocalTensor<T>& src,
                       const LogSoftMaxTiling& tiling,
                       const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  LogSoftMax<T, isReuseSource, isDataFormatNZ>(dst, sum, max, src, detail::free_memory(), tiling,
                                               softmaxShapeInfo, at);
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  const LocalTensor<float>* none = nullptr;
  detail::softmax("SoftMax", dstTensor, none, none, srcTensor, sharedTmpBuffer,
                  detail::softmax_shape<config>(tiling, softmaxShapeInfo), false, false, false, at);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                    CUBECORE_AT) {
  SoftMax<T, isReuseSource, isBasicBlock, config>(dstTensor, srcTensor, detail::free_memory(),
                                                  tiling, softmaxShapeInfo, at);
}

}  // namespace AscendC
