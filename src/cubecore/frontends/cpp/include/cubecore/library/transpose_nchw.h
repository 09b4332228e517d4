// Axes [C, H * W] and [H * W, C] of images turned into each other. Page: Transpose (with
// sharedTmpBuffer), as two turns by TransDataTo5HD with one element of 16 or 32 runs behind one
// another between them. The sequence is cubecore's own; the workspace is the page's.
#pragma once

#include <string>

#include "cubecore/basic/transpose.h"

namespace AscendC::detail {

template <typename T>
class Images {
 public:
  static constexpr uint32_t size = sizeof(PrimT<T>), lanes = ONE_BLK_SIZE / size;
  static constexpr uint32_t runs = size == 1 ? 32 : 16, parts = runs / lanes;
  static_assert(size == 1 || size == 2 || size == 4,
                "Transpose must take elements of 8, 16 or 32 bits, got others");

  Images(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
         const TransposeParamsExt& p, const cubecore::Where& at)
      : dst_(dst.GetPhyAddr()),
        src_(src.GetPhyAddr()),
        tmp_(tmp.GetPhyAddr()),
        channels_(p.cSize),
        points_(p.hSize * p.wSize),
        images_(p.nSize),
        last_(p.transposeType == TransposeType::TRANSPOSE_NCHW2NHWC),
        at_(at) {
    Require(tmp.GetSize());
  }

  // A block of each run with C points holds `lanes` points of a channel, or of a point's channels.
  void Turn() const {
    const uint32_t all = images_ * points_ / lanes;
    if (channels_ == 0) return;
    for (uint32_t first = 0; first < all; first += runs) {
      const uint32_t count = all - first < runs ? all - first : runs;
      Gather(first, count);
      barrier(PIPE_V, at_);
      Scatter(first, count);
      barrier(PIPE_V, at_);
    }
  }

 private:
  void Require(uint64_t bytes) const {
    constexpr uint32_t most = 4095;
    if (channels_ > most || points_ > most)
      cubecore_refuse(channels_ > most ? "Transpose.cSize" : "Transpose.hSize * wSize",
                      "be at most 4095", Digits(channels_ > most ? channels_ : points_).text, &at_);
    if (points_ % lanes != 0)
      cubecore_refuse("Transpose.hSize * wSize", "be whole blocks of 32 B",
                      Digits(points_ * size, " B").text, &at_);
    const uint64_t units = last_ ? channels_ + 2 : 2 * channels_ + 1;
    const uint64_t need = units * runs * ONE_BLK_SIZE;
    if (images_ * points_ * channels_ != 0 && bytes < need)
      cubecore_refuse("Transpose.sharedTmpBuffer", ("have " + std::to_string(need) + " B").c_str(),
                      Digits(bytes, " B").text, &at_);
  }

  // Where a run of C blocks begins in the tensor of images, and a block in it.
  uint64_t Block(bool of_channel, uint64_t base, uint32_t run, uint32_t block) const {
    const uint32_t element = run * lanes, image = element / points_, point = element % points_;
    const uint64_t start = uint64_t(image) * points_ * channels_;
    const uint64_t at = of_channel ? start + uint64_t(block) * points_ + point
                                   : start + uint64_t(point) * channels_ + block * lanes;
    return base + at * size;
  }
  // Element `number` of all runs behind one another, in `parts` blocks.
  uint64_t Row(uint32_t number, uint32_t part) const {
    return tmp_ + (uint64_t(number) * parts + part) * ONE_BLK_SIZE;
  }
  // A block of the workspace for what no run takes.
  uint64_t Spare(uint32_t number) const {
    return Row(channels_ * lanes, 0) + uint64_t(number) * ONE_BLK_SIZE;
  }

  void Gather(uint32_t first, uint32_t count) const {
    uint64_t sources[runs], targets[runs];
    for (uint32_t block = 0; block < channels_; ++block) {
      for (uint32_t run = 0; run < runs; ++run) {
        sources[run] = Block(last_, src_, first + (run < count ? run : 0), block);
        targets[run] = Row(block * lanes + run / parts, run % parts);
      }
      Transfer(targets, sources);
    }
  }

  // The result's element `number` of a run lies in this row: runs hold points of a channel, or
  // channels of a point.
  uint32_t Origin(uint32_t number) const {
    return last_ ? number % channels_ * lanes + number / channels_
                 : number % lanes * channels_ + number / lanes;
  }

  void Scatter(uint32_t first, uint32_t count) const {
    uint64_t sources[runs], targets[runs];
    const uint32_t all = channels_ * lanes;
    for (uint32_t number = 0; number < all; number += runs)
      for (uint32_t part = 0; part < parts; ++part) {
        if (part * lanes >= count) continue;
        bool spares = false;
        for (uint32_t n = 0; n < runs; ++n) {
          const uint32_t run = part * lanes + n / parts, block = number / lanes + n % parts;
          const bool taken = run < count && block < channels_;
          spares |= !taken;
          sources[n] = Row(Origin(number + n < all ? number + n : 0), part);
          targets[n] = taken ? Block(!last_, dst_, first + run, block) : Spare(n);
        }
        Transfer(targets, sources);
        if (spares) barrier(PIPE_V, at_);  // the next one may write them, too
      }
  }

  // Rows of `runs` elements from as many blocks.
  void Transfer(const uint64_t* targets, const uint64_t* sources) const {
    constexpr uint32_t half = NCHW_CONV_ADDR_LIST_SIZE;
    for (uint32_t to = 0; to < runs / half; ++to)
      for (uint32_t from = 0; from < runs / half; ++from)
        TransDataTo5HD<T>(targets + half * to, sources + half * from,
                          TransDataTo5HDParams(from == 1, to == 1, 1, 0, 0), at_);
  }

  uint64_t dst_, src_, tmp_;
  uint32_t channels_, points_, images_;
  bool last_;
  const cubecore::Where& at_;
};

}  // namespace AscendC::detail

namespace AscendC {

// The form with a workspace: blocks of 16 by 16, and images.
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const LocalTensor<uint8_t>& sharedTmpBuffer,
                      const TransposeParamsExt& transposeParams, CUBECORE_AT) {
  switch (transposeParams.transposeType) {
    case TransposeType::TRANSPOSE_TYPE_NONE:
      return;
    case TransposeType::TRANSPOSE_NCHW2NHWC:
    case TransposeType::TRANSPOSE_NHWC2NCHW:
      detail::Images<T>(dst, src, sharedTmpBuffer, transposeParams, at).Turn();
      return;
    case TransposeType::TRANSPOSE_ND2ND_B16:
      if (sizeof(PrimT<T>) != 2)
        cubecore_refuse("Transpose", "take elements of 16 bits with TRANSPOSE_ND2ND_B16",
                        "others", &at);
      Transpose(dst, src, at);
      return;
    default:
      cubecore_refuse("Transpose.transposeType",
                      "be TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC or TRANSPOSE_NHWC2NCHW",
                      "another", &at);
  }
}

}  // namespace AscendC
