// Conversions of tensors that 2201 has no instruction for: vector functions, as on the chip. Page
// Cast.
#pragma once

#include <string_view>

#include "cubecore/reg/repeats.h"

namespace AscendC {
namespace detail {

// Half of int32 is made with the scale of SetDeqScale.
template <typename T, typename U>
constexpr bool casts_by_registers() {
  const std::string_view from = cubecore::Element<U>::name, to = cubecore::Element<T>::name;
  for (const auto& pair : Reg::detail::casts_of_memory)
    if (from == pair[0] && to == pair[1]) return false;
  return !(std::is_same_v<T, half> && std::is_same_v<U, int32_t>);
}

// A conversion of a register's lanes: as many as the wider type has, of 4-bit types two a byte. The
// narrow side has one place in 32 bits for two of them, or one in each lane of the wide side.
template <typename To, typename From>
struct CastOfLanes {
  static constexpr uint32_t to_bits = cubecore::Element<To>::bits;
  static constexpr uint32_t from_bits = cubecore::Element<From>::bits;
  using Wide = std::conditional_t<(to_bits > from_bits), To, From>;
  static constexpr bool in_pairs = to_bits < 8 || from_bits < 8;
  static constexpr uint32_t group = in_pairs ? 32 : cubecore::Element<Wide>::bits;
  static constexpr const char* load = from_bits >= cubecore::Element<Wide>::bits ? "NORM"
                                      : group == 32 && from_bits <= 8            ? "UNPACK4_B8"
                                      : group == 16                              ? "UNPACK_B8"
                                      : group == 32                              ? "UNPACK_B16"
                                                                                 : "UNPACK_B32";
  static constexpr const char* store = to_bits >= cubecore::Element<Wide>::bits ? "NORM"
                                       : group == 32 && to_bits <= 8            ? "PACK4_B32"
                                       : group == 16                            ? "PACK_B16"
                                       : group == 32                            ? "PACK_B32"
                                                                                : "PACK_B64";

  // `stored` has the lanes to store; of two in 32 bits both or none.
  static void convert(To* to, From* from, RoundMode rounding, const Reg::MaskReg& mask,
                      const Reg::MaskReg& stored, const cubecore::Here& at) {
    constexpr int saturation = to_bits <= from_bits ? 1 : 2;  // SAT, or what the pair has
    const char* mode = Reg::detail::words_of_cast[0][saturation][static_cast<int>(rounding)];
    Reg::RegTensor<From> given;
    Reg::RegTensor<To> made;
    Reg::detail::load(load, given, from, at);
    Reg::detail::cast(mode, false, made, given, mask, at);
    Reg::detail::store(store, to, made, stored, at);
  }
};

inline void require_pairs(const char* what, uint64_t got, const cubecore::Here& at) {
  if (got % 2 == 0) return;
  char text[24];
  snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(got));
  cubecore_refuse(what, "be even", text, &at);
}

template <typename T, typename U>
void cast_by_registers(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode roundMode,
                       uint32_t count, const cubecore::Here& at) {
  using Lanes = CastOfLanes<PrimT<T>, PrimT<U>>;
  constexpr uint32_t to_byte = Lanes::to_bits < 8 ? 2 : 1, from_byte = Lanes::from_bits < 8 ? 2 : 1;
  if constexpr (Lanes::in_pairs) require_pairs("Cast: count of a type of 4 bits", count, at);
  by_registers<typename Lanes::Wide>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    auto* to = lanes_of(dst, first / to_byte);
    auto* from = lanes_of(src, first / from_byte);
    if constexpr (to_byte == 2) {
      uint32_t pairs = (count - first) / 2;
      const Reg::MaskReg of_pairs = Reg::UpdateMask<uint32_t>(pairs, at);
      Lanes::convert(to, from, roundMode, mask, of_pairs, at);
    } else {
      Lanes::convert(to, from, roundMode, mask, mask, at);
    }
  });
}

// The same by repeats: the mask is of the wider type's lanes.
template <typename T, typename U>
void cast_by_repeats(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode roundMode,
                     uint32_t times, const UnaryRepeatParams& p, const cubecore::Here& at) {
  using Lanes = CastOfLanes<PrimT<T>, PrimT<U>>;
  require_blocks_in_row("Cast", p.dstBlkStride, p.srcBlkStride, at);
  if constexpr (Lanes::in_pairs) {
    const CoreState& state = core_state();
    const uint64_t odd = 0xAAAAAAAAAAAAAAAAull, low = state.mask_low, high = state.mask_high;
    if (state.counts)
      require_pairs("Cast: count of a type of 4 bits", low, at);
    else if ((low & odd) >> 1 != (low & ~odd) || (high & odd) >> 1 != (high & ~odd))
      cubecore_refuse("Cast: mask of a type of 4 bits", "take both elements of a byte or none",
                      "one of two", &at);
  }
  by_repeats<typename Lanes::Wide>(times, at, [&](uint32_t repeat, const Reg::MaskReg& mask) {
    Lanes::convert(lanes_of_repeat(dst, repeat, p.dstRepStride),
                   lanes_of_repeat(src, repeat, p.srcRepStride), roundMode, mask, mask, at);
  });
}

}  // namespace detail
}  // namespace AscendC
