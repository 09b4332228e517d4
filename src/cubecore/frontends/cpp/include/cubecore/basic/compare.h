// Comparing and selecting. Pages: Compare, Compares (CompareScalar), Select, GetCmpMask(ISASI), SetCmpMask(ISASI).
#pragma once

#include "cubecore/basic/reduce.h"

namespace AscendC {

namespace detail {

constexpr const char* compare_call(CMPMODE mode, bool scalar) {
  constexpr const char* names[] = {"asc_lt", "asc_gt", "asc_eq", "asc_le", "asc_ge", "asc_ne"};
  constexpr const char* scalars[] = {"asc_lt_scalar", "asc_gt_scalar", "asc_eq_scalar",
                                     "asc_le_scalar", "asc_ge_scalar", "asc_ne_scalar"};
  return scalar ? scalars[static_cast<uint8_t>(mode)] : names[static_cast<uint8_t>(mode)];
}

inline cubecore::Pointer moved(cubecore::Pointer pointer, int64_t bytes) {
  pointer.address += bytes;
  return pointer;
}

inline cubecore::Pointer as_bits(cubecore::Pointer pointer) {
  pointer.type = "uint8";
  return pointer;
}

constexpr uint32_t MOST_TIMES = 255;

// The last bytes of UB, which a select takes for what its register is loaded from; it takes them
// from a buffer that ends there.
inline cubecore::Pointer scratch(const char* type, const cubecore::Where& at) {
  constexpr uint64_t bytes = 32;
  uint64_t most = memory_bytes(1);
  if (core_state().used[1] > most - bytes)
    found_full("Select", "the buffers and the 32 B that it needs", most,
               core_state().used[1] + bytes, at);
  return {cubecore::Mem::UB, type, static_cast<int64_t>(most - bytes)};
}

// Loads CMPMASK with a number in its low 32 bits, or 16.
template <typename V>
inline void load_cmp_mask(const char* type, V value, const cubecore::Where& at) {
  cubecore::Pointer place = scratch("uint32", at);
  barrier(PIPE_V, at);
  cubecore::issue("asc_duplicate", at, place, 0u, 8);
  barrier(PIPE_V, at);
  place.type = type;
  cubecore::issue("asc_duplicate", at, place, value, 1);
  barrier(PIPE_V, at);
  place.type = "uint8";
  cubecore::issue("asc_set_cmp_mask", at, place);
  barrier(PIPE_V, at);
}

#if __NPU_ARCH__ == 3510
// A comparison of the first elements of a tensor with those of another, a number or one element.
enum class Second { TENSOR, NUMBER, ELEMENT };
constexpr const char* counted_compare(CMPMODE mode, Second second) {
  constexpr const char* names[][3] = {
      {"compare_lt", "compare_lts", "compare_lt_element"},
      {"compare_gt", "compare_gts", "compare_gt_element"},
      {"compare_eq", "compare_eqs", "compare_eq_element"},
      {"compare_le", "compare_les", "compare_le_element"},
      {"compare_ge", "compare_ges", "compare_ge_element"},
      {"compare_ne", "compare_nes", "compare_ne_element"}};
  return names[static_cast<uint8_t>(mode)][static_cast<uint8_t>(second)];
}
#endif

// How often 256 B fit in so many elements: what is behind them is not compared.
template <typename T>
inline uint32_t whole_repeats(const char* call, uint32_t count, const cubecore::Where& at) {
  constexpr uint32_t lanes = lanes_of<T>();
  if (count % lanes != 0) {
    char said[128];
    std::snprintf(said, sizeof(said),
                  "count must be a multiple of %u for %s (256 B), got %u; only %u are compared",
                  lanes, cubecore::Element<PrimT<T>>::word, count, count / lanes * lanes);
    cubecore_finding("parameter", call, said, &at);
  }
  return count / lanes;
}

}  // namespace detail

// 256 B at a time on 2201.
template <typename T, typename U>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0,
                    const LocalTensor<T>& src1, CMPMODE cmpMode, uint32_t count, CUBECORE_AT) {
#if __NPU_ARCH__ == 3510
  cubecore::issue(detail::counted_compare(cmpMode, detail::Second::TENSOR), at, detail::as_bits(dst.pointer()),
                  src0.pointer(), src1.pointer(), cubecore::named("count", count));
#else
  constexpr uint32_t lanes = detail::lanes_of<T>();
  const uint32_t repeats = detail::whole_repeats<T>("Compare", count, at);
  if (repeats != 0) detail::set_mask(~0ull, ~0ull, at);
  for (uint32_t done = 0; done < repeats; done += detail::MOST_TIMES) {
    uint32_t times = repeats - done < detail::MOST_TIMES ? repeats - done : detail::MOST_TIMES;
    cubecore::issue(detail::compare_call(cmpMode, false), at,
                    detail::as_bits(detail::moved(dst.pointer(), done * lanes / 8)),
                    detail::moved(src0.pointer(), done * 256),
                    detail::moved(src1.pointer(), done * 256), times, 1, 1, 1, 8, 8, 8);
  }
#endif
}

namespace detail {

// A comparison of whole tensors, by its operator; the bits go to `dst`.
template <typename U, typename T, Sign sign>
inline std::enable_if_t<(sign >= Sign::LT)> whole(const LocalTensor<U>& dst,
                                                  const Whole<T, sign>& made) {
  constexpr CMPMODE modes[] = {CMPMODE::LT, CMPMODE::GT, CMPMODE::LE,
                               CMPMODE::GE, CMPMODE::EQ, CMPMODE::NE};
  constexpr CMPMODE mode = modes[static_cast<size_t>(sign) - static_cast<size_t>(Sign::LT)];
  Compare(dst, made.src0, made.src1, mode, made.src0.GetSize(), made.at);
}

}  // namespace detail

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0,
                    const LocalTensor<T>& src1, CMPMODE cmpMode, const M mask, uint8_t repeatTime,
                    const BinaryRepeatParams& p, CUBECORE_AT) {
  detail::note_none("Compare", repeatTime, at);
  if constexpr (isSetMask) detail::set_given<T>(mask, "Compare", at);
  cubecore::issue(detail::compare_call(cmpMode, false), at, detail::as_bits(dst.pointer()),
                  src0.pointer(), src1.pointer(), repeatTime, p.dstBlkStride, p.src0BlkStride,
                  p.src1BlkStride, p.dstRepStride, p.src0RepStride, p.src1RepStride);
}
// Page "Compare（结果存入寄存器）": the result goes to CMPMASK.
template <typename T, bool isSetMask = true, typename M>
inline void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                    const M mask, const BinaryRepeatParams& p, CUBECORE_AT) {
  if constexpr (isSetMask) detail::set_given<T>(mask, "Compare", at);
  cubecore::issue(detail::compare_call(cmpMode, false), at, src0.pointer(), src1.pointer(), 1,
                  p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
                  p.src1RepStride);
}

namespace detail {

template <typename T, typename U, typename S>
inline void compare_scalar(const char* call, const LocalTensor<U>& dst, const LocalTensor<T>& src0,
                           const S& src1, CMPMODE mode, uint32_t count, const cubecore::Where& at) {
#if __NPU_ARCH__ == 3510
  (void)call;
  cubecore::issue(counted_compare(mode, Second::NUMBER), at, as_bits(dst.pointer()), src0.pointer(),
                  cubecore::named("src1", as_element<T>(src1)), cubecore::named("count", count));
#else
  constexpr uint32_t lanes = lanes_of<T>();
  const uint32_t repeats = whole_repeats<T>(call, count, at);
  if (repeats != 0) set_mask(~0ull, ~0ull, at);
  for (uint32_t done = 0; done < repeats; done += MOST_TIMES) {
    uint32_t times = repeats - done < MOST_TIMES ? repeats - done : MOST_TIMES;
    cubecore::issue(compare_call(mode, true), at, as_bits(moved(dst.pointer(), done * lanes / 8)),
                    moved(src0.pointer(), done * 256), as_element<T>(src1), times, 1, 1, 8, 8);
  }
#endif
}

}  // namespace detail

#define CUBECORE_COMPARES(NAME)                                                                    \
  template <typename T, typename U, typename S, std::enable_if_t<!detail::is_local<S>, int> = 0>   \
  inline void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const S src1Scalar,      \
                   CMPMODE cmpMode, uint32_t count, CUBECORE_AT) {                                 \
    detail::compare_scalar(#NAME, dst, src0, src1Scalar, cmpMode, count, at);                      \
  }                                                                                                \
  template <typename T, typename U, bool isSetMask = true, typename S = T, typename M>             \
  inline void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const S src1Scalar,      \
                   CMPMODE cmpMode, const M mask, uint8_t repeatTime, const UnaryRepeatParams& p,  \
                   CUBECORE_AT) {                                                                  \
    detail::note_none(#NAME, repeatTime, at);                                                      \
    if constexpr (isSetMask) detail::set_given<T>(mask, #NAME, at);                                \
    cubecore::issue(detail::compare_call(cmpMode, true), at, detail::as_bits(dst.pointer()),       \
                    src0.pointer(), detail::as_element<T>(src1Scalar), repeatTime, p.dstBlkStride, \
                    p.srcBlkStride, p.dstRepStride, p.srcRepStride);                               \
  }
CUBECORE_COMPARES(Compares)
CUBECORE_COMPARES(CompareScalar)
#undef CUBECORE_COMPARES

template <typename T>
inline void SetCmpMask(const LocalTensor<T>& src, CUBECORE_AT) {
  cubecore::Pointer from = src.pointer();
  from.type = "uint8";
  cubecore::issue("asc_set_cmp_mask", at, from);
}
template <typename T>
inline void GetCmpMask(const LocalTensor<T>& dst, CUBECORE_AT) {
  cubecore::Pointer to = dst.pointer();
  to.type = "uint8";
  cubecore::issue("asc_get_cmp_mask", at, to);
}

namespace detail {

// vsel's modes 0 and 2, under a mask that is set.
template <typename T, typename U>
inline void selected(const LocalTensor<T>& dst, const LocalTensor<U>& bits,
                     const LocalTensor<T>& src0, const LocalTensor<T>& src1, SELMODE mode,
                     uint8_t times, const BinaryRepeatParams& p, const cubecore::Where& at) {
  bool registered = mode == SELMODE::VSEL_CMPMASK_SPR;
  if (registered)
    cubecore::issue("vsel", at, dst.pointer(), src0.pointer(), src1.pointer(), times,
                    p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride,
                    p.src0RepStride, p.src1RepStride);
  else
    cubecore::issue("vsel_tensor", at, dst.pointer(), src0.pointer(), src1.pointer(),
                    as_bits(bits.pointer()), times, p.dstBlkStride, p.src0BlkStride,
                    p.src1BlkStride, p.dstRepStride, p.src0RepStride, p.src1RepStride);
}

template <typename T, typename U>
inline void load_bits(const LocalTensor<U>& bits, SELMODE mode, const cubecore::Where& at) {
  if (mode == SELMODE::VSEL_CMPMASK_SPR) {
    SetCmpMask(bits, at);
    barrier(PIPE_V, at);
  } else {
    load_cmp_mask("uint32", static_cast<uint32_t>(bits.GetPhyAddr()), at);
  }
}

}  // namespace detail

template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask,
                   const LocalTensor<T>& src0, const LocalTensor<T>& src1, SELMODE selMode,
                   uint32_t count, CUBECORE_AT) {
#if __NPU_ARCH__ == 3510
  if (selMode != SELMODE::VSEL_CMPMASK_SPR) {  // whose bits serve each repeat
    cubecore::issue("select_bits", at, dst.pointer(), src0.pointer(), src1.pointer(),
                    detail::as_bits(selMask.pointer()), cubecore::named("count", count));
    return;
  }
#endif
  constexpr uint32_t lanes = detail::lanes_of<T>();
  for (uint32_t done = 0; done < count;) {
    uint32_t left = count - done;
    uint32_t times = left < lanes ? 1 : left / lanes;
    if (times > detail::MOST_TIMES) times = detail::MOST_TIMES;
    detail::load_bits<T>(selMask[selMode == SELMODE::VSEL_CMPMASK_SPR ? 0 : done / 8 / sizeof(U)],
                         selMode, at);
    detail::set_lanes(left < lanes ? left : lanes, at);
    detail::selected(dst[done], selMask, src0[done], src1[done], selMode,
                     static_cast<uint8_t>(times), BinaryRepeatParams(), at);
    done += times * lanes;
  }
}
template <typename T, typename U, bool isSetMask = true, typename M>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask,
                   const LocalTensor<T>& src0, const LocalTensor<T>& src1, SELMODE selMode,
                   const M mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams,
                   CUBECORE_AT) {
  detail::load_bits<T>(selMask, selMode, at);
  detail::note_none("Select", repeatTime, at);
  if constexpr (isSetMask) detail::set_given<T>(mask, "Select", at);
  detail::selected(dst, selMask, src0, src1, selMode, repeatTime, repeatParams, at);
}

// By what CMPMASK holds, under a mask that is set.
template <typename T, SELMODE selMode>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, int32_t repeatTime, const BinaryRepeatParams& p,
                   CUBECORE_AT) {
  static_assert(selMode == SELMODE::VSEL_CMPMASK_SPR,
                "Select without bits must be of VSEL_CMPMASK_SPR on 2201, got another mode");
  detail::selected(dst, dst, src0, src1, selMode, static_cast<uint8_t>(repeatTime), p, at);
}

template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask,
                   const LocalTensor<T>& src0, PrimT<T> src1, SELMODE selMode, uint32_t count,
                   CUBECORE_AT) {
  (void)selMode;
#if __NPU_ARCH__ == 3510
  cubecore::issue("select_bits_number", at, dst.pointer(), src0.pointer(),
                  detail::as_bits(selMask.pointer()), cubecore::named("src1", cubecore::scalar(src1)),
                  cubecore::named("count", count));
#else
  detail::load_cmp_mask(cubecore::Element<PrimT<T>>::name, cubecore::scalar(src1), at);
  SetMaskCount(at);
  detail::set_mask(0, count, at);
  cubecore::issue("vsel_scalar", at, dst.pointer(), src0.pointer(),
                  detail::as_bits(selMask.pointer()), 1, 1, 1, 8, 8);
  SetMaskNorm(at);
  ResetMask(at);
#endif
}
template <typename T, typename U, bool isSetMask = true, typename M>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask,
                   const LocalTensor<T>& src0, PrimT<T> src1, SELMODE selMode, const M mask,
                   uint8_t repeatTime, const BinaryRepeatParams& p, CUBECORE_AT) {
  (void)selMode;
  detail::load_cmp_mask(cubecore::Element<PrimT<T>>::name, cubecore::scalar(src1), at);
  detail::note_none("Select", repeatTime, at);
  if constexpr (isSetMask) detail::set_given<T>(mask, "Select", at);
  cubecore::issue("vsel_scalar", at, dst.pointer(), src0.pointer(),
                  detail::as_bits(selMask.pointer()), repeatTime, p.dstBlkStride, p.src0BlkStride,
                  p.dstRepStride, p.src0RepStride);
}

}  // namespace AscendC
