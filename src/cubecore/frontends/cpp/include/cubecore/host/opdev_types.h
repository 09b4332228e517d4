// Numbers of 16 bits by the names of the framework's host code, which public programs use beside a
// kernel's own. No page has them.
#pragma once

#include "cubecore/seam/types.h"

namespace op {

using fp16_t = half;
using bfloat16 = bfloat16_t;

}  // namespace op
