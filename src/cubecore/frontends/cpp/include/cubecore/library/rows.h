// Rows in float, one at a time, in a workspace: softmax and normalisation of the high-level API are
// made of them. Pages: those of the functions.
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/math/exponential.h"
#include "cubecore/math/steps.h"

namespace AscendC {

namespace detail {

constexpr uint32_t POWER_ROWS = 2;  // for what a difference loses
constexpr uint32_t ROW_VALUES = 8;  // of what a row has one of; the last two are for the steps

// Bytes for rows of a length: two in float and so many more, the partial results of one, and what a
// row has one of.
constexpr uint32_t rows_bytes(uint32_t length, uint32_t more = 0) {
  uint32_t padded = (length + 63) / 64 * 64;
  return padded * 4 * (2 + more) + (padded / 64 + 7) / 8 * 32 + 128 + ROW_VALUES * 256;
}

// Where a row's elements lie: one behind another, or in columns of fractals (NZ), 16 wide.
struct RowsAt {
  uint32_t rows, length;
  bool nz;
};

// One row at a time, in float: the workspace's parts.
class FloatRows {
 public:
  FloatRows(const char* caller, uint32_t length, const LocalTensor<uint8_t>& offered,
            const cubecore::Where& at, uint32_t more = 0, uint32_t wished = 0)
      : length_(length), padded_((length + 63) / 64 * 64), at_(at), row_(length, at), one_(8, at) {
    LocalTensor<uint8_t> given = enough(offered, rows_bytes(length, more + wished));
    roomy_ = given.GetSize() >= rows_bytes(length, more + wished);
    if (!roomy_) given = enough(offered, rows_bytes(length, more));
    if (given.GetSize() < rows_bytes(length, more))
      cubecore_refuse(caller, "have a workspace as its tiling function answers",
                      Digits(given.GetSize(), " B").text, &at);
    work_ = given.template ReinterpretCast<float>();
    one_.fill(found(), 0.0f);  // a broadcast reads eight elements, of which the first counts
  }
  Floats x() const { return work_[0]; }
  Floats t() const { return work_[padded_]; }
  Floats repeats() const { return work_[2 * padded_]; }
  Floats value(uint32_t n) const { return work_[values_at() + 64 * n]; }
  Floats spare(uint32_t n) const { return work_[values_at() + 64 * ROW_VALUES + n * padded_]; }
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
    ReduceMax(found(), from, repeats(), static_cast<int32_t>(used), false, at_);
    barrier(PIPE_V, at_);
    spread(to, found());
  }
  void sum(const Floats& to, const Floats& from, uint32_t used) const {
    sum_through(found(), from, repeats(), static_cast<int32_t>(used), at_);
    barrier(PIPE_V, at_);
    spread(to, found());
  }
  // The first element in all eight lanes.
  void spread(const Floats& to, const Floats& from) const {
    cubecore::issue("asc_brcb", at_, plain(value(6)), plain(from), 1, 8, 1);
    barrier(PIPE_V, at_);
    one_.adds(to, value(6), 0.0f);
  }
  void minus(const Floats& row, const Floats& value) const { minus(row, row, value); }
  void minus(const Floats& to, const Floats& row, const Floats& value) const {
    each(to, row, value, [](const auto&... given) { Sub(given...); });
  }
  void plus(const Floats& row, const Floats& value) const { plus(row, row, value); }
  void plus(const Floats& to, const Floats& row, const Floats& value) const {
    each(to, row, value, [](const auto&... given) { Add(given...); });
  }
  // True where there was room for the rows wished, and rows of T lose something that counts.
  template <typename T>
  bool keeps_losses() const {
    return roomy_ && !std::is_same_v<PrimT<T>, half>;
  }
  // x becomes e^(x - value), with what the difference lost.
  template <typename T>
  void powers(const Floats& value) const {
    if (keeps_losses<T>()) {
      powers_in_two(value);
      row_.add(x(), x(), t());
    } else {
      minus(x(), value);
      row_.exp(x(), x());
    }
  }
  // x becomes e^(x - value) by the sum of these, of which `used` count. Sums of multiples of 2^-12
  // up to 1 are exact, those of the rest nearly so.
  template <typename T>
  void shares(const Floats& sum_of_all, const Floats& value, uint32_t used) const {
    if (!keeps_losses<T>()) {
      powers<T>(value);
      sum(sum_of_all, x(), used);
      by(x(), sum_of_all);
      return;
    }
    constexpr float grid = 3072.0f;
    const Floats rest = spare(0), coarse = spare(1), first = this->value(4), lost = this->value(5);
    powers_in_two(value);
    row_.add(rest, x(), t());
    row_.adds(coarse, rest, grid);
    row_.adds(coarse, coarse, -grid);
    row_.sub(rest, rest, coarse);
    sum(first, coarse, used);
    sum(lost, rest, used);
    one_.add(sum_of_all, first, lost);
    one_.sub(first, sum_of_all, first);
    one_.sub(lost, lost, first);
    one_.div(lost, lost, sum_of_all);
    by(t(), sum_of_all);
    by(x(), sum_of_all);
    times(rest, t(), lost);
    row_.sub(x(), x(), rest);
    row_.add(x(), x(), t());
  }
  void times(const Floats& row, const Floats& value) const { times(row, row, value); }
  void times(const Floats& to, const Floats& row, const Floats& value) const {
    each(to, row, value, [](const auto&... given) { Mul(given...); });
  }
  void by(const Floats& row, const Floats& value) const {
    each(row, row, value, [](const auto&... given) { Div(given...); });
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

  // What a row has one of, as an element of its own: the lane of its block that is its number's.
  template <typename T>
  void put_element(const LocalTensor<T>& to, uint32_t number, const Floats& value) const {
    constexpr uint32_t lanes = ONE_BLK_SIZE / sizeof(PrimT<T>);
    uint64_t lane[] = {1ull << number % lanes, 0};
    LocalTensor<T> from;
    if constexpr (std::is_same_v<PrimT<T>, half>) {
      from = repeats()[16].template ReinterpretCast<half>();
      put(from, 0, value);
    } else {
      from = value;
    }
    Muls(to[number / lanes * lanes], from, PrimT<T>(1.0f), lane, 1, UnaryRepeatParams(), at_);
    set_mask(~0ull, ~0ull, at_);
    barrier(PIPE_V, at_);
  }
  template <typename T>
  void get_element(const Floats& value, const LocalTensor<T>& from, uint32_t number) const {
    constexpr bool casts = std::is_same_v<PrimT<T>, half>;
    constexpr uint32_t lanes = ONE_BLK_SIZE / sizeof(PrimT<T>);
    uint32_t n = number % lanes;
    uint64_t lane[] = {1ull << n, 0};
    const Floats block = repeats();
    Steps(16, at_).fill(block, 0.0f);
    const LocalTensor<T> source = from[number / lanes * lanes];
    if constexpr (casts)
      Cast(block, source, RoundMode::CAST_NONE, lane, 1, UnaryRepeatParams(1, 1, 8, 4), at_);
    else
      Muls(block, source, 1.0f, lane, 1, UnaryRepeatParams(), at_);
    set_mask(~0ull, ~0ull, at_);
    barrier(PIPE_V, at_);
    cubecore::issue("asc_brcb", at_, plain(this->value(6)), plain(block[n / 8 * 8]), 1, 8, 1);
    barrier(PIPE_V, at_);
    one_.adds(value, this->value(6)[n % 8 * 8], 0.0f);
  }

 private:
  Floats found() const { return value(7); }
  uint32_t values_at() const { return 2 * padded_ + (padded_ / 64 + 7) / 8 * 8 + 32; }
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
  // e^(x - value) in t, and in x what it lacks for what the difference lost.
  void powers_in_two(const Floats& value) const {
    constexpr float least = -0x1.fffffep127f, most = 0x1p-10f;
    const Floats left = t(), minuend = spare(0), other = spare(1);
    minus(left, x(), value);
    row_.maxs(other, left, least);
    row_.maxs(x(), x(), least);
    row_.sub(minuend, other, x());
    row_.sub(other, other, minuend);
    row_.sub(x(), x(), other);
    plus(minuend, value);
    row_.sub(x(), x(), minuend);
    row_.clamp(x(), x(), -most, most);
    row_.exp(left, left);
    row_.mul(x(), x(), left);
  }
  // An operation of each element of a row and a value.
  template <typename Operation>
  void each(const Floats& to, const Floats& row, const Floats& value,
            const Operation& operation) const {
    for (uint32_t done = 0; done < length_; done += 64)
      operation(to[done], row[done], value, part(done), 1, BinaryRepeatParams(1, 1, 0, 8, 8, 0),
                at_);
    barrier(PIPE_V, at_);
  }
  uint64_t part(uint32_t done) const { return length_ - done < 64 ? length_ - done : 64; }

  uint32_t length_, padded_;
  bool roomy_;
  cubecore::Where at_;
  Floats work_;
  Steps row_, one_;
};

}  // namespace detail

}  // namespace AscendC
