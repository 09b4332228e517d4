// Softmax of rows that come in parts. Pages of the high-level API: SoftmaxFlash, SoftmaxFlashV2,
// SoftmaxFlashV3, with their tiling pages.
#pragma once

#include "cubecore/library/softmax/softmax.h"

namespace AscendC {

struct SoftMaxParams {
  uint32_t srcM = 0;
  uint32_t srcK = 0;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
  uint32_t loopCnt = 0;
  uint32_t splitMeanCnt = 0;
  float alpha = 0;
};

namespace detail {

// Page SoftmaxFlashV2: without an update exp(x - max), its sum and max; with one they go on from
// those of before, and expMax says by how much the former result shrinks.
template <bool isUpdate, typename T, typename U, typename V>
inline void softmax_flash(const LocalTensor<T>& dst, const LocalTensor<U>& sums,
                          const LocalTensor<U>& most, const LocalTensor<T>& src,
                          const LocalTensor<V>& expMax, const LocalTensor<U>& inSums,
                          const LocalTensor<U>& inMost, const LocalTensor<uint8_t>& given,
                          const SoftMaxShapeInfo& shape, bool nz, const cubecore::Where& at) {
  const RowsAt lie{shape.srcM, shape.srcK, nz};
  FloatRows rows("SoftmaxFlashV2", shape.srcK, given, at, 0, POWER_ROWS);
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1), before = rows.value(2);
  const Floats shrinks = rows.value(3);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, src, n, lie);
    rows.largest(largest, x, shape.oriSrcK);
    if constexpr (isUpdate) {
      rows.get(before, inMost, n);
      rows.one().max(largest, largest, before);
      rows.one().sub(shrinks, before, largest);
      rows.one().exp(shrinks, shrinks);
      rows.put(expMax, n, shrinks);
    }
    rows.template powers<T>(largest);
    rows.sum(sum, x, shape.oriSrcK);
    if constexpr (isUpdate) {
      rows.get(before, inSums, n);
      rows.one().mul(before, before, shrinks);
      rows.one().add(sum, sum, before);
    }
    rows.put(sums, n, sum);
    rows.put(most, n, largest);
    rows.store(dst, n, x, lie);
  }
  ResetMask(at);
}

// Page SoftmaxFlash: as a softmax of the row; with an update the sum goes on from that of before,
// and expMax is the share of the former result.
template <typename T, typename U>
inline void softmax_first_flash(const LocalTensor<T>& dst, const LocalTensor<U>& sums,
                                const LocalTensor<U>& most, const LocalTensor<T>& src,
                                const LocalTensor<T>& expMax, const LocalTensor<U>& inSums,
                                const LocalTensor<U>& inMost, const LocalTensor<uint8_t>& given,
                                const SoftMaxShapeInfo& shape, const cubecore::Where& at) {
  const RowsAt lie{shape.srcM, shape.srcK, false};
  FloatRows rows("SoftmaxFlash", shape.srcK, given, at, 0, POWER_ROWS);
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1), before = rows.value(2);
  const Floats share = rows.value(3);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, src, n, lie);
    rows.largest(largest, x, shape.oriSrcK);
    rows.get(before, inMost, n);
    rows.one().max(largest, largest, before);
    rows.one().sub(share, before, largest);
    rows.one().exp(share, share);
    rows.template powers<T>(largest);
    rows.sum(sum, x, shape.oriSrcK);
    rows.get(before, inSums, n);
    rows.one().mul(share, share, before);
    rows.one().add(sum, sum, share);
    rows.one().div(share, share, sum);
    rows.by(x, sum);
    rows.put(expMax, n, share);
    rows.put(sums, n, sum);
    rows.put(most, n, largest);
    rows.store(dst, n, x, lie);
  }
  ResetMask(at);
}

// Page SoftmaxFlashV3 (PASA): each eighth of a row is shifted by alpha / (1 - alpha) of how far a
// mean lies from the row's: that of 64 elements among the first 512, and of 8 of each 64 behind
// them.
template <bool isUpdate, typename T, typename U>
inline void softmax_shifted(const LocalTensor<T>& dst, const LocalTensor<U>& means,
                            const LocalTensor<U>& sums, const LocalTensor<U>& most,
                            const LocalTensor<T>& src, const LocalTensor<T>& expMax,
                            const LocalTensor<U>& inMeans, const LocalTensor<U>& inSums,
                            const LocalTensor<U>& inMost, const LocalTensor<uint8_t>& given,
                            const SoftMaxParams& p, const cubecore::Where& at) {
  constexpr uint32_t parts = 8, wide = 64;
  uint32_t part = p.srcK / parts;
  if (p.splitMeanCnt != parts)
    cubecore_refuse("SoftMaxParams.splitMeanCnt", "be 8", Digits(p.splitMeanCnt).text, &at);
  if (p.srcK % wide != 0 || p.srcK < parts * wide)
    cubecore_refuse("SoftmaxFlashV3.srcK", "be a multiple of 64 from 512 on", Digits(p.srcK).text,
                    &at);
  const RowsAt lie{p.srcM, p.srcK, false};
  FloatRows rows("SoftmaxFlashV3", p.srcK, given, at);
  FloatRows pieces("SoftmaxFlashV3", part, given, at);
  // `pieces` has its row in the first part of x and its values before those of `rows`.
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1), mean = rows.value(2);
  const Floats shift = rows.value(3), room = rows.value(4), local = rows.value(5);
  const Steps& one = rows.one();
  float scalar = p.alpha / (1 - p.alpha);
  for (uint32_t n = 0; n < p.srcM; ++n) {
    rows.load(x, src, n, lie);
    rows.sum(mean, x, p.srcK);
    one.muls(mean, mean, 1.0f / static_cast<float>(p.srcK));
    const Floats more = rows.t();
    Steps behind(wide, at);
    behind.fill(more, 0.0f);
    for (uint32_t done = parts * wide; done < p.srcK; done += wide) behind.add(more, more, x[done]);
    for (uint32_t each = 0; each < parts; ++each) {
      rows.sum(local[each * 8], x[each * wide], wide);
      rows.sum(shift, more[each * 8], 8);
      one.add(local[each * 8], local[each * 8], shift);
    }
    for (uint32_t each = 0; each < parts; ++each) {
      one.muls(shift, local[each * 8], -1.0f / static_cast<float>(part));
      one.add(shift, shift, mean);
      one.muls(shift, shift, scalar);
      pieces.minus(x[each * part], shift);
    }
    rows.largest(largest, x, p.srcK);
    one.adds(room, mean, 0.0f);
    if constexpr (isUpdate) {
      rows.get(sum, inMeans, n);
      one.muls(room, sum, static_cast<float>(p.loopCnt) - 1);
      one.add(room, room, mean);
      one.muls(room, room, 1.0f / static_cast<float>(p.loopCnt));
      one.sub(sum, sum, room);
      one.muls(sum, sum, scalar);  // the shift of what was
    }
    one.sub(shift, mean, room);
    one.muls(shift, shift, scalar);
    rows.put(means, n, room);
    one.add(largest, largest, shift);
    if constexpr (isUpdate) {
      rows.get(mean, inMost, n);
      one.add(mean, mean, sum);
      one.max(largest, largest, mean);
      one.sub(mean, mean, largest);
      one.exp(mean, mean);  // by how much what was shrinks
      rows.put(expMax, n, mean);
    }
    rows.put(most, n, largest);
    one.sub(shift, largest, shift);
    rows.minus(x, shift);
    rows.row().exp(x, x);
    rows.sum(sum, x, p.srcK);
    if constexpr (isUpdate) {
      rows.get(shift, inSums, n);
      one.mul(shift, shift, mean);
      one.add(sum, sum, shift);
    }
    rows.put(sums, n, sum);
    rows.store(dst, n, x, lie);
  }
  ResetMask(at);
}

}  // namespace detail

// --- host side

inline uint32_t GetSoftMaxFlashMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                          const bool) {
  return detail::rows_bytes(detail::row_length(srcShape), detail::POWER_ROWS);
}
inline uint32_t GetSoftMaxFlashMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                          const bool) {
  return detail::rows_bytes(detail::row_length(srcShape));
}
inline void SoftMaxFlashTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize,
                                   const uint32_t, SoftMaxTiling& softmaxFlashTiling,
                                   const bool = false) {
  SoftMaxTilingFunc(srcShape, dataTypeSize, 0, softmaxFlashTiling);
}
inline uint32_t GetSoftMaxFlashV2MinTmpSize(const TensorShape& srcShape, const uint32_t,
                                            const uint32_t, const bool, const bool = false,
                                            const bool = false) {
  return detail::rows_bytes(detail::row_length(srcShape));
}
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const TensorShape& srcShape, const uint32_t,
                                            const uint32_t, const bool, const bool = false,
                                            const bool = false) {
  return detail::rows_bytes(detail::row_length(srcShape), detail::POWER_ROWS);
}
inline void SoftMaxFlashV2TilingFunc(const TensorShape& srcShape, const uint32_t,
                                     const uint32_t dataTypeSize2, const uint32_t,
                                     SoftMaxTiling& softmaxFlashTiling, const bool,
                                     const bool = false, const bool = false) {
  SoftMaxTilingFunc(srcShape, dataTypeSize2, 0, softmaxFlashTiling);
}
inline SoftMaxTiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo& shapeInfo, const uint32_t,
                                              const uint32_t dataTypeSize2, const uint32_t,
                                              const bool = false, const bool = false,
                                              const bool = false, const bool = false) {
  SoftMaxTiling made;
  detail::softmax_tiling(shapeInfo.srcM, shapeInfo.srcK,
                         32 / (dataTypeSize2 == 0 ? 4 : dataTypeSize2), made);
  return made;
}

inline void GetSoftMaxFlashV3MaxMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                           const uint32_t, uint32_t& maxValue, uint32_t& minValue,
                                           const bool, const bool = false) {
  maxValue = minValue = detail::rows_bytes(detail::row_length(srcShape));
}
inline void SoftMaxFlashV3TilingFunc(const TensorShape& srcShape, const uint32_t,
                                     const uint32_t dataTypeSize2, const uint32_t,
                                     SoftMaxTiling& softmaxFlashV3Tiling, const bool,
                                     const bool = false) {
  SoftMaxTilingFunc(srcShape, dataTypeSize2, 0, softmaxFlashV3Tiling);
}

// --- kernel side

template <typename T = float, bool isReuseSource = false, bool isBasicBlock = false, typename X,
          typename U>
inline void SoftmaxFlash(const LocalTensor<X>& dstTensor, const LocalTensor<U>& sumTensor,
                         const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                         const LocalTensor<X>& expMaxTensor, const LocalTensor<U>& inSumTensor,
                         const LocalTensor<U>& inMaxTensor,
                         const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                         bool isUpdate = false, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                         CUBECORE_AT) {
  SoftMaxShapeInfo shape = detail::softmax_shape<SOFTMAX_DEFAULT_CFG>(tiling, softmaxShapeInfo);
  if (isUpdate)
    detail::softmax_first_flash(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor,
                                inSumTensor, inMaxTensor, sharedTmpBuffer, shape, at);
  else
    detail::softmax("SoftmaxFlash", dstTensor, &sumTensor, &maxTensor, srcTensor, sharedTmpBuffer,
                    shape, false, false, false, at);
}
template <typename T = float, bool isReuseSource = false, bool isBasicBlock = false, typename X,
          typename U>
inline void SoftmaxFlash(const LocalTensor<X>& dstTensor, const LocalTensor<U>& sumTensor,
                         const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                         const LocalTensor<X>& expMaxTensor, const LocalTensor<U>& inSumTensor,
                         const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling,
                         bool isUpdate = false, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                         CUBECORE_AT) {
  SoftmaxFlash<T, isReuseSource, isBasicBlock>(
      dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor, inMaxTensor,
      detail::free_memory(), tiling, isUpdate, softmaxShapeInfo, at);
}

template <typename T = float, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename X, typename U>
inline void SoftmaxFlashV2(const LocalTensor<X>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                           const LocalTensor<X>& expMaxTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor,
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  detail::softmax_flash<isUpdate>(
      dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor,
      sharedTmpBuffer, detail::softmax_shape<config>(tiling, softmaxShapeInfo), isDataFormatNZ, at);
}
template <typename T = float, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename X, typename U>
inline void SoftmaxFlashV2(const LocalTensor<X>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                           const LocalTensor<X>& expMaxTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor,
      detail::free_memory(), tiling, softmaxShapeInfo, at);
}

template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                           const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                           const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor,
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling&,
                           const SoftMaxParams& params, CUBECORE_AT) {
  static_assert(!isDataFormatNZ, "SoftmaxFlashV3.isDataFormatNZ must be false, got true");
  detail::softmax_shifted<isUpdate>(dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor,
                                    expMaxTensor, inMeanTensor, inExpSumTensor, inMaxTensor,
                                    sharedTmpBuffer, params, at);
}
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                           const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                           const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling,
                           const SoftMaxParams& params, CUBECORE_AT) {
  SoftmaxFlashV3<T, U, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inMeanTensor,
      inExpSumTensor, inMaxTensor, detail::free_memory(), tiling, params, at);
}

}  // namespace AscendC
