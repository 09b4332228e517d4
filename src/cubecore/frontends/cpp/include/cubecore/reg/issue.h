// How functions on registers become entries, by their form. The functions themselves are generated
// from the declarations of register instructions (toolchain/generated/register_headers.py).
#pragma once

#include <cstring>

#include "cubecore/reg/types.h"

namespace AscendC {
namespace Reg {
namespace detail {

template <typename U>
constexpr const char* type_of() {
  return cubecore::Element<typename U::ActualT>::name;
}

// A mask's width decides its lanes, whatever the type.
template <typename T>
constexpr const char* width_of() {
  return sizeof(T) == 1 ? "uint8" : sizeof(T) == 2 ? "uint16" : sizeof(T) == 4 ? "uint32" : "uint64";
}

// The bits of a scalar in the type of the lanes.
template <typename T, typename S>
inline uint64_t bits_of(const S& scalar) {
  const T value = static_cast<T>(scalar);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <typename R>
inline void made(R& dst, cubecore::RegisterEntry& entry) {
  dst.value = entry.results[0] = cubecore::new_register();
}

template <typename U>
inline cubecore::RegisterEntry& of(const char* name, const MaskReg& mask, const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = cubecore::register_entry(name, type_of<U>(), at);
  entry.mask = mask.value;
  return entry;
}

template <typename U>
inline void unary(const char* name, U& dst, const U& src, const MaskReg& mask, const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = of<U>(name, mask, at);
  entry.sources[0] = src.value;
  made(dst, entry);
}

template <typename U>
inline void binary(const char* name, U& dst, const U& src0, const U& src1, const MaskReg& mask,
                   const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = of<U>(name, mask, at);
  entry.sources[0] = src0.value;
  entry.sources[1] = src1.value;
  made(dst, entry);
}

template <typename U, typename S>
inline void scalar(const char* name, U& dst, const U& src, const S& value, const MaskReg& mask,
                   const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = of<U>(name, mask, at);
  entry.sources[0] = src.value;
  entry.scalar = bits_of<typename U::ActualT>(value);
  made(dst, entry);
}

inline int64_t address_of(const void* pointer) { return reinterpret_cast<int64_t>(pointer); }

template <typename U>
inline void load(const char* mode, U& dst, const void* from, const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = cubecore::register_entry("LoadAlign", type_of<U>(), at);
  entry.mode = mode;
  entry.address = address_of(from);
  entry.variable = dst.variable;
  made(dst, entry);
}

template <typename U>
inline void store(const char* mode, void* to, const U& src, const MaskReg& mask, const cubecore::Here& at) {
  cubecore::RegisterEntry& entry = of<U>("StoreAlign", mask, at);
  entry.mode = mode;
  entry.address = address_of(to);
  entry.variable = src.variable;
  entry.sources[0] = src.value;
}

}  // namespace detail

// The first lanes of a count, which is as much smaller behind the call. Page: UpdateMask.
template <typename T, const RegTrait& trait = RegTraitNumOne>
inline MaskReg UpdateMask(uint32_t& count, CUBECORE_AT) {
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(T);
  cubecore::RegisterEntry& entry = cubecore::register_entry("UpdateMask", detail::width_of<T>(), at);
  entry.scalar = count < lanes ? count : lanes;
  count -= count < lanes ? count : lanes;
  MaskReg mask;
  detail::made(mask, entry);
  return mask;
}

}  // namespace Reg
}  // namespace AscendC

inline vector_bool asc_update_mask_b8(uint32_t& count, CUBECORE_AT) {
  return AscendC::Reg::UpdateMask<uint8_t>(count, at);
}
inline vector_bool asc_update_mask_b16(uint32_t& count, CUBECORE_AT) {
  return AscendC::Reg::UpdateMask<uint16_t>(count, at);
}
inline vector_bool asc_update_mask_b32(uint32_t& count, CUBECORE_AT) {
  return AscendC::Reg::UpdateMask<uint32_t>(count, at);
}
