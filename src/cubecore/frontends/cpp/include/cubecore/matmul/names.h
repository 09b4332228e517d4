// Names that the headers of Matmul declare outside of every namespace; kernels without these headers
// may have their own.
#pragma once

#include "cubecore/matmul/types.h"

using AscendC::CubeFormat;
using AscendC::LayoutMode;
