"""Filling in what an instruction reads and stores, of one core or of a group (usecheck).

An elementwise vector instruction may compute of filling: its results are filling in their turn,
and are no finding until they are stored where somebody needs them. One that takes several lanes
together makes a value of filling and data at once, which is a finding where it reads.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.program.tree import Location
from cubecore.machine.execute.filling_marks import filled_bytes, marks_of, put_marks
from cubecore.machine.memory.buffers import GlobalMemory, Spot
from cubecore.machine.memory.elements import Elements, Use
from cubecore.machine.memory.filling_table import Filling, FillingReader, Marks
from cubecore.machine.memory.operation import Inputs

Touched = tuple[Use, Spot, Elements]
_UNTOLD = frozenset({"repeat byte", "function byte"})
"""The axes of bits, one for each lane, and of a vector function's bytes, whose loads take no mask:
of lanes that hold filling nobody can tell them apart."""


class FilledRead(NamedTuple):
    """Filling that an operand reads: its bytes, and what stores results that depend on it."""

    subject: str
    size_bytes: int
    filling: Filling
    stored_by: tuple[str, Location] | None = None

    @property
    def message(self) -> str:
        """The finding's sentence."""
        got = f"{self.subject} must read data, got {self.size_bytes} B of {self.filling.sentence}"
        if self.stored_by is None:
            return f"{got}; {_REMEDY}"
        name, where = self.stored_by
        return f"{got}, of which results are stored by {name} ({where}); {_REMEDY}"


_REMEDY = "leave them out by the count or mask, load rows side by side, or pad with a value"


class Reader(Protocol):
    """The cores that an instruction runs on, and what becomes of filling that it reads."""

    gm: GlobalMemory

    def read_filling(self, found: FilledRead, reader: FillingReader) -> None:
        """Take filling that an operand of an instruction reads."""
        ...


def computed(
    cores: Reader,
    template: Instruction,
    touched: Sequence[Touched],
    where: Location,
    work: Callable[[], Inputs],
) -> Inputs:
    """Do the work of a vector instruction, and mark results of filling; return what was read."""
    target = next((part for part in touched if part[0].writes), None)
    if target is None or target[0].operand.axes in _UNTOLD:
        return work()
    # A mark is the number of a filling, 0 for data. Marks of several sources are merged by maximum:
    # any of them makes the result filling, and one number must do to name it.
    combined: Marks | None = None
    for part in touched:
        marks = _made_of(cores, template, part, target, where) if part[0].reads else None
        if marks is not None:
            combined = marks if combined is None else np.maximum(combined, marks)
    inputs = work()
    if combined is not None:
        used, spot, elements = target
        put_marks(spot, elements, used.element, combined)
    return inputs


def followed(
    cores: Reader,
    template: Instruction,
    touched: Sequence[Touched],
    where: Location,
    work: Callable[..., Inputs],
) -> Inputs:
    """Do the work of an instruction as its pipe asks for; return what was read.

    `work` takes what counts padding as written, if need be.
    """
    if template.pipe is Pipe.V:
        return computed(cores, template, touched, where, work)
    if template.pipe is Pipe.FIX:
        target = next(part for part in touched if part[0].writes)
        return _stored(cores, template, target, where, work)
    if template.pipe is Pipe.M:
        _require_defined(cores, template, touched, where)
    return work()


def _made_of(
    cores: Reader, template: Instruction, source: Touched, target: Touched, where: Location
) -> Marks | None:
    """Return the marks of results by one operand; report filling that lanes are taken with."""
    (used, spot, elements), (to, _, results) = source, target
    marks, table = marks_of(spot, elements, used.element), cores.gm.fillings
    if marks is None or table is None or used.operand.axes in _UNTOLD:
        return None
    # Three cases: lane by lane, marks move on as they are; broadcast along the missing axes,
    # likewise; in all others lanes are mixed (a reduction), so that the value is wrong already: a
    # finding.
    axes, names = to.operand.axes.split(), used.operand.axes.split()
    passes = template.propagates and not used.operand.used
    if passes and marks.shape == results.offsets.shape:
        return marks
    if set(names) <= set(axes):
        shape = [marks.shape[names.index(axis)] if axis in names else 1 for axis in axes]
        computed_of = table.read_by(marks, FillingReader(template.name, used.name, where))
        return np.broadcast_to(computed_of.reshape(shape), results.offsets.shape)
    number = int(marks[marks > 0][0])
    size = filled_bytes(spot, elements, used.element)
    found = FilledRead(f"{template.name}.{used.name}", size, table[number])
    cores.read_filling(found, FillingReader(template.name, used.name, where))
    return None


def require_unfilled(
    cores: Reader,
    template: Instruction,
    source: Use,
    here: Spot,
    target: Use,
    there: Spot,
    where: Location,
) -> None:
    """Report a copy to global memory, but to scratch, of what was computed of filling."""
    table, elements = cores.gm.fillings, source.elements
    if table is None or target.operand.mem is not Mem.GM or source.operand.mem is Mem.GM:
        return
    if there.marks is not None and there.marks.scratch:
        return
    marks = marks_of(here, elements, source.element)
    for number in () if marks is None else np.unique(marks[marks > 0]).tolist():
        filling = table[number]
        if filling.reader is None:
            continue
        reader = filling.reader
        size = filled_bytes(here, elements, source.element, number)
        subject = f"{reader.instruction}.{reader.operand}"
        found = FilledRead(subject, size, filling, (template.name, where))
        cores.read_filling(found, reader)


def _require_defined(
    cores: Reader, template: Instruction, touched: Sequence[Touched], where: Location
) -> None:
    """Report a matmul of filling that nobody knows the value of."""
    table = cores.gm.fillings
    for used, spot, elements in touched:
        marks = marks_of(spot, elements, used.element) if used.reads and table else None
        for number in () if marks is None else np.unique(marks[marks > 0]).tolist():
            assert table is not None
            if not table[number].defined:
                size = filled_bytes(spot, elements, used.element, number)
                found = FilledRead(f"{template.name}.{used.name}", size, table[number])
                cores.read_filling(found, FillingReader(template.name, used.name, where))


def _stored(
    cores: Reader,
    template: Instruction,
    target: Touched,
    where: Location,
    work: Callable[..., Inputs],
) -> Inputs:
    """Do the work of a fixpipe, whose padding is filling; return what was read.

    In an array that is needed rows and columns which could have been left out stay uninitialised.
    So does padding in L1, which only a product reads, unless filling is followed.
    """
    table, (used, there, elements) = cores.gm.fillings, target
    found: list[tuple[NDArray[np.bool_], str]] = []

    def padded(ready: NDArray[np.bool_]) -> NDArray[np.bool_]:
        scratch = there.marks is not None and there.marks.scratch
        in_l1 = used.operand.mem is not Mem.GM
        padding = template.padding(ready, whole=scratch or in_l1)
        if padding is None or (table is None and in_l1):
            return ready
        found.append(padding)
        return np.asarray(ready | padding[0])

    inputs = work(padded)
    for chosen, behind in found:
        if table is None:
            break
        number = table.number(Filling(template.name, behind, where, defined=False))
        put_marks(there, elements, used.element, np.where(chosen, number, 0).astype(np.uint8))
    return inputs


def mark_filled(cores: Reader, template: Instruction, target: Touched, where: Location) -> None:
    """Mark what a copy has filled in."""
    table, (used, there, elements) = cores.gm.fillings, target
    filled = _filling(template)
    if table is None or filled is None or used.name != "dst":
        return
    chosen, behind = filled
    number = table.number(Filling(template.name, behind, where))
    put_marks(there, elements, used.element, np.where(chosen, number, 0).astype(np.uint8))


@lru_cache(maxsize=256)
def _filling(template: Instruction) -> tuple[NDArray[np.bool_], str] | None:
    """Return what a template fills in, computed once."""
    return template.filling()
