"""The tile of an operator in UB: rows of float32, and the instructions that work on all of it.

Short rows are worked on across: one instruction takes 64 columns of every row. A long row is
worked on along: one instruction takes 64 columns a repeat. Every instruction is followed by a
barrier, since the next one reads what it wrote.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cubecore.dtypes import ElementType, element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Int
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import Builder
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

LANES = 64
"""Floats of a repeat."""
_BLOCK = 8
_MOST_REPEATS = 255
_MOST_STRIDE = 255
_FLOAT = element_type("float32")


def float_code(value: float) -> int:
    """Return a float32's bits."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@dataclass(frozen=True, slots=True)
class Repeats:
    """Some repeats of the tile: where they start, how many, how far apart, and their lanes.

    Bytes into a buffer of the tile, 32 B from repeat to repeat, and the column that they start at.
    """

    at: int
    repeats: int
    apart: int
    lanes: int
    column: int


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` rows of `columns` floats, each on a 256 B boundary."""

    builder: Builder
    rows: int
    columns: int

    @property
    def pitch(self) -> int:
        """Floats from row to row."""
        pitch: int = align_up(self.columns, LANES)
        return pitch

    @property
    def across(self) -> bool:
        """True if one instruction takes the same columns of every row."""
        return self.rows > 1 and self.pitch // _BLOCK <= _MOST_STRIDE

    def stretches(self) -> Iterator[Repeats]:
        """Yield the tile's stretches: columns of all rows, or all columns of a row."""
        # Across: 64 columns of up to 255 rows an instruction, a repeat a row. Along: up to 255
        # times 64 columns of one row, and then its last columns under a mask.
        whole, rest = divmod(self.columns, LANES)
        if self.across:
            apart = self.pitch // _BLOCK
            for first in range(0, self.columns, LANES):
                lanes = min(LANES, self.columns - first)
                for row in range(0, self.rows, _MOST_REPEATS):
                    at = 4 * (row * self.pitch + first)
                    repeats = min(_MOST_REPEATS, self.rows - row)
                    yield Repeats(at, repeats, apart, lanes, first)
            return
        for row in range(self.rows):
            start = 4 * row * self.pitch
            for first in range(0, whole, _MOST_REPEATS):
                repeats = min(_MOST_REPEATS, whole - first)
                yield Repeats(start + 256 * first, repeats, _BLOCK, LANES, LANES * first)
            if rest:
                yield Repeats(start + 256 * whole, 1, _BLOCK, rest, LANES * whole)

    def issue(
        self,
        name: str,
        lanes: int,
        addresses: Sequence[Expr],
        fields: Mapping[str, object],
        *,
        half: bool = False,
    ) -> None:
        """Issue a vector instruction whose repeats have `lanes` lanes.

        `half`: a repeat has twice as many lanes as one of float32.
        """
        masked = half or lanes < LANES
        if masked:
            self.builder.issue(SetVectorMask(mask_high=0, mask_low=2**lanes - 1))
        self.builder.issue(instruction_named(name)(**fields), *addresses)
        if masked:
            self.builder.issue(SetVectorMask(mask_high=2**64 - 1, mask_low=2**64 - 1))

    def barrier(self) -> None:
        """Let the next vector instruction wait for those before it."""
        self.builder.issue(PipeBarrier(on="V"))

    def load(self, into: Int, source: Int, dtype: ElementType, pitch: int | None = None) -> None:
        """Bring the tile's elements of `dtype` from GM, `pitch` elements from row to row.

        None: rows lie one behind the other.
        """
        length = self.columns * dtype.size_bytes
        gap = self.pitch * dtype.size_bytes - align_up(length, DATA_BLOCK_BYTES)
        copy = CopyGmToUbufAlign(
            dtype=dtype,
            n_burst=self.rows,
            len_burst=length,
            src_gap=self._apart(dtype, pitch),
            dst_gap=gap // DATA_BLOCK_BYTES,
        )
        self.builder.issue(copy, into, source)

    def _apart(self, dtype: ElementType, pitch: int | None) -> int:
        """Return the bytes in GM from a row's end to the next one."""
        return (pitch - self.columns) * dtype.size_bytes if pitch and self.rows > 1 else 0

    def store(self, into: Int, source: Int, dtype: ElementType, pitch: int | None = None) -> None:
        """Store the tile's elements of `dtype` to GM, `pitch` as of a load."""
        length = self.columns * dtype.size_bytes
        gap = self.pitch * dtype.size_bytes - align_up(length, DATA_BLOCK_BYTES)
        copy = CopyUbufToGmAlign(
            dtype=dtype,
            n_burst=self.rows,
            len_burst=length,
            src_gap=gap // DATA_BLOCK_BYTES if self.rows > 1 else 0,
            dst_gap=self._apart(dtype, pitch),
        )
        self.builder.issue(copy, into, source)

    def each(self, name: str, into: int, *sources: int, value: float | None = None) -> None:
        """Apply an element-wise instruction to the buffers at `sources`."""
        for one in self.stretches():
            names = ("src",) if len(sources) == 1 else ("src0", "src1")
            strides = {f"{n}_repeat_stride": one.apart for n in ("dst", *names)}
            scalar = {} if value is None else {"value": float_code(value)}
            addresses = [Expr(at + one.at) for at in (into, *sources)]
            fields = {"dtype": _FLOAT, "repeat": one.repeats, **strides}
            self.issue(name, one.lanes, addresses, {**fields, **scalar})
        self.barrier()

    def with_constant(self, name: str, into: int, lanes: int, source: int) -> None:
        """Apply a binary instruction to the same 64 numbers again and again, and the tile."""
        for one in self.stretches():
            fields = {"dst_repeat_stride": one.apart, "src1_repeat_stride": one.apart}
            places = [Expr(into + one.at), Expr(lanes), Expr(source + one.at)]
            fields |= {"src0_repeat_stride": 0, "repeat": one.repeats}
            self.issue(name, one.lanes, places, {"dtype": _FLOAT, **fields})
        self.barrier()

    def convert(
        self, name: str, into: Expr, source: Expr, *, into_bytes: int, source_bytes: int
    ) -> None:
        """Convert the tile, in rows alike; an element has so many bytes on either side."""
        for one in self.stretches():
            fields = {
                "repeat": one.repeats,
                "dst_repeat_stride": one.apart * into_bytes // 4,
                "src_repeat_stride": one.apart * source_bytes // 4,
            }
            places = [into + one.at * into_bytes // 4, source + one.at * source_bytes // 4]
            self.issue(name, one.lanes, places, fields, half=max(into_bytes, source_bytes) < 4)
        self.barrier()

    def by_row(self, name: str, into: int, source: int, spread: int) -> None:
        """Apply a binary instruction to each row and its own value, spread over a block."""
        for one in self.stretches():
            row = one.at // 4 // self.pitch
            fields = {"dst_repeat_stride": one.apart, "src0_repeat_stride": one.apart}
            fields |= {"src1_block_stride": 0, "src1_repeat_stride": 1 if self.across else 0}
            addresses = [Expr(into + one.at), Expr(source + one.at), Expr(spread + 32 * row)]
            self.issue(
                name, one.lanes, addresses, {"dtype": _FLOAT, "repeat": one.repeats, **fields}
            )
        self.barrier()

    def by_column(self, name: str, into: int, source: int, vector: int) -> None:
        """Apply a binary instruction to each row and a vector that all rows share."""
        for one in self.stretches():
            fields = {"dst_repeat_stride": one.apart, "src0_repeat_stride": one.apart}
            fields["src1_repeat_stride"] = 0 if self.across else _BLOCK
            places = [Expr(into + one.at), Expr(source + one.at), Expr(vector + 4 * one.column)]
            self.issue(name, one.lanes, places, {"dtype": _FLOAT, "repeat": one.repeats, **fields})
        self.barrier()

    def reduce(self, name: str, into: int, source: int, partial: int) -> None:
        """Reduce each row to one value: `name` is add or max.

        `partial` has room for 64 floats a row.
        """
        whole = f"vc{name}"
        order = {"order": "only_value"} if name == "max" else {}
        if self.across:
            self._fold(name, source, partial)
            lanes = min(LANES, self.columns)
            for row in range(0, self.rows, _MOST_REPEATS):
                repeats = min(_MOST_REPEATS, self.rows - row)
                places = [Expr(into + 4 * row), Expr(partial + 256 * row)]
                self.issue(whole, lanes, places, {"dtype": _FLOAT, "repeat": repeats, **order})
            self.barrier()
            return
        for row in range(self.rows):
            start = source + 4 * row * self.pitch
            self._reduce_row(whole, into + 4 * row, start, partial, order)

    def _fold(self, name: str, source: int, partial: int) -> None:
        """Bring the columns of every row together in 64."""
        copied = False
        for one in self.stretches():
            if one.column == 0:
                fields = {"dst_repeat_stride": _BLOCK, "src_repeat_stride": one.apart}
                row = 256 * (one.at // 4 // self.pitch)
                places = [Expr(partial + row), Expr(source + one.at)]
                fields |= {"value": 0, "repeat": one.repeats}
                self.issue("vadds", one.lanes, places, {"dtype": _FLOAT, **fields})
                continue
            if not copied:
                self.barrier()
                copied = True
            fields = {"dst_repeat_stride": _BLOCK, "src0_repeat_stride": _BLOCK}
            fields["src1_repeat_stride"] = one.apart
            row = 256 * (one.at // 4 // self.pitch)
            places = [Expr(partial + row), Expr(partial + row), Expr(source + one.at)]
            self.issue(
                f"v{name}", one.lanes, places, {"dtype": _FLOAT, "repeat": one.repeats, **fields}
            )
            self.barrier()
        if not copied:
            self.barrier()

    def _reduce_row(
        self, name: str, into: int, source: int, partial: int, order: dict[str, str]
    ) -> None:
        # A tree of reductions by 64: each pass leaves one value for each 64, in one of two halves
        # of `partial` in turn, until one value is left, which goes to `into`.
        left, other = self.columns, partial + 4 * align_up(ceil_div(self.columns, LANES), LANES)
        while left > 1:
            whole, rest = divmod(left, LANES)
            to = into if left <= LANES else partial
            for first in range(0, whole, _MOST_REPEATS):
                repeats = min(_MOST_REPEATS, whole - first)
                at = [Expr(to + 4 * first), Expr(source + 256 * first)]
                self.issue(name, LANES, at, {"dtype": _FLOAT, "repeat": repeats, **order})
            if rest:
                at = [Expr(to + 4 * whole), Expr(source + 256 * whole)]
                self.issue(name, rest, at, {"dtype": _FLOAT, "repeat": 1, **order})
            self.barrier()
            left, source = ceil_div(left, LANES), to
            partial, other = other, partial
        if self.columns == 1:
            at = [Expr(into), Expr(source)]
            self.issue(name, 1, at, {"dtype": _FLOAT, "repeat": 1, **order})
            self.barrier()

    def each_row_value(
        self, name: str, into: int, *sources: int, value: float | None = None
    ) -> None:
        """Apply an element-wise instruction to one value a row."""
        few = Tile(self.builder, 1, self.rows)
        few.each(name, into, *sources, value=value)

    def spread(self, into: int, values: Int) -> None:
        """Spread one value a row over a block each."""
        repeats = ceil_div(self.rows, _BLOCK)
        for first in range(0, repeats, _MOST_REPEATS):
            now = min(_MOST_REPEATS, repeats - first)
            places = [Expr(into + 256 * first), Expr.of(values) + 32 * first]
            self.issue("vbrcb", LANES, places, {"dtype": element_type("uint32"), "repeat": now})
        self.barrier()
