// Shapes, strides and coordinates of tensors, which kernels compute addresses with. Pages: Layout
// with its members, MakeShape, MakeStride, MakeLayout, is_layout, MakeCoord, Crd2Idx. Included
// where a file names one of the functions: kernels have structs of their own called so.
#pragma once

#include <tuple>

#include "cubecore/macros.h"

namespace AscendC {

template <typename... Shapes>
using Shape = Std::tuple<Shapes...>;
template <typename... Strides>
using Stride = Std::tuple<Strides...>;
template <typename... Coords>
using Coord = Std::tuple<Coords...>;

template <typename... Ts>
constexpr Shape<Ts...> MakeShape(const Ts&... t) {
  return {t...};
}
template <typename... Ts>
constexpr Stride<Ts...> MakeStride(const Ts&... t) {
  return {t...};
}
template <typename... Ts>
constexpr Coord<Ts...> MakeCoord(const Ts&... t) {
  return {t...};
}

namespace detail {

template <typename T>
constexpr bool is_tuple = false;
template <typename... T>
constexpr bool is_tuple<Std::tuple<T...>> = true;
template <typename T>
constexpr bool is_constant = false;
template <typename T, T v>
constexpr bool is_constant<std::integral_constant<T, v>> = true;

// Arithmetic whose result is a constant where both operands are.
#define CUBECORE_STATIC(NAME, OPERATOR)                              \
  template <typename A, typename B>                                  \
  constexpr auto NAME(A a, B b) {                                    \
    if constexpr (is_constant<A> && is_constant<B>)                  \
      return Std::Int<size_t{A::value} OPERATOR size_t{B::value}>{}; \
    else                                                             \
      return a OPERATOR b;                                           \
  }
CUBECORE_STATIC(plus, +)
CUBECORE_STATIC(times, *)
CUBECORE_STATIC(quotient, /)
CUBECORE_STATIC(rest, %)
#undef CUBECORE_STATIC

// The elements of a shape from its n-th dimension on.
template <size_t n, typename T>
constexpr auto elements(const T& shape) {
  if constexpr (!is_tuple<T>)
    return shape;
  else if constexpr (n == std::tuple_size_v<T>)
    return Std::Int<1>{};
  else
    return times(elements<0>(std::get<n>(shape)), elements<n + 1>(shape));
}

template <size_t n, typename C, typename H, typename R>
constexpr auto index_from(const C& coord, const H& shape, const R& stride);

template <typename C, typename H, typename R>
constexpr auto index_of(const C& coord, const H& shape, const R& stride) {
  if constexpr (is_tuple<H>)
    return index_from<0>(coord, shape, stride);
  else
    return times(coord, stride);
}

// The sum over the dimensions from the n-th on; a coordinate without dimensions is split by the
// shape, its first dimension first.
template <size_t n, typename C, typename H, typename R>
constexpr auto index_from(const C& coord, const H& shape, const R& stride) {
  constexpr bool last = n + 1 == std::tuple_size_v<H>;
  const auto& extent = std::get<n>(shape);
  const auto& step = std::get<n>(stride);
  if constexpr (is_tuple<C>) {
    const auto own = index_of(std::get<n>(coord), extent, step);
    if constexpr (last)
      return own;
    else
      return plus(own, index_from<n + 1>(coord, shape, stride));
  } else if constexpr (last) {
    return index_of(coord, extent, step);
  } else {
    const auto size = elements<0>(extent);
    return plus(index_of(rest(coord, size), extent, step),
                index_from<n + 1>(quotient(coord, size), shape, stride));
  }
}

}  // namespace detail

template <typename ShapeType, typename StrideType>
struct Layout : Std::tuple<ShapeType, StrideType> {
  constexpr Layout(const ShapeType& shape = {}, const StrideType& stride = {})
      : Std::tuple<ShapeType, StrideType>(shape, stride) {}

  constexpr decltype(auto) layout() { return *this; }
  constexpr decltype(auto) layout() const { return *this; }
  constexpr decltype(auto) GetShape() { return Std::get<0>(whole()); }
  constexpr decltype(auto) GetShape() const { return Std::get<0>(whole()); }
  constexpr decltype(auto) GetStride() { return Std::get<1>(whole()); }
  constexpr decltype(auto) GetStride() const { return Std::get<1>(whole()); }
  template <typename CoordType>
  constexpr auto operator()(const CoordType& coord) const {
    return detail::index_of(coord, GetShape(), GetStride());
  }

 private:
  constexpr Std::tuple<ShapeType, StrideType>& whole() { return *this; }
  constexpr const Std::tuple<ShapeType, StrideType>& whole() const { return *this; }
};

template <typename ShapeType, typename StrideType>
constexpr auto MakeLayout(const ShapeType& shape, const StrideType& stride) {
  return Layout<ShapeType, StrideType>(shape, stride);
}
template <typename T>
struct is_layout : std::false_type {};
template <typename ShapeType, typename StrideType>
struct is_layout<Layout<ShapeType, StrideType>> : std::true_type {};

template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const Layout<ShapeType, StrideType>& layout) {
  return layout(coord);
}
template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const ShapeType& shape, const StrideType& stride) {
  return detail::index_of(coord, shape, stride);
}

}  // namespace AscendC
