// Pages: Sin, Cos, SinCos, Tan, Asin, Acos, Atan.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

// x less the nearest multiple k of pi/2: t0 and, of its rounding, t1; t2 is k. Parts of pi/2 have
// eight bits, so that their products with k are exact up to |x| = 65504 (the pages' range).
inline void reduced(const Steps& s, const Floats& x, const Floats* t) {
  constexpr float parts[] = {1.5703125f,
                             0.000484466552734375f,
                             -6.407499313354492e-07f,
                             9.89530235528946e-10f,
                             2.5579538487363607e-12f,
                             5.390302953474238e-15f};
  s.muls(t[2], x, 0.63661977236758134308f);
  s.cast(t[2], t[2], RoundMode::CAST_RINT);
  s.adds(t[0], x, 0.0f);
  s.axpy(t[0], t[2], -parts[0]);
  s.axpy(t[0], t[2], -parts[1]);
  s.muls(t[1], t[2], parts[2]);
  s.sub(t[3], t[0], t[1]);
  s.sub(t[0], t[0], t[3]);
  s.sub(t[1], t[0], t[1]);
  s.axpy(t[1], t[2], -parts[3]);
  s.add(t[0], t[3], t[1]);
  s.sub(t[3], t[0], t[3]);
  s.sub(t[1], t[1], t[3]);
  s.axpy(t[1], t[2], -parts[4]);
  s.axpy(t[1], t[2], -parts[5]);
}

// The sine of t0 + t1 into t4 and the cosine into t5, both up to a quarter turn's half; t3 is t0^2.
inline void sine_and_cosine(const Steps& s, const Floats* t) {
  constexpr float sine[] = {-0.0001951463200384751f, 0.008332155644893646f, -0.16666655242443085f};
  constexpr float cosine[] = {2.4432414647890255e-05f, -0.0013887309469282627f,
                              0.04166664555668831f};
  s.mul(t[3], t[0], t[0]);
  s.polynomial(t[4], t[3], cosine);
  s.mul(t[4], t[4], t[3]);
  s.mul(t[4], t[4], t[3]);
  s.mul(t[5], t[0], t[1]);
  s.sub(t[4], t[4], t[5]);
  s.muls(t[5], t[3], -0.5f);
  s.adds(t[5], t[5], 1.0f);
  s.mul(t[1], t[1], t[5]);
  s.add(t[5], t[5], t[4]);
  s.polynomial(t[4], t[3], sine);
  s.mul(t[4], t[4], t[3]);
  s.mul(t[4], t[4], t[0]);
  s.add(t[4], t[4], t[1]);
  s.add(t[4], t[4], t[0]);
}

// What is left of half of `of` over a whole number, which goes into `whole`.
inline void rest_of_half(const Steps& s, const Floats& rest, const Floats& of,
                         const Floats& whole) {
  s.muls(rest, of, 0.5f);
  s.cast(whole, rest, RoundMode::CAST_FLOOR);
  s.sub(rest, rest, whole);
}

// Of k in `turns`: whether it is odd (0 or 1) into `odd`, and (-1)^(k div 2) into `turns`.
inline void phase(const Steps& s, const Floats& turns, const Floats& odd, const Floats& whole) {
  rest_of_half(s, odd, turns, whole);
  s.muls(odd, odd, 2.0f);
  rest_of_half(s, turns, whole, whole);
  s.muls(turns, turns, -4.0f);
  s.adds(turns, turns, 1.0f);
}

// The sine of x and `ahead` quarter turns.
template <int ahead>
struct Wave {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    reduced(s, x, t);
    sine_and_cosine(s, t);
    if constexpr (ahead != 0) s.adds(t[2], t[2], static_cast<float>(ahead));
    phase(s, t[2], t[0], t[1]);
    s.mul(t[5], t[5], t[0]);
    s.rsubs(t[0], t[0], 1.0f);
    s.mul(t[4], t[4], t[0]);
    s.add(t[4], t[4], t[5]);
    s.mul(d, t[4], t[2]);
  }
};

// Where k is odd, -1 over the tangent of the rest.
struct Tangent {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float terms[] = {0.009406058117747307f, 0.003085595555603504f, 0.024451162666082382f,
                               0.05340549722313881f,  0.1333886831998825f,   0.33333155512809753f};
    reduced(s, x, t);
    s.mul(t[3], t[0], t[0]);
    s.polynomial(t[4], t[3], terms);
    s.mul(t[4], t[4], t[3]);
    s.mul(t[4], t[4], t[0]);
    s.adds(t[3], t[3], 1.0f);
    s.mul(t[1], t[1], t[3]);
    s.add(t[4], t[4], t[1]);
    s.add(t[4], t[4], t[0]);
    phase(s, t[2], t[0], t[1]);
    s.rsubs(t[1], t[0], 1.0f);
    s.mul(t[2], t[4], t[1]);
    s.sub(t[2], t[2], t[0]);
    s.mul(t[4], t[4], t[0]);
    s.add(t[4], t[4], t[1]);
    s.div(d, t[2], t[4]);
  }
};

// The arc tangent of x in [-1, 1]; `d` is not `x`.
inline void small_arc_tangent(const Steps& s, const Floats& d, const Floats& x,
                              const Floats& square) {
  constexpr float terms[] = {-0.001793561619706452f, 0.010914350859820843f, -0.031177397817373276f,
                             0.05795717239379883f,   -0.0840342715382576f,  0.10952178388834f,
                             -0.14264240860939026f,  0.19998547434806824f,  -0.33333298563957214f};
  s.mul(square, x, x);
  s.polynomial(d, square, terms);
  s.mul(d, d, square);
  s.mul(d, d, x);
  s.add(d, d, x);
}

constexpr float QUARTER = 1.57079632679489661923f;

// The angle in [0, pi/2] whose tangent is y / x of two that are not negative; `t0` becomes 1 where
// y > x, else 0, and `t1` the angle to the nearer axis.
inline void nearer_angle(const Steps& s, const Floats& y, const Floats& x, const Floats* t) {
  constexpr float huge = 0x1p126f;
  s.min(t[0], y, x);
  s.max(t[2], y, x);
  s.div(t[0], t[0], t[2]);
  small_arc_tangent(s, t[1], t[0], t[2]);
  s.sub(t[0], y, x);
  s.muls(t[0], t[0], huge);
  s.clamp(t[0], t[0], 0.0f, 1.0f);
}

struct ArcTangent {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    s.abs(t[3], x);
    s.fill(t[4], 1.0f);
    nearer_angle(s, t[3], t[4], t);
    s.muls(t[2], t[0], QUARTER);
    s.muls(t[0], t[0], -2.0f);
    s.adds(t[0], t[0], 1.0f);
    s.mul(t[1], t[1], t[0]);
    s.add(t[1], t[1], t[2]);
    s.copy_sign(d, t[1], x, t[2]);
  }
};

// sqrt((1 - |x|) (1 + |x|)); |x| into `size`.
inline void opposite(const Steps& s, const Floats& d, const Floats& x, const Floats& size,
                     const Floats& scratch) {
  s.abs(size, x);
  s.rsubs(scratch, size, 1.0f);
  s.adds(d, size, 1.0f);
  s.mul(d, d, scratch);
  s.sqrt(d, d);
}

// 2 atan(x / (1 + sqrt(1 - x^2)))
struct ArcSine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    opposite(s, t[0], x, t[1], t[2]);
    s.adds(t[0], t[0], 1.0f);
    s.div(t[0], x, t[0]);
    small_arc_tangent(s, t[1], t[0], t[2]);
    s.muls(d, t[1], 2.0f);
  }
};

// The angle of (x, sqrt(1 - x^2)): from the axis that is nearer.
struct ArcCosine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    opposite(s, t[3], x, t[4], t[0]);
    nearer_angle(s, t[4], t[3], t);
    s.signed_one(t[3], x, t[4]);
    s.mul(t[4], t[3], t[0]);
    s.muls(t[4], t[4], -QUARTER);
    s.adds(t[4], t[4], QUARTER);
    s.muls(t[0], t[0], 2.0f);
    s.adds(t[0], t[0], -1.0f);
    s.mul(t[0], t[0], t[3]);
    s.mul(t[1], t[1], t[0]);
    s.add(d, t[1], t[4]);
  }
};

}  // namespace detail

CUBECORE_OF_WAYS(Sin, 6, detail::Wave<0>(), defaultSinConfig, POLYNOMIAL_APPROXIMATION,
                 RADIAN_REDUCTION)
CUBECORE_OF_WAYS(Cos, 6, detail::Wave<1>(), defaultCosConfig, POLYNOMIAL_APPROXIMATION,
                 RADIAN_REDUCTION)
CUBECORE_OF_ONE(Tan, 5, detail::Tangent())
CUBECORE_OF_ONE(Asin, 3, detail::ArcSine())
CUBECORE_OF_ONE(Acos, 5, detail::ArcCosine())
CUBECORE_OF_WAYS(Atan, 5, detail::ArcTangent(), defaultAtanConfig, TAYLOR_EXPANSION,
                 POLYNOMIAL_APPROXIMATION)
#undef CUBECORE_OF_WAYS
#undef CUBECORE_OF_ONE
#undef CUBECORE_FORMS

}  // namespace AscendC
