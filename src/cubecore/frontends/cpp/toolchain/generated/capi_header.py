"""The header of the C API, written from the declarations of instructions."""

import re
from collections.abc import Iterator

from cubecore.frontends.capi.calls.binding import CallForm, forms
from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts
from cubecore.frontends.cpp.toolchain.generated.register_headers import calls_of_2201
from cubecore.isa.catalogue import instructions, spellings
from cubecore.isa.declare import common_3510
from cubecore.isa.declare.instruction import Instruction, Mem

_HEAD = """// Written from cubecore's declarations: the C API's functions on architecture {arch},
// and instructions by their own names.
#pragma once

#include "cubecore/seam/local.h"

"""
_MEMORIES = {m: m.name for m in (Mem.GM, Mem.UB, Mem.L1, Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT, Mem.FB)}
_MEMORIES |= {Mem.L0A_MX: "L0A", Mem.L0B_MX: "L0B", Mem.L0B_INDEX: "L0B"}
_INTRINSIC = re.compile(r"\b(?:v|[gs]et_)[a-z]\w+\b")
_UNSAID = re.compile(r'"[^"\n]*"|//[^\n]*')
_CLEANED_WHOLE = tuple(f"asc_dcci_entire_{where}" for where in ("all", "ub", "out", "atomic"))
_ATOMICS = tuple(name for name in spellings() if name.startswith("asc_atomic_"))
_FLAGS = frozenset({"asc_sync_notify", "asc_sync_wait"})
"""Calls whose event is judged."""
_WRITTEN_BY_HAND = frozenset(
    {
        *("asc_get_phy_buf_addr", "asc_get_block_idx", "asc_get_block_num", "asc_dcci_single"),
        *("asc_set_copy_pad_val", "asc_set_ndim_pad_count", "asc_set_ndim_pad_value"),
        "asc_sync_data_barrier",
        *(*_CLEANED_WHOLE, *_ATOMICS),
    }
)
"""Names that headers define by hand."""
_BY_HAND = """inline int64_t asc_get_block_idx() { return AscendC::GetBlockIdx(); }
inline int64_t asc_get_block_num() { return AscendC::GetBlockNum(); }
inline void* asc_get_phy_buf_addr(uint64_t offset, CUBECORE_AT) {
  return cubecore::physical_address(offset, at);
}
inline void asc_sync_mte2(int32_t id, CUBECORE_AT) {
  AscendC::detail::raise_flag(AscendC::HardEvent::MTE2_S, id, at);
  AscendC::detail::await_flag(AscendC::HardEvent::MTE2_S, id, at);
}
inline void asc_sync_mte3(int32_t id, CUBECORE_AT) {
  AscendC::detail::raise_flag(AscendC::HardEvent::MTE3_S, id, at);
  AscendC::detail::await_flag(AscendC::HardEvent::MTE3_S, id, at);
}
enum mem_dsb_t : uint64_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
inline void asc_sync_data_barrier(mem_dsb_t arg, CUBECORE_AT) {
  constexpr const char* memories[] = {"DSB_ALL", "DSB_DDR", "DSB_UB", "DSB_SEQ"};
  cubecore::issue("asc_sync_data_barrier", at, memories[arg]);
  cubecore_flush(&at);
}
template <typename T>
inline void asc_set_copy_pad_val(T value, CUBECORE_AT) {
  cubecore::issue_raw("asc_set_copy_pad_val", at, AscendC::detail::bits_of(value));
}
inline void asc_dcci_single(const void* dst, CUBECORE_AT) {
  AscendC::detail::clean(true, false, cubecore::gm_address(dst), at);
}
"""
_BY_HAND += "".join(
    f'inline void {name}(CUBECORE_AT) {{ cubecore::issue("{name}", at); cubecore_flush(&at); }}\n'
    for name in _CLEANED_WHOLE
)
_BY_HAND += "".join(
    f"""template <typename D, typename V>
inline void asc_fill_{where}{sync}(D dst, V value, const asc_fill_value_config& c, CUBECORE_AT) {{
  cubecore::issue_raw("asc_fill_{where}{sync}", at, cubecore::operand(cubecore::Mem::{mem}, dst),
                      AscendC::detail::bits_of(value), static_cast<uint64_t>(c.repeat),
                      static_cast<uint64_t>(c.blk_num), static_cast<uint64_t>(c.dst_gap));
}}
"""
    for where, mem in (("l1", "L1"), ("l0a", "L0A"), ("l0b", "L0B"))
    for sync in ("", "_sync")
)


def names(arch: str) -> tuple[str, ...]:
    """Return the C API's names on an architecture, but those written by hand."""
    return tuple(
        name
        for name in spellings()
        if name.startswith("asc_")
        and name not in _WRITTEN_BY_HAND
        and any(_has(form.kind, arch) for form in forms(name, arch))
    )


def _has(kind: type[Instruction], arch: str) -> bool:
    """True if an architecture's C API has an instruction."""
    return arch in kind.archs and not (kind.carried and arch in common_3510.ARCH)


def calls(arch: str) -> Iterator[tuple[str, tuple[bool, ...]]]:
    """Yield every function of the header: its name, and which of its arguments are pointers."""
    for name in names(arch):
        for spelling, kinds in _signatures(name, arch):
            yield spelling, tuple(mem is not None for mem in kinds)


def intrinsics(arch: str) -> tuple[str, ...]:
    """Return the instructions that kernels may call by their own names, but those by hand.

    Their arguments are those of the C API's functions in the same order. Of other instructions than
    the vector unit's and those of registers the order is another one.
    """
    texts = compiled_texts().values()
    by_hand = {word for text in texts for word in _INTRINSIC.findall(_UNSAID.sub("", text))}
    return tuple(
        name
        for name, kind in instructions().items()
        if _INTRINSIC.fullmatch(name) and name not in by_hand and _has(kind, arch)
    )


def capi_header(arch: str) -> str:
    """Return the C API's header: every name in each of its forms, then instructions."""
    parts = [_HEAD.format(arch=arch), _BY_HAND]
    for name in names(arch):
        parts.extend(_functions(name, arch))
    parts.extend(next(_functions(name, arch)) for name in intrinsics(arch))
    if arch in common_3510.ARCH:
        parts.extend(calls_of_2201(sorted({*names("2201")} - {*names(arch)})))
    return "".join(parts)


def _functions(name: str, arch: str) -> Iterator[str]:
    answers = forms(name, arch)[0].kind.result is not Instruction.result
    for spelling, kinds in _signatures(name, arch):
        yield _function(spelling, kinds, answers=answers)


def _signatures(name: str, arch: str) -> Iterator[tuple[str, list[Mem | None]]]:
    """Yield a function for each number of arguments, and the same that waits afterwards."""
    written: set[int] = set()
    for form in forms(name, arch):
        if not _has(form.kind, arch):
            continue
        for kinds in _arguments(form):
            if len(kinds) in written:
                continue
            written.add(len(kinds))
            yield name, kinds
            if form.kind.declared:  # by address registers, too
                yield f"{name}_sync", kinds


def _arguments(form: CallForm) -> Iterator[list[Mem | None]]:
    """Yield the arguments of each form of a call: an operand's memory, or None."""
    declared = {operand.name: operand.mem for operand in form.kind.declared}
    operands: list[Mem | None] = [declared[name] for name in form.operands]
    leading: list[Mem | None] = [None] * form.leading
    behind = len(form.parameters) - form.leading
    yield [*leading, *operands, *([None] * behind)]
    if form.kind.size_unit or form.kind.count_form is not None:
        yield [*operands, *([None] * (len(form.scalars) + 1))]  # a size, or a count
    if form.operands and behind:
        yield [*operands, *([None] * (len(form.scalars) + 1))]  # a struct


def _function(name: str, kinds: list[Mem | None], *, answers: bool) -> str:
    types = ", ".join(f"typename A{n}" for n in range(len(kinds)))
    arguments = "".join(f"A{n} a{n}, " for n in range(len(kinds)))
    given = "".join(
        f", cubecore::plain(a{n})"
        if mem is None
        else f", cubecore::operand(cubecore::Mem::{_MEMORIES[mem]}, {_operand(kinds, n)})"
        for n, mem in enumerate(kinds)
    )
    template = f"template <{types}>\n" if types else ""
    if answers:
        body = f'return cubecore::ask(0, "{name}", at{given});'
        return f"{template}inline int64_t {name}({arguments}CUBECORE_AT) {{ {body} }}\n"
    body = f'cubecore::issue_raw("{name}", at{given});'
    if name in _FLAGS:
        body = f'AscendC::detail::judge_event("{name}", a0, a1, a2, at); {body}'
    return f"{template}inline void {name}({arguments}CUBECORE_AT) {{ {body} }}\n"


def _operand(kinds: list[Mem | None], number: int) -> str:
    """Return what an argument gives as an operand."""
    follows = number > 1 and kinds[number - 1] is kinds[number]
    return f"cubecore::given(a{number}, a{number - 1})" if follows else f"a{number}"
