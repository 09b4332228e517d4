// What a function loses by rounding, found and put back: products, sums and quotients in two parts,
// e^x - 1, ln(1 + x), and quotients by 1 + e^-x, each within two units in the last place.
#pragma once

#include "cubecore/math/steps.h"

namespace AscendC {

namespace detail {

// d = a * b - product, where the product is a * b as it was rounded.
inline void product_error(const Steps& s, const Floats& d, const Floats& product, const Floats& a,
                          const Floats& b, const Floats& half_a, const Floats& half_b) {
  s.first_half(half_a, a);
  s.first_half(half_b, b);
  s.mul(d, half_a, half_b);
  s.sub(d, d, product);
  s.sub(half_b, b, half_b);
  s.mla(d, half_a, half_b);
  s.sub(half_a, a, half_a);
  s.mla(d, half_a, b);
}

// d = a + value - sum, where the sum is a + value as it was rounded.
inline void sum_error(const Steps& s, const Floats& d, const Floats& sum, const Floats& a,
                      float value, const Floats& part) {
  s.sub(part, sum, a);
  s.rsubs(d, part, value);
  s.sub(part, sum, part);
  s.sub(part, a, part);
  s.add(d, d, part);
}

// What a quotient q = number / by lacks of (number + more) / (by + rest), in `number`; `more` may
// be left out. `rest` is scratch behind it.
inline void quotient_error(const Steps& s, const Floats& number, const Floats* more,
                           const Floats& by, const Floats& rest, const Floats& q,
                           const Floats& product, const Floats& lost, const Floats& part) {
  s.mul(product, q, by);
  s.sub(number, number, product);
  if (more != nullptr) s.add(number, number, *more);
  s.mul(rest, q, rest);
  s.sub(number, number, rest);
  product_error(s, lost, product, q, by, rest, part);
  s.sub(number, number, lost);
  s.div(number, number, by);
}

// e^x - 1 for x up to 88: the exponential less 1, and its own rounding as the logarithm shows it.
// `d` may be `x`.
inline void exp_less_one(const Steps& s, const Floats& d, const Floats& x, const Floats& power,
                         const Floats& lost) {
  constexpr float most = 0x1p-23f;  // where the logarithm's own rounding is more, nothing is lost
  s.exp(power, x);
  s.ln(lost, power);
  s.sub(lost, x, lost);
  s.clamp(lost, lost, -most, most);
  s.mul(lost, lost, power);
  s.adds(power, power, -1.0f);
  s.add(d, power, lost);
}

// ln(1 + x), with what the sum lost; `d` may be `x`.
inline void ln_of_one_more(const Steps& s, const Floats& d, const Floats& x, const Floats& sum,
                           const Floats& part, const Floats& lost) {
  s.adds(sum, x, 1.0f);
  s.adds(part, sum, -1.0f);
  s.sub(lost, x, part);
  s.sub(part, sum, part);
  s.rsubs(part, part, 1.0f);
  s.add(lost, lost, part);
  s.div(lost, lost, sum);
  s.ln(sum, sum);
  s.add(d, sum, lost);
}

// Beyond `far` 1 + e^x is e^x, and e^far is all but a float.
constexpr float LOGISTIC_FAR = 87.28125f;

// d = number / (1 + e^-(x + rest)); the number is `of`, or 1 without one; `rest` may be left out.
// A result that is too small for a quotient is a product. `d` may be `of`, `x` or `rest`.
inline void over_one_and_exp(const Steps& s, const Floats& d, const Floats* of, const Floats& x,
                             const Floats* rest, const Floats& power, const Floats& scratch) {
  s.muls(power, x, -1.0f);
  s.mins(power, power, LOGISTIC_FAR);
  s.exp(power, power);
  if (rest == nullptr) {
    s.adds(power, power, 1.0f);
  } else {
    constexpr float most = 0x1p-6f;
    s.clamp(scratch, *rest, -most, most);
    s.mul(scratch, scratch, power);
    s.rsubs(scratch, scratch, 1.0f);
    s.add(power, power, scratch);
  }
  s.adds(scratch, x, LOGISTIC_FAR);
  s.mins(scratch, scratch, 0.0f);
  s.exp(scratch, scratch);
  if (of == nullptr) {
    s.div(d, scratch, power);
  } else {
    s.div(power, *of, power);
    s.mul(d, power, scratch);
  }
}

// by + rest = 1 + e^-(x + more), with x + more cut off at -LOGISTIC_FAR; `more` may be left out.
// `more` is scratch behind it.
inline void one_and_exp_in_two(const Steps& s, const Floats& by, const Floats& rest,
                               const Floats& x, const Floats* more, const Floats& power,
                               const Floats& part) {
  constexpr float most = 0x1p-6f;
  s.muls(power, x, -1.0f);
  s.mins(power, power, LOGISTIC_FAR);
  s.exp(power, power);
  s.adds(by, power, 1.0f);
  sum_error(s, rest, by, power, 1.0f, part);
  if (more == nullptr) return;
  s.clamp(*more, *more, -most, most);
  s.mul(*more, *more, power);
  s.sub(rest, rest, *more);
}

// A float rounded to eight bits, by the compiler or the core that records.
constexpr float shortened(float value) {
  float scale = 1.0f, left = value < 0 ? -value : value;
  if (!(left > 0.0f && left < 1e38f)) return value;
  while (left >= 256.0f) left *= 0.5f, scale *= 2.0f;
  while (left < 128.0f) left *= 2.0f, scale *= 0.5f;
  float whole = static_cast<float>(static_cast<int32_t>(left + 0.5f)) * scale;
  return value < 0 ? -whole : whole;
}

// d = scale * x, and what that lost in `rest`; `x` is cut off where it is huge.
inline void scaled_in_two(const Steps& s, const Floats& d, const Floats& rest, const Floats& x,
                          double scale, const Floats& cut, const Floats& part) {
  constexpr float huge = 1e30f;
  const float high = shortened(static_cast<float>(scale)), low = static_cast<float>(scale - high);
  s.clamp(cut, x, -huge, huge);
  s.muls(d, cut, scale);
  s.shorten(part, cut, rest);
  s.muls(rest, part, high);
  s.sub(rest, rest, d);
  s.sub(part, cut, part);
  s.axpy(rest, part, high);
  s.axpy(rest, cut, low);
}

}  // namespace detail

}  // namespace AscendC
