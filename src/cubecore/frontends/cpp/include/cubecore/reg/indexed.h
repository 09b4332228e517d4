// Loads and stores of UB where values of registers say, and squeezes whose bytes AR counts. Pages:
// Gather and GatherB (离散搬入), Scatter (离散搬出), Squeeze, StoreUnAlign, ClearSpr, GetSpr.
#pragma once

#include "cubecore/reg/convert.h"

namespace AscendC {
namespace Reg {

namespace detail {
// Which bytes these access is not known while they are recorded.
inline RegisterEntry& by_values(const char* name, const char* type, const volatile void* address,
                                uint32_t variable, const Here& at) {
  cubecore_registers()->by_values = true;
  RegisterEntry& entry = entry_of(name, type, at);
  entry.address = address_of(address);
  entry.variable = variable;
  return entry;
}
// A byte becomes a lane of 16 bits.
template <typename U>
constexpr const char* lane_of() {
  return sizeof(typename U::ActualT) == 1 ? "uint16" : type_of<U>();
}
// The indices of a half of a pair's lanes; those of 32 bits get 64.
template <typename V>
inline RegTensor<uint64_t> half_of_index(const V& index, int n, const Here& at) {
  RegTensor<uint64_t> wide;
  if constexpr (is_pair<V>) {
    wide.value = index.half(n).value;
  } else {
    RegisterEntry& entry = entry_of("UnPack", "uint64", at);
    entry.source = "uint32";
    entry.mode = n == 0 ? "LOWEST" : "HIGHEST";
    read(entry, index);
    made(entry, wide);
  }
  return wide;
}
template <typename U, typename P, typename V>
inline void gather(U& dst, const P* from, const V& index, const MaskReg& mask, const Here& at) {
  if constexpr (is_pair<U>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      gather(dst.half(n), from, half_of_index(index, n, at), of_half, at);
    });
  } else if constexpr (is_pair<V>) {
    gather(dst, from, index.half(0), mask, at);
  } else {
    RegisterEntry& entry = by_values("GatherUB", lane_of<U>(), from, dst.variable, at);
    entry.source = cubecore::Element<P>::name;
    entry.mode = width_of<typename V::ActualT>();
    entry.mask = mask.value;
    read(entry, index);
    made(entry, dst);
  }
}
template <typename U, typename P, typename V>
inline void gather_blocks(U& dst, const P* from, const V& index, const MaskReg& mask,
                          const Here& at) {
  static_assert(sizeof(typename V::ActualT) == 4, "GatherB: the index must be of 32 bits");
  RegisterEntry& entry = by_values("GatherB", type_of<U>(), from, dst.variable, at);
  entry.mask = mask.value;
  read(entry, index);
  made(entry, dst);
}
template <typename U, typename P, typename V>
inline void scatter(P* to, const U& src, const V& index, const MaskReg& mask, const Here& at) {
  if constexpr (is_pair<U>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      scatter(to, src.half(n), half_of_index(index, n, at), of_half, at);
    });
  } else if constexpr (is_pair<V>) {
    scatter(to, src, index.half(0), mask, at);
  } else {
    RegisterEntry& entry = by_values("Scatter", type_of<U>(), to, src.variable, at);
    entry.mode = width_of<typename V::ActualT>();
    entry.mask = mask.value;
    read(entry, src, index);
  }
}

// AR, and what the last squeeze has counted, are values as registers are.
inline void clear_ar(const Here& at) {
  RegisterEntry& entry = entry_of("ClearSpr", "uint8", at);
  cubecore_registers()->ar = entry.results[0] = cubecore::new_register();
}
template <typename U>
inline void squeeze_counted(U& dst, const U& src, const MaskReg& mask, const Here& at) {
  RegisterEntry& entry = entry_of<U>("SqueezeCounted", mask, at);
  read(entry, src);
  dst.value = entry.results[0] = cubecore::new_register();
  cubecore_registers()->counted = entry.results[1] = cubecore::new_register();
}
template <typename U>
inline void store_counted(volatile void* to, const U& src, const UnalignReg& buffer,
                          const Here& at) {
  cubecore::RegisterBlock& block = *cubecore_registers();
  if (block.is_ar_clear && block.ar == cubecore::UNWRITTEN) clear_ar(at);
  RegisterEntry& store = by_values("StoreCounted", type_of<U>(), to, src.variable, at);
  store.scalar = buffer.variable;
  store.sources[0] = src.value, store.sources[1] = block.counted, store.sources[2] = block.ar;
  RegisterEntry& sum = entry_of("AdvanceAR", "uint8", at);  // `store` may lie elsewhere now
  sum.sources[0] = block.ar, sum.sources[1] = block.counted;
  block.ar = sum.results[0] = cubecore::new_register();
}
}  // namespace detail

template <typename T = DefaultType, typename P, typename I = DefaultType, typename U, typename V>
inline void Gather(U& dst, P* from, const V& index, const MaskReg& mask, CUBECORE_AT) {
  detail::gather(dst, from, index, mask, at);
}
template <typename T = DefaultType, typename P, typename I = DefaultType, typename U, typename V>
inline void DataCopyGather(U& dst, P* from, const V& index, const MaskReg& mask, CUBECORE_AT) {
  detail::gather(dst, from, index, mask, at);
}
template <typename T = DefaultType, typename U, typename V, typename P>
inline void GatherB(U& dst, P* from, const V& index, const MaskReg& mask, CUBECORE_AT) {
  detail::gather_blocks(dst, from, index, mask, at);
}
template <typename T = DefaultType, typename U, typename V, typename P>
inline void DataCopyGatherB(U& dst, P* from, const V& index, const MaskReg& mask, CUBECORE_AT) {
  detail::gather_blocks(dst, from, index, mask, at);
}
template <typename T = DefaultType, typename I = DefaultType, typename P, typename U, typename V>
inline void Scatter(P* to, const U& src, const V& index, const MaskReg& mask, CUBECORE_AT) {
  detail::scatter(to, src, index, mask, at);
}
template <typename T = DefaultType, typename I = DefaultType, typename P, typename U, typename V>
inline void DataCopyScatter(P* to, const U& src, const V& index, const MaskReg& mask,
                            CUBECORE_AT) {
  detail::scatter(to, src, index, mask, at);
}

template <typename T = DefaultType, GatherMaskMode store = GatherMaskMode::NO_STORE_REG, typename U>
inline void Squeeze(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  if constexpr (store == GatherMaskMode::STORE_REG) {
    detail::squeeze_counted(dst, src, mask, at);
  } else {
    detail::RegisterEntry& entry = detail::entry_of<U>("Squeeze", mask, at);
    detail::read(entry, src);
    detail::made(entry, dst);
  }
}
template <typename T = DefaultType, GatherMaskMode store = GatherMaskMode::NO_STORE_REG, typename U>
inline void GatherMask(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  Squeeze<T, store>(dst, src, mask, at);
}

// The pointer stays where it is: AR has the distance.
template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U,
          typename P, typename V = typename U::ActualT>
inline void StoreUnAlign(P* to, const U& src, UnalignRegForStore& buffer, CUBECORE_AT) {
  detail::store_counted(to, src, buffer, at);
}
template <typename T = DefaultType, typename P>
inline void StoreUnAlignPost(P* to, UnalignRegForStore& buffer, CUBECORE_AT) {
  detail::stream("StoreUnAlignPost", buffer, to, at).mode = "AR";
}

template <SpecialPurposeReg spr>
inline void ClearSpr(CUBECORE_AT) {
  detail::clear_ar(at);
}

}  // namespace Reg

// Outside of a vector function: AR is 0 at the beginning of the next one.
template <SpecialPurposeReg spr>
inline void ClearSpr(CUBECORE_AT) {
  cubecore_registers()->is_ar_clear = true;
}
template <SpecialPurposeReg spr>
inline int64_t GetSpr(CUBECORE_AT) {
  return cubecore::ask(0, "asc_get_squeeze_status", at);
}
namespace Reg {
using AscendC::GetSpr;
}
}  // namespace AscendC
