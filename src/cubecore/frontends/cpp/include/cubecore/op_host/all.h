// Everything that the files of an op_host include, under each of its names.
#pragma once

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "cubecore/host/hccl_tiling.h"
#include "cubecore/op_host/registry.h"
#include "cubecore/op_host/services/log.h"
#include "cubecore/op_host/services/matmul_tiling.h"
// Sizes that host code asks for are computed beside the kernels' functions, whose tensors are no
// names of a host: public host code declares its own.
#define CUBECORE_PART 0
#define LocalTensor HiddenLocalTensor
#define GlobalTensor HiddenGlobalTensor
#define half HiddenHalf
#define bfloat16_t HiddenBfloat16
#include "cubecore/library/dropout.h"
#include "cubecore/library/norms/batch_norm.h"
#include "cubecore/library/norms/layer_norm.h"
#include "cubecore/library/norms/rms_norm.h"
#include "cubecore/library/reduce_axis.h"
#include "cubecore/library/softmax/flash.h"
#include "cubecore/library/softmax/gradient.h"
#include "cubecore/library/softmax/softmax.h"
#include "cubecore/library/topk.h"
#include "cubecore/library/trans_data.h"
#include "cubecore/library/transpose_tiled.h"
#include "tiling/tiling_api.h"
#undef bfloat16_t
#undef half
#undef GlobalTensor
#undef LocalTensor
#undef CUBECORE_PART
#include "cubecore/op_host/template_arguments.h"  // in the place of the kernels' empty macros
#include "platform/platform_ascendc.h"
#include "register/tilingdata_base.h"
#include "securec.h"

#define FMK_FUNC_HOST_VISIBILITY  // words of the vendor's build
#define FMK_FUNC_DEV_VISIBILITY

using platform_ascendc::NpuArch;  // as public op_hosts write it

namespace optiling {
using std::map;  // files of public op_hosts use them without their namespace
using std::string;
using std::vector;
}  // namespace optiling
