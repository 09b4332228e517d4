// The types of a Matmul object's operands. Pages: "Matmul使用说明" (MatmulType), IterateBatch
// (layouts), MatmulPolicy.
#pragma once

#include "cubecore/seam/enums.h"
#include "cubecore/seam/types.h"

namespace AscendC {

enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, VECTOR, SCALAR, ND_ALIGN, COLUMN_MAJOR };
enum class LayoutMode : int32_t { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };

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

// Page "MxMatmul场景": an operand of MxMatmul and its scales.
template <TPosition POSITION, TPosition SCALE_POSITION, CubeFormat FORMAT, typename TYPE,
          bool ISTRANS = false, TPosition SRCPOS = TPosition::GM, CubeFormat SCALE_FORMAT = FORMAT,
          bool SCALE_ISTRANS = ISTRANS, TPosition SCALE_SRCPOS = SRCPOS>
struct MatmulTypeWithScale
    : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LayoutMode::NONE, false, SRCPOS> {
  static constexpr TPosition scalePosition = SCALE_POSITION;
  static constexpr CubeFormat scaleFormat = SCALE_FORMAT;
  static constexpr bool isScaleTrans = SCALE_ISTRANS;
  static constexpr TPosition srcScalePos = SCALE_SRCPOS;
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
