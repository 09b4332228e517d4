// Normalisation over samples and over groups of channels, and means and variances that come in
// parts. Pages of the high-level API: BatchNorm, GroupNorm, WelfordUpdate, WelfordFinalize, with
// their tiling pages.
#pragma once

#include "cubecore/library/norms/layer_norm.h"

namespace AscendC {

struct WelfordUpdateConfig {
  bool isInplace = false;
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};

struct WelfordUpdateParam {
  uint32_t rnLength = 1;
  uint32_t abLength = 0;
  uint32_t abComputeLength = 0;
  float nRec = 0;
};

struct WelfordFinalizeConfig {
  bool isCorrection = false;
};
constexpr WelfordFinalizeConfig WFFINALIZE_DEFAULT_CFG = {false};

struct WelfordFinalizePara {
  uint32_t rnLength = 0;
  uint32_t abLength = 0;
  uint32_t headCount = 0;
  uint32_t headCountLength = 0;
  uint32_t tailCount = 0;
  uint32_t tailCountLength = 0;
  float abRec = 0;
  float rRec = 0;
  float rRecWithCorrection = 0;
};

// --- host side

inline bool GetBatchNormMaxMinTmpSize(const TensorShape& srcShape,
                                      const TensorShape& originSrcShape, const uint32_t, const bool,
                                      uint32_t& maxValue, uint32_t& minValue, const bool = false) {
  if (srcShape.GetDimNum() != 3 || originSrcShape.GetDimNum() != 3) return false;
  uint32_t length = detail::dim(srcShape, 1) * detail::dim(srcShape, 2);
  maxValue = minValue = detail::rows_bytes(length, detail::NORM_ROWS);
  return true;
}
inline bool GetBatchNormNDTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape,
                                     const uint32_t stackBufferByteSize, const uint32_t typeSize,
                                     const bool isReuseSource, BatchNormTiling& tilling,
                                     const bool isBasicBlock = false) {
  uint32_t most = 0, least = 0;
  if (!GetBatchNormMaxMinTmpSize(srcShape, originSrcShape, typeSize, isReuseSource, most, least,
                                 isBasicBlock) ||
      stackBufferByteSize < least)
    return false;
  tilling = BatchNormTiling();
  tilling.originalBLength = detail::dim(originSrcShape, 0);
  tilling.meanVarSize = tilling.shCurLength = detail::dim(srcShape, 1) * detail::dim(srcShape, 2);
  tilling.firstDimValueBack = 1.0f / static_cast<float>(tilling.originalBLength);
  return true;
}
inline void GetGroupNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                      const uint32_t groupNum, uint32_t& maxValue,
                                      uint32_t& minValue) {
  uint32_t groups = groupNum == 0 ? 1 : groupNum;
  uint32_t length =
      detail::dim(srcShape, 1) / groups * detail::dim(srcShape, 2) * detail::dim(srcShape, 3);
  detail::norm_sizes(length, maxValue, minValue);
}
inline void GetGroupNormNDTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t,
                                     const bool, const uint32_t groupNum, GroupNormTiling& tiling) {
  tiling = GroupNormTiling();
  tiling.n = detail::dim(srcShape, 0);
  tiling.c = detail::dim(srcShape, 1);
  tiling.hw = detail::dim(srcShape, 2) * detail::dim(srcShape, 3);
  tiling.g = groupNum == 0 ? 1 : groupNum;
  tiling.d = tiling.c / tiling.g;
  tiling.factor = 1.0f / static_cast<float>(tiling.d * tiling.hw);
}
inline void GetWelfordUpdateMaxMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                          const uint32_t, const bool, const bool,
                                          uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
inline void GetWelfordFinalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                            uint32_t& maxValue, uint32_t& minValue) {
  uint32_t length = static_cast<uint32_t>(srcShape.GetShapeSize());
  maxValue = minValue = detail::rows_bytes(length, 1);
}

// --- kernel side

// Means and variances over the samples of each place; gamma and beta are of a sample each.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
inline void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamm, const LocalTensor<T>& beta,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon,
                      const BatchNormTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.originalBLength, tiling.meanVarSize, false};
  detail::FloatRows rows("BatchNorm", lie.length, sharedTmpBuffer, at, detail::NORM_ROWS);
  const detail::Floats x = rows.x(), t = rows.t(), mean = rows.spare(0), second = rows.spare(1);
  const detail::Steps& row = rows.row();
  float part = 1.0f / static_cast<float>(lie.rows);
  row.fill(mean, 0.0f);
  row.fill(second, 0.0f);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(x, inputX, n, lie);
    row.add(mean, mean, x);
  }
  row.muls(mean, mean, part);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(x, inputX, n, lie);
    row.sub(x, x, mean);
    row.mul(x, x, x);
    row.add(second, second, x);
  }
  row.muls(second, second, part);
  rows.store(outputMean, 0, mean, lie);
  rows.store(outputVariance, 0, second, lie);
  row.adds(second, second, static_cast<float>(epsilon));
  row.sqrt(second, second);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(x, inputX, n, lie);
    row.sub(t, x, mean);
    row.div(t, t, second);
    rows.get_element(rows.value(0), gamm, n);
    rows.times(t, rows.value(0));
    rows.get_element(rows.value(0), beta, n);
    rows.one().muls(rows.value(0), rows.value(0), -1.0f);
    rows.minus(t, rows.value(0));
    rows.store(output, n, t, lie);
  }
  ResetMask(at);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
inline void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamm, const LocalTensor<T>& beta, const T epsilon,
                      const BatchNormTiling& tiling, CUBECORE_AT) {
  BatchNorm<T, isReuseSource, isBasicBlock>(output, outputMean, outputVariance, inputX, gamm, beta,
                                            detail::free_memory(), epsilon, tiling, at);
}

namespace detail {

// Elements [begin, end) of a row by a factor and with a summand, 64 lanes at a time.
inline void scale_part(const Floats& row, uint32_t begin, uint32_t end, const Floats& by,
                       const Floats& plus, const cubecore::Where& at) {
  BinaryRepeatParams same(1, 1, 0, 8, 8, 0);
  for (uint32_t turn = begin / 64 * 64; turn < end; turn += 64) {
    uint32_t first = begin > turn ? begin - turn : 0, last = end - turn < 64 ? end - turn : 64;
    uint64_t ones = last - first == 64 ? ~0ull : (1ull << (last - first)) - 1;
    uint64_t lanes[] = {ones << first, 0};
    Mul(row[turn], row[turn], by, lanes, 1, same, at);
    barrier(PIPE_V, at);
    Add(row[turn], row[turn], plus, lanes, 1, same, at);
  }
  barrier(PIPE_V, at);
}

}  // namespace detail

// Each group of channels of a sample is a row; gamma and beta are of a channel each.
template <typename T, bool isReuseSource = false>
inline void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon,
                      const GroupNormTiling& tiling, CUBECORE_AT) {
  const detail::RowsAt lie{tiling.n * tiling.g, tiling.d * tiling.hw, false};
  if (lie.length * sizeof(PrimT<T>) % ONE_BLK_SIZE != 0)
    cubecore_refuse("GroupNorm.inputX", "have a multiple of 32 B in each group",
                    detail::Digits(lie.length * sizeof(PrimT<T>), " B").text, &at);
  const LocalTensor<T>* none = nullptr;
  detail::NormRows<T> norm("GroupNorm", lie.length, lie.length, none, none, sharedTmpBuffer, at);
  const detail::FloatRows& rows = norm.rows;
  const detail::Floats x = rows.x(), by = rows.value(2), plus = rows.value(3);
  for (uint32_t n = 0; n < lie.rows; ++n) {
    rows.load(x, inputX, n, lie);
    norm.centre();
    norm.deviate(static_cast<float>(epsilon));
    norm.finish();
    for (uint32_t channel = 0; channel < tiling.d; ++channel) {
      uint32_t which = n % tiling.g * tiling.d + channel;
      rows.get_element(by, gamma, which);
      rows.get_element(plus, beta, which);
      detail::scale_part(x, channel * tiling.hw, (channel + 1) * tiling.hw, by, plus, at);
    }
    rows.store(output, n, x, lie);
    rows.put_element(outputMean, n, norm.mean());
    rows.put_element(outputVariance, n, norm.variance());
  }
  ResetMask(at);
}
template <typename T, bool isReuseSource = false>
inline void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
                      const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const T epsilon,
                      const GroupNormTiling& tiling, CUBECORE_AT) {
  GroupNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta,
                              detail::free_memory(), epsilon, tiling, at);
}

// With e = x - mean: mean + e * nRec, and variance + e * (x - the new mean).
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
inline void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                          const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                          const LocalTensor<T>& inputX, const LocalTensor<uint8_t>& sharedTmpBuffer,
                          const WelfordUpdateParam& para, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<U>, float>, "WelfordUpdate.inputMean must be float");
  if (config.isInplace) {
    detail::Steps all(para.abLength, at);
    all.adds(outputMean, inputMean, 0.0f);
    all.adds(outputVariance, inputVariance, 0.0f);
  }
  detail::Workspace work(sharedTmpBuffer, 3, at);
  const detail::Floats wide = work.floats(0), e = work.floats(1), t = work.floats(2);
  for (uint32_t done = 0; done < para.abComputeLength;) {
    uint32_t turn = work.turn(para.abComputeLength - done);
    detail::Steps steps(turn, at);
    detail::Floats x;
    if constexpr (std::is_same_v<PrimT<T>, float>) {
      x = inputX[done];
    } else {
      steps.cast(wide, inputX[done], RoundMode::CAST_NONE);
      x = wide;
    }
    steps.sub(e, x, inputMean[done]);
    steps.muls(t, e, para.nRec);
    steps.add(outputMean[done], inputMean[done], t);
    steps.sub(t, x, outputMean[done]);
    steps.mul(t, t, e);
    steps.add(outputVariance[done], inputVariance[done], t);
    done += turn;
  }
}
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
inline void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                          const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                          const LocalTensor<T>& inputX, const WelfordUpdateParam& para,
                          CUBECORE_AT) {
  WelfordUpdate<T, U, isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance,
                                             inputX, detail::free_memory(), para, at);
}

namespace detail {

// The mean of means by their counts, and the variance: (sum(variances) + sum(count * (mean of its
// own - mean)^2)) * rRec, or * rRecWithCorrection. `counts(row, spare)` makes a row of counts where
// they differ.
template <bool isCorrection, typename Counts>
inline void finalise(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                     const Floats& means, const Floats& variances,
                     const LocalTensor<uint8_t>& given, const WelfordFinalizePara& para,
                     bool differ, const cubecore::Where& at, const Counts& counts) {
  static_assert(!isCorrection || cubecore::is_950,
                "WelfordFinalizeConfig.isCorrection must be false on 2201");
  FloatRows rows("WelfordFinalize", para.abLength, given, at, 1);
  const Steps &row = rows.row(), &one = rows.one();
  const Floats x = rows.x(), t = rows.t(), mean = rows.value(0), sum = rows.value(1);
  const Floats each = rows.spare(0);
  if (differ) {
    counts(row, each);
    row.mul(t, means, each);
    rows.sum(mean, t, para.abLength);
    one.muls(mean, mean, para.rRec);
  } else {
    rows.sum(mean, means, para.abLength);
    one.muls(mean, mean, para.abRec);
    row.fill(each, static_cast<float>(para.rnLength));
  }
  row.adds(x, means, 0.0f);
  rows.minus(x, mean);
  row.mul(x, x, x);
  row.mul(x, x, each);
  row.add(x, x, variances);
  rows.sum(sum, x, para.abLength);
  one.muls(sum, sum, isCorrection ? para.rRecWithCorrection : para.rRec);
  rows.put_element(outputMean, 0, mean);
  rows.put_element(outputVariance, 0, sum);
  ResetMask(at);
}

}  // namespace detail

template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean,
                            const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean,
                            const LocalTensor<float>& inputVariance,
                            const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const WelfordFinalizePara& para, CUBECORE_AT) {
  if (para.headCountLength + para.tailCountLength != para.abLength)
    cubecore_refuse("WelfordFinalize.abLength", "be headCountLength + tailCountLength",
                    detail::Digits(para.abLength).text, &at);
  detail::finalise<config.isCorrection>(
      outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer, para,
      para.tailCountLength != 0, at, [&](const auto& row, const auto& each) {
        row.fill(each, static_cast<float>(para.tailCount));
        if (para.headCountLength == 0) return;
        detail::Steps(para.headCountLength, at).fill(each, static_cast<float>(para.headCount));
      });
}
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean,
                            const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean,
                            const LocalTensor<float>& inputVariance,
                            const LocalTensor<int32_t>& counts,
                            const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const WelfordFinalizePara& para, CUBECORE_AT) {
  detail::finalise<config.isCorrection>(
      outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer, para, true, at,
      [&](const auto& row, const auto& each) { row.cast(each, counts, RoundMode::CAST_NONE); });
}
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean,
                            const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean,
                            const LocalTensor<float>& inputVariance,
                            const WelfordFinalizePara& para, CUBECORE_AT) {
  WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance,
                                         detail::free_memory(), para, at);
}
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean,
                            const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean,
                            const LocalTensor<float>& inputVariance,
                            const LocalTensor<int32_t>& counts, const WelfordFinalizePara& para,
                            CUBECORE_AT) {
  WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance,
                                         counts, detail::free_memory(), para, at);
}

}  // namespace AscendC
