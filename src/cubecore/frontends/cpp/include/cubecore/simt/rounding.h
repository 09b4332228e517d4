// What functions of mathematics stand on: rounding to integers and to narrower floats, and series.
#pragma once

#include <cfenv>
#include <cmath>
#include <limits>

#include "cubecore/simt/warp.h"

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

namespace cubecore::simt {

// Ties to even, ties away, down, up, toward 0, and to the odd neighbour.
enum class Round { RN, RNA, RD, RU, RZ, RO };

inline bool saturates() { return cubecore_simt_saturates; }

inline long double whole_of(long double x, Round how) {
  switch (how) {
    case Round::RN:
      return std::nearbyint(x);
    case Round::RNA:
      return std::round(x);
    case Round::RD:
      return std::floor(x);
    case Round::RU:
      return std::ceil(x);
    case Round::RZ:
      return std::trunc(x);
    default: {
      const long double whole = std::trunc(x);
      const bool is_even = std::fmod(whole, 2.0L) == 0;
      return whole == x || !is_even ? whole : whole + (std::signbit(x) ? -1 : 1);
    }
  }
}

// NaN is 0, and what is out of range the nearest integer.
template <typename I, typename T>
inline I integer_of(T x, Round how) {
  const long double wide = static_cast<long double>(static_cast<float>(x));
  if (wide != wide) return 0;
  const long double whole = whole_of(wide, how);
  if (whole <= static_cast<long double>(std::numeric_limits<I>::min()))
    return std::numeric_limits<I>::min();
  if (whole >= static_cast<long double>(std::numeric_limits<I>::max()))
    return std::numeric_limits<I>::max();
  return static_cast<I>(whole);
}

template <typename T>
struct Format;
template <int E, int M>
struct Format<Float16<E, M>> {
  static constexpr int mantissa = M, least = 2 - (1 << (E - 1)), most = (1 << (E - 1)) - 1;
};
template <>
struct Format<float> {
  static constexpr int mantissa = 23, least = -126, most = 127;
};

// A number in a narrower format: rounded as if exponents had no end, and then infinite, or the
// largest number and 0 for NaN where it saturates.
template <typename T, typename V>
inline T real_of(V x, Round how, bool saturating) {
  using F = Format<T>;
  long double wide;
  if constexpr (std::is_integral_v<V>)
    wide = static_cast<long double>(x);
  else
    wide = static_cast<long double>(static_cast<float>(x));
  if (wide != wide) return saturating ? T(0.0f) : T(std::numeric_limits<float>::quiet_NaN());
  if (wide == 0) return T(static_cast<float>(wide));
  int power = std::max(std::isinf(wide) ? F::most + 1 : std::ilogb(wide), F::least);
  const long double largest = std::ldexp(2.0L - std::ldexp(1.0L, -F::mantissa), F::most);
  long double rounded = std::isinf(wide) ? wide
                                         : std::ldexp(whole_of(std::ldexp(wide, F::mantissa - power), how),
                                                      power - F::mantissa);
  if (std::fabs(rounded) > largest)
    rounded = std::copysign(saturating ? largest : std::numeric_limits<long double>::infinity(), wide);
  return T(static_cast<float>(rounded));
}

template <typename T>
inline T reversed(T x) {
  T turned = 0;
  for (unsigned n = 0; n < 8 * sizeof(T); ++n) turned |= (x >> n & 1) << (8 * sizeof(T) - 1 - n);
  return turned;
}
inline unsigned chosen_bytes(unsigned x, unsigned y, unsigned s) {
  const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
  unsigned made = 0;
  for (int n = 0; n < 4; ++n)
    made |= static_cast<unsigned>(both >> (s >> 4 * n & 7) * 8 & 0xFF) << 8 * n;
  return made;
}
inline int low_24(int x) { return static_cast<int>(static_cast<unsigned>(x) << 8) >> 8; }

inline double square(double x) { return x * x; }
inline double sum_of_squares(int n, const float* a) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += square(a[i]);
  return sum;
}
template <typename T>
inline T relu(T x) {
  return static_cast<float>(x) < 0 ? T(0.0f) : x;
}
// Of 0 and -0 the larger is 0; a NaN is left aside.
template <typename T>
inline T greatest(T x, T y) {
  const float a = x, b = y;
  if (a != a) return y;
  if (b != b) return x;
  return a > b || (a == b && !std::signbit(a)) ? x : y;
}
template <typename T>
inline T least(T x, T y) {
  const float a = x, b = y;
  if (a != a) return y;
  if (b != b) return x;
  return a < b || (a == b && std::signbit(a)) ? x : y;
}

// Sine or cosine of x times pi.
inline float half_turns(float x, bool cosine) {
  const double turned = std::remainder(static_cast<double>(x), 2.0);
  const double quarter = 2 * turned;
  if (quarter == std::nearbyint(quarter)) {
    const int n = (static_cast<int>(quarter) % 4 + 4) % 4;
    const float sines[] = {0, 1, 0, -1};
    if (!cosine && n % 2 == 0) return std::copysign(0.0f, x);
    return sines[(n + cosine) % 4];
  }
  const double angle = turned * 3.14159265358979323846;
  return static_cast<float>(cosine ? std::cos(angle) : std::sin(angle));
}

// Modified Bessel functions, as their power series; beyond it the asymptotic one.
inline double bessel_i(int order, double x) {
  const double sign = order == 1 && x < 0 ? -1 : 1;
  x = std::fabs(x);
  if (x > 40) {
    if (x > 95) return sign * std::numeric_limits<double>::infinity();
    double term = 1, sum = 1, mu = 4.0 * order * order;
    for (int k = 1; k < 12; ++k) {
      term *= -(mu - square(2.0 * k - 1)) / (k * 8 * x);
      sum += term;
    }
    return sign * sum * std::exp(x) / std::sqrt(2 * 3.14159265358979323846 * x);
  }
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 200; ++k) {
    term *= square(x / 2) / (k * (k + static_cast<double>(order)));
    sum += term;
  }
  return sign * sum;
}

// The x that erfc maps to y, by Newton's steps from an approximation of its logarithm.
inline double erfc_inverse(double y) {
  if (!(y >= 0 && y <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (y == 0 || y == 2) return (y == 0 ? 1 : -1) * std::numeric_limits<double>::infinity();
  const bool upper = y > 1;
  if (upper) y = 2 - y;
  const double t = std::sqrt(-2 * std::log(y / 2));
  double x = 0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  x = -x;
  for (int n = 0; n < 4; ++n) {
    const double error = std::erfc(x) - y;
    const double slope = 1.12837916709551257 * std::exp(-x * x);
    x += error / (slope - x * error);
  }
  return upper ? -x : x;
}
inline double erf_inverse(double x) {
  if (x == 0) return x;
  if (std::fabs(x) > 0.5) return x > 0 ? erfc_inverse(1 - x) : -erfc_inverse(1 + x);
  double y = x * 0.88622692545275801;
  for (int n = 0; n < 6; ++n) y -= (std::erf(y) - x) / (1.12837916709551257 * std::exp(-y * y));
  return y;
}
inline double scaled_erfc(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double inverse = 1 / (x * x);
  return (1 - inverse / 2 + 3 * inverse * inverse / 4) / (x * 1.77245385090551603);
}

}  // namespace cubecore::simt
