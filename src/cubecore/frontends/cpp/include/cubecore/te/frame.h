// Layouts of matrices by the name of their pattern. Pages: "Layout和层次化表述法", MakeFrameLayout,
// GetLayoutPattern, Squeeze. Without a page: FrameLayoutFormat, IsSatisfiedPtnFormatV, GetElement,
// AttrInfo, GetTotalRowShape, GetTotalColumnShape and C0_SIZE, as public kernels use them.
#pragma once

#include "cubecore/te/layout.h"

namespace AscendC::Te {

struct NZLayoutPtn {};
struct ZNLayoutPtn {};
struct ZZLayoutPtn {};
struct NNLayoutPtn {};
struct NDExtLayoutPtn {};
struct DNExtLayoutPtn {};
struct NDLayoutPtn {};
struct DNLayoutPtn {};
struct ScaleANDLayoutPtn {};
struct ScaleADNLayoutPtn {};
struct ScaleBNDLayoutPtn {};
struct ScaleBDNLayoutPtn {};
struct NCHWLayoutPtn {};
struct NHWCLayoutPtn {};
struct NC1HWC0LayoutPtn {};

// The elements of a block's row; T is how old code says them.
template <typename T, typename C0>
struct LayoutTrait {
  static constexpr auto C0_ELEMENT = C0{};
};
template <typename T = Std::ignore_t>
struct LayoutTraitDefault {
  static constexpr auto C0_ELEMENT = Std::Int<Te::C0_ELEMENT<T>>{};
};
template <>
struct LayoutTraitDefault<Std::ignore_t> {};

namespace detail {

template <typename P>
inline constexpr bool of_scales =
    Std::is_one_of_v<P, NNLayoutPtn, ScaleANDLayoutPtn, ScaleADNLayoutPtn, ScaleBNDLayoutPtn,
                     ScaleBDNLayoutPtn>;
template <typename P>
inline constexpr bool flat = Std::is_one_of_v<P, NDLayoutPtn, DNLayoutPtn>;
template <typename P>
inline constexpr bool by_rows = Std::is_one_of_v<P, NDLayoutPtn, NDExtLayoutPtn, ScaleANDLayoutPtn>;
template <typename P>
inline constexpr bool by_columns =
    Std::is_one_of_v<P, DNLayoutPtn, DNExtLayoutPtn, ScaleBDNLayoutPtn>;

template <typename T, typename = void>
struct HasC0 : std::false_type {};
template <typename T>
struct HasC0<T, std::void_t<decltype(T::C0_ELEMENT)>> : std::true_type {};

// C0 as a trait says it: a number, a member, an element type; else the pattern's own.
template <typename P, typename T>
constexpr auto c0_of() {
  if constexpr (HasC0<T>::value)
    return T::C0_ELEMENT;
  else if constexpr (is_static<T>)
    return T{};
  else if constexpr (cubecore::Element<T>::name != nullptr)
    return Std::Int<Te::C0_ELEMENT<T>>{};
  else if constexpr (of_scales<P>)
    return Std::Int<2>{};
  else
    return Std::Int<16>{};
}

template <typename A, typename B>
constexpr auto pair(const A& a, const B& b) {
  return std::make_tuple(a, b);
}

// Shape and stride of a matrix in a pattern.
template <typename P, typename C0, typename M, typename N>
constexpr auto frame(C0 c0, const M& m, const N& n) {
  constexpr Std::Int<0> zero{};
  constexpr Std::Int<1> one{};
  constexpr Std::Int<2> two{};
  constexpr Std::Int<16> edge{};
  if constexpr (std::is_same_v<P, NZLayoutPtn>)
    return pair(pair(pair(edge, pieces(m, edge)), pair(c0, pieces(n, c0))),
                pair(pair(c0, times(c0, edge)), pair(one, times(c0, aligned(m, edge)))));
  else if constexpr (std::is_same_v<P, ZNLayoutPtn>)
    return pair(pair(pair(c0, pieces(m, c0)), pair(edge, pieces(n, edge))),
                pair(pair(one, times(c0, aligned(n, edge))), pair(c0, times(c0, edge))));
  else if constexpr (std::is_same_v<P, ZZLayoutPtn>)
    return pair(pair(pair(edge, pieces(m, edge)), pair(c0, pieces(n, c0))),
                pair(pair(c0, times(edge, aligned(n, c0))), pair(one, times(c0, edge))));
  else if constexpr (std::is_same_v<P, NNLayoutPtn>)
    return pair(pair(pair(two, pieces(m, two)), pair(edge, pieces(n, edge))),
                pair(pair(one, times(two, edge)), pair(two, times(aligned(m, two), edge))));
  else if constexpr (std::is_same_v<P, ScaleADNLayoutPtn>)
    return pair(pair(pair(one, m), pair(two, pieces(n, two))),
                pair(pair(zero, two), pair(one, times(two, m))));
  else if constexpr (std::is_same_v<P, ScaleBNDLayoutPtn>)
    return pair(pair(pair(two, pieces(m, two)), pair(one, n)),
                pair(pair(one, times(two, n)), pair(zero, two)));
  else if constexpr (std::is_same_v<P, NDLayoutPtn>)
    return pair(pair(m, n), pair(n, one));
  else if constexpr (std::is_same_v<P, DNLayoutPtn>)
    return pair(pair(m, n), pair(one, m));
  else if constexpr (by_rows<P>)
    return pair(pair(pair(one, m), pair(one, n)), pair(pair(zero, n), pair(zero, one)));
  else if constexpr (by_columns<P>)
    return pair(pair(pair(one, m), pair(one, n)), pair(pair(zero, one), pair(zero, m)));
  else
    static_assert(by_rows<P>, "MakeFrameLayout must have a pattern of the documentation, got none");
}

}  // namespace detail

template <typename LayoutPattern, typename TraitType = LayoutTraitDefault<>, typename... Args>
constexpr auto MakeFrameLayout(const Args&... args) {
  using P = LayoutPattern;
  using Info = Std::tuple<P, TraitType>;
  constexpr bool images = Std::is_one_of_v<P, NCHWLayoutPtn, NHWCLayoutPtn, NC1HWC0LayoutPtn>;
  auto given = std::make_tuple(args...);
  if constexpr (images) {
    return detail::laid_out<Info>(
        given, detail::row_major(given, std::make_index_sequence<sizeof...(Args)>()));
  } else {
    static_assert(sizeof...(Args) == 2 || sizeof...(Args) == 3,
                  "MakeFrameLayout must have rows and columns, got other numbers");
    constexpr size_t first = sizeof...(Args) - 2;
    auto made = detail::frame<P>(detail::c0_of<P, TraitType>(), std::get<first>(given),
                                 std::get<first + 1>(given));
    if constexpr (first == 0)
      return detail::laid_out<Info>(std::get<0>(made), std::get<1>(made));
    else
      return detail::laid_out<Info>(
          std::make_tuple(std::get<0>(given), std::get<0>(made)),
          std::make_tuple(detail::product(std::get<0>(made)), std::get<1>(made)));
  }
}
template <typename LayoutPattern, size_t c0, typename... Args>
constexpr auto MakeFrameLayout(const Args&... args) {
  return MakeFrameLayout<LayoutPattern, Std::Int<c0>>(args...);
}

template <typename LayoutPattern, typename TraitType = LayoutTraitDefault<>>
struct FrameLayoutFormat {
  template <typename... Args>
  constexpr auto operator()(const Args&... args) const {
    return MakeFrameLayout<LayoutPattern, TraitType>(args...);
  }
};

namespace detail {

// The pattern that types alone tell, of a layout that was made without one.
template <typename T, typename U>
struct Inferred {
  using type = Std::ignore_t;
};
template <typename M, typename N>
struct Inferred<std::tuple<M, N>, std::tuple<N, std::integral_constant<size_t, 1>>> {
  using type = std::conditional_t<is_static<N>, NDLayoutPtn, Std::ignore_t>;
};
#define CUBECORE_FRACTAL(PATTERN, R0, C0, SR0, SR1, SC0, SC1)               \
  template <size_t c0, typename R1, typename C1, typename X>                \
  struct Inferred<std::tuple<std::tuple<R0, R1>, std::tuple<C0, C1>>,       \
                  std::tuple<std::tuple<SR0, SR1>, std::tuple<SC0, SC1>>> { \
    using type = PATTERN;                                                   \
  };
CUBECORE_FRACTAL(NZLayoutPtn, _16, Std::Int<c0>, Std::Int<c0>, Std::Int<16 * c0>, _1, X)
CUBECORE_FRACTAL(ZZLayoutPtn, _16, Std::Int<c0>, Std::Int<c0>, X, _1, Std::Int<16 * c0>)
CUBECORE_FRACTAL(ZNLayoutPtn, Std::Int<c0>, _16, _1, X, Std::Int<c0>, Std::Int<16 * c0>)
#undef CUBECORE_FRACTAL
template <typename M, typename N, typename R, typename C>
struct Inferred<std::tuple<std::tuple<_1, M>, std::tuple<_1, N>>,
                std::tuple<std::tuple<_0, R>, std::tuple<_0, C>>> {
  using type =
      std::conditional_t<std::is_same_v<C, _1>, NDExtLayoutPtn,
                         std::conditional_t<std::is_same_v<R, _1>, DNExtLayoutPtn, Std::ignore_t>>;
};

template <typename T, typename = void>
struct LayoutOf {
  using type = T;
};
template <typename T>
struct LayoutOf<T, std::void_t<typename T::layoutType>> {
  using type = typename T::layoutType;
};
template <typename T>
struct Pattern {
  using type = typename Inferred<typename T::shape_type, typename T::stride_type>::type;
};
template <typename T, typename U, typename P, typename Trait>
struct Pattern<Layout<T, U, Std::tuple<P, Trait>>> {
  using type = P;
};

}  // namespace detail

template <typename T>
using GetLayoutPattern = typename detail::Pattern<Std::remove_cvref_t<T>>::type;
template <typename T, typename P>
inline constexpr bool IsSatisfiedPtnFormatV =
    std::is_same_v<GetLayoutPattern<typename detail::LayoutOf<Std::remove_cvref_t<T>>::type>, P>;

enum class AttrInfo : uint8_t { Shape, Stride, Row, Column };
template <AttrInfo what, AttrInfo axis, size_t level, typename T>
constexpr auto GetElement(const T& layout) {
  constexpr size_t part = axis == AttrInfo::Row ? 0 : 1;
  if constexpr (what == AttrInfo::Shape)
    return detail::at<part, level>(layout.Shape());
  else
    return detail::at<part, level>(layout.Stride());
}
template <typename T>
constexpr auto GetTotalRowShape(const T& layout) {
  return detail::product(std::get<0>(layout.Shape()));
}
template <typename T>
constexpr auto GetTotalColumnShape(const T& layout) {
  return detail::product(std::get<1>(layout.Shape()));
}

namespace detail {

template <size_t... Out, typename T, typename U, typename Info>
constexpr auto squeezed(const Layout<T, U, Info>& layout) {
  using All = std::make_index_sequence<std::tuple_size_v<T>>;
  return laid_out<Info>(without<Out...>(layout.Shape(), All()),
                        without<Out...>(layout.Stride(), All()));
}

// The numbers of a pattern's dimensions that go.
template <typename P, size_t I>
constexpr auto marked() {
  if constexpr (is_static<std::tuple_element_t<I, P>>)
    return std::tuple<std::integral_constant<size_t, I>>();
  else
    return std::tuple<>();
}
template <typename P, size_t... I>
constexpr auto all_marked(std::index_sequence<I...>) {
  return std::tuple_cat(marked<P, I>()...);
}
template <typename L, typename... I>
constexpr auto squeezed_at(const L& layout, std::tuple<I...>) {
  return squeezed<I::value...>(layout);
}

}  // namespace detail

}  // namespace AscendC::Te
