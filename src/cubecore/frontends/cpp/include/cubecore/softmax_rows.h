// Softmax of rows: their tiling and shapes, and the steps of which the functions are made. Pages of
// the high-level API: SoftMax with its tiling pages (SoftMaxTiling, SoftMaxShapeInfo,
// SoftmaxConfig), IsBasicBlockInSoftMax.
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
  return padded * 8 + (padded / 64 + 7) / 8 * 32 + 64 + 6 * 256;
}

// As above with two rows more, for the gradient.
constexpr uint32_t gradient_bytes(uint32_t length) {
  return softmax_bytes(length) + (length + 63) / 64 * 64 * 8;
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
  return shape.GetDimNum() == 0 ? 1 : static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
}

// Where a row's elements lie: one behind another, or in columns of fractals (NZ), 16 wide.
struct RowsAt {
  uint32_t rows, length;
  bool nz;
};

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
  void load(const Floats& to, const LocalTensor<T>& all, uint32_t number, const RowsAt& at) const {
    LocalTensor<T> from = all[number * (at.nz ? FRACTAL : at.length)];
    if (at.nz) {
      const LocalTensor<T> line = t().template ReinterpretCast<T>();
      move(line, from, 0, (at.rows - 1) * blocks<T>());
      from = line;
    }
    if constexpr (std::is_same_v<PrimT<T>, half>)
      row_.cast(to, from, RoundMode::CAST_NONE);
    else
      row_.adds(to, from, 0.0f);
  }
  template <typename T>
  void store(const LocalTensor<T>& all, uint32_t number, const Floats& from,
             const RowsAt& at) const {
    LocalTensor<T> to = all[number * (at.nz ? FRACTAL : at.length)];
    const LocalTensor<T> line = at.nz ? t().template ReinterpretCast<T>() : to;
    if constexpr (std::is_same_v<PrimT<T>, half>)
      row_.cast(line, from, RoundMode::CAST_RINT);
    else
      row_.adds(line, from, 0.0f);
    if (at.nz) move(to, line, (at.rows - 1) * blocks<T>(), 0);
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
  static constexpr uint32_t FRACTAL = 16;

  // Blocks of a row of a fractal.
  template <typename T>
  static constexpr uint32_t blocks() {
    return FRACTAL * sizeof(PrimT<T>) / ONE_BLK_SIZE;
  }
  // A row between fractals and a line, by the gaps behind each part.
  template <typename T>
  void move(const LocalTensor<T>& to, const LocalTensor<T>& from, uint32_t dst_gap,
            uint32_t src_gap) const {
    cubecore::issue("asc_copy_ub2ub", at_, as_bits(to.pointer()), as_bits(from.pointer()),
                    length_ / FRACTAL, blocks<T>(), src_gap, dst_gap);
    barrier(PIPE_V, at_);
  }
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

}  // namespace detail

// Page IsBasicBlockInSoftMax: rows of 64 to 2047 elements, by 64, eight rows at a time.
inline bool IsBasicBlockInSoftMax(SoftMaxTiling& tiling, const uint32_t dataTypeSize = 2) {
  return tiling.reduceM % 8 == 0 && tiling.srcK < 2048 && tiling.srcK % 64 == 0 &&
         tiling.srcK * dataTypeSize >= 256;
}

}  // namespace AscendC
