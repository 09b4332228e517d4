"""A Cube core that runs calls of Matmul objects: what it holds between them, and what it issues."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.errors import refuse
from cubecore.frontends.cpp.launch.recording.matmul_object.block_program import (
    NO_ADDRESSES,
    Addresses,
    BlockProgram,
    Piece,
    kinds_of,
    summing,
)
from cubecore.frontends.cpp.launch.recording.matmul_object.call import ATOMICS, ObjectCall
from cubecore.frontends.cpp.matmul_wire import OPERANDS, MatmulBits, MatmulCall
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.scale_registers import SetAtomic, SetFpc, SetQuantPre
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.trace import Names
from cubecore.isa.scalar.control_registers import SetHf32Mode
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.kernels.matmul.block import BlockShape
from cubecore.kernels.matmul.plan import MatmulPlan
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import SCALE_WORD_BYTES, ceil_div

_C, _SCALE_A = OPERANDS.index("c"), OPERANDS.index("scale_a")


@dataclass(frozen=True, slots=True)
class OwnMove:
    """A move of a base block into L1 by a function of the user's own: `cubecore::OwnMove`."""

    operand: int
    to: int
    row: int
    column: int
    rows: int
    columns: int
    start: int
    object: int
    user: tuple[int, int]

    def facts(self) -> tuple[int, ...]:
        """Return the facts in the order of the header's fields."""
        place = self.operand, self.to, self.row, self.column, self.rows, self.columns
        return *place, self.start, self.object, *self.user


class Takes(Protocol):
    """Takes instructions in the trace's own numbers."""

    def __call__(self, kinds: NDArray[np.uint32], addresses: Addresses, where: int) -> None:
        """Take them; all were issued at one line."""


class Programs:
    """Plans and programs of a launch: its cores ask for the same ones."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._plans: dict[ObjectCall, MatmulPlan] = {}
        self._blocks: dict[tuple[int, BlockShape, int], BlockProgram] = {}

    def plan(self, asked: ObjectCall) -> MatmulPlan:
        """Return the plan of what is asked.

        Raises
        ------
        RequestError
            If the tiling is not legal, or the kernel does not carry what is asked.
        """
        plan = self._plans.get(asked)
        if plan is None:
            asked.require_legal(self._chip)
            plan = self._plans[asked] = asked.plan(self._chip)
        return plan

    def block(
        self, plan: MatmulPlan, share: BlockShape, before: BlockProgram | None
    ) -> BlockProgram:
        """Return the program of a block behind another one."""
        key = id(plan), share, id(before)
        program = self._blocks.get(key)
        if program is None:
            program = self._blocks[key] = BlockProgram(plan, share, before, OPERANDS)
        return program


@dataclass(frozen=True, slots=True)
class _Held:
    """The operand that the block before left in L1: whose it was, and where it came from."""

    client: int
    at: tuple[int, ...]


@dataclass
class _Position:
    """The progress of a core in a block: a tile that is computed, and whether it is stored.

    `c_start` is where the block lies in C, bytes, if it is a tile of its own.
    """

    program: BlockProgram
    client: int
    tile: int = -1
    stored: bool = True
    c_start: int = 0

    @property
    def complete(self) -> bool:
        """True if all tiles are stored."""
        return self.stored and self.tile + 1 == self.program.tiles


# The states of a core: `_at` is None before the first call and behind `free`. Then it holds a
# block's program and how far it is in it:
#
#   begun    tile -1, stored      `_begin`: nothing was issued yet
#   open     tile t, not stored   its matmuls are issued, and it waits in L0C for its store
#   between  tile t, stored       the next call may go on with t + 1 (`_goes_on`)
#   done     last tile, stored    all flags of free buffers are up, as another block expects them
#
# A call for another block while one is not done takes `_leave`, which ends its loads and raises
# what is missing, as if the rest had been computed. One for a tile out of order runs it as a block
# of its own (`_alone`). Another tiling, or the kernel's end, takes `free`: flags that are up must
# be waited for.
class CubeCore:
    """The state of one Cube core between calls."""

    def __init__(self, programs: Programs, names: Names, take: Takes) -> None:
        self._programs, self._names, self._take = programs, names, take
        self._at: _Position | None = None
        self._held: _Held | None = None
        self._freed = False
        self._settings: dict[str, Instruction] = {}

    def run(
        self,
        call: MatmulCall,
        where: int,
        client: int = 0,
        each: Callable[[], None] = lambda: None,
    ) -> Iterator[OwnMove]:
        """Issue what a call asks for; `each` is called behind the store of a tile.

        Yields the moves that functions of the user's own make, each before it is to be made.

        Raises
        ------
        RequestError
            If the tiling is not legal, or the kernel does not carry what is asked.
        """
        plan = self._programs.plan(ObjectCall.of(call))
        # Buffers and events of another plan lie elsewhere: all must be free before they change
        # hands.
        if self._at is not None and self._at.program.plan is not plan:
            self.free(where)
        self._set(call, where)
        own = [n for n, bit in enumerate((MatmulBits.OWN_A, MatmulBits.OWN_B)) if call.bits & bit]
        atomic = ATOMICS[call.atomic]
        stores = call.bits & MatmulBits.STORES and atomic != "none"
        if stores:
            self._issue([SetAtomic(operation=atomic, dtype=plan.problem.c_type)], where)
        for number in range(max(call.batches, 1)):
            start = self._bases(call, number)
            # A load by the user's own function stops the stream: what comes before it is issued,
            # then the function runs, and the rest of the block comes behind what it has issued.
            for piece, bases in self._pieces(call, plan, start, client, where):
                for taken, move in piece.around(own) if own else [(piece, None)]:
                    self._take(kinds_of(taken.templates, self._names), taken.placed(bases), where)
                    if move is not None:
                        yield own_move(call, plan, move, bases - start, start)
                if isinstance(piece.templates[0], CopyMatrixCcToGm):
                    each()
        if stores:
            self._issue([SetAtomic()], where)

    def free(self, where: int) -> None:
        """Take down the flags of free buffers: another program comes, or the kernel's end."""
        if self._at is not None:
            self._leave(where)
            down = self._at.program.tree.up
            self._issue([WaitFlag(src=s, dst=d, event_id=event) for s, d, event in down], where)
            self._freed = True
        self._at = self._held = None

    def _leave(self, where: int) -> None:
        """Leave a block before its end: its loads end, and its buffers are free."""
        at = self._at
        if at is None or at.complete:
            return
        stop = at.program.reached(at.tile, stored=at.stored) if at.tile >= 0 else 0
        # `telling` go first: a pipe may raise a lacking flag only once it knows that its last wait
        # has ended.
        raised, lacking, telling = at.program.open_flags(stop)
        self._issue([SetFlag(src=s, dst=d, event_id=event) for s, d, event in telling], where)
        ended = [*raised, *telling]
        self._issue([WaitFlag(src=s, dst=d, event_id=event) for s, d, event in ended], where)
        self._issue([SetFlag(src=s, dst=d, event_id=event) for s, d, event in lacking], where)
        at.tile, at.stored = at.program.tiles - 1, True

    def _issue(self, templates: Sequence[Instruction], where: int) -> None:
        self._take(kinds_of(templates, self._names), NO_ADDRESSES, where)

    def _set(self, call: MatmulCall, where: int) -> None:
        """Set the registers that do not hold what the call asks for."""
        wanted: dict[str, Instruction] = {}
        # A mode that was never asked for is left alone, so that a kernel without objects in HF32
        # issues nothing for it.
        if call.hf32 or "hf32" in self._settings:
            wanted["hf32"] = SetHf32Mode(enable=bool(call.hf32))
        if call.quantises == 1:
            wanted["scale"] = SetQuantPre(scale=call.scale)
        if call.quantises > 1:
            wanted["scales"] = SetFpc(scales_at=0)
        changed = [to for name, to in wanted.items() if self._settings.get(name) != to]
        self._settings |= wanted
        if changed:
            self._issue(changed, where)

    def _bases(self, call: MatmulCall, number: int) -> Addresses:
        """Return where each tensor of a matrix of the batch begins; the last is 0."""
        batches = max(call.batches, 1)
        own = [number * each // batches for each in call.each]
        at = [a + n * step for a, n, step in zip(call.at, own, call.strides, strict=True)]
        return np.array([*at, 0], np.int64)

    def _begin(
        self, call: MatmulCall, plan: MatmulPlan, bases: Addresses, client: int, where: int
    ) -> BlockProgram:
        """Take up the program of the next block."""
        self._leave(where)
        if self._at is None and self._freed:  # a flag is raised again behind its last wait
            self._issue([PipeBarrier(on="ALL")], where)
        biased = plan.problem.bias_type is not None and call.at[2] >= 0
        m, n, k = call.single
        kept, at = "", tuple(bases.tolist())
        # Two AIVs of one AIC that multiply the same A or B: what the first one brought to L1 is
        # used again if it begins at the same address with the same shape.
        if plan.problem.template == "IBSHARE" and self._held is not None:
            kept = self._kept(call, at, client)
        share = BlockShape(m, n, k, kept=kept, has_bias=biased)
        before = None if self._at is None else self._at.program
        program = self._programs.block(plan, share, before)
        self._at = _Position(program, client)
        self._held = _Held(client, (*at, m, n, k))
        return program

    def _kept(self, call: MatmulCall, at: tuple[int, ...], client: int) -> str:
        """Return the operand that another client has just left in L1: ``a``, ``b`` or none."""
        held = self._held
        if held is None or held.client == client:
            return ""
        m, n, k = call.single
        was = held.at
        for name, base, extent, was_extent in (("a", 0, m, was[-3]), ("b", 1, n, was[-2])):
            if (at[base], extent, k) == (was[base], was_extent, was[-1]):
                return name
        return ""

    def _pieces(
        self, call: MatmulCall, plan: MatmulPlan, bases: Addresses, client: int, where: int
    ) -> Iterator[tuple[Piece, Addresses]]:
        """Yield the instructions of a call's tiles, and where their tensors begin."""
        computes = bool(call.bits & MatmulBits.COMPUTES)
        stores = bool(call.bits & MatmulBits.STORES)
        # A partial output, or a tile of a triangle, comes in no order of the block.
        if computes and call.bits & MatmulBits.ALONE:
            yield from self._alone(call, plan, bases, client, where)
            return
        if computes and call.first == 0:
            program = self._begin(call, plan, bases, client, where)
            # The whole block in one call: as the kernel of a plain matmul issues it.
            if not call.tiles and stores and not call.bits & MatmulBits.IN_SEQUENCE:
                self._move_to(program.tiles - 1, stored=True)
                yield program.whole(), bases
                return
        elif computes and not self._goes_on(call, client):
            yield from self._alone(call, plan, bases, client, where)
            return
        at = self._at
        assert at is not None, "a block was begun"
        for number in range(call.tiles or at.program.tiles):
            tile = call.first + number if computes else at.tile
            if computes:
                self._move_to(tile, stored=False)
                computed = at.program.computing(tile)
                yield summing(computed) if call.bits & MatmulBits.SUMS_ON else computed, bases
            if stores:
                self._move_to(tile, stored=True)
                yield self._store(call, tile, number, bases)

    def _store(
        self, call: MatmulCall, tile: int, number: int, bases: Addresses
    ) -> tuple[Piece, Addresses]:
        """Return the store of a tile, in its place or one behind another."""
        assert self._at is not None, "a block was begun"
        program = self._at.program
        t, own = program.plan.tiling, bases.copy()
        if not call.bits & MatmulBits.IN_SEQUENCE:
            own[_C] += self._at.c_start
            return program.storing(tile), own
        own[_C] += number * program.plan.problem.c_type.bytes_of(t.baseM * t.baseN)
        return program.storing(tile, in_sequence=True), own

    def _move_to(self, tile: int, *, stored: bool) -> None:
        assert self._at is not None, "a block was begun"
        self._at.tile, self._at.stored = tile, stored

    def _goes_on(self, call: MatmulCall, client: int) -> bool:
        """True if a tile is the next one of the block in which the core is."""
        at = self._at
        return at is not None and (at.client, at.tile + 1) == (client, call.first) and at.stored

    def _alone(
        self, call: MatmulCall, plan: MatmulPlan, bases: Addresses, client: int, where: int
    ) -> Iterator[tuple[Piece, Addresses]]:
        """Yield the instructions of a tile as those of a block: others came in between."""
        row, column, rows, columns = tile_at(call, call.first)
        # The tile becomes a block of one tile: operands begin where its row, column and K do.
        own = MatmulCall.from_buffer_copy(call)
        own.first, own.single[0], own.single[1] = 0, rows, columns
        if call.bits & MatmulBits.PART:
            own.single[2] = min(plan.tiling.baseK, call.single[2] - call.k_first)
        starts = bases.copy()
        starts[0] += plan.a.start(row, call.k_first)
        starts[1] += plan.b.start(column, call.k_first)
        if plan.problem.bias_type is not None:
            starts[2] += plan.problem.bias_type.bytes_of(column)
        starts[3] += column * SCALE_WORD_BYTES
        for number, operand, first in ((_SCALE_A, plan.a, row), (_SCALE_A + 1, plan.b, column)):
            if operand.scales is not None:
                starts[number] += operand.scales.start(first, call.k_first)
        own.bits &= ~(MatmulBits.STORES | MatmulBits.ALONE)
        yield from self._pieces(own, plan, starts, client, where)
        assert self._at is not None, "a block was begun"
        self._at.c_start = plan.c.start(row, column)
        if call.bits & MatmulBits.STORES:
            self._move_to(0, stored=True)
            yield self._store(call, 0, 0, bases)


def tile_at(call: MatmulCall, tile: int) -> tuple[int, int, int, int]:
    """Return where a tile begins in its block, and its size: row, column, rows, columns."""
    t = TCubeTiling(*call.tiling)
    m, n, _ = call.single
    if t.iterateOrder == 1:
        row, column = divmod(tile, ceil_div(n, t.baseN))
    else:
        column, row = divmod(tile, ceil_div(m, t.baseM))
    row, column = row * t.baseM, column * t.baseN
    return row, column, min(t.baseM, m - row), min(t.baseN, n - column)


def own_move(
    call: MatmulCall, plan: MatmulPlan, move: Piece, shift: Addresses, start: Addresses
) -> OwnMove:
    """Return the move that stands for a load; `shift` is how far its tensors begin behind `start`.

    Rows and columns are those of A, M by K, or of B, K by N.

    Raises
    ------
    RequestError
        If a base block does not lie in L1 as its own extents say.
    """
    load = move.templates[0]
    if not isinstance(load, CopyGmToCbufMultiNd2Nz):
        need = "load base blocks of several rows in ND"
        raise refuse("a function of MatmulCallBackFunc", need, type(load).__name__)
    if load.dst_nz_c0_stride != ceil_div(load.n_value, 16) * 16:
        need = "load whole baseK rows along K"
        got = f"{load.n_value} of {plan.tiling.baseK}"
        raise refuse("a function of MatmulCallBackFunc", need, got)
    # Global memory's owner has a number of 0 or above, the local buffer -1.
    operand = int(max(move.owners))
    source = int(np.argmax(move.owners == operand))
    matrix = (plan.a, plan.b)[operand]
    byte = int(move.addresses[source] + shift[operand])
    line, within = divmod(byte, int(matrix.dtype.bytes_of(matrix.pitch)))
    across = within * 8 // matrix.dtype.bits
    outer, k = (line, across) if matrix.k_inner else (across, line)
    t, (m, n, k_all) = plan.tiling, call.single
    base, extent = ((t.baseM, m), (t.baseN, n))[operand]
    along = outer // base, min(base, extent - outer)
    inner = k // t.baseK, min(t.baseK, k_all - k)
    (row, rows), (column, columns) = (along, inner) if operand == 0 else (inner, along)
    return OwnMove(
        operand=operand,
        to=int(move.addresses[1 - source]),
        row=row,
        column=column,
        rows=rows,
        columns=columns,
        start=int(start[operand]),
        object=call.object,
        user=(int(call.user[0]), int(call.user[1])),
    )
