// Loads, stores, masks and moves of registers. Pages: LoadAlign, LoadUnAlign, Load, StoreAlign,
// StoreUnAlign, Store, CreateMask, UpdateMask, Duplicate, Move, Interleave, LocalMemBar, AddrReg ...
#pragma once

#include "cubecore_registers.h"

namespace AscendC {
enum class SpecialPurposeReg { AR };
namespace Reg {
using AscendC::SpecialPurposeReg;

enum class DataCopyMode { NORMAL, DATA_BLOCK_COPY };
enum class MaskDist { DIST_NORM, DIST_US, DIST_DS, DIST_PACK };
// The accesses that a LocalMemBar orders: VEC_ are loads and stores of registers, SCALAR_ those of the
// scalar unit. LocalMemBar<VEC_STORE, VEC_LOAD>() lets later loads wait for earlier stores.
enum class MemType { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class HighLowPart { LOWEST, HIGHEST };
enum class GatherMaskMode { NO_STORE_REG, STORE_REG };
enum class IndexOrder { INCREASE_ORDER, DECREASE_ORDER };
using AscendC::ReduceType;
enum class PairReduce { SUM };

namespace detail {

template <LoadDist dist>
constexpr const char* word_of() {
  return words_of_LoadDist[static_cast<int>(dist)];
}
template <StoreDist dist>
constexpr const char* word_of() {
  return words_of_StoreDist[static_cast<int>(dist)];
}
template <HighLowPart part>
constexpr const char* half() {
  return part == HighLowPart::LOWEST ? "LOWEST" : "HIGHEST";
}

// Of complex numbers (reg/complex.h).
template <typename U>
inline RegisterEntry& load_parts(const char* mode, U& dst, const volatile void* from,
                                 const Here& at);
template <typename U>
inline RegisterEntry& store_parts(const char* mode, volatile void* to, const U& src,
                                  const MaskReg& mask, const Here& at);

template <typename U>
inline RegisterEntry& load(const char* mode, U& dst, const volatile void* from, const Here& at) {
  if constexpr (is_complex_pair<U>) {
    return load_parts(mode, dst, from, at);
  } else if constexpr (is_pair<U>) {
    const auto bytes = static_cast<const volatile char*>(from);
    load(mode, dst.half(0), bytes, at);
    return load(mode, dst.half(1), bytes + VECTOR_REG_WIDTH, at);
  } else {
    RegisterEntry& entry = entry_of("LoadAlign", type_of<U>(), at);
    entry.mode = mode;
    entry.address = address_of(from);
    entry.variable = dst.variable;
    made(entry, dst);
    return entry;
  }
}

template <typename U>
inline RegisterEntry& store(const char* mode, volatile void* to, const U& src, const MaskReg& mask,
                  const Here& at) {
  if constexpr (is_complex_pair<U>) {
    return store_parts(mode, to, src, mask, at);
  } else if constexpr (is_pair<U>) {
    RegisterEntry* last = nullptr;
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      auto bytes = static_cast<volatile char*>(to) + n * static_cast<int>(VECTOR_REG_WIDTH);
      last = &store(mode, bytes, src.half(n), of_half, at);
    });
    return *last;
  } else {
    RegisterEntry& entry = entry_of<U>("StoreAlign", mask, at);
    entry.mode = mode;
    entry.address = address_of(to);
    entry.variable = src.variable;
    read(entry, src);
    return entry;
  }
}

// A pair's second register is told of by the scalar, which no load or store has.
template <typename U>
inline void load_pair(const char* mode, U& dst0, U& dst1, const volatile void* from,
                      const Here& at) {
  RegisterEntry& entry = entry_of("LoadPair", type_of<U>(), at);
  entry.mode = mode;
  entry.address = address_of(from);
  entry.variable = dst0.variable;
  entry.scalar = dst1.variable;
  made(entry, dst0, dst1);
}
template <typename U>
inline void store_pair(const char* mode, volatile void* to, const U& src0, const U& src1,
                       const Here& at) {
  RegisterEntry& entry = entry_of("StorePair", type_of<U>(), at);
  entry.mode = mode;
  entry.address = address_of(to);
  entry.variable = src0.variable;
  entry.scalar = src1.variable;
  read(entry, src0, src1);
}

// A step of an unaligned stream that moves no lanes; the moves tell their buffer by the scalar.
inline RegisterEntry& stream(const char* name, const UnalignReg& buffer,
                             const volatile void* address, const Here& at) {
  RegisterEntry& entry = entry_of(name, "uint8", at);
  entry.address = address_of(address);
  entry.scalar = entry.variable = buffer.variable;
  return entry;
}
template <typename U>
inline void load_unaligned(U& dst, const UnalignReg& buffer, const volatile void* from,
                           const Here& at) {
  if constexpr (is_pair<U>) {
    load_unaligned(dst.half(0), buffer, from, at);
    load_unaligned(dst.half(1), buffer, static_cast<const volatile char*>(from) + VECTOR_REG_WIDTH,
                   at);
  } else {
    load("UNALIGNED", dst, from, at).scalar = buffer.variable;
  }
}
template <typename U>
inline void store_unaligned(volatile void* to, const U& src, const UnalignReg& buffer,
                            const MaskReg& mask, const Here& at) {
  store("UNALIGNED", to, src, mask, at).scalar = buffer.variable;
}


// Blocks of 32 bytes, `stride` blocks apart.
inline const char* const BLOCK_WORDS[] = {"BLOCK0", "BLOCK1", "BLOCK2", "BLOCK3",
                                          "BLOCK4", "BLOCK5", "BLOCK6", "BLOCK7"};
template <typename U>
inline void load_blocks(U& dst, const volatile void* from, uint32_t stride, const MaskReg& mask,
                        const Here& at) {
  for (uint32_t block = 0; block < 8; ++block) {
    RegisterEntry& entry = entry_of<U>("LoadBlock", mask, at);
    entry.mode = BLOCK_WORDS[block];
    entry.address = address_of(from) + 32ll * stride * block;
    entry.variable = dst.variable;
    read(entry, dst);
    made(entry, dst);
  }
}
template <typename U>
inline void store_blocks(volatile void* to, const U& src, uint32_t stride, const MaskReg& mask,
                         const Here& at) {
  for (uint32_t block = 0; block < 8; ++block) {
    RegisterEntry& entry = entry_of<U>("StoreBlock", mask, at);
    entry.mode = BLOCK_WORDS[block];
    entry.address = address_of(to) + 32ll * stride * block;
    entry.variable = src.variable;
    read(entry, src);
  }
}

// The lanes of a pair are twice as many, in as many bits.
template <typename T, const RegTrait& trait>
constexpr const char* mask_width() {
  if (trait.REG_NUM == 1) return width_of<T>();
  return sizeof(T) == 4 ? "uint16" : "uint32";
}
// The first lanes of a register, as many as `count`.
template <typename T>
inline MaskReg first(uint32_t count, const Here& at) {
  RegisterEntry& entry = entry_of("UpdateMask", width_of<T>(), at);
  entry.scalar = count;
  MaskReg mask;
  made(entry, mask);
  return mask;
}

template <typename U, typename V>
inline RegisterEntry& of_types(const char* name, const char* mode, const Here& at) {
  RegisterEntry& entry = entry_of(name, type_of<U>(), at);
  entry.source = type_of<V>();
  entry.mode = mode;
  return entry;
}

}  // namespace detail

// --- masks

template <typename T, MaskPattern pattern = MaskPattern::ALL,
          const RegTrait& trait = RegTraitNumOne>
inline MaskReg CreateMask(CUBECORE_AT) {
  auto& entry = detail::entry_of("CreateMask", detail::mask_width<T, trait>(), at);
  entry.mode = detail::words_of_MaskPattern[static_cast<int>(pattern)];
  MaskReg mask;
  detail::made(entry, mask);
  return mask;
}

// The first lanes of a count, which is as much smaller behind the call.
template <typename T, const RegTrait& trait = RegTraitNumOne>
inline MaskReg UpdateMask(uint32_t& count, CUBECORE_AT) {
  constexpr uint32_t lanes = trait.REG_NUM * VECTOR_REG_WIDTH / sizeof(T);
  const uint32_t taken = count < lanes ? count : lanes;
  count -= taken;
  detail::RegisterEntry& entry = detail::entry_of("UpdateMask", detail::mask_width<T, trait>(), at);
  entry.scalar = taken;
  MaskReg mask;
  detail::made(entry, mask);
  return mask;
}

// The mask of SetVectorMask, a bit a lane.
template <typename T>
inline MaskReg MoveMask(CUBECORE_AT) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4,
                "MoveMask: the type must be of 16 or 32 bits, as the pages have it");
  MaskReg mask;
  detail::made(detail::entry_of("MoveMask", detail::width_of<T>(), at), mask);
  return mask;
}

#define CUBECORE_MASKS(NAME, OTHER_NAME)                                                      \
  inline void NAME(MaskReg& dst, const MaskReg& src0, const MaskReg& src1, const MaskReg& mask, \
                   CUBECORE_AT) {                                                             \
    auto& entry = detail::entry_of("Mask" #NAME, "uint8", at);                                \
    entry.mask = mask.value;                                                                  \
    detail::read(entry, src0, src1);                                                          \
    detail::made(entry, dst);                                                                 \
  }                                                                                           \
  inline void OTHER_NAME(MaskReg& dst, const MaskReg& src0, const MaskReg& src1,              \
                         const MaskReg& mask, CUBECORE_AT) {                                  \
    NAME(dst, src0, src1, mask, at);                                                          \
  }
CUBECORE_MASKS(And, MaskAnd)
CUBECORE_MASKS(Or, MaskOr)
CUBECORE_MASKS(Xor, MaskXor)
CUBECORE_MASKS(Select, MaskSel)
#undef CUBECORE_MASKS
inline void Not(MaskReg& dst, const MaskReg& src, const MaskReg& mask, CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskNot", "uint8", at);
  entry.mask = mask.value;
  detail::read(entry, src);
  detail::made(entry, dst);
}
inline void MaskNot(MaskReg& dst, const MaskReg& src, const MaskReg& mask, CUBECORE_AT) {
  Not(dst, src, mask, at);
}
inline void Move(MaskReg& dst, const MaskReg& src) { dst = src; }
inline void Move(MaskReg& dst, const MaskReg& src, const MaskReg& mask, CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskMove", "uint8", at);
  entry.mask = mask.value;
  detail::read(entry, src);
  detail::made(entry, dst);
}
inline void MaskMov(MaskReg& dst, const MaskReg& src) { dst = src; }
inline void MaskMov(MaskReg& dst, const MaskReg& src, const MaskReg& mask, CUBECORE_AT) {
  Move(dst, src, mask, at);
}
template <typename T>
inline void Interleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                       CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskInterleave", detail::width_of<T>(), at);
  detail::read(entry, src0, src1);
  detail::made(entry, dst0, dst1);
}
template <typename T>
inline void DeInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                         CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskDeInterleave", detail::width_of<T>(), at);
  detail::read(entry, src0, src1);
  detail::made(entry, dst0, dst1);
}
template <typename T>
inline void MaskInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0, const MaskReg& src1,
                           CUBECORE_AT) {
  Interleave<T>(dst0, dst1, src0, src1, at);
}
template <typename T>
inline void MaskDeInterleave(MaskReg& dst0, MaskReg& dst1, const MaskReg& src0,
                             const MaskReg& src1, CUBECORE_AT) {
  DeInterleave<T>(dst0, dst1, src0, src1, at);
}
template <HighLowPart part = HighLowPart::LOWEST>
inline void Pack(MaskReg& dst, const MaskReg& src, CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskPack", "uint8", at);
  entry.mode = detail::half<part>();
  detail::read(entry, src);
  detail::made(entry, dst);
}
template <HighLowPart part = HighLowPart::LOWEST>
inline void UnPack(MaskReg& dst, const MaskReg& src, CUBECORE_AT) {
  auto& entry = detail::entry_of("MaskUnPack", "uint8", at);
  entry.mode = detail::half<part>();
  detail::read(entry, src);
  detail::made(entry, dst);
}

template <HighLowPart part = HighLowPart::LOWEST>
inline void MaskPack(MaskReg& dst, const MaskReg& src, CUBECORE_AT) {
  Pack<part>(dst, src, at);
}
template <HighLowPart part = HighLowPart::LOWEST>
inline void MaskUnPack(MaskReg& dst, const MaskReg& src, CUBECORE_AT) {
  UnPack<part>(dst, src, at);
}

namespace detail {
// The masks of a pair's halves, with four bits a lane.
template <typename F>
inline void packed(MaskReg& dst, const MaskReg& mask, const Here& at, const F& call) {
  MaskReg halves[2];
  for_halves(mask, at, [&](int n, const MaskReg& of_half) {
    MaskReg half;
    call(n, half, of_half);
    RegisterEntry& entry = entry_of("MaskPack", "uint8", at);
    entry.mode = n == 0 ? "LOWEST" : "HIGHEST";
    read(entry, half);
    made(entry, halves[n]);
  });
  RegisterEntry& entry = entry_of("MaskOr", "uint8", at);
  read(entry, halves[0], halves[1]);
  made(entry, dst);
}
constexpr const char* words_of_CMPMODE[] = {"LT", "GT", "EQ", "LE", "GE", "NE"};
template <typename U>
inline void compare(const char* mode, MaskReg& dst, const U& a, const U& b, const MaskReg& mask,
                    const Here& at) {
  if constexpr (is_pair<U>) {
    packed(dst, mask, at, [&](int n, MaskReg& half, const MaskReg& of_half) {
      compare(mode, half, a.half(n), b.half(n), of_half, at);
    });
  } else {
    RegisterEntry& entry = entry_of<U>("Compare", mask, at);
    entry.mode = mode;
    read(entry, a, b);
    made(entry, dst);
  }
}
template <typename U, typename S>
inline void compare_scalar(const char* mode, MaskReg& dst, const U& a, const S& value,
                           const MaskReg& mask, const Here& at) {
  if constexpr (is_pair<U>) {
    packed(dst, mask, at, [&](int n, MaskReg& half, const MaskReg& of_half) {
      compare_scalar(mode, half, a.half(n), value, of_half, at);
    });
  } else {
    RegisterEntry& entry = entry_of<U>("Compares", mask, at);
    entry.mode = mode;
    entry.scalar = bits_of<typename U::ActualT>(value);
    read(entry, a);
    made(entry, dst);
  }
}
}  // namespace detail

template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U>
inline void Compare(MaskReg& dst, const U& src0, const U& src1, const MaskReg& mask, CUBECORE_AT) {
  detail::compare(detail::words_of_CMPMODE[static_cast<int>(mode)], dst, src0, src1, mask, at);
}
template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S>
inline void Compares(MaskReg& dst, const U& src, S value, const MaskReg& mask, CUBECORE_AT) {
  detail::compare_scalar(detail::words_of_CMPMODE[static_cast<int>(mode)], dst, src, value, mask,
                         at);
}
template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S>
inline void CompareScalar(MaskReg& dst, const U& src, S value, const MaskReg& mask, CUBECORE_AT) {
  Compares<T, mode>(dst, src, value, mask, at);
}
template <typename T = DefaultType, typename U>
inline void Select(U& dst, const U& src0, const U& src1, const MaskReg& mask, CUBECORE_AT) {
  detail::lanes<MaskMergeMode::ZEROING>("Select", dst, mask, at, src0, src1);
}

// --- aligned loads and stores

template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P>
inline void LoadAlign(U& dst, const P* from, CUBECORE_AT) {
  detail::load(detail::word_of<dist>(), dst, from, at);
}
template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P>
inline void LoadAlign(U& dst, const P* from, AddrReg offset, CUBECORE_AT) {
  detail::load(detail::word_of<dist>(), dst, from + offset, at);
}
template <typename T = DefaultType, PostLiteral post, LoadDist dist = LoadDist::DIST_NORM,
          typename U, typename P>
inline void LoadAlign(U& dst, P*& from, int32_t stride, CUBECORE_AT) {
  detail::load(detail::word_of<dist>(), dst, from, at);
  if (post == PostLiteral::POST_MODE_UPDATE) from += stride;
}
template <typename T = DefaultType, LoadDist dist, typename U, typename P>
inline void LoadAlign(U& dst0, U& dst1, const P* from, CUBECORE_AT) {
  detail::load_pair(detail::word_of<dist>(), dst0, dst1, from, at);
}
template <typename T = DefaultType, LoadDist dist, typename U, typename P>
inline void LoadAlign(U& dst0, U& dst1, const P* from, AddrReg offset, CUBECORE_AT) {
  detail::load_pair(detail::word_of<dist>(), dst0, dst1, from + offset, at);
}
template <typename T = DefaultType, PostLiteral post, LoadDist dist, typename U, typename P>
inline void LoadAlign(U& dst0, U& dst1, P*& from, int32_t stride, CUBECORE_AT) {
  LoadAlign<T, dist>(dst0, dst1, static_cast<const P*>(from), at);
  if (post == PostLiteral::POST_MODE_UPDATE) from += stride;
}
template <typename T = DefaultType, DataCopyMode mode, typename U, typename P>
inline void LoadAlign(U& dst, const P* from, uint32_t blockStride, const MaskReg& mask,
                      CUBECORE_AT) {
  detail::load_blocks(dst, from, blockStride, mask, at);
}
template <typename T = DefaultType, DataCopyMode mode, PostLiteral post, typename U, typename P>
inline void LoadAlign(U& dst, P*& from, uint32_t blockStride, uint32_t repeatStride,
                      const MaskReg& mask, CUBECORE_AT) {
  const int64_t step = 32ll * repeatStride / static_cast<int64_t>(sizeof(P));
  const bool updates = post == PostLiteral::POST_MODE_UPDATE;
  detail::load_blocks(dst, updates ? from : from + step, blockStride, mask, at);
  if (updates) from += step;
}

template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P>
inline void StoreAlign(P* to, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::store(detail::word_of<dist>(), to, src, mask, at);
}
template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P>
inline void StoreAlign(P* to, const U& src, AddrReg offset, const MaskReg& mask, CUBECORE_AT) {
  detail::store(detail::word_of<dist>(), to + offset, src, mask, at);
}
template <typename T = DefaultType, PostLiteral post, StoreDist dist = StoreDist::DIST_NORM,
          typename U, typename P>
inline void StoreAlign(P*& to, const U& src, int32_t stride, const MaskReg& mask, CUBECORE_AT) {
  detail::store(detail::word_of<dist>(), to, src, mask, at);
  if (post == PostLiteral::POST_MODE_UPDATE) to += stride;
}
template <typename T = DefaultType, StoreDist dist, typename U, typename P>
inline void StoreAlign(P* to, const U& src0, const U& src1, const MaskReg&, CUBECORE_AT) {
  detail::store_pair(detail::word_of<dist>(), to, src0, src1, at);
}
template <typename T = DefaultType, StoreDist dist, typename U, typename P>
inline void StoreAlign(P* to, const U& src0, const U& src1, AddrReg offset, const MaskReg&,
                       CUBECORE_AT) {
  detail::store_pair(detail::word_of<dist>(), to + offset, src0, src1, at);
}
template <typename T = DefaultType, DataCopyMode mode, typename U, typename P>
inline void StoreAlign(P* to, const U& src, uint32_t blockStride, const MaskReg& mask,
                       CUBECORE_AT) {
  detail::store_blocks(to, src, blockStride, mask, at);
}
template <typename T = DefaultType, DataCopyMode mode, PostLiteral post, typename U, typename P>
inline void StoreAlign(P*& to, const U& src, uint32_t blockStride, uint32_t repeatStride,
                       const MaskReg& mask, CUBECORE_AT) {
  const int64_t step = 32ll * repeatStride / static_cast<int64_t>(sizeof(P));
  const bool updates = post == PostLiteral::POST_MODE_UPDATE;
  detail::store_blocks(updates ? to : to + step, src, blockStride, mask, at);
  if (updates) to += step;
}

namespace detail {
inline const char* const MASK_LOADS[] = {"MASK_NORM", "MASK_US", "MASK_DS", "MASK_NORM"};
inline void load_mask(const char* mode, MaskReg& dst, const volatile void* from, const Here& at) {
  RegisterEntry& entry = entry_of("LoadMask", "uint8", at);
  entry.mode = mode;
  entry.address = address_of(from);
  entry.variable = dst.variable;
  made(entry, dst);
}
inline void load_mask(MaskDist dist, MaskReg& dst, const volatile void* from, const Here& at) {
  load_mask(MASK_LOADS[static_cast<int>(dist)], dst, from, at);
}
inline void store_mask(const char* mode, volatile void* to, const MaskReg& src, const Here& at) {
  RegisterEntry& entry = entry_of("StoreMask", "uint8", at);
  entry.mode = mode;
  entry.address = address_of(to);
  entry.variable = src.variable;
  read(entry, src);
}
inline void store_mask(MaskDist dist, volatile void* to, const MaskReg& src, const Here& at) {
  store_mask(dist == MaskDist::DIST_PACK ? "MASK_PACK" : "MASK_NORM", to, src, at);
}
}  // namespace detail
template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>
inline void LoadAlign(MaskReg& dst, const P* from, CUBECORE_AT) {
  detail::load_mask(dist, dst, from, at);
}
template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>
inline void LoadAlign(MaskReg& dst, const P* from, AddrReg offset, CUBECORE_AT) {
  detail::load_mask(dist, dst, from + offset, at);
}
template <typename T = DefaultType, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM,
          typename P>
inline void LoadAlign(MaskReg& dst, P*& from, int32_t stride, CUBECORE_AT) {
  detail::load_mask(dist, dst, from, at);
  if (post == PostLiteral::POST_MODE_UPDATE)
    from = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(from) + stride);
}
template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>
inline void StoreAlign(P* to, const MaskReg& src, CUBECORE_AT) {
  detail::store_mask(dist, to, src, at);
}
template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>
inline void StoreAlign(P* to, const MaskReg& src, AddrReg offset, CUBECORE_AT) {
  detail::store_mask(dist, to + offset, src, at);
}
template <typename T = DefaultType, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM,
          typename P>
inline void StoreAlign(P*& to, const MaskReg& src, int32_t stride, CUBECORE_AT) {
  detail::store_mask(dist, to, src, at);
  if (post == PostLiteral::POST_MODE_UPDATE)
    to = reinterpret_cast<P*>(reinterpret_cast<uint64_t>(to) + stride);
}

// --- unaligned loads and stores

template <typename T = DefaultType, typename P>
inline void LoadUnAlignPre(UnalignRegForLoad& buffer, const P* from, CUBECORE_AT) {
  detail::stream("LoadUnAlignPre", buffer, from, at);
}
template <typename T = DefaultType, typename P>
inline void LoadUnAlignPre(UnalignRegForLoad& buffer, const P* from, AddrReg offset, CUBECORE_AT) {
  detail::stream("LoadUnAlignPre", buffer, from + offset, at);
}
template <typename T = DefaultType, typename U, typename P>
inline void LoadUnAlign(U& dst, UnalignRegForLoad& buffer, const P* from, CUBECORE_AT) {
  detail::load_unaligned(dst, buffer, from, at);
}
template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U,
          typename P>
inline void LoadUnAlign(U& dst, UnalignRegForLoad& buffer, P*& from, uint32_t stride, CUBECORE_AT) {
  detail::load_unaligned(dst, buffer, from, at);
  from += stride;
}
template <typename T = DefaultType, typename U, typename P>
inline void LoadUnAlign(U& dst, UnalignRegForLoad& buffer, P*& from, AddrReg& offset,
                        uint32_t step = 0, CUBECORE_AT) {
  detail::load_unaligned(dst, buffer, from + offset, at);
  from += step;
}
template <typename T = DefaultType, typename U, typename P>
inline void Load(U& dst, const P* from, CUBECORE_AT) {
  detail::load("UNALIGNED", dst, from, at);
}
template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U,
          typename P>
inline void StoreUnAlign(P*& to, const U& src, UnalignRegForStore& buffer, uint32_t stride,
                         CUBECORE_AT) {
  using A = typename U::ActualT;
  if constexpr (is_pair<U>) {
    constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(A);
    const MaskReg low = detail::first<A>(stride < lanes ? stride : lanes, at);
    detail::store_unaligned(to, src.half(0), buffer, low, at);
    if (stride > lanes) {
      const MaskReg high = detail::first<A>(stride - lanes, at);
      detail::store_unaligned(to + lanes, src.half(1), buffer, high, at);
    }
  } else {
    detail::store_unaligned(to, src, buffer, detail::first<A>(stride, at), at);
  }
  to += stride;
}
// A bit of each lane, as many bytes as the pointer's type says.
template <typename T = DefaultType, typename P>
inline void StoreUnAlign(P*& to, const MaskReg& src, UnalignRegForStore& buffer, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::entry_of("StoreMask", "uint8", at);
  entry.mode = sizeof(P) == 1 ? "MASK_B8" : sizeof(P) == 2 ? "MASK_B16" : "MASK_B32";
  entry.address = detail::address_of(to);
  entry.variable = src.variable;
  entry.scalar = buffer.variable;
  detail::read(entry, src);
  to += VECTOR_REG_WIDTH / 8 / sizeof(P) / sizeof(P);
}
template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename P>
inline void StoreUnAlignPost(P*& to, UnalignRegForStore& buffer, int32_t count, CUBECORE_AT) {
  detail::stream("StoreUnAlignPost", buffer, to + count, at);
}
template <typename T = DefaultType, typename P>
inline void StoreUnAlignPost(P* to, UnalignRegForStore& buffer, const AddrReg& offset,
                             CUBECORE_AT) {
  detail::stream("StoreUnAlignPost", buffer, to + offset, at);
}
// The register's bytes lie at the pointer's offset; the pointer stays.
template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U,
          typename P>
inline void StoreUnAlign(P* to, const U& src, UnalignRegForStore& buffer, const AddrReg& offset,
                         CUBECORE_AT) {
  detail::store_unaligned(to + offset, src, buffer, detail::all_lanes(), at);
}
template <typename T = DefaultType, typename U, typename P>
inline void Store(P* to, const U& src, CUBECORE_AT) {
  detail::store("UNALIGNED", to, src, detail::all_lanes(), at);
}
template <typename T = DefaultType, typename U, typename P>
inline void Store(P* to, const U& src, uint32_t count, CUBECORE_AT) {
  detail::store("UNALIGNED", to, src, detail::first<typename U::ActualT>(count, at), at);
}

// --- within registers

template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U,
          std::enable_if_t<!std::is_class_v<S> || cubecore::is_half<S>, int> = 0>
inline void Duplicate(U& dst, S value, const MaskReg& mask, CUBECORE_AT) {
  detail::with_scalar<mode>("Duplicate", dst, mask, at, value);
}
template <typename T = DefaultType, typename S, typename U,
          std::enable_if_t<!std::is_class_v<S> || cubecore::is_half<S>, int> = 0>
inline void Duplicate(U& dst, S value, CUBECORE_AT) {
  detail::with_scalar<MaskMergeMode::ZEROING>("Duplicate", dst, detail::all_lanes(), at, value);
}
template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename P>
inline void Duplicate(RegTensor<Complex<P>, RegTraitNumTwo>& dst, Complex<P> value,
                      const MaskReg& mask, CUBECORE_AT) {
  detail::with_scalar<mode>("Duplicate", dst, mask, at, value);
}
template <typename T = DefaultType, HighLowPart part = HighLowPart::LOWEST,
          auto mode = MaskMergeMode::ZEROING, typename U>
inline void Duplicate(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::lanes<mode>("DuplicateLane", dst, mask, at, src);
}
template <typename T = DefaultType, typename U>
inline void Move(U& dst, const U& src) {
  dst = src;
}
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::MERGING, typename U>
inline void Move(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::lanes<MaskMergeMode::ZEROING>("Move", dst, mask, at, src, dst);
}
template <typename T = DefaultType, typename U>
inline void Copy(U& dst, const U& src) {
  dst = src;
}
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::MERGING, typename U>
inline void Copy(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  Move<T, mode>(dst, src, mask, at);
}
namespace detail {
template <typename U>
inline void interleave(const char* name, U& dst0, U& dst1, const U& src0, const U& src1,
                       const Here& at) {
  RegisterEntry& entry = entry_of(name, type_of<U>(), at);
  entry.scalar = &dst0 == &dst1;
  read(entry, src0, src1);
  made(entry, dst0, dst1);
}
}  // namespace detail
// Of pairs each half of the results has lanes of halves of the sources.
template <typename T = DefaultType, typename U>
inline void Interleave(U& dst0, U& dst1, const U& src0, const U& src1, CUBECORE_AT) {
  if constexpr (is_pair<U>) {
    const U a = src0, b = src1;
    detail::interleave("Interleave", dst0.half(0), dst0.half(1), a.half(0), b.half(0), at);
    detail::interleave("Interleave", dst1.half(0), dst1.half(1), a.half(1), b.half(1), at);
  } else {
    detail::interleave("Interleave", dst0, dst1, src0, src1, at);
  }
}
template <typename T = DefaultType, typename U>
inline void DeInterleave(U& dst0, U& dst1, const U& src0, const U& src1, CUBECORE_AT) {
  if constexpr (is_pair<U>) {
    const U a = src0, b = src1;
    detail::interleave("DeInterleave", dst0.half(0), dst1.half(0), a.half(0), a.half(1), at);
    detail::interleave("DeInterleave", dst0.half(1), dst1.half(1), b.half(0), b.half(1), at);
  } else {
    detail::interleave("DeInterleave", dst0, dst1, src0, src1, at);
  }
}
template <typename T = DefaultType, typename U>
inline void Unsqueeze(U& dst, const MaskReg& mask, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::entry_of<U>("Unsqueeze", mask, at);
  detail::made(entry, dst);
}
template <typename T = DefaultType, typename I = DefaultType, HighLowPart part = HighLowPart::LOWEST,
          typename U, typename V>
inline void Pack(U& dst, const V& src, CUBECORE_AT) {
  if constexpr (is_pair<V>) {
    static_assert(part == HighLowPart::LOWEST,
                  "Pack.part must be LOWEST for a pair of registers (RegTraitNumTwo), got HIGHEST");
    // The low words of 64 lanes fill a register: those of each half of the lanes half of it.
    using Half = RegTensor<typename V::ActualT>;
    U upper;
    Pack<T, I, HighLowPart::LOWEST, U, Half>(dst, src.half(0), at);
    Pack<T, I, HighLowPart::HIGHEST, U, Half>(upper, src.half(1), at);
    detail::lanes<MaskMergeMode::ZEROING>("Or", dst, detail::all_lanes(), at, dst, upper);
  } else {
    detail::RegisterEntry& entry = detail::of_types<U, V>("Pack", detail::half<part>(), at);
    detail::read(entry, src);
    detail::made(entry, dst);
  }
}
template <typename T = DefaultType, typename I = DefaultType, HighLowPart part = HighLowPart::LOWEST,
          typename U, typename V>
inline void UnPack(U& dst, const V& src, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::of_types<U, V>("UnPack", detail::half<part>(), at);
  detail::read(entry, src);
  detail::made(entry, dst);
}
template <typename T = DefaultType, IndexOrder order = IndexOrder::INCREASE_ORDER, typename U,
          typename S>
inline void Arange(S& dst, U value, CUBECORE_AT) {
  if constexpr (is_pair<S>) {
    const auto first = static_cast<typename S::ActualT>(value);
    constexpr int lanes = VECTOR_REG_WIDTH / sizeof(first);
    const bool rises = order == IndexOrder::INCREASE_ORDER;
    Arange<T, order>(dst.half(0), first + (rises ? 0 : lanes), at);
    Arange<T, order>(dst.half(1), first + (rises ? lanes : 0), at);
  } else {
    detail::RegisterEntry& entry = detail::entry_of("Arange", detail::type_of<S>(), at);
    entry.mode = order == IndexOrder::INCREASE_ORDER ? "INCREASE_ORDER" : "DECREASE_ORDER";
    entry.scalar = detail::bits_of<typename S::ActualT>(value);
    detail::made(entry, dst);
  }
}
template <typename T = DefaultType, typename I = DefaultType, typename U, typename V>
inline void Gather(U& dst, const U& src, const V& index, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::entry_of("Gather", detail::type_of<U>(), at);
  detail::read(entry, src, index);
  detail::made(entry, dst);
}

namespace detail {
constexpr const char* words_of_ReduceType[] = {"SUM", "MAX", "MIN", "AND", "OR", "XOR"};
template <MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>
inline void reduce(const char* name, ReduceType type, U& dst, const V& src, const MaskReg& mask,
                   const Here& at);

// Lanes 0 and 1 of a pair's lower half have the result: of two halves the sum, or that of the better
// one, the first of equals, whose index counts the lanes of both.
template <MaskMergeMode mode, typename U>
inline void reduce_pair(const char* name, ReduceType type, U& dst, const U& src,
                        const MaskReg& mask, const Here& at) {
  using Half = RegTensor<typename U::ActualT>;
  constexpr auto zeroing = MaskMergeMode::ZEROING;
  const MaskReg first = CreateMask<uint64_t, MaskPattern::VL1>(at);
  const MaskReg both = CreateMask<uint64_t, MaskPattern::VL2>(at), all = all_lanes();
  Half part[2], index, better[2];
  for_halves(mask, at, [&](int n, const MaskReg& of_half) {
    reduce<mode>(name, type, part[n], src.half(n), of_half, at);
  });
  if (type == ReduceType::SUM) {
    lanes<zeroing>("Add", dst.half(0), first, at, part[0], part[1]);
  } else {
    with_scalar<zeroing>("Adds", index, all, at, VECTOR_REG_WIDTH / sizeof(typename U::ActualT),
                         part[1]);
    lanes<zeroing>("Select", part[1], first, at, part[1], index);
    for (int n = 0; n < 2; ++n) lanes<zeroing>("DuplicateLane", better[n], all, at, part[n]);
    MaskReg later;
    compare(type == ReduceType::MAX ? "GT" : "LT", later, better[1], better[0], all, at);
    lanes<zeroing>("Select", part[0], later, at, part[1], part[0]);
    lanes<zeroing>("Or", dst.half(0), both, at, part[0], part[0]);
  }
  lanes<zeroing>("Xor", dst.half(1), all, at, part[0], part[0]);  // no other lane has anything
}

template <MaskMergeMode mode, typename U, typename V>
inline void reduce(const char* name, ReduceType type, U& dst, const V& src, const MaskReg& mask,
                   const Here& at) {
  if constexpr (is_pair<U>) {
    reduce_pair<mode>(name, type, dst, src, mask, at);
  } else {
    RegisterEntry& entry = of_types<U, V>(name, words_of_ReduceType[static_cast<int>(type)], at);
    entry.mask = mask.value;
    entry.scalar = mode == MaskMergeMode::MERGING;  // which there is not: it is a finding
    read(entry, src);
    made(entry, dst);
  }
}
template <bool left, typename U, typename V>
inline void shift(U& dst, const U& src, const V& amounts, const MaskReg& mask, const Here& at) {
  lanes<MaskMergeMode::ZEROING>(left ? "ShiftLeft" : "ShiftRight", dst, mask, at, src, amounts);
}
template <bool left, typename U>
inline void shift(U& dst, const U& src, int16_t amount, const MaskReg& mask, const Here& at) {
  if constexpr (is_pair<U>) {
    for_halves(mask, at, [&](int n, const MaskReg& of_half) {
      shift<left>(dst.half(n), src.half(n), amount, of_half, at);
    });
  } else {
    RegisterEntry& entry = entry_of<U>(left ? "ShiftLefts" : "ShiftRights", mask, at);
    entry.scalar = bits_of<int16_t>(amount);
    read(entry, src);
    made(entry, dst);
  }
}
template <typename U>
inline void with_carry(const char* name, MaskReg& carry, U& dst, const U& a, const U& b,
                       const MaskReg& mask, const Here& at) {
  RegisterEntry& entry = entry_of<U>(name, mask, at);
  read(entry, a, b);
  made(entry, carry, dst);
}
template <typename U>
inline void carried(const char* name, MaskReg& carry, U& dst, const U& a, const U& b,
                    const MaskReg& from, const MaskReg& mask, const Here& at) {
  RegisterEntry& entry = entry_of<U>(name, mask, at);
  read(entry, a, b, from);
  made(entry, carry, dst);
}
}  // namespace detail
template <ReduceType type = ReduceType::SUM, typename T = DefaultType, typename I = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>
inline void Reduce(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {
  detail::reduce<mode>("Reduce", type, dst, src, mask, at);
}
template <ReduceType type = ReduceType::SUM, typename T = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>
inline void ReduceDataBlock(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {
  detail::reduce<mode>("ReduceDataBlock", type, dst, src, mask, at);
}
template <PairReduce type = PairReduce::SUM, typename T = DefaultType,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U>
inline void PairReduceElem(U& dst, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::reduce<mode>("PairReduceElem", ReduceType::SUM, dst, src, mask, at);
}
#define CUBECORE_OLDER_REDUCE(NAME, FUNCTION, TYPE)                                             \
  template <typename T = DefaultType, typename I = DefaultType,                                 \
            MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>                \
  inline void NAME(U& dst, const V& src, const MaskReg& mask, CUBECORE_AT) {                    \
    detail::reduce<mode>(FUNCTION, ReduceType::TYPE, dst, src, mask, at);                            \
  }
CUBECORE_OLDER_REDUCE(ReduceSum, "Reduce", SUM)
CUBECORE_OLDER_REDUCE(ReduceMax, "Reduce", MAX)
CUBECORE_OLDER_REDUCE(ReduceMin, "Reduce", MIN)
CUBECORE_OLDER_REDUCE(ReduceSumWithDataBlock, "ReduceDataBlock", SUM)
CUBECORE_OLDER_REDUCE(ReduceMaxWithDataBlock, "ReduceDataBlock", MAX)
CUBECORE_OLDER_REDUCE(ReduceMinWithDataBlock, "ReduceDataBlock", MIN)
CUBECORE_OLDER_REDUCE(PairReduceSum, "PairReduceElem", SUM)
#undef CUBECORE_OLDER_REDUCE
#define CUBECORE_SHIFTS(NAME, LEFT)                                                           \
  template <typename T = DefaultType, typename I = DefaultType,                               \
            MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V>              \
  inline void NAME(U& dst, const U& src, const V& amounts, const MaskReg& mask, CUBECORE_AT) { \
    detail::shift<LEFT>(dst, src, amounts, mask, at);                                         \
  }                                                                                           \
  template <typename T = DefaultType, typename I, MaskMergeMode mode = MaskMergeMode::ZEROING, \
            typename U>                                                                       \
  inline void NAME##s(U& dst, const U& src, I amount, const MaskReg& mask, CUBECORE_AT) {     \
    detail::shift<LEFT>(dst, src, static_cast<int16_t>(amount), mask, at);                    \
  }
CUBECORE_SHIFTS(ShiftLeft, true)
CUBECORE_SHIFTS(ShiftRight, false)
#undef CUBECORE_SHIFTS
template <typename T = DefaultType, typename U>
inline void Add(MaskReg& carry, U& dst, const U& a, const U& b, const MaskReg& mask, CUBECORE_AT) {
  detail::with_carry("AddCarry", carry, dst, a, b, mask, at);
}
template <typename T = DefaultType, typename U>
inline void Sub(MaskReg& carry, U& dst, const U& a, const U& b, const MaskReg& mask, CUBECORE_AT) {
  detail::with_carry("SubCarry", carry, dst, a, b, mask, at);
}
template <typename T = DefaultType, typename U>
inline void AddC(MaskReg& carry, U& dst, const U& a, const U& b, const MaskReg& from,
                 const MaskReg& mask, CUBECORE_AT) {
  detail::carried("AddC", carry, dst, a, b, from, mask, at);
}
template <typename T = DefaultType, typename U>
inline void SubC(MaskReg& carry, U& dst, const U& a, const U& b, const MaskReg& from,
                 const MaskReg& mask, CUBECORE_AT) {
  detail::carried("SubC", carry, dst, a, b, from, mask, at);
}
template <typename T = DefaultType, typename U>
inline void Mull(U& dst0, U& dst1, const U& a, const U& b, const MaskReg& mask, CUBECORE_AT) {
  detail::RegisterEntry& entry = detail::entry_of<U>("Mull", mask, at);
  detail::read(entry, a, b);
  detail::made(entry, dst0, dst1);
}

// --- order, addresses

namespace detail {
// The mode is the class of accesses before the barrier, the scalar the number of that behind it.
inline void barrier(MemType src, MemType dst, const Here& at) {
  static const char* const words[] = {"VEC_STORE",   "VEC_LOAD", "SCALAR_STORE",
                                      "SCALAR_LOAD", "VEC_ALL",  "SCALAR_ALL"};
  RegisterEntry& entry = entry_of("LocalMemBar", "uint8", at);
  entry.mode = words[static_cast<int>(src)];
  entry.scalar = static_cast<uint64_t>(dst);
}
}  // namespace detail
template <MemType src, MemType dst>
inline void LocalMemBar(CUBECORE_AT) {
  detail::barrier(src, dst, at);
}

#define CUBECORE_STEP(N) int64_t(index##N) * stride##N * static_cast<int64_t>(sizeof(T))
template <typename T>
inline AddrReg CreateAddrReg(uint32_t index0, uint32_t stride0) {
  return {CUBECORE_STEP(0)};
}
template <typename T>
inline AddrReg CreateAddrReg(uint32_t index0, uint32_t stride0, uint32_t index1, uint32_t stride1) {
  return {CUBECORE_STEP(0) + CUBECORE_STEP(1)};
}
template <typename T>
inline AddrReg CreateAddrReg(uint32_t index0, uint32_t stride0, uint32_t index1, uint32_t stride1,
                             uint32_t index2, uint32_t stride2) {
  return {CUBECORE_STEP(0) + CUBECORE_STEP(1) + CUBECORE_STEP(2)};
}
template <typename T>
inline AddrReg CreateAddrReg(uint32_t index0, uint32_t stride0, uint32_t index1, uint32_t stride1,
                             uint32_t index2, uint32_t stride2, uint32_t index3,
                             uint32_t stride3) {
  return {CUBECORE_STEP(0) + CUBECORE_STEP(1) + CUBECORE_STEP(2) + CUBECORE_STEP(3)};
}
#undef CUBECORE_STEP

}  // namespace Reg
}  // namespace AscendC
