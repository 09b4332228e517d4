// The steps that the norms of the high-level API share, row by row, in float. Pages: those of the
// functions.
#pragma once

#include "cubecore/library/rows.h"
#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

constexpr uint32_t NORM_ROWS = 2;   // more than FloatRows has: gamma and beta in float
constexpr uint32_t EXACT_ROWS = 1;  // and so many, if there is room, for what steps in float lose

inline void norm_sizes(uint32_t length, uint32_t& most, uint32_t& least) {
  most = rows_bytes(length, NORM_ROWS + EXACT_ROWS);
  least = rows_bytes(length, NORM_ROWS);
}

// A row of factors in float: itself, or in a spare row.
template <typename U>
inline Floats factor_row(const FloatRows& rows, const LocalTensor<U>& from, uint32_t spare) {
  if constexpr (std::is_same_v<PrimT<U>, float>) {
    return from.template ReinterpretCast<float>();
  } else {
    rows.row().cast(rows.spare(spare), from, RoundMode::CAST_NONE);
    return rows.spare(spare);
  }
}

// first + second = 1 / sqrt((whole + rest) / count + epsilon), the first of eight bits, so that its
// products with twelve bits are exact. By Newton's series for what the first lacks.
inline void inverse_root(const Steps& one, const Floats& first, const Floats& second,
                         const Floats& whole, const Floats& rest, float count, float epsilon,
                         const Floats& work) {
  constexpr float most = 0x1.fep127f;
  constexpr float series[] = {0.3125f, 0.375f, 0.5f};
  const Floats total = work, low = work[8], part = work[16], packed = work[24], finite = work[32];
  const double more = static_cast<double>(epsilon) * count;
  const float summand = static_cast<float>(more), share = 1.0f / count;
  one.finite_bits(finite, whole);
  one.masked(rest, rest, finite);
  one.add(first, whole, rest);
  one.sub(low, first, whole);
  one.sub(low, rest, low);
  one.adds(total, first, summand);
  sum_error(one, part, total, first, summand, packed);
  one.add(low, low, part);
  one.adds(low, low, more - summand);
  one.masked(low, low, finite);
  one.muls(first, total, share);
  one.sqrt(first, first);
  one.fill(second, 1.0f);
  one.div(first, second, first);
  one.shorten(first, first, packed);
  one.mins(total, total, most);
  one.shorten(part, total, packed);
  one.sub(total, total, part);
  one.add(low, low, total);
  one.mul(part, part, first);
  one.mul(part, part, first);
  one.rsubs(part, part, count);
  one.mul(low, low, first);
  one.mul(low, low, first);
  one.sub(part, part, low);
  one.muls(part, part, share);
  one.polynomial(second, part, series);
  one.mul(second, second, part);
  one.mul(second, second, first);
}

// Rows of `used` elements among `length`. Where the factors are float and there is room, each
// number is in two parts up to the product with gamma.
template <typename U>
class NormRows {
 public:
  NormRows(const char* caller, uint32_t length, uint32_t used, const LocalTensor<U>* gamma,
           const LocalTensor<U>* beta, const LocalTensor<uint8_t>& given, const cubecore::Where& at)
      : rows(caller, length, given, at, NORM_ROWS,
             std::is_same_v<PrimT<U>, float> ? EXACT_ROWS : 0),
        used_(used),
        scales_(gamma != nullptr),
        shifts_(beta != nullptr),
        exact_(rows.template keeps_losses<U>()) {
    if (scales_) gamma_ = factor_row(rows, *gamma, 0);
    if (shifts_) beta_ = factor_row(rows, *beta, 1);
    rows.one().fill(count(), static_cast<float>(used_));
  }
  Floats mean() const { return rows.value(0); }
  Floats variance() const { return rows.value(1); }

  // x becomes x - mean, with mean and variance. A second mean puts right what the first one lost.
  void centre() {
    const Floats lost = rows.value(3), next = scratch();
    const Steps& one = rows.one();
    average(mean(), rows.x());
    rows.minus(rows.t(), rows.x(), mean());
    average(lost, rows.t());
    one.add(next, mean(), lost);
    if (exact_) {
      one.sub(mean(), next, mean());
      one.sub(lost, lost, mean());
      one.adds(mean(), next, 0.0f);
      leave_mean();
      rows.minus(tail(), lost);
    } else {
      rows.minus(rows.x(), rows.t(), lost);
      one.adds(mean(), next, 0.0f);
    }
    squares();
  }
  // x becomes x - mean, of a mean that is given.
  void leave_mean() {
    if (!exact_) {
      rows.minus(rows.x(), mean());
      return;
    }
    const Steps& row = rows.row();
    const Floats x = rows.x(), left = rows.t(), part = rows.spare(0);
    rows.minus(left, x, mean());
    row.sub(part, left, x);
    row.sub(tail(), left, part);
    row.sub(tail(), x, tail());
    rows.plus(part, part, mean());
    row.sub(tail(), tail(), part);
    row.adds(x, left, 0.0f);
    centred_ = true;
  }
  // The mean of x * x.
  void squares() const {
    if (exact_) {
      exact_squares();
      rows.one().add(variance(), whole(), lost());
      rows.one().div(variance(), variance(), count());
    } else {
      rows.row().mul(rows.t(), rows.x(), rows.x());
      average(variance(), rows.t());
    }
  }
  // The square root of variance + epsilon, or RAISED by it.
  void deviate(float epsilon) const {
    if (exact_) {
      inverse(whole(), static_cast<float>(used_), epsilon);
    } else {
      rows.one().adds(deviation(), variance(), epsilon);
      rows.one().sqrt(deviation(), deviation());
    }
  }
  // The same of a variance that is given.
  void deviate_from_variance(float epsilon) const {
    if (exact_) {
      rows.one().fill(lost(), 0.0f);
      inverse(variance(), 1.0f, epsilon);
    } else {
      deviate(epsilon);
    }
  }
  // x / deviation * gamma + beta.
  void finish() const {
    const Steps& row = rows.row();
    const Floats x = rows.x();
    if (exact_) {
      exact_quotient();
      if (scales_) {
        row.muls(rows.t(), gamma_, 1 / RAISED);
        row.mul(x, x, rows.t());
      } else {
        row.muls(x, x, 1 / RAISED);
      }
    } else {
      rows.by(x, deviation());
      if (scales_) row.mul(x, x, gamma_);
    }
    if (shifts_) row.add(x, x, beta_);
  }
  // 1 / deviation, in place of the variance.
  void invert() const {
    if (exact_) {
      rows.one().add(variance(), deviation(), rest());
      rows.one().muls(variance(), variance(), 1 / RAISED);
    } else {
      rows.one().fill(variance(), 1.0f);
      rows.one().div(variance(), variance(), deviation());
    }
  }

  const FloatRows rows;

 private:
  Floats deviation() const { return rows.value(2); }
  Floats rest() const { return rows.value(3); }
  Floats whole() const { return rows.value(3)[8]; }  // with `lost` the sum of squares
  Floats lost() const { return rows.value(3)[16]; }
  Floats count() const { return rows.value(4); }
  Floats scratch() const { return rows.value(5); }
  Floats tail() const { return rows.spare(1); }  // what x lacks

  void inverse(const Floats& of, float number, float epsilon) const {
    inverse_root(rows.one(), deviation(), rest(), of, lost(), number, epsilon, scratch());
    rows.one().muls(deviation(), deviation(), RAISED);
    rows.one().muls(rest(), rest(), RAISED);
  }
  void average(const Floats& to, const Floats& row) const {
    rows.sum(to, row, used_);
    rows.one().div(to, to, count());
  }
  // The sum of squares in two parts: multiples of the last place of twice the sum add up exactly.
  void exact_squares() const {
    constexpr float most = 0x1p126f;
    const Steps& row = rows.row();
    const Floats x = rows.x(), t = rows.t(), square = rows.spare(0), small = rows.spare(2);
    const Floats grid = scratch();
    row.first_half(square, x);
    row.sub(small, x, square);
    row.add(t, x, square);
    row.mul(small, small, t);
    if (centred_) {
      row.add(t, x, x);
      row.add(t, t, tail());
      row.mul(t, t, tail());
      row.add(small, small, t);
    }
    row.mul(square, square, square);
    rows.sum(grid, square, used_);
    rows.one().muls(grid, grid, 2.0f);
    rows.one().mins(grid, grid, most);
    rows.plus(t, square, grid);
    rows.minus(t, grid);
    row.sub(square, square, t);
    row.add(small, small, square);
    rows.sum(whole(), t, used_);
    rows.sum(lost(), small, used_);
  }
  // x by the deviation: products of its two halves.
  void exact_quotient() const {
    const Steps& row = rows.row();
    const Floats x = rows.x(), t = rows.t(), high = rows.spare(0), low = rows.spare(2);
    row.first_half(high, x);
    row.sub(low, x, high);
    if (centred_) {
      row.add(low, low, tail());
      row.add(x, x, tail());
    }
    rows.times(t, x, rest());
    rows.times(low, deviation());
    row.add(low, low, t);
    rows.times(high, deviation());
    row.add(x, high, low);
  }

  // Quotients that are subnormal numbers keep their bits so up to the product with gamma.
  static constexpr float RAISED = 0x1p24f;
  uint32_t used_;
  bool scales_, shifts_, exact_, centred_ = false;
  Floats gamma_, beta_;
};

}  // namespace detail

}  // namespace AscendC
