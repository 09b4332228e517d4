// Matrices turned round by a tiling. Pages of the high-level API: Transpose, "Transpose Tiling",
// and ConfusionTranspose as their former name.
#pragma once

#include "cubecore/basic/transpose.h"
#include "cubecore/host/workspaces.h"

// Host code or the kernel fills it: of two axes the first six are elements of a block, height,
// width, blocks of 16 rows, blocks from one column of blocks to the next, columns of blocks.
struct ConfusionTransposeTiling {
  uint32_t param0 = 0, param1 = 0, param2 = 0, param3 = 0, param4 = 0, param5 = 0;
  uint32_t param6 = 0, param7 = 0, param8 = 0, param9 = 0, param10 = 0, param11 = 0;
  uint32_t param12 = 0, param13 = 0, param14 = 0, param15 = 0, param16 = 0, param17 = 0;
};

namespace optiling {
using ::ConfusionTransposeTiling;
}
namespace AscendC {

namespace tiling {
using ::ConfusionTransposeTiling;
}

// --- host side

inline void GetTransposeTilingInfo(const TensorShape& srcShape, const uint32_t,
                                   const uint32_t typeSize, const uint32_t transposeTypeIn,
                                   ConfusionTransposeTiling& tiling) {
  tiling = ConfusionTransposeTiling();
  if (transposeTypeIn != static_cast<uint32_t>(TransposeType::TRANSPOSE_ND2ND_ONLY)) return;
  tiling.param0 = ONE_BLK_SIZE / typeSize;
  tiling.param1 = static_cast<uint32_t>(srcShape.GetDim(0));
  tiling.param2 = static_cast<uint32_t>(srcShape.GetDim(1));
  tiling.param3 = tiling.param1 / 16;
  tiling.param4 = tiling.param1;
  tiling.param5 = tiling.param2 / tiling.param0;
}
inline void GetConfusionTransposeTilingInfo(const TensorShape& srcShape,
                                            const uint32_t stackBufferSize, const uint32_t typeSize,
                                            const uint32_t transposeTypeIn,
                                            ConfusionTransposeTiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, transposeTypeIn, tiling);
}
inline void GetConfusionTransposeOnlyTilingInfo(const TensorShape& srcShape,
                                                const uint32_t stackBufferSize,
                                                const uint32_t typeSize,
                                                ConfusionTransposeTiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize,
                         static_cast<uint32_t>(TransposeType::TRANSPOSE_ND2ND_ONLY), tiling);
}
// Two axes need no workspace; a block stands for it, so that a tensor can be made.
inline void GetTransposeMaxMinTmpSize(const TensorShape&, const uint32_t, const uint32_t,
                                      uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = ONE_BLK_SIZE;
}
inline void GetConfusionTransposeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                               const uint32_t transposeTypeIn, uint32_t& maxValue,
                                               uint32_t& minValue) {
  GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, maxValue, minValue);
}

// --- kernel side

// Two axes, both of multiples of 16: columns of blocks one by one.
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      TransposeType transposeType, const ConfusionTransposeTiling& tiling,
                      CUBECORE_AT) {
  constexpr uint32_t size = sizeof(PrimT<T>), lanes = ONE_BLK_SIZE / size, rows = 16;
  static_assert(size == 2 || size == 4, "Transpose must take elements of 16 or 32 bits");
  if (transposeType != TransposeType::TRANSPOSE_ND2ND_ONLY)
    cubecore_refuse("Transpose.transposeType", "be TRANSPOSE_ND2ND_ONLY with a tiling", "another",
                    &at);
  uint32_t height = tiling.param1, width = tiling.param2;
  if (height % rows != 0 || width % rows != 0)
    cubecore_refuse("Transpose's height and width", "be multiples of 16",
                    detail::Digits(height % rows != 0 ? height : width).text, &at);
  uint32_t times = height / rows;  // both matrices are in UB: no more than a repeat takes
  TransDataTo5HDParams turns(false, false, static_cast<uint8_t>(times),
                             static_cast<uint16_t>(times == 1 ? 0 : rows / lanes),
                             static_cast<uint16_t>(times == 1 ? 0 : rows * width / lanes));
  for (uint32_t column = 0; column < width; column += lanes) {
    uint64_t targets[NCHW_CONV_ADDR_LIST_SIZE], sources[NCHW_CONV_ADDR_LIST_SIZE];
    constexpr uint32_t parts = rows / lanes;  // of a row of the result
    for (uint32_t n = 0; n < rows; ++n) {
      sources[n] = src[n * width + column].GetPhyAddr();
      targets[n] = dst[(column + n / parts) * height + n % parts * lanes].GetPhyAddr();
    }
    TransDataTo5HD<T>(targets, sources, turns, at);
  }
  detail::barrier(PIPE_V, at);
}
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const LocalTensor<uint8_t>&, TransposeType transposeType,
                      const ConfusionTransposeTiling& tiling, CUBECORE_AT) {
  Transpose(dst, src, transposeType, tiling, at);
}
template <typename T>
inline void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               TransposeType transposeType, const ConfusionTransposeTiling& tiling,
                               CUBECORE_AT) {
  Transpose(dst, src, transposeType, tiling, at);
}
template <typename T>
inline void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<uint8_t>&, TransposeType transposeType,
                               const ConfusionTransposeTiling& tiling, CUBECORE_AT) {
  Transpose(dst, src, transposeType, tiling, at);
}

}  // namespace AscendC
