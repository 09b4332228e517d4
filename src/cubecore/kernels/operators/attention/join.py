"""The second pass of attention whose keys are split: AIVs join what cores made of their parts.

Each part left O, not yet divided, and the largest score and the sum of each row, as a block of 32 B
each. Once all AIVs have signalled, each takes some rows, and goes over the parts as the first pass
does over blocks of keys: what it has fades as the largest score grows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Int, Var
from cubecore.isa.program.launch import TensorSpec
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.attention.shape import AttentionShape
from cubecore.kernels.operators.attention.shares import AttentionPart
from cubecore.kernels.operators.tile import LANES, float_code
from cubecore.kernels.operators.wide import FROM_FLOAT
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

LOWEST = -(2.0**100)
"""Below all scores: the largest one of no keys."""
_PARTS_DONE = 3
"""The flag between all AIVs; those of `shape` are between an AIC and its AIVs."""
_ROWS = 8
"""Rows that are joined at a time: a repeat of the Vector unit takes what is kept of as many."""
_STATS = DATA_BLOCK_BYTES * _ROWS
_FLOAT, _BLOCK = element_type("float32"), 8
_UNIT_BYTES = 512
"""Buffers begin at the first of both banks of each group, where there are two."""


class JoinedRows(NamedTuple):
    """The rows of an AIV's second pass, among those of all heads."""

    first: int
    end: int


def joined_rows(shape: AttentionShape, aivs: int, aiv: int) -> JoinedRows | None:
    """Return the rows that an AIV joins; None where keys are not split."""
    if shape.splits == 1:
        return None
    rows = shape.heads * shape.queries
    each = ceil_div(rows, aivs)
    first = min(aiv * each, rows)
    return JoinedRows(first, min(first + each, rows))


def part_tensors(shape: AttentionShape) -> Mapping[str, int]:
    """Return what cores leave of their parts: the bytes of a row of each tensor."""
    if shape.splits == 1:
        return {}
    return {"parts": 4 * shape.width, "tops": DATA_BLOCK_BYTES, "sums": DATA_BLOCK_BYTES}


def part_specs(shape: AttentionShape) -> list[TensorSpec]:
    """Return the tensors of parts: each split has all rows."""
    rows = shape.splits * shape.heads * shape.queries
    each = part_tensors(shape)
    return [TensorSpec(name, rows * size, output=True) for name, size in each.items()]


class LeftParts:
    """Stores what the first pass makes of a part of the keys, in the slots of each of its parts."""

    def __init__(self, builder: Builder, shape: AttentionShape, parts: int) -> None:
        self.builder, self.shape = builder, shape
        self.named = [
            {name: builder.slot(f"{name}{number}") for name in part_tensors(shape)}
            for number in range(parts)
        ]

    def slots(self, share: Sequence[AttentionPart], away: int) -> Mapping[Var, tuple[str, int]]:
        """Return where the rows of each part begin in each tensor, `away` rows behind its first."""
        rows, sizes = self.shape.heads * self.shape.queries, part_tensors(self.shape)
        return {
            var: (name, (part.split * rows + part.row + away) * sizes[name])
            for part, named in zip(share, self.named, strict=True)
            for name, var in named.items()
        }

    def store(self, part: int, row: Expr, rows: int, places: Mapping[str, Expr]) -> None:
        """Write some rows from their places in UB, behind a part's first row."""
        for name, size in part_tensors(self.shape).items():
            store = CopyUbufToGmAlign(dtype=_FLOAT, n_burst=1, len_burst=rows * size)
            into = Expr.of(self.named[part][name]) + row * size
            self.builder.issue(store, into, places[name])


class AttentionJoin:
    """Writes the second pass into an AIV's tree, whose first pass it follows.

    It takes UB from the beginning: the first pass is over there.
    """

    def __init__(self, builder: Builder, shape: AttentionShape, count: int) -> None:
        self.builder, self.shape = builder, shape
        self.flags = Flags(builder)
        self.rows = min(count, _ROWS)
        self.at = self._places()
        self.named = {name: builder.slot(f"joined_{name}") for name in (*part_tensors(shape), "y")}
        # MTE3 signals behind the stores of this AIV's part; all that others wrote is in memory once
        # the counter is up.
        builder.issue(PipeBarrier())
        builder.issue(FftsCrossCoreSync(on="MTE3", mode=0, flag_id=_PARTS_DONE))
        builder.issue(WaitFlagDev(flag_id=_PARTS_DONE))
        if count:
            self._write(count)

    def slots(self, first: int) -> Mapping[Var, tuple[str, int]]:
        """Return where the rows of an AIV begin in each tensor."""
        y = self.shape.width * self.shape.dtype.size_bytes
        sizes = {**part_tensors(self.shape), "y": y}
        return {var: (name, first * sizes[name]) for name, var in self.named.items()}

    def place(self, name: str, slot: Int = 0) -> Expr:
        """Return the first byte of a slot of a buffer."""
        at, apart = self.at[name]
        return Expr.of(slot) * apart + at

    def _places(self) -> Mapping[str, tuple[int, int]]:
        s, rows = self.shape, max(self.rows, 1)
        sizes = {
            "parts": (4 * rows * s.width, 2),
            "tops": (_STATS, 2),
            "sums": (_STATS, 2),
            "o": (4 * rows * s.width, 1),
            "out": (s.dtype.size_bytes * rows * s.width, 1),
            **dict.fromkeys(("top", "new", "fade", "gain", "sum"), (_STATS, 1)),
        }
        places, at = {}, 0
        for name, (size, count) in sizes.items():
            apart = align_up(size, _UNIT_BYTES)
            places[name] = at, apart
            at += count * apart
        return places

    def _write(self, count: int) -> None:
        s, b, flags = self.shape, self.builder, self.flags
        # Fewer rows than a repeat takes leave lanes that no load fills: they are 0 from the start.
        self.clear()
        with flags.raised([("V", "MTE2", 0), ("V", "MTE2", 1), ("MTE3", "V", 0)]):
            for block in b.split("rows", count, self.rows):
                row = block.number * self.rows
                self.begin(block.length)
                with b.loop("split", s.splits) as split:
                    self._load(row, split, block.length)
                    self.join(split % 2, block.length)
                    flags.set("V", "MTE2", split % 2)
                flags.wait("MTE3", "V", 0)
                self.divide(block.length)
                flags.set("V", "MTE3", 0)
                flags.wait("V", "MTE3", 0)
                size = s.width * s.dtype.size_bytes
                store = CopyUbufToGmAlign(dtype=s.dtype, n_burst=1, len_burst=block.length * size)
                b.issue(store, row * size + Expr.of(self.named["y"]), self.place("out"))
                flags.set("MTE3", "V", 0)

    def _load(self, row: Expr, split: Expr, rows: int) -> None:
        """Bring a part of some rows to UB."""
        s, parity = self.shape, split % 2
        self.flags.wait("V", "MTE2", parity)
        for name, size in part_tensors(s).items():
            load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=rows * size)
            source = split * (s.heads * s.queries * size) + row * size
            self.builder.issue(load, self.place(name, parity), source + Expr.of(self.named[name]))
        self.flags.set("MTE2", "V", parity)
        self.flags.wait("MTE2", "V", parity)

    def clear(self) -> None:
        """Set the lanes that loads may leave out."""
        for name in ("tops", "sums"):
            for slot in range(2):
                self._fill(name, 0.0, 1, slot)
        self._barrier()

    def begin(self, rows: int) -> None:
        """Set what is kept of each row, and O, to those of no keys."""
        self._fill("top", LOWEST, 1)
        self._fill("sum", 0.0, 1)
        self._fill("o", 0.0, rows * self.shape.width // LANES)

    def join(self, parity: Expr, rows: int) -> None:
        """Add a part to O."""
        at = self.place
        top, new, fade, gain, total = map(at, ("top", "new", "fade", "gain", "sum"))
        theirs, sums, parts = (at(name, parity) for name in ("tops", "sums", "parts"))
        self._steps(("vmax", new, top, theirs))
        self._steps(("vsub", fade, top, new), ("vsub", gain, theirs, new))
        self._steps(("vexp", fade, fade), ("vexp", gain, gain), ("vmax", top, new, new))
        self._steps(("vmul", total, total, fade), ("vmul", sums, sums, gain))
        for part in range(0, self.shape.width, LANES):
            self._by_row("vmul", at("o") + 4 * part, fade, rows)
            self._by_row("vmul", parts + 4 * part, gain, rows)
        self._steps(("vadd", total, total, sums))
        add = instruction_named("vadd")(dtype=_FLOAT, repeat=rows * self.shape.width // LANES)
        self.builder.issue(add, at("o"), at("o"), parts)

    def divide(self, rows: int) -> None:
        """Divide O by the sums, in the type of the result."""
        s, size = self.shape, self.shape.dtype.size_bytes
        self._barrier()
        for part in range(0, s.width, LANES):
            self._by_row("vdiv", self.place("o") + 4 * part, self.place("sum"), rows)
        self._barrier()
        narrow = instruction_named(FROM_FLOAT[s.dtype.name])(
            repeat=rows * s.width // LANES,
            dst_repeat_stride=LANES * size // DATA_BLOCK_BYTES,
            src_repeat_stride=_BLOCK,
        )
        self.builder.issue(narrow, self.place("out"), self.place("o"))
        self._barrier()

    def _steps(self, *steps: tuple[str, *tuple[Expr, ...]]) -> None:
        """Issue instructions on what is kept of rows, behind those before them."""
        self._barrier()
        for name, *places in steps:
            self.builder.issue(instruction_named(name)(dtype=_FLOAT, repeat=1), *places)

    def _by_row(self, name: str, rows: Expr, stats: Expr, count: int) -> None:
        """Compute 64 columns of all rows with what is kept of each row."""
        pitch = self.shape.width // _BLOCK
        one = instruction_named(name)(
            dtype=_FLOAT,
            repeat=count,
            src1_block_stride=0,
            dst_repeat_stride=pitch,
            src0_repeat_stride=pitch,
            src1_repeat_stride=1,
        )
        self.builder.issue(one, rows, rows, stats)

    def _fill(self, name: str, value: float, repeats: int, slot: int = 0) -> None:
        fill = instruction_named("vector_dup")(
            dtype=_FLOAT, value=float_code(value), repeat=repeats
        )
        self.builder.issue(fill, self.place(name, slot))

    def _barrier(self) -> None:
        self.builder.issue(PipeBarrier(on="V"))
