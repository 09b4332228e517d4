// The high-level mathematics.
#pragma once

#include "cubecore/math/cumsum.h"
#include "cubecore/math/error_function.h"
#include "cubecore/math/exponential.h"
#include "cubecore/math/gamma_function.h"
#include "cubecore/math/power.h"
#include "cubecore/math/remainder.h"
#include "cubecore/math/rounding.h"
#include "cubecore/math/trigonometry.h"
