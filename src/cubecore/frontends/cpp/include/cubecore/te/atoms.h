// Moves and products as objects: an operation, its fixed traits, and what `with` binds to it.
// Pages: the Copy pages and Mmad of the tensor API; the arguments of CopyTraits and MmadTraits:
// public kernels that add operations of their own.
#pragma once

#include "cubecore/te/tensor.h"

namespace AscendC::Te {

enum class RoundMode : uint8_t { DEFAULT, HYBRID };
enum DualDstMode : uint8_t { DUAL_DST_DISABLE, DUAL_DST_SPLIT_M, DUAL_DST_SPLIT_N };
enum class MmadType : uint8_t { NORMAL, MX };

struct CopyTrait {};
struct CopyL0C2GMTrait {
  RoundMode roundMode = RoundMode::DEFAULT;
  bool enableRelu = false;
  bool enableChannelSplit = false;
};
struct CopyL0C2UBTrait {
  RoundMode roundMode = RoundMode::DEFAULT;
  bool enableRelu = false;
  bool enableChannelSplit = false;
  DualDstMode dualDstCtl = DUAL_DST_DISABLE;
};
struct MmadTrait {
  int32_t fmOffset = 0;
  bool kDirectionAlign = false, cmatrixSource = false, disableGemv = true;
  MmadType mmadType = MmadType::NORMAL;
  constexpr CUBECORE_TAKES([fmOffset, kDirectionAlign, cmatrixSource, disableGemv, mmadType])
};

#define CUBECORE_OPERATION(NAME, TRAIT)       \
  struct NAME {};                             \
  struct NAME##TraitDefault {                 \
    using TraitType = TRAIT;                  \
    static constexpr const TraitType value{}; \
  };
CUBECORE_OPERATION(CopyGM2L1, CopyTrait)
CUBECORE_OPERATION(CopyL12L0A, CopyTrait)
CUBECORE_OPERATION(CopyL12L0B, CopyTrait)
CUBECORE_OPERATION(CopyL12L0ScaleA, CopyTrait)
CUBECORE_OPERATION(CopyL12L0ScaleB, CopyTrait)
CUBECORE_OPERATION(CopyL12BT, CopyTrait)
CUBECORE_OPERATION(CopyL12FB, CopyTrait)
CUBECORE_OPERATION(CopyL0C2GM, CopyL0C2GMTrait)
CUBECORE_OPERATION(CopyL0C2UB, CopyL0C2UBTrait)
#undef CUBECORE_OPERATION
struct MmadOperation {};
struct MmadTraitDefault {
  using TraitType = MmadTrait;
  static constexpr const TraitType value{};
};
struct MmadOpWith {};

struct MmadParams {
  uint16_t m = 0, n = 0, k = 0;
  uint8_t unitFlag = 0;
  bool cmatrixInitVal = false;
  constexpr CUBECORE_TAKES(m, n, k, [unitFlag, cmatrixInitVal])
};
struct FixpipeParams {
  uint8_t unitFlag = 0;
  bool subBlockId = false;
  constexpr CUBECORE_TAKES([unitFlag, subBlockId])
};

namespace detail {

// The trait that an operation has where none is given.
template <typename Operation>
struct DefaultTrait {
  using TraitType = CopyTrait;
  static constexpr const TraitType value{};
};
template <>
struct DefaultTrait<CopyL0C2GM> : CopyL0C2GMTraitDefault {};
template <>
struct DefaultTrait<CopyL0C2UB> : CopyL0C2UBTraitDefault {};
template <>
struct DefaultTrait<MmadOperation> : MmadTraitDefault {};

template <typename Operation, typename Trait>
struct Traits {
  using operation = Operation;
  using trait = Trait;
};

}  // namespace detail

// Operation and trait; with four arguments the third and the fourth are what runs.
template <typename Operation, typename... Rest>
struct CopyTraits : detail::Traits<Operation, detail::DefaultTrait<Operation>> {};
template <typename Operation, typename Trait>
struct CopyTraits<Operation, Trait> : detail::Traits<Operation, Trait> {};
template <typename Operation, typename Default, typename With, typename Trait>
struct CopyTraits<Operation, Default, With, Trait> : detail::Traits<Operation, Trait> {};
template <typename Operation, typename... Rest>
struct MmadTraits : detail::Traits<Operation, detail::DefaultTrait<Operation>> {};
template <typename Operation, typename Trait>
struct MmadTraits<Operation, Trait> : detail::Traits<Operation, Trait> {};
template <typename Operation, typename Default, typename With, typename Trait>
struct MmadTraits<Operation, Default, With, Trait> : detail::Traits<Operation, Trait> {};

// Without a page: public kernels call an atom's own Call.
#define CUBECORE_ATOM(NAME)                                                    \
  template <typename Traits, typename... Held>                                 \
  struct NAME {                                                                \
    using operation = typename Traits::operation;                              \
    using trait = typename Traits::trait;                                      \
    template <typename... More>                                                \
    constexpr NAME<Traits, Held..., More...> with(const More&... more) const { \
      return {std::tuple_cat(held, std::make_tuple(more...))};                 \
    }                                                                          \
    template <typename... T>                                                   \
    void Call(const T&... tensors) const {                                     \
      run(*this, tensors...);                                                  \
    }                                                                          \
    std::tuple<Held...> held;                                                  \
  };
CUBECORE_ATOM(CopyAtom)
CUBECORE_ATOM(MmadAtom)
#undef CUBECORE_ATOM

template <typename Operation>
constexpr auto MakeCopy(const Operation&) {
  return CopyAtom<CopyTraits<Operation>>{};
}
template <typename Operation, typename Trait>
constexpr auto MakeCopy(const Operation&, const Trait&) {
  return CopyAtom<CopyTraits<Operation, Trait>>{};
}
template <typename Operation>
constexpr auto MakeMmad(const Operation&) {
  return MmadAtom<MmadTraits<Operation>>{};
}
template <typename Operation, typename Trait>
constexpr auto MakeMmad(const Operation&, const Trait&) {
  return MmadAtom<MmadTraits<Operation, Trait>>{};
}

namespace detail {

// What `with` bound last of a type, or its default.
template <typename T, typename... Held>
constexpr T bound(const std::tuple<Held...>& held) {
  T found{};
  std::apply(
      [&](const auto&... each) {
        auto take = [&](const auto& one) {
          if constexpr (std::is_same_v<std::decay_t<decltype(one)>, T>) found = one;
        };
        (take(each), ...);
      },
      held);
  return found;
}
template <typename T, typename... Held>
constexpr bool binds(const std::tuple<Held...>&) {
  return (std::is_same_v<T, Held> || ...);
}

template <typename T>
using pattern_of = GetLayoutPattern<typename T::layoutType>;
template <typename T>
using element_of = typename T::valueType;

// An extent or a stride of a matrix: axis 0 rows, axis 1 columns; level 0 in blocks, 1 between
// them.
template <size_t axis, size_t level, typename T>
constexpr int64_t extent(const T& tensor) {
  auto part = std::get<axis>(tensor.Shape());
  if constexpr (is_tuple<decltype(part)>)
    return number(std::get<level>(part));
  else
    return level == 0 ? 1 : number(part);
}
template <size_t axis, size_t level, typename T>
constexpr int64_t stride(const T& tensor) {
  auto part = std::get<axis>(tensor.Stride());
  if constexpr (is_tuple<decltype(part)>)
    return number(std::get<level>(part));
  else
    return level == 0 ? 0 : number(part);
}
template <size_t axis, typename T>
constexpr int64_t total(const T& tensor) {
  return product(std::get<axis>(tensor.Shape()));
}

// True where rows, not columns, are stored one behind another: by the pattern, else by strides.
template <typename T>
constexpr bool stored_by_rows(const T& tensor) {
  using P = pattern_of<T>;
  if constexpr (by_rows<P>)
    return true;
  else if constexpr (by_columns<P>)
    return false;
  else
    return stride<1, 1>(tensor) == 1;
}
template <typename T>
inline constexpr bool plain_matrix =
    flat<pattern_of<T>> || Std::is_one_of_v<pattern_of<T>, NDExtLayoutPtn, DNExtLayoutPtn> ||
    std::is_same_v<pattern_of<T>, Std::ignore_t>;

// Two of 4 bits travel as a byte.
template <typename T>
inline constexpr int64_t in_byte = cubecore::Element<T>::bits == 4 ? 2 : 1;
template <typename T>
constexpr int64_t wide() {
  return cubecore::Element<T>::bits == 4 ? 1 : cubecore::Element<T>::bits / 8;
}
template <typename T>
inline cubecore::Pointer whole_bytes(const T& tensor) {
  cubecore::Pointer pointer = tensor.operand();
  if constexpr (cubecore::Element<element_of<T>>::bits == 4)
    pointer.type = cubecore::Element<int8_t>::name;
  return pointer;
}

// The matrices of a batch, and the matrix that each of them is.
template <typename T>
inline constexpr bool batched =
    std::tuple_size_v<decltype(std::declval<T>().Shape())> == 2 &&
    !is_tuple<std::tuple_element_t<0, decltype(std::declval<T>().Shape())>> &&
    is_tuple<std::tuple_element_t<1, decltype(std::declval<T>().Shape())>>;

template <typename T>
constexpr auto one_of_batch(const T& tensor, int64_t index) {
  using Info = typename T::layoutType::info_type;
  auto shape = std::get<1>(tensor.Shape());
  auto strides = std::get<1>(tensor.Stride());
  int64_t step = number(std::get<0>(tensor.Stride()));
  return MakeTensor(tensor.Data() + index * step, laid_out<Info>(shape, strides));
}

}  // namespace detail

}  // namespace AscendC::Te
