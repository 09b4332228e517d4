// Softmax of rows. Pages of the high-level API: SoftMax, SimpleSoftMax, SoftmaxFlashV2,
// LogSoftMax, with their tiling pages; SoftMaxShapeInfo, SoftmaxConfig.
#pragma once

#include "cubecore/gather.h"
#include "cubecore/math/exponential.h"
#include "cubecore/math/steps.h"
#include "cubecore/workspaces.h"

// Host code fills it, kernels hand it on. Rows are taken one by one here, so that of the fields
// only the shape matters.
struct SoftMaxTiling {
  uint32_t srcM = 0, srcK = 0, srcSize = 0;
  uint32_t outMaxM = 0, outMaxK = 0, outMaxSize = 0;
  uint32_t splitM = 0, splitK = 0, splitSize = 0;
  uint32_t reduceM = 0, reduceK = 0, reduceSize = 0;
  uint32_t rangeM = 0, tailM = 0, tailSplitSize = 0, tailReduceSize = 0;
};

namespace optiling {
using ::SoftMaxTiling;
}

namespace AscendC {

namespace tiling {
using ::SoftMaxTiling;
}

struct SoftMaxShapeInfo {
  uint32_t srcM = 0;
  uint32_t srcK = 0;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
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

// Bytes for rows of a length: two in float, the partial results of one, and what a row has one of.
constexpr uint32_t softmax_bytes(uint32_t length) {
  uint32_t padded = (length + 63) / 64 * 64;
  return padded * 8 + (padded / 64 + 7) / 8 * 32 + 64 + 5 * 256;
}

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
  return shape.GetDimNum() == 0
             ? 1
             : static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
}

// One row at a time, in float: the workspace's parts.
class SoftmaxRows {
 public:
  SoftmaxRows(const char* caller, uint32_t length, const LocalTensor<uint8_t>& given,
              const cubecore::Where& at)
      : length_(length), padded_((length + 63) / 64 * 64), at_(at), row_(length, at), one_(8, at) {
    if (given.GetSize() < softmax_bytes(length))
      cubecore_refuse(caller, "have a workspace as its tiling function answers",
                      Digits(given.GetSize(), " B").text, &at);
    work_ = given.template ReinterpretCast<float>();
    one_.fill(t(), 0.0f);  // a broadcast reads eight elements, of which the first counts
  }
  Floats x() const { return work_[0]; }
  Floats t() const { return work_[padded_]; }
  Floats repeats() const { return work_[2 * padded_]; }
  Floats value(uint32_t n) const {
    return work_[2 * padded_ + (padded_ / 64 + 7) / 8 * 8 + 16 + 64 * n];
  }
  const Steps& row() const { return row_; }
  const Steps& one() const { return one_; }

  template <typename T>
  void load(const Floats& to, const LocalTensor<T>& from) const {
    if constexpr (std::is_same_v<PrimT<T>, half>)
      row_.cast(to, from, RoundMode::CAST_NONE);
    else
      row_.adds(to, from, 0.0f);
  }
  template <typename T>
  void store(const LocalTensor<T>& to, const Floats& from) const {
    if constexpr (std::is_same_v<PrimT<T>, half>)
      row_.cast(to, from, RoundMode::CAST_RINT);
    else
      row_.adds(to, from, 0.0f);
  }
  // The largest element, or the sum, of a row, in all eight lanes of a block.
  void largest(const Floats& to, const Floats& from, uint32_t used) const {
    ReduceMax(t(), from, repeats(), static_cast<int32_t>(used), false, at_);
    barrier(PIPE_V, at_);
    spread(to, t());
  }
  void sum(const Floats& to, const Floats& from, uint32_t used) const {
    ReduceSum(t(), from, repeats(), static_cast<int32_t>(used), at_);
    barrier(PIPE_V, at_);
    spread(to, t());
  }
  // The first element in all eight lanes.
  void spread(const Floats& to, const Floats& from) const {
    cubecore::issue("asc_brcb", at_, plain(value(4)), plain(from), 1, 8, 1);
    barrier(PIPE_V, at_);
    one_.adds(to, value(4), 0.0f);
  }
  void minus(const Floats& row, const Floats& value) const {
    for (uint32_t done = 0; done < length_; done += 64)
      Sub(row[done], row[done], value, part(done), 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0), at_);
    barrier(PIPE_V, at_);
  }
  void times(const Floats& row, const Floats& value) const {
    for (uint32_t done = 0; done < length_; done += 64)
      Mul(row[done], row[done], value, part(done), 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0), at_);
    barrier(PIPE_V, at_);
  }
  void by(const Floats& row, const Floats& value) const {
    for (uint32_t done = 0; done < length_; done += 64)
      Div(row[done], row[done], value, part(done), 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0), at_);
    barrier(PIPE_V, at_);
  }
  // What a row has one of: a block of equal elements in a tensor of any of the two types.
  template <typename T>
  void put(const LocalTensor<T>& to, uint32_t number, const Floats& value) const {
    constexpr bool casts = std::is_same_v<PrimT<T>, half>;
    const LocalTensor<T> block = to[number * (casts ? 16 : 8)];
    if constexpr (casts) {
      Add(repeats(), value, value, 16, 1, BinaryRepeatParams(1, 0, 0, 8, 8, 8), at_);
      barrier(PIPE_V, at_);
      Steps both(16, at_);
      both.muls(repeats(), repeats(), 0.5f);
      both.cast(block, repeats(), RoundMode::CAST_RINT);
    } else {
      one_.adds(block, value, 0.0f);
    }
  }
  template <typename T>
  void get(const Floats& value, const LocalTensor<T>& from, uint32_t number) const {
    constexpr bool casts = std::is_same_v<PrimT<T>, half>;
    const LocalTensor<T> block = from[number * (casts ? 16 : 8)];
    if constexpr (casts)
      one_.cast(value, block, RoundMode::CAST_NONE);
    else
      one_.adds(value, block, 0.0f);
  }

 private:
  uint64_t part(uint32_t done) const { return length_ - done < 64 ? length_ - done : 64; }

  uint32_t length_, padded_;
  cubecore::Where at_;
  Floats work_;
  Steps row_, one_;
};

template <const SoftmaxConfig& config>
inline SoftMaxShapeInfo softmax_shape(const SoftMaxTiling& tiling, const SoftMaxShapeInfo& given) {
  static_assert(config.mode == SoftmaxMode::SOFTMAX_NORMAL,
                "softmax: SOFTMAX_OUTPUT_WITHOUT_BRC is not supported; see docs/cpp.md");
  SoftMaxShapeInfo shape = given;
  if (shape.srcM == 0) shape = {tiling.srcM, tiling.srcK, tiling.srcM, tiling.srcK};
  if (shape.oriSrcK == 0) shape.oriSrcK = shape.srcK;
  return shape;
}

// The forms with and without sums and largest elements, which null tensors stand for.
template <typename T, typename U>
inline void softmax(const char* caller, const LocalTensor<T>& dst, const LocalTensor<U>* sums,
                    const LocalTensor<U>* most, const LocalTensor<T>& src,
                    const LocalTensor<uint8_t>& given, const SoftMaxShapeInfo& shape, bool takes,
                    bool logarithm, const cubecore::Where& at) {
  SoftmaxRows rows(caller, shape.srcK, given, at);
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, src[n * shape.srcK]);
    if (takes) {
      rows.get(largest, *most, n);
      rows.get(sum, *sums, n);
    } else {
      rows.largest(largest, x, shape.oriSrcK);
      if (most != nullptr) rows.put(*most, n, largest);
    }
    rows.minus(x, largest);
    if (logarithm) {
      rows.row().exp(rows.t(), x);
      const Floats copy = rows.t();
      ReduceSum(copy, copy, rows.repeats(), static_cast<int32_t>(shape.oriSrcK), at);
      barrier(PIPE_V, at);
      rows.spread(sum, copy);
      if (sums != nullptr) rows.put(*sums, n, sum);
      rows.one().ln(sum, sum);
      rows.minus(x, sum);
    } else {
      rows.row().exp(x, x);
      if (!takes) {
        rows.sum(sum, x, shape.oriSrcK);
        if (sums != nullptr) rows.put(*sums, n, sum);
      }
      rows.by(x, sum);
    }
    rows.store(dst[n * shape.srcK], x);
  }
  ResetMask(at);
}

// Page SoftmaxFlashV2: without an update exp(x - max), its sum and max; with one they go on from
// those of before, and expMax says by how much the former result shrinks.
template <bool isUpdate, typename T, typename U, typename V>
inline void softmax_flash(const LocalTensor<T>& dst, const LocalTensor<U>& sums,
                          const LocalTensor<U>& most, const LocalTensor<T>& src,
                          const LocalTensor<V>& expMax, const LocalTensor<U>& inSums,
                          const LocalTensor<U>& inMost, const LocalTensor<uint8_t>& given,
                          const SoftMaxShapeInfo& shape, const cubecore::Where& at) {
  SoftmaxRows rows("SoftmaxFlashV2", shape.srcK, given, at);
  const Floats x = rows.x(), largest = rows.value(0), sum = rows.value(1), before = rows.value(2);
  const Floats shrinks = rows.value(3);
  for (uint32_t n = 0; n < shape.srcM; ++n) {
    rows.load(x, src[n * shape.srcK]);
    rows.largest(largest, x, shape.oriSrcK);
    if constexpr (isUpdate) {
      rows.get(before, inMost, n);
      rows.one().max(largest, largest, before);
      rows.one().sub(shrinks, before, largest);
      rows.one().exp(shrinks, shrinks);
      rows.put(expMax, n, shrinks);
    }
    rows.minus(x, largest);
    rows.row().exp(x, x);
    rows.sum(sum, x, shape.oriSrcK);
    if constexpr (isUpdate) {
      rows.get(before, inSums, n);
      rows.one().mul(before, before, shrinks);
      rows.one().add(sum, sum, before);
    }
    rows.put(sums, n, sum);
    rows.put(most, n, largest);
    rows.store(dst[n * shape.srcK], x);
  }
  ResetMask(at);
}

}  // namespace detail

// --- host side

inline uint32_t GetSoftMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return detail::softmax_bytes(detail::row_length(srcShape));
}
inline uint32_t GetSoftMaxMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return detail::softmax_bytes(detail::row_length(srcShape));
}
inline void SoftMaxTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize,
                              const uint32_t, SoftMaxTiling& softmaxTiling) {
  detail::softmax_tiling(detail::rows_of(srcShape), detail::row_length(srcShape),
                         32 / (dataTypeSize == 0 ? 4 : dataTypeSize), softmaxTiling);
}
inline uint32_t GetSoftMaxFlashV2MinTmpSize(const TensorShape& srcShape, const uint32_t,
                                            const uint32_t, const bool, const bool = false,
                                            const bool = false) {
  return detail::softmax_bytes(detail::row_length(srcShape));
}
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const TensorShape& srcShape, const uint32_t,
                                            const uint32_t, const bool, const bool = false,
                                            const bool = false) {
  return detail::softmax_bytes(detail::row_length(srcShape));
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

// --- kernel side

#define CUBECORE_SOFTMAX(NAME, TAKES, LOGARITHM)                                                  \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false,                    \
            bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,       \
            typename X, typename U>                                                               \
  inline void NAME(const LocalTensor<X>& dst, const LocalTensor<U>& sums,                         \
                   const LocalTensor<U>& most, const LocalTensor<X>& src,                         \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,      \
                   const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {                  \
    static_assert(!isDataFormatNZ, #NAME ": NZ is not supported; see docs/cpp.md");               \
    detail::softmax(#NAME, dst, &sums, &most, src, sharedTmpBuffer,                               \
                    detail::softmax_shape<config>(tiling, softmaxShapeInfo), TAKES, LOGARITHM, at); \
  }                                                                                               \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false,                    \
            bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,       \
            typename X, typename U>                                                               \
  inline void NAME(const LocalTensor<X>& dst, const LocalTensor<U>& sums,                         \
                   const LocalTensor<U>& most, const LocalTensor<X>& src,                         \
                   const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {},    \
                   CUBECORE_AT) {                                                                 \
    NAME<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(                                 \
        dst, sums, most, src, detail::free_memory(), tiling, softmaxShapeInfo, at);               \
  }
CUBECORE_SOFTMAX(SoftMax, false, false)
CUBECORE_SOFTMAX(SimpleSoftMax, true, false)
CUBECORE_SOFTMAX(LogSoftMax, false, true)
#undef CUBECORE_SOFTMAX

template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  const LocalTensor<float>* none = nullptr;
  detail::softmax("SoftMax", dstTensor, none, none, srcTensor, sharedTmpBuffer,
                  detail::softmax_shape<config>(tiling, softmaxShapeInfo), false, false, at);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                    CUBECORE_AT) {
  SoftMax<T, isReuseSource, isBasicBlock, config>(dstTensor, srcTensor, detail::free_memory(),
                                                  tiling, softmaxShapeInfo, at);
}

template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,
          typename X, typename U>
inline void SoftmaxFlashV2(const LocalTensor<X>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                           const LocalTensor<X>& expMaxTensor,
                           const LocalTensor<U>& inExpSumTensor, const LocalTensor<U>& inMaxTensor,
                           const LocalTensor<uint8_t>& sharedTmpBuffer,
                           const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  static_assert(!isDataFormatNZ, "SoftmaxFlashV2: NZ is not supported; see docs/cpp.md");
  detail::softmax_flash<isUpdate>(dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor,
                                  inExpSumTensor, inMaxTensor, sharedTmpBuffer,
                                  detail::softmax_shape<config>(tiling, softmaxShapeInfo), at);
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG,
          typename X, typename U>
inline void SoftmaxFlashV2(const LocalTensor<X>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<X>& srcTensor,
                           const LocalTensor<X>& expMaxTensor,
                           const LocalTensor<U>& inExpSumTensor, const LocalTensor<U>& inMaxTensor,
                           const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, CUBECORE_AT) {
  SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor,
      detail::free_memory(), tiling, softmaxShapeInfo, at);
}

}  // namespace AscendC
