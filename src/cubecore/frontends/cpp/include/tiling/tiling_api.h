// What host code asks before a launch. Pages: the tiling side of the high-level API.
#pragma once

#include <iostream>  // programs that include it print, without including this

#include "cubecore/host/workspaces.h"
#include "cubecore/op_host/services/matmul_tiling.h"
#include "cubecore/op_host/types.h"
#include "platform/platform_ascendc.h"
#include "securec.h"  // programs that include it copy by its names

namespace AscendC {
using TensorDataType = ge::DataType;  // page TensorDataType
}
