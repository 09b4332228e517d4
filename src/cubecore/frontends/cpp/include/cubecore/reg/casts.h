// Conversions of tensors that 2201 has no instruction for: vector functions, as on the chip. Page
// Cast.
#pragma once

#include <string_view>

#include "cubecore/reg/tensors.h"

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

// As many lanes as the wider type has, of 4-bit types two a byte: the narrow side has one place in
// 32 bits for two of them, or one in each lane of the wide side.
template <typename T, typename U>
void cast_by_registers(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode roundMode,
                       uint32_t count, const cubecore::Here& at) {
  using To = PrimT<T>;
  using From = PrimT<U>;
  constexpr uint32_t to_bits = cubecore::Element<To>::bits;
  constexpr uint32_t from_bits = cubecore::Element<From>::bits;
  using Wide = std::conditional_t<(to_bits > from_bits), To, From>;
  constexpr bool in_pairs = to_bits < 8 || from_bits < 8;
  constexpr uint32_t group = in_pairs ? 32 : cubecore::Element<Wide>::bits;
  constexpr uint32_t to_byte = to_bits < 8 ? 2 : 1, from_byte = from_bits < 8 ? 2 : 1;
  constexpr const char* load = from_bits >= cubecore::Element<Wide>::bits ? "NORM"
                               : group == 32 && from_bits <= 8            ? "UNPACK4_B8"
                               : group == 16                              ? "UNPACK_B8"
                               : group == 32                              ? "UNPACK_B16"
                                                                          : "UNPACK_B32";
  constexpr const char* store = to_bits >= cubecore::Element<Wide>::bits ? "NORM"
                                : group == 32 && to_bits <= 8            ? "PACK4_B32"
                                : group == 16                            ? "PACK_B16"
                                : group == 32                            ? "PACK_B32"
                                                                         : "PACK_B64";
  constexpr int saturation = to_bits <= from_bits ? 1 : 2;  // SAT, or what the pair has
  const char* mode = Reg::detail::words_of_cast[0][saturation][static_cast<int>(roundMode)];
  if (in_pairs && count % 2 != 0) {
    char text[16];
    snprintf(text, sizeof text, "%u", count);
    cubecore_refuse("Cast: count of a type of 4 bits", "be even", text, &at);
  }
  by_registers<Wide>(count, at, [&](uint32_t first, const Reg::MaskReg& mask) {
    Reg::RegTensor<From> given;
    Reg::RegTensor<To> made;
    Reg::detail::load(load, given, lanes_of(src, first / from_byte), at);
    Reg::detail::cast(mode, false, made, given, mask, at);
    if constexpr (in_pairs && to_bits < 8) {
      uint32_t pairs = (count - first) / 2;
      const Reg::MaskReg of_pairs = Reg::UpdateMask<uint32_t>(pairs, at);
      Reg::detail::store(store, lanes_of(dst, first / to_byte), made, of_pairs, at);
    } else {
      Reg::detail::store(store, lanes_of(dst, first / to_byte), made, mask, at);
    }
  });
}

}  // namespace detail
}  // namespace AscendC
