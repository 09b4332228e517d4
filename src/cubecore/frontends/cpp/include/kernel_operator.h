// What kernels include. Page: every page of the class API names it.
#pragma once

#ifdef __NPU_HOST__
#error "kernel_operator.h is for kernels; host code includes register/op_def_registry.h"
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "cubecore/activations.h"
#include "cubecore/antiquant.h"
#include "cubecore/asc_dump.h"
#include "cubecore/batch_norm.h"
#include "cubecore/binary.h"
#include "cubecore/compare.h"
#include "cubecore/compound.h"
#include "cubecore/control.h"
#include "cubecore/convert.h"
#include "cubecore/copy.h"
#include "cubecore/cores.h"
#include "cubecore/debug.h"
#include "cubecore/dropout.h"
#include "cubecore/entry.h"
#include "cubecore/fill.h"
#include "cubecore/fixpipe.h"
#include "cubecore/gather.h"
#include "cubecore/hccl_tiling.h"
#include "cubecore/host.h"
#include "cubecore/intrinsic_sums.h"
#include "cubecore/intrinsics.h"
#include "cubecore/intrinsics_cube.h"
#include "cubecore/intrinsics_vector.h"
#include "cubecore/keywords.h"
#include "cubecore/layer_norm.h"
#include "cubecore/layer_norm_gradient.h"
#include "cubecore/library_steps.h"
#include "cubecore/lists.h"
#include "cubecore/load_data.h"
#include "cubecore/load_image.h"
#include "cubecore/macros.h"
#include "cubecore/math/all.h"
#include "cubecore/matmul/all.h"
#include "cubecore/mmad.h"
#include "cubecore/norms.h"
#include "cubecore/notices.h"
#include "cubecore/pipe.h"
#include "cubecore/quant.h"
#include "cubecore/reduce.h"
#include "cubecore/reductions.h"
#include "cubecore/softmax.h"
#include "cubecore/softmax_flash.h"
#include "cubecore/softmax_gradient.h"
#include "cubecore/sort.h"
#include "cubecore/sums.h"
#include "cubecore/system.h"
#include "cubecore/topk.h"
#include "cubecore/trans_data.h"
#include "cubecore/transpose.h"
#include "cubecore/transpose_nchw.h"
#include "cubecore/transpose_tiled.h"
#include "cubecore/unary.h"
#if __NPU_ARCH__ == 3510
#include "cubecore/functions_950.h"
#include "cubecore/mutex.h"
#include "cubecore/te/all.h"
#endif
#include "register/tilingdata_base.h"
