// Page Power.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

constexpr float POWER_FAR = 0x1p31f;  // |e ln b| is past every float's range at such exponents

// ln b of |b| in two parts, t0 + t1: b = 2^k m, ln m = 2z + 2/3 z^3 + ... with
// z = (m - 1) / (m + 1), whose first eight bits and their powers are exact.
inline void logarithm_in_two(const Steps& s, const Floats& b, const Floats* t) {
  constexpr float largest = 0x1.fffffep127f, unit = 0x1p23f, grid = 6144.0f;
  constexpr float ln2_high = 0.693145751953125f, ln2_low = 1.4286068203094172321e-6f;
  constexpr float terms[] = {0.234199658036232f, 0.2854708135128021f, 0.40000152587890625f};
  s.abs(t[0], b);
  s.mins(t[0], t[0], largest);
  s.ln(t[1], t[0]);
  s.muls(t[1], t[1], 1.44269504088896340736f);
  s.cast(t[1], t[1], RoundMode::CAST_RINT);
  s.clamp(t[1], t[1], -150.0f, 128.0f);  // k
  s.muls(t[2], t[1], 0.5f);
  s.cast(t[2], t[2], RoundMode::CAST_FLOOR);
  s.sub(t[3], t[1], t[2]);
  for (uint32_t half = 2; half <= 3; ++half) {  // 2^-k in two factors, as their bits
    s.muls(t[half], t[half], -unit);
    s.adds(t[half], t[half], 127.0f * unit);
    s.cast(t[4].template ReinterpretCast<int32_t>(), t[half], RoundMode::CAST_RINT);
    s.mul(t[0], t[0], t[4]);  // m
  }
  s.adds(t[2], t[0], -1.0f);
  s.adds(t[3], t[0], 1.0f);
  s.adds(t[4], t[3], grid);
  s.adds(t[4], t[4], -grid);  // m + 1 but for its last bits,
  s.adds(t[5], t[4], -1.0f);
  s.sub(t[5], t[0], t[5]);  // which are here
  s.div(t[0], t[2], t[3]);
  s.muls(t[6], t[0], 65537.0f);
  s.sub(t[0], t[6], t[0]);
  s.sub(t[6], t[6], t[0]);  // z in eight bits
  s.mul(t[4], t[4], t[6]);
  s.sub(t[2], t[2], t[4]);
  s.mul(t[5], t[5], t[6]);
  s.sub(t[2], t[2], t[5]);
  s.div(t[2], t[2], t[3]);  // the rest of z
  s.add(t[0], t[6], t[2]);
  s.mul(t[3], t[0], t[0]);
  s.mul(t[4], t[6], t[6]);
  s.mul(t[5], t[0], t[6]);
  s.add(t[5], t[5], t[3]);
  s.add(t[5], t[5], t[4]);
  s.mul(t[5], t[5], t[2]);
  s.mul(t[4], t[4], t[6]);
  s.add(t[5], t[5], t[4]);
  s.muls(t[5], t[5], 0.66666666666666667f);
  s.mul(t[0], t[0], t[3]);
  s.mul(t[0], t[0], t[3]);
  s.polynomial(t[4], t[3], terms);
  s.mul(t[4], t[4], t[0]);
  s.add(t[5], t[5], t[4]);  // 2/3 z^3 and on
  s.muls(t[0], t[1], ln2_high);
  s.add(t[6], t[6], t[6]);
  s.add(t[3], t[0], t[6]);
  s.sub(t[0], t[0], t[3]);
  s.add(t[0], t[0], t[6]);
  s.muls(t[1], t[1], ln2_low);
  s.add(t[1], t[1], t[0]);
  s.add(t[2], t[2], t[2]);
  s.add(t[1], t[1], t[2]);
  s.add(t[1], t[1], t[5]);
  s.add(t[0], t[3], t[1]);
  s.sub(t[2], t[0], t[3]);
  s.sub(t[1], t[1], t[2]);
}

// |b|^e into t0 as e^(e ln|b|), the exponent in two parts.
inline void absolute_power(const Steps& s, const Floats& b, const Floats& e, const Floats* t) {
  constexpr float huge = 1e28f, far = 200.0f, most = 88.0f, small = 0x1p-6f;
  logarithm_in_two(s, b, t);
  s.clamp(t[2], e, -POWER_FAR, POWER_FAR);
  s.mul(t[3], t[2], t[0]);
  s.first_half(t[4], t[0]);
  s.sub(t[0], t[0], t[4]);
  s.first_half(t[5], t[2]);
  s.sub(t[6], t[2], t[5]);
  s.mul(t[1], t[1], t[2]);
  s.mul(t[2], t[5], t[4]);
  s.sub(t[2], t[2], t[3]);
  s.mla(t[2], t[5], t[0]);
  s.mla(t[2], t[6], t[4]);
  s.mla(t[2], t[6], t[0]);
  s.add(t[2], t[2], t[1]);
  s.clamp(t[2], t[2], -small, small);
  s.clamp(t[0], e, -POWER_FAR, POWER_FAR);  // of 0 and infinity: e times their logarithm
  s.abs(t[1], b);
  s.ln(t[1], t[1]);
  s.clamp(t[4], t[1], -far, far);
  s.clamp(t[1], t[1], -huge, huge);
  s.sub(t[1], t[1], t[4]);
  s.mul(t[1], t[1], t[0]);
  s.add(t[3], t[3], t[1]);
  s.mins(t[0], t[3], most);
  s.sub(t[1], t[3], t[0]);
  s.exp(t[0], t[0]);
  s.mul(t[2], t[2], t[0]);
  s.add(t[0], t[0], t[2]);
  s.exp(t[1], t[1]);
  s.mul(t[0], t[0], t[1]);
}

// b^e with the sign of an odd e; no number for b < 0 and e not whole, and where either is none.
struct Powered {
  void operator()(const Steps& s, const Floats& d, const Floats& b, const Floats& e,
                  const Floats* t) const {
    constexpr float huge = 0x1p126f;
    absolute_power(s, b, e, t);
    s.clamp(t[1], e, -POWER_FAR, POWER_FAR);
    s.cast(t[2], t[1], RoundMode::CAST_FLOOR);
    s.sub(t[1], t[1], t[2]);  // above 0 where e is not whole
    s.muls(t[2], t[2], 0.5f);
    s.cast(t[3], t[2], RoundMode::CAST_FLOOR);
    s.sub(t[2], t[2], t[3]);  // 1/2 where e is odd
    s.signed_one(t[3], b, t[4]);
    s.adds(t[3], t[3], -1.0f);
    s.mul(t[3], t[3], t[2]);
    s.muls(t[3], t[3], 2.0f);
    s.adds(t[3], t[3], 1.0f);
    s.mul(t[0], t[0], t[3]);
    s.muls(t[3], b, huge);
    s.clamp(t[3], t[3], -1.0f, 0.0f);
    s.mul(t[3], t[3], t[1]);
    s.sqrt(t[3], t[3]);  // 0, or no number
    s.add(d, t[0], t[3]);
  }
};

// b^e of integers, e not negative: a square for each bit of e, taken where the bit is set.
struct WholePowered {
  using Integers = LocalTensor<int32_t>;
  void operator()(const Steps& s, const Integers& d, const Integers& b, const Integers& e,
                  const Floats* t) const {
    Integers square = t[0].template ReinterpretCast<int32_t>();
    Integers left = t[1].template ReinterpretCast<int32_t>();
    Integers half = t[2].template ReinterpretCast<int32_t>();
    Integers bit = t[3].template ReinterpretCast<int32_t>();
    s.adds(square, b, 0);
    s.adds(left, e, 0);
    s.fill(d, 1);
    for (int32_t n = 0; n < 31; ++n) {
      s.halve(half, left);
      s.muls(bit, half, -2);
      s.add(bit, left, bit);
      s.adds(left, half, 0);
      s.adds(half, square, -1);
      s.mul(half, half, bit);
      s.adds(half, half, 1);
      s.mul(d, d, half);
      s.mul(square, square, square);
    }
  }
};

}  // namespace detail

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
    of_two<7>(dst, base, by, given, count, at, Powered());
}
// One of the two is a number: it fills the first part of the workspace, as long as a turn.
template <bool first, typename T>
inline void power_of(const LocalTensor<T>& dst, const LocalTensor<T>& other, T value,
                     const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at) {
  constexpr uint32_t parts = 10;
  uint32_t lanes = given.GetSize() / parts / 4 / LANES * LANES;
  if (lanes == 0) refuse_workspace("sharedTmpBuffer", parts * 256, given.GetSize(), at);
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

}  // namespace AscendC
