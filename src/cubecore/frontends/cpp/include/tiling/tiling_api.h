// What host code asks before a launch. Pages: the tiling side of the high-level API.
#pragma once

#include <iostream>  // programs that include it print, without including this

#include "cubecore/host/workspaces.h"
#include "cubecore/op_host/services/matmul_tiling.h"
#include "cubecore/op_host/types.h"
#include "cubecore/math/sort_config.h"
#include "platform/platform_ascendc.h"
#include "securec.h"  // programs that include it copy by its names

namespace AscendC {
using TensorDataType = ge::DataType;  // page TensorDataType

// Page GetSortMaxMinTmpSize: more than the least helps nothing.
inline void GetSortMaxMinTmpSize(const TensorShape& srcShape, TensorDataType valueType,
                                 TensorDataType, bool, const SortConfig&, uint32_t& maxValue,
                                 uint32_t& minValue) {
  const auto count = static_cast<uint64_t>(srcShape.GetShapeSize());
  const auto each = static_cast<uint64_t>(ge::GetSizeByDataType(valueType));
  minValue = maxValue = static_cast<uint32_t>(cubecore::sort_bytes(count, each));
}
}
