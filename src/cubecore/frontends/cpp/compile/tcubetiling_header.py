"""The header of TCubeTiling, made of the fields that tilings have in Python."""

from dataclasses import fields

from cubecore.tiling.model.tcubetiling import TCubeTiling

NAME = "cubecore_tcubetiling.h"
"""The name under which other headers include it."""
_HEAD = """// TCubeTiling for host code and for kernels. Page "TCubeTiling结构体".
#pragma once
#ifndef CUBECORE_TCUBETILING
#define CUBECORE_TCUBETILING

#include <cstddef>
#include <cstdint>
#include <cstring>

#define CUBECORE_FIELD(NAME)                     \\
  int32_t NAME = 0;                              \\
  void set_##NAME(int32_t value) { NAME = value; } \\
  int32_t get_##NAME() const { return NAME; }

namespace AscendC::tiling {

struct TCubeTiling {
"""
_TAIL = """  size_t GetDataSize() const { return sizeof(*this); }
  void SaveToBuffer(void* to, size_t most) const {
    std::memcpy(to, this, most < sizeof(*this) ? most : sizeof(*this));
  }
};

}  // namespace AscendC::tiling

using AscendC::tiling::TCubeTiling;

#endif
"""


def tcubetiling_header() -> str:
    """Return the text of the header."""
    lines = [f"  CUBECORE_FIELD({each.name})\n" for each in fields(TCubeTiling)]
    return _HEAD + "".join(lines) + _TAIL
