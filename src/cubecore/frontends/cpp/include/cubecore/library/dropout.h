// Elements kept and left out by a mask, and columns added and taken away. Pages of the high-level
// API: DropOut, GetDropOutMaxMinTmpSize, Pad, UnPad, "Pad Tiling", "UnPad Tiling".
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/host/workspaces.h"
#include "cubecore/library/fill.h"
#include "cubecore/math/steps.h"

// Host code fills them, kernels hand them on; only height and widths matter here.
struct PadTiling {
  uint32_t srcHeight = 0, srcWidth = 0, srcOriWidth = 0, widthWithoutLastBlock = 0,
      blocksPerRow = 0, heightTiling = 0, heightFractal = 0, heightFractalTail = 0,
      mainLoopOffset = 0, tailBlockOffset = 0, tmpBuffer1BlockNum = 0, tmpBuffer1RowNum = 0,
      tmpBuffer2Offset = 0, widthTiling = 0, widthFractal = 0, widthFractalTail = 0,
      widthFractalTailAlingned = 0, brcbTiling = 0, brcbFractal = 0, brcbFractalTail = 0,
      maxRepeatTimes = 0, brcbTilingRepeatTimes = 0, brcbTilingRepeatTimesTail = 0,
      brcbFractalTailRepeatTimes = 0, brcbFractalTailRepeatTimesTail = 0, reserved = 0;
};

struct UnPadTiling {
  uint32_t srcHeight = 0, srcWidth = 0, tmpBuffer1BlockNum = 0, tmpBuffer1RowNum = 0,
      tmpBuffer2Offset = 0, widthTiling = 0, widthFractal = 0, widthFractalTail = 0;
};

namespace optiling {
using ::PadTiling;
using ::UnPadTiling;
}  // namespace optiling

namespace AscendC {

// The modes of DropOut, by the names of public kernels: misaligned rows of a mask have more than
// the tensor's.
constexpr uint32_t DROPOUT_MODE_BYTE_MISALIGN = 1, DROPOUT_MODE_BYTE_ALIGN = 2;
constexpr uint32_t DROPOUT_MODE_BIT_ALIGN = 3, DROPOUT_MODE_BIT_MISALIGN = 4;

namespace tiling {
using ::PadTiling;
using ::UnPadTiling;
}  // namespace tiling

struct DropOutShapeInfo {
  uint32_t firstAxis = 0, srcLastAxis = 0, maskLastAxis = 0;
};

struct PadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
  int32_t padValue = 0;
};

struct UnPadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
};

namespace detail {

// src where a byte of the mask is not 0, else 0: bytes become words of ones.
template <typename T>
inline void keep_by_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                          const LocalTensor<uint8_t>& mask, const LocalTensor<uint8_t>& given,
                          uint32_t count, const cubecore::Where& at) {
  Workspace work(given, 2, at);
  for (uint32_t done = 0; done < count;) {
    uint32_t turn = work.turn(count - done);
    Steps steps(turn, at);
    const LocalTensor<half> flags = work.floats(0).template ReinterpretCast<half>();
    const LocalTensor<int16_t> words = work.floats(1).template ReinterpretCast<int16_t>();
    uint32_t parts = sizeof(PrimT<T>) / 2;
    steps.cast(flags, mask[done], RoundMode::CAST_NONE);
    if constexpr (sizeof(PrimT<T>) == 2) {
      steps.cast(words, flags, RoundMode::CAST_RINT);
      steps.muls(words, words, -1);
    } else {
      const LocalTensor<int32_t> wide = work.floats(0).template ReinterpretCast<int32_t>();
      steps.cast(work.floats(1), flags, RoundMode::CAST_NONE);
      steps.cast(wide, work.floats(1), RoundMode::CAST_RINT);
      steps.muls(words.template ReinterpretCast<int32_t>(), wide, -1);
    }
    And(dst[done].template ReinterpretCast<int16_t>(),
        src[done].template ReinterpretCast<int16_t>(), words, static_cast<int32_t>(turn * parts),
        at);
    barrier(PIPE_V, at);
    done += turn;
  }
}

// The mode that shapes tell: bytes where masks are as long as rows, or longer (with what pads
// them), else bits.
constexpr uint32_t drop_mode(const DropOutShapeInfo& info) {
  if (info.maskLastAxis == info.srcLastAxis) return 2;
  if (info.maskLastAxis > info.srcLastAxis) return 1;
  return info.maskLastAxis * 8 == info.srcLastAxis ? 3 : 4;
}

// The lanes [begin, end) of a row, 64 at a time.
template <typename T>
inline void fill_part(const LocalTensor<T>& row, uint32_t begin, uint32_t end, T value,
                      const cubecore::Where& at) {
  for (uint32_t turn = begin / 64 * 64; turn < end; turn += 64) {
    uint32_t first = begin > turn ? begin - turn : 0, last = end - turn < 64 ? end - turn : 64;
    uint64_t ones = last - first == 64 ? ~0ull : (1ull << (last - first)) - 1;
    uint64_t lanes[] = {ones << first, 0};
    Duplicate(row[turn], value, lanes, 1, 1, 8, at);
  }
}

}  // namespace detail

// --- host side

inline uint32_t GetDropOutMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  uint32_t most = 0, least = 0;
  cubecore::workspace(srcShape, most, least);
  return most;
}
inline uint32_t GetDropOutMinTmpSize(const TensorShape&, const uint32_t, const bool) {
  return 10 * 256;
}
inline void GetDropOutMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                    const bool isReuseSource, uint32_t& maxValue,
                                    uint32_t& minValue) {
  maxValue = GetDropOutMaxTmpSize(srcShape, typeSize, isReuseSource);
  minValue = GetDropOutMinTmpSize(srcShape, typeSize, isReuseSource);
}
inline void GetPadMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, uint32_t& maxValue,
                                uint32_t& minValue) {
  uint32_t width = srcShape.GetDimNum() < 2 ? 0 : static_cast<uint32_t>(srcShape.GetDim(1));
  maxValue = minValue = (width + 23) / 8 * 32;  // offsets of a row
}
inline void PadTilingFunc(const TensorShape srcShape, const TensorShape oriSrcShape, const uint32_t,
                          const uint32_t, PadTiling& tiling) {
  tiling = PadTiling();
  tiling.srcHeight = static_cast<uint32_t>(srcShape.GetDim(0));
  tiling.srcWidth = static_cast<uint32_t>(srcShape.GetDim(1));
  tiling.srcOriWidth = static_cast<uint32_t>(oriSrcShape.GetDim(1));
}
template <typename P>
inline void GetUnPadMaxMinTmpSize(const P&, const TensorShape& srcShape, const uint32_t,
                                  uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue =
      static_cast<uint32_t>(srcShape.GetShapeSize() + 255) / 256 * 32;  // a bit each
}
inline void UnPadTilingFunc(const TensorShape srcShape, const uint32_t, const uint32_t,
                            UnPadTiling& tiling) {
  tiling = UnPadTiling();
  tiling.srcHeight = static_cast<uint32_t>(srcShape.GetDim(0));
  tiling.srcWidth = static_cast<uint32_t>(srcShape.GetDim(1));
}

// --- kernel side

// src / keepProb where the mask says so, else 0. With what pads rows of the mask they are taken row
// by row.
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
inline void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<uint8_t>& maskLocal,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const float keepProb,
                    const DropOutShapeInfo& info, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, float> || std::is_same_v<PrimT<T>, half>,
                "DropOut must take half or float, got another type");
  static_assert(dropOutMode <= 4, "DropOut.dropOutMode must be 0 to 4, got more");
  uint32_t mode = dropOutMode == 0 ? detail::drop_mode(info) : dropOutMode;
  bool padded = mode == 1 || mode == 4;
  uint32_t rows = padded ? info.firstAxis : 1;
  uint32_t count = padded ? info.srcLastAxis : info.firstAxis * info.srcLastAxis;
  for (uint32_t row = 0; row < rows; ++row) {
    const LocalTensor<T> to = dstLocal[row * count], from = srcLocal[row * count];
    const LocalTensor<uint8_t> mask = maskLocal[row * info.maskLastAxis];
    if (mode < 3)
      detail::keep_by_bytes(to, from, mask, sharedTmpBuffer, count, at);
    else
      Select(to, mask, from, PrimT<T>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, count, at);
    detail::barrier(PIPE_V, at);
    detail::Steps(count, at).muls(to, to, 1.0f / keepProb);
  }
  ResetMask(at);
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
inline void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<uint8_t>& maskLocal, const float keepProb,
                    const DropOutShapeInfo& info, CUBECORE_AT) {
  DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, detail::free_memory(),
                                         keepProb, info, at);
}

// Rows gathered one by one, then what pads them.
template <typename T>
inline void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                const PadParams& padParams, const LocalTensor<uint8_t>& sharedTmpBuffer,
                const PadTiling& tiling, CUBECORE_AT) {
  using P = PrimT<T>;
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(P);
  static_assert(sizeof(P) == 2 || sizeof(P) == 4, "Pad must take elements of 16 or 32 bits");
  uint32_t width = tiling.srcWidth, used = tiling.srcOriWidth, left = padParams.leftPad;
  uint32_t whole = (width + block - 1) / block * block, needed = (whole + 7) / 8 * 32;
  if (left + used + padParams.rightPad > whole || (left != 0 && width % block == 0))
    cubecore_refuse("Pad.padParams",
                    "fit into the width up to 32 B, on the right alone where that is aligned",
                    detail::Digits(left + used + padParams.rightPad).text, &at);
  const LocalTensor<uint8_t> work = detail::enough(sharedTmpBuffer, needed);
  if (work.GetSize() < needed)
    cubecore_refuse("Pad.sharedTmpBuffer", "have as much as GetPadMaxMinTmpSize answers",
                    detail::Digits(work.GetSize(), " B").text, &at);
  constexpr int32_t size = sizeof(P);
  const LocalTensor<int32_t> places = work.template ReinterpretCast<int32_t>();
  detail::Steps steps(whole, at);
  Arange(places, -static_cast<int32_t>(left) * size, size, static_cast<int32_t>(whole), at);
  detail::barrier(PIPE_V, at);
  steps.maxs(places, places, 0);
  steps.mins(places, places, static_cast<int32_t>(used - 1) * size);
  for (uint32_t row = 0; row < tiling.srcHeight; ++row) {
    const LocalTensor<T> to = dstTensor[row * whole];
    if (row != 0) steps.adds(places, places, static_cast<int32_t>(width) * size);
    Gather(to, srcTensor, places.template ReinterpretCast<uint32_t>(), 0, whole, at);
    detail::barrier(PIPE_V, at);
    P value = static_cast<P>(padParams.padValue);
    detail::fill_part(to, 0, left, value, at);
    detail::fill_part(to, left + used, whole, value, at);
  }
  ResetMask(at);
  detail::barrier(PIPE_V, at);
}
template <typename T>
inline void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                const PadParams& padParams, const PadTiling& tiling, CUBECORE_AT) {
  Pad(dstTensor, srcTensor, padParams, detail::free_memory(), tiling, at);
}

// All elements but the last of each row: a bit for each, which the scalar unit writes.
template <typename T>
inline void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                  const UnPadParams& unPadParams, const LocalTensor<uint8_t>& sharedTmpBuffer,
                  const UnPadTiling& tiling, CUBECORE_AT) {
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(PrimT<T>);
  uint32_t width = tiling.srcWidth, right = unPadParams.rightPad;
  if (width % block != 0 || right == 0 || right >= block)
    cubecore_refuse("UnPad.rightPad", "be above 0 and below 32 B, of rows of whole blocks",
                    detail::Digits(right).text, &at);
  uint32_t count = tiling.srcHeight * width, words = (count + 31) / 32;
  uint32_t needed = (words + 7) / 8 * 32;
  const LocalTensor<uint8_t> work = detail::enough(sharedTmpBuffer, needed);
  if (work.GetSize() < needed)
    cubecore_refuse("UnPad.sharedTmpBuffer", "have as much as GetUnPadMaxMinTmpSize answers",
                    detail::Digits(work.GetSize(), " B").text, &at);
  const LocalTensor<uint32_t> bits = work.template ReinterpretCast<uint32_t>();
  detail::hand(HardEvent::V_S, at);
  for (uint32_t word = 0; word < words; ++word) {
    uint32_t ones = 0;
    for (uint32_t n = 0; n < 32; ++n)
      ones |= static_cast<uint32_t>((word * 32 + n) % width < width - right) << n;
    bits.SetValue(word, ones, at);
  }
  detail::hand(HardEvent::S_V, at);
  SetMaskCount(at);
  detail::set_mask(0, count, at);
  const LocalTensor<T> pattern = bits.template ReinterpretCast<T>();
  cubecore::issue("vreducev2", at, detail::plain(dstTensor), detail::plain(srcTensor),
                  detail::plain(pattern), 1, 1, 0, 8, 8);
  SetMaskNorm(at);
  ResetMask(at);
  detail::barrier(PIPE_V, at);
}
template <typename T>
inline void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                  const UnPadParams& unPadParams, const UnPadTiling& tiling, CUBECORE_AT) {
  UnPad(dstTensor, srcTensor, unPadParams, detail::free_memory(), tiling, at);
}

}  // namespace AscendC
