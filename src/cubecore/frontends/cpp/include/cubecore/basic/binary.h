// Vector arithmetic of two tensors. Pages: Add, Sub, Mul, Div, Max, Min, And, Or, AddRelu, SubRelu,
// FusedMulAdd, MulAddDst, MulAddRelu, AddReluCast, SubReluCast, MulCast. Each has three forms: a
// mask of lanes, a mask of bits, and a number of elements; and the last again for pointers to
// functions, which take no line. A call prefers the form without a pack.
#pragma once

#include "cubecore/basic/mask.h"
#include "cubecore/basic/params.h"

namespace AscendC {

namespace detail {

template <typename T>
inline void binary(const char* call, const LocalTensor<T>& dst, const cubecore::Pointer& src0,
                   const cubecore::Pointer& src1, uint8_t times, const BinaryRepeatParams& p,
                   const cubecore::Where& at) {
  cubecore::issue(call, at, dst.pointer(), src0, src1, times, p.dstBlkStride, p.src0BlkStride,
                  p.src1BlkStride, p.dstRepStride, p.src0RepStride, p.src1RepStride);
}

template <typename T>
constexpr const char* product_call() {
  return std::is_same_v<PrimT<T>, int8_t> ? "asc_mul_cast_half2int8" : "asc_mul_cast_half2uint8";
}

}  // namespace detail

#define CUBECORE_BINARY(NAME, CALL, ...)                                                        \
  template <__VA_ARGS__>                                                                        \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0,                       \
                   const LocalTensor<U>& src1, uint64_t mask, const uint8_t repeatTime,         \
                   const BinaryRepeatParams& repeatParams, CUBECORE_AT) {                       \
    if constexpr (isSetMask) detail::set_given<T, U>(mask, #NAME, at);                          \
    detail::note_repeats<PrimT<T>, PrimT<U>>(#NAME, repeatTime, repeatParams.dstBlkStride,      \
                                   repeatParams.dstRepStride, at);                              \
    detail::binary(CALL, dst, src0.pointer(), src1.pointer(), repeatTime, repeatParams, at);    \
  }                                                                                             \
  template <__VA_ARGS__>                                                                        \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0,                       \
                   const LocalTensor<U>& src1, uint64_t mask[], const uint8_t repeatTime,       \
                   const BinaryRepeatParams& repeatParams, CUBECORE_AT) {                       \
    if constexpr (isSetMask) detail::set_given<T, U>(mask, #NAME, at);                          \
    detail::note_repeats<PrimT<T>, PrimT<U>>(#NAME, repeatTime, repeatParams.dstBlkStride,      \
                                   repeatParams.dstRepStride, at);                              \
    detail::binary(CALL, dst, src0.pointer(), src1.pointer(), repeatTime, repeatParams, at);    \
  }                                                                                             \
  template <typename T, typename U = T>                                                         \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<U>& src0,                       \
                   const LocalTensor<U>& src1, const int32_t& count, CUBECORE_AT) {             \
    cubecore::issue(CALL, at, dst.pointer(), src0.pointer(), src1.pointer(), count);            \
  }                                                                                             \
  template <typename T, typename U = T, typename Count>                                         \
  inline detail::Exactly<int32_t, Count> NAME(const LocalTensor<T>& dst,                        \
                                              const LocalTensor<U>& src0,                       \
                                              const LocalTensor<U>& src1, const Count& count) { \
    NAME(dst, src0, src1, count, *cubecore_last());                                             \
  }                                                                                             \
  template <__VA_ARGS__, typename Count>                                                        \
  inline detail::Exactly<uint8_t, Count> NAME(                                                  \
      const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,        \
      uint64_t mask, const Count repeatTime, const BinaryRepeatParams& repeatParams) {          \
    if constexpr (isSetMask) detail::set_given<T, U>(mask, #NAME, *cubecore_last());            \
    detail::note_repeats<PrimT<T>, PrimT<U>>(#NAME, repeatTime, repeatParams.dstBlkStride,      \
                                   repeatParams.dstRepStride, *cubecore_last());                \
    detail::binary(CALL, dst, src0.pointer(), src1.pointer(), repeatTime, repeatParams,         \
                   *cubecore_last());                                                           \
  }

#define CUBECORE_ALIKE(NAME, CALL) \
  CUBECORE_BINARY(NAME, CALL, typename T, bool isSetMask = true, typename U = T)
CUBECORE_EACH(Binary WithRelu MultiplyAdd, CUBECORE_ALIKE(cpp, "c_api"))
CUBECORE_ALIKE(FusedMulAddRelu, "asc_mul_add_relu")
CUBECORE_BINARY(AddReluCast, "asc_add_relu", typename T, typename U, bool isSetMask = true)
CUBECORE_BINARY(SubReluCast, "asc_sub_relu", typename T, typename U, bool isSetMask = true)
CUBECORE_BINARY(MulCast, detail::product_call<T>(), typename T, typename U, bool isSetMask = true)
CUBECORE_BINARY(MulAddDst, "asc_fma", typename T, typename U, bool isSetMask = true)
#undef CUBECORE_ALIKE
#undef CUBECORE_BINARY

namespace detail {

// "Operators on whole tensors": as many elements as the result has.
template <typename T, Sign sign>
inline std::enable_if_t<(sign < Sign::LT)> whole(const LocalTensor<T>& dst,
                                                 const Whole<T, sign>& made) {
  int32_t count = static_cast<int32_t>(dst.GetSize());
  if constexpr (sign == Sign::ADD) Add(dst, made.src0, made.src1, count, made.at);
  if constexpr (sign == Sign::SUB) Sub(dst, made.src0, made.src1, count, made.at);
  if constexpr (sign == Sign::MUL) Mul(dst, made.src0, made.src1, count, made.at);
  if constexpr (sign == Sign::DIV) Div(dst, made.src0, made.src1, count, made.at);
  if constexpr (sign == Sign::AND) And(dst, made.src0, made.src1, count, made.at);
  if constexpr (sign == Sign::OR) Or(dst, made.src0, made.src1, count, made.at);
}

}  // namespace detail

}  // namespace AscendC
