// Ways to compute that Div, Exp, Ln, Sqrt and the logarithms offer. Pages: Div, Exp, Ln, Log, Log2,
// Log10, Sqrt. Results are rounded correctly in all of them; FTZ_FALSE keeps subnormal numbers.
#pragma once

#include "cubecore/reg/types.h"

namespace AscendC {
enum class DivAlgo {
  INTRINSIC,
  DIFF_COMPENSATION,
  PRECISION_1ULP_FTZ_TRUE,
  PRECISION_0ULP_FTZ_TRUE,
  PRECISION_0ULP_FTZ_FALSE,
  PRECISION_1ULP_FTZ_FALSE,
};
enum class SqrtAlgo {
  INTRINSIC,
  FAST_INVERSE,
  PRECISION_1ULP_FTZ_TRUE,
  PRECISION_0ULP_FTZ_FALSE,
  PRECISION_1ULP_FTZ_FALSE,
};
using RsqrtAlgo = SqrtAlgo;
#define CUBECORE_ALGORITHM(NAME) \
  enum class NAME { INTRINSIC, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
CUBECORE_ALGORITHM(ExpAlgo)
CUBECORE_ALGORITHM(LnAlgo)
CUBECORE_ALGORITHM(LogAlgo)
CUBECORE_ALGORITHM(Log2Algo)
CUBECORE_ALGORITHM(Log10Algo)
CUBECORE_ALGORITHM(ReciprocalAlgo)
#undef CUBECORE_ALGORITHM

template <typename T>
constexpr bool cubecore_keeps_subnormals(T algo) {
  if constexpr (std::is_same_v<T, DivAlgo>)
    return algo == DivAlgo::PRECISION_0ULP_FTZ_FALSE || algo == DivAlgo::PRECISION_1ULP_FTZ_FALSE;
  else if constexpr (std::is_same_v<T, SqrtAlgo>)
    return algo == SqrtAlgo::FAST_INVERSE || algo == SqrtAlgo::PRECISION_0ULP_FTZ_FALSE ||
           algo == SqrtAlgo::PRECISION_1ULP_FTZ_FALSE;
  else
    return algo == T::PRECISION_1ULP_FTZ_FALSE;
}

namespace Reg {
using AscendC::DivAlgo;
using AscendC::ExpAlgo;
using AscendC::LnAlgo;
using AscendC::Log10Algo;
using AscendC::Log2Algo;
using AscendC::LogAlgo;
using AscendC::SqrtAlgo;
struct DivSpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  bool precisionMode = false;
  DivAlgo algo = DivAlgo::INTRINSIC;
};
struct SqrtSpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  bool precisionMode = false;
  SqrtAlgo algo = SqrtAlgo::INTRINSIC;
};
struct ExpSpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  ExpAlgo algo = ExpAlgo::INTRINSIC;
};
struct LnSpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  LnAlgo algo = LnAlgo::INTRINSIC;
};
struct LogSpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  LogAlgo algo = LogAlgo::INTRINSIC;
};
struct Log2SpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  Log2Algo algo = Log2Algo::INTRINSIC;
};
struct Log10SpecificMode {
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  Log10Algo algo = Log10Algo::INTRINSIC;
};
}  // namespace Reg
}  // namespace AscendC
