// Reductions of matrices along an axis. Pages of the high-level API: ReduceSum, ReduceMax,
// ReduceMin, ReduceMean, ReduceProd, ReduceAll, ReduceAny, ReduceXorSum, Mean, with those of their
// temporary space.
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/host/workspaces.h"
#include "cubecore/library/sum_rows.h"
#include "cubecore/math/rounding.h"

namespace AscendC {

namespace Pattern::Reduce {
struct AR {};
struct RA {};
}  // namespace Pattern::Reduce

struct MeanParams {
  uint32_t outter = 1;
  uint32_t inner;
  uint32_t n;
};

namespace detail {

enum class Fold { SUM, LARGEST, LEAST, PRODUCT };

template <typename C>
inline void fold(Fold kind, const LocalTensor<C>& d, const LocalTensor<C>& a,
                 const LocalTensor<C>& b, const Steps& steps) {
  if (kind == Fold::SUM) steps.add(d, a, b);
  if (kind == Fold::LARGEST) steps.max(d, a, b);
  if (kind == Fold::LEAST) steps.min(d, a, b);
  if (kind == Fold::PRODUCT) steps.mul(d, a, b);
}

// Matrices folded in type C: elements of other types are converted, and results back.
template <typename C, typename T>
class Folding {
 public:
  Folding(const char* caller, Fold kind, const LocalTensor<T>& dst,
          const LocalTensor<uint8_t>& offered, uint32_t results, const cubecore::Where& at)
      : kind_(kind), dst_(dst), at_(at) {
    constexpr bool converts = !std::is_same_v<PrimT<T>, C>;
    uint32_t wide = (results * static_cast<uint32_t>(sizeof(C)) + 255) / 256 * 256;
    uint32_t needed = 4 * 256 + (converts ? wide : 0);
    const LocalTensor<uint8_t> given = enough(offered, needed);
    if (given.GetSize() < needed)
      cubecore_refuse(caller, "have a workspace as its tiling function answers",
                      Digits(given.GetSize(), " B").text, &at);
    for (uint32_t n = 0; n < 4; ++n) part_[n] = given[n * 256].template ReinterpretCast<C>();
    if constexpr (converts)
      results_ = given[4 * 256].template ReinterpretCast<C>();
    else
      results_ = dst.template ReinterpretCast<C>();
  }
  const LocalTensor<C>& results() const { return results_; }

  // Each row of n elements to one, from `stride` to `stride`.
  void rows(const LocalTensor<T>& src, uint32_t count, uint32_t n, uint32_t stride) const {
    uint32_t width = n < LANES_C ? n : LANES_C;
    if constexpr (std::is_same_v<PrimT<T>, C>) {
      if (n <= LANES_C && kind_ != Fold::PRODUCT) {
        constexpr uint32_t most = 255;
        for (uint32_t row = 0; row < count; row += most)
          last(results_[row], src[row * stride].template ReinterpretCast<C>(), width,
               count - row < most ? count - row : most, stride * sizeof(C) / ONE_BLK_SIZE);
        return;
      }
    }
    for (uint32_t row = 0; row < count; ++row) {
      const LocalTensor<C> all = part_[0];
      const LocalTensor<T> from = src[row * stride];
      if (kind_ == Fold::PRODUCT) Steps(LANES_C, at_).fill(all, C(1.0f));
      copied(all, from, Steps(width, at_));
      for (uint32_t done = LANES_C; done < n; done += LANES_C) {
        Steps steps(n - done < LANES_C ? n - done : LANES_C, at_);
        fold(kind_, all, all, as_folded(from[done], steps), steps);
      }
      if (kind_ == Fold::PRODUCT)
        last(results_[row], product(), 1, 1, 8);
      else
        last(results_[row], all, width, 1, 8);
    }
  }
  // Each column to one.
  void columns(const LocalTensor<T>& src, uint32_t count, uint32_t n, uint32_t stride) const {
    for (uint32_t done = 0; done < n; done += LANES_C) {
      Steps steps(n - done < LANES_C ? n - done : LANES_C, at_);
      copied(results_[done], src[done], steps);
      for (uint32_t row = 1; row < count; ++row)
        fold(kind_, results_[done], results_[done], as_folded(src[row * stride + done], steps),
             steps);
    }
  }
  // Results as the elements of dst.
  void finish(uint32_t count) const {
    if constexpr (!std::is_same_v<PrimT<T>, C>)
      Steps(count, at_).cast(dst_, results_, RoundMode::CAST_RINT);
  }

 private:
  static constexpr uint32_t LANES_C = 256 / sizeof(C);

  void copied(const LocalTensor<C>& to, const LocalTensor<T>& from, const Steps& steps) const {
    if constexpr (std::is_same_v<PrimT<T>, C>)
      steps.adds(to, from.template ReinterpretCast<C>(), 0.0f);
    else
      steps.cast(to, from, RoundMode::CAST_NONE);
  }
  LocalTensor<C> as_folded(const LocalTensor<T>& from, const Steps& steps) const {
    if constexpr (std::is_same_v<PrimT<T>, C>) {
      return from.template ReinterpretCast<C>();
    } else {
      steps.cast(part_[1], from, RoundMode::CAST_NONE);
      return part_[1];
    }
  }
  // The lanes of the first part by halves: those of even number by those of odd number.
  LocalTensor<C> product() const {
    for (uint32_t width = LANES_C; width > 1; width /= 2) {
      for (uint8_t odd = 0; odd < 2; ++odd)
        cubecore::issue("vreducev2", at_, plain(part_[1 + odd]), plain(part_[0]), plain(part_[0]),
                        1, 1, odd + 1, 8, 0);
      barrier(PIPE_V, at_);
      Steps(width / 2, at_).mul(part_[0], part_[1], part_[2]);
    }
    return part_[0];
  }
  // The first lanes of each repeat to one.
  void last(const LocalTensor<C>& to, const LocalTensor<C>& from, uint32_t width, uint32_t times,
            uint32_t stride) const {
    set_lanes(width, at_);
    const char* call = kind_ == Fold::LARGEST || kind_ == Fold::LEAST
                           ? extreme_call(kind_ == Fold::LARGEST, ReduceOrder::ORDER_ONLY_VALUE)
                           : "asc_repeat_reduce_sum";
    reduced(call, to, from, static_cast<int32_t>(times), 1, 1, static_cast<int32_t>(stride), at_);
    ResetMask(at_);
    barrier(PIPE_V, at_);
  }

  Fold kind_;
  LocalTensor<T> dst_;
  cubecore::Where at_;
  LocalTensor<C> part_[4], results_;
};

// The type that a matrix is folded in: its own, and half for bytes.
template <typename T>
using FoldType = std::conditional_t<sizeof(T) == 1, half, T>;

template <typename pattern, typename T>
inline void reduce(const char* caller, Fold kind, const LocalTensor<T>& dst,
                   const LocalTensor<T>& src, const LocalTensor<uint8_t>& given,
                   const uint32_t shape[], bool mean, const cubecore::Where& at) {
  constexpr bool rows = std::is_same_v<pattern, Pattern::Reduce::AR>;
  static_assert(rows || std::is_same_v<pattern, Pattern::Reduce::RA>,
                "pattern must be Pattern::Reduce::AR or Pattern::Reduce::RA, got another");
  using P = PrimT<T>;
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(P);
  uint32_t count = shape[0], n = shape[1], stride = (n + block - 1) / block * block;
  if (count == 0 || n == 0)
    cubecore_refuse(caller, "have two dimensions above 0", Digits(count == 0 ? count : n).text,
                    &at);
  uint32_t results = rows ? count : n;
  Folding<FoldType<P>, T> folding(caller, kind, dst, given, results, at);
  if (rows)
    folding.rows(src, count, n, stride);
  else
    folding.columns(src, count, n, stride);
  if constexpr (!std::is_integral_v<P>)
    if (mean)
      Steps(results, at)
          .muls(folding.results(), folding.results(), 1.0f / static_cast<float>(rows ? n : count));
  folding.finish(results);
}

inline void fold_sizes(const TensorShape& shape, uint32_t& most, uint32_t& least) {
  most = least = 4 * 256 + static_cast<uint32_t>((shape.GetShapeSize() * 2 + 255) / 256 * 256);
}

}  // namespace detail

// The forms with and without a workspace, and the size of that.
#define CUBECORE_REDUCTION(NAME, KIND, MEAN)                                                      \
  template <class T, class pattern, bool isReuseSource = false>                                   \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,              \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t srcShape[],        \
                   bool srcInnerPad, CUBECORE_AT) {                                               \
    if (!srcInnerPad) cubecore_refuse(#NAME ".srcInnerPad", "be true", "false", &at);             \
    detail::reduce<pattern>(#NAME, detail::Fold::KIND, dstTensor, srcTensor, sharedTmpBuffer,     \
                            srcShape, MEAN, at);                                                  \
  }                                                                                               \
  template <class T, class pattern, bool isReuseSource = false>                                   \
  inline void NAME(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,              \
                   const uint32_t srcShape[], bool srcInnerPad, CUBECORE_AT) {                    \
    NAME<T, pattern, isReuseSource>(dstTensor, srcTensor, detail::free_memory(), srcShape,        \
                                    srcInnerPad, at);                                             \
  }                                                                                               \
  template <typename D>                                                                           \
  inline void Get##NAME##MaxMinTmpSize(const TensorShape& srcShape, const D, ReducePattern, bool, \
                                       bool, uint32_t& maxValue, uint32_t& minValue) {            \
    detail::fold_sizes(srcShape, maxValue, minValue);                                             \
  }
CUBECORE_REDUCTION(ReduceSum, SUM, false)
CUBECORE_REDUCTION(ReduceMean, SUM, true)
CUBECORE_REDUCTION(ReduceMax, LARGEST, false)
CUBECORE_REDUCTION(ReduceMin, LEAST, false)
CUBECORE_REDUCTION(ReduceProd, PRODUCT, false)
CUBECORE_REDUCTION(ReduceAll, LEAST, false)
CUBECORE_REDUCTION(ReduceAny, LARGEST, false)
#undef CUBECORE_REDUCTION

inline void GetMeanMaxMinTmpSize(const uint32_t n, const uint32_t, const uint32_t, const bool,
                                 uint32_t& maxSize, uint32_t& minSize) {
  detail::fold_sizes(TensorShape{n}, maxSize, minSize);
}
inline void GetMeanTmpBufferFactorSize(const uint32_t, uint32_t& maxLiveNodeCount,
                                       uint32_t& extraBuffer) {
  maxLiveNodeCount = 1;
  extraBuffer = 6 * 256;
}

// Of the first n elements of each row, in `accType`. Rows go through a workspace in turns.
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
inline void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const MeanParams& meanParams,
                 CUBECORE_AT) {
  static_assert(sizeof(accType) >= sizeof(PrimT<T>), "Mean.accType must not be narrower than T");
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(PrimT<T>);
  const MeanParams& p = meanParams;
  if (p.n == 0 || p.inner != (p.n + block - 1) / block * block)
    cubecore_refuse("Mean.inner", "be n up to a multiple of 32 B", detail::Digits(p.inner).text,
                    &at);
  constexpr uint32_t turn = 256 / sizeof(accType);
  for (uint32_t done = 0; done < p.outter; done += turn) {
    uint32_t rows = p.outter - done < turn ? p.outter - done : turn;
    detail::Folding<accType, T> folding("Mean", detail::Fold::SUM, dstTensor[done], sharedTmpBuffer,
                                        rows, at);
    folding.rows(srcTensor[done * p.inner], rows, p.n, p.inner);
    detail::Steps(rows, at).muls(folding.results(), folding.results(),
                                 1.0f / static_cast<float>(p.n));
    folding.finish(rows);
  }
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
inline void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                 const MeanParams& meanParams, CUBECORE_AT) {
  Mean<T, accType, isReuseSource, isBasicBlock, reduceDim>(dstTensor, srcTensor,
                                                           detail::free_memory(), meanParams, at);
}

// The sum of src0 ^ src1, within the range of int16.
template <typename T, bool isReuseSource = false>
inline void ReduceXorSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                         const LocalTensor<T>& src1Tensor,
                         const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                         CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, int16_t>, "ReduceXorSum must take int16_t, got another");
  detail::Workspace work(sharedTmpBuffer, 5, at);
  const detail::Floats sum = work.floats(0), part = work.floats(1), wide = work.floats(2);
  const LocalTensor<T> each = work.floats(3).template ReinterpretCast<T>();
  const detail::Floats room = work.floats(4);
  detail::Steps one(8, at);
  one.fill(sum, 0.0f);
  one.fill(part, 0.0f);
  for (uint32_t done = 0; done < calCount;) {
    uint32_t turn = work.turn(calCount - done);
    detail::Steps steps(turn, at);
    Xor<T>(each, src0Tensor[done], src1Tensor[done], room.template ReinterpretCast<uint8_t>(), turn,
           at);
    steps.cast(wide, each, RoundMode::CAST_NONE);
    detail::sum_through(part, wide, room, static_cast<int32_t>(turn), at);
    detail::barrier(PIPE_V, at);
    one.add(sum, sum, part);
    done += turn;
  }
  one.maxs(sum, sum, -32768.0f);
  one.mins(sum, sum, 32767.0f);
  detail::Steps(1, at).cast(dstTensor, sum, RoundMode::CAST_RINT);
}
template <typename T, bool isReuseSource = false>
inline void ReduceXorSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                         const LocalTensor<T>& src1Tensor, const uint32_t calCount, CUBECORE_AT) {
  ReduceXorSum<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, detail::free_memory(), calCount,
                                 at);
}
inline void GetReduceXorSumMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                                         uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}

}  // namespace AscendC
