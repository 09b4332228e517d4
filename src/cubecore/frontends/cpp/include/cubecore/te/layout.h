// Layouts: shapes and strides of any nesting, and what is asked of them. Pages: Layout, MakeLayout,
// MakePatternLayout, Get, GetShape, GetStride, Select, Squeeze, Capacity, Size, Coshape, Cosize,
// Rank, Crd2Idx.
#pragma once

#include "cubecore/te/shapes.h"

namespace AscendC::Te {

namespace detail {

template <typename T>
constexpr int64_t product(const T& t) {
  return number(elements(t));
}

// The largest of extent x stride, by the dimensions from the n-th on.
template <size_t n = 0, typename S, typename D>
constexpr int64_t room(const S& shape, const D& stride) {
  if constexpr (!is_tuple<S>)
    return number(shape) * number(stride);
  else if constexpr (n == std::tuple_size_v<S>)
    return 0;
  else
    return Std::max(room(std::get<n>(shape), std::get<n>(stride)), room<n + 1>(shape, stride));
}
// The sum of (extent - 1) x stride, likewise.
template <size_t n = 0, typename S, typename D>
constexpr int64_t last(const S& shape, const D& stride) {
  if constexpr (!is_tuple<S>)
    return (number(shape) - 1) * number(stride);
  else if constexpr (n == std::tuple_size_v<S>)
    return 0;
  else
    return last(std::get<n>(shape), std::get<n>(stride)) + last<n + 1>(shape, stride);
}

template <typename T>
struct Depth : std::integral_constant<size_t, 0> {};
template <typename... T>
struct Depth<std::tuple<T...>> {
  static constexpr size_t value = 1 + std::max({size_t{0}, Depth<T>::value...});
};

// The part of a tuple that indices lead to, one level each.
template <size_t I, size_t... Rest, typename T>
constexpr auto at(const T& t) {
  if constexpr (sizeof...(Rest) == 0)
    return std::get<I>(t);
  else
    return at<Rest...>(std::get<I>(t));
}
// One element, or a tuple of several of one level.
template <size_t... I, typename T>
constexpr auto chosen(const T& t) {
  if constexpr (sizeof...(I) == 0)
    return t;
  else if constexpr (sizeof...(I) == 1)
    return std::get<I...>(t);
  else
    return std::make_tuple(std::get<I>(t)...);
}

}  // namespace detail

template <typename T, typename U, typename Info = Std::ignore_t>
struct Layout : private Std::tuple<T, U> {
  static constexpr auto depth = detail::Depth<T>::value;
  static constexpr auto rank = Std::tuple_size_v<T>;
  using shape_type = T;
  using stride_type = U;
  using info_type = Info;

  constexpr Layout(const T& shape = {}, const U& stride = {}) : Std::tuple<T, U>(shape, stride) {}

  constexpr const Layout& layout() const { return *this; }
  template <size_t... I>
  constexpr auto Shape() const {
    return detail::chosen<I...>(std::get<0>(held()));
  }
  template <size_t... I>
  constexpr auto Stride() const {
    return detail::chosen<I...>(std::get<1>(held()));
  }
  template <typename S>
  constexpr int64_t operator()(const S& coord) const {
    return detail::index_of(coord, Shape(), Stride());
  }
  template <size_t... I>
  constexpr auto Capacity() const {
    return detail::room(Shape<I...>(), Stride<I...>());
  }
  template <size_t... I>
  constexpr auto Size() const {
    return detail::product(Shape<I...>());
  }
  template <size_t... I>
  constexpr size_t Rank() const {
    using Part = decltype(Shape<I...>());
    if constexpr (detail::is_tuple<Part>)
      return Std::tuple_size_v<Part>;
    else
      return 1;
  }
  template <size_t... I>
  constexpr auto Get() const {
    return detail::at<I...>(held());
  }

 private:
  constexpr const Std::tuple<T, U>& held() const { return *this; }
};

namespace detail {

template <typename T>
struct IsLayout : std::false_type {};
template <typename T, typename U, typename Info>
struct IsLayout<Layout<T, U, Info>> : std::true_type {};
template <typename T>
inline constexpr bool is_layout = IsLayout<Std::remove_cvref_t<T>>::value;

template <typename Info, typename T, typename U>
constexpr Layout<T, U, Info> laid_out(const T& shape, const U& stride) {
  return {shape, stride};
}

// Strides without gaps, the last dimension's 1.
template <size_t I, typename S>
constexpr auto behind(const S& shape) {
  if constexpr (I + 1 >= std::tuple_size_v<S>)
    return Std::Int<1>{};
  else
    return times(std::get<I + 1>(shape), behind<I + 1>(shape));
}
template <typename S, size_t... I>
constexpr auto row_major(const S& shape, std::index_sequence<I...>) {
  return std::make_tuple(behind<I>(shape)...);
}

}  // namespace detail

template <typename T, typename U>
constexpr auto MakeLayout(const T& shape, const U& stride) {
  return detail::laid_out<Std::ignore_t>(shape, stride);
}
// Uncertain: strides of two nested dimensions are those of columns of blocks, as NZ has them.
template <typename T>
constexpr auto MakeLayout(const T& shape) {
  if constexpr (detail::Depth<T>::value == 2 && std::tuple_size_v<T> == 2) {
    auto rows = std::get<0>(shape), columns = std::get<1>(shape);
    auto wide = std::get<0>(columns);
    auto block = detail::times(std::get<0>(rows), wide);
    return MakeLayout(
        shape,
        std::make_tuple(std::make_tuple(wide, block),
                        std::make_tuple(Std::Int<1>{}, detail::times(block, std::get<1>(rows)))));
  } else {
    return MakeLayout(shape,
                      detail::row_major(shape, std::make_index_sequence<std::tuple_size_v<T>>()));
  }
}
template <typename LayoutPattern, typename TraitType, typename T, typename U>
constexpr auto MakePatternLayout(const T& shape, const U& stride) {
  return detail::laid_out<Std::tuple<LayoutPattern, TraitType>>(shape, stride);
}

template <size_t... I, typename T, typename U, typename Info>
constexpr auto GetShape(const Layout<T, U, Info>& layout) {
  return layout.template Shape<I...>();
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto GetStride(const Layout<T, U, Info>& layout) {
  return layout.template Stride<I...>();
}
template <size_t... I, typename T>
constexpr auto Get(const T& t) {
  if constexpr (detail::is_layout<T>)
    return MakeLayout(detail::at<I...>(t.Shape()), detail::at<I...>(t.Stride()));
  else
    return detail::at<I...>(t);
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Select(const Layout<T, U, Info>& layout) {
  return MakeLayout(std::make_tuple(std::get<I>(layout.Shape())...),
                    std::make_tuple(std::get<I>(layout.Stride())...));
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Capacity(const Layout<T, U, Info>& layout) {
  return layout.template Capacity<I...>();
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Size(const Layout<T, U, Info>& layout) {
  return layout.template Size<I...>();
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Rank(const Layout<T, U, Info>& layout) {
  return layout.template Rank<I...>();
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Coshape(const Layout<T, U, Info>& layout) {
  return detail::last(layout.template Shape<I...>(), layout.template Stride<I...>()) + 1;
}
template <size_t... I, typename T, typename U, typename Info>
constexpr auto Cosize(const Layout<T, U, Info>& layout) {
  return Coshape<I...>(layout);
}

namespace detail {

template <size_t I, size_t... Out>
constexpr auto kept_index() {
  if constexpr (((I == Out) || ...))
    return std::tuple<>();
  else
    return std::tuple<std::integral_constant<size_t, I>>();
}
template <typename T, typename... I>
constexpr auto of_indices(const T& t, std::tuple<I...>) {
  return std::make_tuple(std::get<I::value>(t)...);
}
// Without dimensions of one element; a tuple that is left alone stands for itself.
template <size_t... Out, typename T, size_t... I>
constexpr auto without(const T& t, std::index_sequence<I...>) {
  auto left = of_indices(t, std::tuple_cat(kept_index<I, Out...>()...));
  if constexpr (std::tuple_size_v<decltype(left)> == 1) {
    if constexpr (is_tuple<std::tuple_element_t<0, decltype(left)>>)
      return std::get<0>(left);
    else
      return left;
  } else {
    return left;
  }
}

}  // namespace detail

}  // namespace AscendC::Te
