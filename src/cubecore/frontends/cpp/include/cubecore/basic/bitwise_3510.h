// Functions on whole tensors of architecture 3510 alone. Pages: BitwiseAnd, BitwiseOr, BitwiseXor,
// BitwiseNot, LogicalAnd, LogicalOr, LogicalXor, LogicalNot, LogicalAnds, LogicalOrs, Clamp, Where,
// Fma, IsFinite, IsInf, IsNan, Broadcast, Duplicate (of a tensor), and the pages of their workspaces,
// of which none is needed here; Compares and Select with the scalar in either place.
#pragma once

#include "cubecore/basic/compare.h"
#include "cubecore/basic/unary.h"
#include "cubecore/host/workspaces.h"

namespace AscendC {

struct BinaryDefaultType {};
// Which of two tensors is a number, its first element.
struct BinaryConfig {
  int8_t scalarTensorIndex = 1;
};
inline constexpr BinaryConfig DEFAULT_BINARY_CONFIG = {1};

namespace detail {

template <typename... T>
inline void whole(const char* call, const cubecore::Where& at, uint32_t count, const T&... given) {
  cubecore::issue(call, at, given..., cubecore::named("count", count));
}

// A number in the place of a tensor of T is given by its name.
template <typename T, typename V>
constexpr auto given(const char* name, const V& value) {
  if constexpr (is_local<V>)
    return value.pointer();
  else
    return cubecore::named(name, cubecore::scalar(static_cast<PrimT<T>>(value)));
}

}  // namespace detail

#define CUBECORE_CONFIG(NAME, DEFAULT) \
  struct NAME##Config {                \
    bool isReuseSource;                \
  };                                   \
  inline constexpr NAME##Config DEFAULT_##DEFAULT##_CONFIG = {false};

#define CUBECORE_WHOLE2(NAME, DEFAULT, CALL)                                                 \
  CUBECORE_CONFIG(NAME, DEFAULT)                                                             \
  template <const NAME##Config& config = DEFAULT_##DEFAULT##_CONFIG, typename T, typename U> \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0,                    \
                   const LocalTensor<U>& src1, const uint32_t count, CUBECORE_AT) {          \
    detail::whole(CALL, at, count, dst.pointer(), src0.pointer(), src1.pointer());           \
  }
CUBECORE_WHOLE2(BitwiseAnd, BITWISE_AND, "bitwise_and")
CUBECORE_WHOLE2(BitwiseOr, BITWISE_OR, "bitwise_or")
CUBECORE_WHOLE2(BitwiseXor, BITWISE_XOR, "bitwise_xor")
CUBECORE_WHOLE2(LogicalAnd, LOGICAL_AND, "logical_and")
CUBECORE_WHOLE2(LogicalOr, LOGICAL_OR, "logical_or")
CUBECORE_WHOLE2(LogicalXor, LOGICAL_XOR, "logical_xor")
#undef CUBECORE_WHOLE2

#define CUBECORE_WHOLE1(NAME, DEFAULT, CALL)                                                   \
  CUBECORE_CONFIG(NAME, DEFAULT)                                                               \
  template <const NAME##Config& config = DEFAULT_##DEFAULT##_CONFIG, typename T, typename U>   \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count, \
                   CUBECORE_AT) {                                                              \
    detail::whole(CALL, at, count, dst.pointer(), src.pointer());                              \
  }
CUBECORE_WHOLE1(BitwiseNot, BITWISE_NOT, "bitwise_not")
CUBECORE_WHOLE1(LogicalNot, LOGICAL_NOT, "logical_not")

#define CUBECORE_WITH_NUMBER(NAME, DEFAULT, CALL)                                            \
  CUBECORE_CONFIG(NAME, DEFAULT)                                                             \
  template <const NAME##Config& config = DEFAULT_##DEFAULT##_CONFIG, typename T, typename U, \
            typename S>                                                                      \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const S& src1,     \
                   const uint32_t count, CUBECORE_AT) {                                      \
    detail::whole(CALL, at, count, dst.pointer(), src0.pointer(),                            \
                  cubecore::named("src1", cubecore::scalar(static_cast<PrimT<U>>(src1))));   \
  }
CUBECORE_WITH_NUMBER(LogicalAnds, LOGICAL_ANDS, "logical_ands")
CUBECORE_WITH_NUMBER(LogicalOrs, LOGICAL_ORS, "logical_ors")
#undef CUBECORE_WITH_NUMBER

CUBECORE_CONFIG(Clamp, CLAMP)
template <const ClampConfig& config = DEFAULT_CLAMP_CONFIG, typename T, typename U, typename S>
inline void Clamp(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& min, const S& max,
                  const uint32_t count, CUBECORE_AT) {
  constexpr bool low = detail::is_local<U>, high = detail::is_local<S>;
  constexpr const char* calls[] = {"clamp_both", "clamp_low", "clamp_high", "clamp"};
  detail::whole(calls[2 * low + high], at, count, dst.pointer(), src.pointer(),
                detail::given<T>("low", min), detail::given<T>("high", max));
}

template <typename T, typename U, typename S, typename V>
inline void Where(const LocalTensor<T>& dst, const U& src0, const S& src1,
                  const LocalTensor<V>& condition, const uint32_t count, CUBECORE_AT) {
  constexpr bool first = detail::is_local<U>, second = detail::is_local<S>;
  constexpr const char* calls[] = {"where_both", "where_first", "where_second", "where"};
  detail::whole(calls[2 * first + second], at, count, dst.pointer(), detail::given<T>("src0", src0),
                detail::given<T>("src1", src1), condition.pointer());
}

CUBECORE_CONFIG(Fma, FMA)
template <const FmaConfig& config = DEFAULT_FMA_CONFIG, typename T>
inline void Fma(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const LocalTensor<T>& src2, const uint32_t count, CUBECORE_AT) {
  detail::whole("fma", at, count, dst.pointer(), src0.pointer(), src1.pointer(), src2.pointer());
}
template <const FmaConfig& config = DEFAULT_FMA_CONFIG, typename T>
inline void Fma(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const LocalTensor<T>& src2, const LocalTensor<uint8_t>&, const uint32_t count,
                CUBECORE_AT) {
  Fma<config>(dst, src0, src1, src2, count, at);
}

// Results are numbers of dst's type, or truths of a byte each.
#define CUBECORE_TEST(CALL) (sizeof(PrimT<T>) == 1 ? CALL "_truth" : CALL)
template <typename U, typename T>
inline void IsFinite(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t calCount,
                     CUBECORE_AT) {
  detail::whole(CUBECORE_TEST("is_finite"), at, calCount, dst.pointer(), src.pointer());
}
CUBECORE_WHOLE1(IsInf, IS_INF, CUBECORE_TEST("is_inf"))
CUBECORE_WHOLE1(IsNan, IS_NAN, CUBECORE_TEST("is_nan"))
#define CUBECORE_WITH_WORKSPACE(NAME, DEFAULT)                                               \
  template <const NAME##Config& config = DEFAULT_##DEFAULT##_CONFIG, typename T, typename U> \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src,                     \
                   const LocalTensor<uint8_t>&, const uint32_t count, CUBECORE_AT) {         \
    NAME<config>(dst, src, count, at);                                                       \
  }
CUBECORE_WITH_WORKSPACE(IsInf, IS_INF)
CUBECORE_WITH_WORKSPACE(IsNan, IS_NAN)
#undef CUBECORE_WITH_WORKSPACE
#undef CUBECORE_TEST
#undef CUBECORE_WHOLE1
#undef CUBECORE_CONFIG

// Of page Broadcast the forms whose shapes are known when the kernel runs; what the tiling holds is
// cubecore's own.
struct BroadcastTiling {
  uint32_t rank = 0;
};
template <class T, int constRank = -1, uint32_t* constDstShape = nullptr,
          uint32_t* constSrcShape = nullptr>
inline void GetBroadcastTilingInfo(uint32_t rank, const uint32_t*, const uint32_t*, bool,
                                   BroadcastTiling& tiling, CUBECORE_AT) {
  if (rank < 1 || rank > 9) {
    char text[16];
    snprintf(text, sizeof text, "%u", rank);
    cubecore_refuse("GetBroadcastTilingInfo.rank", "be in [1, 9]", text, &at);
  }
  tiling.rank = rank;
}
template <class T, int constRank = -1, uint32_t* constDstShape = nullptr,
          uint32_t* constSrcShape = nullptr, bool constSrcInnerPad = false>
inline void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const uint32_t* dstShape, const uint32_t* srcShape, BroadcastTiling* tiling,
                      CUBECORE_AT) {
  using cubecore::named;
  uint32_t to[9], from[9], count = 1;
  for (uint32_t axis = 0; axis < 9; ++axis) {
    const uint32_t skipped = 9 - tiling->rank;  // outermost axes of 1
    to[axis] = axis < skipped ? 1 : dstShape[axis - skipped];
    from[axis] = axis < skipped ? 1 : srcShape[axis - skipped];
    count *= to[axis];
  }
  cubecore::issue("broadcast", at, dst.pointer(), src.pointer(), named("count", count),
                  named("dst_size0", to[0]), named("dst_size1", to[1]), named("dst_size2", to[2]),
                  named("dst_size3", to[3]), named("dst_size4", to[4]), named("dst_size5", to[5]),
                  named("dst_size6", to[6]), named("dst_size7", to[7]), named("dst_size8", to[8]),
                  named("src_size0", from[0]), named("src_size1", from[1]),
                  named("src_size2", from[2]), named("src_size3", from[3]),
                  named("src_size4", from[4]), named("src_size5", from[5]),
                  named("src_size6", from[6]), named("src_size7", from[7]),
                  named("src_size8", from[8]));
}

template <typename T>
inline void Duplicate(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,
                      CUBECORE_AT) {
  detail::whole("duplicate_first", at, static_cast<uint32_t>(count), dst.pointer(), src.pointer());
}

namespace detail {

// The comparison of b and a that is one of a and b.
constexpr CMPMODE mirrored(CMPMODE mode) {
  return mode == CMPMODE::LT   ? CMPMODE::GT
         : mode == CMPMODE::GT ? CMPMODE::LT
         : mode == CMPMODE::LE ? CMPMODE::GE
         : mode == CMPMODE::GE ? CMPMODE::LE
                               : mode;
}
// True if the left one of two operands is the scalar: a number, or an element of a tensor.
template <typename A, typename B, const BinaryConfig& config>
constexpr bool is_scalar_left = !is_local<A> || (is_local<B> && config.scalarTensorIndex == 0);

template <typename U, typename A, typename B>
inline void compared(const char* call, const LocalTensor<U>& dst, const A& tensor, const B& scalar,
                     CMPMODE mode, uint32_t count, const cubecore::Where& at) {
  static_assert(is_local<A>, "one of two operands must be a LocalTensor, got two numbers");
  if constexpr (is_local<B>)
    cubecore::issue(counted_compare(mode, Second::ELEMENT), at, as_bits(dst.pointer()),
                    tensor.pointer(), scalar.pointer(), cubecore::named("count", count));
  else
    compare_scalar(call, dst, tensor, scalar, mode, count, at);
}

}  // namespace detail

#define CUBECORE_COMPARES_EITHER(NAME)                                                        \
  template <typename T0 = BinaryDefaultType, typename T1 = BinaryDefaultType,                 \
            bool isSetMask = true, const BinaryConfig& config = DEFAULT_BINARY_CONFIG,        \
            typename U, typename A, typename B>                                               \
  inline void NAME(const LocalTensor<U>& dst, const A& src0, const B& src1, CMPMODE cmpMode,  \
                   uint32_t count, CUBECORE_AT) {                                             \
    if constexpr (detail::is_scalar_left<A, B, config>)                                       \
      detail::compared(#NAME, dst, src1, src0, detail::mirrored(cmpMode), count, at);         \
    else                                                                                      \
      detail::compared(#NAME, dst, src0, src1, cmpMode, count, at);                           \
  }
CUBECORE_COMPARES_EITHER(Compares)
CUBECORE_COMPARES_EITHER(CompareScalar)
#undef CUBECORE_COMPARES_EITHER

// A number in the first place. Of two tensors, whose call names the config, one element of one
// counts in the mode of a scalar.
template <typename T0 = BinaryDefaultType, typename T1 = BinaryDefaultType, typename T, typename U,
          typename S, std::enable_if_t<!detail::is_local<S>, int> = 0>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const S& src0,
                   const LocalTensor<T>& src1, SELMODE, uint32_t count, CUBECORE_AT) {
  cubecore::issue("select_bits_number_first", at, dst.pointer(), src1.pointer(),
                  detail::as_bits(selMask.pointer()), detail::given<T>("src0", src0),
                  cubecore::named("count", count));
}
template <typename T0, typename T1, const BinaryConfig& config, typename T, typename U, typename A,
          typename B>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const A& src0,
                   const B& src1, SELMODE selMode, uint32_t count, CUBECORE_AT) {
  if constexpr (detail::is_local<A> && detail::is_local<B>) {
    const char* call = selMode != SELMODE::VSEL_TENSOR_SCALAR_MODE ? "select_bits"
                       : config.scalarTensorIndex == 0             ? "select_bits_element_first"
                                                                   : "select_bits_element";
    cubecore::issue(call, at, dst.pointer(), src0.pointer(), src1.pointer(),
                    detail::as_bits(selMask.pointer()), cubecore::named("count", count));
  } else {
    Select(dst, selMask, src0, src1, selMode, count, at);
  }
}

}  // namespace AscendC
