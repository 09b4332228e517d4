// Built-in functions that public kernels call beside the class API, over raw pointers. Pages: the C
// API's of the same instructions. The word of ffts_cross_core_sync is 1 | mode << 4 | flag << 8, as
// public kernels write it.
#pragma once

#include "cubecore/seam/local.h"
#include "cubecore/sync/cores.h"
#include "cubecore/sync/flags.h"
#include "cubecore/sync/notices.h"

inline void ffts_cross_core_sync(pipe_t pipe, uint64_t config, CUBECORE_AT) {
  uint64_t mode = config >> 4 & 3;
  if ((config & 1) == 0 || mode > 2)
    cubecore_refuse("ffts_cross_core_sync.config", "have bit 0 and mode 0, 1 or 2 in bits 4 and 5",
                    "another word", &at);
  AscendC::detail::require_heard(mode, at);
  cubecore::issue_raw(AscendC::detail::ARRIVALS[mode], at, AscendC::detail::pipe_word(pipe), config >> 8 & 15);
}
inline void wait_flag_dev(int64_t flag, CUBECORE_AT) {
  cubecore::issue_raw("asc_sync_inter_wait", at, "PIPE_S", flag);
}
inline void set_ffts_base_addr(uint64_t config, CUBECORE_AT) {
  cubecore::issue_raw("asc_set_ffts_base_addr", at, config);
}

namespace AscendC {

// Without a page: public kernels call these in the place of set_ffts_base_addr and wait_flag_dev.
inline void SetSyncBaseAddr(uint64_t config, CUBECORE_AT) { set_ffts_base_addr(config, at); }
inline void SetFftsBaseAddr(uint64_t config, CUBECORE_AT) { set_ffts_base_addr(config, at); }
inline void WaitEvent(uint16_t flagId, CUBECORE_AT) { wait_flag_dev(flagId, at); }
// Guide "AIV核上的ND2NZ格式转换": between an AIC and its AIVs.
template <pipe_t pipe>
inline void NotifyEvent(uint16_t flagId, CUBECORE_AT) {
  CrossCoreSetFlag<2, pipe>(flagId, at);
}
// Without a page: public kernels call it behind a dcci or SyncAll, before they read what others
// wrote. Uncertain: it orders nothing that the scalar unit does not do in order, and no pipe waits.
inline void Barrier() {}

}  // namespace AscendC

inline uint64_t get_ctrl(CUBECORE_AT) {
  return static_cast<uint64_t>(cubecore::ask(0, "asc_get_ctrl", at));
}
inline void set_ctrl(uint64_t value, CUBECORE_AT) {
  cubecore::issue_raw("asc_set_ctrl", at, value);
}
constexpr int64_t clz(uint64_t word) { return word == 0 ? 64 : __builtin_clzll(word); }
constexpr int64_t bcnt1(uint64_t word) { return __builtin_popcountll(word); }
constexpr int64_t bcnt0(uint64_t word) { return 64 - bcnt1(word); }
constexpr uint64_t sbitset0(uint64_t word, uint32_t bit) { return word & ~(1ull << bit); }
constexpr uint64_t sbitset1(uint64_t word, uint32_t bit) { return word | 1ull << bit; }
enum cache_line_t : uint64_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t : uint64_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
inline void dcci(const void* address, uint64_t lines, uint64_t of = CACHELINE_OUT, CUBECORE_AT) {
  AscendC::detail::clean(lines == SINGLE_CACHE_LINE, of == CACHELINE_UB,
                         cubecore::gm_address(address), at);
}

// Past the data cache. Pages: asc_store_dev, ReadGmByPassDCache(ISASI). No page has the distance
// between the address and the element; public kernels give 0.
namespace cubecore {

inline void require_no_distance(const char* what, int64_t distance, const Where& at) {
  if (distance != 0)
    cubecore_refuse(what, "be 0", std::to_string(distance).c_str(), &at);
}

}  // namespace cubecore

template <typename T>
inline void st_dev(T value, T* addr, int64_t offset, CUBECORE_AT) {
  cubecore::require_no_distance("st_dev.offset", offset, at);
  AscendC::WriteGmByPassDCache(addr, value, at);
}
template <typename T>
inline T ld_dev(const T* addr, int64_t offset, CUBECORE_AT) {
  cubecore::require_no_distance("ld_dev.offset", offset, at);
  return AscendC::ReadGmByPassDCache(addr, at);
}

// The operation and the type of atomic stores are set one by one, in any order.
namespace AscendC::detail {

inline void set_atomic(int operation, int type, const cubecore::Where& at) {
  CoreState& state = core_state();
  if (operation >= 0) state.atomic = static_cast<uint8_t>(operation);
  if (type >= 0) state.atomic_type = static_cast<int8_t>(type);
  if (state.atomic_type >= 0)
    cubecore::issue_raw(atomic_calls[state.atomic][state.atomic_type], at);
}

}  // namespace AscendC::detail

inline void set_atomic_add(CUBECORE_AT) { AscendC::detail::set_atomic(0, -1, at); }
inline void set_atomic_max(CUBECORE_AT) { AscendC::detail::set_atomic(1, -1, at); }
inline void set_atomic_min(CUBECORE_AT) { AscendC::detail::set_atomic(2, -1, at); }
inline void set_atomic_f32(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 0, at); }
inline void set_atomic_f16(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 1, at); }
inline void set_atomic_bf16(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 2, at); }
inline void set_atomic_s8(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 3, at); }
inline void set_atomic_s16(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 4, at); }
inline void set_atomic_s32(CUBECORE_AT) { AscendC::detail::set_atomic(-1, 5, at); }
inline void set_atomic_none(CUBECORE_AT) {
  AscendC::detail::core_state().atomic_type = -1;
  cubecore::issue_raw("asc_set_atomic_none", at);
}

// Between global memory and UB: runs of 32 B, gaps from a run's tail to the next one's head.
template <typename D, typename S>
inline void copy_gm_to_ubuf(D* dst, S* src, uint8_t, uint16_t nBurst, uint16_t lenBurst,
                            uint16_t srcGap, uint16_t dstGap, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_copy_gm2ub", at, cubecore::operand(Mem::UB, dst),
                      cubecore::operand(Mem::GM, src), nBurst, lenBurst, srcGap, dstGap);
}
template <typename D, typename S>
inline void copy_ubuf_to_gm(D* dst, S* src, uint8_t, uint16_t nBurst, uint16_t lenBurst,
                            uint16_t srcGap, uint16_t dstGap, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_copy_ub2gm", at, cubecore::operand(Mem::GM, dst),
                      cubecore::operand(Mem::UB, src), nBurst, lenBurst, srcGap, dstGap);
}

// Likewise in bytes, with elements beside each run in UB; gaps of UB are in blocks of 32 B.
#define CUBECORE_ALIGNED(name, call, to, from)                                         \
  template <typename D, typename S>                                                    \
  inline void name(D* dst, S* src, uint8_t, uint16_t nBurst, uint32_t lenBurst,        \
                   uint8_t leftPaddingNum, uint8_t rightPaddingNum, uint32_t srcGap,   \
                   uint32_t dstGap, CUBECORE_AT) {                                     \
    cubecore::issue_raw(call, at, cubecore::operand(cubecore::Mem::to, dst),           \
                        cubecore::operand(cubecore::Mem::from, src), nBurst, lenBurst, \
                        leftPaddingNum, rightPaddingNum, srcGap, dstGap);              \
  }
CUBECORE_ALIGNED(copy_gm_to_ubuf_align_b8, "asc_copy_gm2ub_align", UB, GM)
CUBECORE_ALIGNED(copy_gm_to_ubuf_align_b16, "asc_copy_gm2ub_align", UB, GM)
CUBECORE_ALIGNED(copy_gm_to_ubuf_align_b32, "asc_copy_gm2ub_align", UB, GM)
CUBECORE_ALIGNED(copy_ubuf_to_gm_align_b8, "asc_copy_ub2gm_align", GM, UB)
CUBECORE_ALIGNED(copy_ubuf_to_gm_align_b16, "asc_copy_ub2gm_align", GM, UB)
CUBECORE_ALIGNED(copy_ubuf_to_gm_align_b32, "asc_copy_ub2gm_align", GM, UB)
#undef CUBECORE_ALIGNED

// Within UB. Pages: asc_copy_ub2ub, asc_duplicate, asc_transpose, asc_or and its kin.
template <typename D, typename S>
inline void copy_ubuf_to_ubuf(D* dst, S* src, uint8_t, uint16_t nBurst, uint16_t lenBurst,
                              uint16_t srcGap, uint16_t dstGap, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_copy_ub2ub", at, cubecore::operand(Mem::UB, dst),
                      cubecore::operand(Mem::UB, src), nBurst, lenBurst, srcGap, dstGap);
}
// The strides of a source, which it does not have, are not looked at.
template <typename T, typename V>
inline void vector_dup(T* dst, V value, uint8_t repeat, uint16_t dstBlockStride, uint16_t,
                       uint16_t dstRepeatStride, uint16_t, CUBECORE_AT) {
  cubecore::issue_raw("asc_duplicate", at, cubecore::operand(cubecore::Mem::UB, dst),
                      cubecore::plain(value), repeat, dstBlockStride, dstRepeatStride);
}
template <typename T>
inline void vtranspose(T* dst, T* src, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_transpose", at, cubecore::operand(Mem::UB, dst),
                      cubecore::operand(Mem::UB, src));
}
#define CUBECORE_BINARY(name, call)                                                                \
  template <typename T>                                                                            \
  inline void name(T* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlockStride,               \
                   uint8_t src0BlockStride, uint8_t src1BlockStride, uint8_t dstRepeatStride,      \
                   uint8_t src0RepeatStride, uint8_t src1RepeatStride, CUBECORE_AT) {              \
    using cubecore::Mem;                                                                           \
    cubecore::issue_raw(call, at, cubecore::operand(Mem::UB, dst),                                 \
                        cubecore::operand(Mem::UB, src0), cubecore::operand(Mem::UB, src1),        \
                        repeat, dstBlockStride, src0BlockStride, src1BlockStride, dstRepeatStride, \
                        src0RepeatStride, src1RepeatStride);                                       \
  }
CUBECORE_EACH(Binary, CUBECORE_BINARY(name, "c_api"))
#undef CUBECORE_BINARY
