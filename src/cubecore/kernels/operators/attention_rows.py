"""The part of attention on vector cores: the softmax of half the rows, as it grows.

What an AIV keeps of each row fills a block, so that it meets rows by stride 0: the largest score so
far, the sum of the exponentials, and the factor by which what was summed before fades.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Int, Var
from cubecore.isa.program.launch import CoreProgram
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.attention_shape import (
    CHANCES,
    SCORES,
    VALUES,
    AttentionPart,
    AttentionShape,
)
from cubecore.kernels.operators.tile import LANES, float_code
from cubecore.kernels.operators.wide import FROM_FLOAT
from cubecore.units import DATA_BLOCK_BYTES

_FLOAT = element_type("float32")
_BLOCK = 8
"""Floats of a block."""
_LOWEST = -(2.0**100)
_MOST_REPEATS = 255
_SCORES_FREE, _VALUES_FREE = 0, 2
"""Events of the Vector unit to MTE2: of the two slots of S, and of O_j."""
_OUT_FREE = 2
"""The event of MTE3 and the Vector unit for O; 0 and 1 are those of P's slots."""


def rows_of_parts(
    builder: Builder, shape: AttentionShape, extents: Sequence[tuple[int, int]], out: Sequence[Var]
) -> Iterator[Expr]:
    """Yield where rows of O begin, in loops over the heads and blocks of rows of each part.

    `out` are the slots of the parts. The body of the ``for`` statement is built once a part.
    """
    size = shape.dtype.size_bytes * shape.rows * shape.width
    for slot, (heads, blocks) in zip(out, extents, strict=True):
        with builder.loop("head", heads) as head, builder.loop("rows", blocks) as row:
            yield Expr.of(slot) + head * (blocks * size) + row * size


class AttentionRows:
    """An AIV's tree; the `second` one has the second half of the rows."""

    def __init__(
        self, shape: AttentionShape, extents: tuple[tuple[int, int], ...], *, second: bool = False
    ) -> None:
        self.shape, self.second = shape, second
        self.share = shape.rows // 2
        self.stats = self.share * _BLOCK // LANES
        name = f"attention_rows_{shape.name}" + "_second" * second
        b = self.builder = Builder(name, BASIC)
        self.flags = Flags(b)
        self.made: dict[str, Var] = {name: b.slot(name) for name in shape.workspace}
        self.at = self._places()
        self.turn, self.even = b.scalar("turn"), b.scalar("even")
        up = [("V", "MTE2", event) for event in range(_VALUES_FREE + 2)]
        up += [("MTE3", "V", event) for event in range(_OUT_FREE + 1)]
        self._fill("eighth", 0.0, self.stats)
        self.out = [b.slot(f"o{number}") for number in range(len(extents))]
        with self.flags.raised(up):
            for out in rows_of_parts(b, shape, extents, self.out):
                self._rows(out)
        self.program = b.finish()

    def on_core(self, core: int, share: tuple[AttentionPart, ...]) -> CoreProgram:
        """Return the tree with its slots filled for the parts of a core."""
        s = self.shape
        first = self.share * self.second
        pitches = {"scores": 4 * s.block, "chances": s.dtype.size_bytes * s.block}
        pitches["values"] = 4 * s.width
        slots = {
            var: (name, s.slots * core * s.workspace[name] + first * pitches[name])
            for name, var in self.made.items()
        }
        away = first * s.width * s.dtype.size_bytes
        slots |= {out: ("y", part.query + away) for out, part in zip(self.out, share, strict=True)}
        return CoreProgram(core, self.program, slots, sub=1 + self.second)

    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Return where the buffers lie in UB, and how far apart their slots are."""
        s, rows = self.shape, self.share
        size = s.dtype.size_bytes
        sizes = {
            "s": (4 * rows * s.block, 2),
            "p": (size * rows * s.block, 2),
            "o_j": (4 * rows * s.width, 2),
            "o": (4 * rows * s.width, 1),
            "out": (size * rows * s.width, 1),
            "folded": (4 * rows * LANES, 1),
            "top": (DATA_BLOCK_BYTES * rows, 2),
            "fade": (DATA_BLOCK_BYTES * rows, s.slots),
            **dict.fromkeys(("eighth", "sum", "new"), (DATA_BLOCK_BYTES * rows, 1)),
            "one": (max(4 * rows, DATA_BLOCK_BYTES), 1),
        }
        places, at = {}, 0
        for name, (each, count) in sizes.items():
            places[name] = (at, each)
            at += each * count
        return places

    def _in(self, name: str, slot: Int = 0) -> Expr:
        at, apart = self.at[name]
        return Expr.of(slot) * apart + at

    def _rows(self, out: Expr) -> None:
        """Follow the matmuls with every block of keys, and write O."""
        s, flags = self.shape, self.flags
        self.turn.set(0)
        self.even.set(0)
        self._barrier()
        self._fill("top", _LOWEST, self.stats, slot=1)
        self._fill("sum", 0.0, self.stats)
        self._fill("o", 0.0, self.share * s.width // LANES)
        self._barrier()
        # A software pipeline over blocks of keys: P_(j+1) is made before O_j is added, as the AIC
        # is then still at work on O_j; with `ahead` of 2 P_(j+2), too. `turn` is the slot of the
        # block whose values are added, in what is handed over and of `fade`; in UB the slots of S,
        # P, O_j and `top` alternate, by `even`.
        blocks, ahead = s.blocks, min(s.ahead, len(s.blocks))
        for number in range(ahead):
            self._chances(blocks[number], Expr(number), Expr(number % 2))
        behind = len(blocks) - ahead
        short = bool(behind) and blocks[-1] != s.block
        slot, parity = (self.turn.value + ahead) % s.slots, (self.even.value + ahead) % 2
        with self.builder.loop("keys", behind - short):
            self._chances(s.block, slot, parity)
            self._add_values()
        if short:
            self._chances(blocks[-1], slot, parity)
            self._add_values()
        for _ in range(ahead):
            self._add_values()
        self._barrier()
        for part in range(0, s.width, LANES):
            self._by_row("vdiv", self._in("o") + 4 * part, self._in("sum"), s.width)
        self._barrier()
        flags.wait("MTE3", "V", _OUT_FREE)
        self._narrow(self._in("out"), self._in("o"), s.width, s.width)
        flags.set("V", "MTE3", _OUT_FREE)
        flags.wait("V", "MTE3", _OUT_FREE)
        store = CopyUbufToGmAlign(
            dtype=s.dtype, n_burst=1, len_burst=self.share * s.width * s.dtype.size_bytes
        )
        self.builder.issue(store, out, self._in("out"))
        flags.set("MTE3", "V", _OUT_FREE)

    def _chances(self, keys: int, slot: Expr, parity: Expr) -> None:
        """Make P_j of S_j, whose rows lie `block` keys apart, in slot `parity` of UB."""
        s, b, flags = self.shape, self.builder, self.flags
        # Online softmax for one block: scale the scores, raise the running maximum (`_grow`),
        # subtract it, exponentiate, hand P_j to the AIC, and update the running sum: sum = sum *
        # fade + row sums of P_j.
        scores, size = self._in("s", parity), s.dtype.size_bytes
        flags.wait("V", "MTE2", parity + _SCORES_FREE)
        b.issue(WaitFlagDev(flag_id=SCORES))
        rest = 4 * (s.block - keys)
        load = CopyGmToUbufAlign(
            dtype=_FLOAT,
            n_burst=self.share if rest else 1,
            len_burst=4 * keys * (1 if rest else self.share),
            src_gap=rest,
            dst_gap=rest // DATA_BLOCK_BYTES,
        )
        b.issue(load, scores, Expr.of(self.made["scores"]) + slot * s.workspace["scores"])
        flags.set("MTE2", "V", parity)
        flags.wait("MTE2", "V", parity)
        self._all("vmuls", scores, keys, value=float_code(1 / math.sqrt(s.width)))
        self._grow(scores, keys, slot, parity)
        for part in range(0, keys, LANES):
            self._by_row("vsub", scores + 4 * part, self._in("top", parity), s.block)
        self._barrier()
        self._all("vexp", scores, keys)
        self._barrier()
        flags.wait("MTE3", "V", parity)
        self._narrow(self._in("p", parity), scores, keys, s.block)
        flags.set("V", "MTE3", parity)
        flags.wait("V", "MTE3", parity)
        rest = size * (s.block - keys)
        store = CopyUbufToGmAlign(
            dtype=s.dtype,
            n_burst=self.share if rest else 1,
            len_burst=size * keys * (1 if rest else self.share),
            src_gap=rest // DATA_BLOCK_BYTES,
            dst_gap=rest,
        )
        made = Expr.of(self.made["chances"]) + slot * s.workspace["chances"]
        b.issue(store, made, self._in("p", parity))
        b.issue(FftsCrossCoreSync(on="MTE3", mode=2, flag_id=CHANCES))
        flags.set("MTE3", "V", parity)
        self._reduce("add", scores, keys)
        flags.set("V", "MTE2", parity + _SCORES_FREE)
        total = self._in("sum")
        self._of_stats("vmul", total, total, self._in("fade", slot))
        self._barrier()
        self._of_stats("vadd", total, total, self._in("new"))

    def _grow(self, scores: Expr, keys: int, slot: Expr, parity: Expr) -> None:
        """Take the largest scores into `top`, and how much that fades what was summed before."""
        # fade = exp(old maximum - new maximum) rescales all that was summed under the old one; in
        # the first block the old one is `_LOWEST`, so that fade is 0.
        before, top, fade = (
            self._in("top", (parity + 1) % 2),
            self._in("top", parity),
            self._in("fade", slot),
        )
        self._reduce("max", scores, keys)
        self._of_stats("vmax", top, before, self._in("new"))
        self._barrier()
        self._of_stats("vsub", fade, before, top)
        self._barrier()
        self._of_stats("vexp", fade, fade)

    def _add_values(self) -> None:
        """Add O_j to O."""
        s, b, flags, slot = self.shape, self.builder, self.flags, self.turn.value
        parity = self.even.value
        flags.wait("V", "MTE2", parity + _VALUES_FREE)
        b.issue(WaitFlagDev(flag_id=VALUES))
        # O = O * fade + O_j, fade being that of block j.
        size = 4 * self.share * s.width
        load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=size)
        values = Expr.of(self.made["values"]) + slot * s.workspace["values"]
        b.issue(load, self._in("o_j", parity), values)
        flags.set("MTE2", "V", parity + _VALUES_FREE)
        flags.wait("MTE2", "V", parity + _VALUES_FREE)
        self._barrier()
        for part in range(0, s.width, LANES):
            self._by_row("vmul", self._in("o") + 4 * part, self._in("fade", slot), s.width)
        self._barrier()
        self._repeated("vadd", size // 256, (self._in("o"), self._in("o"), self._in("o_j", parity)))
        flags.set("V", "MTE2", parity + _VALUES_FREE)
        self.turn.set((slot + 1) % s.slots)
        self.even.set((parity + 1) % 2)

    def _barrier(self) -> None:
        self.builder.issue(PipeBarrier(on="V"))

    def _fill(self, name: str, value: float, repeats: int, slot: int = 0) -> None:
        fill = instruction_named("vector_dup")(
            dtype=_FLOAT, value=float_code(value), repeat=repeats
        )
        self.builder.issue(fill, self._in(name, slot))

    def _repeated(
        self, name: str, repeats: int, places: tuple[Expr, ...], **fields: object
    ) -> None:
        """Issue an instruction on places that follow each other."""
        for first in range(0, repeats, _MOST_REPEATS):
            now = min(_MOST_REPEATS, repeats - first)
            one = instruction_named(name)(dtype=_FLOAT, repeat=now, **fields)
            self.builder.issue(one, *(place + 256 * first for place in places))

    def _of_stats(self, name: str, *places: Expr) -> None:
        self._repeated(name, self.stats, places)

    def _all(self, name: str, scores: Expr, keys: int, **fields: object) -> None:
        """Apply an instruction to all scores."""
        if keys == self.shape.block:
            self._repeated(name, self.share * keys // LANES, (scores, scores), **fields)
            return
        pitch = self.shape.block // _BLOCK
        for part in range(0, keys, LANES):
            strides = {"dst_repeat_stride": pitch, "src_repeat_stride": pitch}
            one = instruction_named(name)(dtype=_FLOAT, repeat=self.share, **strides, **fields)
            self.builder.issue(one, scores + 4 * part, scores + 4 * part)

    def _narrow(self, into: Expr, source: Expr, columns: int, pitch: int) -> None:
        """Convert rows of so many floats that begin `pitch` apart; the result lies alike."""
        size, name = self.shape.dtype.size_bytes, FROM_FLOAT[self.shape.dtype.name]
        for part in range(0, columns, LANES):
            one = instruction_named(name)(
                repeat=self.share,
                dst_repeat_stride=pitch * size // DATA_BLOCK_BYTES,
                src_repeat_stride=pitch // _BLOCK,
            )
            self.builder.issue(one, into + size * part, source + 4 * part)

    def _by_row(self, name: str, rows: Expr, stats: Expr, width: int) -> None:
        """Compute 64 columns of all rows with what is kept of each row."""
        pitch = width // _BLOCK
        one = instruction_named(name)(
            dtype=_FLOAT,
            repeat=self.share,
            src1_block_stride=0,
            dst_repeat_stride=pitch,
            src0_repeat_stride=pitch,
            src1_repeat_stride=1,
        )
        self.builder.issue(one, rows, rows, stats)

    def _reduce(self, name: str, scores: Expr, keys: int) -> None:
        """Reduce every row to one number, and fill a block of `new` with it."""
        # Three steps: columns 64 by 64 onto the first 64; those to 8 numbers a row (one a block),
        # and these to one number a row; then each is spread over a block of 32 B, to meet rows by
        # stride 0.
        pitch, folded = self.shape.block // _BLOCK, self._in("folded")
        self._barrier()
        source, apart = scores, pitch
        for part in range(LANES, keys, LANES):
            fold = instruction_named(f"v{name}")(
                dtype=_FLOAT,
                repeat=self.share,
                src0_repeat_stride=apart,
                src1_repeat_stride=pitch,
            )
            self.builder.issue(fold, folded, source, scores + 4 * part)
            self._barrier()
            source, apart = folded, _BLOCK
        across = instruction_named(f"vcg{name}")
        self.builder.issue(
            across(dtype=_FLOAT, repeat=self.share, src_repeat_stride=apart),
            self._in("eighth"),
            source,
        )
        self._barrier()
        self.builder.issue(
            across(dtype=_FLOAT, repeat=self.stats), self._in("one"), self._in("eighth")
        )
        self._barrier()
        spread = instruction_named("vbrcb")(
            dtype=element_type("uint32"), repeat=self.share // _BLOCK
        )
        self.builder.issue(spread, self._in("new"), self._in("one"))
        self._barrier()
