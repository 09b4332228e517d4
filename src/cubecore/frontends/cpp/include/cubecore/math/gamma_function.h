// Pages: Digamma, Lgamma. Below 1/2 both are reflected: at 1 - x the function is smooth, and what
// lies between is a sine or a cotangent of pi x, which the distance to the nearest integer gives.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

constexpr float GAMMA_SPLIT = 4.0f;      // from here on the asymptotic series serves
constexpr float GAMMA_LEAST = -0x1p24f;  // every number below is an integer too

// A polynomial in (y - 2) / (y + 1), which is short where y has a pole at 0 and at -1.
template <uint32_t terms>
inline void near_two(const Steps& s, const Floats& d, const Floats& y,
                     const float (&coefficients)[terms], const Floats& part) {
  s.adds(d, y, 1.0f);
  s.adds(part, y, -2.0f);
  s.div(part, part, d);
  s.polynomial(d, part, coefficients);
}

// x less the nearest integer.
inline void from_integer(const Steps& s, const Floats& d, const Floats& x) {
  s.cast(d, x, RoundMode::CAST_RINT);
  s.sub(d, x, d);
}

// ln|gamma(y)| of y from 1/2 on into t3: its zeros at 1 and 2 are factors up to GAMMA_SPLIT, and
// Stirling's series holds behind; t4, t5, t7 are scratch.
inline void positive_lgamma(const Steps& s, const Floats& y, const Floats* t) {
  constexpr float half_ln_two_pi = 0.91893853320467274f;
  constexpr float series[] = {-1.0f / 1680, 1.0f / 1260, -1.0f / 360, 1.0f / 12};
  constexpr float terms[] = {-0.00054092553909868f, -0.001946510630659759f, -0.0038510828744620085f,
                             -0.0046904077753424644f, -0.006347804795950651f,
                             -0.006389252841472626f, -0.013139924965798855f,
                             -0.009126106277108192f, -0.041956573724746704f,
                             -0.004266995470970869f, -0.30095189809799194f, 0.42278432846069336f};
  s.fill(t[5], 1.0f);
  s.div(t[5], t[5], y);
  s.mul(t[4], t[5], t[5]);
  s.polynomial(t[7], t[4], series);
  s.mul(t[7], t[7], t[5]);
  s.adds(t[7], t[7], half_ln_two_pi - 0.5f);
  s.ln(t[4], y);
  s.adds(t[4], t[4], -1.0f);
  s.adds(t[5], y, -0.5f);
  s.mul(t[4], t[4], t[5]);
  s.add(t[7], t[7], t[4]);  // (y - 1/2) (ln y - 1) and the rest
  near_two(s, t[3], y, terms, t[4]);
  s.adds(t[4], y, -1.0f);
  s.adds(t[5], y, -2.0f);
  s.mul(t[4], t[4], t[5]);
  s.mul(t[3], t[3], t[4]);
  s.below(t[5], y, GAMMA_SPLIT);
  s.choose(t[3], t[5], t[3], t[7], t[4]);
}

// From 1/2 on as it is; of less in size ln|gamma(1 + x)| - ln|x|; below -1/2
// -ln(|sin(pi x)| / pi) - ln(gamma(1 - x)), which is infinite at integers.
struct LogGamma {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float sine[] = {-0.0022371786180883646f, 0.026117438450455666f, -0.19074790179729462f,
                              0.8117421865463257f,     -1.644934058189392f,   1.0f};
    const Floats &y = t[0], &other = t[1], &small = t[2], &sign = t[6];
    s.maxs(t[4], x, GAMMA_LEAST);
    s.abs(t[3], t[4]);
    s.below(small, t[3], 0.5f);
    from_integer(s, t[5], t[4]);
    s.abs(t[5], t[5]);
    s.mul(t[6], t[5], t[5]);
    s.polynomial(t[7], t[6], sine);
    s.mul(t[5], t[5], t[7]);
    s.choose(other, small, t[3], t[5], t[6]);
    s.ln(other, other);
    s.adds(y, t[4], 1.0f);
    s.rsubs(t[5], t[4], 1.0f);
    s.max(t[5], t[5], t[4]);
    s.choose(y, small, y, t[5], t[6]);
    s.below(t[5], t[4], 0.5f);
    s.masked(other, other, t[5]);
    s.without(t[5], t[5], small, t[3]);
    s.fill(t[3], -2.0f);
    s.masked(sign, t[3], t[5]);
    s.adds(sign, sign, 1.0f);  // -1 below -1/2
    positive_lgamma(s, y, t);
    s.mul(t[3], t[3], sign);
    s.sub(d, t[3], other);
  }
};

// The derivative of ln(gamma(y)) of y from 1/2 on into t3: its zero is a factor, in two parts, up
// to GAMMA_SPLIT; t4, t5, t6 are scratch.
inline void positive_digamma(const Steps& s, const Floats& y, const Floats* t) {
  constexpr float zero = 1.4616321325302124f, rest = 1.2438149938918909e-08f;
  constexpr float series[] = {1.0f / 240, -1.0f / 252, 1.0f / 120, -1.0f / 12};
  constexpr float terms[] = {-0.006438618525862694f, -0.011485431343317032f, -0.011538918130099773f,
                             0.0007820448954589665f, -0.01182535383850336f, 0.007909557782113552f,
                             -0.044121161103248596f, 0.046333275735378265f, -0.15807892382144928f,
                             0.19878435134887695f, -0.7822171449661255f, 0.7853075265884399f};
  s.fill(t[5], 1.0f);
  s.div(t[5], t[5], y);
  s.mul(t[4], t[5], t[5]);
  s.polynomial(t[6], t[4], series);
  s.mul(t[6], t[6], t[4]);
  s.axpy(t[6], t[5], -0.5f);
  s.ln(t[4], y);
  s.add(t[6], t[6], t[4]);
  near_two(s, t[3], y, terms, t[4]);
  s.adds(t[4], y, -zero);
  s.adds(t[4], t[4], -rest);
  s.mul(t[3], t[3], t[4]);
  s.below(t[5], y, GAMMA_SPLIT);
  s.choose(t[3], t[5], t[3], t[6], t[4]);
}

// Below 1/2 it is that of 1 - x, less pi cot(pi x) = 1/r - r p(r^2) of the distance r to the nearest
// integer. An integer below 0, where the two sides of the pole differ, has no number.
struct DerivedLogGamma {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr int32_t no_number = 0x7fc00000;
    constexpr float cotangent[] = {6.06501579284668f,  0.00011869561421917751f, 2.4643895626068115f,
                                   1.9446767568588257f, 2.0119216442108154f, 2.0345661640167236f,
                                   2.1646478176116943f, 3.289868116378784f};
    const Floats &y = t[0], &other = t[1], &below = t[2], &r = t[3];
    s.maxs(t[4], x, GAMMA_LEAST);
    s.below(below, t[4], 0.5f);
    s.rsubs(y, t[4], 1.0f);
    s.max(y, y, t[4]);
    from_integer(s, r, t[4]);
    s.mul(t[5], r, r);
    s.polynomial(t[6], t[5], cotangent);
    s.mul(t[6], t[6], r);
    s.fill(t[5], 1.0f);
    s.div(t[5], t[5], r);
    s.sub(other, t[5], t[6]);
    s.masked(other, other, below);
    s.below(t[4], t[4], -0.5f);
    s.abs(r, r);
    s.below(r, r, 0x1p-149f);
    s.masked(t[4], t[4], r);
    s.fill(t[5].template ReinterpretCast<int32_t>(), no_number);
    s.masked(t[4], t[5], t[4]);
    s.add(other, other, t[4]);
    positive_digamma(s, y, t);
    s.sub(d, t[3], other);
  }
};

}  // namespace detail

CUBECORE_OF_ONE(Digamma, 7, detail::DerivedLogGamma())
CUBECORE_OF_ONE(Lgamma, 8, detail::LogGamma())

}  // namespace AscendC
