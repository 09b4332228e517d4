// Exponentials, logarithms and what is made of them. Pages: Exp (with a Taylor series), Log, Log2,
// Log10, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Sigmoid.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

// The integer part by the instruction, the rest by `level` terms of the series, whose sum is in two
// parts.
template <uint8_t level>
struct Exponential {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float far = 200.0f;  // e^-far is 0, and infinity has no integer part
    constexpr float most = 88.0f;  // e^most is a number, e^(most + 1) is none
    const Floats &whole = t[0], &rest = t[1], &series = t[2], &sum = t[3], &part = t[4];
    if constexpr (level == 0) {
      s.exp(d, x);
    } else {
      s.clamp(series, x, -far, most + 1.0f);
      s.cast(whole, series, RoundMode::CAST_FLOOR);
      s.mins(whole, whole, most);
      s.sub(rest, series, whole);
      s.add(part, rest, whole);
      s.sub(part, series, part);  // what the rest lost
      s.fill(series, level == 1 ? 0.0f : 1.0f);
      for (uint32_t n = level; n > 1; --n) {  // r/2 (1 + r/3 (1 + ...))
        s.mul(series, series, rest);
        s.muls(series, series, 1.0f / static_cast<float>(n));
        if (n > 2) s.adds(series, series, 1.0f);
      }
      s.mul(series, series, rest);
      s.add(series, series, part);
      s.adds(sum, rest, 1.0f);
      s.adds(part, sum, -1.0f);
      s.sub(part, rest, part);
      s.add(series, series, part);
      s.add(part, sum, series);
      s.sub(sum, part, sum);
      s.sub(series, series, sum);
      s.exp(whole, whole);
      s.mul(part, part, whole);
      s.mul(series, series, whole);
      s.add(d, part, series);
    }
  }
};

template <int base>
struct Logarithm {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats*) const {
    s.ln(d, x);
    if constexpr (base == 2) s.muls(d, d, 1.44269504088896340736f);
    if constexpr (base == 10) s.muls(d, d, 0.43429448190325182765f);
  }
};

// |x| up to `most` into t1, and e^(|x| - most) into t0, which is exact where it is 1: beyond `most`
// a hyperbolic function is that of `most`, scaled.
inline void scaled_from_most(const Steps& s, const Floats& x, const Floats* t) {
  constexpr float most = 88.0f;
  s.abs(t[0], x);
  s.mins(t[1], t[0], most);
  s.sub(t[0], t[0], t[1]);
  s.exp(t[0], t[0]);
}

struct HyperbolicSine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    scaled_from_most(s, x, t);
    exp_less_one(s, t[1], t[1], t[2], t[3]);  // E: (E + E / (E + 1)) / 2
    s.adds(t[2], t[1], 1.0f);
    s.div(t[2], t[1], t[2]);
    s.add(t[1], t[1], t[2]);
    s.muls(t[1], t[1], 0.5f);
    s.mul(t[1], t[1], t[0]);
    s.copy_sign(d, t[1], x, t[2]);
  }
};

struct HyperbolicCosine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    scaled_from_most(s, x, t);
    s.exp(t[1], t[1]);
    s.fill(t[2], 1.0f);
    s.div(t[2], t[2], t[1]);
    s.add(t[1], t[1], t[2]);
    s.muls(t[1], t[1], 0.5f);
    s.mul(d, t[1], t[0]);
  }
};

// E / (E + 2) with E = e^2|x| - 1; 1 is the nearest from `most` on.
struct HyperbolicTangent {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float most = 20.0f;
    s.abs(t[0], x);
    s.mins(t[0], t[0], most);
    s.add(t[0], t[0], t[0]);
    exp_less_one(s, t[0], t[0], t[1], t[2]);
    s.adds(t[1], t[0], 2.0f);
    sum_error(s, t[2], t[1], t[0], 2.0f, t[3]);
    s.div(t[0], t[0], t[1]);
    s.div(t[2], t[2], t[1]);
    s.mul(t[2], t[2], t[0]);
    s.sub(t[0], t[0], t[2]);
    s.copy_sign(d, t[0], x, t[1]);
  }
};

// sign(x) ln(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))
struct AreaSine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    s.abs(t[0], x);
    s.mul(t[1], t[0], t[0]);
    s.adds(t[2], t[1], 1.0f);
    s.sqrt(t[2], t[2]);
    s.adds(t[2], t[2], 1.0f);
    s.div(t[1], t[1], t[2]);
    s.add(t[0], t[0], t[1]);
    ln_of_one_more(s, t[0], t[0], t[1], t[2], t[3]);
    s.copy_sign(d, t[0], x, t[1]);
  }
};

// Twice the area sine of sqrt((x - 1) / 2).
struct AreaCosine {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    s.adds(t[1], x, -1.0f);
    s.muls(t[1], t[1], 0.5f);
    s.sqrt(t[0], t[1]);
    s.adds(t[2], t[1], 1.0f);
    s.sqrt(t[2], t[2]);
    s.adds(t[2], t[2], 1.0f);
    s.div(t[1], t[1], t[2]);
    s.add(t[0], t[0], t[1]);
    ln_of_one_more(s, t[0], t[0], t[1], t[2], t[3]);
    s.muls(d, t[0], 2.0f);
  }
};

// sign(x) ln(1 + 2|x| / (1 - |x|)) / 2
struct AreaTangent {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    s.abs(t[0], x);
    s.rsubs(t[1], t[0], 1.0f);
    s.add(t[0], t[0], t[0]);
    s.div(t[0], t[0], t[1]);
    ln_of_one_more(s, t[0], t[0], t[1], t[2], t[3]);
    s.muls(t[0], t[0], 0.5f);
    s.copy_sign(d, t[0], x, t[1]);
  }
};

struct Logistic {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    over_one_and_exp(s, d, nullptr, x, nullptr, t[0], t[1]);
  }
};

}  // namespace detail

template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
inline void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, CUBECORE_AT) {
  detail::of_one<5>(dstLocal, srcLocal, sharedTmpBuffer, calCount, at,
                    detail::Exponential<taylorExpandLevel>());
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
inline void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                const uint32_t calCount, CUBECORE_AT) {
  Exp<T, taylorExpandLevel, isReuseSource>(dstLocal, srcLocal, detail::free_memory(), calCount, at);
}

CUBECORE_OF_ONE(Log, 0, detail::Logarithm<0>())
CUBECORE_OF_ONE(Log2, 0, detail::Logarithm<2>())
CUBECORE_OF_ONE(Log10, 0, detail::Logarithm<10>())
CUBECORE_OF_ONE(Sinh, 4, detail::HyperbolicSine())
CUBECORE_OF_ONE(Cosh, 3, detail::HyperbolicCosine())
CUBECORE_OF_WAYS(Tanh, 4, detail::HyperbolicTangent(), DEFAULT_TANH_CONFIG, INTRINSIC,
                 SUBSECTION_COMPENSATION)
CUBECORE_OF_ONE(Asinh, 4, detail::AreaSine())
CUBECORE_OF_ONE(Acosh, 4, detail::AreaCosine())
CUBECORE_OF_ONE(Atanh, 4, detail::AreaTangent())
CUBECORE_OF_ONE(Sigmoid, 2, detail::Logistic())

}  // namespace AscendC
