"""Rotary embedding: each half of a head turned by the angles of its token.

y1 = x1 cos - x2 sin and y2 = x2 cos + x1 sin, for the first and the second half of every head, in
float32. Tokens are dealt out to the vector cores, heads too where there are fewer tokens; a core
works on the heads of a token at a time, with two buffers.
"""

from collections.abc import Iterator, Mapping
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
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.tile import LANES, Tile
from cubecore.kernels.operators.wide import narrowed, widened
from cubecore.units import align_up, ceil_div

_TILE_BYTES = 16 * 1024
"""Bytes of the heads that a core works on at a time."""
_MOST_HEADS = 255
_EDGE = 32
_MOST_WIDTH = 512


@dataclass(frozen=True, slots=True)
class RotaryShape:
    """`heads` heads of `width` elements of each of `tokens` tokens.

    Raises
    ------
    RequestError
        If the kernel cannot take the width of a head.
    """

    tokens: int
    heads: int
    width: int
    dtype: ElementType

    def __post_init__(self) -> None:
        if self.width % _EDGE or self.width > _MOST_WIDTH:
            need = f"be a multiple of {_EDGE} up to {_MOST_WIDTH}"
            raise refuse("the head size of rotary", need, self.width)

    @property
    def half(self) -> int:
        """Elements of half a head."""
        return self.width // 2

    @property
    def together(self) -> int:
        """Heads that a core works on at a time."""
        return min(self.heads, _TILE_BYTES // (self.width * self.dtype.size_bytes), _MOST_HEADS)


def rotary_launch(
    shape: RotaryShape,
    chip: Chip,
    cores: int | None = None,
    tree_of: "type[RotaryTree] | None" = None,
) -> Launch:
    """Return the launch on the vector cores of a chip, or on so many of them.

    `tree_of` makes the tree of a core with so many tokens, A2's if None.
    """
    cores = cores or chip.require("aiv_count", "an operator")
    share = ceil_div(shape.tokens, cores)
    tree = cache(partial(tree_of or RotaryTree, shape))
    programs = [
        tree(min(share, shape.tokens - first)).on_core(core, first)
        for core, first in enumerate(range(0, shape.tokens, share))
    ]
    return Launch(tuple(_tensors(shape)), tuple(programs), KIND)


def _tensors(shape: RotaryShape) -> Iterator[TensorSpec]:
    size = shape.dtype.size_bytes
    whole, angles = shape.tokens * shape.heads * shape.width, shape.tokens * shape.half
    yield TensorSpec("x", whole * size)
    yield TensorSpec("cos", angles * size)
    yield TensorSpec("sin", angles * size)
    yield TensorSpec("y", whole * size, output=True)


class RotaryTree:
    """The tree of a core with `count` tokens."""

    arranged = DoubleBuffers.side_by_side

    def __init__(self, shape: RotaryShape, count: int) -> None:
        b = Builder(f"rotary_{count}x{shape.heads}x{shape.width}", KIND)
        self.shape, self.builder, self.flags = shape, b, Flags(b)
        self.slots: dict[str, Var] = {name: b.slot(name) for name in ("x", "cos", "sin", "y")}
        size, tile = shape.dtype.size_bytes, shape.together * shape.width
        half = shape.half * size
        sizes = {"x": tile * size, "cos": half, "sin": half, "y": tile * size}
        self.buffers = self.arranged(sizes)
        self.ring = Ring(b, "buffer", 2)
        with self.flags.raised(of_tiles(2)), b.loop("token", count) as token:
            for index, heads in b.split("heads", shape.heads, shape.together):
                self._heads(token, index * shape.together, heads)
        self.program = b.finish()

    def on_core(self, core: int, first: int) -> CoreProgram:
        """Return the share of a core that begins at a token."""
        s = self.shape
        size = s.dtype.size_bytes
        row, angles = s.heads * s.width * size, s.half * size
        slots = {
            var: (name, first * (row if name in "xy" else angles))
            for name, var in self.slots.items()
        }
        return on_vector_core(core, self.program, slots)

    def _heads(self, token: Expr, first: Expr, heads: int) -> None:
        """Turn some heads of a token."""
        s, flags, event = self.shape, self.flags, self.ring.at
        size = s.dtype.size_bytes
        begin = token * (s.heads * s.width * size) + first * (s.width * size)
        flags.wait("V", "MTE2", event)
        tile = heads * s.width
        for name, elements, at in (
            ("x", tile, begin),
            ("cos", s.half, token * (s.half * size)),
            ("sin", s.half, token * (s.half * size)),
        ):
            load = CopyGmToUbufAlign(dtype=s.dtype, n_burst=1, len_burst=elements * size)
            self.builder.issue(load, self.buffers.of(name, event), Expr.of(self.slots[name]) + at)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        self.compute(heads)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        store = CopyUbufToGmAlign(dtype=s.dtype, n_burst=1, len_burst=tile * size)
        self.builder.issue(store, Expr.of(self.slots["y"]) + begin, self.buffers.of("y", event))
        flags.set("MTE3", "V", event)
        self.ring.next()

    def compute(self, heads: int) -> None:
        """Compute a tile, from what MTE2 has brought to what MTE3 stores."""
        s, flags, event = self.shape, self.flags, self.ring.at
        tile, at = s.together * s.width, self.buffers.end
        wide = {}
        half = dict.fromkeys(("cos", "sin"), s.half)
        for name, floats in ({"x": tile} | half | {"y": tile, "part": tile}).items():
            wide[name] = at
            at += _whole(4 * floats)
        for name, elements in ({"x": heads * s.width} | half).items():
            row = Tile(self.builder, 1, elements)
            widened(row, wide[name], self.buffers.of(name, event), s.dtype)
        flags.set("V", "MTE2", event)
        self._turn(heads, wide)
        flags.wait("MTE3", "V", event)
        row = Tile(self.builder, 1, heads * s.width)
        narrowed(row, self.buffers.of("y", event), wide["y"], s.dtype)

    def _turn(self, heads: int, wide: Mapping[str, int]) -> None:
        """Compute both halves of `y`: products with the cosines, then those with the sines."""
        x, y, part, half = wide["x"], wide["y"], wide["part"], 4 * self.shape.half
        for into, source, angles in (
            (y, x, "cos"),
            (y + half, x + half, "cos"),
            (part, x + half, "sin"),
            (part + half, x, "sin"),
        ):
            self._each("vmul", heads, into, source, wide[angles], by_token=True)
        self._barrier()
        self._each("vsub", heads, y, y, part)
        self._each("vadd", heads, y + half, y + half, part + half)
        self._barrier()

    def _barrier(self) -> None:
        self.builder.issue(PipeBarrier(on="V"))

    def _each(
        self, name: str, heads: int, into: int, left: int, right: int, *, by_token: bool = False
    ) -> None:
        """Compute half of every head; with `by_token` the right operand is what heads share."""
        pitch = self.shape.width * 4 // 32
        tile = Tile(self.builder, 1, LANES)
        for first in range(0, self.shape.half, LANES):
            fields = {"dst_repeat_stride": pitch, "src0_repeat_stride": pitch}
            fields["src1_repeat_stride"] = 0 if by_token else pitch
            at = [Expr(place + 4 * first) for place in (into, left, right)]
            lanes = min(LANES, self.shape.half - first)
            tile.issue(
                name, lanes, at, {"dtype": element_type("float32"), "repeat": heads, **fields}
            )


def _whole(size: int) -> int:
    """Return bytes up to a whole repeat."""
    return int(align_up(size, 256))
