// Vector functions of several instructions. Pages: AddDeqRelu, BilinearInterpolation(ISASI), and
// the form of SetDeqScale that writes a tensor.
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/math/steps.h"

namespace AscendC {

// Scales, offsets and signs of the sixteen lanes of a block; SetDeqScale writes them to UB.
struct VdeqInfo {
  float vdeqScale[16] = {0};
  int16_t vdeqOffset[16] = {0};
  bool vdeqSignMode[16] = {0};
  CUBECORE_TAKES(vdeqScale, vdeqOffset, vdeqSignMode)
};
template <typename T>
inline void SetDeqScale(const LocalTensor<T>& vdeq, const VdeqInfo& vdeqInfo, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, uint64_t>, "SetDeqScale's tensor must be of uint64_t");
  for (uint32_t n = 0; n < 16; ++n)
    vdeq.SetValue(
        n,
        detail::deq_word(vdeqInfo.vdeqScale[n], vdeqInfo.vdeqOffset[n], vdeqInfo.vdeqSignMode[n]),
        at);
  detail::hand(HardEvent::S_V, at);
  cubecore::issue("asc_set_deq_scale", at, vdeq.GetPhyAddr() / ONE_BLK_SIZE);
}

namespace detail {

constexpr uint32_t MOST_SUMS = 2048;  // 8 KB of int32_t

// Sums lie in the memory that no buffer has.
inline LocalTensor<int32_t> memory_of_sums(uint32_t count, const cubecore::Where& at) {
  uint32_t bytes = (count < MOST_SUMS ? count : MOST_SUMS) * static_cast<uint32_t>(sizeof(int32_t));
  const LocalTensor<uint8_t> given = enough(LocalTensor<uint8_t>(), bytes);
  if (given.GetSize() < bytes) {
    char need[80];
    std::snprintf(need, sizeof(need), "have %u B of UB behind the buffers of a TPipe", bytes);
    cubecore_refuse("AddDeqRelu", need, "less", &at);
  }
  return given.template ReinterpretCast<int32_t>();
}

}  // namespace detail

// Add, convert by DEQSCALE, cut off what is negative: in turns of what there is room for.
template <typename T, typename U>
inline void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& src0,
                       const LocalTensor<U>& src1, const int32_t& count, CUBECORE_AT) {
  const uint32_t all = count < 0 ? 0 : static_cast<uint32_t>(count);
  const LocalTensor<int32_t> sums = detail::memory_of_sums(all, at);
  for (uint32_t done = 0; done < all; done += detail::MOST_SUMS) {
    uint32_t left = all - done;
    uint32_t turn = left < detail::MOST_SUMS ? left : detail::MOST_SUMS;
    const detail::Steps steps(turn, at);
    steps.add(sums, src0[done], src1[done]);
    steps.cast(dst[done], sums, RoundMode::CAST_NONE);
    Relu(dst[done], dst[done], static_cast<int32_t>(turn), at);
    detail::barrier(PIPE_V, at);
  }
}
// A mask of either kind: lanes, or an array of bits.
template <typename T, typename U, bool isSetMask = true, typename M>
inline void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& src0,
                       const LocalTensor<U>& src1, const M mask, const uint8_t repeatTime,
                       const BinaryRepeatParams& p, CUBECORE_AT) {
  constexpr uint32_t lanes = detail::lanes_of<U>(), most = detail::MOST_SUMS / lanes;
  const LocalTensor<int32_t> sums = detail::memory_of_sums(repeatTime * lanes, at);
  if constexpr (isSetMask) detail::set_given<U>(mask, "AddDeqRelu", at);
  for (uint32_t done = 0; done < repeatTime; done += most) {
    const uint8_t times = static_cast<uint8_t>(repeatTime - done < most ? repeatTime - done : most);
    const LocalTensor<T> to = dst[done * p.dstRepStride * ONE_BLK_SIZE / sizeof(PrimT<T>)];
    detail::binary("asc_add", sums,
                   src0[done * p.src0RepStride * ONE_BLK_SIZE / sizeof(PrimT<U>)].pointer(),
                   src1[done * p.src1RepStride * ONE_BLK_SIZE / sizeof(PrimT<U>)].pointer(), times,
                   {1, p.src0BlkStride, p.src1BlkStride, 8, p.src0RepStride, p.src1RepStride}, at);
    detail::barrier(PIPE_V, at);
    detail::unary("asc_deq_int322half", to, sums, times, {p.dstBlkStride, 1, p.dstRepStride, 8},
                  at);
    detail::barrier(PIPE_V, at);
    detail::unary("asc_relu", to, to, times,
                  {p.dstBlkStride, p.dstBlkStride, p.dstRepStride, p.dstRepStride}, at);
    detail::barrier(PIPE_V, at);
  }
}

// Blocks are gathered, each is multiplied by an element of src1 (all blocks of a repeat by one
// without repeatMode), and hRepeat products are added up into one repeat of dst.
template <typename T, typename M>
inline void BilinearInterpolation(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                                  const LocalTensor<uint32_t>& src0Offset,
                                  const LocalTensor<T>& src1, const M mask, uint8_t hRepeat,
                                  bool repeatMode, uint16_t dstBlkStride, uint16_t vROffset,
                                  uint8_t vRepeat, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                  CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, half>,
                "BilinearInterpolation must take half, got another");
  constexpr uint32_t repeat = 128, most = 248, eight = 8;  // `most`: of an instruction, by eights
  bool right = cubecore::within("BilinearInterpolation", "hRepeat", hRepeat, 1, 255, at);
  right &= cubecore::within("BilinearInterpolation", "vRepeat", vRepeat, 1, 255, at);
  right &= cubecore::within("BilinearInterpolation", "vROffset", vROffset, repeat, 65534, at);
  right &= cubecore::within("BilinearInterpolation", "dstBlkStride", dstBlkStride, 0, 255, at);
  if (!right) return;
  const uint32_t all = hRepeat * vRepeat, weights = repeatMode ? all : (all + 7) / eight;
  const uint32_t bytes = (all + weights) * repeat * sizeof(half);
  const LocalTensor<uint8_t> given =
      detail::required("BilinearInterpolation.sharedTmpBuffer", sharedTmpBuffer, bytes, at);
  const LocalTensor<T> gathered = given.template ReinterpretCast<T>();
  const LocalTensor<T> factors = gathered[all * repeat];
  detail::set_mask(~0ull, ~0ull, at);
  for (uint32_t done = 0; done < all; done += most)
    Gatherb(gathered[done * repeat], src0, src0Offset[done * eight],
            static_cast<uint8_t>(all - done < most ? all - done : most), {1, eight}, at);
  for (uint32_t done = 0; done < weights; done += most)
    Brcb(factors[done * repeat], src1[done * eight],
         static_cast<uint8_t>(weights - done < most ? weights - done : most), {1, eight}, at);
  detail::barrier(PIPE_V, at);
  const BinaryRepeatParams times(1, 1, repeatMode, 8, 8, repeatMode ? eight : 1);
  for (uint32_t done = 0; done < all; done += most)
    detail::binary("asc_mul", gathered[done * repeat], gathered[done * repeat].pointer(),
                   factors[done * (repeatMode ? repeat : 16)].pointer(),
                   static_cast<uint8_t>(all - done < most ? all - done : most), times, at);
  detail::barrier(PIPE_V, at);
  detail::set_given<T>(mask, "BilinearInterpolation", at);
  for (uint32_t row = 0; row < vRepeat; ++row) {
    const LocalTensor<T> to = dst[row * vROffset], from = gathered[row * hRepeat * repeat];
    if (hRepeat == 1) detail::copy_lanes(to, from, 1, {dstBlkStride, 1, 8, 8}, at);
    const uint8_t blocks = static_cast<uint8_t>(dstBlkStride);
    for (uint32_t n = 1; n < hRepeat; ++n) {
      detail::binary("asc_add", to, n == 1 ? from.pointer() : to.pointer(),
                     from[n * repeat].pointer(), 1,
                     {blocks, n == 1 ? uint8_t(1) : blocks, 1, 8, 8, 8}, at);
      detail::barrier(PIPE_V, at);
    }
  }
}

}  // namespace AscendC
