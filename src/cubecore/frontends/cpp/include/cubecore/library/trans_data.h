// Volumes between NCDHW and formats whose channels, and samples, stand in blocks of 16. Pages of
// the high-level API: TransData, GetTransDataMaxMinTmpSize.
#pragma once

#include "cubecore/basic/transpose.h"
#include "cubecore/host/workspaces.h"
#include "cubecore/math/steps.h"

namespace AscendC {

struct TransDataConfig {
  DataFormat srcFormat;
  DataFormat dstFormat;
};
template <typename T, typename U>
struct TransDataParams {
  T srcLayout;
  U dstLayout;
};

namespace detail {

// Rows of a channel are padded to blocks; 16 of them make a matrix of HW by 16, twice over for what
// takes the place of channels that are not there.
constexpr uint32_t padded_area(uint32_t area) { return (area + 15) / 16 * 16; }
constexpr uint32_t volume_bytes(uint32_t area) { return 2 * 16 * 2 * padded_area(area); }

// The numbers of a volume, and where its blocks of channels lie in the other format.
struct Volume {
  uint32_t n, c, d, area;
  bool by_samples;  // FRACTAL_Z_3D

  uint32_t blocks() const { return (c + 15) / 16; }
  uint32_t samples() const { return (n + 15) / 16; }
  uint32_t channel(uint32_t sample, uint32_t number, uint32_t depth) const {
    return ((sample * c + number) * d + depth) * padded_area(area);
  }
  uint32_t block(uint32_t sample, uint32_t depth, uint32_t number) const {
    if (!by_samples) return ((sample * d + depth) * blocks() + number) * area * 16;
    return ((depth * blocks() + number) * area * samples() + sample / 16) * 256 + sample % 16 * 16;
  }
  // Blocks of 32 B between two of the rows of 16 channels.
  uint32_t gap() const { return by_samples ? samples() * 16 - 1 : 0; }
};

template <typename L>
inline Volume volume_of(const L& layout, DataFormat other) {
  const auto shape = layout.GetShape();
  auto extent = [](const auto& dimension) { return static_cast<uint32_t>(dimension); };
  return {extent(std::get<0>(shape)), extent(std::get<1>(shape)), extent(std::get<2>(shape)),
          extent(std::get<3>(shape)) * extent(std::get<4>(shape)),
          other == DataFormat::FRACTAL_Z_3D};
}

// One matrix at a time, between the rows of its channels and the rows of its points.
template <typename T>
class Points {
 public:
  Points(const LocalTensor<T>& given, const Volume& volume, const cubecore::Where& at)
      : matrix_(given), spare_(given[padded_area(volume.area) * 16]), volume_(volume), at_(at) {
    const uint32_t padded = padded_area(volume.area), left = padded - volume.area;
    zero(spare_, padded);
    if (left != 0) zero(matrix_[volume.area * 16], left * 16);
  }
  void zero(const LocalTensor<T>& to, uint32_t count) const {
    Duplicate(to.template ReinterpretCast<int16_t>(), int16_t(0), static_cast<int32_t>(count), at_);
    barrier(PIPE_V, at_);
  }
  void to_blocks(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t sample,
                 uint32_t depth, uint32_t number) const {
    turn(src, sample, depth, number, true);
    move(dst[volume_.block(sample, depth, number)], matrix_, volume_.gap(), 0);
  }
  void to_channels(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t sample,
                   uint32_t depth, uint32_t number) const {
    move(matrix_, src[volume_.block(sample, depth, number)], 0, volume_.gap());
    turn(dst, sample, depth, number, false);
  }

 private:
  void turn(const LocalTensor<T>& channels, uint32_t sample, uint32_t depth, uint32_t number,
            bool gathers) const {
    constexpr uint32_t most = 255;
    const uint32_t padded = padded_area(volume_.area), all = padded / 16;
    for (uint32_t done = 0; done < all; done += most) {
      const uint32_t times = all - done < most ? all - done : most;
      uint64_t rows[NCHW_CONV_ADDR_LIST_SIZE], points[NCHW_CONV_ADDR_LIST_SIZE];
      for (uint32_t n = 0; n < NCHW_CONV_ADDR_LIST_SIZE; ++n) {
        const uint32_t channel = number * 16 + n;
        const LocalTensor<T> row = channel < volume_.c
                                       ? channels[volume_.channel(sample, channel, depth)]
                                       : spare_[gathers ? 0 : n * padded];
        rows[n] = row[done * 16].GetPhyAddr();
        points[n] = matrix_[(done * 16 + n) * 16].GetPhyAddr();
      }
      const uint16_t along = times == 1 ? 0 : 1, down = times == 1 ? 0 : 16;
      TransDataTo5HDParams p(false, false, static_cast<uint8_t>(times), gathers ? down : along,
                             gathers ? along : down);
      gathers ? TransDataTo5HD<T>(points, rows, p, at_) : TransDataTo5HD<T>(rows, points, p, at_);
    }
    barrier(PIPE_V, at_);
  }
  // The rows of the points, by the gaps behind each.
  void move(const LocalTensor<T>& to, const LocalTensor<T>& from, uint32_t dst_gap,
            uint32_t src_gap) const {
    constexpr uint32_t most = 4095;
    for (uint32_t done = 0; done < volume_.area; done += most) {
      const uint32_t left = volume_.area - done;
      cubecore::issue("asc_copy_ub2ub", at_, plain(to[done * 16 * (dst_gap + 1)]),
                      plain(from[done * 16 * (src_gap + 1)]), left < most ? left : most, 1, src_gap,
                      dst_gap);
    }
    barrier(PIPE_V, at_);
  }

  LocalTensor<T> matrix_, spare_;
  Volume volume_;
  cubecore::Where at_;
};

}  // namespace detail

// --- host side

template <typename P, typename D>
inline bool GetTransDataMaxMinTmpSize(const P&, const TensorShape& srcShape,
                                      const TensorShape& dstShape, const D,
                                      const TransDataConfig& config, uint32_t& maxValue,
                                      uint32_t& minValue) {
  const bool gathers = config.srcFormat == DataFormat::NCDHW;
  const TensorShape& volume = gathers ? srcShape : dstShape;
  if (volume.GetDimNum() != 5) return false;
  maxValue = minValue =
      detail::volume_bytes(static_cast<uint32_t>(volume.GetDim(3) * volume.GetDim(4)));
  return true;
}

// --- kernel side

// Uncertain: channels and samples that fill the last blocks are 0.
template <const TransDataConfig& config, typename T, typename U, typename S>
inline void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                      const LocalTensor<uint8_t>& sharedTmpBuffer,
                      const TransDataParams<U, S>& params, CUBECORE_AT) {
  constexpr bool gathers = config.srcFormat == DataFormat::NCDHW;
  constexpr DataFormat other = gathers ? config.dstFormat : config.srcFormat;
  static_assert((gathers || config.dstFormat == DataFormat::NCDHW) &&
                    (other == DataFormat::NDC1HWC0 || other == DataFormat::FRACTAL_Z_3D),
                "TransData must turn NCDHW into NDC1HWC0 or FRACTAL_Z_3D, or back");
  static_assert(sizeof(PrimT<T>) == 2, "TransData must take elements of 16 bits, got others");
  detail::Volume volume;
  if constexpr (gathers)
    volume = detail::volume_of(params.srcLayout, other);
  else
    volume = detail::volume_of(params.dstLayout, other);
  const LocalTensor<uint8_t> given = detail::required(
      "TransData.sharedTmpBuffer", sharedTmpBuffer, detail::volume_bytes(volume.area), at);
  const detail::Points<T> points(given.template ReinterpretCast<T>(), volume, at);
  if (gathers && volume.by_samples && volume.n % 16 != 0)
    points.zero(dstTensor, volume.d * volume.blocks() * volume.area * volume.samples() * 256);
  for (uint32_t sample = 0; sample < volume.n; ++sample)
    for (uint32_t depth = 0; depth < volume.d; ++depth)
      for (uint32_t number = 0; number < volume.blocks(); ++number) {
        if constexpr (gathers)
          points.to_blocks(dstTensor, srcTensor, sample, depth, number);
        else
          points.to_channels(dstTensor, srcTensor, sample, depth, number);
      }
}
template <const TransDataConfig& config, typename T, typename U, typename S>
inline void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                      const TransDataParams<U, S>& params, CUBECORE_AT) {
  TransData<config>(dstTensor, srcTensor, LocalTensor<uint8_t>(), params, at);
}

}  // namespace AscendC
