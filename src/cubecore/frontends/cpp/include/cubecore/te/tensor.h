// Tensors: a place in a memory, and a layout. Pages: Tensor, MakeTensor, MakeMemPtr, Pointer,
// ViewEngine, Slice, Squeeze.
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/seam/local.h"
#include "cubecore/te/frame.h"

namespace AscendC::Te {

namespace detail {

template <cubecore::Mem mem, bool scales = false>
struct Place {
  static constexpr cubecore::Mem memory = mem;
  static constexpr bool of_scales = scales;
};

}  // namespace detail

struct Location {
  using GM = detail::Place<cubecore::Mem::GM>;
  using UB = detail::Place<cubecore::Mem::UB>;
  using L1 = detail::Place<cubecore::Mem::L1>;
  using L0A = detail::Place<cubecore::Mem::L0A>;
  using L0B = detail::Place<cubecore::Mem::L0B>;
  using L0C = detail::Place<cubecore::Mem::L0C>;
  using BIAS = detail::Place<cubecore::Mem::BT>;
  using FIXBUF = detail::Place<cubecore::Mem::FB>;
  using L0ScaleA = detail::Place<cubecore::Mem::L0A, true>;
  using L0ScaleB = detail::Place<cubecore::Mem::L0B, true>;
};

template <typename PtrPattern, typename P>
struct HardwareMemPtr {
  using elementType = std::remove_pointer_t<P>;
  using valueType = std::remove_cv_t<elementType>;
  using location = PtrPattern;

  constexpr HardwareMemPtr(P pointer = nullptr) : pointer_(pointer) {}
  constexpr P Get() const { return pointer_; }
  HardwareMemPtr operator+(int64_t elements) const {
    return reinterpret_cast<P>(reinterpret_cast<uint64_t>(pointer_) +
                               static_cast<uint64_t>(cubecore::bytes_of<valueType>(elements)));
  }
  // Page Tensor: the scalar unit has global memory and UB alone.
  AscendC::detail::Cell<valueType> operator[](int64_t index) const {
    constexpr bool is_global = PtrPattern::memory == cubecore::Mem::GM;
    static_assert(is_global || PtrPattern::memory == cubecore::Mem::UB,
                  "an element must lie in GM or UB to be read by the scalar unit");
    auto at = reinterpret_cast<uint64_t>((*this + index).Get());
    return {static_cast<uint8_t>(PtrPattern::memory),
            is_global ? cubecore::gm_address(reinterpret_cast<const void*>(at))
                      : static_cast<int64_t>(at),
            cubecore::Where{__FILE__, "operator[]", __LINE__}};
  }
  // Ours: what instructions take.
  cubecore::Pointer operand() const { return cubecore::operand(PtrPattern::memory, pointer_); }

 private:
  P pointer_;
};

namespace detail {

template <typename T>
struct IsMemPtr : std::false_type {};
template <typename L, typename P>
struct IsMemPtr<HardwareMemPtr<L, P>> : std::true_type {};

template <cubecore::Mem mem>
struct Located;
#define CUBECORE_LOCATED(MEM, NAME)    \
  template <>                          \
  struct Located<cubecore::Mem::MEM> { \
    using type = Location::NAME;       \
  };
CUBECORE_LOCATED(GM, GM)
CUBECORE_LOCATED(UB, UB)
CUBECORE_LOCATED(L1, L1)
CUBECORE_LOCATED(L0A, L0A)
CUBECORE_LOCATED(L0B, L0B)
CUBECORE_LOCATED(L0C, L0C)
CUBECORE_LOCATED(BT, BIAS)
CUBECORE_LOCATED(FB, FIXBUF)
#undef CUBECORE_LOCATED

}  // namespace detail

template <typename Hardware, typename DataType, typename Addr>
auto MakeMemPtr(Addr addr) {
  uint64_t raw;
  if constexpr (std::is_pointer_v<Addr>)
    raw = reinterpret_cast<uint64_t>(addr);
  else
    raw = static_cast<uint64_t>(addr);
  return HardwareMemPtr<Hardware, DataType*>(reinterpret_cast<DataType*>(raw));
}
template <typename Hardware, typename Iterator>
auto MakeMemPtr(Iterator iterator) {
  if constexpr (detail::IsMemPtr<Iterator>::value)
    return MakeMemPtr<Hardware, typename Iterator::elementType>(iterator.Get());
  else
    return MakeMemPtr<Hardware, std::remove_pointer_t<Iterator>>(iterator);
}
template <typename L, typename P>
constexpr auto MakeMemPtr(HardwareMemPtr<L, P> pointer) {
  return pointer;
}
template <cubecore::Mem mem, typename T>
auto MakeMemPtr(cubecore::Array<mem, T> array) {
  return MakeMemPtr<typename detail::Located<mem>::type, T>(array.pointer);
}
template <typename T>
auto MakeMemPtr(T* pointer) {
  return MakeMemPtr<Location::GM, T>(pointer);
}

template <typename Iterator>
struct ViewEngine {
  using iterator = Iterator;
  using elementType = typename Iterator::elementType;
  using valueType = typename Iterator::valueType;
  using reference = AscendC::detail::Cell<valueType>;

  constexpr ViewEngine(iterator storage = {}) : storage_(storage) {}
  constexpr const iterator& Begin() const { return storage_; }
  constexpr iterator& Begin() { return storage_; }

 private:
  iterator storage_;
};

template <typename EngineType, typename LayoutType>
struct TensorAttribute {};

template <typename T>
struct BaseTensor {};
template <typename T>
struct GlobalTensor {};
template <typename T>
struct LocalTensor {};

enum class CacheMode : uint8_t {
  CACHE_MODE_DISABLE,
  CACHE_MODE_NORMAL,
  CACHE_MODE_LAST,
  CACHE_MODE_PERSISTENT
};

template <typename Iterator, typename... Args>
constexpr auto MakeTensor(const Iterator& iter, const Args&... args);

namespace detail {

// The shape of a part: whole blocks of the layout's own, as many as its extents need.
template <typename S, typename E>
constexpr auto part_of(const S& shape, const E& extent);
template <typename S, typename E, size_t... I>
constexpr auto parts_of(const S& shape, const E& extent, std::index_sequence<I...>) {
  return std::make_tuple(part_of(std::get<I>(shape), std::get<I>(extent))...);
}
template <typename S, typename E>
constexpr auto part_of(const S& shape, const E& extent) {
  if constexpr (is_tuple<S> && !is_tuple<E>)
    return std::make_tuple(std::get<0>(shape), pieces(extent, std::get<0>(shape)));
  else if constexpr (is_tuple<S>)
    return parts_of(shape, extent, std::make_index_sequence<std::tuple_size_v<S>>());
  else
    return extent;
}

template <typename L, typename I>
constexpr auto sliced(const L& layout, const I& info) {
  using Info = typename L::info_type;
  if constexpr (is_layout<I>)
    return laid_out<Info>(info.Shape(), layout.Stride());
  else
    return laid_out<Info>(part_of(layout.Shape(), info), layout.Stride());
}

}  // namespace detail

template <typename EngineType, typename LayoutType>
struct BaseTensor<TensorAttribute<EngineType, LayoutType>> {
  using iterator = typename EngineType::iterator;
  using valueType = typename EngineType::valueType;
  using elementType = typename EngineType::elementType;
  using reference = typename EngineType::reference;
  using engineType = EngineType;
  using layoutType = LayoutType;
  using location = typename iterator::location;

  static constexpr int rank = LayoutType::rank;

  BaseTensor() = default;
  constexpr BaseTensor(const EngineType& engine, const LayoutType& layout)
      : engine_(engine), layout_(layout) {}

  constexpr const BaseTensor& Tensor() const { return *this; }
  constexpr const EngineType& Engine() const { return engine_; }
  constexpr EngineType& Engine() { return engine_; }
  constexpr const LayoutType& Layout() const { return layout_; }
  constexpr iterator Data() const { return engine_.Begin(); }
  constexpr auto Shape() const { return layout_.Shape(); }
  constexpr auto Stride() const { return layout_.Stride(); }
  constexpr auto Size() const { return layout_.Size(); }
  constexpr auto Capacity() const { return layout_.Capacity(); }

  template <typename Coord>
  reference operator[](const Coord& coord) const {
    return Data()[layout_(coord)];
  }
  template <typename Coord>
  constexpr auto operator()(const Coord& coord) const {
    return MakeTensor(Data() + layout_(coord), layout_);
  }
  template <typename Coord0, typename Coord1, typename... Coords>
  constexpr auto operator()(const Coord0& c0, const Coord1& c1, const Coords&... cs) const {
    return (*this)(MakeCoord(c0, c1, cs...));
  }
  template <typename Coord, typename Info>
  constexpr auto Slice(const Coord& coord, const Info& info) const {
    return MakeTensor(Data() + layout_(coord), detail::sliced(layout_, info));
  }
  // Ours: what instructions take.
  cubecore::Pointer operand() const { return Data().operand(); }

 private:
  EngineType engine_;
  LayoutType layout_;
};

template <typename E, typename L>
struct GlobalTensor<TensorAttribute<E, L>> : BaseTensor<TensorAttribute<E, L>> {
  using BaseTensor<TensorAttribute<E, L>>::BaseTensor;
  constexpr void SetL2CacheHint(CacheMode) {}
};
template <typename E, typename L>
struct LocalTensor<TensorAttribute<E, L>> : BaseTensor<TensorAttribute<E, L>> {
  using BaseTensor<TensorAttribute<E, L>>::BaseTensor;
};

template <typename Iterator, typename... Args>
constexpr auto MakeTensor(const Iterator& iter, const Args&... args) {
  if constexpr (!detail::IsMemPtr<Iterator>::value) {
    return MakeTensor(iter.Begin(), args...);
  } else if constexpr (sizeof...(Args) == 2) {
    return MakeTensor(iter, MakeLayout(args...));
  } else {
    using L = std::tuple_element_t<0, std::tuple<Args...>>;
    using Attribute = TensorAttribute<ViewEngine<Iterator>, L>;
    using Global = std::is_same<typename Iterator::location, Location::GM>;
    using Made = std::conditional_t<Global::value, GlobalTensor<Attribute>, LocalTensor<Attribute>>;
    return Made(ViewEngine<Iterator>(iter), args...);
  }
}

template <typename Tensor, typename Coord, typename Info>
constexpr auto Slice(Tensor&& tensor, const Coord& coord, const Info& info) {
  return tensor.Slice(coord, info);
}

template <size_t... SqueezeDims, typename T>
constexpr auto Squeeze(const T& x) {
  static_assert(sizeof...(SqueezeDims) > 0, "Squeeze must name a dimension, got none");
  if constexpr (detail::is_layout<T>)
    return detail::squeezed<SqueezeDims...>(x);
  else
    return MakeTensor(x.Data(), detail::squeezed<SqueezeDims...>(x.Layout()));
}
template <typename P, typename T>
constexpr auto Squeeze(const T& x, const P&) {
  constexpr auto gone = detail::all_marked<P>(std::make_index_sequence<std::tuple_size_v<P>>());
  if constexpr (detail::is_layout<T>)
    return detail::squeezed_at(x, gone);
  else
    return MakeTensor(x.Data(), detail::squeezed_at(x.Layout(), gone));
}

// Elements of C0 of a tensor of 4 bits, bytes of any other: as public kernels count with it.
template <typename T>
inline constexpr size_t C0_SIZE = cubecore::Element<typename T::valueType>::bits == 4 ? 64 : 32;

}  // namespace AscendC::Te
