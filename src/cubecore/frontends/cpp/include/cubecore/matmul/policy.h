// Policies of a Matmul object. Page MatmulPolicy.
#pragma once

#include "cubecore/seam/types.h"

namespace AscendC {

// Page MatmulPolicy. NBuffer33MatmulPolicy says how L1 is used, which the tiling decides here;
// those of triangles leave out the tiles below or above the diagonal; others are of other chips.
enum class Triangle { NONE, UPPER, LOWER };

namespace Impl::Detail {
#define CUBECORE_POLICY(NAME, PROVIDED, TRIANGLE)            \
  template <const auto&, typename...>                        \
  struct NAME {                                              \
    static constexpr bool provided = PROVIDED;               \
    static constexpr Triangle triangle = Triangle::TRIANGLE; \
  };
CUBECORE_POLICY(MatmulPolicy, true, NONE)
CUBECORE_POLICY(TrianUpperMatmulPolicy, true, UPPER)
CUBECORE_POLICY(TrianLowerMatmulPolicy, true, LOWER)
CUBECORE_POLICY(NBuffer33MatmulPolicy, true, NONE)
CUBECORE_POLICY(MatmulWithScalePolicy, false, NONE)
CUBECORE_POLICY(SplitMMatmulPolicy, false, NONE)
CUBECORE_POLICY(SplitNMatmulPolicy, false, NONE)
#undef CUBECORE_POLICY
}  // namespace Impl::Detail

// No page has it: the type in which products of a type are added.
template <typename T>
struct GetMmDstType {
  using Type = std::conditional_t<cubecore::is_real<T>, float, int32_t>;
};

}  // namespace AscendC
