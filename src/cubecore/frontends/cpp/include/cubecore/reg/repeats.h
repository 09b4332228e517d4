// Repeats of calls on tensors that are vector functions on 950, with the vector mask. Pages: Cast,
// Scatter, ReduceRepeat, and the page on masks.
#pragma once

#include "cubecore/basic/mask.h"
#include "cubecore/reg/tensors.h"

namespace AscendC {
namespace detail {

// The lanes of a repeat that the vector mask takes. Lanes of 64 bits have the first bits of those
// of 32, each for twice as wide a lane.
template <typename Lane>
inline Reg::MaskReg mask_of_repeats(const cubecore::Here& at) {
  using Bits = std::conditional_t<sizeof(Lane) <= 2, uint16_t, uint32_t>;
  const Reg::MaskReg bits = Reg::MoveMask<Bits>(at);
  if constexpr (sizeof(Lane) < 8) {
    return bits;
  } else {
    Reg::MaskReg wide;
    Reg::MaskUnPack(wide, bits, at);
    return wide;
  }
}

// `step(repeat, mask)` for each repeat of lanes of the type; in counter mode for as many as the
// elements make, whatever `times` says.
template <typename Lane, typename F>
inline void by_repeats(uint32_t times, const cubecore::Here& at, const F& step) {
  const CoreState& state = core_state();
  cubecore::VectorFunction function{at};
  if (state.counts) {
    uint32_t left = static_cast<uint32_t>(state.mask_low);
    for (uint32_t repeat = 0; left > 0; ++repeat) step(repeat, Reg::UpdateMask<Lane>(left, at));
    return;
  }
  if (times == 0) return;
  const Reg::MaskReg mask = mask_of_repeats<Lane>(at);
  for (uint32_t repeat = 0; repeat < times; ++repeat) step(repeat, mask);
}

// A tensor's elements from a repeat's first block on.
template <typename T>
inline PrimT<T>* lanes_of_repeat(const LocalTensor<T>& tensor, uint32_t repeat, uint32_t stride) {
  const uint64_t from = uint64_t(repeat) * stride * ONE_BLK_SIZE;
  return reinterpret_cast<PrimT<T>*>(reinterpret_cast<uint8_t*>(tensor.GetPhyAddr()) + from);
}

// Refuses blocks of a repeat that do not follow each other.
inline void require_blocks_in_row(const char* call, uint32_t dst, uint32_t src,
                                  const cubecore::Here& at) {
  if (dst == 1 && src == 1) return;
  char got[32];
  std::snprintf(got, sizeof(got), "%u and %u", dst, src);
  cubecore_refuse(call, "have block strides of 1 in cubecore", got, &at);
}

// Sums of repeats in a wider type than the elements', one behind another in steps of the result.
template <typename T, typename U>
inline void wide_sums(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t times,
                      uint32_t dstRepStride, uint32_t srcBlkStride, uint32_t srcRepStride,
                      const cubecore::Here& at) {
  using From = PrimT<U>;
  by_repeats<From>(times, at, [&](uint32_t repeat, const Reg::MaskReg& mask) {
    Reg::RegTensor<From> of;
    Reg::RegTensor<PrimT<T>> sum;
    Reg::LoadAlign<From, Reg::DataCopyMode::DATA_BLOCK_COPY>(
        of, lanes_of_repeat(src, repeat, srcRepStride), srcBlkStride, mask, at);
    Reg::Reduce<Reg::ReduceType::SUM>(sum, of, mask, at);
    Reg::StoreAlign<PrimT<T>, Reg::StoreDist::DIST_FIRST_ELEMENT_B32>(
        lanes_of(dst, repeat * dstRepStride), sum, mask, at);
  });
}

}  // namespace detail
}  // namespace AscendC
