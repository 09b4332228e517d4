// Vector functions of one tensor, and of a tensor and a scalar. Pages: Abs, Exp, Ln, Reciprocal,
// Rsqrt, Sqrt, Relu, Not, Neg(ISASI), Adds, Muls, Maxs, Mins, LeakyRelu, ShiftLeft, ShiftRight,
// Axpy, Duplicate and the pages of scalars in either place (Subs, Divs, Ands, Ors).
#pragma once

#include "cubecore/basic/binary.h"

namespace AscendC {

namespace detail {

template <typename T, typename U>
inline void unary(const char* call, const LocalTensor<T>& dst, const LocalTensor<U>& src,
                  uint8_t times, const UnaryRepeatParams& p, const cubecore::Where& at) {
  cubecore::issue(call, at, dst.pointer(), src.pointer(), times, p.dstBlkStride, p.srcBlkStride,
                  p.dstRepStride, p.srcRepStride);
}

template <typename T, typename U, typename S>
inline void scaled(const char* call, const LocalTensor<T>& dst, const LocalTensor<U>& src, S value,
                   uint8_t times, const UnaryRepeatParams& p, const cubecore::Where& at) {
  cubecore::issue(call, at, dst.pointer(), src.pointer(), cubecore::scalar(value), times,
                  p.dstBlkStride, p.srcBlkStride, p.dstRepStride, p.srcRepStride);
}

// A scalar argument as the tensor's own type.
template <typename T, typename S>
inline auto as_element(S value) {
  return cubecore::scalar(static_cast<PrimT<T>>(value));
}

}  // namespace detail

#define CUBECORE_UNARY(NAME, CALL)                                                                 \
  template <typename T, bool isSetMask = true>                                                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,            \
                   const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, CUBECORE_AT) { \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                                \
    detail::note_repeats<PrimT<T>>(#NAME, repeatTime, repeatParams.dstBlkStride,                   \
                                   repeatParams.dstRepStride, at);                                 \
    detail::unary(CALL, dst, src, repeatTime, repeatParams, at);                                   \
  }                                                                                                \
  template <typename T, bool isSetMask = true>                                                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[],          \
                   const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, CUBECORE_AT) { \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                                \
    detail::note_repeats<PrimT<T>>(#NAME, repeatTime, repeatParams.dstBlkStride,                   \
                                   repeatParams.dstRepStride, at);                                 \
    detail::unary(CALL, dst, src, repeatTime, repeatParams, at);                                   \
  }                                                                                                \
  template <typename T>                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,     \
                   CUBECORE_AT) {                                                                  \
    cubecore::issue(CALL, at, dst.pointer(), src.pointer(), count);                                \
  }                                                                                                \
  template <typename T, typename Count>                                                            \
  inline detail::Exactly<int32_t, Count> NAME(const LocalTensor<T>& dst,                           \
                                              const LocalTensor<T>& src, const Count& count) {     \
    NAME(dst, src, count, *cubecore_last());                                                       \
  }

CUBECORE_EACH(Unary, CUBECORE_UNARY(cpp, "c_api"))
#undef CUBECORE_UNARY

#define CUBECORE_SCALED(NAME, CALL)                                                                \
  template <typename T, bool isSetMask = true, typename S = T>                                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,     \
                   uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, \
                   CUBECORE_AT) {                                                                  \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                                \
    detail::note_repeats<PrimT<T>>(#NAME, repeatTime, repeatParams.dstBlkStride,                   \
                                   repeatParams.dstRepStride, at);                                 \
    detail::scaled(CALL, dst, src, detail::as_element<T>(scalarValue), repeatTime, repeatParams,   \
                   at);                                                                            \
  }                                                                                                \
  template <typename T, bool isSetMask = true, typename S = T>                                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,     \
                   uint64_t mask[], const uint8_t repeatTime,                                      \
                   const UnaryRepeatParams& repeatParams, CUBECORE_AT) {                           \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                                \
    detail::note_repeats<PrimT<T>>(#NAME, repeatTime, repeatParams.dstBlkStride,                   \
                                   repeatParams.dstRepStride, at);                                 \
    detail::scaled(CALL, dst, src, detail::as_element<T>(scalarValue), repeatTime, repeatParams,   \
                   at);                                                                            \
  }                                                                                                \
  template <typename T, bool isSetMask = true, typename S = T>                                     \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,     \
                   const int32_t& count, CUBECORE_AT) {                                            \
    cubecore::issue(CALL, at, dst.pointer(), src.pointer(), detail::as_element<T>(scalarValue),    \
                    count);                                                                        \
  }                                                                                                \
  template <typename T, bool isSetMask = true, typename S = T, typename Count>                     \
  inline detail::Exactly<int32_t, Count> NAME(const LocalTensor<T>& dst,                           \
                                              const LocalTensor<T>& src, const S& scalarValue,     \
                                              const Count& count) {                                \
    NAME(dst, src, scalarValue, count, *cubecore_last());                                          \
  }

CUBECORE_EACH(VectorScalar Shift, CUBECORE_SCALED(cpp, "c_api"))
#undef CUBECORE_SCALED

// Page Subs: 2201 has it as an addition of the negative.
template <typename T, bool isSetMask = true, typename S = T>
inline void Subs(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,
                 const int32_t& count, CUBECORE_AT) {
  Adds(dst, src, -static_cast<PrimT<T>>(scalarValue), count, at);
}

template <typename T, bool isSetMask = true, typename S = T>
inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,
                       const int32_t& count, CUBECORE_AT) {
  cubecore::issue("asc_shiftright", at, dst.pointer(), src.pointer(),
                  detail::as_element<T>(scalarValue), count);
}
template <typename T, bool isSetMask = true, typename S = T, typename M>
inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const S& scalarValue,
                       const M mask, const uint8_t repeatTime,
                       const UnaryRepeatParams& repeatParams, bool roundEn = false, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T>(mask, "ShiftRight", at);
  detail::note_repeats<PrimT<T>>("ShiftRight", repeatTime, repeatParams.dstBlkStride,
                                 repeatParams.dstRepStride, at);
  detail::scaled(roundEn ? "asc_shiftright_round" : "asc_shiftright", dst, src,
                 detail::as_element<T>(scalarValue), repeatTime, repeatParams, at);
}

template <typename T, typename U>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
                 const int32_t& count, CUBECORE_AT) {
  cubecore::issue("asc_axpy", at, dst.pointer(), src.pointer(), cubecore::scalar(scalarValue),
                  count);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
                 uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,
                 CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T, U>(mask, "Axpy", at);
  detail::note_repeats<PrimT<T>, PrimT<U>>("Axpy", repeatTime, repeatParams.dstBlkStride,
                                 repeatParams.dstRepStride, at);
  detail::scaled("asc_axpy", dst, src, scalarValue, repeatTime, repeatParams, at);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
                 uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,
                 CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T, U>(mask, "Axpy", at);
  detail::note_repeats<PrimT<T>, PrimT<U>>("Axpy", repeatTime, repeatParams.dstBlkStride,
                                 repeatParams.dstRepStride, at);
  detail::scaled("asc_axpy", dst, src, scalarValue, repeatTime, repeatParams, at);
}

#if __NPU_ARCH__ == 3510
namespace detail {
// Elements of 8 and of 64 bits, which only 3510 has: a vector function fills them (reg/tensors.h).
template <typename T, typename S>
void filled_by_registers(const LocalTensor<T>& dst, const S& value, uint32_t count,
                         const cubecore::Here& at);
}  // namespace detail
#endif

template <typename T, typename S>
inline void Duplicate(const LocalTensor<T>& dst, const S& scalarValue, const int32_t& count,
                      CUBECORE_AT) {
#if __NPU_ARCH__ == 3510
  if constexpr (sizeof(PrimT<T>) == 1 || sizeof(PrimT<T>) == 8) {
    detail::filled_by_registers(dst, scalarValue, static_cast<uint32_t>(count), at);
    return;
  }
#endif
  cubecore::issue("asc_duplicate", at, dst.pointer(), detail::as_element<T>(scalarValue), count);
}
template <typename T, bool isSetMask = true, typename S = T>
inline void Duplicate(const LocalTensor<T>& dst, const S& scalarValue, uint64_t mask,
                      const uint8_t repeatTime, const uint16_t dstBlockStride,
                      const uint8_t dstRepeatStride, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T>(mask, "Duplicate", at);
  detail::note_repeats<PrimT<T>>("Duplicate", repeatTime, dstBlockStride, dstRepeatStride, at);
  cubecore::issue("asc_duplicate", at, dst.pointer(), detail::as_element<T>(scalarValue),
                  repeatTime, dstBlockStride, dstRepeatStride);
}
template <typename T, bool isSetMask = true, typename S = T>
inline void Duplicate(const LocalTensor<T>& dst, const S& scalarValue, uint64_t mask[],
                      const uint8_t repeatTime, const uint16_t dstBlockStride,
                      const uint8_t dstRepeatStride, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T>(mask, "Duplicate", at);
  detail::note_repeats<PrimT<T>>("Duplicate", repeatTime, dstBlockStride, dstRepeatStride, at);
  cubecore::issue("asc_duplicate", at, dst.pointer(), detail::as_element<T>(scalarValue),
                  repeatTime, dstBlockStride, dstRepeatStride);
}

namespace detail {
// Elements as bits, which the instruction copies whatever their type.
template <typename T>
using CopiedBits = std::conditional_t<sizeof(PrimT<T>) == 2, uint16_t, uint32_t>;
// What the lanes of a mask are of: the caller's own elements, where they are as wide.
template <typename T>
using CopiedLanes =
    std::conditional_t<sizeof(PrimT<T>) == sizeof(CopiedBits<T>), PrimT<T>, CopiedBits<T>>;
template <typename T>
inline void copy_lanes(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint8_t repeatTime,
                       const CopyRepeatParams& p, const cubecore::Where& at) {
  using Bits = CopiedBits<T>;
  cubecore::issue("asc_copy", at, dst.template ReinterpretCast<Bits>().pointer(),
                  src.template ReinterpretCast<Bits>().pointer(), repeatTime, p.dstStride,
                  p.srcStride, p.dstRepeatSize, p.srcRepeatSize);
}
}  // namespace detail

template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask,
                 const uint8_t repeatTime, const CopyRepeatParams& p, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<detail::CopiedLanes<T>>(mask, "Copy", at);
  detail::note_repeats<PrimT<T>>("Copy", repeatTime, p.dstStride, p.dstRepeatSize, at);
  detail::copy_lanes(dst, src, repeatTime, p, at);
}
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                 const uint8_t repeatTime, const CopyRepeatParams& p, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<detail::CopiedLanes<T>>(mask, "Copy", at);
  detail::note_repeats<PrimT<T>>("Copy", repeatTime, p.dstStride, p.dstRepeatSize, at);
  detail::copy_lanes(dst, src, repeatTime, p, at);
}

}  // namespace AscendC
