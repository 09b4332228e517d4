// Sorting and merging of records, each a score and an index in 8 B. Pages: Sort32, MrgSort,
// GetMrgSortResult, and of the high-level API Sort, Concat, Extract, MrgSort, GetSortLen,
// GetSortOffset.
#pragma once

#include "cubecore/basic/gather.h"

namespace AscendC {

struct MrgSort4Info {
  uint16_t elementLengths[4] = {0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint8_t repeatTimes = 1;
  CUBECORE_TAKES(elementLengths, ifExhaustedSuspension, validBit, [uint16_t repeatTimes])
};

template <typename T>
struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;
  CUBECORE_TAKES(src1, src2, src3, src4)
};

template <typename T>
inline void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                   const LocalTensor<uint32_t>& src1, const int32_t repeatTime, CUBECORE_AT) {
  cubecore::issue("asc_bitsort", at, dst.pointer(), src0.pointer(), src1.pointer(), repeatTime);
}

template <typename T>
inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& p,
                    CUBECORE_AT) {
  cubecore::issue("asc_mrgsort4", at, dst.pointer(), src.src1.pointer(), src.src2.pointer(),
                  src.src3.pointer(), src.src4.pointer(), p.repeatTimes, p.elementLengths[0],
                  p.elementLengths[1], p.elementLengths[2], p.elementLengths[3],
                  p.ifExhaustedSuspension, p.validBit);
}

inline void GetMrgSortResult(uint16_t& mrgSortList1, uint16_t& mrgSortList2, uint16_t& mrgSortList3,
                             uint16_t& mrgSortList4, CUBECORE_AT) {
  uint16_t* lists[] = {&mrgSortList1, &mrgSortList2, &mrgSortList3, &mrgSortList4};
  for (uint32_t n = 0; n < 4; ++n)
    *lists[n] = static_cast<uint16_t>(cubecore::ask(n, "asc_get_vms4_sr", at));
}

namespace detail {

constexpr uint32_t RECORD_BYTES = 8;
constexpr uint32_t RUN = 32;  // records that one repeat sorts

}  // namespace detail

// The elements that the records of `elemCount` scores take. Uncertain: the pages say bytes, but
// their example and public kernels count elements.
template <typename T>
constexpr uint32_t GetSortLen(const uint32_t elemCount) {
  return elemCount * (detail::RECORD_BYTES / sizeof(T));
}
template <typename T>
constexpr uint32_t GetSortOffset(const uint32_t elemOffset) {
  return GetSortLen<T>(elemOffset);
}

// On 2201 scores are sorted where they lie.
template <typename T>
inline void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&,
                   const int32_t) {
  concat = src;
}

template <typename T, bool isExhaustedSuspension = false>
inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& sortList,
                    const uint16_t elementCountList[4], uint32_t sortedNum[4], uint16_t validBit,
                    const int32_t repeatTime, CUBECORE_AT) {
  MrgSort4Info p(elementCountList, isExhaustedSuspension, validBit,
                 static_cast<uint16_t>(repeatTime));
  MrgSort(dst, sortList, p, at);
  if constexpr (isExhaustedSuspension) {
    detail::hand(HardEvent::V_S, at);
    for (uint32_t n = 0; n < 4; ++n)
      sortedNum[n] = static_cast<uint32_t>(cubecore::ask(n, "asc_get_vms4_sr", at));
  }
}

namespace detail {

// Merges runs of `run` records, four into one, from one buffer into the other.
template <typename T>
inline void merge_runs(const LocalTensor<T>& to, const LocalTensor<T>& from, uint32_t run,
                       uint32_t records, const cubecore::Where& at) {
  constexpr uint32_t size = RECORD_BYTES / sizeof(PrimT<T>);
  uint32_t done = 0, whole = records / (4 * run);
  if (whole != 0) {
    uint16_t lengths[4];
    for (uint16_t& length : lengths) length = static_cast<uint16_t>(run);
    MrgSortSrcList<T> lists(from, from[run * size], from[2 * run * size], from[3 * run * size]);
    MrgSort(to, lists, MrgSort4Info(lengths, false, 15, static_cast<uint16_t>(whole)), at);
    done = whole * 4 * run;
  }
  uint32_t left = records - done;
  if (left == 0) return;
  if (left <= run) {
    cubecore::issue("asc_copy_ub2ub", at, as_bits(to[done * size].pointer()),
                    as_bits(from[done * size].pointer()), 1, left * RECORD_BYTES / 32, 0, 0);
    return;
  }
  uint16_t lengths[4] = {0, 0, 0, 0};
  LocalTensor<T> lists[4] = {from, from, from, from};
  uint32_t queues = 0;
  for (uint32_t begin = done; begin < records; begin += run, ++queues) {
    lengths[queues] = static_cast<uint16_t>(records - begin < run ? records - begin : run);
    lists[queues] = from[begin * size];
  }
  MrgSort(to[done * size], MrgSortSrcList<T>(lists[0], lists[1], lists[2], lists[3]),
          MrgSort4Info(lengths, false, static_cast<uint16_t>((1u << queues) - 1)), at);
}

}  // namespace detail

// From the largest down: runs of 32, and with `isFullSort` all of them merged, by way of `tmp`.
template <typename T, bool isFullSort>
inline void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat,
                 const LocalTensor<uint32_t>& index, LocalTensor<T>& tmp, const int32_t repeatTime,
                 CUBECORE_AT) {
  if constexpr (!isFullSort) {
    Sort32(dst, concat, index, repeatTime, at);
  } else {
    uint32_t records = static_cast<uint32_t>(repeatTime) * detail::RUN, passes = 0;
    detail::judge_tmp("Sort", "tmp", records * int64_t{8}, repeatTime, tmp.Room(), at);
    for (uint32_t run = detail::RUN; run < records; run *= 4) ++passes;
    LocalTensor<T> to = passes % 2 == 0 ? dst : tmp, other = passes % 2 == 0 ? tmp : dst;
    Sort32(to, concat, index, repeatTime, at);
    for (uint32_t run = detail::RUN; run < records; run *= 4) {
      detail::barrier(PIPE_V, at);
      std::swap(to, other);
      detail::merge_runs(to, other, run, records, at);
    }
    detail::barrier(PIPE_V, at);
  }
}

// Scores and indices of 32 records a repeat.
template <typename T>
inline void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
                    const LocalTensor<T>& sorted, const int32_t repeatTime, CUBECORE_AT) {
  constexpr uint8_t first = sizeof(PrimT<T>) == 4 ? 1 : 3, odd = 2;
  auto words = sorted.template ReinterpretCast<uint32_t>();
  cubecore::issue("vreducev2", at, detail::plain(dstValue), detail::plain(sorted),
                  detail::plain(sorted), repeatTime, 1, first, 8, 0);
  cubecore::issue("vreducev2", at, detail::plain(dstIndex), detail::plain(words),
                  detail::plain(words), repeatTime, 1, odd, 8, 0);
  detail::barrier(PIPE_V, at);
}

}  // namespace AscendC
