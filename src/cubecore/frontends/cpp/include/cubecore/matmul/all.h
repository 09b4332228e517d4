// What lib/matmul_intf.h provides.
#pragma once

#include "cubecore/matmul/registration.h"
