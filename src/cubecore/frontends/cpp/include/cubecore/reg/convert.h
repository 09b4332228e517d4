// Conversions in registers. Pages: Cast, Truncate, ExpSub, RegLayout, SatMode, RoundMode.
#pragma once

#include "cubecore/reg/moves.h"

namespace AscendC {
namespace Reg {

struct CastTrait {
  RegLayout layoutMode = RegLayout::ZERO;
  SatMode satMode = SatMode::UNKNOWN;
  MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
  RoundMode roundMode = RoundMode::CAST_NONE;
};
inline constexpr CastTrait castTrait = {};

template <typename T = DefaultType, typename I = DefaultType, const CastTrait& trait = castTrait,
          typename U, typename V>
inline void Cast(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {
  constexpr const char* mode =
      detail::words_of_cast[static_cast<int>(trait.layoutMode)][static_cast<int>(trait.satMode)]
                           [static_cast<int>(trait.roundMode)];
  detail::RegisterEntry& entry = detail::of_types<U, V>("Cast", mode, at);
  entry.mask = mask.value;
  entry.scalar = trait.mrgMode == MaskMergeMode::MERGING;  // which there is not: it is a finding
  detail::read(entry, src);
  detail::made(entry, dst);
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

}  // namespace Reg
}  // namespace AscendC
