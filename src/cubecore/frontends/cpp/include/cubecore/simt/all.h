// What code of threads includes, by any name. Page: SIMT programming.
#pragma once

#include <cubecore_thread_math.h>

#include <cubecore/simt/atomics.h>
#include <cubecore/simt/cache.h>
#include <cubecore/simt/constants.h>
#include <cubecore/simt/identity.h>
#include <cubecore/simt/launch.h>
#include <cubecore/simt/older.h>
#include <cubecore/simt/small_floats.h>
#include <cubecore/simt/sync.h>
#include <cubecore/simt/vectors.h>
#include <cubecore/simt/warp.h>
