// The C API on registers, where its functions have parameters of their own; those that are alike are
// generated. Pages: C-API/reg, its folders reg_load, reg_store, reg_data_types, compare_and_select,
// logic_compute, reduce_compute, data_compress, data_fill, data_rearrange, sync_control.
#pragma once

#include "cubecore/reg/convert.h"

using vector_load_unalign = AscendC::Reg::UnalignRegForLoad;
using vector_store_unalign = AscendC::Reg::UnalignRegForStore;
using addr_reg = AscendC::Reg::AddrReg;
using iter_reg = AscendC::Reg::AddrReg;

enum asc_mask_pattern {
  PAT_ALL,
  PAT_VL1,
  PAT_VL2,
  PAT_VL3,
  PAT_VL4,
  PAT_VL8,
  PAT_VL16,
  PAT_VL32,
  PAT_VL64,
  PAT_VL128,
  PAT_M3,
  PAT_M4,
  PAT_H,
  PAT_Q,
  PAT_ALLF = 15,
};

namespace cubecore {
// The words of patterns are in the order above; 14 is none.
inline const char* pattern_word(asc_mask_pattern pattern) {
  const int number = pattern == PAT_ALLF ? 14 : static_cast<int>(pattern);
  return AscendC::Reg::detail::words_of_MaskPattern[number];
}
template <typename T>
inline vector_bool pattern_mask(asc_mask_pattern pattern, const Here& at) {
  namespace reg = AscendC::Reg::detail;
  auto& entry = reg::entry_of("CreateMask", reg::width_of<T>(), at);
  entry.mode = pattern_word(pattern);
  vector_bool mask;
  reg::made(entry, mask);
  return mask;
}
// The word of a distribution whose elements have the type's width.
template <typename T>
constexpr const char* by_width(const char* b8, const char* b16, const char* b32) {
  return sizeof(T) == 1 ? b8 : sizeof(T) == 2 ? b16 : b32;
}
}  // namespace cubecore

#define CUBECORE_WIDTHS(DO) DO(8, uint8_t) DO(16, uint16_t) DO(32, uint32_t)
#define CUBECORE_MASK_OF(BITS, TYPE)                                                  \
  inline vector_bool asc_create_mask_b##BITS(asc_mask_pattern pattern, CUBECORE_AT) { \
    return cubecore::pattern_mask<TYPE>(pattern, at);                                 \
  }                                                                                   \
  inline vector_bool asc_update_mask_b##BITS(uint32_t& count, CUBECORE_AT) {          \
    return AscendC::Reg::UpdateMask<TYPE>(count, at);                                 \
  }                                                                                   \
  inline void asc_intlv_b##BITS(vector_bool& dst0, vector_bool& dst1, const vector_bool& a,  \
                                const vector_bool& b, CUBECORE_AT) {                         \
    AscendC::Reg::Interleave<TYPE>(dst0, dst1, a, b, at);                             \
  }                                                                                   \
  inline void asc_deintlv_b##BITS(vector_bool& dst0, vector_bool& dst1, const vector_bool& a, \
                                  const vector_bool& b, CUBECORE_AT) {                       \
    AscendC::Reg::DeInterleave<TYPE>(dst0, dst1, a, b, at);                           \
  }
CUBECORE_WIDTHS(CUBECORE_MASK_OF)
#undef CUBECORE_MASK_OF
#undef CUBECORE_WIDTHS

// --- loads and stores: at a pointer, behind it by elements, and with the pointer moved

#define CUBECORE_C_LOAD(NAME, MODE)                                                          \
  template <typename T>                                                                      \
  inline void asc_loadalign##NAME(vector_of<T>& dst, const T* from, CUBECORE_AT) {           \
    AscendC::Reg::detail::load(MODE, dst, from, at);                                         \
  }                                                                                          \
  template <typename T>                                                                      \
  inline void asc_loadalign##NAME(vector_of<T>& dst, const T* from, int32_t offset,          \
                                  CUBECORE_AT) {                                             \
    AscendC::Reg::detail::load(MODE, dst, from + offset, at);                                \
  }                                                                                          \
  template <typename T>                                                                      \
  inline void asc_loadalign##NAME(vector_of<T>& dst, const T* from, addr_reg offset,         \
                                  CUBECORE_AT) {                                             \
    AscendC::Reg::detail::load(MODE, dst, from + offset.offset, at);                         \
  }                                                                                          \
  template <typename T>                                                                      \
  inline void asc_loadalign##NAME##_postupdate(vector_of<T>& dst, T*& from, int32_t stride,  \
                                               CUBECORE_AT) {                                \
    AscendC::Reg::detail::load(MODE, dst, from, at);                                         \
    from += stride;                                                                          \
  }
CUBECORE_C_LOAD(, "NORM")
CUBECORE_C_LOAD(_brc_elem, (cubecore::by_width<T>("BRC_B8", "BRC_B16", "BRC_B32")))
CUBECORE_C_LOAD(_brc, (cubecore::by_width<T>("BRC_B8", "BRC_B16", "BRC_B32")))
CUBECORE_C_LOAD(_brc_datablock, "BLK")
CUBECORE_C_LOAD(_brc_elem2datablock, (cubecore::by_width<T>("E2B_B16", "E2B_B16", "E2B_B32")))
CUBECORE_C_LOAD(_upsample, (cubecore::by_width<T>("US_B8", "US_B16", "US_B16")))
CUBECORE_C_LOAD(_downsample, (cubecore::by_width<T>("DS_B8", "DS_B16", "DS_B16")))
CUBECORE_C_LOAD(_unpack, (cubecore::by_width<T>("UNPACK_B8", "UNPACK_B16", "UNPACK_B32")))
CUBECORE_C_LOAD(_unpack4, "UNPACK4_B8")
#undef CUBECORE_C_LOAD
template <typename T>
inline void asc_loadalign_deintlv(vector_of<T>& dst0, vector_of<T>& dst1, const T* from,
                                  CUBECORE_AT) {
  AscendC::Reg::detail::load_pair(cubecore::by_width<T>("DINTLV_B8", "DINTLV_B16", "DINTLV_B32"),
                                  dst0, dst1, from, at);
}
template <typename T>
inline void asc_loadalign_deintlv_postupdate(vector_of<T>& dst0, vector_of<T>& dst1, T*& from,
                                             int32_t stride, CUBECORE_AT) {
  asc_loadalign_deintlv(dst0, dst1, static_cast<const T*>(from), at);
  from += stride;
}
template <typename T>
inline void asc_loadalign(vector_of<T>& dst, const T* from, uint16_t block_stride,
                          uint16_t repeat_stride, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::load_blocks(dst, from + 32 / sizeof(T) * repeat_stride, block_stride, mask,
                                    at);
}
template <typename T>
inline void asc_loadalign_postupdate(vector_of<T>& dst, T*& from, uint16_t block_stride,
                                     uint16_t repeat_stride, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::load_blocks(dst, from, block_stride, mask, at);
  from += 32 / sizeof(T) * repeat_stride;
}

#define CUBECORE_C_STORE(NAME, MODE)                                                           \
  template <typename T>                                                                        \
  inline void asc_storealign##NAME(T* to, const vector_of<T>& src, vector_bool mask,           \
                                   CUBECORE_AT) {                                              \
    AscendC::Reg::detail::store(MODE, to, src, mask, at);                                      \
  }                                                                                            \
  template <typename T>                                                                        \
  inline void asc_storealign##NAME(T* to, const vector_of<T>& src, int32_t offset,             \
                                   vector_bool mask,                                           \
                                   CUBECORE_AT) {                                              \
    AscendC::Reg::detail::store(MODE, to + offset, src, mask, at);                             \
  }                                                                                            \
  template <typename T>                                                                        \
  inline void asc_storealign##NAME(T* to, const vector_of<T>& src, addr_reg offset,            \
                                   vector_bool mask,                                           \
                                   CUBECORE_AT) {                                              \
    AscendC::Reg::detail::store(MODE, to + offset.offset, src, mask, at);                      \
  }                                                                                            \
  template <typename T>                                                                        \
  inline void asc_storealign##NAME##_postupdate(T*& to, const vector_of<T>& src,               \
                                                int32_t stride,                                \
                                                vector_bool mask, CUBECORE_AT) {               \
    AscendC::Reg::detail::store(MODE, to, src, mask, at);                                      \
    to += stride;                                                                              \
  }
CUBECORE_C_STORE(, "NORM")
CUBECORE_C_STORE(_1st,
                 (cubecore::by_width<T>("FIRST_ELEMENT_B8", "FIRST_ELEMENT_B16",
                                        "FIRST_ELEMENT_B32")))
CUBECORE_C_STORE(_pack, (cubecore::by_width<T>("PACK_B16", "PACK_B16", "PACK_B32")))
CUBECORE_C_STORE(_pack_quarter, "PACK4_B32")
#undef CUBECORE_C_STORE
template <typename T>
inline void asc_storealign_intlv(T* to, const vector_of<T>& src0, const vector_of<T>& src1,
                                 vector_bool,
                                 CUBECORE_AT) {
  AscendC::Reg::detail::store_pair(cubecore::by_width<T>("INTLV_B8", "INTLV_B16", "INTLV_B32"), to,
                                   src0, src1, at);
}
template <typename T>
inline void asc_storealign(T* to, const vector_of<T>& src, uint16_t block_stride,
                           uint16_t repeat_stride,
                           vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::store_blocks(to + 32 / sizeof(T) * repeat_stride, src, block_stride, mask,
                                     at);
}
template <typename T>
inline void asc_storealign_postupdate(T*& to, const vector_of<T>& src, uint16_t block_stride,
                                      uint16_t repeat_stride, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::store_blocks(to, src, block_stride, mask, at);
  to += 32 / sizeof(T) * repeat_stride;
}

#define CUBECORE_C_MASK_MOVE(LOAD, DIST)                                              \
  template <typename P>                                                              \
  inline void LOAD(vector_bool& dst, const P* from, CUBECORE_AT) {                    \
    AscendC::Reg::detail::load_mask(AscendC::Reg::MaskDist::DIST, dst, from, at);     \
  }                                                                                  \
  template <typename P>                                                              \
  inline void LOAD##_postupdate(vector_bool& dst, P*& from, int32_t bytes, CUBECORE_AT) { \
    AscendC::Reg::detail::load_mask(AscendC::Reg::MaskDist::DIST, dst, from, at);     \
    from = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(from) + bytes);            \
  }
CUBECORE_C_MASK_MOVE(asc_loadalign, DIST_NORM)
CUBECORE_C_MASK_MOVE(asc_loadalign_upsample, DIST_US)
CUBECORE_C_MASK_MOVE(asc_loadalign_downsample, DIST_DS)
#undef CUBECORE_C_MASK_MOVE
template <typename P>
inline void asc_storealign(P* to, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::detail::store_mask(AscendC::Reg::MaskDist::DIST_NORM, to, src, at);
}
template <typename P>
inline void asc_storealign_pack(P* to, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::detail::store_mask(AscendC::Reg::MaskDist::DIST_PACK, to, src, at);
}
template <typename P>
inline void asc_storealign_postupdate(P*& to, const vector_bool& src, int32_t bytes, CUBECORE_AT) {
  AscendC::Reg::detail::store_mask(AscendC::Reg::MaskDist::DIST_NORM, to, src, at);
  to = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(to) + bytes);
}
template <typename P>
inline void asc_storealign_pack_postupdate(P*& to, const vector_bool& src, int32_t bytes,
                                           CUBECORE_AT) {
  AscendC::Reg::detail::store_mask(AscendC::Reg::MaskDist::DIST_PACK, to, src, at);
  to = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(to) + bytes);
}

template <typename T>
inline void asc_load(vector_of<T>& dst, const T* from, CUBECORE_AT) {
  AscendC::Reg::Load(dst, from, at);
}
template <typename T>
inline void asc_store(T* to, const vector_of<T>& src, CUBECORE_AT) {
  AscendC::Reg::Store(to, src, at);
}
template <typename T>
inline void asc_store(T* to, const vector_of<T>& src, uint32_t count, CUBECORE_AT) {
  AscendC::Reg::Store(to, src, count, at);
}
template <typename T>
inline void asc_loadunalign_pre(vector_load_unalign& buffer, const T* from, CUBECORE_AT) {
  AscendC::Reg::detail::stream("LoadUnAlignPre", buffer, from, at);
}
template <typename T>
inline void asc_loadunalign(vector_of<T>& dst, vector_load_unalign& buffer, const T* from,
                            CUBECORE_AT) {
  AscendC::Reg::detail::load_unaligned(dst, buffer, from, at);
}
template <typename T>
inline void asc_loadunalign_postupdate(vector_of<T>& dst, vector_load_unalign& buffer, T*& from,
                                       uint32_t stride, CUBECORE_AT) {
  AscendC::Reg::detail::load_unaligned(dst, buffer, from, at);
  from += stride;
}
template <typename T>
inline void asc_storeunalign(T* to, vector_store_unalign& buffer, const vector_of<T>& src,
                             uint32_t count, CUBECORE_AT) {
  const vector_bool mask = AscendC::Reg::detail::first<T>(count, at);
  AscendC::Reg::detail::store_unaligned(to, src, buffer, mask, at);
}
template <typename T>
inline void asc_storeunalign_postupdate(T*& to, vector_store_unalign& buffer,
                                        const vector_of<T>& src, uint32_t count, CUBECORE_AT) {
  asc_storeunalign(to, buffer, src, count, at);
  to += count;
}
template <typename T>
inline void asc_storeunalign_post(T* to, vector_store_unalign& buffer, int32_t count = 0,
                                  CUBECORE_AT) {
  AscendC::Reg::detail::stream("StoreUnAlignPost", buffer, to + count, at);
}
template <typename T>
inline void asc_storeunalign_post_postupdate(T*& to, vector_store_unalign& buffer,
                                             int32_t count = 0, CUBECORE_AT) {
  asc_storeunalign_post(to, buffer, count, at);
}

// --- lanes

#define CUBECORE_C_COMPARE(NAME, MODE)                                                        \
  template <typename T>                                                                       \
  inline void asc_##NAME(vector_bool& dst, vector_of<T> a, vector_of<T> b, vector_bool mask,  \
                         CUBECORE_AT) {                                                       \
    AscendC::Reg::detail::compare(MODE, dst, a, b, mask, at);                                 \
  }                                                                                           \
  template <typename T, typename S>                                                           \
  inline void asc_##NAME##_scalar(vector_bool& dst, vector_of<T> a, S value, vector_bool mask, \
                                  CUBECORE_AT) {                                              \
    AscendC::Reg::detail::compare_scalar(MODE, dst, a, value, mask, at);                      \
  }
CUBECORE_C_COMPARE(eq, "EQ")
CUBECORE_C_COMPARE(ne, "NE")
CUBECORE_C_COMPARE(gt, "GT")
CUBECORE_C_COMPARE(ge, "GE")
CUBECORE_C_COMPARE(lt, "LT")
CUBECORE_C_COMPARE(le, "LE")
#undef CUBECORE_C_COMPARE
template <typename T>
inline void asc_select(vector_of<T>& dst, vector_of<T> a, vector_of<T> b, vector_bool mask,
                       CUBECORE_AT) {
  AscendC::Reg::Select(dst, a, b, mask, at);
}
inline void asc_select(vector_bool& dst, vector_bool a, vector_bool b, vector_bool mask,
                       CUBECORE_AT) {
  AscendC::Reg::Select(dst, a, b, mask, at);
}
inline void asc_and(vector_bool& dst, vector_bool a, vector_bool b, vector_bool mask,
                    CUBECORE_AT) {
  AscendC::Reg::And(dst, a, b, mask, at);
}
inline void asc_or(vector_bool& dst, vector_bool a, vector_bool b, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Or(dst, a, b, mask, at);
}
inline void asc_xor(vector_bool& dst, vector_bool a, vector_bool b, vector_bool mask,
                    CUBECORE_AT) {
  AscendC::Reg::Xor(dst, a, b, mask, at);
}
inline void asc_not(vector_bool& dst, vector_bool src, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Not(dst, src, mask, at);
}
inline void asc_copy(vector_bool& dst, vector_bool src, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Move(dst, src, mask, at);
}
template <typename T>
inline void asc_copy(vector_of<T>& dst, vector_of<T> src, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Move(dst, src, mask, at);
}
template <typename T, typename S>
inline void asc_duplicate_scalar(vector_of<T>& dst, S value, CUBECORE_AT) {
  AscendC::Reg::detail::with_scalar<AscendC::Reg::MaskMergeMode::ZEROING>(
      "Duplicate", dst, AscendC::Reg::detail::all_lanes(), at, value);
}
template <typename T, typename S>
inline void asc_duplicate_scalar(vector_of<T>& dst, S value, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_scalar<AscendC::Reg::MaskMergeMode::ZEROING>("Duplicate", dst, mask,
                                                                          at, value);
}
template <typename T>
inline void asc_intlv(vector_of<T>& dst0, vector_of<T>& dst1, vector_of<T> a, vector_of<T> b,
                      CUBECORE_AT) {
  AscendC::Reg::Interleave(dst0, dst1, a, b, at);
}
template <typename T>
inline void asc_deintlv(vector_of<T>& dst0, vector_of<T>& dst1, vector_of<T> a, vector_of<T> b,
                        CUBECORE_AT) {
  AscendC::Reg::DeInterleave(dst0, dst1, a, b, at);
}
template <typename T, typename V>
inline void asc_pack_to_low(vector_of<T>& dst, vector_of<V> src, CUBECORE_AT) {
  AscendC::Reg::Pack(dst, src, at);
}
template <typename T, typename V>
inline void asc_pack_to_high(vector_of<T>& dst, vector_of<V> src, CUBECORE_AT) {
  using namespace AscendC::Reg;
  Pack<DefaultType, DefaultType, HighLowPart::HIGHEST>(dst, src, at);
}
template <typename T, typename V>
inline void asc_unpack_lower(vector_of<T>& dst, vector_of<V> src, CUBECORE_AT) {
  AscendC::Reg::UnPack(dst, src, at);
}
template <typename T, typename V>
inline void asc_unpack_upper(vector_of<T>& dst, vector_of<V> src, CUBECORE_AT) {
  using namespace AscendC::Reg;
  UnPack<DefaultType, DefaultType, HighLowPart::HIGHEST>(dst, src, at);
}
template <typename T>
inline void asc_unsqueeze(vector_of<T>& dst, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Unsqueeze(dst, mask, at);
}
template <typename T, typename S>
inline void asc_arange(vector_of<T>& dst, S value, CUBECORE_AT) {
  AscendC::Reg::Arange(dst, value, at);
}
template <typename T, typename S>
inline void asc_arange_descend(vector_of<T>& dst, S value, CUBECORE_AT) {
  using namespace AscendC::Reg;
  Arange<DefaultType, IndexOrder::DECREASE_ORDER>(dst, value, at);
}
template <typename T, typename V>
inline void asc_gather(vector_of<T>& dst, vector_of<T> src, vector_of<V> index, CUBECORE_AT) {
  AscendC::Reg::Gather(dst, src, index, at);
}
#define CUBECORE_C_REDUCE(NAME, FUNCTION, TYPE)                                               \
  template <typename T, typename V>                                                           \
  inline void NAME(vector_of<T>& dst, vector_of<V> src, vector_bool mask, CUBECORE_AT) {      \
    AscendC::Reg::detail::reduce(FUNCTION, AscendC::Reg::ReduceType::TYPE, dst, src, mask, at); \
  }
CUBECORE_C_REDUCE(asc_reduce_sum, "Reduce", SUM)
CUBECORE_C_REDUCE(asc_reduce_max, "Reduce", MAX)
CUBECORE_C_REDUCE(asc_reduce_min, "Reduce", MIN)
CUBECORE_C_REDUCE(asc_reduce_sum_datablock, "ReduceDataBlock", SUM)
CUBECORE_C_REDUCE(asc_reduce_max_datablock, "ReduceDataBlock", MAX)
CUBECORE_C_REDUCE(asc_reduce_min_datablock, "ReduceDataBlock", MIN)
CUBECORE_C_REDUCE(asc_pair_reduce_sum, "PairReduceElem", SUM)
#undef CUBECORE_C_REDUCE
#define CUBECORE_C_SHIFT(NAME, LEFT)                                                          \
  template <typename T, typename V>                                                           \
  inline void NAME(vector_of<T>& dst, vector_of<T> src, vector_of<V> amounts, vector_bool mask, \
                   CUBECORE_AT) {                                                             \
    AscendC::Reg::detail::shift<LEFT>(dst, src, amounts, mask, at);                           \
  }                                                                                           \
  template <typename T>                                                                       \
  inline void NAME##_scalar(vector_of<T>& dst, vector_of<T> src, int16_t amount, vector_bool mask, \
                            CUBECORE_AT) {                                                    \
    AscendC::Reg::detail::shift<LEFT>(dst, src, amount, mask, at);                            \
  }
CUBECORE_C_SHIFT(asc_shiftleft, true)
CUBECORE_C_SHIFT(asc_shiftright, false)
#undef CUBECORE_C_SHIFT
template <typename T>
inline void asc_add(vector_bool& carry, vector_of<T>& dst, vector_of<T> a, vector_of<T> b,
                    vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_carry("AddCarry", carry, dst, a, b, mask, at);
}
template <typename T>
inline void asc_sub(vector_bool& carry, vector_of<T>& dst, vector_of<T> a, vector_of<T> b,
                    vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_carry("SubCarry", carry, dst, a, b, mask, at);
}
template <typename T>
inline void asc_addc(vector_bool& carry, vector_of<T>& dst, vector_of<T> a, vector_of<T> b,
                     vector_bool from, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::carried("AddC", carry, dst, a, b, from, mask, at);
}
template <typename T>
inline void asc_subc(vector_bool& carry, vector_of<T>& dst, vector_of<T> a, vector_of<T> b,
                     vector_bool from, vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::detail::carried("SubC", carry, dst, a, b, from, mask, at);
}
template <typename T>
inline void asc_mull(vector_of<T>& dst0, vector_of<T>& dst1, vector_of<T> a, vector_of<T> b,
                     vector_bool mask, CUBECORE_AT) {
  AscendC::Reg::Mull(dst0, dst1, a, b, mask, at);
}

#define CUBECORE_C_ROUND(NAME, MODE)                                                     \
  template <typename T>                                                                  \
  inline void asc_##NAME(vector_of<T>& dst, vector_of<T> src, vector_bool mask,          \
                         CUBECORE_AT) {                                                  \
    using namespace AscendC;                                                             \
    Reg::Truncate<Reg::DefaultType, RoundMode::MODE>(dst, src, mask, at);                \
  }
CUBECORE_C_ROUND(rint, CAST_RINT)
CUBECORE_C_ROUND(round, CAST_ROUND)
CUBECORE_C_ROUND(floor, CAST_FLOOR)
CUBECORE_C_ROUND(ceil, CAST_CEIL)
CUBECORE_C_ROUND(trunc, CAST_TRUNC)
#undef CUBECORE_C_ROUND

// Accesses that the barrier orders, by their words in the enumeration.
enum asc_mem_bar_type {
  VST_VLD,
  VLD_VST,
  VST_VST,
  VST_LD,
  VST_ST,
  VLD_ST,
  ST_VLD,
  ST_VST,
  LD_VST,
  VV_ALL,
  VS_ALL,
  SV_ALL,
  SS_ALL,
  ST_LD,
  LD_ST,
  ST_ST,
};
inline void asc_mem_bar(asc_mem_bar_type type, CUBECORE_AT) {
  using M = AscendC::Reg::MemType;
  static const M sides[][2] = {
      {M::VEC_STORE, M::VEC_LOAD},       {M::VEC_LOAD, M::VEC_STORE},
      {M::VEC_STORE, M::VEC_STORE},      {M::VEC_STORE, M::SCALAR_LOAD},
      {M::VEC_STORE, M::SCALAR_STORE},   {M::VEC_LOAD, M::SCALAR_STORE},
      {M::SCALAR_STORE, M::VEC_LOAD},    {M::SCALAR_STORE, M::VEC_STORE},
      {M::SCALAR_LOAD, M::VEC_STORE},    {M::VEC_ALL, M::VEC_ALL},
      {M::VEC_ALL, M::SCALAR_ALL},       {M::SCALAR_ALL, M::VEC_ALL},
      {M::SCALAR_ALL, M::SCALAR_ALL},    {M::SCALAR_STORE, M::SCALAR_LOAD},
      {M::SCALAR_LOAD, M::SCALAR_STORE}, {M::SCALAR_STORE, M::SCALAR_STORE}};
  AscendC::Reg::detail::barrier(sides[type][0], sides[type][1], at);
}
