// How functions on registers become entries. Those that are alike are generated from the declarations
// of register instructions (toolchain/generated/register_headers.py), others are in moves.h,
// convert.h and c_api.h.
#pragma once

#include <cstring>

#include "cubecore/reg/types.h"
#include "cubecore/seam/enums.h"

namespace AscendC {
namespace Reg {


namespace detail {
using cubecore::Here;
using cubecore::RegisterEntry;

template <typename U>
constexpr const char* type_of() {
  return cubecore::Element<typename U::ActualT>::name;
}

// A mask's width decides its lanes, whatever the type.
template <typename T>
constexpr const char* width_of() {
  constexpr uint32_t bits = cubecore::Element<T>::bits;
  return bits <= 8 ? "uint8" : bits == 16 ? "uint16" : bits == 32 ? "uint32" : "uint64";
}

// The bits of a scalar in the type of the lanes.
template <typename T, typename S>
inline uint64_t bits_of(const S& scalar) {
  const T value = static_cast<T>(scalar);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <typename... R>
inline void read(RegisterEntry& entry, const R&... sources) {
  static_assert(!((is_pair<R> || is_complex_pair<R>) || ...),
                "this call does not take pairs of registers");
  uint32_t n = 0;
  ((entry.sources[n++] = sources.value), ...);
}

template <typename... R>
inline void made(RegisterEntry& entry, R&... results) {
  static_assert(!((is_pair<R> || is_complex_pair<R>) || ...),
                "this call does not take pairs of registers");
  uint32_t n = 0;
  ((results.value = entry.results[n++] = cubecore::new_register()), ...);
}

inline RegisterEntry& entry_of(const char* name, const char* type, const Here& at) {
  return cubecore::register_entry(name, type, at);
}

template <typename U>
inline RegisterEntry& entry_of(const char* name, const MaskReg& mask, const Here& at) {
  RegisterEntry& entry = entry_of(name, type_of<U>(), at);
  entry.mask = mask.value;
  return entry;
}

// The half of a pair's lanes, or what both halves have.
template <typename R>
inline decltype(auto) half_of(R& source, int n) {
  if constexpr (is_pair<std::remove_const_t<R>>)
    return source.half(n);
  else
    return (source);
}
// Calls for the lower and the upper lanes of a pair, each with the bits of the mask that are theirs:
// that of a pair has four bits a lane, and that of a register of its lanes eight.
template <typename F>
inline void for_halves(const MaskReg& mask, const Here& at, const F& call) {
  for (int n = 0; n < 2; ++n) {
    MaskReg of_half = mask;
    if (mask.value != 0) {
      RegisterEntry& entry = entry_of("MaskUnPack", "uint8", at);
      entry.mode = n == 0 ? "LOWEST" : "HIGHEST";
      read(entry, mask);
      made(entry, of_half);
    }
    call(n, of_half);
  }
}

template <auto mode>
constexpr bool merges() {
  using M = std::remove_cv_t<decltype(mode)>;
  if constexpr (std::is_same_v<M, MaskMergeMode>)
    return mode == MaskMergeMode::MERGING;
  else if constexpr (std::is_pointer_v<M>)  // to a way to compute, as reg/precision.h has them
    return mode->mrgMode == MaskMergeMode::MERGING;
  else
    return false;
}

// A way to compute without flushing subnormal numbers names itself so, or computes with 0 ulp by the
// inverse root (reg/precision.h).
template <auto mode>
constexpr bool keeps_subnormals() {
  if constexpr (std::is_pointer_v<std::remove_cv_t<decltype(mode)>>)
    return cubecore_keeps_subnormals(mode->algo);
  else
    return false;
}

// Calls on complex numbers, part by part (reg/complex.h).
template <typename U, typename... R>
inline void complex_lanes(const char* name, U& dst, const MaskReg& mask, const Here& at,
                          const R&... sources);
template <typename U, typename... R>
inline void complex_with_scalar(const char* name, U& dst, const MaskReg& mask, const Here& at,
                                typename U::ActualT value, const R&... sources);
template <auto mode, typename U>
constexpr void require_parts() {
  static_assert(!is_complex_pair<U> || !merges<mode>(),
                "complex numbers must be zeroed where the mask is 0, got MERGING");
  static_assert(is_complex_pair<U> || !cubecore::is_complex<typename U::ActualT>,
                "a call on complex numbers must take pairs of registers (RegTraitNumTwo); those "
                "in one register are only moved");
}

// A merging instruction reads the old destination, too.
template <auto mode, typename U, typename... R>
inline void lanes(const char* name, U& dst, const MaskReg& mask, const Here& at,
                  const R&... sources) {
  require_parts<mode, U>();
  if constexpr (is_complex_pair<U>) {
    complex_lanes(name, dst, mask, at, sources...);
  } else if constexpr (is_pair<U>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      lanes<mode>(name, dst.half(n), of_half, at, half_of(sources, n)...);
    });
  } else {
    RegisterEntry& entry = entry_of<U>(name, mask, at);
    if constexpr (merges<mode>()) {
      entry.mode = "MERGING";
      read(entry, sources..., dst);
    } else {
      if constexpr (keeps_subnormals<mode>()) entry.mode = "SUBNORMAL";
      read(entry, sources...);
    }
    made(entry, dst);
  }
}

template <auto mode, typename U, typename S, typename... R>
inline void with_scalar(const char* name, U& dst, const MaskReg& mask, const Here& at,
                        const S& value, const R&... sources) {
  require_parts<mode, U>();
  if constexpr (is_complex_pair<U>) {
    complex_with_scalar(name, dst, mask, at, typename U::ActualT(value), sources...);
  } else if constexpr (is_pair<U>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      with_scalar<mode>(name, dst.half(n), of_half, at, value, half_of(sources, n)...);
    });
  } else {
    RegisterEntry& entry = entry_of<U>(name, mask, at);
    entry.scalar = bits_of<typename U::ActualT>(value);
    if constexpr (merges<mode>()) {
      entry.mode = "MERGING";
      read(entry, sources..., dst);
    } else {
      read(entry, sources...);
    }
    made(entry, dst);
  }
}

// Two registers as others in the order of their elements, or parted in even and odd ones.
template <typename U, typename V>
inline void reordered(const char* name, const char* type, U& dst0, U& dst1, const V& src0,
                      const V& src1, const Here& at) {
  RegisterEntry& entry = entry_of(name, type, at);
  read(entry, src0, src1);
  made(entry, dst0, dst1);
}

inline int64_t address_of(const volatile void* pointer) {
  return reinterpret_cast<int64_t>(pointer);
}

}  // namespace detail

template <typename T>
RegTensor<uint32_t>& RegTensor<T, RegTraitNumTwo>::Words::operator[](int n) {
  join();
  RegTensor<T>& low = pair->halves_[0];
  RegTensor<T>& high = pair->halves_[1];
  if (of[0] != low.value || of[1] != high.value) {
    detail::reordered("DeInterleave", "uint32", word[0], word[1], low, high, *cubecore_last());
    for (int k = 0; k < 2; ++k) of[k] = pair->halves_[k].value, parted[k] = word[k].value;
  }
  return word[n];
}
// Takes words that were written since they were parted.
template <typename T>
void RegTensor<T, RegTraitNumTwo>::Words::join() {
  if (word[0].value == parted[0] && word[1].value == parted[1]) return;
  if (of[0] == 0) return;
  RegTensor<T>& low = pair->halves_[0];
  RegTensor<T>& high = pair->halves_[1];
  detail::reordered("Interleave", "uint32", low, high, word[0], word[1], *cubecore_last());
  for (int k = 0; k < 2; ++k) of[k] = pair->halves_[k].value, parted[k] = word[k].value;
}
}  // namespace Reg
}  // namespace AscendC

template <typename T>
using vector_of = AscendC::Reg::RegTensor<T>;
