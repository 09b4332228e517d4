// Tensors whose elements move, each call a vector function. Pages: Scatter, Interleave,
// DeInterleave (Memory矢量计算).
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/reg/repeats.h"

namespace AscendC {
namespace detail {

// The indices of a register of elements, from offsets in bytes behind `base` bytes. Lanes of 16 bits
// (those of bytes, too) take the low halves of 128 offsets and the bit above them, as these are below
// 2^17.
template <typename T>
inline auto indices(uint32_t* offsets, uint32_t base, uint32_t count, const cubecore::Here& at) {
  constexpr bool narrow = sizeof(T) <= 2;
  constexpr int16_t shift = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  const Reg::MaskReg mask =
      Reg::UpdateMask<std::conditional_t<narrow, uint16_t, uint32_t>>(count, at);
  if constexpr (narrow) {
    Reg::RegTensor<uint16_t> low, high;
    Reg::LoadAlign<uint16_t, Reg::LoadDist::DIST_DINTLV_B16>(
        low, high, reinterpret_cast<uint16_t*>(offsets), at);
    if constexpr (shift > 0) {
      Reg::ShiftRights(low, low, shift, mask, at);
      Reg::ShiftLefts(high, high, static_cast<int16_t>(16 - shift), mask, at);
      Reg::Or(low, low, high, mask, at);
    }
    Reg::Adds(low, low, static_cast<uint16_t>(base / sizeof(T)), mask, at);
    return low;
  } else {
    Reg::RegTensor<uint32_t> index;
    Reg::LoadAlign(index, offsets, at);
    Reg::ShiftRights(index, index, shift, mask, at);
    Reg::Adds(index, index, static_cast<uint32_t>(base / sizeof(T)), mask, at);
    return index;
  }
}

// Loads and stores of registers behind `from` and `to`, wherever these begin.
template <typename T>
inline void load_anywhere(Reg::RegTensor<T>& dst, T* from, bool aligned,
                          const cubecore::Here& at) {
  if (aligned) {
    Reg::LoadAlign(dst, from, at);
    return;
  }
  Reg::UnalignRegForLoad buffer;
  Reg::LoadUnAlignPre(buffer, from, at);
  Reg::LoadUnAlign(dst, buffer, from, at);
}
template <typename T>
inline bool begins_block(uint32_t elements) {
  return elements * sizeof(T) % ONE_BLK_SIZE == 0;
}

}  // namespace detail

// The first `count` elements of src, each to where its offset says, in bytes from `dstBaseAddr`
// bytes behind dst.
template <typename T>
inline void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                    const LocalTensor<uint32_t>& dstOffset, const uint32_t dstBaseAddr,
                    const uint32_t count, CUBECORE_AT) {
  using P = PrimT<T>;
  using Lane = std::conditional_t<sizeof(P) <= 2, uint16_t,
                                  std::conditional_t<sizeof(P) == 4, uint32_t, uint64_t>>;
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(Lane);
  auto* to = detail::lanes_of(dst);
  auto* offsets = reinterpret_cast<uint32_t*>(dstOffset.GetPhyAddr());
  cubecore::VectorFunction function{at};
  for (uint32_t first = 0, left = count; left > 0; first += lanes) {
    const auto index = detail::indices<P>(offsets + first, dstBaseAddr, left < lanes ? left : lanes,
                                          at);
    const Reg::MaskReg mask = Reg::UpdateMask<Lane>(left, at);
    Reg::RegTensor<P> of;
    if constexpr (sizeof(P) == 1)
      Reg::LoadAlign<P, Reg::LoadDist::DIST_UNPACK_B8>(of, detail::lanes_of(src, first), at);
    else
      Reg::LoadAlign(of, detail::lanes_of(src, first), at);
    Reg::Scatter(to, of, index, mask, at);
  }
}
// Repeats of 256 B, srcRepStride blocks apart in src; offsets follow each other.
template <typename T, typename M>
inline void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                    const LocalTensor<uint32_t>& dstOffset, const uint32_t dstBaseAddr,
                    const M mask, const uint8_t repeatTime, const uint8_t srcRepStride,
                    CUBECORE_AT) {
  using P = PrimT<T>;
  static_assert(sizeof(P) > 1, "Scatter of elements of 8 bits must be by a count");
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(P);
  detail::set_given<T>(mask, "Scatter", at);
  auto* to = detail::lanes_of(dst);
  auto* offsets = reinterpret_cast<uint32_t*>(dstOffset.GetPhyAddr());
  detail::by_repeats<P>(repeatTime, at, [&](uint32_t repeat, const Reg::MaskReg& of_repeat) {
    const auto index = detail::indices<P>(offsets + repeat * lanes, dstBaseAddr, lanes, at);
    Reg::RegTensor<P> of;
    Reg::LoadAlign(of, detail::lanes_of_repeat(src, repeat, srcRepStride), at);
    Reg::Scatter(to, of, index, of_repeat, at);
  });
}

// a0 b0 a1 b1 ...: the first `count` to dst0, the others to dst1.
template <typename T>
inline void Interleave(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1,
                       const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                       const int32_t count, CUBECORE_AT) {
  using P = PrimT<T>;
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(P);
  const uint32_t half = static_cast<uint32_t>(count) / 2;
  cubecore::VectorFunction function{at};
  for (int part = 0; part < 2; ++part) {
    const LocalTensor<T>& dst = part == 0 ? dst0 : dst1;
    const uint32_t begin = part == 0 ? 0 : half;
    const bool aligned = detail::begins_block<P>(begin);
    for (uint32_t first = 0, left = static_cast<uint32_t>(count); left > 0; first += lanes) {
      Reg::RegTensor<P> a, b, low, high;
      detail::load_anywhere(a, detail::lanes_of(src0, begin + first), aligned, at);
      detail::load_anywhere(b, detail::lanes_of(src1, begin + first), aligned, at);
      Reg::Interleave(low, high, a, b, at);
      const Reg::MaskReg of_low = Reg::UpdateMask<P>(left, at);
      Reg::StoreAlign(detail::lanes_of(dst, 2 * first), low, of_low, at);
      if (left == 0) break;
      const Reg::MaskReg of_high = Reg::UpdateMask<P>(left, at);
      Reg::StoreAlign(detail::lanes_of(dst, 2 * first + lanes), high, of_high, at);
    }
  }
}

namespace detail {

// The even elements of `count` of src to `even`, the odd ones to `odd`.
template <typename T>
inline void parted(T* even, T* odd, T* src, uint32_t count, const cubecore::Here& at) {
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(T);
  for (uint32_t first = 0, left = count / 2; left > 0; first += lanes) {
    Reg::RegTensor<T> a, b, evens, odds;
    Reg::LoadAlign(a, src + 2 * first, at);
    Reg::LoadAlign(b, src + 2 * first + lanes, at);
    Reg::DeInterleave(evens, odds, a, b, at);
    const Reg::MaskReg mask = Reg::UpdateMask<T>(left, at);
    Reg::StoreAlign(even + first, evens, mask, at);
    Reg::StoreAlign(odd + first, odds, mask, at);
  }
}

}  // namespace detail

template <typename T>
inline void DeInterleave(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1,
                         const LocalTensor<T>& src, const int32_t srcCount, CUBECORE_AT) {
  cubecore::VectorFunction function{at};
  detail::parted(detail::lanes_of(dst0), detail::lanes_of(dst1), detail::lanes_of(src),
                 static_cast<uint32_t>(srcCount), at);
}
// Of two tensors, one behind the other.
template <typename T>
inline void DeInterleave(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1,
                         const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                         const int32_t count, CUBECORE_AT) {
  using P = PrimT<T>;
  const uint32_t whole = static_cast<uint32_t>(count), half = whole / 2;
  if (!detail::begins_block<P>(half))
    cubecore_refuse("DeInterleave's count",
                    "be a multiple of 64 B of elements for two inputs, so that a half of the "
                    "results begins at a block",
                    "another number", &at);
  cubecore::VectorFunction function{at};
  detail::parted(detail::lanes_of(dst0), detail::lanes_of(dst1), detail::lanes_of(src0), whole, at);
  detail::parted(detail::lanes_of(dst0, half), detail::lanes_of(dst1, half),
                 detail::lanes_of(src1), whole, at);
}

}  // namespace AscendC
