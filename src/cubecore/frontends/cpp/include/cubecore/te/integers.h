// Whole numbers that types hold, and arithmetic that keeps them there. Pages: "CPP标准库"
// (integral_constant, tuple, max, min), "Layout和层次化表述法" (_16{} and its kin).
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "cubecore/seam/types.h"

namespace AscendC::Std {

using namespace ::std;

template <size_t v>
using Int = ::std::integral_constant<size_t, v>;
// Without a page: the type of what is left out.
using ignore_t = ::std::remove_cv_t<decltype(::std::ignore)>;

template <typename T, typename U>  // without a page
struct IsSame : ::std::is_same<T, U> {};

template <typename T, typename... Options>
inline constexpr bool is_one_of_v = (::std::is_same_v<T, Options> || ...);
template <typename T>
using remove_cvref_t = ::std::remove_cv_t<::std::remove_reference_t<T>>;

template <typename T, typename U>
constexpr T min(const T& a, const U& b) {
  return b < a ? static_cast<T>(b) : a;
}
template <typename T, typename U>
constexpr T max(const T& a, const U& b) {
  return a < b ? static_cast<T>(b) : a;
}

}  // namespace AscendC::Std

namespace AscendC::Te::detail {

template <typename T>
struct IsStatic : std::false_type {};
template <typename T, T v>
struct IsStatic<std::integral_constant<T, v>> : std::true_type {};
template <typename T>
inline constexpr bool is_static = IsStatic<Std::remove_cvref_t<T>>::value;

template <typename T>
constexpr int64_t number(const T& value) {
  return static_cast<int64_t>(value);
}

// Each of these is a type's number where both operands are.
#define CUBECORE_STATIC(NAME, RESULT)                      \
  template <typename A, typename B>                        \
  constexpr auto NAME(const A& first, const B& second) {   \
    if constexpr (is_static<A> && is_static<B>) {          \
      constexpr size_t a = A::value, b = B::value;         \
      return Std::Int<(RESULT)>{};                         \
    } else {                                               \
      const int64_t a = number(first), b = number(second); \
      return static_cast<int64_t>(RESULT);                 \
    }                                                      \
  }
CUBECORE_STATIC(plus, a + b)
CUBECORE_STATIC(times, a* b)
CUBECORE_STATIC(quotient, a / b)
CUBECORE_STATIC(rest, a % b)
CUBECORE_STATIC(pieces, (a + b - 1) / b)
CUBECORE_STATIC(aligned, (a + b - 1) / b * b)
#undef CUBECORE_STATIC

}  // namespace AscendC::Te::detail

namespace AscendC::Std {

template <typename A, typename B>
constexpr auto ceil_align(const A& value, const B& unit) {
  return Te::detail::aligned(value, unit);
}
template <typename A, typename B>
constexpr auto ceil_division(const A& value, const B& unit) {
  return Te::detail::pieces(value, unit);
}

}  // namespace AscendC::Std

namespace AscendC::Te {

using _0 = Std::Int<0>;
using _1 = Std::Int<1>;
using _2 = Std::Int<2>;
using _4 = Std::Int<4>;
using _8 = Std::Int<8>;
using _16 = Std::Int<16>;
using _32 = Std::Int<32>;
using _64 = Std::Int<64>;
using _128 = Std::Int<128>;
using _256 = Std::Int<256>;
// Page Squeeze: the dimension that stays.
struct Underscore {};
inline constexpr Underscore _{};

// Elements of 32 B.
template <typename T>
inline constexpr size_t C0_ELEMENT = 32 * 8 / cubecore::Element<T>::bits;

}  // namespace AscendC::Te

namespace AscendC {

// Without a page: public kernels count elements of 32 B with it.
template <typename T>
constexpr int32_t AuxGetC0Size() {
  return static_cast<int32_t>(Te::C0_ELEMENT<T>);
}

}  // namespace AscendC
