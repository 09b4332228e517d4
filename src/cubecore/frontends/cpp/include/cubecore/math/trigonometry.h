// Pages: Sin, Cos, SinCos, Tan, Asin, Acos, Atan.
#pragma once

#include "cubecore/math/steps.h"

namespace AscendC {

namespace detail {

// t0 is x less the nearest multiple k of pi, t1 the sign (-1)^k; pi is in three parts, so that
// little is lost up to some 10^4. With `half_turn`, multiples are k + 1/2 (page Cos).
inline void reduced(const Steps& steps, const Floats& x, const Floats* t, bool half_turn) {
  constexpr float parts[] = {3.140625f, 0.0009670257568359375f, 6.2771141529083251953e-7f,
                             1.2154201256553420000e-10f};
  steps.muls(t[1], x, 0.31830988618379067154f);
  if (half_turn) steps.adds(t[1], t[1], -0.5f);
  steps.cast(t[1], t[1], RoundMode::CAST_RINT);
  if (half_turn)
    steps.adds(t[2], t[1], 0.5f);
  else
    steps.adds(t[2], t[1], 0.0f);
  steps.axpy(t[0], x, t[2], -parts[0], t[3]);
  for (uint32_t n = 1; n < 4; ++n) steps.axpy(t[0], t[0], t[2], -parts[n], t[3]);
  steps.muls(t[2], t[1], 0.5f);
  steps.cast(t[3], t[2], RoundMode::CAST_FLOOR);
  steps.sub(t[2], t[2], t[3]);
  steps.muls(t[1], t[2], half_turn ? 4.0f : -4.0f);
  steps.adds(t[1], t[1], half_turn ? -1.0f : 1.0f);
}

// The sine of t0 in [-pi/2, pi/2], times t1.
inline void sine_of(const Steps& steps, const Floats& d, const Floats* t) {
  constexpr float terms[] = {1.6059043836821613e-10f,
                             -2.5052108385441719e-8f,
                             2.7557319223985891e-6f,
                             -1.9841269841269841e-4f,
                             8.3333333333333333e-3f,
                             -0.16666666666666667f,
                             1.0f};
  steps.mul(t[2], t[0], t[0]);
  steps.polynomial(t[3], t[2], terms);
  steps.mul(t[3], t[3], t[0]);
  steps.mul(d, t[3], t[1]);
}

struct Sine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    reduced(steps, x, t, false);
    sine_of(steps, d, t);
  }
};

struct Cosine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    reduced(steps, x, t, true);
    sine_of(steps, d, t);
  }
};

struct Tangent {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    reduced(steps, x, t, false);
    sine_of(steps, t[4], t);
    reduced(steps, x, t, true);
    sine_of(steps, t[5], t);
    steps.div(d, t[4], t[5]);
  }
};

// The arc tangent of t0 into d: halved twice by atan x = 2 atan(x / (1 + sqrt(1 + x^2))), then the
// series. Beyond `far` the first half would overflow; atan is pi/2 there.
inline void arc_tangent(const Steps& steps, const Floats& d, const Floats* t, uint32_t halvings) {
  constexpr float terms[] = {-0.090909090909090909f, 0.11111111111111111f,
                             -0.14285714285714286f,  0.2f,
                             -0.33333333333333333f,  1.0f};
  float scale = 1.0f;
  for (uint32_t n = 0; n < halvings; ++n) {
    steps.mul(t[1], t[0], t[0]);
    steps.adds(t[1], t[1], 1.0f);
    steps.sqrt(t[1], t[1]);
    steps.adds(t[1], t[1], 1.0f);
    steps.div(t[0], t[0], t[1]);
    scale *= 2.0f;
  }
  steps.mul(t[1], t[0], t[0]);
  steps.polynomial(t[2], t[1], terms);
  steps.mul(t[2], t[2], t[0]);
  steps.muls(d, t[2], scale);
}

struct ArcTangent {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float far = 1e15f;
    steps.mins(t[0], x, far);
    steps.maxs(t[0], t[0], -far);
    arc_tangent(steps, d, t, 3);
  }
};

// 2 atan(x / (1 + sqrt(1 - x^2)))
inline void arc_sine(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) {
  steps.muls(t[0], x, -1.0f);
  steps.adds(t[0], t[0], 1.0f);
  steps.adds(t[1], x, 1.0f);
  steps.mul(t[0], t[0], t[1]);
  steps.sqrt(t[0], t[0]);
  steps.adds(t[0], t[0], 1.0f);
  steps.div(t[0], x, t[0]);
  arc_tangent(steps, d, t, 2);
  steps.muls(d, d, 2.0f);
}

struct ArcSine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    arc_sine(steps, d, x, t);
  }
};

struct ArcCosine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    arc_sine(steps, t[3], x, t);
    steps.muls(t[3], t[3], -1.0f);
    steps.adds(d, t[3], 1.57079632679489661923f);
  }
};

}  // namespace detail

CUBECORE_OF_ONE(Sin, 4, detail::Sine())
CUBECORE_OF_ONE(Cos, 4, detail::Cosine())
CUBECORE_OF_ONE(Tan, 6, detail::Tangent())
CUBECORE_OF_ONE(Asin, 3, detail::ArcSine())
CUBECORE_OF_ONE(Acos, 4, detail::ArcCosine())
CUBECORE_OF_ONE(Atan, 3, detail::ArcTangent())
#undef CUBECORE_OF_ONE

}  // namespace AscendC
