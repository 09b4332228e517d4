"""Launches of A2 on Ascend 950: copies of runs between global memory and UB as 950 has them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies_unaligned_3510 import CopyGmToUbufAlignV2, CopyUbufToGmAlignV2
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Branch, Issue, Loop, Node, Program
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.units import DATA_BLOCK_BYTES, align_up

_Copy = TypeVar("_Copy", CopyGmToUbufAlignV2, CopyUbufToGmAlignV2)


def with_copies_of_3510(launch: Launch) -> Launch:
    """Return a launch whose copies of runs between global memory and UB are 950's."""
    programs: dict[Program, Program] = {}
    cores = []
    for core in launch.cores:
        program = programs.get(core.program)
        if program is None:
            body = _rewritten(core.program.body)
            program = Program(body, core.program.slots, core.program.name)
            programs[core.program] = program
        cores.append(replace(core, program=program))
    return replace(launch, cores=tuple(cores))


def _rewritten(body: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(_changed(node) for node in body)


def _changed(node: Node) -> Node:
    if isinstance(node, Issue):
        return replace(node, template=_copy_of_3510(node.template))
    if isinstance(node, Loop):
        return replace(node, body=_rewritten(node.body))
    if isinstance(node, Branch):
        return replace(node, then=_rewritten(node.then), otherwise=_rewritten(node.otherwise))
    return node


def _copy_of_3510(template: Instruction) -> Instruction:
    if isinstance(template, CopyGmToUbufAlign):
        return _strided(CopyGmToUbufAlignV2, template, "src", "dst")
    if isinstance(template, CopyUbufToGmAlign):
        return _strided(CopyUbufToGmAlignV2, template, "dst", "src")
    return template


def _strided(
    kind: type[_Copy], template: CopyGmToUbufAlign | CopyUbufToGmAlign, in_gm: str, in_ub: str
) -> _Copy:
    """Return a copy with bytes from run to run in place of the gaps between two runs."""
    # A2 counts gaps between runs, in UB those between whole blocks; 950 counts bytes from start to
    # start.
    length = template.len_burst
    strides = {
        f"{in_gm}_stride": length + getattr(template, f"{in_gm}_gap"),
        f"{in_ub}_stride": align_up(length, DATA_BLOCK_BYTES)
        + DATA_BLOCK_BYTES * getattr(template, f"{in_ub}_gap"),
    }
    return kind(
        dtype=template.dtype,
        n_burst=template.n_burst,
        len_burst=length,
        **(strides if template.n_burst > 1 else {}),
    )
