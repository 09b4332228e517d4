// Elements picked by offsets and patterns. Pages: Gather, Gatherb(ISASI), GatherMask, Brcb,
// CreateVecIndex.
#pragma once

#include "cubecore/basic/compare.h"

namespace AscendC {

struct GatherMaskParams {
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 0;
  uint16_t src0RepeatStride = 8;
  uint8_t src1RepeatStride = 8;
  CUBECORE_TAKES(src0BlockStride, repeatTimes, src0RepeatStride, src1RepeatStride)
};

struct GatherRepeatParams {
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
  uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
  CUBECORE_TAKES(dstBlkStride, dstRepStride)
};

struct BrcbRepeatParams {
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
  uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
  CUBECORE_TAKES(dstBlkStride, dstRepStride)
};

namespace detail {

// A pointer to elements of the same size without a sign: what moves whole elements takes.
template <typename T>
inline cubecore::Pointer plain(const LocalTensor<T>& tensor) {
  cubecore::Pointer found = tensor.pointer();
  found.type = sizeof(PrimT<T>) == 2 ? "uint16" : "uint32";
  if (cubecore::is_950 && sizeof(PrimT<T>) == 1) found.type = "uint8";
  if (cubecore::is_950 && sizeof(PrimT<T>) == 8) found.type = "uint64";
  return found;
}

// Where offsets of Gather count from. The tensor begins at a block, srcBaseAddr at an element.
template <typename T>
inline cubecore::Pointer gathered(const LocalTensor<T>& src, uint32_t srcBaseAddr,
                                  const cubecore::Where& at) {
  const cubecore::Pointer begin = src.pointer();
  if (begin.address % ONE_BLK_SIZE != 0) {
    char said[64];
    std::snprintf(said, sizeof(said), "src must start at a multiple of 32 B in UB, got %lld",
                  static_cast<long long>(begin.address));
    cubecore_finding("misaligned", "Gather", said, &at);
  }
  return moved(begin, srcBaseAddr);
}

}  // namespace detail

// Offsets are in bytes from `srcBaseAddr` bytes behind src.
template <typename T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                   const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseAddr,
                   const uint32_t count, CUBECORE_AT) {
  cubecore::issue("asc_gather", at, dst.pointer(), detail::gathered(src, srcBaseAddr, at),
                  srcOffset.pointer(), count);
}
template <typename T, typename M>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                   const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseAddr, const M mask,
                   const uint8_t repeatTime, const uint16_t dstRepStride, CUBECORE_AT) {
  detail::note_none("Gather", repeatTime, at);
  detail::set_given<T>(mask, "Gather", at);
  cubecore::issue("asc_gather", at, dst.pointer(), detail::gathered(src, srcBaseAddr, at),
                  srcOffset.pointer(), dstRepStride, repeatTime);
}

template <typename T>
inline void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                    const LocalTensor<uint32_t>& offset, const uint8_t repeatTime,
                    const GatherRepeatParams& p, CUBECORE_AT) {
  cubecore::issue("asc_gather_datablock", at, detail::plain(dst), detail::plain(src),
                  offset.pointer(), p.dstRepStride, p.dstBlkStride, repeatTime);
}

namespace detail {

template <typename T>
inline void gather_mask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                        const cubecore::Pointer& src1, uint8_t pattern, bool reduceMode,
                        uint32_t mask, const GatherMaskParams& p, uint64_t& rsvdCnt,
                        const cubecore::Where& at) {
  if (reduceMode) {  // the count of a repeat is in the mask
    SetMaskCount(at);
    set_mask(0, mask, at);
  }
  cubecore::issue("vreducev2", at, plain(dst), plain(src0), src1, p.repeatTimes, p.src0BlockStride,
                  pattern, p.src0RepeatStride, p.src1RepeatStride);
  if (reduceMode) {
    SetMaskNorm(at);
    set_mask(~0ull, ~0ull, at);
  }
  hand(HardEvent::V_S, at);
  rsvdCnt = static_cast<uint64_t>(cubecore::ask(0, "asc_get_rsvd_count", at));
}

}  // namespace detail

template <typename T, typename U>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                       const LocalTensor<U>& src1Pattern, const bool reduceMode,
                       const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                       uint64_t& rsvdCnt, CUBECORE_AT) {
  detail::gather_mask(dst, src0, detail::plain(src1Pattern), 0, reduceMode, mask, gatherMaskParams,
                      rsvdCnt, at);
}
template <typename T>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                       const uint8_t src1Pattern, const bool reduceMode, const uint32_t mask,
                       const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt, CUBECORE_AT) {
  detail::gather_mask(dst, src0, detail::plain(src0), src1Pattern, reduceMode, mask,
                      gatherMaskParams, rsvdCnt, at);
}

template <typename T>
inline void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t repeatTime,
                 const BrcbRepeatParams& p, CUBECORE_AT) {
  if (p.dstBlkStride == 0) detail::judge_block_stride("Brcb", ONE_REPEAT_BYTE_SIZE, at);
  cubecore::issue("asc_brcb", at, detail::plain(dst), detail::plain(src), p.dstBlkStride,
                  p.dstRepStride, repeatTime);
}

#if __NPU_ARCH__ == 3510
namespace detail {
// Elements of 8 and of 64 bits: a vector function (reg/tensors.h).
template <typename T, typename S>
void counted_by_registers(const LocalTensor<T>& dst, const S& first, uint32_t count,
                          const cubecore::Here& at);
}  // namespace detail
#endif

// first, first + 1, ...: whole repeats, then the rest of one.
template <typename T, typename S>
inline void CreateVecIndex(LocalTensor<T> dst, const S& firstValue, uint32_t count, CUBECORE_AT) {
#if __NPU_ARCH__ == 3510
  if constexpr (sizeof(PrimT<T>) == 1 || sizeof(PrimT<T>) == 8) {
    detail::counted_by_registers(dst, firstValue, count, at);
    return;
  }
#endif
  constexpr uint32_t lanes = detail::lanes_of<T>();
  for (uint32_t done = 0; done < count; done += lanes) {
    detail::set_lanes(count - done < lanes ? count - done : lanes, at);
    auto first = detail::as_element<T>(
        static_cast<PrimT<T>>(static_cast<PrimT<T>>(firstValue) + static_cast<PrimT<T>>(done)));
    cubecore::issue("vci", at, dst[done].pointer(), cubecore::named("repeat", 1),
                    cubecore::named("first", first));
  }
}

template <typename T, typename S, typename M>
inline void CreateVecIndex(const LocalTensor<T>& dst, const S& firstValue, const M mask,
                           uint8_t repeatTime, uint16_t dstBlkStride, uint8_t dstRepStride,
                           CUBECORE_AT) {
  detail::note_none("CreateVecIndex", repeatTime, at);
  detail::set_given<T>(mask, "CreateVecIndex", at);
  cubecore::issue("vci", at, dst.pointer(), cubecore::named("repeat", repeatTime),
                  cubecore::named("first", detail::as_element<T>(firstValue)),
                  cubecore::named("dst_block_stride", dstBlkStride),
                  cubecore::named("dst_repeat_stride", dstRepStride));
}

}  // namespace AscendC
