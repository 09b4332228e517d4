// Element types that C++ lacks. Arithmetic on `half` and `bfloat16_t` rounds after each operation.
// Page: "内置数据类型" (built-in data types).
#pragma once

#include "cubecore/seam/abi.h"

typedef float float32_t;

namespace cubecore {

constexpr uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }

constexpr float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// float32 to a narrower format of `mantissa` bits with exponent bias `bias`, ties to even.
template <int EXPONENT, int MANTISSA>
constexpr uint16_t narrowed(double value) {
  constexpr int bias = (1 << (EXPONENT - 1)) - 1;
  constexpr int most = (1 << EXPONENT) - 1;
  uint16_t sign = 0;
  if (value != value) return static_cast<uint16_t>((most << MANTISSA) | (1 << (MANTISSA - 1)));
  if (value < 0) {
    sign = static_cast<uint16_t>(1u << (EXPONENT + MANTISSA));
    value = -value;
  }
  if (value == 0) return sign;
  int power = 0;
  double scaled = value;
  if (scaled > 1.7e308) return static_cast<uint16_t>(sign | (most << MANTISSA));
  while (scaled >= 2) {
    scaled /= 2;
    ++power;
  }
  while (scaled < 1 && power > 1 - bias) {
    scaled *= 2;
    --power;
  }
  double units = scaled * (1 << MANTISSA);
  uint64_t whole = static_cast<uint64_t>(units);
  double rest = units - static_cast<double>(whole);
  if (rest > 0.5 || (rest == 0.5 && (whole & 1))) ++whole;
  int64_t field = power + bias;
  if (whole < (1u << MANTISSA)) return static_cast<uint16_t>(sign | whole);
  uint64_t bits = (static_cast<uint64_t>(field) << MANTISSA) + whole - (1u << MANTISSA);
  if (bits >= (static_cast<uint64_t>(most) << MANTISSA))
    bits = static_cast<uint64_t>(most) << MANTISSA;
  return static_cast<uint16_t>(sign | bits);
}

constexpr float widened(uint16_t bits, int exponent, int mantissa) {
  if (exponent == 8) return float_of(static_cast<uint32_t>(bits) << 16);
  uint32_t sign = (bits & 0x8000u) << 16, field = (bits >> mantissa) & 0x1F, low = bits & 0x3FF;
  if (field == 0x1F) return float_of(sign | 0x7F800000u | (low << 13));
  if (field != 0) return float_of(sign | ((field + 112) << 23) | (low << 13));
  float small = static_cast<float>(low) * 5.9604644775390625e-8f;
  return sign != 0 ? -small : small;
}

// A 16-bit float; conversions from and to numbers are implicit, as those of a built-in type.
template <int EXPONENT, int MANTISSA>
struct Float16 {
  uint16_t bits;

  Float16() = default;
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  constexpr Float16(T value) : bits(narrowed<EXPONENT, MANTISSA>(static_cast<double>(value))) {}
  template <int E, int M, std::enable_if_t<E != EXPONENT, int> = 0>
  constexpr explicit Float16(Float16<E, M> other) : Float16(static_cast<float>(other)) {}
  constexpr operator float() const { return widened(bits, EXPONENT, MANTISSA); }
  // Through volatile pointers, which threads have. A copy assignment would make copies no moves of
  // bytes any more; a template is none.
  template <typename T, std::enable_if_t<std::is_same_v<T, Float16>, int> = 0>
  void operator=(const T& value) volatile {
    bits = value.bits;
  }

  constexpr Float16& operator+=(float other) {
    return *this = Float16(static_cast<float>(*this) + other);
  }
  constexpr Float16& operator-=(float other) {
    return *this = Float16(static_cast<float>(*this) - other);
  }
  constexpr Float16& operator*=(float other) {
    return *this = Float16(static_cast<float>(*this) * other);
  }
  constexpr Float16& operator/=(float other) {
    return *this = Float16(static_cast<float>(*this) / other);
  }
  constexpr Float16 operator-() const {
    Float16 made{};
    made.bits = bits ^ 0x8000u;
    return made;
  }
};

#define CUBECORE_ROUNDED(SIGN)                                                            \
  template <int E, int M>                                                                 \
  constexpr Float16<E, M> operator SIGN(const Float16<E, M>& a, const Float16<E, M>& b) { \
    return Float16<E, M>(static_cast<float>(a) SIGN static_cast<float>(b));               \
  }
CUBECORE_ROUNDED(+)
CUBECORE_ROUNDED(-)
CUBECORE_ROUNDED(*)
CUBECORE_ROUNDED(/)
#undef CUBECORE_ROUNDED

// Types that kernels only move: their bits, and no arithmetic.
template <int KIND>
struct Storage {
  uint8_t bits;
  Storage() = default;
  constexpr explicit Storage(int value) : bits(static_cast<uint8_t>(value)) {}
};

}  // namespace cubecore

using half = cubecore::Float16<5, 10>;
using bfloat16_t = cubecore::Float16<8, 7>;
using float16_t = half;
using fp8_e4m3fn_t = cubecore::Storage<0>;
using fp8_e5m2_t = cubecore::Storage<1>;
using fp8_e8m0_t = cubecore::Storage<2>;
using hifloat8_t = cubecore::Storage<3>;
using fp4x2_e2m1_t = cubecore::Storage<4>;
using fp4x2_e1m2_t = cubecore::Storage<5>;
using float8_e4m3_t = fp8_e4m3fn_t;
using float8_e5m2_t = fp8_e5m2_t;
using float8_e8m0_t = fp8_e8m0_t;
using float4_e2m1_t = fp4x2_e2m1_t;
using float4_e1m2_t = fp4x2_e1m2_t;

namespace AscendC {  // public kernels name them both ways
using ::fp8_e4m3fn_t, ::fp8_e5m2_t, ::fp8_e8m0_t, ::hifloat8_t;
}

// Two of them are a byte: an array of n has n / 2 bytes, and addresses are even.
struct int4b_t {
  uint8_t bits;
};
using int4x2_t = int4b_t;

namespace AscendC {
// Page complex32/complex64.
template <typename T>
struct Complex {
  T real, imag;
  Complex() = default;
  constexpr Complex(T re, T im = T(0.0f)) : real(re), imag(im) {}
};
}  // namespace AscendC
using complex32 = AscendC::Complex<half>;
using complex64 = AscendC::Complex<float>;

namespace AscendC {
using int4b_t = ::int4b_t;
using half = ::half;
using bfloat16_t = ::bfloat16_t;
}  // namespace AscendC

namespace cubecore {

#define CUBECORE_ELEMENT(TYPE, NAME, BITS)     \
  template <>                                  \
  struct Element<TYPE> {                       \
    static constexpr const char* name = NAME;  \
    static constexpr const char* word = #TYPE; \
    static constexpr uint32_t bits = BITS;     \
  };
CUBECORE_ELEMENT(half, "float16", 16)
CUBECORE_ELEMENT(bfloat16_t, "bfloat16", 16)
CUBECORE_ELEMENT(float, "float32", 32)
CUBECORE_ELEMENT(double, "int64", 64)
CUBECORE_ELEMENT(bool, "uint8", 8)
CUBECORE_ELEMENT(char, "int8", 8)
CUBECORE_ELEMENT(int8_t, "int8", 8)
CUBECORE_ELEMENT(uint8_t, "uint8", 8)
CUBECORE_ELEMENT(int16_t, "int16", 16)
CUBECORE_ELEMENT(uint16_t, "uint16", 16)
CUBECORE_ELEMENT(int32_t, "int32", 32)
CUBECORE_ELEMENT(uint32_t, "uint32", 32)
CUBECORE_ELEMENT(int64_t, "int64", 64)
CUBECORE_ELEMENT(uint64_t, "uint64", 64)
CUBECORE_ELEMENT(long long, "int64", 64)
CUBECORE_ELEMENT(unsigned long long, "uint64", 64)
CUBECORE_ELEMENT(int4b_t, "int4", 4)
CUBECORE_ELEMENT(fp8_e4m3fn_t, "float8_e4m3fn", 8)
CUBECORE_ELEMENT(fp8_e5m2_t, "float8_e5m2", 8)
CUBECORE_ELEMENT(fp8_e8m0_t, "float8_e8m0fnu", 8)
CUBECORE_ELEMENT(hifloat8_t, "hifloat8", 8)
CUBECORE_ELEMENT(fp4x2_e2m1_t, "float4_e2m1fn", 4)
CUBECORE_ELEMENT(fp4x2_e1m2_t, "float4_e1m2", 4)
CUBECORE_ELEMENT(complex32, "uint32", 32)
CUBECORE_ELEMENT(complex64, "uint64", 64)
#undef CUBECORE_ELEMENT

template <typename T>
inline constexpr bool is_complex = false;
template <typename T>
inline constexpr bool is_complex<AscendC::Complex<T>> = true;

template <typename T>
constexpr bool is_half = std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

template <typename T>
constexpr bool is_real = std::is_floating_point_v<T> || is_half<T>;

// An operand of `?:`, with the type that both have in common: of a half and a float the float, of a
// half and an integer the half, of two kinds of half float.
template <typename OTHER, typename T>
constexpr decltype(auto) chosen(T&& value) {
  using O = std::remove_cv_t<std::remove_reference_t<OTHER>>;
  using V = std::remove_cv_t<std::remove_reference_t<T>>;
  if constexpr (is_half<V> && std::is_floating_point_v<O>)
    return static_cast<O>(static_cast<float>(value));
  else if constexpr (is_half<V> && is_half<O> && !std::is_same_v<V, O>)
    return static_cast<float>(value);
  else if constexpr (is_half<O> && std::is_integral_v<V>)
    return static_cast<O>(value);
  else
    return static_cast<T&&>(value);
}

// An argument of a call whose template arguments end in a constant of a class template: g++ calls
// it with other arguments unless one of the call's depends on the template, as `this` does.
template <typename C, typename T>
constexpr T&& in_template(const C*, T&& argument) {
  return static_cast<T&&>(argument);
}

// Bytes of `count` elements.
template <typename T>
constexpr int64_t bytes_of(int64_t count) {
  return count * static_cast<int64_t>(Element<T>::bits) / 8;
}

// Steps of asc_copy_l12l0b_trans from a square of elements to the next: 3510 counts fractals.
constexpr uint32_t steps_of_square(uint32_t bits) {
#if __NPU_ARCH__ == 3510
  return bits == 16 ? 1 : bits == 4 ? 4 : 2;
#else
  return 1;
#endif
}

// A scalar as an instruction takes it: a real number or a whole one.
template <typename T>
inline auto scalar(T value) {
  if constexpr (is_half<T>)
    return static_cast<float>(value);
  else
    return value;
}

}  // namespace cubecore
