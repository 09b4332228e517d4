"""Registers that hold values at a time: more than there are go to memory, and come back."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.remark import Remark
from cubecore.isa.vector.registers.operation import MAKES_MASK, Form
from cubecore.isa.vector.registers.program import RegisterProgram

_VECTORS, _MASKS = 32, 8
"""Registers of a vector function (*Reg*, RegTensor and MaskReg)."""
_CARRIES = frozenset({Form.CARRY, Form.CARRIED})


@dataclass(frozen=True, slots=True)
class Spill:
    """A call whose result finds no free register of a kind, of `most` that there are.

    `live` are the values of that kind that are needed at a time, where they are most.
    """

    entry: int
    kind: str
    most: int
    live: int


def spills(program: RegisterProgram) -> Iterator[Spill]:
    """Yield for vector registers and for masks the first call that finds none free."""
    count = program.entries.calls.size
    if count <= _MASKS:
        return
    first, last = _lives(program)
    is_mask = _masks(program, first.size)
    for kind, most, which in (("vector", _VECTORS, ~is_mask), ("mask", _MASKS, is_mask)):
        held = which & (first >= 0) & (last > first)
        if np.count_nonzero(held) <= most:
            continue
        # Values alive behind each entry: the running sum of those made so far minus those taken for
        # the last time.
        begun, ended = (np.bincount(at[held], minlength=count) for at in (first, last))
        live = np.cumsum(begun - ended)
        beyond = np.flatnonzero(live > most)
        if beyond.size:
            yield Spill(int(beyond[0]), kind, most, int(live.max()))


def live_register_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield a note where more values are needed later than there are registers."""
    entries = program.entries
    for spill in spills(program):
        call = entries.table[entries.calls[spill.entry]]
        message = (
            f"{call.operation.name} must find a free register among {spill.most} {spill.kind}"
            f" registers, got {spill.live} values that are needed at a time; the compiler keeps"
            " others in UB, which is slow"
        )
        where = entries.locations[entries.places[spill.entry]]
        yield Remark("registers-spilled", message, spill.kind, where)


def _lives(program: RegisterProgram) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the entries that make each value and take it for the last time; -1 for none."""
    entries = program.entries
    taken = np.concatenate([entries.sources, entries.masks[:, None]], axis=1)
    order = np.arange(entries.calls.size)[:, None]
    most = max(int(taken.max()), int(entries.results.max()))
    first, last = np.full((2, most + 1), -1, np.intp)
    first[entries.results] = order
    last[taken] = order  # of a value that is taken again the last time holds
    first[0] = last[0] = -1
    return first, last


def _masks(program: RegisterProgram, count: int) -> NDArray[np.bool_]:
    """Return which of so many values are masks."""
    entries = program.entries
    forms = [call.operation.form for call in entries.table]
    first = np.array([form in MAKES_MASK or form in _CARRIES for form in forms])
    second = np.array([form in MAKES_MASK for form in forms])
    is_mask = np.zeros(count, bool)
    for slot, of_form in enumerate((first, second)):
        is_mask[entries.results[of_form[entries.calls], slot]] = True
    return is_mask
