// Tilings of the normalisations: host code fills them, kernels hand them on. Rows are taken one by
// one here, so that of the fields only the lengths matter. Pages of the high-level API: "LayerNorm
// Tiling", "LayerNormGrad Tiling", "LayerNormGradBeta Tiling", "DeepNorm Tiling", "BatchNorm
// Tiling", "GroupNorm Tiling", "RmsNorm Tiling".
#pragma once

#include <cstdint>

// Fields of several tilings: of scratch memory, and of rounds over the rows.
#define CUBECORE_ROUNDS                                                                         \
  uint32_t tmpBufSize = 0, oneTmpSize = 0, firstTmpStartPos = 0, secondTmpStartPos = 0,         \
      thirdTmpStartPos = 0, loopRound = 0, inputRoundSize = 0, inputTailSize = 0,               \
      inputTailPos = 0, meanVarRoundSize = 0, meanVarTailSize = 0, meanVarTailPos = 0;

struct RmsNormTiling {
  uint32_t bLength = 0, sLength = 0, hLength = 0, originalHLength = 0;
  float reciprocalOfHLength = 0;
  uint32_t mainBshLength = 0, mainBsLength = 0, mainBsLengthAlign = 0, loopRound = 0,
      inputTailPos = 0, tailBshLength = 0, tailBsLength = 0;
};

struct LayerNormTiling {
  uint32_t bLength = 0, sLength = 0, hLength = 0, originalHLength = 0, inputXSize = 0,
      meanVarSize = 0, numberOfTmpBuf = 0, meanTmpTensorPos = 0, meanTmpTensorSize = 0,
      varianceTmpTensorPos = 0, varianceTmpTensorSize = 0;
  CUBECORE_ROUNDS
  uint32_t bshCurLength = 0;
  uint32_t bsCurLength = 0;
  float lastDimValueBack = 0;
};

struct LayerNormSeparateTiling {
  uint32_t aLength = 0, rLength = 0, halfAddRepeatTimes = 0, rHeadLength = 0;
  float k2Rec = 0;
  float k2RRec = 0;
  uint32_t inputXSize = 0, meanVarSize = 0, numberOfTmpBuf = 0, varianceTmpTensorPos = 0,
      varianceTmpTensorSize = 0;
  CUBECORE_ROUNDS
  uint32_t arCurLength = 0;
  uint32_t aCurLength = 0;
  float rValueBack = 0;
};

struct LayerNormGradTiling {
  uint32_t stackBufferSize = 0, bLength = 0, sLength = 0, hLength = 0, originalHLength = 0,
      oneCalSize = 0, nohCalSize = 0, loopNum = 0, tailSize = 0, nohTailSize = 0,
      tmpTensorBSHPos = 0, tmpTensorBSHSize = 0, pdVarTensorPos = 0, pdVarTensorSize = 0,
      pdMeanTensorPos = 0, pdMeanTensorSize = 0, x1TensorPos = 0, x1TensorSize = 0, x2TensorPos = 0,
      x2TensorSize = 0, x3TensorPos = 0, x3TensorSize = 0, tmpTensorPos = 0, tmpTensorSize = 0,
      tmpTensor1Pos = 0, tmpTensor1Size = 0, tmpTensor2Pos = 0, tmpTensor2Size = 0,
      lastDimValueBack = 0, lastDimValueBackMulTwo = 0;
};

struct LayerNormGradBetaTiling {
  uint32_t stackBufferSize = 0, bLength = 0, sLength = 0, hLength = 0, originalHLength = 0,
      bshLength = 0, bsLength = 0, oneCalSize = 0, numberOfTmpBuf = 0, loopRound = 0,
      inputTailSize = 0, inputTailPos = 0, bsTailSize = 0, bshCurLength = 0, bsCurLength = 0,
      gammaTempTensorPos = 0, betaTempTensorPos = 0, inputDyTmpTensorPos = 0,
      resForGammaTmpTensorPos = 0, reserved = 0;
};

struct BatchNormTiling {
  uint32_t originalBLength = 0, meanVarSize = 0, meanTmpTensorPos = 0, varianceTmpTensorPos = 0,
      tmpBufSize = 0, oneTmpSize = 0, firstTmpStartPos = 0, secondTmpStartPos = 0,
      thirdTmpStartPos = 0, loopRound = 0, inputTailSize = 0, inputTailPos = 0, meanVarTailSize = 0,
      meanVarTailPos = 0, bshCurLength = 0, shCurLength = 0;
  float firstDimValueBack = 0;
  uint32_t castHalfRepStride = 0, shCurLengthBlockNum = 0, castHalfOutRepStride = 0;
};

struct DeepNormTiling {
  uint32_t bLength = 0, sLength = 0, hLength = 0, originalHLength = 0, inputXSize = 0,
      meanVarSize = 0, numberOfTmpBuf = 0, meanTmpTensorPos = 0, meanTmpTensorSize = 0,
      varianceTmpTensorPos = 0, varianceTmpTensorSize = 0;
  CUBECORE_ROUNDS
  uint32_t bshCurLength = 0;
  uint32_t bsCurLength = 0;
  float lastDimValueBack = 0;
};

struct GroupNormTiling {
  uint32_t n = 0, c = 0, hw = 0, g = 0, d = 0, hwAlignSize = 0, dhwAlignSize = 0, inputXSize = 0,
      meanVarSize = 0, numberOfTmpBuf = 0, meanTmpTensorPos = 0, meanTmpTensorSize = 0,
      varianceTmpTensorPos = 0, varianceTmpTensorSize = 0;
  CUBECORE_ROUNDS
  uint32_t bshCurLength = 0;
  uint32_t bsCurLength = 0;
  float factor = 0;
  bool smallShape = 0;
};

#undef CUBECORE_ROUNDS

namespace optiling {
using ::BatchNormTiling, ::DeepNormTiling, ::GroupNormTiling, ::LayerNormGradBetaTiling,
    ::LayerNormGradTiling, ::LayerNormSeparateTiling, ::LayerNormTiling, ::RmsNormTiling;
}  // namespace optiling

namespace AscendC::tiling {
using ::BatchNormTiling, ::DeepNormTiling, ::GroupNormTiling, ::LayerNormGradBetaTiling,
    ::LayerNormGradTiling, ::LayerNormSeparateTiling, ::LayerNormTiling, ::RmsNormTiling;
}  // namespace AscendC::tiling
