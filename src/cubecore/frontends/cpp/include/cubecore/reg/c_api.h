// The C API on registers, where its functions have parameters of their own. Those that are alike are
// generated, families of moves and of modes by the macros of this file (toolchain/generated). Pages: C-API/reg, its folders reg_load, reg_store, reg_data_types, compare_and_select,
// logic_compute, reduce_compute, data_compress, data_fill, data_rearrange, sync_control.
#pragma once

#include "cubecore/reg/casts.h"
#include "cubecore/reg/dump.h"
#include "cubecore/reg/indexed.h"
#include "cubecore/library/registers/quantize.h"
#include "cubecore/library/registers/hypot.h"
#include "cubecore/library/registers/philox.h"
#include "cubecore/library/registers/radix_sort.h"
#include "cubecore/reg/rearranged.h"
#include "cubecore/seam/notes.h"

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
// The compiler's own name of a counted mask, which public kernels of the class API call; no page.
struct PostUpdate {};
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
constexpr const char* by_width(const char* b8, const char* b16, const char* b32,
                               const char* b64 = "") {
  return sizeof(T) == 1 ? b8 : sizeof(T) == 2 ? b16 : sizeof(T) == 4 ? b32 : b64;
}
}  // namespace cubecore

inline constexpr cubecore::PostUpdate POST_UPDATE = {};

#define CUBECORE_MASK_OF(BITS, TYPE)                                                  \
  inline vector_bool asc_create_mask_b##BITS(asc_mask_pattern pattern, CUBECORE_AT) { \
    return cubecore::pattern_mask<TYPE>(pattern, at);                                 \
  }                                                                                   \
  inline vector_bool asc_update_mask_b##BITS(uint32_t& count, CUBECORE_AT) {          \
    return AscendC::Reg::UpdateMask<TYPE>(count, at);                                 \
  }                                                                                   \
  inline vector_bool plt_b##BITS(uint32_t& count, cubecore::PostUpdate, CUBECORE_AT) { \
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
CUBECORE_MASK_OF(8, uint8_t)
CUBECORE_MASK_OF(16, uint16_t)
CUBECORE_MASK_OF(32, uint32_t)
#undef CUBECORE_MASK_OF

// --- loads and stores: at a pointer, behind it by elements or by a register, with it moved

namespace cubecore {
// The distance from a pointer: elements, or the offset of an address register.
struct Distance {
  int64_t elements = 0;
  AscendC::Reg::AddrReg offset = {};
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Distance(T count) : elements(static_cast<int64_t>(count)) {}
  Distance(const AscendC::Reg::AddrReg& given) : offset(given) {}
};
template <typename P>
inline P* operator+(P* pointer, const Distance& distance) {
  return pointer + distance.elements + distance.offset;
}
template <typename P>
inline void advance(P*& pointer, int64_t bytes) {
  pointer = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(pointer) + bytes);
}
template <typename U>
constexpr const char* by_lane(const char* b8, const char* b16, const char* b32,
                              const char* b64 = "") {
  return by_width<typename U::ActualT>(b8, b16, b32, b64);
}
}  // namespace cubecore

#define CUBECORE_C_LOAD(NAME, AFTER, ...)                                                    \
  template <typename U, typename P>                                                          \
  inline void asc_loadalign##NAME##AFTER(U& dst, const P* from, CUBECORE_AT) {               \
    AscendC::Reg::detail::load((__VA_ARGS__), dst, from, at);                                \
  }                                                                                          \
  template <typename U, typename P>                                                          \
  inline void asc_loadalign##NAME##AFTER(U& dst, const P* from, cubecore::Distance distance, \
                                         CUBECORE_AT) {                                      \
    AscendC::Reg::detail::load((__VA_ARGS__), dst, from + distance, at);                     \
  }                                                                                          \
  template <typename U, typename P>                                                          \
  inline void asc_loadalign##NAME##_postupdate##AFTER(U& dst, P*& from, int32_t stride,      \
                                                      CUBECORE_AT) {                         \
    AscendC::Reg::detail::load((__VA_ARGS__), dst, from, at);                                \
    from += stride;                                                                          \
  }

template <typename U, typename P>
inline void asc_loadalign_deintlv(U& dst0, U& dst1, const P* from, CUBECORE_AT) {
  const char* mode = cubecore::by_lane<U>("DINTLV_B8", "DINTLV_B16", "DINTLV_B32");
  AscendC::Reg::detail::load_pair(mode, dst0, dst1, from, at);
}
template <typename U, typename P>
inline void asc_loadalign_deintlv(U& dst0, U& dst1, const P* from, cubecore::Distance distance,
                                  CUBECORE_AT) {
  asc_loadalign_deintlv(dst0, dst1, from + distance, at);
}
template <typename U, typename P>
inline void asc_loadalign_deintlv_postupdate(U& dst0, U& dst1, P*& from, int32_t stride,
                                             CUBECORE_AT) {
  asc_loadalign_deintlv(dst0, dst1, from, at);
  from += stride;
}
template <typename U, typename P>
inline void asc_loadalign(U& dst, const P* from, uint16_t block_stride, uint16_t repeat_stride,
                          const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::load_blocks(dst, from + 32 / sizeof(P) * repeat_stride, block_stride, mask,
                                    at);
}
template <typename U, typename P>
inline void asc_loadalign_postupdate(U& dst, P*& from, uint16_t block_stride,
                                     uint16_t repeat_stride, const vector_bool& mask,
                                     CUBECORE_AT) {
  AscendC::Reg::detail::load_blocks(dst, from, block_stride, mask, at);
  from += 32 / sizeof(P) * repeat_stride;
}

#define CUBECORE_C_STORE(NAME, AFTER, ...)                                                      \
  template <typename U, typename P>                                                             \
  inline void asc_storealign##NAME##AFTER(P* to, const U& src, const vector_bool& mask,         \
                                          CUBECORE_AT) {                                        \
    AscendC::Reg::detail::store((__VA_ARGS__), to, src, mask, at);                              \
  }                                                                                             \
  template <typename U, typename P>                                                             \
  inline void asc_storealign##NAME##AFTER(P* to, const U& src, cubecore::Distance distance,     \
                                          const vector_bool& mask, CUBECORE_AT) {               \
    AscendC::Reg::detail::store((__VA_ARGS__), to + distance, src, mask, at);                   \
  }                                                                                             \
  template <typename U, typename P>                                                             \
  inline void asc_storealign##NAME##_postupdate##AFTER(P*& to, const U& src, int32_t stride,    \
                                                       const vector_bool& mask, CUBECORE_AT) {  \
    AscendC::Reg::detail::store((__VA_ARGS__), to, src, mask, at);                              \
    to += stride;                                                                               \
  }

template <typename U, typename P>
inline void asc_storealign_1st(P* to, const U& src, CUBECORE_AT) {
  const char* mode =
      cubecore::by_lane<U>("FIRST_ELEMENT_B8", "FIRST_ELEMENT_B16", "FIRST_ELEMENT_B32");
  AscendC::Reg::detail::store(mode, to, src, AscendC::Reg::detail::all_lanes(), at);
}
template <typename U, typename P>
inline void asc_storealign_1st(P* to, const U& src, cubecore::Distance distance, CUBECORE_AT) {
  asc_storealign_1st(to + distance, src, at);
}
template <typename U, typename P>
inline void asc_storealign_1st_postupdate(P*& to, const U& src, int32_t stride, CUBECORE_AT) {
  asc_storealign_1st(to, src, at);
  to += stride;
}
template <typename U, typename P>
inline void asc_storealign_intlv(P* to, const U& src0, const U& src1, CUBECORE_AT) {
  const char* mode = cubecore::by_lane<U>("INTLV_B8", "INTLV_B16", "INTLV_B32");
  AscendC::Reg::detail::store_pair(mode, to, src0, src1, at);
}
template <typename U, typename P>
inline void asc_storealign_intlv(P* to, const U& src0, const U& src1, cubecore::Distance distance,
                                 CUBECORE_AT) {
  asc_storealign_intlv(to + distance, src0, src1, at);
}
template <typename U, typename P>
inline void asc_storealign(P* to, const U& src, uint16_t block_stride, uint16_t repeat_stride,
                           const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::store_blocks(to + 32 / sizeof(P) * repeat_stride, src, block_stride, mask,
                                     at);
}
template <typename U, typename P>
inline void asc_storealign_postupdate(P*& to, const U& src, uint16_t block_stride,
                                      uint16_t repeat_stride, const vector_bool& mask,
                                      CUBECORE_AT) {
  AscendC::Reg::detail::store_blocks(to, src, block_stride, mask, at);
  to += 32 / sizeof(P) * repeat_stride;
}

// Masks; what moves their pointers is in bytes.
#define CUBECORE_C_MASK_LOAD(NAME, AFTER, MODE)                                                   \
  template <typename P>                                                                           \
  inline void asc_loadalign##NAME##AFTER(vector_bool& dst, const P* from, CUBECORE_AT) {          \
    AscendC::Reg::detail::load_mask(MODE, dst, from, at);                                         \
  }                                                                                               \
  template <typename P>                                                                           \
  inline void asc_loadalign##NAME##AFTER(vector_bool& dst, const P* from,                         \
                                         cubecore::Distance distance, CUBECORE_AT) {              \
    AscendC::Reg::detail::load_mask(MODE, dst, from + distance, at);                              \
  }                                                                                               \
  template <typename P>                                                                           \
  inline void asc_loadalign##NAME##_postupdate##AFTER(vector_bool& dst, P*& from,                 \
                                                      int32_t bytes, CUBECORE_AT) {               \
    AscendC::Reg::detail::load_mask(MODE, dst, from, at);                                         \
    cubecore::advance(from, bytes);                                                               \
  }
#define CUBECORE_C_MASK_STORE(NAME, AFTER, MODE)                                                  \
  template <typename P>                                                                           \
  inline void asc_storealign##NAME##AFTER(P* to, const vector_bool& src, CUBECORE_AT) {           \
    AscendC::Reg::detail::store_mask(MODE, to, src, at);                                          \
  }                                                                                               \
  template <typename P>                                                                           \
  inline void asc_storealign##NAME##AFTER(P* to, const vector_bool& src,                          \
                                          cubecore::Distance distance, CUBECORE_AT) {             \
    AscendC::Reg::detail::store_mask(MODE, to + distance, src, at);                               \
  }                                                                                               \
  template <typename P>                                                                           \
  inline void asc_storealign##NAME##_postupdate##AFTER(P*& to, const vector_bool& src,            \
                                                       int32_t bytes, CUBECORE_AT) {              \
    AscendC::Reg::detail::store_mask(MODE, to, src, at);                                          \
    cubecore::advance(to, bytes);                                                                 \
  }

// Unaligned streams.
template <typename U, typename P>
inline void asc_load(U& dst, const P* from, CUBECORE_AT) {
  AscendC::Reg::Load(dst, from, at);
}
template <typename U, typename P>
inline void asc_store(P* to, const U& src, CUBECORE_AT) {
  AscendC::Reg::Store(to, src, at);
}
template <typename U, typename P>
inline void asc_store(P* to, const U& src, uint32_t count, CUBECORE_AT) {
  AscendC::Reg::Store(to, src, count, at);
}
template <typename P>
inline void asc_loadunalign_pre(vector_load_unalign& buffer, const P* from, CUBECORE_AT) {
  AscendC::Reg::LoadUnAlignPre(buffer, from, at);
}
template <typename P>
inline void asc_loadunalign_pre(vector_load_unalign& buffer, const P* from, addr_reg offset,
                                CUBECORE_AT) {
  AscendC::Reg::LoadUnAlignPre(buffer, from, offset, at);
}
template <typename U, typename P>
inline void asc_loadunalign(U& dst, vector_load_unalign& buffer, const P* from, CUBECORE_AT) {
  AscendC::Reg::LoadUnAlign(dst, buffer, from, at);
}
template <typename U, typename P>
inline void asc_loadunalign_postupdate(U& dst, vector_load_unalign& buffer, P*& from,
                                       uint32_t count, CUBECORE_AT) {
  AscendC::Reg::LoadUnAlign(dst, buffer, from, count, at);
}
template <typename U, typename P>
inline void asc_loadunalign_postupdate(U& dst, vector_load_unalign& buffer, P* from,
                                       addr_reg& offset, uint32_t inc, CUBECORE_AT) {
  AscendC::Reg::LoadUnAlign(dst, buffer, from, offset, inc, at);
}
template <typename U, typename P>
inline void asc_storeunalign(P* to, vector_store_unalign& buffer, const U& src, uint32_t count,
                             CUBECORE_AT) {
  AscendC::Reg::StoreUnAlign(to, src, buffer, count, at);
}
template <typename U, typename P>
inline void asc_storeunalign_postupdate(P*& to, vector_store_unalign& buffer, const U& src,
                                        uint32_t count, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlign(to, src, buffer, count, at);
}
template <typename U, typename P>
inline void asc_storeunalign_postupdate(P* to, vector_store_unalign& buffer, const U& src,
                                        addr_reg& offset, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlign(to, src, buffer, offset, at);
}
template <typename P, typename I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
inline void asc_storeunalign_post(P* to, vector_store_unalign& buffer, I count, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlignPost(to, buffer, static_cast<int32_t>(count), at);
}
// Behind stores by AR, and of masks.
template <typename P>
inline void asc_storeunalign_post(P* to, vector_store_unalign& buffer, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlignPost(to, buffer, at);
}
template <typename T, typename P>
inline void asc_storeunalign_postupdate(P* to, vector_store_unalign& buffer,
                                        const vector_of<T>& src, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlign(to, src, buffer, at);
}
template <typename P>
inline void asc_storeunalign_postupdate(P*& to, vector_store_unalign& buffer,
                                        const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlign(to, src, buffer, at);
}
template <typename P>
inline void asc_storeunalign_post(P* to, vector_store_unalign& buffer, addr_reg offset,
                                  CUBECORE_AT) {
  AscendC::Reg::StoreUnAlignPost(to, buffer, offset, at);
}
template <typename P>
inline void asc_storeunalign_post_postupdate(P*& to, vector_store_unalign& buffer,
                                             int32_t count, CUBECORE_AT) {
  AscendC::Reg::StoreUnAlignPost(to, buffer, count, at);
}

// --- lanes

#define CUBECORE_C_COMPARE(NAME, OPERATION, MODE)                                                 \
  template <typename T>                                                                           \
  inline void NAME(vector_bool& dst, const vector_of<T>& a, const vector_of<T>& b,                \
                   const vector_bool& mask, CUBECORE_AT) {                                        \
    AscendC::Reg::detail::compare(MODE, dst, a, b, mask, at);                                     \
  }
#define CUBECORE_C_COMPARE_SCALAR(NAME, OPERATION, MODE)                                          \
  template <typename T, typename S>                                                               \
  inline void NAME(vector_bool& dst, const vector_of<T>& a, S value, const vector_bool& mask,     \
                   CUBECORE_AT) {                                                                 \
    AscendC::Reg::detail::compare_scalar(MODE, dst, a, value, mask, at);                          \
  }
template <typename T>
inline void asc_select(vector_of<T>& dst, const vector_of<T>& a, const vector_of<T>& b, const vector_bool& mask,
                       CUBECORE_AT) {
  AscendC::Reg::Select(dst, a, b, mask, at);
}
inline void asc_select(vector_bool& dst, const vector_bool& a, const vector_bool& b, const vector_bool& mask,
                       CUBECORE_AT) {
  AscendC::Reg::Select(dst, a, b, mask, at);
}
inline void asc_and(vector_bool& dst, const vector_bool& a, const vector_bool& b, const vector_bool& mask,
                    CUBECORE_AT) {
  AscendC::Reg::And(dst, a, b, mask, at);
}
inline void asc_or(vector_bool& dst, const vector_bool& a, const vector_bool& b, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Or(dst, a, b, mask, at);
}
inline void asc_xor(vector_bool& dst, const vector_bool& a, const vector_bool& b, const vector_bool& mask,
                    CUBECORE_AT) {
  AscendC::Reg::Xor(dst, a, b, mask, at);
}
inline void asc_not(vector_bool& dst, const vector_bool& src, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Not(dst, src, mask, at);
}
inline void asc_copy(vector_bool& dst, const vector_bool& src, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Move(dst, src, mask, at);
}
template <typename T>
inline void asc_copy(vector_of<T>& dst, const vector_of<T>& src, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Move(dst, src, mask, at);
}
inline void asc_copy(vector_bool& dst, const vector_bool& src) { dst = src; }
template <typename T>
inline void asc_copy(vector_bool& dst, const vector_of<T>& src, int32_t block, CUBECORE_AT) {
  AscendC::Reg::detail::mask_of_block(dst, src, block, at);
}
template <typename T, typename S>
inline void asc_duplicate_scalar(vector_of<T>& dst, S value, CUBECORE_AT) {
  AscendC::Reg::detail::with_scalar<AscendC::Reg::MaskMergeMode::ZEROING>("Duplicate", dst,
                                                                          AscendC::Reg::detail::all_lanes(), at, value);
}
template <typename T, typename S>
inline void asc_duplicate_scalar(vector_of<T>& dst, S value, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_scalar<AscendC::Reg::MaskMergeMode::ZEROING>("Duplicate", dst, mask,
                                                                          at, value);
}
template <typename T>
inline void asc_intlv(vector_of<T>& dst0, vector_of<T>& dst1, const vector_of<T>& a, const vector_of<T>& b,
                      CUBECORE_AT) {
  AscendC::Reg::Interleave(dst0, dst1, a, b, at);
}
template <typename T>
inline void asc_deintlv(vector_of<T>& dst0, vector_of<T>& dst1, const vector_of<T>& a, const vector_of<T>& b,
                        CUBECORE_AT) {
  AscendC::Reg::DeInterleave(dst0, dst1, a, b, at);
}
template <typename T, typename V>
inline void asc_pack_to_low(vector_of<T>& dst, const vector_of<V>& src, CUBECORE_AT) {
  AscendC::Reg::Pack(dst, src, at);
}
template <typename T, typename V>
inline void asc_pack_to_high(vector_of<T>& dst, const vector_of<V>& src, CUBECORE_AT) {
  using namespace AscendC::Reg;
  Pack<DefaultType, DefaultType, HighLowPart::HIGHEST>(dst, src, at);
}
template <typename T, typename V>
inline void asc_unpack_lower(vector_of<T>& dst, const vector_of<V>& src, CUBECORE_AT) {
  AscendC::Reg::UnPack(dst, src, at);
}
template <typename T, typename V>
inline void asc_unpack_upper(vector_of<T>& dst, const vector_of<V>& src, CUBECORE_AT) {
  using namespace AscendC::Reg;
  UnPack<DefaultType, DefaultType, HighLowPart::HIGHEST>(dst, src, at);
}
inline void asc_pack_to_low(vector_bool& dst, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::Pack(dst, src, at);
}
inline void asc_pack_to_high(vector_bool& dst, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::Pack<AscendC::Reg::HighLowPart::HIGHEST>(dst, src, at);
}
inline void asc_unpack_lower(vector_bool& dst, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::UnPack(dst, src, at);
}
inline void asc_unpack_upper(vector_bool& dst, const vector_bool& src, CUBECORE_AT) {
  AscendC::Reg::UnPack<AscendC::Reg::HighLowPart::HIGHEST>(dst, src, at);
}
// Their names before.
template <typename D, typename S>
inline void asc_pack(D& dst, const S& src, CUBECORE_AT) {
  asc_pack_to_low(dst, src, at);
}
template <typename D, typename S>
inline void asc_pack_v2(D& dst, const S& src, CUBECORE_AT) {
  asc_pack_to_high(dst, src, at);
}
template <typename T, typename V>
inline void asc_exp_sub(vector_of<T>& dst, const vector_of<V>& src0, const vector_of<V>& src1,
                        const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::ExpSub(dst, src0, src1, mask, at);
}
template <typename T, typename V>
inline void asc_exp_sub_v2(vector_of<T>& dst, const vector_of<V>& src0, const vector_of<V>& src1,
                           const vector_bool& mask, CUBECORE_AT) {
  using namespace AscendC::Reg;
  ExpSub<DefaultType, DefaultType, RegLayout::ONE>(dst, src0, src1, mask, at);
}
inline void asc_muls(vector_half& dst, const vector_float& src, float value,
                     const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::MulsCast(dst, src, value, mask, at);
}
inline void asc_muls_v2(vector_half& dst, const vector_float& src, float value,
                        const vector_bool& mask, CUBECORE_AT) {
  using namespace AscendC::Reg;
  MulsCast<DefaultType, DefaultType, float, RegLayout::ONE>(dst, src, value, mask, at);
}
#define CUBECORE_C_HISTOGRAM(NAME, OPERATION, MODE)                                               \
  inline void NAME(vector_uint16_t& dst, const vector_uint8_t& src, const vector_bool& mask,      \
                   CUBECORE_AT) {                                                                 \
    namespace reg = AscendC::Reg::detail;                                                         \
    auto& entry = reg::of_types<vector_uint16_t, vector_uint8_t>(OPERATION, MODE, at);            \
    entry.mask = mask.value;                                                                      \
    reg::read(entry, src, dst);                                                                   \
    reg::made(entry, dst);                                                                        \
  }
template <typename T>
inline void asc_unsqueeze(vector_of<T>& dst, const vector_bool& mask, CUBECORE_AT) {
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
inline void asc_gather(vector_of<T>& dst, const vector_of<T>& src, const vector_of<V>& index, CUBECORE_AT) {
  AscendC::Reg::Gather(dst, src, index, at);
}
template <typename T, typename V, typename P>
inline void asc_gather(vector_of<T>& dst, P* from, const vector_of<V>& index,
                       const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Gather(dst, from, index, mask, at);
}
template <typename T, typename P>
inline void asc_gather_datablock(vector_of<T>& dst, P* from, const vector_uint32_t& index,
                                 const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::GatherB(dst, from, index, mask, at);
}
template <typename T, typename P>
inline void asc_gather_datablock(vector_of<T>& dst, P* from, const vector_uint32_t& index,
                                 CUBECORE_AT) {
  AscendC::Reg::GatherB(dst, from, index, AscendC::Reg::detail::all_lanes(), at);
}
template <typename T, typename V, typename P>
inline void asc_scatter(P* to, const vector_of<T>& src, const vector_of<V>& index,
                        const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Scatter(to, src, index, mask, at);
}
// Its parameters before.
template <typename T, typename V, typename P>
inline void asc_scatter(const vector_of<T>& src, P* to, const vector_of<V>& index,
                        const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Scatter(to, src, index, mask, at);
}
#define CUBECORE_C_SQUEEZE(NAME, OPERATION, MODE)                                                 \
  template <typename T>                                                                           \
  inline void NAME(vector_of<T>& dst, const vector_of<T>& src, const vector_bool& mask,           \
                   CUBECORE_AT) {                                                                 \
    AscendC::Reg::detail::squeeze_counted(dst, src, mask, at);                                    \
  }
inline vector_bool asc_get_mask_spr_b16(CUBECORE_AT) {
  return AscendC::Reg::MoveMask<uint16_t>(at);
}
inline vector_bool asc_get_mask_spr_b32(CUBECORE_AT) {
  return AscendC::Reg::MoveMask<uint32_t>(at);
}
#define CUBECORE_C_REDUCE(NAME, OPERATION, MODE)                                                  \
  template <typename T, typename V>                                                               \
  inline void NAME(vector_of<T>& dst, const vector_of<V>& src, const vector_bool& mask,           \
                   CUBECORE_AT) {                                                                 \
    namespace reg = AscendC::Reg::detail;                                                         \
    auto& entry = reg::of_types<vector_of<T>, vector_of<V>>(OPERATION, MODE, at);                 \
    entry.mask = mask.value;                                                                      \
    reg::read(entry, src);                                                                        \
    reg::made(entry, dst);                                                                        \
  }
#define CUBECORE_C_SHIFT(NAME, LEFT)                                                          \
  template <typename T, typename V>                                                           \
  inline void NAME(vector_of<T>& dst, const vector_of<T>& src, const vector_of<V>& amounts, const vector_bool& mask, \
                   CUBECORE_AT) {                                                             \
    AscendC::Reg::detail::shift<LEFT>(dst, src, amounts, mask, at);                           \
  }                                                                                           \
  template <typename T>                                                                       \
  inline void NAME##_scalar(vector_of<T>& dst, const vector_of<T>& src, int16_t amount, const vector_bool& mask, \
                            CUBECORE_AT) {                                                    \
    AscendC::Reg::detail::shift<LEFT>(dst, src, amount, mask, at);                            \
  }
CUBECORE_C_SHIFT(asc_shiftleft, true)
CUBECORE_C_SHIFT(asc_shiftright, false)
#undef CUBECORE_C_SHIFT
template <typename T>
inline void asc_add(vector_bool& carry, vector_of<T>& dst, const vector_of<T>& a, const vector_of<T>& b,
                    const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_carry("AddCarry", carry, dst, a, b, mask, at);
}
template <typename T>
inline void asc_sub(vector_bool& carry, vector_of<T>& dst, const vector_of<T>& a, const vector_of<T>& b,
                    const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::with_carry("SubCarry", carry, dst, a, b, mask, at);
}
template <typename T>
inline void asc_addc(vector_bool& carry, vector_of<T>& dst, const vector_of<T>& a, const vector_of<T>& b,
                     const vector_bool& from, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::carried("AddC", carry, dst, a, b, from, mask, at);
}
template <typename T>
inline void asc_subc(vector_bool& carry, vector_of<T>& dst, const vector_of<T>& a, const vector_of<T>& b,
                     const vector_bool& from, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::carried("SubC", carry, dst, a, b, from, mask, at);
}
template <typename T>
inline void asc_mull(vector_of<T>& dst0, vector_of<T>& dst1, const vector_of<T>& a, const vector_of<T>& b,
                     const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::Mull(dst0, dst1, a, b, mask, at);
}

#define CUBECORE_C_ROUND(NAME, OPERATION, MODE)                                                   \
  template <typename T>                                                                           \
  inline void NAME(vector_of<T>& dst, const vector_of<T>& src, const vector_bool& mask,           \
                   CUBECORE_AT) {                                                                 \
    namespace reg = AscendC::Reg::detail;                                                         \
    auto& entry = reg::entry_of<vector_of<T>>(OPERATION, mask, at);                               \
    entry.mode = MODE;                                                                            \
    reg::read(entry, src);                                                                        \
    reg::made(entry, dst);                                                                        \
  }

// What a barrier orders, the earlier accesses first: VST and VLD are stores and loads of registers, ST
// and LD those of the scalar unit; of V and S all.
enum MEM_TYPE {
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
inline void asc_mem_bar(MEM_TYPE type, CUBECORE_AT) {
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
// Without a page: the compiler's own name, which public kernels call.
inline void mem_bar(MEM_TYPE type, CUBECORE_AT) { asc_mem_bar(type, at); }

inline void asc_clear_ar_spr(CUBECORE_AT) {
  AscendC::Reg::ClearSpr<AscendC::SpecialPurposeReg::AR>(at);
}
inline int64_t asc_get_ar_spr(CUBECORE_AT) {
  return AscendC::GetSpr<AscendC::SpecialPurposeReg::AR>(at);
}

// --- addresses: strides only, the counters are those of the loops around, the innermost first

namespace cubecore {
template <typename T, typename... S>
inline AscendC::Reg::AddrReg counted(const Here& at, S... strides) {
  const LoopCounter* loop = cubecore_registers()->innermost;
  int64_t offset = 0;
  const int64_t of_loops[] = {static_cast<int64_t>(strides)...};
  for (int64_t stride : of_loops) {
    if (loop == nullptr) {
      char message[160];
      snprintf(message, sizeof message,
               "%d; its counters are those of loops in the same function",
               static_cast<int>(sizeof...(strides)));
      cubecore_refuse("the strides of an address register", "have a loop each", message, &at);
    }
    offset += loop->value * stride;
    loop = loop->outer;
  }
  return {offset * static_cast<int64_t>(sizeof(T))};
}
}  // namespace cubecore
#define CUBECORE_C_ADDRESS(NAME, TYPE)                                                 \
  inline addr_reg NAME(uint32_t s0, CUBECORE_AT) { return cubecore::counted<TYPE>(at, s0); } \
  inline addr_reg NAME(uint32_t s0, uint32_t s1, CUBECORE_AT) {                        \
    return cubecore::counted<TYPE>(at, s0, s1);                                        \
  }                                                                                    \
  inline addr_reg NAME(uint32_t s0, uint32_t s1, uint32_t s2, CUBECORE_AT) {           \
    return cubecore::counted<TYPE>(at, s0, s1, s2);                                    \
  }                                                                                    \
  inline addr_reg NAME(uint32_t s0, uint32_t s1, uint32_t s2, uint32_t s3, CUBECORE_AT) { \
    return cubecore::counted<TYPE>(at, s0, s1, s2, s3);                                \
  }
CUBECORE_C_ADDRESS(asc_update_addr_reg_b8, uint8_t)
CUBECORE_C_ADDRESS(asc_update_addr_reg_b16, uint16_t)
CUBECORE_C_ADDRESS(asc_update_addr_reg_b32, uint32_t)
CUBECORE_C_ADDRESS(asc_create_iter_reg_b8, uint8_t)
CUBECORE_C_ADDRESS(asc_create_iter_reg_b16, uint16_t)
CUBECORE_C_ADDRESS(asc_create_iter_reg_b32, uint32_t)
#undef CUBECORE_C_ADDRESS
