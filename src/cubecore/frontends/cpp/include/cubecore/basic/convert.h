// Conversions between element types. Pages: Cast, SetDeqScale, CastDequant.
#pragma once

#include "cubecore/basic/unary.h"

namespace AscendC {

namespace detail {

// The C API's word for a type in the names of conversions.
template <typename T>
constexpr const char* cast_word() {
  if constexpr (std::is_same_v<T, half>) return "half";
  if constexpr (std::is_same_v<T, bfloat16_t>) return "bfloat16";
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, int4b_t>) return "int4";
  if constexpr (std::is_same_v<T, int8_t>) return "int8";
  if constexpr (std::is_same_v<T, uint8_t>) return "uint8";
  if constexpr (std::is_same_v<T, int16_t>) return "int16";
  if constexpr (std::is_same_v<T, int32_t>) return "int32";
  if constexpr (std::is_same_v<T, uint32_t>) return "int32";
  if constexpr (std::is_same_v<T, int64_t>) return "int64";
  return "none";
}

struct CastName {
  char text[40];
};

constexpr CastName cast_name(const char* from, const char* to, const char* mode) {
  CastName made = {};
  int at = 0;
  for (const char* part : {"asc_", from, "2", to, mode})
    for (; *part != 0; ++part) made.text[at++] = *part;
  return made;
}

// Conversions that lose nothing, or have no rounding of their own: their names have no mode.
template <typename T, typename U>
constexpr bool plain_cast() {
  return (std::is_same_v<T, float> && (cubecore::is_half<U> || std::is_same_v<U, int16_t>)) ||
         (std::is_same_v<T, half> && sizeof(U) == 1) ||
         (std::is_same_v<T, int16_t> && std::is_same_v<U, int32_t>) ||
         (std::is_same_v<T, int64_t> && std::is_same_v<U, int32_t>) ||
         (std::is_same_v<T, int32_t> && std::is_same_v<U, int64_t>);
}

template <typename T, typename U>
inline const char* cast_call(RoundMode mode) {
  constexpr const char* from = cast_word<U>();
  constexpr const char* to = cast_word<T>();
  if constexpr (std::is_same_v<T, half> && std::is_same_v<U, int32_t>) {
    return "asc_deq_int322half";
  } else if constexpr (plain_cast<T, U>()) {
    static constexpr CastName name = cast_name(from, to, "");
    return name.text;
  } else {
    // CAST_NONE is CAST_RINT where something may be lost (page Cast).
    static constexpr CastName names[] = {cast_name(from, to, "_rn"),  cast_name(from, to, "_rn"),
                                         cast_name(from, to, "_rd"),  cast_name(from, to, "_ru"),
                                         cast_name(from, to, "_rna"), cast_name(from, to, "_rz"),
                                         cast_name(from, to, "_ro")};
    return names[static_cast<uint8_t>(mode) % 7].text;
  }
}

#if __NPU_ARCH__ == 3510
// Conversions that 2201 has no instruction for (reg/casts.h).
template <typename T, typename U>
constexpr bool casts_by_registers();
template <typename T, typename U>
void cast_by_registers(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode roundMode,
                       uint32_t count, const cubecore::Here& at);
template <typename T, typename U>
void cast_by_repeats(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode roundMode,
                     uint32_t times, const UnaryRepeatParams& p, const cubecore::Here& at);
#endif

// A mask of either kind: lanes, or an array of bits.
template <bool isSetMask, typename T, typename U, typename M>
inline void cast_in_repeats(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                            RoundMode roundMode, const M mask, uint8_t repeatTime,
                            const UnaryRepeatParams& p, const cubecore::Here& at) {
  if constexpr (isSetMask) set_given<T, U>(mask, "Cast", at);
  note_repeats<PrimT<T>, PrimT<U>>("Cast", repeatTime, p.dstBlkStride, p.dstRepStride, at);
#if __NPU_ARCH__ == 3510
  if constexpr (casts_by_registers<PrimT<T>, PrimT<U>>()) {
    cast_by_repeats(dst, src, roundMode, repeatTime, p, at);
    return;
  }
#endif
  unary(cast_call<PrimT<T>, PrimT<U>>(roundMode), dst, src, repeatTime, p, at);
}

}  // namespace detail

template <typename T, typename U>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                 const uint32_t count, CUBECORE_AT) {
#if __NPU_ARCH__ == 3510
  if constexpr (detail::casts_by_registers<PrimT<T>, PrimT<U>>()) {
    detail::cast_by_registers(dst, src, roundMode, count, at);
    return;
  }
#endif
  cubecore::issue(detail::cast_call<PrimT<T>, PrimT<U>>(roundMode), at, dst.pointer(),
                  src.pointer(), count);
}
template <typename T, typename U, bool isSetMask = true>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                 const uint64_t mask, const uint8_t repeatTime,
                 const UnaryRepeatParams& repeatParams, CUBECORE_AT) {
  detail::cast_in_repeats<isSetMask>(dst, src, roundMode, mask, repeatTime, repeatParams, at);
}
template <typename T, typename U, bool isSetMask = true>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                 const uint64_t mask[], const uint8_t repeatTime,
                 const UnaryRepeatParams& repeatParams, CUBECORE_AT) {
  detail::cast_in_repeats<isSetMask>(dst, src, roundMode, mask, repeatTime, repeatParams, at);
}

// Page SetDeqScale.
namespace detail {

inline uint64_t deq_word(float scale, int16_t offset, bool isSigned) {
  return cubecore::float_bits(scale) | (static_cast<uint64_t>(offset) & 0x1FF) << 37 |
         static_cast<uint64_t>(isSigned) << 46;
}

}  // namespace detail

inline void SetDeqScale(half scale, CUBECORE_AT) {
  cubecore::issue("asc_set_deq_scale", at, static_cast<uint64_t>(scale.bits));
}
inline void SetDeqScale(float scale, int16_t offset, bool signMode, CUBECORE_AT) {
  cubecore::issue("asc_set_deq_scale", at, detail::deq_word(scale, offset, signMode));
}

namespace detail {

template <typename U, bool isVecDeq, bool halfBlock>
constexpr const char* dequantising_call() {
  if constexpr (std::is_same_v<PrimT<U>, int32_t>) return "asc_deq_int322half";
  if constexpr (isVecDeq) return halfBlock ? "asc_vdeq_int162b8_h" : "asc_vdeq_int162b8_l";
  return halfBlock ? "asc_deq_int162b8_h" : "asc_deq_int162b8_l";
}

}  // namespace detail

template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>
inline void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count,
                        CUBECORE_AT) {
  cubecore::issue(detail::dequantising_call<U, isVecDeq, halfBlock>(), at, dst.pointer(),
                  src.pointer(), count);
}
// A mask of either kind: lanes, or an array of bits.
template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true,
          bool halfBlock = true, typename M>
inline void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, const M mask,
                        uint8_t repeatTime, const UnaryRepeatParams& repeatParams, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<U>(mask, "CastDequant", at);
  detail::unary(detail::dequantising_call<U, isVecDeq, halfBlock>(), dst, src, repeatTime,
                repeatParams, at);
}
// Page "接口变更说明": its older name.
template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>
inline void CastDeq(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count,
                    CUBECORE_AT) {
  CastDequant<T, U, isVecDeq, halfBlock>(dst, src, count, at);
}
template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true,
          bool halfBlock = true, typename M>
inline void CastDeq(const LocalTensor<T>& dst, const LocalTensor<U>& src, const M mask,
                    uint8_t repeatTime, const UnaryRepeatParams& repeatParams, CUBECORE_AT) {
  CastDequant<T, U, isSetMask, isVecDeq, halfBlock>(dst, src, mask, repeatTime, repeatParams, at);
}

}  // namespace AscendC
