// Sort by a SortConfig, a vector function of 950 (reg/c_api.h includes it). Page Sort, the forms
// with SortConfig.
#pragma once

#include "cubecore/basic/sort.h"
#include "cubecore/math/steps.h"
#include "cubecore/math/sort_config.h"
#include "cubecore/reg/tensors.h"

namespace AscendC {

namespace detail {

template <typename P, typename... Types>
inline constexpr bool is_any_of = (std::is_same_v<P, Types> || ...);

// Elements as unsigned keys in words of 32 bits, whose order is that of the elements: the sign of
// an integer is flipped, a float below 0 has all its bits flipped, and others the sign. Uncertain:
// -0 lies below 0, and NaN by its sign beyond the infinities. A descending order flips all bits, so
// that equal elements keep theirs. `places` has the elements' places, sorted bit by bit: in each
// pass those whose key lacks the bit are squeezed to the front, and the others behind them.
template <typename P, bool descends>
class RadixSort {
 public:
  using Words = Reg::RegTensor<uint32_t>;
  static constexpr uint32_t bits = 8 * sizeof(P), words = sizeof(P) == 8 ? 2 : 1;

  RadixSort(const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Here& at)
      : count_(count), at_(at) {
    const uint32_t most = (count + LANES - 1) / LANES * LANES;
    auto* start = reinterpret_cast<uint32_t*>(given.GetPhyAddr());
    for (uint32_t n = 0; n < 2; ++n) {
      keys_[n] = start + (n < words ? n : 0) * most;
      places_[n] = start + (words + n) * most;
    }
  }

  void sort(P* from) {
    {
      cubecore::VectorFunction function{at_};
      by_turns([&](uint32_t first, const Reg::MaskReg& mask) { prepare(from, first, mask); });
    }
    for (uint32_t bit = 0; bit < bits; ++bit) {
      // A function of its own each, which has an end: as one they would be thousands of calls.
      barrier(PIPE_V, at_);
      cubecore::VectorFunction function{at_};
      pass(keys_[bit / 32], places_[bit % 2], places_[(bit + 1) % 2], bit % 32);
    }
    barrier(PIPE_V, at_);
  }
  void store(P* to) {
    by_turns([&](uint32_t first, const Reg::MaskReg& mask) { store(to, first, mask); });
  }
  // The places, or what `from` has at them.
  template <typename U>
  void store_places(U* to, U* from) {
    by_turns([&](uint32_t first, const Reg::MaskReg& mask) {
      Words place;
      Reg::LoadAlign(place, places_[0] + first, at_);
      if (from == nullptr) {
        Reg::StoreAlign(reinterpret_cast<uint32_t*>(to) + first, place, mask, at_);
        return;
      }
      Words taken[2];
      take(taken, from, place, mask);
      put(to, taken, first, mask);
    });
  }

 private:
  static constexpr uint32_t all = bits < 32 ? (1u << bits % 32) - 1 : 0xffffffffu;
  static constexpr uint32_t sign = (all >> 1) + 1;
  static constexpr bool is_float = is_any_of<P, half, bfloat16_t, float>;

  template <typename F>
  void by_turns(const F& step) {
    for (uint32_t first = 0, left = count_; left > 0; first += LANES)
      step(first, Reg::UpdateMask<uint32_t>(left, at_));
  }

  void flip(Words& word, uint32_t by, const Reg::MaskReg& mask) {
    if (by == 0) return;
    Words flipped;
    Reg::Duplicate(flipped, by, at_);
    Reg::Xor(word, word, flipped, mask, at_);
  }
  // Lanes of which the word has a bit.
  Reg::MaskReg with_bit(Words& word, uint32_t bit, const Reg::MaskReg& mask) {
    Words one;
    Reg::Duplicate(one, bit, at_);
    Reg::And(one, one, word, mask, at_);
    Reg::MaskReg has;
    Reg::Compares<uint32_t, CMPMODE::NE>(has, one, 0u, mask, at_);
    return has;
  }
  // The word that has an element's sign, as a key; `flips_set`: all its bits are flipped
  // where the sign is set, or else where it is not.
  void signed_key(Words& word, bool flips_set, const Reg::MaskReg& mask) {
    if constexpr (is_float) {
      Words whole = copied(word, mask), others = copied(word, mask);
      const Reg::MaskReg set = with_bit(word, sign, mask);
      flip(whole, all, mask);
      flip(others, sign, mask);
      if (flips_set)
        Reg::Select(word, whole, others, set, at_);
      else
        Reg::Select(word, others, whole, set, at_);
    } else if constexpr (std::is_signed_v<P>) {
      flip(word, sign, mask);
    }
  }
  Words copied(Words& word, const Reg::MaskReg& mask) {
    Words made;
    Reg::Or(made, word, word, mask, at_);
    return made;
  }

  template <typename U>
  void take(Words (&taken)[2], U* from, Words& place, const Reg::MaskReg& mask) {
    auto* start = reinterpret_cast<uint32_t*>(from);
    if constexpr (sizeof(U) == 8) {
      Words low = doubled(place, mask), high;
      Reg::Gather(taken[0], start, low, mask, at_);
      Reg::Adds(high, low, 1u, mask, at_);
      Reg::Gather(taken[1], start, high, mask, at_);
    } else {
      Reg::Gather(taken[0], start, place, mask, at_);
    }
  }
  template <typename U>
  void put(U* to, Words (&made)[2], uint32_t first, const Reg::MaskReg& mask) {
    auto* start = reinterpret_cast<uint32_t*>(to);
    if constexpr (sizeof(U) == 8) {
      Words place = counted(first), low = doubled(place, mask), high;
      Reg::Adds(high, low, 1u, mask, at_);
      Reg::Scatter(start, made[0], low, mask, at_);
      Reg::Scatter(start, made[1], high, mask, at_);
    } else if constexpr (sizeof(U) == 4) {
      Reg::StoreAlign(start + first, made[0], mask, at_);
    } else {
      using Bits = std::conditional_t<sizeof(U) == 1, uint8_t, uint16_t>;
      constexpr Reg::StoreDist dist =
          sizeof(U) == 1 ? Reg::StoreDist::DIST_PACK4_B32 : Reg::StoreDist::DIST_PACK_B32;
      Reg::StoreAlign<Bits, dist>(reinterpret_cast<Bits*>(to) + first,
                                  reinterpret_cast<Reg::RegTensor<Bits>&>(made[0]), mask, at_);
    }
  }
  Words counted(uint32_t first) {
    Reg::RegTensor<int32_t> lanes;
    Reg::Arange(lanes, static_cast<int32_t>(first), at_);
    return reinterpret_cast<Words&>(lanes);
  }
  Words doubled(Words& place, const Reg::MaskReg& mask) {
    Words made;
    Reg::Add(made, place, place, mask, at_);
    return made;
  }

  void prepare(P* from, uint32_t first, const Reg::MaskReg& mask) {
    Words place = counted(first), key[2];
    Reg::StoreAlign(places_[0] + first, place, mask, at_);
    if constexpr (sizeof(P) >= 4) {
      take(key, from, place, mask);
    } else {
      using Bits = std::conditional_t<sizeof(P) == 1, uint8_t, uint16_t>;
      constexpr Reg::LoadDist dist =
          sizeof(P) == 1 ? Reg::LoadDist::DIST_UNPACK4_B8 : Reg::LoadDist::DIST_UNPACK_B16;
      Reg::LoadAlign<Bits, dist>(reinterpret_cast<Reg::RegTensor<Bits>&>(key[0]),
                                 reinterpret_cast<Bits*>(from) + first, at_);
    }
    signed_key(key[words - 1], true, mask);
    for (uint32_t n = 0; n < words; ++n) {
      if constexpr (descends) flip(key[n], all, mask);
      Reg::StoreAlign(keys_[n] + first, key[n], mask, at_);
    }
  }
  void pass(uint32_t* keys, uint32_t* from, uint32_t* to, uint32_t bit) {
    Reg::ClearSpr<SpecialPurposeReg::AR>(at_);
    Reg::UnalignRegForStore stream;
    for (const bool has : {false, true}) {
      by_turns([&](uint32_t first, const Reg::MaskReg& mask) {
        Words place, key, squeezed;
        Reg::LoadAlign(place, from + first, at_);
        if (count_ - first < LANES) place = copied(place, mask);  // nothing is written behind
        Reg::Gather(key, keys, place, mask, at_);
        Reg::MaskReg chosen = with_bit(key, 1u << bit, mask);
        if (!has) Reg::Xor(chosen, chosen, mask, mask, at_);
        Reg::Squeeze<uint32_t, Reg::GatherMaskMode::STORE_REG>(squeezed, place, chosen, at_);
        Reg::StoreUnAlign(to, squeezed, stream, at_);
      });
    }
    Reg::StoreUnAlignPost(to, stream, at_);
  }
  void store(P* to, uint32_t first, const Reg::MaskReg& mask) {
    Words place, key[2];
    Reg::LoadAlign(place, places_[0] + first, at_);
    for (uint32_t n = 0; n < words; ++n) {
      Reg::Gather(key[n], keys_[n], place, mask, at_);
      if constexpr (descends) flip(key[n], all, mask);
    }
    signed_key(key[words - 1], false, mask);
    put(to, key, first, mask);
  }

  const uint32_t count_;
  const cubecore::Here at_;
  uint32_t *keys_[2], *places_[2];
};

template <const SortConfig& config, typename T, typename U>
inline void sorted(const LocalTensor<T>& dst, const LocalTensor<U>* dstIndex,
                   const LocalTensor<T>& src, const LocalTensor<U>* srcIndex,
                   const LocalTensor<uint8_t>& tmp, uint32_t count, const cubecore::Here& at) {
  using P = PrimT<T>;
  constexpr bool merges = config.type == SortType::MERGE_SORT;
  static_assert(!merges || is_any_of<P, half, float>,
                "Sort by MERGE_SORT must take half or float, got another type");
  static_assert(is_any_of<P, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, half,
                          bfloat16_t, float, uint64_t, int64_t>,
                "Sort by RADIX_SORT must take half, bfloat16_t, float or integers of 8 to 64 bits, "
                "got another type");
  static_assert(is_any_of<PrimT<U>, uint32_t> ||
                    (!merges && is_any_of<PrimT<U>, int32_t, uint64_t, int64_t>),
                "Sort.srcIndexTensor must be uint32_t, or int32_t, uint64_t or int64_t for "
                "RADIX_SORT, got another type");
  if (merges && count % RUN != 0)
    cubecore_refuse("Sort.calCount", "be a multiple of 32 for MERGE_SORT", Digits(count).text, &at);
  if (count > src.GetSize() || count > dst.GetSize())
    cubecore_refuse("Sort.calCount", "be at most the elements of srcTensor and dstTensor",
                    Digits(count).text, &at);
  const uint64_t bytes = count * sizeof(P), to = dst.GetPhyAddr(), from = src.GetPhyAddr();
  if (to < from + bytes && from < to + bytes)
    cubecore_refuse("Sort.dstTensor", "not overlap srcTensor", "the same bytes", &at);
  const uint32_t room = static_cast<uint32_t>(cubecore::sort_bytes(count, sizeof(P)));
  RadixSort<P, config.isDescend> radix(required("sharedTmpBuffer", tmp, room, at), count, at);
  radix.sort(lanes_of(src));
  cubecore::VectorFunction function{at};
  radix.store(lanes_of(dst));
  if (dstIndex != nullptr)
    radix.store_places(lanes_of(*dstIndex), srcIndex == nullptr ? nullptr : lanes_of(*srcIndex));
}

}  // namespace detail

// With and without a workspace.
#define CUBECORE_SORT(TYPES, INDEX, DST_INDEX, SRC_INDEX, ...)                                   \
  template <TYPES bool isReuseSource = false,                                                    \
            const SortConfig& config = DEFAULT_SORT_CONFIG>                                      \
  inline void Sort(const LocalTensor<T>& dstTensor, __VA_ARGS__                                  \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,         \
                   CUBECORE_AT) {                                                                \
    detail::sorted<config, T, INDEX>(dstTensor, DST_INDEX, srcTensor, SRC_INDEX, sharedTmpBuffer, \
                                     calCount, at);                                              \
  }                                                                                              \
  template <TYPES bool isReuseSource = false,                                                    \
            const SortConfig& config = DEFAULT_SORT_CONFIG>                                      \
  inline void Sort(const LocalTensor<T>& dstTensor, __VA_ARGS__ const uint32_t calCount,         \
                   CUBECORE_AT) {                                                                \
    detail::sorted<config, T, INDEX>(dstTensor, DST_INDEX, srcTensor, SRC_INDEX,                 \
                                     detail::free_memory(), calCount, at);                       \
  }
#define CUBECORE_ONE_TYPE typename T,
#define CUBECORE_TWO_TYPES typename T, typename U,
CUBECORE_SORT(CUBECORE_ONE_TYPE, uint32_t, nullptr, nullptr, const LocalTensor<T>& srcTensor, )
CUBECORE_SORT(CUBECORE_ONE_TYPE, uint32_t, &dstIndexTensor, nullptr,
              const LocalTensor<uint32_t>& dstIndexTensor, const LocalTensor<T>& srcTensor, )
CUBECORE_SORT(CUBECORE_TWO_TYPES, U, &dstIndexTensor, &srcIndexTensor,
              const LocalTensor<U>& dstIndexTensor, const LocalTensor<T>& srcTensor,
              const LocalTensor<U>& srcIndexTensor, )
#undef CUBECORE_ONE_TYPE
#undef CUBECORE_TWO_TYPES
#undef CUBECORE_SORT

}  // namespace AscendC
