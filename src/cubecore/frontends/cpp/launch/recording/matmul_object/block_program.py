"""The program of one block of C: the kernel's own tree, flat, and where its tiles begin and end.

The tree is `cubecore.kernels.matmul.block`'s, so that the object and our kernel are one program.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.trace import Names
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event
from cubecore.kernels.matmul.block import BlockShape, BlockTree
from cubecore.kernels.matmul.launch import settle
from cubecore.kernels.matmul.plan import MatmulPlan
from cubecore.tiling.model.core_grid import CoreBlock

if TYPE_CHECKING:
    from cubecore.isa.program.expr import Var

_APART = 44
"""Bits of an address below the number of the tensor that it lies in."""
Addresses = NDArray[np.int64]
NO_ADDRESSES: Addresses = np.empty(0, np.int64)
"""The addresses of instructions without operands."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Instructions with the addresses of their operands, one behind another.

    `owners` says for each address from which of the call's tensors it counts, -1 for none.
    """

    templates: Sequence[Instruction]
    addresses: Addresses
    owners: Addresses

    def placed(self, bases: Addresses) -> Addresses:
        """Return the addresses where each tensor starts at its base; the last base is 0."""
        return self.addresses + bases[self.owners]

    def around(self, tensors: Sequence[int]) -> "Iterator[tuple[Piece, Piece | None]]":
        """Yield the instructions before each one that reads one of some tensors, and that one."""
        ends = np.cumsum([0, *(len(tuple(t.operands())) for t in self.templates)])
        begin = 0
        for number in range(len(self.templates)):
            own = self.owners[ends[number] : ends[number + 1]]
            if np.isin(own, tensors).any():
                yield self._part(ends, begin, number), self._part(ends, number, number + 1)
                begin = number + 1
        yield self._part(ends, begin, len(self.templates)), None

    def _part(self, ends: Addresses, start: int, stop: int) -> "Piece":
        held = slice(int(ends[start]), int(ends[stop]))
        return Piece(self.templates[start:stop], self.addresses[held], self.owners[held])


class BlockProgram:
    """The instructions of a block, and its tiles in the order in which they are computed.

    `names` are the tensors in the order of a call's addresses, `before` the block that the core
    computed before this one by the same plan.
    """

    def __init__(
        self,
        plan: MatmulPlan,
        share: BlockShape,
        before: "BlockProgram | None",
        names: Sequence[str],
    ) -> None:
        self.plan, self.share, self._before = plan, share, before
        builder = Builder("matmul_object", plan.step)
        left = None if before is None else before.tree
        if left is not None and not left.share.lies_as(share):
            settle(builder, left.up)
        self.tree: BlockTree = BlockTree(plan, builder, share, left)
        program = builder.finish()
        # Slots get addresses so far apart that the high bits of what is listed name the tensor, and
        # the low bits the distance in it; local addresses stay below all of them.
        at = {name: (number + 1) << _APART for number, name in enumerate(names)}
        start = CoreBlock(0, 0, 0, share.m, share.n, 0, share.k)
        slots: Mapping[Var, int] = {v: at[n] for v, (n, _) in self.tree.slots(start).items()}
        listed = list(program.listing(slots))
        self.templates = [template for template, _ in listed]
        widths = [len(addresses) for _, addresses in listed]
        self._ends = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        flat = np.fromiter((a for _, addresses in listed for a in addresses), np.int64)
        self._owners = (flat >> _APART) - 1
        self._addresses = flat & ((1 << _APART) - 1)
        self._starts = [n for n, t in enumerate(self.templates) if _begins_tile(t)]
        self._stores = [n for n, t in enumerate(self.templates) if isinstance(t, CopyMatrixCcToGm)]
        assert len(self._stores) == len(self._starts), "each tile is stored once"

    @property
    def tiles(self) -> int:
        """The tiles of the block."""
        return len(self._starts)

    def whole(self) -> Piece:
        """Return all of it."""
        return self._piece(0, len(self.templates))

    def computing(self, tile: int) -> Piece:
        """Return what computes a tile, with what comes before the first one."""
        return self._piece(self._starts[tile] if tile else 0, self._stores[tile])

    def storing(self, tile: int, *, in_sequence: bool = False) -> Piece:
        """Return the store of a tile and what follows until the next one.

        `in_sequence` writes the tile by itself: at the start of C, as a matrix of baseM x baseN.
        """
        last = tile + 1 == self.tiles
        stop = len(self.templates) if last else self._starts[tile + 1]
        piece = self._piece(self._stores[tile], stop)
        return self._alone(piece) if in_sequence else piece

    def reached(self, tile: int, *, stored: bool) -> int:
        """Return how many instructions come before what follows a tile, or before its store."""
        if not stored:
            return self._stores[tile]
        return len(self.templates) if tile + 1 == self.tiles else self._starts[tile + 1]

    def open_flags(self, stop: int) -> tuple[list[Event], list[Event], list[Event]]:
        """Return the flags that a stop after so many instructions leaves up, and those it lacks.

        Those that are up between blocks are neither. The last are flags that must be raised and
        awaited before those that it lacks: a pipe raises a flag again only once it knows that the
        last wait for it has ended. Where the waiting pipe has set no flag towards it since, an
        event that the block does not use tells it.
        """
        up = Counter(() if self._before is None else self._before.tree.up)
        unknown: set[Event] = set()
        for template in self.templates[:stop]:
            if isinstance(template, SetFlag):
                up[_event(template)] += 1
                positions = template.dst, template.src
                unknown = {event for event in unknown if event[:2] != positions}
            elif isinstance(template, WaitFlag):
                up[_event(template)] -= 1
                unknown.add(_event(template))
        # Flags of free buffers are up between blocks, and neither too many nor missing.
        free = set(self.tree.up)
        raised = [event for event, times in up.items() if times > 0 and event not in free]
        lacking = [event for event in self.tree.up if up[event] == 0]
        untold = dict.fromkeys((dst, src) for src, dst, n in lacking if (src, dst, n) in unknown)
        return raised, lacking, [(src, dst, self._unused(src, dst)) for src, dst in untold]

    def _unused(self, src: str, dst: str) -> int:
        """Return an event from a pipe to another that the block does not use."""
        flags = (t for t in self.templates if isinstance(t, SetFlag))
        used = {t.event_id for t in flags if (t.src, t.dst) == (src, dst)}
        return next(number for number in count() if number not in used)

    def _piece(self, start: int, stop: int) -> Piece:
        held = slice(int(self._ends[start]), int(self._ends[stop]))
        return Piece(self.templates[start:stop], self._addresses[held], self._owners[held])

    def _alone(self, piece: Piece) -> Piece:
        """Return the store of a tile to the start of C."""
        store, *others = piece.templates
        assert isinstance(store, CopyMatrixCcToGm), "a tile's store is first"
        tiling = self.plan.tiling
        addresses = piece.addresses.copy()
        addresses[0] = 0
        stride = tiling.baseN if store.nz2nd_en else self.plan.c.stride_of(tiling.baseM)
        return Piece([replace(store, dst_stride=stride), *others], addresses, piece.owners)


def _event(template: SetFlag | WaitFlag) -> Event:
    return template.src, template.dst, template.event_id


def _begins_tile(template: Instruction) -> bool:
    return isinstance(template, ScalarWork) and template.part == "tile"


def summing(piece: Piece) -> Piece:
    """Return what computes a tile on top of what stands in L0C."""

    def added(template: Instruction) -> Instruction:
        if isinstance(template, Mad | MadMx) and template.c_matrix_init_val:
            return replace(template, c_matrix_init_val=False)
        return template

    return Piece([added(template) for template in piece.templates], piece.addresses, piece.owners)


def kinds_of(templates: Sequence[Instruction], names: Names) -> NDArray[np.uint32]:
    """Return the numbers of templates."""
    known = names.kind_of
    numbers = (known[id(t)] if id(t) in known else names.kind(t) for t in templates)
    return np.fromiter(numbers, np.uint32, len(templates))
