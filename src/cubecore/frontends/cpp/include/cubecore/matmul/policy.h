// Policies of a Matmul object. Page MatmulPolicy.
#pragma once

#include "cubecore/seam/types.h"

namespace AscendC {

// Page MatmulPolicy. NBuffer33MatmulPolicy says how L1 is used, which the tiling decides here;
// those of triangles leave out the tiles below or above the diagonal; that with scales is 950's.
enum class Triangle { NONE, UPPER, LOWER };

namespace Impl::Detail {
#define CUBECORE_POLICY(NAME, PROVIDED, TRIANGLE, SCALED)    \
  template <const auto&, typename...>                        \
  struct NAME {                                              \
    static constexpr bool provided = PROVIDED;               \
    static constexpr bool scaled = SCALED;                   \
    static constexpr Triangle triangle = Triangle::TRIANGLE; \
  };
CUBECORE_POLICY(MatmulPolicy, true, NONE, false)
CUBECORE_POLICY(TrianUpperMatmulPolicy, true, UPPER, false)
CUBECORE_POLICY(TrianLowerMatmulPolicy, true, LOWER, false)
CUBECORE_POLICY(NBuffer33MatmulPolicy, true, NONE, false)
CUBECORE_POLICY(MatmulWithScalePolicy, cubecore::is_950, NONE, true)
CUBECORE_POLICY(SplitMMatmulPolicy, false, NONE, false)
CUBECORE_POLICY(SplitNMatmulPolicy, false, NONE, false)
#undef CUBECORE_POLICY
}  // namespace Impl::Detail

// No page has it: the type in which products of a type are added.
template <typename T>
struct GetMmDstType {
  using Type = std::conditional_t<cubecore::is_real<T>, float, int32_t>;
};

}  // namespace AscendC
