"""The calls of a vector function as its unit sees them: ports, cycles, banks of UB, operands.

What a program records is not what the unit runs. A merging call is followed by a selection, which
the compiler adds; a mask whose count no trip of a loop changes is made before that loop, and so is
a pattern; a strided move, recorded block by block, is one instruction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.vector.registers.folding import FoldedLoop, Indices, Node
from cubecore.isa.vector.registers.operation import (
    LOADS_MEMORY,
    MAKES_MASK,
    MERGING,
    REGISTER_BYTES,
    STORES_MEMORY,
    Call,
    Form,
)
from cubecore.isa.vector.registers.operations.logic import SELECTION_LATENCY
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep, block_of

_BLOCK_BYTES = 32
_BANKS = 16
"""Of UB: 8 groups of two. Blocks of 32 bytes take the groups in turn, and then the other bank."""
_ALL_BANKS = (1 << _BANKS) - 1
_STRIDED_CYCLES = 2
"""Of a strided move of eight blocks, whatever it is recorded as."""


class Port(IntEnum):
    """The part of the vector unit that an instruction is issued to."""

    LOAD = 0
    STORE = 1
    COMPUTE = 2
    BARRIER = 3


class UnitWork(NamedTuple):
    """One instruction as the unit runs it.

    `entry` is the program's; `cycles` are those in which no other is issued to the same part of the
    port, `latency` the published ones until a result can be used; `alone` says that it is issued
    beside no other of its port. `writes` are vector registers; `banks` the bits of UB's banks.
    `loops` are hardware loops that begin with it, `needs` the numbers of the work that makes its
    operands.
    """

    entry: int
    port: Port
    cycles: int
    latency: int
    alone: bool
    writes: int
    banks: int
    loops: int
    needs: tuple[int, ...]


def work_of(program: RegisterProgram) -> Sequence[UnitWork]:
    """Return what the unit runs, in the order of the program."""
    entries = program.entries
    kinds = [_Kind.of(call) for call in entries.table]
    runs = _runs(program)
    begun = _loop_starts(program)
    addresses = _banks(program)
    made = [0] * (int(max(entries.results.max(), entries.sources.max(), entries.masks.max())) + 1)
    found: list[UnitWork] = []
    columns = (entries.calls, entries.sources, entries.masks, entries.results)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    # `made` leads from a value to the number of its work, from 1 on; 0 stands for none.
    for entry, (number, sources, mask, results) in enumerate(rows):
        kind = kinds[number]
        if not runs[entry] or kind.port is None:  # a block of a strided move stands for its first
            for value in filter(None, results):
                made[value] = max(made[source] for source in sources)
            continue
        taken = [value for value in (*sources, mask) if value]
        if kind.merges:  # the old dst, which stands behind the operands, is the selection's
            old = sources[sources.index(0) - 1 if 0 in sources else -1]
            taken.remove(old)
        needs = {made[value] - 1 for value in taken if made[value]}
        loops, banks = begun.get(entry, 0), addresses[entry]
        found.append(kind.work(entry, banks, loops, needs))
        if kind.merges:
            needs = {len(found) - 1} | {made[v] - 1 for v in (old, mask) if made[v]}
            found.append(_SELECTION.work(entry, 0, 0, needs))
        for value in filter(None, results):
            made[value] = len(found)
    return found


def lines_of(program: RegisterProgram, work: Sequence[UnitWork]) -> list[int]:
    """Return the number of each instruction's line in the program's locations."""
    places = program.entries.places
    return [int(places[each.entry]) for each in work]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The common part of all calls of one kind."""

    port: Port | None
    cycles: int
    latency: int
    alone: bool
    writes: int
    merges: bool

    @staticmethod
    def of(call: Call) -> "_Kind":
        operation, form = call.operation, call.operation.form
        port = _port(call)
        cycles = operation.cycles_of(call.dtype)
        if block_of(call) is not None:
            cycles = _STRIDED_CYCLES
        pair = form in {Form.LOAD_PAIR, Form.PAIR, Form.WIDE}
        masks = form in MAKES_MASK or (port is not Port.COMPUTE and form not in LOADS_MEMORY)
        return _Kind(
            port=port if cycles else None,
            cycles=cycles,
            latency=operation.latency_of(call),
            alone=operation.alone,
            writes=0 if masks else 2 if pair else 1,
            merges=call.mode == MERGING and port is Port.COMPUTE,
        )

    def work(self, entry: int, banks: int, loops: int, needs: set[int]) -> UnitWork:
        assert self.port is not None
        return UnitWork(
            *(entry, self.port, self.cycles, self.latency, self.alone, self.writes),
            *(banks, loops, tuple(needs)),
        )


_SELECTION = _Kind(Port.COMPUTE, 1, SELECTION_LATENCY, False, 1, False)


def _port(call: Call) -> Port | None:
    form = call.operation.form
    if form is Form.STREAM:
        return Port.LOAD if call.operation.name.startswith("Load") else Port.STORE
    if form in LOADS_MEMORY:
        return Port.LOAD
    if form in STORES_MEMORY:
        return Port.STORE
    if form is Form.AR:
        return None
    return Port.BARRIER if form is Form.BARRIER else Port.COMPUTE


def _runs(program: RegisterProgram) -> NDArray[np.bool_]:
    """Return which entries the unit runs where they stand."""
    entries = program.entries
    runs = np.ones(len(program), bool)
    for step in program.steps.values():
        block = block_of(step.call)
        if step.call.operation.form is Form.PATTERN:
            runs[step.entries] = False
            runs[step.entries.reshape(-1)[:1]] = True
        elif block:
            runs[step.entries] = False
        elif step.call.operation.form is Form.COUNT:
            runs[_hoisted(step)] = False
    # A count that says how much of a register an unaligned store stores is no mask of the unit's.
    unaligned = np.array([call.mode == "UNALIGNED" for call in entries.table])[entries.calls]
    by_mask = np.setdiff1d(entries.masks[unaligned], entries.masks[~unaligned])
    runs[np.isin(entries.results[:, 0], by_mask[by_mask > 0])] = False
    return runs


def _hoisted(step: RegisterStep) -> Indices:
    """Return the entries of a count that is the same on all trips, and so is made before the loop.

    A count that falls from trip to trip is less than a register once: one that is so more often is
    set anew on each trip. Of whole registers nothing is known, and they count as falling.
    """
    counts, lanes = step.scalars.astype(np.int64), REGISTER_BYTES // step.call.width
    behind = np.zeros(counts.shape, bool)
    # From the innermost loop outwards: what does not change in it is made in front of it, and may
    # then be in front of the loop around that one, too.
    for axis in reversed(range(counts.ndim)):
        first = np.take(counts, [0], axis)
        if counts.shape[axis] < 2 or not ((counts == first) & (counts < lanes)).all():
            break
        behind[(slice(None),) * axis + (slice(1, None),)] = True
    return step.entries[behind]


def _loop_starts(program: RegisterProgram) -> dict[int, int]:
    """Return how many loops begin with an entry, of those with which any does."""
    starts: dict[int, int] = {}
    for first in _firsts(program.nodes, 0):
        for entry in first.reshape(-1).tolist():
            starts[entry] = starts.get(entry, 0) + 1
    return starts


def _firsts(nodes: Sequence[Node], depth: int) -> Iterator[Indices]:
    """Yield for each loop the entries of its first call on its first trips."""
    for node in nodes:
        if isinstance(node, FoldedLoop):
            leaf: Node = node
            while isinstance(leaf, FoldedLoop):
                leaf = leaf.body[0]
            yield leaf.entries[(slice(None),) * depth + (0,) * (leaf.entries.ndim - depth)]
            yield from _firsts(node.body, depth + 1)


def _banks(program: RegisterProgram) -> list[int]:
    """Return the banks of UB that each entry's access touches, as bits; 0 of those without.

    The program's base is taken to lie on a boundary of both banks.
    """
    banks = np.zeros(len(program), np.int64)
    for step in program.steps.values():
        if not (step.loads or step.stores):
            continue
        if step.by_values or block_of(step.call) is not None:
            banks[step.entries] = _ALL_BANKS
            continue
        # A block of 32 bytes is in group n % 8 and in bank n // 8 % 2 of it: 16 bits in the order
        # of n. A whole register on a boundary of 256 bytes has one bank of each group, so that a
        # load and a store of the other parity share a cycle; off that boundary it touches both.
        first = step.addresses // _BLOCK_BYTES
        last = (step.addresses + np.maximum(step.extents, 1) - 1) // _BLOCK_BYTES
        count = np.minimum(last - first + 1, _BANKS)
        bits = (np.int64(1) << count) - 1 << first % _BANKS
        banks[step.entries] = (bits | bits >> _BANKS) & _ALL_BANKS
    return banks.tolist()
