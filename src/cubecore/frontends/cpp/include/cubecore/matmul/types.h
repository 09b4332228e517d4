// The types of a Matmul object's operands. Pages: "Matmul使用说明" (MatmulType), IterateBatch
// (layouts), MatmulCallBackFunc, MatmulPolicy.
#pragma once

#include "cubecore/enums.h"
#include "cubecore/types.h"

enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, VECTOR, SCALAR, ND_ALIGN, COLUMN_MAJOR };
enum class LayoutMode : int32_t { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };

namespace AscendC {

using ::CubeFormat;
using ::LayoutMode;

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false,
          TPosition SRCPOS = TPosition::GM>
struct MatmulType {
  static constexpr TPosition pos = POSITION;
  static constexpr CubeFormat format = FORMAT;
  using T = TYPE;
  static constexpr bool isTrans = ISTRANS;
  static constexpr LayoutMode layout = LAYOUT;
  static constexpr bool ibShare = IBSHARE;
  static constexpr TPosition srcPos = SRCPOS;
};

// Page MatmulCallBackFunc: functions of the user's own for the moves; they are not called here.
template <void (*DataCopyOut)(const void*, const LocalTensor<int8_t>&, const void*, const uint64_t,
                              const uint64_t) = nullptr,
          void (*CopyA1)(const LocalTensor<int8_t>&, const void*, int, int, int, int,
                         const uint64_t, const uint64_t) = nullptr,
          void (*CopyB1)(const LocalTensor<int8_t>&, const void*, int, int, int, int,
                         const uint64_t, const uint64_t) = nullptr>
struct MatmulCallBackFunc {
  static constexpr bool given = DataCopyOut != nullptr || CopyA1 != nullptr || CopyB1 != nullptr;
};

// What such a function for C is told, as the page has it.
struct DataCopyOutParams {
  uint16_t cBurstNum = 0, burstLen = 0, srcStride = 0;
  uint32_t dstStride = 0;
  uint16_t oriNSize = 0;
  bool enUnitFlag = false;
  uint64_t quantScalar = 0, cbufWorkspaceAddr = 0;
};

// Bytes of a block, by which the examples of the Matmul pages count strides.
constexpr int32_t DEFAULT_C0_SIZE = 32;

// Page GetOffsetC.
struct MatrixOffset {
  int32_t offset;
  int32_t row, col;
  int32_t height, width;
};

}  // namespace AscendC
