"""The header of register instructions, written from their declarations: C++, older C++ and C.

Of ``Add``, a binary instruction that C calls ``asc_add``, it has::

    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U>
    inline void Add(U& dst, const U& src0, const U& src1, const MaskReg& mask, CUBECORE_AT) {
      detail::binary("Add", dst, src0, src1, mask, at);
    }

and outside of the namespaces::

    template <typename T>
    inline void asc_add(vector_of<T>& dst, const vector_of<T>& src0, const vector_of<T>& src1,
                        const vector_bool& mask, CUBECORE_AT) {
      AscendC::Reg::detail::binary("Add", dst, src0, src1, mask, at);
    }
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from cubecore.isa.vector.registers import catalogue
from cubecore.isa.vector.registers.masks import PATTERNS
from cubecore.isa.vector.registers.moves import LOADS, STORES
from cubecore.isa.vector.registers.operation import Form, RegisterOperation

REGISTERS_NAME = "cubecore_registers.h"
"""The file's name beside a precompiled header."""
_HEAD = """// Generated from the declarations of register instructions, isa/vector/registers.
#pragma once

#include "cubecore/reg/issue.h"

"""
_MASKED = "const MaskReg& mask"
_PARAMETERS: Mapping[Form, tuple[str, str, str]] = MappingProxyType(
    {
        Form.UNARY: ("unary", "{R}& dst, const {R}& src", "dst, src"),
        Form.BINARY: (
            "binary",
            "{R}& dst, const {R}& src0, const {R}& src1",
            "dst, src0, src1",
        ),
        Form.SCALAR: ("scalar", "{R}& dst, const {R}& src, const S& value", "dst, src, value"),
    }
)
"""By form: the function of issue.h, the parameters, and the arguments of the call."""


def registers_header() -> str:
    """Return the header."""
    body = [*_enumeration("LoadDist", "DIST_", LOADS), *_enumeration("StoreDist", "DIST_", STORES)]
    body += [*_enumeration("MaskPattern", "", PATTERNS), _MOVES]
    c_api = [_C_HEAD]
    for operation in catalogue.operations().values():
        if operation.form in _PARAMETERS:
            body += [_function(name, operation) for name in (operation.name, *operation.older)]
            c_api.append(_c_function(operation))
    return "".join([_HEAD, _IN, *body, _OUT, *c_api])


_IN = "namespace AscendC {\nnamespace Reg {\n\n"
_OUT = "}  // namespace Reg\n}  // namespace AscendC\n\n"


def _enumeration(
    name: str, prefix: str, words: Mapping[str, object] | tuple[str, ...]
) -> Iterator[str]:
    """Yield an enumeration and the words that a call passes for its values."""
    yield f"enum class {name} {{ " + ", ".join(f"{prefix}{word}" for word in words) + " };\n"
    quoted = ", ".join(f'"{word}"' for word in words)
    yield "namespace detail {\n"
    yield f"inline constexpr const char* words_of_{name}[] = {{{quoted}}};\n}}\n"


_MOVES = """
template <typename T, MaskPattern pattern = MaskPattern::ALL,
          const RegTrait& trait = RegTraitNumOne>
inline MaskReg CreateMask(CUBECORE_AT) {
  auto& entry = cubecore::register_entry("CreateMask", detail::width_of<T>(), at);
  entry.mode = detail::words_of_MaskPattern[static_cast<int>(pattern)];
  MaskReg mask;
  detail::made(mask, entry);
  return mask;
}

template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P>
inline void LoadAlign(U& dst, const P* from, CUBECORE_AT) {
  detail::load(detail::words_of_LoadDist[static_cast<int>(dist)], dst, from, at);
}

template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P>
inline void StoreAlign(P* to, const U& src, const MaskReg& mask, CUBECORE_AT) {
  detail::store(detail::words_of_StoreDist[static_cast<int>(dist)], to, src, mask, at);
}

"""
_C_HEAD = """template <typename T>
using vector_of = AscendC::Reg::RegTensor<T>;

template <typename T>
inline void asc_loadalign(vector_of<T>& dst, const T* from, CUBECORE_AT) {
  AscendC::Reg::detail::load("NORM", dst, from, at);
}
template <typename T>
inline void asc_storealign(T* to, const vector_of<T>& src, const vector_bool& mask, CUBECORE_AT) {
  AscendC::Reg::detail::store("NORM", to, src, mask, at);
}

"""


def _function(name: str, operation: RegisterOperation) -> str:
    function, parameters, arguments = _PARAMETERS[operation.form]
    scalar = ", typename S" if operation.form is Form.SCALAR else ""
    return (
        "template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, "
        f"typename U{scalar}>\n"
        f"inline void {name}({parameters.format(R='U')}, {_MASKED}, CUBECORE_AT) {{\n"
        f'  detail::{function}("{operation.name}", {arguments}, mask, at);\n}}\n'
    )


def _c_function(operation: RegisterOperation) -> str:
    function, parameters, arguments = _PARAMETERS[operation.form]
    scalar = ", typename S" if operation.form is Form.SCALAR else ""
    return (
        f"template <typename T{scalar}>\n"
        f"inline void {operation.c_api}({parameters.format(R='vector_of<T>')}, "
        f"const vector_bool& mask, CUBECORE_AT) {{\n"
        f'  AscendC::Reg::detail::{function}("{operation.name}", {arguments}, mask, at);\n}}\n'
    )
