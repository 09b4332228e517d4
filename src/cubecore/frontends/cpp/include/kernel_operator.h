// What kernels include. Page: every page of the class API names it. In angle brackets, as some of
// these are compiled with what is generated into them (README.md), not as they lie beside this file.
#pragma once

#ifdef __NPU_HOST__
#error "kernel_operator.h is for kernels; host code includes register/op_def_registry.h"
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <cubecore/basic/binary.h>
#include <cubecore/basic/compare.h>
#include <cubecore/basic/convert.h>
#include <cubecore/basic/copy.h>
#include <cubecore/basic/gather.h>
#include <cubecore/basic/multi_instruction.h>
#include <cubecore/basic/reduce.h>
#include <cubecore/basic/sort.h>
#include <cubecore/basic/transpose.h>
#include <cubecore/basic/unary.h>
#include <cubecore/cube/fixpipe.h>
#include <cubecore/cube/load_data.h>
#include <cubecore/cube/load_image.h>
#include <cubecore/cube/mmad.h>
#include <cubecore/host/hccl_tiling.h>
#include <cubecore/host/program.h>
#include <cubecore/intrinsics/common.h>
#include <cubecore/intrinsics/cube.h>
#include <cubecore/intrinsics/dump.h>
#include <cubecore/intrinsics/sums.h>
#include <cubecore/intrinsics/vector.h>
#include <cubecore/library/activations.h>
#include <cubecore/library/antiquant.h>
#include <cubecore/library/dropout.h>
#include <cubecore/library/fill.h>
#include <cubecore/library/internal_steps.h>
#include <cubecore/library/norms/batch_norm.h>
#include <cubecore/library/norms/layer_norm.h>
#include <cubecore/library/norms/layer_norm_gradient.h>
#include <cubecore/library/norms/rms_norm.h>
#include <cubecore/library/quant.h>
#include <cubecore/library/reduce_axis.h>
#include <cubecore/library/softmax/flash.h>
#include <cubecore/library/softmax/gradient.h>
#include <cubecore/library/softmax/softmax.h>
#include <cubecore/library/sum_rows.h>
#include <cubecore/library/topk.h>
#include <cubecore/library/trans_data.h>
#include <cubecore/library/transpose_nchw.h>
#include <cubecore/library/transpose_tiled.h>
#include <cubecore/math/all.h>
#include <cubecore/matmul/all.h>
#include <cubecore/seam/entry.h>
#include <cubecore/seam/keywords.h>
#include <cubecore/seam/macros.h>
#include <cubecore/sync/cores.h>
#include <cubecore/sync/notices.h>
#include <cubecore/sync/pipe.h>
#include <cubecore/system/control.h>
#include <cubecore/system/core_index.h>
#include <cubecore/system/lists.h>
#include <cubecore/system/prints.h>
#if __NPU_ARCH__ == 3510
#include <cubecore/basic/bitwise_3510.h>
#include <cubecore/cube/bit_modes.h>
#include <cubecore/cube/mx.h>
#include <cubecore/math/limits.h>
#include <cubecore/math/sort_config.h>
#include <cubecore/system/atomics.h>
#include <cubecore/system/cache_modes.h>
#include <cubecore/system/copy_dimensions.h>
#include <cubecore/system/copy_loops.h>
#include <cubecore/system/ssbuffer.h>
#include <cubecore/sync/mutex.h>
#include <cubecore/te/all.h>
#endif
#include "register/tilingdata_base.h"
