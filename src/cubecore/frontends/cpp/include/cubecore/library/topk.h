// The largest or smallest elements of rows. Pages of the high-level API: TopK, "TopK Tiling".
#pragma once

#include "cubecore/basic/sort.h"
#include "cubecore/library/fill.h"
#include "cubecore/math/steps.h"

// Host code fills it, kernels hand it on; what a kernel needs is in TopKInfo.
struct TopkTiling {
  int32_t tmpLocalSize = 0, allDataSize = 0, innerDataSize = 0;
  uint32_t sortRepeat = 0;
  int32_t mrgSortRepeat = 0, kAlignFourBytes = 0, kAlignTwoBytes = 0, maskOffset = 0,
      maskVreducev2FourBytes = 0, maskVreducev2TwoBytes = 0, mrgSortSrc1offset = 0,
      mrgSortSrc2offset = 0, mrgSortSrc3offset = 0, mrgSortTwoQueueSrc1Offset = 0,
      mrgFourQueueTailPara1 = 0, mrgFourQueueTailPara2 = 0, srcIndexOffset = 0;
  uint32_t copyUbToUbBlockCount = 0;
  int32_t topkMrgSrc1MaskSizeOffset = 0;
  int32_t topkNSmallSrcIndexOffset = 0;
  uint32_t vreduceValMask0 = 0, vreduceValMask1 = 0, vreduceIdxMask0 = 0, vreduceIdxMask1 = 0;
  uint16_t vreducehalfValMask0 = 0, vreducehalfValMask1 = 0, vreducehalfValMask2 = 0,
      vreducehalfValMask3 = 0, vreducehalfValMask4 = 0, vreducehalfValMask5 = 0,
      vreducehalfValMask6 = 0, vreducehalfValMask7 = 0;
};

namespace optiling {
using ::TopkTiling;
}

namespace AscendC {

namespace tiling {
using ::TopkTiling;
}

enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };

struct TopKConfig {
  TopKAlgo algo = TopKAlgo::MERGE_SORT;
  TopKOrder order = TopKOrder::UNSET;
  bool sorted = true;
};
constexpr TopKConfig defaultTopKConfig = {TopKAlgo::MERGE_SORT, TopKOrder::UNSET, true};

struct TopKInfo {
  int32_t outter = 1;
  int32_t inner;
  int32_t n;
};

namespace detail {

constexpr uint32_t SMALL_ROWS = 16;  // rows of a turn are a multiple of them: so are its results

// Bytes for so many scores: two buffers of records, scores of the other sign, and indices.
constexpr uint32_t topk_bytes(uint32_t scores) { return scores * (2 * RECORD_BYTES + 8) + 64; }

template <typename T>
class TopRows {
 public:
  TopRows(const LocalTensor<uint8_t>& given, uint32_t scores, bool largest,
          const cubecore::Where& at)
      : scores_(scores), largest_(largest), at_(at) {
    uint32_t bytes = scores * RECORD_BYTES;
    records_ = given[0].template ReinterpretCast<T>();
    other_ = given[bytes].template ReinterpretCast<T>();
    negated_ = given[2 * bytes].template ReinterpretCast<T>();
    index_ = given[2 * bytes + scores * 4].template ReinterpretCast<int32_t>();
    pattern_ = given[2 * bytes + scores * 8].template ReinterpretCast<uint32_t>();
  }
  const LocalTensor<int32_t>& index() const { return index_; }

  // 0, 1, ... for each row of so many.
  void number(uint32_t length, uint32_t rows) const {
    Arange(index_, 0, 1, static_cast<int32_t>(length), at_);
    barrier(PIPE_V, at_);
    if (rows < 2) return;
    Adds(index_[length], index_, 0, length, static_cast<uint8_t>(rows - 1),
         UnaryRepeatParams(1, 1, length / 8, 0), at_);
    ResetMask(at_);
    barrier(PIPE_V, at_);
  }
  // Records from the first place on: runs of 32, or all in order.
  void sort(const LocalTensor<T>& src, const LocalTensor<int32_t>& index, uint32_t count,
            bool whole) {
    LocalTensor<T> from = src;
    if (!largest_) {
      Steps(count, at_).muls(negated_, src, -1.0f);
      from = negated_;
    }
    auto places = index.template ReinterpretCast<uint32_t>();
    int32_t repeats = static_cast<int32_t>(count / RUN);
    if (whole)
      Sort<T, true>(records_, from, places, other_, repeats, at_);
    else
      Sort<T, false>(records_, from, places, other_, repeats, at_);
    barrier(PIPE_V, at_);
  }
  // The first k records' scores and indices.
  void take(const LocalTensor<T>& values, const LocalTensor<int32_t>& indices, uint32_t k) const {
    constexpr uint32_t each = RECORD_BYTES / sizeof(PrimT<T>);
    auto words = records_.template ReinterpretCast<uint32_t>();
    taken(plain(values), plain(records_), plain(records_), each * k, 1, each == 2 ? 1 : 3);
    taken(plain(indices), plain(words), plain(words), 2 * k, 1, 2);
    finish(values, k);
  }
  // The same of each of several rows of 32, one behind another.
  void take_rows(const LocalTensor<T>& values, const LocalTensor<int32_t>& indices, uint32_t k,
                 uint32_t rows) const {
    constexpr uint32_t each = RECORD_BYTES / sizeof(PrimT<T>);
    auto words = records_.template ReinterpretCast<uint32_t>();
    choose(each, 0, k);
    taken(plain(values), plain(records_), pattern(values), 0, rows, 0);
    choose(2, 1, k);
    taken(plain(indices), plain(words), pattern(indices), 0, rows, 0);
    finish(values, k * rows);
  }

 private:
  void finish(const LocalTensor<T>& values, uint32_t count) const {
    if (!largest_) Steps(count, at_).muls(values, values, -1.0f);
  }
  template <typename U>
  cubecore::Pointer pattern(const LocalTensor<U>&) const {
    return plain(pattern_.template ReinterpretCast<U>());
  }
  // Bits of a repeat: element `which` of each of the first k records, of so many elements each.
  void choose(uint32_t each, uint32_t which, uint32_t k) const {
    uint32_t words[4] = {0, 0, 0, 0};
    for (uint32_t n = 0; n < k; ++n) {
      uint32_t bit = n * each + which;
      words[bit / 32] |= 1u << bit % 32;
    }
    barrier(PIPE_V, at_);
    for (uint32_t n = 0; n < each; ++n) {
      uint64_t lane[] = {1ull << n, 0};
      Duplicate(pattern_, words[n], lane, 1, 1, 8, at_);
    }
    ResetMask(at_);
    barrier(PIPE_V, at_);
  }
  // By a fixed pattern of `count` elements, or by the pattern of a tensor, repeat by repeat.
  void taken(const cubecore::Pointer& to, const cubecore::Pointer& from,
             const cubecore::Pointer& by, uint32_t count, uint32_t rows, uint32_t fixed) const {
    if (fixed != 0) {
      SetMaskCount(at_);
      set_mask(0, count, at_);
    }
    cubecore::issue("vreducev2", at_, to, from, by, rows, 1, fixed, 8, 0);
    if (fixed != 0) {
      SetMaskNorm(at_);
      ResetMask(at_);
    }
    barrier(PIPE_V, at_);
  }

  uint32_t scores_;
  bool largest_;
  cubecore::Where at_;
  LocalTensor<T> records_, other_, negated_;
  LocalTensor<int32_t> index_;
  LocalTensor<uint32_t> pattern_;
};

}  // namespace detail

// --- host side

template <typename P>
inline bool GetTopKMaxMinTmpSize(const P&, const int32_t inner, const int32_t outter, const bool,
                                 const bool, enum TopKMode mode, const bool, const uint32_t,
                                 uint32_t& maxValue, uint32_t& minValue) {
  uint32_t row = static_cast<uint32_t>(inner), rows = static_cast<uint32_t>(outter);
  bool small = mode == TopKMode::TOPK_NSMALL;
  uint32_t least = rows < detail::SMALL_ROWS ? rows : detail::SMALL_ROWS;
  minValue = detail::topk_bytes(small ? row * least : row);
  maxValue = detail::topk_bytes(small ? row * rows : row);
  return true;
}
template <typename P>
inline bool TopKTilingFunc(const P&, const int32_t inner, const int32_t outter, const int32_t k,
                           const uint32_t dataTypeSize, const bool, enum TopKMode, const bool,
                           TopkTiling& topKTiling) {
  topKTiling = TopkTiling();
  topKTiling.tmpLocalSize = static_cast<int32_t>(detail::topk_bytes(inner) / dataTypeSize);
  topKTiling.allDataSize = inner * outter;
  topKTiling.innerDataSize = inner;
  topKTiling.sortRepeat = static_cast<uint32_t>(inner) / detail::RUN;
  topKTiling.kAlignFourBytes = (k + 7) / 8 * 8;
  topKTiling.kAlignTwoBytes = (k + 15) / 16 * 16;
  return true;
}

// --- kernel side

template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL,
          const TopKConfig& config = defaultTopKConfig>
inline void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                 const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                 const LocalTensor<bool>& finishLocal, const LocalTensor<uint8_t>& tmpLocal,
                 const int32_t k, const TopkTiling&, const TopKInfo& topKInfo,
                 const bool isLargest = true, CUBECORE_AT) {
  static_assert(config.algo == TopKAlgo::MERGE_SORT,
                "TopKConfig.algo must be MERGE_SORT on 2201, got RADIX_SELECT");
  constexpr bool small = topkMode == TopKMode::TOPK_NSMALL;
  uint32_t inner = static_cast<uint32_t>(topKInfo.inner), count = static_cast<uint32_t>(k);
  uint32_t rows = static_cast<uint32_t>(topKInfo.outter);
  if (inner == 0 || inner % detail::RUN != 0 || inner > 4096 || (small && inner != detail::RUN))
    cubecore_refuse("TopKInfo.inner",
                    small ? "be 32 in TOPK_NSMALL" : "be a multiple of 32 up to 4096",
                    detail::Digits(inner).text, &at);
  if (k < 1 || k > topKInfo.n || topKInfo.n > topKInfo.inner)
    cubecore_refuse("TopK.k", "be between 1 and n, and n at most inner", detail::Digits(count).text,
                    &at);
  uint32_t turn = small && rows > detail::SMALL_ROWS ? detail::SMALL_ROWS : rows;
  uint32_t scores = small ? inner * turn : inner;
  const LocalTensor<uint8_t> given = detail::enough(tmpLocal, detail::topk_bytes(scores));
  if (given.GetSize() < detail::topk_bytes(scores))
    cubecore_refuse("TopK.tmpLocal", "have as much as GetTopKMaxMinTmpSize answers",
                    detail::Digits(given.GetSize(), " B").text, &at);
  bool largest = config.order == TopKOrder::UNSET ? isLargest : config.order == TopKOrder::LARGEST;
  detail::TopRows<T> work(given, scores, largest, at);
  if constexpr (!isInitIndex) work.number(inner, small ? turn : 1);
  const LocalTensor<int32_t> index = isInitIndex ? srcIndexLocal : work.index();
  if constexpr (small) {
    for (uint32_t row = 0; row < rows; row += turn) {
      uint32_t some = rows - row < turn ? rows - row : turn;
      work.sort(srcLocal[row * inner], isInitIndex ? index[row * inner] : index, some * inner,
                false);
      work.take_rows(dstValueLocal[row * count], dstIndexLocal[row * count], count, some);
    }
  } else {
    constexpr uint32_t unit = ONE_BLK_SIZE / sizeof(PrimT<T>);
    uint32_t values = (count + unit - 1) / unit * unit, indices = (count + 7) / 8 * 8;
    if constexpr (isHasfinish) detail::hand(HardEvent::V_S, at);
    for (uint32_t row = 0; row < rows; ++row) {
      work.sort(srcLocal[row * inner], index, inner, true);
      const LocalTensor<int32_t> to = dstIndexLocal[row * indices];
      work.take(dstValueLocal[row * values], to, count);
      if constexpr (isHasfinish)
        if (finishLocal.template ReinterpretCast<uint8_t>().GetValue(row, at) != 0)
          detail::Steps(count, at).fill(to, topKInfo.n);
    }
  }
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL,
          const TopKConfig& config = defaultTopKConfig>
inline void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                 const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                 const LocalTensor<bool>& finishLocal, const int32_t k, const TopkTiling& tilling,
                 const TopKInfo& topKInfo, const bool isLargest = true, CUBECORE_AT) {
  TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode, config>(
      dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, finishLocal, detail::free_memory(), k,
      tilling, topKInfo, isLargest, at);
}

}  // namespace AscendC
