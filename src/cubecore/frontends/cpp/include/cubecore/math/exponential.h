// Exponentials, logarithms and what is made of them. Pages: Exp (with a Taylor series), Log, Log2,
// Log10, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Erfc, Power, Fmod, Sigmoid.
#pragma once

#include "cubecore/math/steps.h"

namespace AscendC {

namespace detail {

// The integer part by the instruction, the rest by `level` terms of the series.
template <uint8_t level>
struct Exponential {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    if constexpr (level == 0) {
      steps.exp(d, x);
    } else {
      steps.cast(t[0], x, RoundMode::CAST_FLOOR);
      steps.sub(t[1], x, t[0]);
      steps.exp(t[0], t[0]);
      steps.fill(t[2], 1.0f);
      for (uint32_t n = level; n >= 1; --n) {  // 1 + r/1 (1 + r/2 (1 + ...))
        steps.mul(t[2], t[2], t[1]);
        steps.muls(t[2], t[2], 1.0f / static_cast<float>(n));
        steps.adds(t[2], t[2], 1.0f);
      }
      steps.mul(d, t[0], t[2]);
    }
  }
};

template <int base>
struct Logarithm {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats*) const {
    steps.ln(d, x);
    if constexpr (base == 2) steps.muls(d, d, 1.44269504088896340736f);
    if constexpr (base == 10) steps.muls(d, d, 0.43429448190325182765f);
  }
};

struct HyperbolicSine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float ln2 = 0.69314718055994530942f;  // e^(x - ln 2) does not overflow early
    steps.adds(t[0], x, -ln2);
    steps.exp(t[0], t[0]);
    steps.muls(t[1], x, -1.0f);
    steps.adds(t[1], t[1], -ln2);
    steps.exp(t[1], t[1]);
    steps.sub(d, t[0], t[1]);
  }
};

struct HyperbolicCosine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float ln2 = 0.69314718055994530942f;
    steps.adds(t[0], x, -ln2);
    steps.exp(t[0], t[0]);
    steps.muls(t[1], x, -1.0f);
    steps.adds(t[1], t[1], -ln2);
    steps.exp(t[1], t[1]);
    steps.add(d, t[0], t[1]);
  }
};

// 1 - 2 / (e^2x + 1)
struct HyperbolicTangent {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.mins(t[0], x, 15.0f);
    steps.maxs(t[0], t[0], -15.0f);
    steps.muls(t[0], t[0], 2.0f);
    steps.exp(t[0], t[0]);
    steps.adds(t[1], t[0], 1.0f);
    steps.adds(t[0], t[0], -1.0f);
    steps.div(d, t[0], t[1]);
  }
};

// sign(x) ln(|x| + sqrt(x^2 + 1))
struct AreaSine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.abs(t[0], x);
    steps.mul(t[1], t[0], t[0]);
    steps.adds(t[1], t[1], 1.0f);
    steps.sqrt(t[1], t[1]);
    steps.add(t[0], t[0], t[1]);
    steps.ln(t[0], t[0]);
    steps.sign(t[1], x);
    steps.mul(d, t[0], t[1]);
  }
};

// ln(x + sqrt((x - 1) (x + 1)))
struct AreaCosine {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.adds(t[0], x, -1.0f);
    steps.adds(t[1], x, 1.0f);
    steps.mul(t[0], t[0], t[1]);
    steps.sqrt(t[0], t[0]);
    steps.add(t[0], t[0], x);
    steps.ln(d, t[0]);
  }
};

struct AreaTangent {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.adds(t[0], x, 1.0f);
    steps.muls(t[1], x, -1.0f);
    steps.adds(t[1], t[1], 1.0f);
    steps.div(t[0], t[0], t[1]);
    steps.ln(t[0], t[0]);
    steps.muls(d, t[0], 0.5f);
  }
};

// Abramowitz and Stegun 7.1.26: t0 is what 1 lacks to erf(|x|); the error is at most 1.5e-7.
inline void error_tail(const Steps& steps, const Floats& x, const Floats* t) {
  constexpr float terms[] = {1.061405429f,  -1.453152027f, 1.421413741f,
                             -0.284496736f, 0.254829592f,  0.0f};
  steps.abs(t[1], x);
  steps.muls(t[0], t[1], 0.3275911f);
  steps.adds(t[0], t[0], 1.0f);
  steps.fill(t[2], 1.0f);
  steps.div(t[2], t[2], t[0]);
  steps.polynomial(t[0], t[2], terms);
  steps.mul(t[1], t[1], t[1]);
  steps.muls(t[1], t[1], -1.0f);
  steps.exp(t[1], t[1]);
  steps.mul(t[0], t[0], t[1]);
}

struct ErrorFunction {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    error_tail(steps, x, t);
    steps.muls(t[0], t[0], -1.0f);
    steps.adds(t[0], t[0], 1.0f);
    steps.sign(t[1], x);
    steps.mul(d, t[0], t[1]);
  }
};

// erfc(x) is the tail for x >= 0, and 2 less it below.
struct ErrorComplement {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    error_tail(steps, x, t);
    steps.sign(t[1], x);
    steps.mul(t[0], t[0], t[1]);
    steps.mul(t[2], t[1], t[1]);  // 0 for x = 0, whose tail is 1
    steps.sub(t[2], t[2], t[1]);
    steps.add(t[0], t[0], t[2]);
    steps.sign(t[1], x);
    steps.mul(t[1], t[1], t[1]);
    steps.muls(t[1], t[1], -1.0f);
    steps.adds(t[1], t[1], 1.0f);
    steps.add(d, t[0], t[1]);
  }
};

struct Logistic {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.muls(t[0], x, -1.0f);
    steps.exp(t[0], t[0]);
    steps.adds(t[0], t[0], 1.0f);
    steps.fill(t[1], 1.0f);
    steps.div(d, t[1], t[0]);
  }
};

// b^e as exp(e ln|b|), with the sign of an odd e; no number for b < 0 and e not whole.
struct Powered {
  void operator()(const Steps& steps, const Floats& d, const Floats& b, const Floats& e,
                  const Floats* t) const {
    steps.sign(t[0], b);  // t0 becomes 1 for b < 0, else 0
    steps.mins(t[0], t[0], 0.0f);
    steps.muls(t[0], t[0], -1.0f);
    steps.cast(t[1], e, RoundMode::CAST_FLOOR);
    steps.sub(t[2], e, t[1]);
    steps.sign(t[2], t[2]);  // 1 where e is not whole
    steps.muls(t[3], t[1], 0.5f);
    steps.cast(t[4], t[3], RoundMode::CAST_FLOOR);
    steps.sub(t[3], t[3], t[4]);  // 0.5 where e is odd
    steps.mul(t[3], t[3], t[0]);
    steps.muls(t[3], t[3], -4.0f);
    steps.adds(t[3], t[3], 1.0f);  // -1 where the result is negative
    steps.mul(t[2], t[2], t[0]);
    steps.muls(t[2], t[2], -2.0f);
    steps.adds(t[2], t[2], 1.0f);
    steps.ln(t[2], t[2]);  // ln(-1) is no number
    steps.abs(t[1], b);
    steps.ln(t[1], t[1]);
    steps.maxs(t[1], t[1], -1e30f);  // ln 0 times 0 would be no number
    steps.mul(t[1], t[1], e);
    steps.exp(t[1], t[1]);
    steps.mul(t[1], t[1], t[3]);
    steps.add(d, t[1], t[2]);
  }
};

// b^e of integers, e not negative: a square for each bit of e, taken where the bit is set.
struct WholePowered {
  using Integers = LocalTensor<int32_t>;
  void operator()(const Steps& steps, const Integers& d, const Integers& b, const Integers& e,
                  const Floats* t) const {
    Integers square = t[0].template ReinterpretCast<int32_t>();
    Integers left = t[1].template ReinterpretCast<int32_t>();
    Integers half = t[2].template ReinterpretCast<int32_t>();
    Integers bit = t[3].template ReinterpretCast<int32_t>();
    steps.adds(square, b, 0);
    steps.adds(left, e, 0);
    steps.fill(d, 1);
    for (int32_t n = 0; n < 31; ++n) {
      steps.halve(half, left);
      steps.muls(bit, half, -2);
      steps.add(bit, left, bit);
      steps.adds(left, half, 0);
      steps.adds(half, square, -1);
      steps.mul(half, half, bit);
      steps.adds(half, half, 1);
      steps.mul(d, d, half);
      steps.mul(square, square, square);
    }
  }
};

// x - trunc(x / y) y, twice: the first quotient may be off by one.
struct Remainder {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats& y,
                  const Floats* t) const {
    steps.div(t[0], x, y);
    steps.cast(t[0], t[0], RoundMode::CAST_TRUNC);
    steps.mul(t[0], t[0], y);
    steps.sub(t[1], x, t[0]);
    steps.div(t[0], t[1], y);
    steps.cast(t[0], t[0], RoundMode::CAST_TRUNC);
    steps.mul(t[0], t[0], y);
    steps.sub(d, t[1], t[0]);
  }
};

}  // namespace detail

template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
inline void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, CUBECORE_AT) {
  detail::of_one<3>(dstLocal, srcLocal, sharedTmpBuffer, calCount, at,
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
CUBECORE_OF_ONE(Sinh, 2, detail::HyperbolicSine())
CUBECORE_OF_ONE(Cosh, 2, detail::HyperbolicCosine())
CUBECORE_OF_ONE(Tanh, 2, detail::HyperbolicTangent())
CUBECORE_OF_ONE(Asinh, 2, detail::AreaSine())
CUBECORE_OF_ONE(Acosh, 2, detail::AreaCosine())
CUBECORE_OF_ONE(Atanh, 2, detail::AreaTangent())
CUBECORE_OF_ONE(Erf, 3, detail::ErrorFunction())
CUBECORE_OF_ONE(Erfc, 3, detail::ErrorComplement())
CUBECORE_OF_ONE(Sigmoid, 2, detail::Logistic())

// Page Power: the ways to compute it; cubecore has one.
enum class PowerAlgo { INTRINSIC = 0, DOUBLE_FLOAT_TECH = 1 };
struct PowerConfig {
  PowerAlgo algo = PowerAlgo::INTRINSIC;
};
constexpr PowerConfig defaultPowerConfig = {};

namespace detail {

template <typename T>
inline void power(const LocalTensor<T>& dst, const LocalTensor<T>& base, const LocalTensor<T>& by,
                  const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at) {
  constexpr bool whole = std::is_same_v<PrimT<T>, int32_t>;
  static_assert(whole || std::is_same_v<PrimT<T>, float> || std::is_same_v<PrimT<T>, half>,
                "Power must take half, float or int32_t, got another type");
  if constexpr (whole)
    of_two<4>(dst, base, by, given, count, at, WholePowered());
  else
    of_two<5>(dst, base, by, given, count, at, Powered());
}
// One of the two is a number: it fills the first part of the workspace, as long as a turn.
template <bool first, typename T>
inline void power_of(const LocalTensor<T>& dst, const LocalTensor<T>& other, T value,
                     const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at) {
  constexpr uint32_t parts = 10;
  uint32_t lanes = given.GetSize() / parts / 4 / LANES * LANES;
  if (lanes == 0) refuse_workspace(parts, given.GetSize(), at);
  lanes = lanes < count ? lanes : count;
  LocalTensor<T> filled = given.template ReinterpretCast<T>();
  Duplicate(filled, value, static_cast<int32_t>(lanes), at);
  barrier(PIPE_V, at);
  uint32_t taken = (lanes * 4 + 255) / 256 * 256;
  LocalTensor<uint8_t> rest = given[taken];
  rest.SetSize(given.GetSize() - taken);
  for (uint32_t done = 0; done < count; done += lanes) {
    uint32_t turn = lanes < count - done ? lanes : count - done;
    if constexpr (first)
      power(dst[done], filled, other[done], rest, turn, at);
    else
      power(dst[done], other[done], filled, rest, turn, at);
  }
}

}  // namespace detail

#define CUBECORE_POWER(FIRST, SECOND, SIZED, CALL)                                                 \
  template <typename T, bool isReuseSource = false,                                                \
            const PowerConfig& config = defaultPowerConfig>                                        \
  inline void Power(const LocalTensor<T>& dst, FIRST, SECOND,                                      \
                    const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount, CUBECORE_AT) { \
    CALL(sharedTmpBuffer, calCount);                                                               \
  }                                                                                                \
  template <typename T, bool isReuseSource = false,                                                \
            const PowerConfig& config = defaultPowerConfig>                                        \
  inline void Power(const LocalTensor<T>& dst, FIRST, SECOND,                                      \
                    const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {                    \
    CALL(sharedTmpBuffer, SIZED.GetSize());                                                        \
  }                                                                                                \
  template <typename T, bool isReuseSource = false,                                                \
            const PowerConfig& config = defaultPowerConfig>                                        \
  inline void Power(const LocalTensor<T>& dst, FIRST, SECOND, uint32_t calCount, CUBECORE_AT) {    \
    CALL(detail::free_memory(), calCount);                                                         \
  }                                                                                                \
  template <typename T, bool isReuseSource = false,                                                \
            const PowerConfig& config = defaultPowerConfig>                                        \
  inline void Power(const LocalTensor<T>& dst, FIRST, SECOND, CUBECORE_AT) {                       \
    CALL(detail::free_memory(), SIZED.GetSize());                                                  \
  }
#define CUBECORE_BOTH(TMP, COUNT) detail::power(dst, src0, src1, TMP, COUNT, at)
#define CUBECORE_BASE(TMP, COUNT) detail::power_of<false>(dst, src0, src1, TMP, COUNT, at)
#define CUBECORE_EXPONENT(TMP, COUNT) detail::power_of<true>(dst, src1, src0, TMP, COUNT, at)
CUBECORE_POWER(const LocalTensor<T>& src0, const LocalTensor<T>& src1, src0, CUBECORE_BOTH)
CUBECORE_POWER(const LocalTensor<T>& src0, const T& src1, src0, CUBECORE_BASE)
CUBECORE_POWER(const T& src0, const LocalTensor<T>& src1, src1, CUBECORE_EXPONENT)
#undef CUBECORE_POWER
#undef CUBECORE_BOTH
#undef CUBECORE_BASE
#undef CUBECORE_EXPONENT

// Page Fmod.
constexpr uint32_t FMOD_ITERATION_NUM_MAX = 11;
enum class FmodAlgo { NORMAL = 0, ITERATION_COMPENSATION = 1 };
struct FmodConfig {
  FmodAlgo algo = FmodAlgo::NORMAL;
  uint32_t iterationNum = FMOD_ITERATION_NUM_MAX;
};
constexpr FmodConfig DEFAULT_FMOD_CONFIG = {};

template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                 CUBECORE_AT) {
  detail::of_two<2>(dst, src0, src1, sharedTmpBuffer, calCount, at, detail::Remainder());
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, sharedTmpBuffer, src0.GetSize(), at);
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const uint32_t calCount, CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, detail::free_memory(), calCount, at);
}
template <typename T, bool isReuseSource = false, const FmodConfig& config = DEFAULT_FMOD_CONFIG>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 CUBECORE_AT) {
  Fmod<T>(dst, src0, src1, detail::free_memory(), src0.GetSize(), at);
}

}  // namespace AscendC
