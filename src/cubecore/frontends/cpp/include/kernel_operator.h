// What kernels include. Page: every page of the class API names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cubecore/binary.h"
#include "cubecore/copy.h"
#include "cubecore/entry.h"
#include "cubecore/keywords.h"
#include "cubecore/pipe.h"
#include "cubecore/system.h"
