"""A vector function as one instruction of pipe V: it reads and writes runs of UB."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.instruction import (
    InnerCall,
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    instruction,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Line, Remark
from cubecore.layouts import Offsets, Runs, offsets_of_runs

if TYPE_CHECKING:
    from cubecore.isa.vector.registers.issue.reliefs import Relief
    from cubecore.isa.vector.registers.program import RegisterProgram

_Run = tuple[str, int, int]
"""An operand's name, and the bytes [low, high) of it from the program's base on."""
Spans = tuple[tuple[Operand, Runs], ...]
"""Operands, and the bytes [start, end) of each from the program's base on."""
_BYTE = element_type("uint8")
_STALE = 0xFF
"""The bytes that another order loads before they are stored: no number, and a mask of all."""
MOST_RUNS = 4
"""Operands of each side; one has several runs of bytes where there are more."""


def mask_of(registers: Registers) -> int:
    """Return the bits of MASK1 and MASK0."""
    return registers.mask_high << 64 | registers.mask_low


@instruction(
    "vector_function",
    Pipe.V,
    source="asc-devkit, Reg vector compute",
    archs=("3510",),
    listed=False,
)
class VectorFunction(Instruction):
    """A program of register instructions, which no other instruction of the core interrupts.

    Its operands are the bytes that it loads before it has stored there, and those that it stores;
    their addresses are the program's base and where they begin from there on.
    """

    propagates = is_function = True
    program: "RegisterProgram"
    performed: "RegisterProgram | None" = None
    """The program in the order that is executed; None: as it was issued."""
    without: "Relief | None" = None
    """The limit of the vector unit that is left out of its cost: a what-if of the adviser's."""

    def operands(self) -> tuple[Operand, ...]:
        """Return the runs that are read, then those that are written."""
        return tuple(operand for operand, _ in self.spans)

    @property
    def spans(self) -> Spans:
        """The operands and the bytes of each, from the program's base on."""
        found: Spans | None = self.__dict__.get("_spans")
        if found is None:
            found = self.__dict__["_spans"] = _spans(self.program)
        return found

    def element(self, operand: Operand) -> ElementType:
        """Return bytes."""
        return _BYTE

    def offsets(self, operand: str) -> Offsets:
        """Return the bytes of a run, from its first one on."""
        (runs,) = (runs for each, runs in self.spans if each.name == operand)
        return offsets_of_runs(runs)

    def remarks(self, chip: Chip) -> tuple[Remark, ...]:
        """Return what is wrong with the program, whatever the values."""
        from cubecore.isa.vector.registers.checks.program_remarks import remarks_on

        return remarks_on(self.program, self.spans[0][1][0][0] if self.spans else 0)

    def beyond(self, operand: str, address: int, size: int) -> tuple[str, int, int, Line] | None:
        """Return the first load or store of the program that leaves UB."""
        return self._outside(operand, address, 0, size)

    def leaves_buffer(
        self, operand: str, address: int, low: int, high: int
    ) -> tuple[str, int, int, Line] | None:
        """Return the first load or store that begins in a buffer and later leaves it.

        Accesses of other buffers, whose bytes may follow this one's in an operand, are not judged.
        A load may end behind the buffer: it takes no mask, and the last one of a row often does.
        """
        return self._outside(operand, address, low, high, begins=True)

    def _outside(
        self, operand: str, address: int, low: int, high: int, *, begins: bool = False
    ) -> tuple[str, int, int, Line] | None:
        """Return the first access that is not in bytes [low, high), of those that begin there."""
        (runs,) = (runs for each, runs in self.spans if each.name == operand)
        base, found = address - runs[0][0], []
        for step in self.program.steps.values():
            if not (step.stores if "dst" in operand else step.loads):
                continue
            entries, start, end = step.pieces
            start, end = base + start, base + end
            # An access belongs to the buffer in which it first begins.
            if begins and not (start.size and low <= start[0] < high):
                continue
            if step.loads and step.landed is None:  # lanes that no call looks at are read, too
                end = start + step.span
            ends_outside = end > high if not (begins and step.loads) else start >= high
            outside = np.flatnonzero((end > start) & ((start < low) | ends_outside))
            if outside.size:
                at = outside[0]
                found.append((int(entries[at]), step, int(start[at]), int(end[at])))
        if not found:
            return None
        # Of all calls, the one that the function issues first.
        _, step, first, last = min(found, key=itemgetter(0))
        return step.call.operation.name, first, last, step.location

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Run the program on the bytes that it reads."""
        return self.performed_on(inputs, registers)[0]

    def performed_on(
        self, inputs: Mapping[str, Array], registers: Registers
    ) -> tuple[Mapping[str, Array], int]:
        """Return what the program stores of the bytes that it reads, and what AR holds then."""
        # Most kernels have no vector function.
        from cubecore.isa.vector.registers.execution import UbPart, execute

        performed = self.performed or self.program
        some = next(iter(inputs.values()), np.zeros(0, np.uint8))
        cores = some.shape[0] if some.ndim > 1 else 1
        mask = mask_of(registers)
        if self.is_direct:
            read, written = self._sides
            arrays = [_unwritten(cores, high - low) for _, low, high in written]
            parts = [UbPart(low, array) for (_, low, _), array in zip(written, arrays, strict=True)]
            parts += [UbPart(low, inputs[name].reshape(cores, -1)) for name, low, _ in read]
            ar = execute(performed, parts, registers.ctrl, mask)
            stored = {}
            for (name, _, _), array, part in zip(written, arrays, parts, strict=False):
                stored[name] = part.array
                if part.array is not array:  # another array has taken its place
                    _SPARE[array.shape] = array
            return _shaped(stored, some), ar
        size = max(self.program.reach, performed.reach)
        # UB from the program's base on, one row for each core that runs it. Only the runs that are
        # read are filled in: nothing else of the image is looked at, except where the order was
        # changed.
        image = np.empty((cores, size), np.uint8)
        if self.performed is not None:
            image[...] = _STALE
        for operand, runs in self.spans:
            if operand.access.reads:
                put(image, runs, inputs[operand.name])
        ar = execute(performed, [UbPart(0, image)], registers.ctrl, mask)
        return _shaped(self._written(image), some), ar

    @property
    def _sides(self) -> tuple[Sequence[_Run], Sequence[_Run]]:
        """The runs of operands that are read and of those written, of one run each."""
        found: tuple[Sequence[_Run], Sequence[_Run]] | None = self.__dict__.get("_by_side")
        if found is None:
            named = [(operand, (operand.name, *runs[0])) for operand, runs in self.spans]
            read = [run for operand, run in named if operand.access.reads]
            found = read, [run for operand, run in named if operand.access.writes]
            self.__dict__["_by_side"] = found
        return found

    @property
    def is_direct(self) -> bool:
        """True if each access stays in one operand, so that the program runs on their bytes."""
        found: bool | None = self.__dict__.get("_direct")
        if found is None:
            found = self.__dict__["_direct"] = self.performed is None and _is_direct(self)
        return found

    def known(self, ready: Mapping[str, NDArray[np.bool_]]) -> Mapping[str, NDArray[np.bool_]]:
        """Return which stored bytes hang on none that were never written."""
        return self._followed(ready)[0]

    def needs(self, ready: Mapping[str, NDArray[np.bool_]]) -> tuple[Remark, ...]:
        """Return the comparisons and reductions of bytes that were never written."""
        return self._followed(ready)[1]

    def _followed(
        self, ready: Mapping[str, NDArray[np.bool_]]
    ) -> tuple[Mapping[str, NDArray[np.bool_]], tuple[Remark, ...]]:
        """Return which stored bytes are known, and what needs others: the same for equal bytes."""
        from cubecore.isa.vector.registers.checks.undefined import needed_remarks
        from cubecore.isa.vector.registers.undefined_lanes import UndefinedLanes

        known = self.program.marked
        # Kernels call a function for many rows whose bytes are known alike, mostly all of them: the
        # walk over the marks is made once for each pattern.
        key = tuple((name, np.packbits(each).tobytes()) for name, each in ready.items())
        if (found := known.get(key)) is not None:
            return found
        image = np.zeros((1, self.program.reach), np.uint8)
        for operand, runs in self.spans:
            if operand.name in ready:
                put(image, runs, (~ready[operand.name]).astype(np.uint8))
        needing = UndefinedLanes(self.program, image).needing
        taken = {name: marks[0] == 0 for name, marks in self._written(image).items()}
        known[key] = taken, needed_remarks(self.program, needing)
        return known[key]

    def _written(self, image: Array) -> dict[str, Array]:
        written = (each for each in self.spans if each[0].access.writes)
        return {operand.name: _taken(image, runs) for operand, runs in written}

    def reordered(self, choose: Callable[[int], int]) -> "VectorFunction":
        """Return it with its loads and stores of UB in another legal order."""
        from cubecore.isa.vector.registers.checks.legal_orders import reordered

        performed = reordered(self.program, choose)
        return self if performed is self.program else replace(self, performed=performed)

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles of the program's instructions as the chip's vector unit issues them."""
        from cubecore.isa.vector.registers.issue.cost import cost_of

        return cost_of(self.program, chip, self.without)

    def calls_inside(self, chip: Chip) -> tuple[InnerCall, ...]:
        """Return the program's instructions on the ports of the vector unit."""
        from cubecore.isa.vector.registers.issue.cost import parts_of

        return parts_of(self.program, chip)


def _is_direct(function: VectorFunction) -> bool:
    program, spans = function.program, function.spans
    if (
        not spans
        or program.rewrites
        or not program.exact
        or any(len(runs) > 1 for _, runs in spans)
    ):
        return False
    for step in program.steps.values():
        if not (step.loads or step.stores):
            continue
        if step.strides is None or step.by_values:
            return False
        low, high = int(step.addresses.min()), int(step.addresses.max()) + step.span
        sides = (runs[0] for operand, runs in spans if operand.access.writes == step.stores)
        if not any(start <= low and high <= end for start, end in sides):
            return False
    return True


_SPARE = BoundedCache[tuple[int, ...], Array](2)
"""Arrays that no result was written to, by shape: memory of the system costs more than a call."""


def _unwritten(cores: int, size: int) -> Array:
    """Return so many bytes of each core that hold anything."""
    spare: Array | None = _SPARE.pop((cores, size), None)
    return np.empty((cores, size), np.uint8) if spare is None else spare


def _shaped(written: Mapping[str, Array], some: Array) -> Mapping[str, Array]:
    """Return what cores have written, of one core alone without their axis."""
    return written if some.ndim > 1 else {name: values[0] for name, values in written.items()}


def _spans(program: "RegisterProgram") -> Spans:
    stored = OperandAccess.WRITE if program.exact else OperandAccess.UPDATE
    sides = (("src", OperandAccess.READ, program.loaded.runs), ("dst", stored, program.stored.runs))
    looked_at = tuple(
        (Operand(Mem.UB, access, "", "function byte", align_bytes=1, name=f"{name}{n}"), runs)
        for name, access, all_runs in sides
        for n, runs in enumerate(_grouped(all_runs))
    )
    return looked_at + tuple((_idle(n), runs) for n, runs in enumerate(_grouped(program.idle.runs)))


def _idle(number: int) -> Operand:
    """Return an operand that is loaded for nothing: lanes behind a count, most often."""
    name = f"behind{number}"
    return Operand(
        Mem.UB, OperandAccess.READ, "", "function byte", align_bytes=1, name=name, idle=True
    )


def _grouped(runs: tuple[tuple[int, int], ...]) -> list[tuple[tuple[int, int], ...]]:
    """Return runs as operands, parted where the widest gaps are: those are of other arrays."""
    # An instruction has few operands and a function may touch many arrays. MOST_RUNS - 1 cuts are
    # made; arrays that no cut parts share an operand, of whose bytes only the runs count.
    gaps = [following[0] - run[1] for run, following in pairwise(runs)]
    widest = sorted(range(len(gaps)), key=gaps.__getitem__)[1 - MOST_RUNS :]
    cuts = [0, *sorted(n + 1 for n in widest), len(runs)]
    return [runs[start:stop] for start, stop in pairwise(cuts) if stop > start]


def put(image: Array, runs: tuple[tuple[int, int], ...], values: Array) -> None:
    """Put the bytes of runs into an image of UB, in their order."""
    at = 0
    for low, high in runs:
        image[:, low:high] = values[..., at : at + high - low]
        at += high - low


def _taken(image: Array, runs: tuple[tuple[int, int], ...]) -> Array:
    return np.concatenate([image[:, low:high] for low, high in runs], axis=-1)
