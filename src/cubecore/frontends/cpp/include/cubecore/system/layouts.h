// Shapes, strides and coordinates of tensors, which kernels compute addresses with. Pages: Layout
// with its members, MakeShape, MakeStride, MakeLayout, is_layout, MakeCoord, Crd2Idx. Included
// where a file names one of the functions: kernels have structs of their own called so.
#pragma once

#include "cubecore/te/older.h"

namespace AscendC {

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
    return Te::detail::index_of(coord, GetShape(), GetStride());
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
  return Te::detail::index_of(coord, shape, stride);
}

}  // namespace AscendC
