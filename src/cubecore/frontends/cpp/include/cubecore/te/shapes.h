// Shapes, strides and coordinates of any nesting, and where an element lies by them: of the tensor
// API and of the older layouts alike. Pages: Shape, Stride, Coord, MakeShape, MakeStride,
// MakeCoord, Crd2Idx.
#pragma once

#include "cubecore/te/integers.h"

namespace AscendC::Te {

template <typename... T>
using Shape = Std::tuple<T...>;
template <typename... T>
using Stride = Std::tuple<T...>;
template <typename... T>
using Coord = Std::tuple<T...>;
template <typename... T>
constexpr Shape<T...> MakeShape(const T&... t) {
  return {t...};
}
template <typename... T>
constexpr Stride<T...> MakeStride(const T&... t) {
  return {t...};
}
template <typename... T>
constexpr Coord<T...> MakeCoord(const T&... t) {
  return {t...};
}

namespace detail {

template <typename T>
struct IsTuple : std::false_type {};
template <typename... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <typename T>
inline constexpr bool is_tuple = IsTuple<Std::remove_cvref_t<T>>::value;

// The elements of a shape from its n-th dimension on.
template <size_t n = 0, typename T>
constexpr auto elements(const T& shape) {
  if constexpr (!is_tuple<T>)
    return shape;
  else if constexpr (n == std::tuple_size_v<T>)
    return Std::Int<1>{};
  else
    return times(elements(std::get<n>(shape)), elements<n + 1>(shape));
}

// Where an element lies, by the dimensions from the n-th on: a number that stands for several of
// them counts the first one fastest.
template <size_t n = 0, typename C, typename S, typename D>
constexpr auto index_of(const C& coord, const S& shape, const D& stride) {
  if constexpr (is_tuple<C>) {
    if constexpr (n == std::tuple_size_v<C>)
      return Std::Int<0>{};
    else
      return plus(index_of(std::get<n>(coord), std::get<n>(shape), std::get<n>(stride)),
                  index_of<n + 1>(coord, shape, stride));
  } else if constexpr (!is_tuple<S>) {
    return times(coord, stride);
  } else if constexpr (n + 1 == std::tuple_size_v<S>) {
    return index_of(coord, std::get<n>(shape), std::get<n>(stride));
  } else {
    const auto extent = elements(std::get<n>(shape));
    return plus(index_of(rest(coord, extent), std::get<n>(shape), std::get<n>(stride)),
                index_of<n + 1>(quotient(coord, extent), shape, stride));
  }
}

}  // namespace detail

}  // namespace AscendC::Te
