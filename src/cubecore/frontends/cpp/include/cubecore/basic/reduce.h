// Reductions. Pages: ReduceSum, ReduceMax, ReduceMin, ReduceRepeat (WholeReduceSum, WholeReduceMax,
// WholeReduceMin), ReduceDataBlock (BlockReduceSum, ...), ReducePairElem (PairReduceSum),
// RepeatReduceSum, GetReduceRepeatMaxMinSpr(ISASI), GetReduceRepeatSumSpr(ISASI).
#pragma once

#include "cubecore/basic/unary.h"
#include "cubecore/sync/queue.h"

namespace AscendC {

enum class ReduceType : uint8_t { SUM, MAX, MIN, AND, OR, XOR };

namespace detail {

template <typename T>
constexpr uint32_t lanes_of() {
  return ONE_REPEAT_BYTE_SIZE / sizeof(PrimT<T>);
}

constexpr const char* extreme_call(bool largest, ReduceOrder order) {
  switch (order) {
    case ReduceOrder::ORDER_INDEX_VALUE:
      return largest ? "asc_repeat_reduce_max_index_value" : "asc_repeat_reduce_min_index_value";
    case ReduceOrder::ORDER_ONLY_VALUE:
      return largest ? "asc_repeat_reduce_max_only_value" : "asc_repeat_reduce_min_only_value";
    case ReduceOrder::ORDER_ONLY_INDEX:
      return largest ? "asc_repeat_reduce_max_only_index" : "asc_repeat_reduce_min_only_index";
    default:
      return largest ? "asc_repeat_reduce_max_value_index" : "asc_repeat_reduce_min_value_index";
  }
}

template <typename T, typename U>
inline void reduced(const char* call, const LocalTensor<T>& dst, const LocalTensor<U>& src,
                    int32_t times, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                    const cubecore::Where& at) {
  const int32_t held = times <= MOST_REPEATS ? times : times & MOST_REPEATS;  // more were told of
  cubecore::issue(call, at, dst.pointer(), src.pointer(), held, dstRepStride, srcBlkStride,
                  srcRepStride);
}

// Results of blocks or pairs. On 950 one without a lane gets the result of no elements.
template <typename T, typename U>
inline void reduced_groups(const char* call, const LocalTensor<T>& dst, const LocalTensor<U>& src,
                           int32_t times, int32_t dstRepStride, int32_t srcBlkStride,
                           int32_t srcRepStride, const cubecore::Where& at) {
  if constexpr (cubecore::is_950)
    cubecore::issue(call, at, dst.pointer(), src.pointer(), times & MOST_REPEATS, dstRepStride,
                    srcBlkStride, srcRepStride, cubecore::named("fills", true));
  else
    reduced(call, dst, src, times, dstRepStride, srcBlkStride, srcRepStride, at);
}

// A flag from one pipe to another and its wait, at once.
inline void hand(HardEvent event, const cubecore::Where& at) {
  int32_t id = core_state().FreeEvent(event);
  raise_flag(event, id, at);
  await_flag(event, id, at);
}

// The largest or smallest of all: the register that the reduction leaves has it with its index.
template <typename T>
inline void extreme(bool largest, const LocalTensor<T>& dst, const LocalTensor<T>& work,
                    const char* kind, bool calIndex, const cubecore::Where& at) {
  using P = PrimT<T>;
  const char* call = largest ? "asc_get_reduce_max_cnt" : "asc_get_reduce_min_cnt";
  (void)work;
  (void)kind;
  hand(HardEvent::V_S, at);
  P value = value_of<P>(static_cast<uint64_t>(cubecore::ask(0, call, at)));
  uint64_t index = static_cast<uint64_t>(cubecore::ask(1, call, at));
  dst.SetValue(0, value, at);
  if (calIndex) {
    using Bits = std::conditional_t<sizeof(P) == 2, uint16_t, uint32_t>;
    dst.template ReinterpretCast<Bits>().SetValue(1, static_cast<Bits>(index), at);
  }
  hand(HardEvent::S_V, at);
}

}  // namespace detail

namespace detail {

// The sum of so many elements, by way of the sums of their repeats in `work`.
template <typename T>
inline void sum_through(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                        const LocalTensor<T>& work, int32_t count, const cubecore::Where& at) {
  constexpr int32_t lanes = static_cast<int32_t>(lanes_of<T>());
  cubecore::Pointer from = src.pointer();
  LocalTensor<T> to = work;
  for (int32_t left = count; left > 0; left = (left + lanes - 1) / lanes) {
    bool last = left <= lanes;
    cubecore::issue("asc_repeat_reduce_sum", at, last ? dst.pointer() : to.pointer(), from, left);
    if (last) return;
    barrier(PIPE_V, at);
    from = to.pointer();
    // Sums of the next turn lie behind these, where there is room: no repeat stores into its source.
    const int32_t sums = (left + lanes - 1) / lanes;
    const int64_t bytes = static_cast<int64_t>(whole_blocks(sums * sizeof(PrimT<T>)));
    if (to.Room() >= 2 * bytes) to = to[static_cast<uint32_t>(bytes / sizeof(PrimT<T>))];
  }
}

// Of so many elements: the memory that no buffer has, where a pipe tells of it and it suffices, or
// what was given.
template <typename T>
inline LocalTensor<T> free_room(const LocalTensor<T>& given, uint64_t elements) {
  constexpr uint8_t ub = static_cast<uint8_t>(cubecore::Mem::UB);
  const CoreState& state = core_state();
  uint64_t start = (state.used[ub] + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
  uint64_t end = start + elements * sizeof(PrimT<T>);
  bool unknown = state.pipe == nullptr || start == 0 || state.popped;
  if (unknown || end > memory_bytes(ub)) return given;
  return LocalTensor<T>(TPosition::VECCALC, static_cast<uint32_t>(start),
                        static_cast<uint32_t>(elements));
}

constexpr uint64_t repeats_of(uint64_t count, uint64_t lanes) {
  return (count + lanes - 1) / lanes;
}

// Whether a workspace has so many bytes; a finding where it has not.
inline bool judge_tmp(const char* call, const char* name, int64_t bytes, int32_t times,
                      int64_t room, const cubecore::Where& at) {
  if (room >= bytes) return true;
  char said[112];
  std::snprintf(said, sizeof(said), "%s must hold %lld B for %d repeat%s, got %lld B", name,
                static_cast<long long>(bytes), times, times == 1 ? "" : "s",
                static_cast<long long>(room));
  cubecore_finding("out-of-bounds", call, said, &at);
  return false;
}

// The room of a reduction's intermediate results, `each` to a repeat; `turns`: those of later turns
// lie behind them (pages ReduceSum, ReduceMax). One that is too small is a finding.
template <typename T>
inline LocalTensor<T> tmp_room(const char* call, const LocalTensor<T>& given, int32_t times,
                               uint64_t each, bool turns, const cubecore::Where& at) {
  constexpr uint64_t lanes = lanes_of<T>();
  if (cubecore::is_950 || times <= 0) return given;
  const uint64_t results = static_cast<uint64_t>(times) * each;
  uint64_t bytes = whole_blocks(results * sizeof(PrimT<T>));
  for (uint64_t left = results; turns && left > each;) {
    left = repeats_of(left, lanes) * each;
    bytes += whole_blocks(left * sizeof(PrimT<T>));
  }
  const bool enough = judge_tmp(call, "sharedTmpBuffer", static_cast<int64_t>(bytes), times,
                                given.Room(), at);
  return enough ? given : free_room(given, results);
}

}  // namespace detail

// Uncertain: the sums of the repeats are added as a tree; the page adds them in order.
template <typename T, bool isSetMask = true>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const LocalTensor<T>& sharedTmpBuffer, const int32_t count, CUBECORE_AT) {
  if (count <= 0) return;
  detail::core_state().sum = dst.element(0);
  // On 2201 sharedTmpBuffer is not used (page ReduceSum).
  const uint64_t repeats = detail::repeats_of(static_cast<uint64_t>(count), detail::lanes_of<T>());
  const LocalTensor<T> work = detail::free_room(sharedTmpBuffer, repeats);
  detail::sum_through(dst, src, detail::free_room(work, 2 * repeats), count, at);
}
template <typename T, typename M>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const LocalTensor<T>& sharedTmpBuffer, const M mask, const int32_t repeatTime,
                      const int32_t srcRepStride, CUBECORE_AT) {
  detail::note_none("ReduceSum", repeatTime, at);
  detail::set_given<T>(mask, "ReduceSum", at);
  const LocalTensor<T> work =
      detail::tmp_room("ReduceSum", sharedTmpBuffer, repeatTime, 1, false, at);
  for (int32_t done = 0; done < repeatTime; done += 255) {
    int32_t times = repeatTime - done < 255 ? repeatTime - done : 255;
    detail::reduced("asc_repeat_reduce_sum", work[static_cast<uint32_t>(done)],
                    src[static_cast<uint32_t>(done * srcRepStride * 32 / sizeof(PrimT<T>))], times,
                    1, 1, srcRepStride, at);
  }
  detail::barrier(PIPE_V, at);
  detail::sum_through(dst, work, work, repeatTime, at);
}

#define CUBECORE_EXTREME(NAME, LARGEST)                                                           \
  template <typename T>                                                                           \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                          \
                   const LocalTensor<T>& sharedTmpBuffer, const int32_t count,                    \
                   bool calIndex = false, CUBECORE_AT) {                                          \
    if (count <= 0) return;                                                                       \
    if constexpr (cubecore::is_950) {                                                             \
      cubecore::issue(LARGEST ? "reduce_max" : "reduce_min", at, dst.pointer(), src.pointer(),    \
                      cubecore::named("count", count), cubecore::named("indexed", calIndex));     \
      return;                                                                                     \
    }                                                                                             \
    const char* call = detail::extreme_call(LARGEST, ReduceOrder::ORDER_VALUE_INDEX);             \
    const LocalTensor<T> work = detail::tmp_room(                                                 \
        #NAME, sharedTmpBuffer,                                                                   \
        static_cast<int32_t>(detail::repeats_of(count, detail::lanes_of<T>())), 2, calIndex, at); \
    cubecore::issue(call, at, work.pointer(), src.pointer(), count);                              \
    detail::extreme(LARGEST, dst, work, call, calIndex, at);                                      \
  }                                                                                               \
  template <typename T, typename M>                                                               \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                          \
                   const LocalTensor<T>& sharedTmpBuffer, const M mask, const int32_t repeatTime, \
                   const int32_t srcRepStride, bool calIndex = false, CUBECORE_AT) {              \
    detail::judge_repeats(#NAME, repeatTime, 1, at);                                              \
    if (repeatTime <= 0) return;                                                                  \
    detail::set_given<T>(mask, #NAME, at);                                                        \
    if constexpr (cubecore::is_950) {                                                             \
      cubecore::issue(LARGEST ? "reduce_max" : "reduce_min", at, dst.pointer(), src.pointer(),    \
                      cubecore::named("repeat", repeatTime),                                      \
                      cubecore::named("src_repeat_stride", srcRepStride),                         \
                      cubecore::named("indexed", calIndex));                                      \
      return;                                                                                     \
    }                                                                                             \
    const char* call = detail::extreme_call(LARGEST, ReduceOrder::ORDER_VALUE_INDEX);             \
    const LocalTensor<T> work =                                                                   \
        detail::tmp_room(#NAME, sharedTmpBuffer, repeatTime, 2, calIndex, at);                    \
    detail::reduced(call, work, src, repeatTime, 1, 1, srcRepStride, at);                         \
    detail::extreme(LARGEST, dst, work, call, calIndex, at);                                      \
  }
CUBECORE_EXTREME(ReduceMax, true)
CUBECORE_EXTREME(ReduceMin, false)
#undef CUBECORE_EXTREME

#define CUBECORE_REDUCED(NAME, CALL)                                                            \
  template <typename T, bool isSetMask = true>                                                  \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,    \
                   const int32_t repeatTime, const int32_t dstRepStride,                        \
                   const int32_t srcBlkStride, const int32_t srcRepStride, CUBECORE_AT) {       \
    detail::judge_repeats(#NAME, repeatTime, dstRepStride, at);                                 \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                             \
    detail::reduced(CALL, dst, src, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);  \
  }                                                                                             \
  template <typename T, bool isSetMask = true>                                                  \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], \
                   const int32_t repeatTime, const int32_t dstRepStride,                        \
                   const int32_t srcBlkStride, const int32_t srcRepStride, CUBECORE_AT) {       \
    detail::judge_repeats(#NAME, repeatTime, dstRepStride, at);                                 \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                             \
    detail::reduced(CALL, dst, src, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);  \
  }
CUBECORE_REDUCED(WholeReduceSum, "asc_repeat_reduce_sum")
#undef CUBECORE_REDUCED

#define CUBECORE_WHOLE(NAME, LARGEST)                                                           \
  template <typename T, bool isSetMask = true>                                                  \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,    \
                   const int32_t repeatTime, const int32_t dstRepStride,                        \
                   const int32_t srcBlkStride, const int32_t srcRepStride,                      \
                   ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, CUBECORE_AT) {           \
    detail::judge_repeats(#NAME, repeatTime, dstRepStride, at);                                 \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                             \
    detail::reduced(detail::extreme_call(LARGEST, order), dst, src, repeatTime, dstRepStride,   \
                    srcBlkStride, srcRepStride, at);                                            \
  }                                                                                             \
  template <typename T, bool isSetMask = true>                                                  \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], \
                   const int32_t repeatTime, const int32_t dstRepStride,                        \
                   const int32_t srcBlkStride, const int32_t srcRepStride,                      \
                   ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, CUBECORE_AT) {           \
    detail::judge_repeats(#NAME, repeatTime, dstRepStride, at);                                 \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                             \
    detail::reduced(detail::extreme_call(LARGEST, order), dst, src, repeatTime, dstRepStride,   \
                    srcBlkStride, srcRepStride, at);                                            \
  }
CUBECORE_WHOLE(WholeReduceMax, true)
CUBECORE_WHOLE(WholeReduceMin, false)
#undef CUBECORE_WHOLE

#define CUBECORE_BLOCKS(NAME, CALL)                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeat,    \
                   const int32_t mask, const int32_t dstRepStride, const int32_t srcBlkStride,    \
                   const int32_t srcRepStride, CUBECORE_AT) {                                     \
    detail::judge_repeats(#NAME, repeat, dstRepStride, at);                                       \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                               \
    detail::reduced_groups(CALL, dst, src, repeat, dstRepStride, srcBlkStride, srcRepStride, at); \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeat,    \
                   const uint64_t mask[], const int32_t dstRepStride, const int32_t srcBlkStride, \
                   const int32_t srcRepStride, CUBECORE_AT) {                                     \
    detail::judge_repeats(#NAME, repeat, dstRepStride, at);                                       \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                               \
    detail::reduced_groups(CALL, dst, src, repeat, dstRepStride, srcBlkStride, srcRepStride, at); \
  }
CUBECORE_BLOCKS(BlockReduceSum, "asc_datablock_reduce_sum")
CUBECORE_BLOCKS(BlockReduceMax, "asc_datablock_reduce_max")
CUBECORE_BLOCKS(BlockReduceMin, "asc_datablock_reduce_min")
CUBECORE_BLOCKS(PairReduceSum, "asc_pair_reduce_sum")
#undef CUBECORE_BLOCKS

template <typename T, bool isSetMask = true>
inline void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const int32_t repeat, const int32_t mask, const int32_t dstBlkStride,
                            const int32_t srcBlkStride, const int32_t dstRepStride,
                            const int32_t srcRepStride, CUBECORE_AT) {
  (void)dstBlkStride;
  detail::judge_repeats("RepeatReduceSum", repeat, dstRepStride, at);
  if constexpr (isSetMask) detail::set_given<T>(mask, "RepeatReduceSum", at);
  detail::reduced("asc_repeat_reduce_sum", dst, src, repeat, dstRepStride, srcBlkStride,
                  srcRepStride, at);
}

#if __NPU_ARCH__ == 3510
namespace detail {
// Sums in a wider type: a vector function (reg/repeats.h).
template <typename T, typename U>
void wide_sums(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t times,
               uint32_t dstRepStride, uint32_t srcBlkStride, uint32_t srcRepStride,
               const cubecore::Here& at);
}  // namespace detail
#endif

template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, const M mask,
                         const int32_t repeatTime, const int32_t dstRepStride,
                         const int32_t srcBlkStride, const int32_t srcRepStride,
                         ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, CUBECORE_AT) {
  static_assert(reduceType == ReduceType::SUM || reduceType == ReduceType::MAX ||
                    reduceType == ReduceType::MIN,
                "ReduceRepeat must reduce by SUM, MAX or MIN on 2201, got another");
  detail::judge_repeats("ReduceRepeat", repeatTime, dstRepStride, at);
  if constexpr (isSetMask) detail::set_given<U>(mask, "ReduceRepeat", at);
#if __NPU_ARCH__ == 3510
  if constexpr (reduceType == ReduceType::SUM && sizeof(PrimT<T>) > sizeof(PrimT<U>)) {
    detail::wide_sums(dst, src, static_cast<uint32_t>(repeatTime),
                      static_cast<uint32_t>(dstRepStride), static_cast<uint32_t>(srcBlkStride),
                      static_cast<uint32_t>(srcRepStride), at);
    return;
  }
#endif
  const char* call = reduceType == ReduceType::SUM
                         ? "asc_repeat_reduce_sum"
                         : detail::extreme_call(reduceType == ReduceType::MAX, order);
  detail::reduced(call, dst, src, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);
}

template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, const M mask,
                            const int32_t repeatTime, const int32_t dstRepStride,
                            const int32_t srcBlkStride, const int32_t srcRepStride, CUBECORE_AT) {
  static_assert(reduceType == ReduceType::SUM || reduceType == ReduceType::MAX ||
                    reduceType == ReduceType::MIN,
                "ReduceDataBlock must reduce by SUM, MAX or MIN on 2201, got another");
  detail::judge_repeats("ReduceDataBlock", repeatTime, dstRepStride, at);
  if constexpr (isSetMask) detail::set_given<U>(mask, "ReduceDataBlock", at);
  const char* call = reduceType == ReduceType::SUM   ? "asc_datablock_reduce_sum"
                     : reduceType == ReduceType::MAX ? "asc_datablock_reduce_max"
                                                     : "asc_datablock_reduce_min";
  detail::reduced_groups(call, dst, src, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);
}

template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, const M mask,
                           const int32_t repeatTime, const int32_t dstRepStride,
                           const int32_t srcBlkStride, const int32_t srcRepStride, CUBECORE_AT) {
  static_assert(reduceType == ReduceType::SUM,
                "ReducePairElem must reduce by SUM on 2201, got another");
  detail::judge_repeats("ReducePairElem", repeatTime, dstRepStride, at);
  if constexpr (isSetMask) detail::set_given<U>(mask, "ReducePairElem", at);
  detail::reduced_groups("asc_pair_reduce_sum", dst, src, repeatTime, dstRepStride, srcBlkStride,
                         srcRepStride, at);
}

template <typename T>
inline void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex, CUBECORE_AT) {
  maxMinValue = detail::value_of<T>(cubecore::ask(0, "asc_get_reduce_max_cnt", at));
  maxMinIndex = detail::value_of<T>(cubecore::ask(1, "asc_get_reduce_max_cnt", at));
}
template <typename T>
inline void GetReduceRepeatMaxMinSpr(T& maxMinValue, CUBECORE_AT) {
  maxMinValue = detail::value_of<T>(cubecore::ask(0, "asc_get_reduce_max_cnt", at));
}
// The names before ("接口变更说明").
template <typename T>
inline void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex, CUBECORE_AT) {
  GetReduceRepeatMaxMinSpr(maxMinValue, maxMinIndex, at);
}
template <typename T>
inline void GetReduceMaxMinCount(T& maxMinValue, CUBECORE_AT) {
  GetReduceRepeatMaxMinSpr(maxMinValue, at);
}

// Uncertain: read where the last ReduceSum of a number of elements left it.
template <typename T>
inline T GetReduceRepeatSumSpr(CUBECORE_AT) {
  return detail::value_of<T>(
      cubecore_load(1, cubecore::Element<T>::name, detail::core_state().sum, &at));
}
template <typename T>
inline T GetAccVal(CUBECORE_AT) {
  return GetReduceRepeatSumSpr<T>(at);
}
// Without a type: a float's bits.
inline int64_t GetAccVal(CUBECORE_AT) {
  return static_cast<int64_t>(cubecore_load(1, "uint32", detail::core_state().sum, &at));
}

}  // namespace AscendC
