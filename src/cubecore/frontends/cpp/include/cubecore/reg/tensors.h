// Functions on whole tensors that 950 alone has, each a vector function as on the chip. Pages: Copy
// by a count, Neg,
// Prelu, AbsSub, ExpSub, MulsCast, Mull, Truncate, and those of scalars in either
// place: Adds, Subs, Muls, Divs, Maxs, Mins, Ands, Ors; and the ways to compute of Div, Sqrt, Rsqrt,
// Exp, Ln, Reciprocal.
#pragma once

#include "cubecore/basic/bitwise_3510.h"
#include "cubecore/reg/indexed.h"

namespace AscendC {

namespace detail {

template <typename T>
inline PrimT<T>* lanes_of(const LocalTensor<T>& tensor, uint32_t from = 0) {
  return reinterpret_cast<PrimT<T>*>(tensor.GetPhyAddr()) + from;
}

// `step(first, mask)` for the elements of each register of `count`, in lanes of the type.
template <typename T, typename F>
inline void by_registers(uint32_t count, const cubecore::Here& at, const F& step) {
  cubecore::VectorFunction function{at};
  for (uint32_t first = 0, left = count; left > 0; first += VECTOR_REG_WIDTH / sizeof(T))
    step(first, Reg::UpdateMask<T>(left, at));
}

// One register of the result by `call(made, a, b, mask)`; `load` loads an operand.
template <typename T, typename A, typename B, typename F>
inline void of_registers(const LocalTensor<T>& dst, uint32_t count, const cubecore::Here& at,
                         const A& load0, const B& load1, const F& call) {
  by_registers<PrimT<T>>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<PrimT<T>> made, a, b;
    load0(a, first);
    load1(b, first);
    call(made, a, b, mask);
    Reg::StoreAlign(lanes_of(dst, first), made, mask, at);
  });
}

// Loads: the lanes of a tensor, its first element in all of them, a number in all of them.
template <typename T>
inline auto loads(const LocalTensor<T>& tensor, const cubecore::Here& at) {
  return [&tensor, at](auto& to, uint32_t first) {
    Reg::LoadAlign(to, lanes_of(tensor, first), at);
  };
}
template <typename T>
inline auto spreads(const LocalTensor<T>& tensor, const cubecore::Here& at) {
  constexpr Reg::LoadDist dist = sizeof(PrimT<T>) == 1   ? Reg::LoadDist::DIST_BRC_B8
                                 : sizeof(PrimT<T>) == 2 ? Reg::LoadDist::DIST_BRC_B16
                                                         : Reg::LoadDist::DIST_BRC_B32;
  return [&tensor, at](auto& to, uint32_t) {
    Reg::LoadAlign<PrimT<T>, dist>(to, lanes_of(tensor), at);
  };
}
template <typename T, typename S>
inline auto repeats(const S& value, const cubecore::Here& at) {
  const auto element = static_cast<PrimT<T>>(value);
  return [element, at](auto& to, uint32_t) { Reg::Duplicate(to, element, at); };
}

// How the operand of a place is loaded, where the one of `number` is a number of two tensors.
template <int place, int number, typename Other, typename T, typename S>
inline auto operand(const S& src, const cubecore::Here& at) {
  if constexpr (!is_local<S>)
    return repeats<T>(src, at);
  else if constexpr (is_local<Other> && place == number)
    return spreads(src, at);
  else
    return loads(src, at);
}

// Fills of element types that 2201's instructions lack. Pages Duplicate, CreateVecIndex.
template <typename T, typename S>
void filled_by_registers(const LocalTensor<T>& dst, const S& value, uint32_t count,
                         const cubecore::Here& at) {
  using P = PrimT<T>;
  cubecore::VectorFunction function{at};
  auto* to = reinterpret_cast<P*>(dst.GetPhyAddr());
  Reg::RegTensor<P> filled;
  Reg::Duplicate(filled, static_cast<P>(value), at);
  while (count > 0) {
    const Reg::MaskReg mask = Reg::UpdateMask<P>(count, at);
    Reg::StoreAlign<P, Reg::PostLiteral::POST_MODE_UPDATE>(to, filled,
                                                           VECTOR_REG_WIDTH / sizeof(P), mask, at);
  }
}

template <typename T, typename S>
void counted_by_registers(const LocalTensor<T>& dst, const S& first, uint32_t count,
                          const cubecore::Here& at) {
  using P = PrimT<T>;
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(P);
  cubecore::VectorFunction function{at};
  auto* to = reinterpret_cast<P*>(dst.GetPhyAddr());
  P next = static_cast<P>(first);
  while (count > 0) {
    Reg::RegTensor<P> counted;
    Reg::Arange(counted, next, at);
    const Reg::MaskReg mask = Reg::UpdateMask<P>(count, at);
    Reg::StoreAlign<P, Reg::PostLiteral::POST_MODE_UPDATE>(to, counted, lanes, mask, at);
    next = static_cast<P>(next + static_cast<P>(lanes));
  }
}

}  // namespace detail

#define CUBECORE_OF_REGISTERS(NAME)                                                              \
  template <typename T>                                                                          \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0,                        \
                   const LocalTensor<T>& src1, const uint32_t count, CUBECORE_AT) {              \
    const auto call = [&](auto& to, auto& a, auto& b, const Reg::MaskReg& mask) {                \
      Reg::NAME(to, a, b, mask, at);                                                             \
    };                                                                                           \
    detail::of_registers(dst, count, at, detail::loads(src0, at), detail::loads(src1, at), call); \
  }
CUBECORE_OF_REGISTERS(Prelu)
CUBECORE_OF_REGISTERS(AbsSub)
#undef CUBECORE_OF_REGISTERS

template <typename T>
inline void Neg(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                CUBECORE_AT) {
  detail::by_registers<PrimT<T>>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<PrimT<T>> of;
    Reg::LoadAlign(of, detail::lanes_of(src, first), at);
    Reg::Neg(of, of, mask, at);
    Reg::StoreAlign(detail::lanes_of(dst, first), of, mask, at);
  });
}

// Bits are moved as they are.
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                 CUBECORE_AT) {
  using Narrow = std::conditional_t<sizeof(PrimT<T>) == 1, uint8_t, uint16_t>;
  using Wide = std::conditional_t<sizeof(PrimT<T>) == 4, uint32_t, uint64_t>;
  using Bits = std::conditional_t<sizeof(PrimT<T>) < 4, Narrow, Wide>;
  detail::by_registers<Bits>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<Bits> moved;
    Reg::LoadAlign(moved, reinterpret_cast<Bits*>(src.GetPhyAddr()) + first, at);
    Reg::StoreAlign(reinterpret_cast<Bits*>(dst.GetPhyAddr()) + first, moved, mask, at);
  });
}

template <typename T, RoundMode roundMode>
inline void Truncate(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  detail::by_registers<PrimT<T>>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<PrimT<T>> of;
    Reg::LoadAlign(of, detail::lanes_of(src, first), at);
    Reg::Truncate<PrimT<T>, roundMode>(of, of, mask, at);
    Reg::StoreAlign(detail::lanes_of(dst, first), of, mask, at);
  });
}

// In lanes of float; half is widened before and packed behind.
template <typename T, typename U>
inline void ExpSub(const LocalTensor<T>& dst, const LocalTensor<U>& src0,
                   const LocalTensor<U>& src1, const uint32_t count, CUBECORE_AT) {
  constexpr bool widens = sizeof(PrimT<U>) == 2, packs = sizeof(PrimT<T>) == 2;
  constexpr Reg::LoadDist from =
      widens ? Reg::LoadDist::DIST_UNPACK_B16 : Reg::LoadDist::DIST_NORM;
  static constexpr Reg::CastTrait narrow = {Reg::RegLayout::ZERO, Reg::SatMode::SAT,
                                            Reg::MaskMergeMode::ZEROING, RoundMode::CAST_RINT};
  detail::by_registers<float>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<PrimT<U>> a, b;
    Reg::RegTensor<float> made;
    Reg::LoadAlign<PrimT<U>, from>(a, detail::lanes_of(src0, first), at);
    Reg::LoadAlign<PrimT<U>, from>(b, detail::lanes_of(src1, first), at);
    Reg::ExpSub(made, a, b, mask, at);
    if constexpr (packs) {
      Reg::RegTensor<PrimT<T>> half_lanes;
      Reg::Cast<PrimT<T>, float, narrow>(half_lanes, made, mask, at);
      Reg::StoreAlign<PrimT<T>, Reg::StoreDist::DIST_PACK_B32>(detail::lanes_of(dst, first),
                                                               half_lanes, mask, at);
    } else {
      Reg::StoreAlign(detail::lanes_of(dst, first), made, mask, at);
    }
  });
}

template <typename T>
inline void Mull(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1,
                 const LocalTensor<T>& src0, const LocalTensor<T>& src1, const uint32_t count,
                 CUBECORE_AT) {
  detail::by_registers<PrimT<T>>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<PrimT<T>> a, b, low, high;
    Reg::LoadAlign(a, detail::lanes_of(src0, first), at);
    Reg::LoadAlign(b, detail::lanes_of(src1, first), at);
    Reg::Mull(low, high, a, b, mask, at);
    Reg::StoreAlign(detail::lanes_of(dst0, first), low, mask, at);
    Reg::StoreAlign(detail::lanes_of(dst1, first), high, mask, at);
  });
}

template <typename D = BinaryDefaultType, typename E = BinaryDefaultType,
          const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename T, typename A, typename B>
inline void MulsCast(const LocalTensor<T>& dst, const A& src0, const B& src1,
                     const uint32_t count, CUBECORE_AT) {
  static constexpr Reg::CastTrait narrow = {Reg::RegLayout::ZERO, Reg::SatMode::SAT,
                                            Reg::MaskMergeMode::ZEROING, RoundMode::CAST_ROUND};
  const auto load0 = detail::operand<0, config.scalarTensorIndex, B, float>(src0, at);
  const auto load1 = detail::operand<1, config.scalarTensorIndex, A, float>(src1, at);
  detail::by_registers<float>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<float> a, b;
    Reg::RegTensor<PrimT<T>> made;
    load0(a, first);
    load1(b, first);
    Reg::Mul(a, a, b, mask, at);
    Reg::Cast<PrimT<T>, float, narrow>(made, a, mask, at);
    Reg::StoreAlign<PrimT<T>, Reg::StoreDist::DIST_PACK_B32>(detail::lanes_of(dst, first), made,
                                                             mask, at);
  });
}

// Of two tensors the config says which is a number; a number stands for itself.
#define CUBECORE_EITHER(NAME, CALL)                                                             \
  template <typename D = BinaryDefaultType, bool isSetMask = true,                              \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename T, typename A,         \
            typename B>                                                                         \
  inline void NAME##_of_registers(const LocalTensor<T>& dst, const A& src0, const B& src1,      \
                                  uint32_t count, const cubecore::Here& at) {                   \
    const auto call = [&](auto& to, auto& a, auto& b, const Reg::MaskReg& mask) {               \
      Reg::CALL(to, a, b, mask, at);                                                            \
    };                                                                                          \
    detail::of_registers(                                                                       \
        dst, count, at, detail::operand<0, config.scalarTensorIndex, B, T>(src0, at),           \
        detail::operand<1, config.scalarTensorIndex, A, T>(src1, at), call);                    \
  }                                                                                             \
  template <typename D = BinaryDefaultType, bool isSetMask = true,                              \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename T>                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0,                       \
                   const LocalTensor<T>& src1, const int32_t& count, CUBECORE_AT) {             \
    NAME##_of_registers<D, isSetMask, config>(dst, src0, src1, static_cast<uint32_t>(count),    \
                                              at);                                              \
  }                                                                                             \
  template <typename D = BinaryDefaultType, bool isSetMask = true,                              \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename T, typename S,         \
            std::enable_if_t<!detail::is_local<S>, int> = 0>                                    \
  inline void NAME(const LocalTensor<T>& dst, const S& src0, const LocalTensor<T>& src1,        \
                   const int32_t& count, CUBECORE_AT) {                                         \
    NAME##_of_registers<D, isSetMask, config>(dst, src0, src1, static_cast<uint32_t>(count),    \
                                              at);                                              \
  }
CUBECORE_EITHER(Adds, Add)
CUBECORE_EITHER(Subs, Sub)
CUBECORE_EITHER(Muls, Mul)
CUBECORE_EITHER(Divs, Div)
CUBECORE_EITHER(Maxs, Max)
CUBECORE_EITHER(Mins, Min)
CUBECORE_EITHER(Ands, And)
CUBECORE_EITHER(Ors, Or)
#undef CUBECORE_EITHER

// 2201 has the others of a tensor and a number.
#define CUBECORE_NUMBER_LAST(NAME)                                                        \
  template <typename D = BinaryDefaultType, bool isSetMask = true,                        \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename T, typename S,   \
            std::enable_if_t<!detail::is_local<S>, int> = 0>                              \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const S& src1,  \
                   const int32_t& count, CUBECORE_AT) {                                   \
    NAME##_of_registers(dst, src0, src1, static_cast<uint32_t>(count), at);               \
  }
CUBECORE_NUMBER_LAST(Divs)
CUBECORE_NUMBER_LAST(Ands)
CUBECORE_NUMBER_LAST(Ors)
#undef CUBECORE_NUMBER_LAST

// Ways to compute (reg/precision.h): results are rounded correctly in all of them.
#define CUBECORE_WAYS(NAME, DEFAULT)        \
  struct NAME##Config {                     \
    NAME##Algo algo = NAME##Algo::INTRINSIC; \
  };                                        \
  inline constexpr NAME##Config DEFAULT_##DEFAULT##_CONFIG = {NAME##Algo::INTRINSIC};
CUBECORE_WAYS(Div, DIV)
CUBECORE_WAYS(Sqrt, SQRT)
CUBECORE_WAYS(Rsqrt, RSQRT)
CUBECORE_WAYS(Exp, EXP)
CUBECORE_WAYS(Ln, LN)
CUBECORE_WAYS(Reciprocal, RECIPROCAL)
#undef CUBECORE_WAYS
#define CUBECORE_OF_A_WAY(NAME)                                                                \
  template <typename T, const NAME##Config& config>                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count, \
                   CUBECORE_AT) {                                                              \
    NAME(dst, src, count, at);                                                                 \
  }                                                                                            \
  template <typename T, bool isSetMask, const NAME##Config& config, typename M>                \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, M mask,               \
                   const uint8_t repeatTime, const UnaryRepeatParams& params, CUBECORE_AT) {   \
    NAME<T, isSetMask>(dst, src, mask, repeatTime, params, at);                                \
  }
CUBECORE_OF_A_WAY(Sqrt)
CUBECORE_OF_A_WAY(Rsqrt)
CUBECORE_OF_A_WAY(Exp)
CUBECORE_OF_A_WAY(Ln)
CUBECORE_OF_A_WAY(Reciprocal)
#undef CUBECORE_OF_A_WAY
template <typename T, const DivConfig& config>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const int32_t& count, CUBECORE_AT) {
  Div(dst, src0, src1, count, at);
}
template <typename T, bool isSetMask, const DivConfig& config, typename M>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                M mask, const uint8_t repeatTime, const BinaryRepeatParams& params, CUBECORE_AT) {
  Div<T, isSetMask>(dst, src0, src1, mask, repeatTime, params, at);
}

}  // namespace AscendC
