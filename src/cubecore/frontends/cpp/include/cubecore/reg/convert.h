// Conversions in registers. Pages: Cast, Truncate, ExpSub, RegLayout, SatMode, RoundMode.
#pragma once

#include "cubecore/reg/complex.h"
#include "cubecore/reg/precision.h"

namespace AscendC {
namespace Reg {

struct CastTrait {
  RegLayout layoutMode = RegLayout::ZERO;
  SatMode satMode = SatMode::UNKNOWN;
  MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
  RoundMode roundMode = RoundMode::CAST_NONE;
};
inline constexpr CastTrait castTrait = {};

namespace detail {
// Lanes of 32 bits stand at even places beside those of a pair's half, in which each has 64.
template <typename U, typename V>
inline void cast(const char* mode, bool merges, U& dst, const V& src, const MaskReg& mask,
                 const Here& at) {
  if constexpr (is_pair<U> && is_pair<V>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      cast(mode, merges, dst.half(n), src.half(n), of_half, at);
    });
  } else if constexpr (is_pair<U>) {
    V apart[2];
    reordered("Interleave", "uint32", apart[0], apart[1], src, src, at);
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      cast(mode, merges, dst.half(n), apart[n], of_half, at);
    });
  } else if constexpr (is_pair<V>) {
    U apart[2], others;
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      cast(mode, merges, apart[n], src.half(n), of_half, at);
    });
    reordered("DeInterleave", "uint32", dst, others, apart[0], apart[1], at);
  } else {
    RegisterEntry& entry = of_types<U, V>("Cast", mode, at);
    entry.mask = mask.value;
    entry.scalar = merges;
    read(entry, src);
    made(entry, dst);
  }
}
}  // namespace detail

template <typename T = DefaultType, typename I = DefaultType, const CastTrait& trait = castTrait,
          typename U, typename V>
inline void Cast(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {
  constexpr bool first = trait.layoutMode == RegLayout::UNKNOWN;
  constexpr bool exact = trait.roundMode == RoundMode::UNKNOWN;
  constexpr const char* mode =
      detail::words_of_cast[first ? 0 : static_cast<int>(trait.layoutMode)]
                           [static_cast<int>(trait.satMode)]
                           [exact ? 0 : static_cast<int>(trait.roundMode)];
  const bool merges = trait.mrgMode == MaskMergeMode::MERGING;  // which there is not: a finding
  detail::cast(mode, merges, dst, src, mask, at);
}
template <typename T = DefaultType, RoundMode rounding = RoundMode::CAST_NONE,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U>
inline void Truncate(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::entry_of<U>("Truncate", mask, at);
  entry.mode = detail::words_of_rounding[static_cast<int>(rounding)];
  entry.scalar = mode == MaskMergeMode::MERGING;
  detail::read(entry, src);
  detail::made(entry, dst);
}
template <typename T = DefaultType, typename I = DefaultType, RegLayout layout = RegLayout::ZERO,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>
inline void ExpSub(U& dst, const V& src0, const V& src1, const MaskReg& mask, CUBECORE_AT) {
  constexpr const char* word = layout == RegLayout::ZERO ? "ZERO" : "ONE";
  detail::RegisterEntry& entry = detail::of_types<U, V>("ExpSub", word, at);
  entry.mask = mask.value;
  detail::read(entry, src0, src1);
  detail::made(entry, dst);
}
template <typename T = DefaultType, typename I = DefaultType, RegLayout layout = RegLayout::ZERO,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>
inline void FusedExpSub(U& dst, const V& src0, const V& src1, const MaskReg& mask, CUBECORE_AT) {
  ExpSub<T, I, layout>(dst, src0, src1, mask, at);
}

// Of each lane of a wider type one half lane, at an even or an odd place; the others are 0.
template <typename T = DefaultType, typename I = DefaultType, typename S,
          RegLayout layout = RegLayout::ZERO, typename U, typename V>
inline void MulsCast(U& dst, const V& src, S value, const MaskReg& mask, CUBECORE_AT) {
  constexpr const char* word = layout == RegLayout::ZERO ? "ZERO" : "ONE";
  detail::RegisterEntry& entry = detail::of_types<U, V>("MulsCast", word, at);
  entry.mask = mask.value;
  entry.scalar = detail::bits_of<typename V::ActualT>(value);
  detail::read(entry, src);
  detail::made(entry, dst);
}

enum class HistogramsBinType { BIN0, BIN1 };
enum class HistogramsType { FREQUENCY, ACCUMULATE };
// Counts are added to what the register holds.
template <typename T = DefaultType, typename I = DefaultType, HistogramsBinType bin,
          HistogramsType type, typename U, typename V>
inline void Histograms(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {
  constexpr const char* words[2][2] = {{"FREQUENCY.BIN0", "FREQUENCY.BIN1"},
                                       {"ACCUMULATE.BIN0", "ACCUMULATE.BIN1"}};
  constexpr const char* word = words[static_cast<int>(type)][static_cast<int>(bin)];
  detail::RegisterEntry& entry = detail::of_types<U, V>("Histograms", word, at);
  entry.mask = mask.value;
  detail::read(entry, src, dst);
  detail::made(entry, dst);
}

namespace detail {
template <typename U>
inline void mask_of_block(MaskReg& dst, const U& src, int32_t block, const Here& at) {
  RegisterEntry& entry = entry_of("MaskGenWithRegTensor", width_of<typename U::ActualT>(), at);
  entry.scalar = static_cast<uint64_t>(block);
  read(entry, src);
  made(entry, dst);
}
}  // namespace detail
template <typename T = DefaultType, int16_t offset, typename U>
inline void MaskGenWithRegTensor(MaskReg& dst, const U& src, CUBECORE_AT) {
  static_assert(0 <= offset && offset < int(8 * sizeof(typename U::ActualT)),
                "MaskGenWithRegTensor: the block must lie in the register: 0 to 15 of b16, 0 to 31 "
                "of b32");
  detail::mask_of_block(dst, src, offset, at);
}

}  // namespace Reg
}  // namespace AscendC
