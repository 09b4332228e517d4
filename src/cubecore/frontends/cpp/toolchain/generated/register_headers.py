"""The header of register instructions, written from their declarations: C++, older C++ and C.

Of ``Add``, a binary instruction that C calls ``asc_add``, it has in AscendC::Reg::

    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U>
    inline void Add(U& dst, const U& src0, const U& src1, const MaskReg& mask, CUBECORE_AT) {
      detail::lanes<mode>("Add", dst, mask, at, src0, src1);
    }

and outside of the namespaces::

    template <typename T>
    inline void asc_add(vector_of<T>& dst, const vector_of<T>& src0, const vector_of<T>& src1,
                        const vector_bool& mask, CUBECORE_AT) {
      AscendC::Reg::detail::lanes<...ZEROING>("Add", dst, mask, at, src0, src1);
    }

What has parameters of its own (loads, stores, casts, masks) is written by hand in
`cubecore/reg/moves.h` and `cubecore/reg/convert.h`, over the enumerations that are written here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from cubecore.frontends.cpp.files import INCLUDE
from cubecore.isa import catalogue as catalogue_of_memory
from cubecore.isa.vector.elementwise.convert import Convert
from cubecore.isa.vector.registers.c_api.conversions import C_TYPES, conversions
from cubecore.isa.vector.registers.c_api.modes import MODES
from cubecore.isa.vector.registers.c_api.moves import MOVES, MoveFamily
from cubecore.isa.vector.registers.c_api.names import c_names
from cubecore.isa.vector.registers.operation import Form, RegisterOperation
from cubecore.isa.vector.registers.operations import catalogue
from cubecore.isa.vector.registers.operations.convert import LAYOUTS, ROUNDINGS, SATURATIONS
from cubecore.isa.vector.registers.operations.masks import PATTERNS
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES

_HEAD = """// Generated from the declarations of register instructions, isa/vector/registers.
#pragma once

#include "cubecore/reg/issue.h"

"""
_IN = "namespace AscendC {\nnamespace Reg {\n\n"
_OUT = "}  // namespace Reg\n}  // namespace AscendC\n\n"
_BY_HAND = frozenset({"DuplicateLane", "Squeeze", "GatherMask"})
"""Names whose parameters in C++ are others than their form's."""
_ZERO = "AscendC::Reg::MaskMergeMode::ZEROING"


class _Shape:
    """The writing of a form: parameters behind dst, and what is passed; `{R}` is a register."""

    def __init__(self, parameters: str, passed: str, *, scalar: bool = False) -> None:
        self.parameters, self.passed, self.scalar = parameters, passed, scalar


_SHAPES: Mapping[Form, _Shape] = MappingProxyType(
    {
        Form.UNARY: _Shape("const {R}& src", "src"),
        Form.BINARY: _Shape("const {R}& src0, const {R}& src1", "src0, src1"),
        Form.SCALAR: _Shape("const {R}& src, const S& value", "src", scalar=True),
        Form.TERNARY: _Shape("const {R}& src0, const {R}& src1", "src0, src1, dst"),
        Form.AXPY: _Shape("const {R}& src, const S& value", "src, dst", scalar=True),
    }
)


_OLDER_MOVES = MappingProxyType(
    {
        "LoadAlign": "DataCopy",
        "StoreAlign": "DataCopy",
        "LoadUnAlignPre": "DataCopyUnAlignPre",
        "LoadUnAlign": "DataCopyUnAlign",
        "StoreUnAlign": "DataCopyUnAlign",
        "StoreUnAlignPost": "DataCopyUnAlignPost",
    }
)
"""Moves whose names in the namespace MicroAPI were others, with the same parameters."""
_FUNCTION = re.compile(
    r"^template <[^;{}]*?>\ninline void (\w+)\(.*?(?:\{\}|^\})\n", re.MULTILINE | re.DOTALL
)


def _older_moves() -> Iterator[str]:
    """Yield the functions of moves by their older names."""
    folder = INCLUDE / "cubecore" / "reg"
    text = "".join((folder / name).read_text("utf-8") for name in ("moves.h", "indexed.h"))
    for match in _FUNCTION.finditer(text):
        older = _OLDER_MOVES.get(match[1])
        if older is not None:
            yield re.sub(rf"\b{match[1]}\b", older, match[0])


def registers_header() -> str:
    """Return the header."""
    body = [*_enumeration("LoadDist", "DIST_", LOADS), *_enumeration("StoreDist", "DIST_", STORES)]
    body += [
        *_enumeration("MaskPattern", "", PATTERNS),
        *_enumeration("RegLayout", "", LAYOUTS, _UNKNOWN),
    ]
    body += [*_enumeration("SatMode", "", SATURATIONS), _casts()]
    c_api = ['#include "cubecore/reg/c_api.h"\n\n', *_c_families(), *_c_conversions()]
    for operation in catalogue.operations().values():
        shape = _SHAPES.get(operation.form)
        if shape is not None:
            names = (operation.name, *operation.older)
            body += [_function(each, operation, shape) for each in names if each not in _BY_HAND]
            if operation.c_api:
                c_api.append(_c_function(operation, shape))
    return "".join([_HEAD, _IN, *body, _OUT, *c_api, _IN, *_older_moves(), _OUT])


def calls_of_2201(names: Iterable[str]) -> Iterator[str]:
    """Yield what refuses the calls of 2201 on addresses, of names that registers have, too."""
    by_hand = (INCLUDE / "cubecore" / "reg" / "c_api.h").read_text("utf-8")
    known = {*c_names(), *re.findall(r"\b(asc_\w+)\(", by_hand)}
    for name in names:
        if name in known:
            said = f"{name} takes registers on architecture 3510, got addresses in UB; {_LOAD_THEM}"
            for parameters, first in _ADDRESSES.items():
                yield f"template <{parameters}, typename... A>\n"
                yield f"inline void {name}({first}, A&&...) {{\n"
                yield f'  static_assert(sizeof(P) == 0, "{said}");\n}}\n'


_ADDRESSES = {
    "typename P": "P*",
    "cubecore::Mem mem, typename P": "const cubecore::Array<mem, P>&",
}
"""First arguments that are addresses, by what their template takes: pointers and arrays."""
_LOAD_THEM = "load them by asc_loadalign in a function with __simd_vf__"


_UNKNOWN = ", UNKNOWN = -1"
"""An enumerator without a word: what it stands for is the callee's."""


def _enumeration(name: str, prefix: str, words: Iterable[str], more: str = "") -> Iterator[str]:
    """Yield an enumeration and the words that a call passes for its values."""
    named = ", ".join(f"{prefix}{word}" for word in words)
    yield f"enum class {name} {{ {named}{more} }};\n"
    quoted = ", ".join(f'"{word}"' for word in words)
    yield "namespace detail {\n"
    yield f"inline constexpr const char* words_of_{name}[] = {{{quoted}}};\n"
    yield "}  // namespace detail\n"


def _c_conversions() -> Iterator[str]:
    """Yield a macro over the C API's conversions, such as asc_float2int16_rna_sat_v2."""
    yield "#define CUBECORE_C_CAST(NAME, FROM, TO, MODE) \\\n"
    yield "  inline void NAME(vector_of<TO>& dst, const vector_of<FROM>& src, \\\n"
    yield "                   const vector_bool& mask, CUBECORE_AT) { \\\n"
    yield "    namespace reg = AscendC::Reg::detail; \\\n"
    yield '    auto& entry = reg::of_types<vector_of<TO>, vector_of<FROM>>("Cast", MODE, at); \\\n'
    yield "    entry.mask = mask.value; \\\n    reg::read(entry, src); \\\n"
    yield "    reg::made(entry, dst); \\\n  }\n"
    for name in conversions():
        types = (C_TYPES[each][1] for each in (name.source, name.result))
        yield f'CUBECORE_C_CAST({name.name}, {", ".join(types)}, "{name.mode}")\n'
    yield "#undef CUBECORE_C_CAST\n\n"


_MACROS: Mapping[str, str] = MappingProxyType(
    {
        "Compare": "COMPARE",
        "Truncate": "ROUND",
        "Reduce": "REDUCE",
        "ReduceDataBlock": "REDUCE",
        "PairReduceElem": "REDUCE",
        "Histograms": "HISTOGRAM",
        "SqueezeCounted": "SQUEEZE",
    }
)
"""The macros of `cubecore/reg/c_api.h` that make the names of an instruction."""
_MOVE_MACROS: Mapping[str, str] = MappingProxyType(
    {"LoadAlign": "LOAD", "StoreAlign": "STORE", "LoadMask": "MASK_LOAD", "StoreMask": "MASK_STORE"}
)
_LANE_BITS = (8, 16, 32, 64)


def _c_families() -> Iterator[str]:
    """Yield the names of the C API whose functions the macros of `cubecore/reg/c_api.h` make."""
    for operation, macro in _MACROS.items():
        for name, mode in MODES[operation]:
            yield f'CUBECORE_C_{macro}({name}, "{operation}", "{mode}")\n'
    for name, mode in MODES["Compares"]:
        yield f'CUBECORE_C_COMPARE_SCALAR({name}, "Compares", "{mode}")\n'
    for move in MOVES:
        if move.operation in _MOVE_MACROS and not move.moved:
            macro = _MOVE_MACROS[move.operation]
            yield f"CUBECORE_C_{macro}({move.name}, {move.after}, {_mode_of(move)})\n"
    used = dict.fromkeys((*_MACROS.values(), "COMPARE_SCALAR", *_MOVE_MACROS.values()))
    yield "".join(f"#undef CUBECORE_C_{macro}\n" for macro in used) + "\n"


def _mode_of(move: MoveFamily) -> str:
    """Return a distribution in C++: its word, or the choice of one by the width of lanes."""
    if "{" not in move.mode:
        return f'"{move.mode}"'
    known = LOADS if move.operation.startswith("Load") else STORES
    words = (move.mode.format(lane=bits, element=bits) for bits in _LANE_BITS)
    quoted = ", ".join(f'"{word}"' if word in known else '""' for word in words)
    chooser = "by_width<P>" if "{element}" in move.mode else "by_lane<U>"
    return f"cubecore::{chooser}({quoted})"


def _casts_of_memory() -> str:
    """Return the conversions that the instructions on UB have: pairs of source and destination."""
    pairs = (
        (made.src_type.name, made.dst_type.name)
        for made in catalogue_of_memory.instructions().values()
        if issubclass(made, Convert)
    )
    return ", ".join(f'{{"{source}", "{target}"}}' for source, target in pairs)


def _casts() -> str:
    """Return the words of a conversion by its layout, saturation and rounding."""
    rows = [
        "{" + ", ".join(f'"{layout}.{saturation}.{rounding}"' for rounding in ROUNDINGS) + "}"
        for layout in LAYOUTS
        for saturation in SATURATIONS
    ]
    count = len(SATURATIONS)
    blocks = (", ".join(rows[n : n + count]) for n in range(0, len(rows), count))
    words = ", ".join(f"{{{block}}}" for block in blocks)
    size = f"[{len(LAYOUTS)}][{count}][{len(ROUNDINGS)}]"
    truncations = ", ".join(f'"{rounding}"' for rounding in ROUNDINGS)
    return (
        f"namespace detail {{\ninline constexpr const char* words_of_cast{size} = {{{words}}};\n"
        f"inline constexpr const char* words_of_rounding[] = {{{truncations}}};\n"
        f"inline constexpr const char* casts_of_memory[][2] = {{{_casts_of_memory()}}};\n"
        "}  // namespace detail\n"
    )


def _function(name: str, operation: RegisterOperation, shape: _Shape) -> str:
    """Return a function; a scalar's type stands before the mode, and may be left out."""
    function = "with_scalar" if shape.scalar else "lanes"
    value = "value, " if shape.scalar else ""
    body = (
        f"inline void {name}(U& dst, {shape.parameters.format(R='U')}, const MaskReg& mask, "
        f"CUBECORE_AT) {{\n"
        f'  detail::{function}<mode>("{operation.name}", dst, mask, at, '
        f"{value}{shape.passed});\n}}\n"
    )
    mode = "auto mode = MaskMergeMode::ZEROING"
    if not shape.scalar:
        return f"template <typename T = DefaultType, {mode}, typename U>\n{body}"
    return (
        f"template <typename T = DefaultType, typename S, {mode}, typename U>\n{body}"
        f"template <typename T, auto mode, typename U, typename S>\n{body}"
    )


def _c_function(operation: RegisterOperation, shape: _Shape) -> str:
    scalar = ", typename S" if shape.scalar else ""
    value = "value, " if shape.scalar else ""
    function = "with_scalar" if shape.scalar else "lanes"
    return (
        f"template <typename T{scalar}>\n"
        f"inline void {operation.c_api}(vector_of<T>& dst, "
        f"{shape.parameters.format(R='vector_of<T>')}, const vector_bool& mask, CUBECORE_AT) {{\n"
        f'  AscendC::Reg::detail::{function}<{_ZERO}>("{operation.name}", dst, mask, at, '
        f"{value}{shape.passed});\n}}\n"
    )
