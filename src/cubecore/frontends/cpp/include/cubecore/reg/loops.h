// Loops of vector functions that the unit does not run by itself: the scanner finds them
// (rewriting/vector_loops.py).
#pragma once

#include "cubecore/seam/notes.h"

namespace cubecore {

// Notes a loop, by what keeps the unit from running it.
inline void software_loop(const char* got, const Where& at) {
  char said[224];
  std::snprintf(said, sizeof(said),
                "it must have the form for (uint16_t i = 0; i < n; ++i), without jumps, to be a "
                "hardware loop, got %s; it runs as a software loop, whose extra time is not "
                "counted",
                got);
  AscendC::detail::note("vf-loop", "loop", said, at);
}

}  // namespace cubecore
