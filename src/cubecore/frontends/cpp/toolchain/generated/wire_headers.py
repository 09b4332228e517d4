"""Headers of what Python and C++ exchange, written from the records and numbers of `wire`.

    class Read(ctypes.Structure):
        _fields_ = (("behind", c_uint32), ("addresses", c_int64 * 8))

becomes

    struct Read {
      uint32_t behind;
      int64_t addresses[8];
    };

and an enumeration `enum Asks : uint32_t { ENDED = 0, MISS = 1 };`.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import fields
from enum import IntEnum
from textwrap import wrap
from typing import Any

from cubecore.frontends.cpp import matmul_wire, wire
from cubecore.tiling.model.tcubetiling import TCubeTiling

_WRITTEN = "// Written from {source}.py, which describes the fields.\n#pragma once\n\n{includes}"
_INTEGERS = "#include <cstdint>\n"
TCUBETILING_NAME = "cubecore_tcubetiling.h"
"""The name under which other headers include it."""
_TILING_HEAD = """// TCubeTiling for host code and for kernels. Page "TCubeTiling结构体".
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
_TILING_TAIL = """  size_t GetDataSize() const { return sizeof(*this); }
  void SaveToBuffer(void* to, size_t most) const {
    std::memcpy(to, this, most < sizeof(*this) ? most : sizeof(*this));
  }
};

}  // namespace AscendC::tiling

using AscendC::tiling::TCubeTiling;

#endif
"""
LAUNCH_NAME = "cubecore_launch.h"
"""The name under which other headers include it."""
_TYPES: dict[Any, str] = {
    ctypes.c_char: "char",
    ctypes.c_char_p: "const char*",
    ctypes.c_double: "double",
    ctypes.c_int32: "int32_t",
    ctypes.c_int64: "int64_t",
    ctypes.c_uint32: "uint32_t",
    ctypes.c_uint64: "uint64_t",
    matmul_wire.Tiling: "AscendC::tiling::TCubeTiling",
    wire.Read: "Read",
}
_CONSTANTS = (
    *("MAGIC", "HOST_CODE", "CAPACITY", "MOST_OPERANDS", "MOST_ADDRESSES", "MOST_READS"),
    *("MOST_STEPS", "BOX_BYTES"),
)


_ENUMERATIONS = (
    (wire.Asks, "uint32_t", ""),
    (wire.Tells, "uint32_t", "TELLS_"),
    (wire.SimtKinds, "uint32_t", "SIMT_"),
    (wire.Commands, "uint64_t", ""),
    (wire.CallFlags, "uint32_t", ""),
    (wire.Ends, "int32_t", ""),
)


def wire_headers() -> Iterator[tuple[str, str]]:
    """Yield the headers: their names, and their texts."""
    yield TCUBETILING_NAME, tcubetiling_header()
    yield LAUNCH_NAME, launch_header()
    numbers = "".join(f"constexpr uint32_t {n} = {getattr(wire, n)}u;\n" for n in _CONSTANTS)
    of_threads = wire.SimtFinding, wire.ThreadCounts
    records = map(record, (wire.Step, wire.Read, wire.Records, wire.Head, wire.Box, *of_threads))
    parts = (numbers, *(enumeration(*each) for each in _ENUMERATIONS), *records)
    text = _namespace("", "\n".join(parts))
    yield "cubecore_records.h", _WRITTEN.format(source="wire", includes=_INTEGERS) + text
    operands = ", ".join(f"MM_{name.upper()}" for name in (*matmul_wire.OPERANDS, "operands"))
    parts = (
        f"enum MatmulOperand {{ {operands} }};\n",
        enumeration(matmul_wire.MatmulBits, "int32_t", "MM_"),
        enumeration(matmul_wire.MatmulAsk, "uint32_t", "MM_"),
        record(matmul_wire.MatmulCall),
    )
    text = _namespace("cubecore", "\n".join(parts))
    includes = f'{_INTEGERS}\n#include "cubecore_tcubetiling.h"\n'
    yield "cubecore_matmul_call.h", _WRITTEN.format(source="matmul_wire", includes=includes) + text


def tcubetiling_header() -> str:
    """Return the header of TCubeTiling, made of the fields that tilings have in Python."""
    lines = [f"  CUBECORE_FIELD({each.name})\n" for each in fields(TCubeTiling)]
    return _TILING_HEAD + "".join(lines) + _TILING_TAIL


def launch_header() -> str:
    """Return the header of what a core sees of its launch."""
    launch = _namespace("cubecore", record(wire.Launch))
    return _WRITTEN.format(source="wire", includes=_INTEGERS) + launch


def record(kind: type[ctypes.Structure]) -> str:
    """Return a struct of C++ with a record's fields."""
    declared: Any = kind._fields_
    lines = [f"struct {kind.__name__} {{"]
    for name, field in declared:
        if field in _TYPES:
            lines.append(f"  {_TYPES[field]} {name};")
        else:
            lines.append(f"  {_TYPES[field._type_]} {name}[{field._length_}];")
    return "\n".join((*lines, "};\n"))


def enumeration(kind: type[IntEnum], base: str, prefix: str = "") -> str:
    """Return an enumeration of C++ whose names need none before them."""
    members = ", ".join(f"{prefix}{each.name}\0=\0{each.value}" for each in kind)
    text = "\n".join(wrap(members, 96, initial_indent="  ", subsequent_indent="  "))
    return f"enum {kind.__name__} : {base} {{\n{text}\n}};\n".replace("\0", " ")


def _namespace(name: str, text: str) -> str:
    """Return a text in a namespace, without a name if it is for one unit alone."""
    head = f"namespace {name} {{".replace("  ", " ")
    return f"\n{head}\n\n{text}\n}}  // namespace {name}".rstrip() + "\n"
