// The vector mask: which lanes a vector instruction takes. Pages: SetVectorMask, ResetMask,
// SetMaskNorm, SetMaskCount and the page on masks.
#pragma once

#include "cubecore/seam/notes.h"

namespace AscendC {

namespace detail {

inline void set_mask(uint64_t high, uint64_t low, const cubecore::Where& at) {
  CoreState& state = core_state();
  state.mask_low = low;
  state.mask_high = high;
  cubecore::issue("asc_set_vector_mask", at, high, low);
}

// The first `lanes` of a repeat; in counter mode so many elements, whatever their repeats.
inline void set_lanes(uint64_t lanes, const cubecore::Where& at) {
  uint64_t all = ~0ull;
  if (core_state().counts) return set_mask(0, lanes, at);
  if (lanes >= 128)
    set_mask(all, all, at);
  else if (lanes > 64)
    set_mask((1ull << (lanes - 64)) - 1, all, at);
  else
    set_mask(0, lanes == 64 ? all : (1ull << lanes) - 1, at);
}

// Lanes of a repeat of a type.
template <typename T>
constexpr uint64_t mask_lanes() {
  return sizeof(T) == 8 ? 32 : sizeof(T) == 4 ? 64 : 128;
}

// Reports lanes that a repeat of the type does not have (page "掩码").
template <typename T>
inline void judge_lanes(const char* call, int64_t lanes, const cubecore::Where& at) {
  constexpr int64_t most = mask_lanes<T>();
  if ((lanes >= 0 && lanes <= most) || core_state().counts) return;
  char said[96];
  std::snprintf(said, sizeof(said), "mask must be %s %lld for %s, got %lld",
                lanes < 0 ? "in 0 to" : "at most", static_cast<long long>(most),
                cubecore::Element<T>::word, static_cast<long long>(lanes));
  cubecore_finding("parameter", call, said, &at);
}
template <typename T>
inline void judge_bits(const char* call, uint64_t high, uint64_t low, const cubecore::Where& at) {
  constexpr uint64_t beyond = mask_lanes<T>() == 32 ? ~0ull << 32 : 0;
  if (mask_lanes<T>() == 128 || ((high | (low & beyond)) == 0) || core_state().counts) return;
  char said[112];
  std::snprintf(said, sizeof(said), "mask must have at most %d bits for %s, got 0x%llx in mask[%d]",
                static_cast<int>(mask_lanes<T>()), cubecore::Element<T>::word,
                static_cast<unsigned long long>(high != 0 ? high : low), high != 0);
  cubecore_finding("parameter", call, said, &at);
}

// A mask as its caller has it: how many lanes of the wider of two types, or an array of bits.
template <typename T, typename U = T, typename M>
inline void set_given(const M mask, const char* call, const cubecore::Where& at) {
  using P = std::conditional_t<(sizeof(PrimT<T>) > sizeof(PrimT<U>)), PrimT<T>, PrimT<U>>;
  if constexpr (std::is_pointer_v<M>) {
    judge_bits<P>(call, mask[1], mask[0], at);
    set_mask(sizeof(P) >= 4 ? 0 : mask[1], mask[0], at);
  } else {
    const int64_t lanes = static_cast<int64_t>(mask), most = mask_lanes<P>();
    judge_lanes<P>(call, lanes, at);
    set_lanes(core_state().counts || (lanes >= 0 && lanes <= most) ? lanes : most, at);
  }
}

}  // namespace detail

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, CUBECORE_AT) {
  const bool all = (maskHigh & maskLow) == ~0ull;  // whatever the type: as ResetMask
  if (mode == MaskMode::NORMAL && !all)
    detail::judge_bits<PrimT<T>>("SetVectorMask", maskHigh, maskLow, at);
  detail::set_mask(maskHigh, maskLow, at);
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len, CUBECORE_AT) {
  if constexpr (mode == MaskMode::COUNTER)
    detail::set_mask(0, static_cast<uint64_t>(len), at);
  else
    detail::set_given<T>(len, "SetVectorMask", at);
}

inline void ResetMask(CUBECORE_AT) { detail::set_mask(~0ull, ~0ull, at); }
inline void SetMaskNorm(CUBECORE_AT) {
  detail::core_state().counts = false;
  cubecore::issue("asc_set_mask_norm", at);
}
inline void SetMaskCount(CUBECORE_AT) {
  detail::core_state().counts = true;
  cubecore::issue("asc_set_mask_count", at);
}

// No page has this class; page Mmad and public kernels call it. Uncertain beyond that.
class AscendCUtils {
 public:
  // CTRL[48]: 0 saturates floats, 1 keeps infinities (page Mmad).
  static void SetOverflow(uint64_t ctrlValue, CUBECORE_AT) {
    uint64_t word = static_cast<uint64_t>(cubecore::ask(0, "asc_get_ctrl", at));
    cubecore::issue("asc_set_ctrl", at, (word & ~(1ull << 48)) | (ctrlValue & 1) << 48);
  }
  template <typename T, bool isSetMask = true>
  static void SetMaskCount(CUBECORE_AT) {
    if constexpr (isSetMask) AscendC::SetMaskCount(at);
  }
  template <typename T, bool isSetMask = true>
  static void SetMaskNorm(CUBECORE_AT) {
    if constexpr (isSetMask) AscendC::SetMaskNorm(at);
  }
  template <typename T, bool isSetMask = true>
  static void SetMask(int32_t len, CUBECORE_AT) {
    if constexpr (isSetMask) detail::set_lanes(static_cast<uint64_t>(len), at);
  }
  template <typename T, bool isSetMask = true>
  static void SetMask(const uint64_t& maskHigh, const uint64_t& maskLow, CUBECORE_AT) {
    if constexpr (isSetMask) detail::set_mask(maskHigh, maskLow, at);
  }
  // Elements of a row of a fractal.
  template <typename T>
  static constexpr int32_t GetC0Count(const int32_t dtypeSize = sizeof(PrimT<T>)) {
    return static_cast<int32_t>(ONE_BLK_SIZE) / dtypeSize;
  }
  static constexpr int32_t GetC0Count(const int32_t dtypeSize) {
    return static_cast<int32_t>(ONE_BLK_SIZE) / dtypeSize;
  }
  // Bits of so many bytes.
  static constexpr int32_t GetBitSize(int32_t byteSize) { return byteSize * 8; }
  static int64_t GetRsvdCnt(CUBECORE_AT) { return cubecore::ask(0, "asc_get_rsvd_count", at); }
};

// Elements that the last GatherMask kept; no page has this name.
inline int64_t GetGatherMaskRemainCount(CUBECORE_AT) {
  return cubecore::ask(0, "asc_get_rsvd_count", at);
}

}  // namespace AscendC

inline void set_mask_norm(CUBECORE_AT) { AscendC::SetMaskNorm(at); }
inline void set_mask_count(CUBECORE_AT) { AscendC::SetMaskCount(at); }
inline void set_vector_mask(uint64_t high, uint64_t low, CUBECORE_AT) {
  AscendC::detail::set_mask(high, low, at);
}
