// Findings of calls of a Matmul object that break a rule of their pages. Pages: those of the
// members.
#pragma once

#include "cubecore/seam/abi.h"

namespace AscendC {

namespace detail {

inline bool is_named(const char* call, const char* name) { return std::strcmp(call, name) == 0; }

template <typename... V>
inline void found_in_call(const cubecore::Where& at, const char* call, const char* format,
                          V... values) {
  char said[200];
  if constexpr (sizeof...(V) == 0)
    std::snprintf(said, sizeof(said), "%s", format);
  else
    std::snprintf(said, sizeof(said), format, values...);
  cubecore_finding("parameter", call, said, &at);
}

}  // namespace detail

}  // namespace AscendC
