"""Permutation of tokens for a mixture of experts: rows to their experts, and their results back.

Tokens are spread evenly: token t takes the experts (t k + s) mod E for s below k, so that rows of
an expert come from every (E / k)-th token. Permuting brings each token once and writes its row k
times; bringing back adds a token's k rows up, each times its weight, in float32.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_buffers, of_tiles
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.tile import LANES, Tile
from cubecore.kernels.operators.wide import narrowed, widened
from cubecore.units import align_up, ceil_div

_FLOAT = element_type("float32")
_ROW_BYTES = 32 * 1024
"""Bytes of a row that a core brings at a time to permute it."""
_SUM_FLOATS = 8192
"""Floats of all rows of a token that a core adds up at a time."""
_MOST_CHOSEN = 64


@dataclass(frozen=True, slots=True)
class MoeShape:
    """`tokens` tokens of `width` elements that take `chosen` of `experts` experts each.

    Raises
    ------
    RequestError
        If tokens cannot be spread evenly.
    """

    tokens: int
    experts: int
    chosen: int
    width: int
    dtype: ElementType

    def __post_init__(self) -> None:
        if self.chosen > min(self.experts, _MOST_CHOSEN) or self.experts % self.chosen:
            need = f"be at most {_MOST_CHOSEN} and divide the experts = {self.experts}"
            raise refuse("the experts of a token", need, self.chosen)
        if self.tokens > self.turn and self.tokens % self.turn:
            need = f"be at most experts / chosen = {self.turn}, or a multiple of it"
            raise refuse("the tokens of a permutation", need, self.tokens)

    @property
    def turn(self) -> int:
        """Tokens after which the same experts are taken again."""
        return self.experts // self.chosen

    @property
    def each(self) -> int:
        """Rows of an expert that has any."""
        return int(ceil_div(self.tokens, self.turn))

    @property
    def grid(self) -> tuple[int, int]:
        """The tokens as turns, and tokens of a turn: token t is (t // turn, t % turn)."""
        return self.each, min(self.turn, self.tokens)

    @property
    def rows(self) -> int:
        """Rows after permuting."""
        return self.tokens * self.chosen

    def destination(self, turn: int, token: int, expert: int) -> int:
        """Return the row where a token's row for one of its experts goes."""
        return (token * self.chosen + expert) * self.each + turn


def moe_launch(
    shape: MoeShape,
    chip: Chip,
    cores: int | None = None,
    tree_of: "type[MoeTree] | None" = None,
    *,
    back: bool,
) -> Launch:
    """Return the launch of the permutation, or `back`, on the vector cores of a chip.

    `tree_of` makes the tree of a core, A2's if None.
    """
    cores = cores or chip.require("aiv_count", "an operator")
    turns, tokens = shape.grid
    # The longer of the two axes is dealt out, so that as many cores as can be have a share. Cores
    # with shares of one size differ in their addresses alone, and have one tree.
    by_turn = turns >= tokens
    total = turns if by_turn else tokens
    share = ceil_div(total, cores)
    tree = cache(partial(tree_of or MoeTree, shape, back=back))
    programs = []
    for core, first in enumerate(range(0, total, share)):
        count = min(share, total - first)
        if by_turn:
            programs.append(tree(count, tokens).on_core(core, turn=first, token=0))
        else:
            programs.append(tree(turns, count).on_core(core, turn=0, token=first))
    return Launch(tuple(_tensors(shape, back=back)), tuple(programs), KIND)


def _tensors(shape: MoeShape, *, back: bool) -> Iterator[TensorSpec]:
    size = shape.dtype.size_bytes * shape.width
    sizes = {"x": shape.tokens * size, "y": shape.rows * size}
    if back:
        yield TensorSpec("x", sizes["y"])
        yield TensorSpec("weights", 4 * shape.tokens * shape.chosen)
        yield TensorSpec("y", sizes["x"], output=True)
        return
    yield TensorSpec("x", sizes["x"])
    yield TensorSpec("y", sizes["y"], output=True)


class MoeTree:
    """The tree of a core with some turns of some tokens."""

    arranged = DoubleBuffers.side_by_side

    def __init__(self, shape: MoeShape, turns: int, tokens: int, *, back: bool) -> None:
        way = "back" if back else "permute"
        b = Builder(f"moe_{way}_{turns}x{tokens}x{shape.width}", KIND)
        self.shape, self.builder, self.flags, self.back = shape, b, Flags(b), back
        names = ("tokens", "rows", "weights") if back else ("tokens", "rows")
        self.slots: dict[str, Var] = {name: b.slot(name) for name in names}
        self.ring = Ring(b, "buffer", 2)
        size = shape.dtype.size_bytes
        most = _SUM_FLOATS // shape.chosen // LANES * LANES if back else _ROW_BYTES // size
        step = min(max(most, LANES), shape.width)
        free = of_tiles(2) if back else of_buffers(2, ("MTE3", "MTE2"))
        with (
            self.flags.raised(free),
            b.loop("turn", turns) as turn,
            b.loop("token", tokens) as token,
        ):
            row = (turn * shape.grid[1] + token) * (shape.width * size)
            # `destination` without the expert: rows of one expert lie behind each other by turn.
            made = (token * (shape.chosen * shape.each) + turn) * (shape.width * size)
            weights = (turn * shape.grid[1] + token) * (4 * shape.chosen)
            for index, columns in b.split("columns", shape.width, step):
                at = index * (step * size)
                if back:
                    self._add_up(made + at, row + at, weights, columns, step)
                else:
                    self._spread(row + at, made + at, columns)
        self.program = b.finish()

    def on_core(self, core: int, *, turn: int, token: int) -> CoreProgram:
        """Return the share of a core that begins at a turn and a token of it."""
        s = self.shape
        size = s.width * s.dtype.size_bytes
        number = turn * s.grid[1] + token
        tokens = ("y" if self.back else "x", number * size)
        rows = ("x" if self.back else "y", s.destination(turn, token, 0) * size)
        slots = {self.slots["tokens"]: tokens, self.slots["rows"]: rows}
        if self.back:
            slots[self.slots["weights"]] = ("weights", 4 * number * s.chosen)
        return on_vector_core(core, self.program, slots)

    def _spread(self, source: Expr, into: Expr, columns: int) -> None:
        """Bring a token's columns, and write them to every row of the token."""
        s, b, flags, event = self.shape, self.builder, self.flags, self.ring.at
        length = columns * s.dtype.size_bytes
        buffer = event * _ROW_BYTES
        flags.wait("MTE3", "MTE2", event)
        load = CopyGmToUbufAlign(dtype=s.dtype, n_burst=1, len_burst=length)
        b.issue(load, buffer, Expr.of(self.slots["tokens"]) + source)
        flags.set("MTE2", "MTE3", event)
        flags.wait("MTE2", "MTE3", event)
        store = CopyUbufToGmAlign(dtype=s.dtype, n_burst=1, len_burst=length)
        with b.loop("expert", s.chosen) as expert:
            away = expert * (s.each * s.width * s.dtype.size_bytes)
            b.issue(store, Expr.of(self.slots["rows"]) + into + away, buffer)
        flags.set("MTE3", "MTE2", event)
        self.ring.next()

    def _add_up(self, source: Expr, into: Expr, weights: Expr, columns: int, step: int) -> None:
        """Bring all rows of a token, weigh them, and write their sum."""
        s, b, flags, event = self.shape, self.builder, self.flags, self.ring.at
        size, k = s.dtype.size_bytes, s.chosen
        pitch = align_up(step, LANES)
        sizes = {"rows": k * pitch * size, "weights": 4 * k, "result": pitch * size}
        buffers = self.arranged(sizes)
        tile = Tile(b, k, columns)
        flags.wait("V", "MTE2", event)
        load = CopyGmToUbufAlign(
            dtype=s.dtype,
            n_burst=k,
            len_burst=columns * size,
            src_gap=(s.each * s.width - columns) * size if k > 1 else 0,
            dst_gap=(tile.pitch * size - align_up(columns * size, 32)) // 32,
        )
        rows = buffers.of("rows", event)
        b.issue(load, rows, Expr.of(self.slots["rows"]) + source)
        weigh = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=4 * k)
        factors = buffers.of("weights", event)
        b.issue(weigh, factors, Expr.of(self.slots["weights"]) + weights)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        self.compute(buffers, tile)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        store = CopyUbufToGmAlign(dtype=s.dtype, n_burst=1, len_burst=columns * size)
        b.issue(store, Expr.of(self.slots["tokens"]) + into, buffers.of("result", event))
        flags.set("MTE3", "V", event)
        self.ring.next()

    def compute(self, buffers: DoubleBuffers, tile: Tile) -> None:
        """Weigh a token's rows and leave their sum where MTE3 takes it."""
        s, flags, event = self.shape, self.flags, self.ring.at
        # Behind the buffers, once each, as the Vector unit alone uses them: the rows in float32,
        # the weights spread over blocks, and the sum.
        wide, k = buffers.end, s.chosen
        spread = wide + 4 * k * tile.pitch
        total = spread + 32 * align_up(k, 8)
        widened(tile, wide, buffers.of("rows", event), s.dtype)
        tile.spread(spread, buffers.of("weights", event))
        # Rows and weights have been copied by then: the next ones may come while these are added
        # up.
        flags.set("V", "MTE2", event)
        tile.by_row("vmul", wide, wide, spread)
        self._sum(total, wide, tile)
        flags.wait("MTE3", "V", event)
        row = Tile(self.builder, 1, tile.columns)
        narrowed(row, buffers.of("result", event), total, s.dtype)

    def _sum(self, total: int, wide: int, tile: Tile) -> None:
        """Leave the sum of all rows of a tile."""
        # Row by row into one row: each sum waits for the one before.
        row = Tile(self.builder, 1, tile.columns)
        row.each("vadds", total, wide, value=0.0)
        for other in range(1, tile.rows):
            row.each("vadd", total, total, wide + 4 * other * tile.pitch)
        self.builder.issue(PipeBarrier(on="V"))
