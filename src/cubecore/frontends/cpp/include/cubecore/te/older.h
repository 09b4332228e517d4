// Names of the older layouts in kernels that use the tensor API, whose pages have them, too: the
// same functions. Included where a file names both.
#pragma once

#include "cubecore/te/shapes.h"

namespace AscendC {

using Te::Coord;
using Te::MakeCoord;
using Te::MakeShape;
using Te::MakeStride;
using Te::Shape;
using Te::Stride;

}  // namespace AscendC
