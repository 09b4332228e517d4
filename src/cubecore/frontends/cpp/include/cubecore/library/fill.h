// Values made, repeated and chosen by whole calls. Pages of the high-level API: Arange, Broadcast,
// Fill, Select (with a mask of elements).
#pragma once

#include "cubecore/basic/copy.h"
#include "cubecore/basic/gather.h"
#include "cubecore/math/steps.h"

namespace AscendC {

// first, first + diff, ...: a block by the scalar unit, the others by additions.
template <typename T>
inline void Arange(const LocalTensor<T>& dst, const T firstValue, const T diffValue,
                   const int32_t count, CUBECORE_AT) {
  constexpr int32_t block = ONE_BLK_SIZE / sizeof(T), lanes = detail::lanes_of<T>();
  static_assert(sizeof(T) == 2 || sizeof(T) == 4,
                "Arange must take elements of 16 or 32 bits on 2201, got others");
  for (int32_t n = 0; n < block && n < count; ++n)
    dst.SetValue(n, static_cast<T>(firstValue + diffValue * static_cast<T>(n)), at);
  detail::hand(HardEvent::S_V, at);
  int32_t made = block, unit = block;
  while (made < count) {
    int32_t left = count - made < unit ? count - made : unit;
    Adds(dst[made], dst, static_cast<T>(diffValue * static_cast<T>(made)), left, at);
    made += left;
    if (made == lanes) {
      detail::barrier(PIPE_V, at);
      unit = lanes;
    }
  }
}
// The name before (page GetArangeMaxMinTmpSize).
template <typename T>
inline void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue,
                             const int32_t count, CUBECORE_AT) {
  Arange(dst, firstValue, diffValue, count, at);
}

namespace detail {

// Rows of `width` blocks, each filled from one block of src or from a row of it.
template <typename T>
inline void spread(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t rows,
                   uint32_t columns, uint32_t width, bool along, const cubecore::Where& at) {
  constexpr uint32_t lanes = lanes_of<T>(), block = ONE_BLK_SIZE / sizeof(PrimT<T>);
  for (uint32_t column = 0; column < columns; column += lanes) {
    set_lanes(columns - column < lanes ? columns - column : lanes, at);
    for (uint32_t row = 0; row < rows; row += MOST_TIMES) {
      uint32_t times = rows - row < MOST_TIMES ? rows - row : MOST_TIMES;
      const LocalTensor<T> from = along ? src[column] : src[row * block];
      cubecore::issue("asc_copy", at, plain(dst[row * width * block + column]), plain(from), times,
                      1, along ? 1 : 0, width, along ? 0 : 1);
    }
  }
}

// Whole rows out of rows that begin at blocks: the elements between go.
template <typename T>
inline void packed(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t rows,
                   uint32_t columns, uint32_t width, const cubecore::Where& at) {
  SetMaskCount(at);
  set_mask(0, columns, at);
  cubecore::issue("vreducev2", at, plain(dst), plain(src), plain(src), rows, 1, 7, width, 0);
  SetMaskNorm(at);
  set_mask(~0ull, ~0ull, at);
}

// Each of `rows` elements becomes a row. Rows that do not end at a block are made with gaps first,
// as many at a time as the workspace holds, then packed.
template <typename T>
inline void broadcast_rows(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t rows,
                           uint32_t columns, const LocalTensor<uint8_t>& given,
                           const cubecore::Where& at) {
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(PrimT<T>);
  const LocalTensor<T> work = given.template ReinterpretCast<T>();
  uint32_t width = (columns + block - 1) / block, blocks = given.GetSize() / ONE_BLK_SIZE;
  bool gaps = rows > 1 && columns % block != 0;
  uint32_t most = blocks / (gaps ? width + 1 : 1) / 8 * 8;
  if (most == 0) {
    char got[24];
    std::snprintf(got, sizeof(got), "%u B", given.GetSize());
    cubecore_refuse("Broadcast's workspace", "hold eight rows", got, &at);
  }
  uint32_t turn = most < rows ? most / block * block : rows;  // packed rows begin at a block
  if (turn == 0) cubecore_refuse("Broadcast's workspace", "hold a block of rows", "less", &at);
  for (uint32_t row = 0; row < rows; row += turn) {
    uint32_t count = rows - row < turn ? rows - row : turn, times = (count + 7) / 8;
    cubecore::issue("asc_brcb", at, plain(work), plain(src[row]), 1, 8, times);
    barrier(PIPE_V, at);
    if (gaps) {
      const LocalTensor<T> made = work[times * 8 * block];
      spread(made, work, count, columns, width, false, at);
      barrier(PIPE_V, at);
      packed(dst[row * columns], made, count, columns, width, at);
    } else {
      spread(dst[row * columns], work, count, columns, width, false, at);
    }
    barrier(PIPE_V, at);
  }
}

template <int32_t dim, int32_t axis, typename T>
void broadcast_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t to[],
                     const uint32_t from[], const LocalTensor<uint8_t>& given,
                     const cubecore::Where& at);

}  // namespace detail

template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                      const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  static_assert(dim == 1 || dim == 2, "Broadcast.dim must be 1 or 2, got another");
  static_assert(axis == 0 || axis == 1, "Broadcast.axis must be 0 or 1, got another");
  static_assert(sizeof(PrimT<T>) <= 4, "Broadcast must take elements of 8 to 32 bits, got others");
  if constexpr (sizeof(PrimT<T>) == 1) {
    detail::broadcast_bytes<dim, axis>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer, at);
  } else if constexpr (dim == 1) {
    (void)srcShape;
    detail::broadcast_rows(dstLocal, srcLocal, 1, dstShape[0], sharedTmpBuffer, at);
  } else if constexpr (axis == 1) {
    detail::broadcast_rows(dstLocal, srcLocal, dstShape[0], dstShape[1], sharedTmpBuffer, at);
  } else {
    constexpr uint32_t block = ONE_BLK_SIZE / sizeof(PrimT<T>);
    if (srcShape[1] % block != 0)
      cubecore_refuse("Broadcast.srcShape[1]", "be a multiple of 32 B", "another", &at);
    detail::spread(dstLocal, srcLocal, dstShape[0], dstShape[1], dstShape[1] / block, true, at);
    detail::barrier(PIPE_V, at);
  }
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim], CUBECORE_AT) {
  Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape,
                                         detail::free_memory(), at);
}
namespace detail {

// Bytes go through half.
template <int32_t dim, int32_t axis, typename T>
inline void broadcast_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const uint32_t to[], const uint32_t from[],
                            const LocalTensor<uint8_t>& given, const cubecore::Where& at) {
  uint32_t few = dim == 1 ? from[0] : from[0] * from[1], all = dim == 1 ? to[0] : to[0] * to[1];
  uint32_t begin = (few + 15) / 16 * 32, end = begin + (all + 15) / 16 * 32;
  uint32_t blocks = (dim == 1 ? to[0] : to[1]) / 16 + 2, least = 16 * blocks * 32;
  const LocalTensor<uint8_t> work = enough(given, end + least);
  if (work.GetSize() < end + least)
    cubecore_refuse("Broadcast.sharedTmpBuffer", "have room for all elements in half",
                    Digits(work.GetSize(), " B").text, &at);
  const LocalTensor<half> source = work.template ReinterpretCast<half>();
  const LocalTensor<half> made = work[begin].template ReinterpretCast<half>();
  Steps(begin / 2, at).fill(source, half(0.0f));  // spreading reads whole blocks
  Steps(few, at).cast(source, src, RoundMode::CAST_NONE);
  Broadcast<half, dim, axis>(made, source, to, from, work[end], at);
  Steps(all, at).cast(dst, made, RoundMode::CAST_RINT);
}

}  // namespace detail

// The name before (page GetBroadCastMaxMinTmpSize).
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                      const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer,
                                         at);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim], CUBECORE_AT) {
  Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape, at);
}

// Global memory by way of the memory that no buffer has. Calls with one value may follow each other
// as they stand; between those with different values the page asks for MTE3_V. The AICs of a mix
// have no UB and leave it to the AIVs.
template <typename T>
inline void Fill(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value,
                 CUBECORE_AT) {
  static_assert(cubecore::is_950 || sizeof(T) == 2 || sizeof(T) == 4,
                "Fill must take elements of 16 or 32 bits on 2201, got others");
  if (size == 0 || (cubecore_launch()->is_cube && cubecore_launch()->task == 2)) return;
  const LocalTensor<T> work = detail::free_memory().template ReinterpretCast<T>();
  constexpr uint64_t lanes = detail::lanes_of<T>(), most = lanes * detail::MOST_TIMES;
  uint64_t held = work.GetSize() / lanes * lanes;
  if (held > most) held = most;
  if (held > size) held = (size + lanes - 1) / lanes * lanes;
  if (held == 0) detail::refuse_memory("Fill, which needs 256 B of UB", 0, 256, at);
  detail::CoreState& state = detail::core_state();
  if (state.fill_bytes == sizeof(T) && state.filled == detail::bits_of(value))
    detail::hand(HardEvent::MTE3_V, at);
  state.fill_bytes = sizeof(T);
  state.filled = detail::bits_of(value);
  Duplicate(work, value, static_cast<int32_t>(held), at);
  detail::hand(HardEvent::V_MTE3, at);
  for (uint64_t done = 0; done < size; done += held) {
    uint64_t count = size - done < held ? size - done : held;
    DataCopyPad(gmWorkspaceAddr[done], work,
                DataCopyExtParams(1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0), at);
  }
}
// Names of public kernels for it; no page has them.
template <typename T>
inline void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, T value = 0, CUBECORE_AT) {
  Fill(gmWorkspaceAddr, size, value, at);
}
template <typename T>
inline void InitGlobalMemory(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value,
                             CUBECORE_AT) {
  Fill(gmWorkspaceAddr, size, value, at);
}

struct SelectWithBytesMaskShapeInfo {
  uint32_t firstAxis = 0;
  uint32_t srcLastAxis = 0;
  uint32_t maskLastAxis = 0;
};

namespace detail {

// Bits of a row: 1 where the mask is 0, or where it is not. Bytes are compared as halves; halfwords
// too, whose casts keep what is not 0.
template <typename U>
inline void mask_bits(const LocalTensor<uint8_t>& bits, const LocalTensor<U>& mask,
                      const LocalTensor<half>& work, uint32_t count, CMPMODE mode,
                      const cubecore::Where& at) {
  int32_t elements = static_cast<int32_t>(count);
  if constexpr (sizeof(U) == 4) {
    auto words = mask.template ReinterpretCast<int32_t>();
    auto flags = work.template ReinterpretCast<int32_t>();
    Duplicate(flags, 0, static_cast<int32_t>((count + 63) / 64 * 64), at);
    barrier(PIPE_V, at);
    Or(flags.template ReinterpretCast<uint16_t>(), words.template ReinterpretCast<uint16_t>(),
       words.template ReinterpretCast<uint16_t>(), elements * 2, at);
    barrier(PIPE_V, at);
    Compares<int32_t, uint8_t>(bits, flags, 0, CMPMODE::EQ, (count + 63) / 64 * 64, at);
    if (mode == CMPMODE::NE) {
      barrier(PIPE_V, at);
      auto halves = bits.template ReinterpretCast<uint16_t>();
      Not(halves, halves, static_cast<int32_t>((count + 63) / 64 * 4), at);
    }
  } else {
    Duplicate(work, half(0.0f), static_cast<int32_t>((count + 127) / 128 * 128), at);
    barrier(PIPE_V, at);
    if constexpr (sizeof(U) == 1)
      Cast(work, mask.template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, count, at);
    else
      Cast(work, mask.template ReinterpretCast<int16_t>(), RoundMode::CAST_RINT, count, at);
    barrier(PIPE_V, at);
    Compares<half, uint8_t>(bits, work, half(0.0f), mode, (count + 127) / 128 * 128, at);
  }
  barrier(PIPE_V, at);
}

template <typename T, typename U>
inline void select_rows(const LocalTensor<T>& dst, const LocalTensor<T>& src, T value,
                        const LocalTensor<U>& mask, const LocalTensor<uint8_t>& offered,
                        CMPMODE mode, const SelectWithBytesMaskShapeInfo& info,
                        const cubecore::Where& at) {
  uint32_t repeats = (info.srcLastAxis + 127) / 128, bytes = repeats * 32 + repeats * 512;
  const LocalTensor<uint8_t> given = required("Select.sharedTmpBuffer", offered, bytes, at);
  const LocalTensor<half> work = given[repeats * 32].template ReinterpretCast<half>();
  for (uint32_t row = 0; row < info.firstAxis; ++row) {
    mask_bits(given, mask[row * info.maskLastAxis], work, info.srcLastAxis, mode, at);
    Select(dst[row * info.srcLastAxis], given, src[row * info.srcLastAxis], value,
           SELMODE::VSEL_TENSOR_SCALAR_MODE, info.srcLastAxis, at);
    barrier(PIPE_V, at);
  }
}

}  // namespace detail

template <typename T, typename U, bool isReuseMask = true>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, T src1,
                   const LocalTensor<U>& mask, const LocalTensor<uint8_t>& sharedTmpBuffer,
                   const SelectWithBytesMaskShapeInfo& info, CUBECORE_AT) {
  detail::select_rows(dst, src0, src1, mask, sharedTmpBuffer, CMPMODE::EQ, info, at);
}
template <typename T, typename U, bool isReuseMask = true>
inline void Select(const LocalTensor<T>& dst, T src0, const LocalTensor<T>& src1,
                   const LocalTensor<U>& mask, const LocalTensor<uint8_t>& sharedTmpBuffer,
                   const SelectWithBytesMaskShapeInfo& info, CUBECORE_AT) {
  detail::select_rows(dst, src1, src0, mask, sharedTmpBuffer, CMPMODE::NE, info, at);
}
// The name before, as public kernels call it.
template <typename T, typename A, typename B, typename U>
inline void SelectWithBytesMask(const LocalTensor<T>& dst, const A& src0, const B& src1,
                                const LocalTensor<U>& mask,
                                const LocalTensor<uint8_t>& sharedTmpBuffer,
                                const SelectWithBytesMaskShapeInfo& info, CUBECORE_AT) {
  Select(dst, src0, src1, mask, sharedTmpBuffer, info, at);
}

}  // namespace AscendC
