// The scales of MxMatmul. Pages: SetTensorScaleA, SetTensorScaleB, "MxMatmul场景", Layout (ScaleAND,
// ScaleADN, ScaleBND, ScaleBDN).
#pragma once

#include "cubecore/matmul/operands.h"

namespace AscendC {

// The operands of a Matmul object whose policy may ask for scales: one for 32 elements of K, stored
// in pairs, as rows along K or, as B's without a transpose, as rows of pairs.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE, const auto& MM_CFG,
          bool SCALED>
class MatmulScales : public MatmulOperands<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG> {
  using Operands = MatmulOperands<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG>;

 public:
  void SetTensorScaleA(const GlobalTensor<fp8_e8m0_t>& gm, bool isTransposeScaleA = false,
                       CUBECORE_AT) {
    this->RequireBuffer("SetTensorScaleA", "gm", gm.GetPhyAddr(), at);
    call_.at[cubecore::MM_SCALE_A] = gm.address(0);
    call_.scales_trans[0] = isTransposeScaleA;
  }
  void SetTensorScaleB(const GlobalTensor<fp8_e8m0_t>& gm, bool isTransposeScaleB = false,
                       CUBECORE_AT) {
    this->RequireBuffer("SetTensorScaleB", "gm", gm.GetPhyAddr(), at);
    call_.at[cubecore::MM_SCALE_B] = gm.address(0);
    call_.scales_trans[1] = isTransposeScaleB;
  }

 protected:
  using Operands::call_;

  MatmulScales() {
    call_.scaled = SCALED;
    call_.at[cubecore::MM_SCALE_A] = call_.at[cubecore::MM_SCALE_B] = SCALED ? -1 : 0;
  }
  // Both are there.
  void RequireScales(const cubecore::Where& at) const {
    if constexpr (!SCALED) return;
    if (call_.at[cubecore::MM_SCALE_A] < 0 || call_.at[cubecore::MM_SCALE_B] < 0)
      cubecore_refuse("a Matmul object with MatmulWithScalePolicy",
                      "have the scales of SetTensorScaleA and SetTensorScaleB",
                      call_.at[cubecore::MM_SCALE_A] < 0 ? "none of A" : "none of B", &at);
  }
};

}  // namespace AscendC
