// The copy of several dimensions from global memory to UB, of architecture 3510 alone. Pages:
// "DataCopy（GMToUB多维数据搬运NDDMA）", NdDmaDci, asc_ndim_pad_count_config,
// asc_set_ndim_pad_count, asc_set_ndim_pad_value. Older names: MultiCopyParams and its kin.
#pragma once

#include "cubecore/basic/copy.h"

namespace AscendC {

struct NdDmaConfig {
  static constexpr uint16_t unsetPad = 0xffff;
  bool isNearestValueMode = false;
  uint16_t loopLpSize = unsetPad;
  uint16_t loopRpSize = unsetPad;
  bool ascOptimize = false;
};
inline constexpr NdDmaConfig kDefaultNdDmaConfig = {false, 0xffff, 0xffff, false};
template <uint8_t dim>
struct NdDmaLoopInfo {
  static_assert(dim >= 1 && dim <= 5, "NdDmaLoopInfo must have 1 to 5 dimensions, got others");
  uint64_t loopSrcStride[dim] = {0};
  uint32_t loopDstStride[dim] = {0};
  uint32_t loopSize[dim] = {0};
  uint8_t loopLpSize[dim] = {0};
  uint8_t loopRpSize[dim] = {0};
};
template <typename T, uint8_t dim>
struct NdDmaParams {
  NdDmaLoopInfo<dim> loopInfo;
  T constantValue;
};
using MultiCopyConfig = NdDmaConfig;
inline constexpr MultiCopyConfig kDefaultMultiCopyConfig = kDefaultNdDmaConfig;
template <uint8_t dim>
using MultiCopyLoopInfo = NdDmaLoopInfo<dim>;
template <typename T, uint8_t dim>
using MultiCopyParams = NdDmaParams<T, dim>;

template <typename T, uint8_t dim, const NdDmaConfig& config = kDefaultNdDmaConfig>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const NdDmaParams<T, dim>& params, CUBECORE_AT) {
  const NdDmaLoopInfo<dim>& given = params.loopInfo;
  uint64_t from[5] = {1}, to[5] = {1}, size[5] = {1, 1, 1, 1, 1}, left[5] = {}, right[5] = {};
  for (uint32_t n = 0; n < dim; ++n) {
    from[n] = given.loopSrcStride[n];
    to[n] = given.loopDstStride[n];
    size[n] = given.loopSize[n];
    left[n] = config.loopLpSize == NdDmaConfig::unsetPad ? given.loopLpSize[n] : config.loopLpSize;
    right[n] = config.loopRpSize == NdDmaConfig::unsetPad ? given.loopRpSize[n] : config.loopRpSize;
  }
  using cubecore::named;
  cubecore::issue("copy_gm_to_ubuf_nd", at, dst.pointer(), src.pointer(),
                  named("nearest", config.isNearestValueMode),
                  named("constant", detail::bits_of(params.constantValue)), named("size0", size[0]),
                  named("size1", size[1]), named("size2", size[2]), named("size3", size[3]),
                  named("size4", size[4]), named("src_stride0", from[0]),
                  named("src_stride1", from[1]), named("src_stride2", from[2]),
                  named("src_stride3", from[3]), named("src_stride4", from[4]),
                  named("dst_stride0", to[0]), named("dst_stride1", to[1]),
                  named("dst_stride2", to[2]), named("dst_stride3", to[3]),
                  named("dst_stride4", to[4]), named("left0", left[0]), named("left1", left[1]),
                  named("left2", left[2]), named("left3", left[3]), named("left4", left[4]),
                  named("right0", right[0]), named("right1", right[1]), named("right2", right[2]),
                  named("right3", right[3]), named("right4", right[4]));
}

// The copy's cache always holds what global memory has.
inline void NdDmaDci(CUBECORE_AT) { (void)at; }

}  // namespace AscendC

union asc_ndim_pad_count_config {
  uint64_t config = 0;
  struct {
    uint8_t loop1_lp_count, loop1_rp_count, loop2_lp_count, loop2_rp_count;
    uint8_t loop3_lp_count, loop3_rp_count, loop4_lp_count, loop4_rp_count;
  };
};

inline void asc_set_ndim_pad_count(const asc_ndim_pad_count_config& c, CUBECORE_AT) {
  cubecore::issue_raw("asc_set_ndim_pad_count", at, c.loop1_lp_count, c.loop1_rp_count,
                      c.loop2_lp_count, c.loop2_rp_count, c.loop3_lp_count, c.loop3_rp_count,
                      c.loop4_lp_count, c.loop4_rp_count);
}

// Values of 8 to 32 bits; those of floats of 8 bits come as int8_t.
template <typename T>
inline void asc_set_ndim_pad_value(T value, CUBECORE_AT) {
  static_assert(sizeof(T) <= 4, "asc_set_ndim_pad_value.pad_value must have at most 32 bits");
  cubecore::issue_raw("asc_set_ndim_pad_value", at, AscendC::detail::bits_of(value));
}
