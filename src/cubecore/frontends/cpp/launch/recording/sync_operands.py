"""Accesses and synchronisation of a template, as automatic synchronisation weighs them."""

from dataclasses import replace
from typing import Any

from cubecore.errors import CubecoreError
from cubecore.isa.declare.instruction import Instruction, Mem, Operand, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import MOST_BYTES
from cubecore.isa.scalar.control_registers import SetCtrl
from cubecore.isa.scalar.store import StoreScalarGm
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.isa.scalar.system_variables import Init
from cubecore.isa.vector.common.mask import MaskState, SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.isa.vector.permute.gather import Gather, Vgatherb
from cubecore.machine.memory.footprint import footprints

_PIPES = {"S": 0, "V": 1, "M": 2, "MTE1": 3, "MTE2": 4, "MTE3": 5, "FIX": 6, "ALL": 7}
_LOCAL = {Mem.UB: 1, Mem.L1: 2, Mem.L0A: 3, Mem.L0B: 4, Mem.L0C: 5}
"""Memories whose buffers accesses are judged by, by abi.h's numbers."""
_ANYWHERE = 1 << 40
"""Bytes around an unknown address: all of a memory."""


def note_order(step: Any, template: Instruction, count: int | None = None) -> None:
    """Write what a template touches, and orders, into the runtime's step.

    `count` is the number of elements of a call that gives one, which stands in the mask.
    """
    if count is not None and isinstance(template, Repeated):
        template = replace(template, lanes=MaskState(0, count, counts=True))
    step.pipe, step.width = _PIPES[template.pipe.value], 0
    if isinstance(template, (SetFlag, WaitFlag)):
        step.sync = 1 if isinstance(template, SetFlag) else 2
        step.source, step.target = _PIPES[template.src], _PIPES[template.dst]
        step.event = template.event_id
    elif isinstance(template, PipeBarrier):
        step.sync, step.source = 3, _PIPES[template.on]
    elif isinstance(template, SetVectorMask):
        step.sync, step.event = 4, min(template.mask_low, 2**32 - 1)
    elif isinstance(template, (SetMaskCount, SetMaskNorm, SetCtrl, Init)):
        step.sync = 5 if template.apply(Registers()).mask_counts else 6
    operands = template.operands()
    weighed = {*_LOCAL, Mem.GM} if _is_ordered_globally(template) else {*_LOCAL}
    step.far = not _is_plain(template) or any(
        operand.mem is Mem.GM and operand.access.writes for operand in operands
    )
    if all(operand.mem not in weighed for operand in operands):
        return
    try:  # of one that no core can execute it is not computed
        runs = footprints(template) if template.size_bytes <= MOST_BYTES else ()
    except (CubecoreError, ValueError):
        runs = ()
    for number, operand in enumerate(operands):
        if operand.mem not in weighed:
            continue
        step.low[number], step.high[number] = -_ANYWHERE, _ANYWHERE
        if runs:
            touched = runs[number]
            if touched is None:
                step.far |= (
                    operand.mem is Mem.UB and operand.access.writes
                )  # in another mode it may touch something
                continue
            step.low[number] = touched.low
            step.high[number] = _ANYWHERE if _picked(template, operand) else touched.high
        access = operand.access.reads + 2 * operand.access.writes
        step.memory[number] = _LOCAL.get(operand.mem, 0)
        if operand.mem is Mem.UB:
            step.access[number] = access
        elif operand.mem is Mem.GM:
            step.global_access[number] = access
    if count is None and isinstance(template, Repeated) and runs:
        _note_repeats(step, template)
        step.far |= step.width == 0


def _is_ordered_globally(template: Instruction) -> bool:
    """Return whether its accesses of global memory are ordered: not those past the data cache."""
    past = isinstance(template, StoreScalarGm) and not template.cached
    return template.pipe in {Pipe.S, Pipe.MTE2, Pipe.MTE3} and not past


def _note_repeats(step: Any, template: Repeated) -> None:
    """Write how far repeats reach, for a mask that counts: its count says how many there are."""
    one, two = (footprints(replace(template, repeat=n, lanes=None)) for n in (1, 2))
    if None in one or None in two:
        return
    step.width = template.width
    for number, (first, both) in enumerate(zip(one, two, strict=True)):
        assert first is not None
        assert both is not None
        picked = _picked(template, template.operands()[number])
        step.span[number] = _ANYWHERE if picked else first.high - first.low
        step.stride[number] = both.high - first.high


def _is_plain(template: Instruction) -> bool:
    """Return whether parameters, and the mask, say all that a template touches."""
    kind = type(template)
    takes = kind.resolved not in {Instruction.resolved, Repeated.resolved}
    decided = template.steering or template.reads_left or kind.rebased is not Instruction.rebased
    return not (takes or decided)


def _picked(template: Instruction, operand: Operand) -> bool:
    """Return whether offsets in memory say where an operand lies, from its address on."""
    return isinstance(template, (Gather, Vgatherb)) and operand.name == "src"
