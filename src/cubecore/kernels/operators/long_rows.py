"""The tree of a core whose rows do not fit in UB: passes over each row, a piece of it at a time.

A function's passes end where it reduces a row (`passes`). Every pass loads the row's inputs anew,
piece by piece, and computes again what it needs of them, so that nothing but one number a row goes
from pass to pass: the norm of x0 + x1 adds twice, once for the sum of squares and once to scale it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.errors import refuse
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.elementwise import KIND
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.functions import Function, OperatorProblem
from cubecore.kernels.operators.passes import (
    INPUT,
    NUMBER,
    ONES,
    TILE,
    VECTOR,
    FunctionPass,
    Passes,
    PassValue,
    passes_of,
)
from cubecore.kernels.operators.tile import LANES, Tile, float_code
from cubecore.kernels.operators.wide import narrowed, quantised, widened
from cubecore.units import align_up, ceil_div

_MOST_COLUMNS = 4096
_NUMBER_BYTES = 256
"""A number a row, spread or not, has a repeat of its own."""
_NEUTRAL = {"add": 0.0, "max": -math.inf}
_LETTERS = {INPUT: "x", VECTOR: "v", NUMBER: "s"}
_FLOAT, _INT8 = element_type("float32"), element_type("int8")


@dataclass(frozen=True, slots=True)
class PieceSteps:
    """Steps of a pass over a piece of a row, each value in one of `count` tiles of float32.

    `loaded` are inputs and vectors, `computed` are steps in their order.
    """

    loaded: tuple[PassValue, ...]
    computed: tuple[PassValue, ...]
    tile_of: Mapping[PassValue, int]
    count: int


def steps_of(passes: Passes, turn: int) -> PieceSteps:
    """Return the steps of pass `turn`, with those of earlier passes that it computes again."""
    wanted = [each.sources[0] for each in passes.passes[turn].reduced]
    wanted += passes.tiles_of(turn)
    needed: set[PassValue] = set()
    left = list(wanted)
    while left:
        value = left.pop()
        if value not in needed and value.kind in {INPUT, VECTOR, TILE}:
            needed.add(value)
            left.extend(value.sources)
    ordered = [value for each in passes.passes for value in each.lanes if value in needed]
    loaded = sorted(needed.difference(ordered), key=lambda each: (each.kind, each.number))
    # A tile is free after the last step that reads it, for that step's own result already: an
    # instruction on elements may write over what it reads. Results stay until the end.
    last_read = {source: step for step, each in enumerate(ordered) for source in each.sources}
    last_read |= dict.fromkeys(wanted, len(ordered))
    tile_of = {value: number for number, value in enumerate(loaded)}
    free: list[int] = []
    for step, value in enumerate(ordered):
        read = dict.fromkeys(each for each in value.sources if each in tile_of)
        free += [tile_of[each] for each in read if last_read[each] == step]
        tile_of[value] = free.pop() if free else max(tile_of.values(), default=-1) + 1
    count = max(tile_of.values(), default=-1) + 1
    return PieceSteps(tuple(loaded), tuple(ordered), tile_of, count)


@dataclass(frozen=True)
class RowPieces:
    """Rows of `columns` that are walked in pieces of `piece`, and where all lies in UB."""

    problem: OperatorProblem
    piece: int

    @property
    def function(self) -> Function:
        """The function that is computed."""
        return self.problem.function

    @cached_property
    def passes(self) -> Passes:
        """The passes over a row."""
        return passes_of(self.function, self.problem.columns)

    @cached_property
    def steps(self) -> tuple[PieceSteps, ...]:
        """The steps of each pass."""
        return tuple(steps_of(self.passes, turn) for turn in range(len(self.passes.passes)))

    @cached_property
    def buffers(self) -> DoubleBuffers:
        """Buffers of what MTE2 brings and MTE3 stores, of a piece and of the next one."""
        function, problem = self.function, self.problem
        names = [f"x{n}" for n in range(function.arrays)]
        names += ["y", *["sum"] * function.last]
        sizes = dict.fromkeys(names, self.piece * problem.dtype.size_bytes)
        vector_bytes = self.piece * problem.vector_type.size_bytes
        sizes |= {f"v{n}": vector_bytes for n in range(function.vectors)}
        sizes |= {f"s{n}": _NUMBER_BYTES for n in range(function.numbers)}
        return DoubleBuffers.side_by_side(sizes | {"scale": _NUMBER_BYTES})

    @cached_property
    def given_numbers(self) -> tuple[PassValue, ...]:
        """The inputs of one number a row that lanes take."""
        found = [each for one in self.passes.passes for each in one.numbers if each.kind == NUMBER]
        return tuple(dict.fromkeys(found))

    @cached_property
    def _numbers(self) -> Mapping[PassValue, int]:
        values = *self.passes.row_values, *self.given_numbers
        return {value: number for number, value in enumerate(values)}

    @property
    def _numbers_at(self) -> int:
        return self.buffers.end

    def number_at(self, value: PassValue) -> int:
        """Return where a row's number lies."""
        return self._numbers_at + 2 * _NUMBER_BYTES * self._numbers[value]

    def spread_at(self, value: PassValue) -> int:
        """Return where a row's number lies spread over blocks."""
        return self.number_at(value) + _NUMBER_BYTES

    @property
    def piece_number(self) -> int:
        """The reduction of one piece, before it joins those of the pieces before."""
        return self._numbers_at + 2 * _NUMBER_BYTES * len(self._numbers)

    @property
    def ones(self) -> int:
        """64 times 1."""
        return self.piece_number + _NUMBER_BYTES

    @property
    def partial(self) -> int:
        """Room for the reductions of a piece by 64."""
        return self.ones + _NUMBER_BYTES

    def wide(self, number: int) -> int:
        """Return a tile of float32."""
        partial: int = 4 * LANES * (1 + ceil_div(self.piece, LANES**2))
        return self.partial + partial + 4 * self.piece * number

    @property
    def scratch(self) -> int:
        """A tile behind those of all passes."""
        return self.wide(max(each.count for each in self.steps))

    @property
    def end(self) -> int:
        """The end of all that is used."""
        scratch = 2 * self.piece if self.function.gives == "quantised" else 0
        return self.scratch + scratch


def row_pieces(problem: OperatorProblem, chip: Chip) -> RowPieces:
    """Return pieces of equal length, as long as UB takes, of at most 4,096 columns.

    Raises
    ------
    RequestError
        If not even 64 columns fit in the Unified Buffer.
    """
    columns = problem.columns
    for most in range(min(_MOST_COLUMNS, align_up(columns, LANES)), 0, -LANES):
        piece = align_up(ceil_div(columns, ceil_div(columns, most)), LANES)
        pieces = RowPieces(problem, piece)
        if pieces.end <= chip.ub_user_bytes:
            return pieces
    need = f"be at least {pieces.end} B for a tile of 64 columns"
    raise refuse(f"ub_user_bytes of {chip.name}", need, chip.ub_user_bytes)


class LongRowTree:
    """The tree of a core with `length` rows, in `slots` for its tensors."""

    def __init__(self, pieces: RowPieces, slots: Iterable[str], length: int) -> None:
        b = Builder(f"rows_{length}x{pieces.problem.columns}", KIND)
        self.pieces, self.builder, self.flags = pieces, b, Flags(b)
        self.slots = {name: b.slot(name) for name in slots}
        self.ring = Ring(b, "buffer", 2)
        self._number = Tile(b, 1, 1)
        self._fill(pieces.ones, 1.0)
        for value in (*pieces.passes.row_values, *pieces.given_numbers):
            self._fill(pieces.number_at(value), 0.0)
        b.issue(PipeBarrier(on="V"))
        with self.flags.raised(of_tiles(2)), b.loop("row", length) as row:
            for each in pieces.given_numbers:
                self._load_number(each, row)
            for turn, now in enumerate(pieces.passes.passes):
                self._pass(turn, now, row)
            self._store_number(row)
        self.program = b.finish()

    def _fill(self, at: int, value: float) -> None:
        fill = instruction_named("vector_dup")(dtype=_FLOAT, value=float_code(value))
        self.builder.issue(fill, Expr(at))

    def _load_number(self, number: PassValue, row: Expr) -> None:
        """Bring a row's own number, and spread it."""
        pieces, flags, event, name = self.pieces, self.flags, self.ring.at, _name_of(number)
        # It is brought once, and all passes over the row find it spread; its buffer is free as soon
        # as V has copied it, since `number_at` is V's alone.
        flags.wait("V", "MTE2", event)
        source = Expr.of(self.slots[name]) + row * _FLOAT.size_bytes
        self._number.load(pieces.buffers.of(name, event), source, _FLOAT)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        at = pieces.number_at(number)
        widened(self._number, at, pieces.buffers.of(name, event), _FLOAT)
        flags.set("V", "MTE2", event)
        self._number.spread(pieces.spread_at(number), at)

    # --- a pass over a row

    def _pass(self, turn: int, now: FunctionPass, row: Expr) -> None:
        """Walk a row's pieces, then compute what there is of one number a row."""
        pieces = self.pieces
        if now.reduced:
            for each in now.reduced:
                self._fill(pieces.number_at(each), _NEUTRAL[each.in_ub])
            self.builder.issue(PipeBarrier(on="V"))
        if now.reduced or pieces.passes.tiles_of(turn):
            for index, count in self.builder.split(
                f"piece{turn}", pieces.problem.columns, pieces.piece
            ):
                self._piece(turn, row, index * pieces.piece, Tile(self.builder, 1, count))
        for each in now.rows:
            sources = [pieces.number_at(source) for source in each.sources]
            into = pieces.number_at(each)
            self._number.each(each.in_ub, into, *sources, value=each.scalar)
        used = {source for later in pieces.passes.passes for source in later.numbers}
        for each in (*now.reduced, *now.rows):
            if each in used:
                self._number.spread(pieces.spread_at(each), pieces.number_at(each))

    def _piece(self, turn: int, row: Expr, first: Expr, tile: Tile) -> None:
        pieces, flags, event = self.pieces, self.flags, self.ring.at
        steps, problem = pieces.steps[turn], pieces.problem
        # One piece: MTE2 loads when V has freed the buffers; V widens to float32, which frees them,
        # computes, and joins reductions; results go out when MTE3 has freed their buffers.
        flags.wait("V", "MTE2", event)
        for each in steps.loaded:
            name = _name_of(each)
            dtype, element = problem.vector_type, first
            if each.kind == INPUT:
                dtype, element = problem.dtype, row * problem.pitch + first
            source = Expr.of(self.slots[name]) + element * dtype.size_bytes
            tile.load(pieces.buffers.of(name, event), source, dtype)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        for each in steps.loaded:
            dtype = problem.dtype if each.kind == INPUT else problem.vector_type
            source = pieces.buffers.of(_name_of(each), event)
            widened(tile, pieces.wide(steps.tile_of[each]), source, dtype)
        flags.set("V", "MTE2", event)
        self._compute(steps, tile)
        for each in pieces.passes.passes[turn].reduced:
            wide = pieces.wide(steps.tile_of[each.sources[0]])
            tile.reduce(each.in_ub, pieces.piece_number, wide, pieces.partial)
            so_far = pieces.number_at(each)
            self._number.each(f"v{each.in_ub}", so_far, so_far, pieces.piece_number)
        self._store_tiles(turn, row * problem.columns + first, tile)
        self.ring.next()

    def _compute(self, steps: PieceSteps, tile: Tile) -> None:
        pieces = self.pieces

        def at(value: PassValue) -> int:
            return pieces.wide(steps.tile_of[value])

        for each in steps.computed:
            left, *others = each.sources
            if left.kind == ONES:
                tile.with_constant(each.in_ub, at(each), pieces.ones, at(others[0]))
            elif others and others[0].of_rows:
                tile.by_row(each.in_ub, at(each), at(left), pieces.spread_at(others[0]))
            else:
                sources = [at(source) for source in each.sources]
                tile.each(each.in_ub, at(each), *sources, value=each.scalar)

    # --- results

    def _store_tiles(self, turn: int, element: Expr, tile: Tile) -> None:
        """Store the tiles that a pass completes, from `element` on."""
        pieces, event = self.pieces, self.ring.at
        results = pieces.passes.tiles_of(turn)
        if not results:
            return
        types = {"y": _INT8 if pieces.function.gives == "quantised" else pieces.problem.dtype}
        names = ["y" if each is pieces.passes.tile else "sum" for each in results]
        self.flags.wait("MTE3", "V", event)
        for name, each in zip(names, results, strict=True):
            wide = pieces.wide(pieces.steps[turn].tile_of[each])
            into, dtype = pieces.buffers.of(name, event), types.get(name, pieces.problem.dtype)
            if dtype is _INT8:
                quantised(tile, into, wide, pieces.scratch)
            else:
                narrowed(tile, into, wide, dtype)
        with self._storing(event):
            for name in names:
                dtype = types.get(name, pieces.problem.dtype)
                into = Expr.of(self.slots[name]) + element * dtype.size_bytes
                tile.store(into, pieces.buffers.of(name, event), dtype)

    def _store_number(self, row: Expr) -> None:
        """Store a result that is one number a row."""
        pieces, event = self.pieces, self.ring.at
        name = {"rows": "y", "quantised": "scale"}.get(pieces.function.gives)
        if name is None:
            return
        value = pieces.passes.row
        assert value is not None
        dtype = pieces.problem.dtype if name == "y" else _FLOAT
        self.flags.wait("MTE3", "V", event)
        narrowed(self._number, pieces.buffers.of(name, event), pieces.number_at(value), dtype)
        with self._storing(event):
            into = Expr.of(self.slots[name]) + row * dtype.size_bytes
            self._number.store(into, pieces.buffers.of(name, event), dtype)
        self.ring.next()

    @contextmanager
    def _storing(self, event: Expr) -> Iterator[None]:
        """Let MTE3 wait for the Vector unit, and the next results for MTE3."""
        self.flags.set("V", "MTE3", event)
        self.flags.wait("V", "MTE3", event)
        yield
        self.flags.set("MTE3", "V", event)


def _name_of(value: PassValue) -> str:
    return f"{_LETTERS[value.kind]}{value.number}"
