"""The part of attention on vector cores: the softmax of half the rows, as it grows.

What an AIV keeps of each row fills a block, so that it meets rows by stride 0: the largest score so
far, the sum of the exponentials, and the factor by which what was summed before fades.
"""

import math
from collections.abc import Mapping

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Int, Var
from cubecore.isa.program.launch import CoreProgram
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.attention.join import LOWEST, AttentionJoin, LeftParts
from cubecore.kernels.operators.attention.key_steps import key_steps
from cubecore.kernels.operators.attention.shape import CHANCES, SCORES, VALUES, AttentionShape
from cubecore.kernels.operators.attention.shares import (
    AttentionPart,
    PartExtent,
    RowBlock,
    row_blocks,
)
from cubecore.kernels.operators.tile import LANES, float_code
from cubecore.kernels.operators.wide import FROM_FLOAT
from cubecore.units import DATA_BLOCK_BYTES, align_up

_FLOAT = element_type("float32")
_BLOCK = 8
"""Floats of a block."""
_MOST_REPEATS = 255
_MOST_ROWS = 32
"""Rows whose scores an AIV takes at a time."""
_SCORES_FREE, _VALUES_FREE = 0, 2
"""Events of the Vector unit to MTE2: of the two slots of S, and of O_j."""
_OUT_FREE = 2
"""The event of MTE3 and the Vector unit for O; 0 and 1 are those of P's slots."""


def ub_bytes(shape: AttentionShape) -> int:
    """Return the bytes of UB that the kernel takes."""
    return sum(each * count for each, count in _buffers(shape).values())


def _buffers(shape: AttentionShape) -> Mapping[str, tuple[int, int]]:
    """Return the bytes of each buffer in UB, and of how many slots it is."""
    rows, size = min(shape.tile // 2, _MOST_ROWS), shape.dtype.size_bytes
    kept = shape.rows // 2 // rows
    stats = DATA_BLOCK_BYTES * rows
    return {
        "s": (4 * rows * shape.block, 2),
        "p": (size * rows * shape.block, 2),
        "o_j": (4 * rows * shape.width, 2),
        "o": (4 * rows * shape.width, kept),
        "out": (size * rows * shape.width, 1),
        "folded": (4 * rows * LANES, 1),
        "top": (stats, 2 * kept),
        "fade": (stats, shape.slots * kept),
        "eighth": (stats, 1),
        "sum": (stats, kept),
        "new": (stats, 1),
        "one": (max(4 * rows, DATA_BLOCK_BYTES), 1),
        **({"mask": (4 * rows * LANES, min(kept, 2))} if shape.causal else {}),
    }


class AttentionRows:
    """An AIV's tree; the `second` one has the second half of the rows."""

    def __init__(
        self,
        shape: AttentionShape,
        extents: tuple[PartExtent, ...],
        *,
        second: bool = False,
        joined: int | None = None,
    ) -> None:
        self.shape, self.second = shape, second
        self.share = shape.tile // 2
        # UB holds S, P and O_j of 32 rows at a time, and what is kept of all rows.
        self.rows = min(self.share, _MOST_ROWS)
        self.chunks = self.share // self.rows
        self.stats = self.rows * _BLOCK // LANES
        name = f"attention_rows_{shape.name}" + "_second" * second
        b = self.builder = Builder(name, BASIC)
        self.flags = Flags(b)
        self.made: dict[str, Var] = {name: b.slot(name) for name in shape.workspace}
        self.at = self._places()
        self.turn, self.even = b.scalar("turn"), b.scalar("even")
        up = [("V", "MTE2", event) for event in range(_VALUES_FREE + 2)]
        up += [("MTE3", "V", event) for event in range(_OUT_FREE + 1)]
        self._fill("eighth", 0.0, self.stats)
        if shape.causal:
            self._write_masks()
        self.out = [b.slot(f"o{number}") for number in range(len(extents))]
        self.left = LeftParts(b, shape, len(extents)) if shape.splits > 1 else None
        with self.flags.raised(up):
            for number, extent in enumerate(extents):
                for block in row_blocks(b, shape, extent):
                    self._rows(number, block)
        self.joined = None if joined is None else AttentionJoin(b, shape, joined)
        self.program = b.finish()

    def on_core(self, core: int, share: tuple[AttentionPart, ...], joins: int = 0) -> CoreProgram:
        """Return the tree with its slots filled for the parts of a core."""
        s = self.shape
        first = self.share * self.second
        pitches = {"scores": 4 * s.block, "chances": s.dtype.size_bytes * s.block}
        pitches["values"] = 4 * s.width
        slots = {
            var: (name, s.handed * core * s.workspace[name] + first * pitches[name])
            for name, var in self.made.items()
        }
        away = first * s.width * s.dtype.size_bytes
        slots |= {out: ("y", part.query + away) for out, part in zip(self.out, share, strict=True)}
        if self.left is not None and self.joined is not None:
            slots |= {
                **self.left.slots(share, self.share * self.second),
                **self.joined.slots(joins),
            }
        return CoreProgram(core, self.program, slots, sub=1 + self.second)

    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Return where the buffers lie in UB, and how far apart their slots are."""
        places, at = {}, 0
        for name, (each, count) in _buffers(self.shape).items():
            places[name] = (at, each)
            at += each * count
        return places

    def _in(self, name: str, slot: Int = 0) -> Expr:
        at, apart = self.at[name]
        return Expr.of(slot) * apart + at

    @property
    def _kept(self) -> range:
        """The numbers of rows taken at a time, among all that an AIV keeps something of."""
        return range(self.shape.tiles * self.chunks)

    def _rows(self, part: int, block: RowBlock) -> None:
        """Follow the matmuls with every block of keys, and write O, or a part of it."""
        s = self.shape
        if self.left is not None and self._stored:
            self.flags.wait("MTE3", "V", _OUT_FREE)
        kept = len(self._kept)
        self.turn.set(0)
        self.even.set(0)
        self._barrier()
        self._fill("top", LOWEST, self.stats * kept, slot=kept)
        self._fill("sum", 0.0, self.stats * kept)
        self._fill("o", 0.0, self.rows * s.width // LANES * kept)
        self._barrier()
        # P_(j+1) is made before O_j is added, as the AIC is then still at work on O_j. `turn` is
        # the slot of the block whose values are added, in what is handed over and of `fade`; in UB
        # the slots of S, P, O_j and `top` alternate, by `even`.
        for step in key_steps(self.builder, s, block.number):
            if step.values:
                self._add_values()
                continue
            slot, parity = (
                step.turn(now, count)
                for now, count in ((self.turn.value, s.slots), (self.even.value, 2))
            )
            self._chances(step.keys, slot, parity, diagonal=step.diagonal)
        self._barrier()
        if not self._stored:
            return
        if self.left is None:
            row_bytes = s.width * s.dtype.size_bytes
            for number in self._kept:
                self._write(Expr.of(self.out[part]) + block.row * row_bytes, number)
        else:
            self._leave(self.left, part, block.row)

    def _leave(self, left: LeftParts, part: int, row: Expr) -> None:
        """Write O as it is, with what is kept of its rows, for a second pass."""
        flags, last = self.flags, Expr((len(self.shape.blocks) - 1) % 2)
        flags.set("V", "MTE3", _OUT_FREE)
        flags.wait("V", "MTE3", _OUT_FREE)
        for number in self._kept:
            kept = {"tops": self._top(last, number), "sums": self._in("sum", number)}
            places = {"parts": self._in("o", number), **kept}
            left.store(part, row + self._first_row(number), self._stored, places)
        flags.set("MTE3", "V", _OUT_FREE)

    def _write(self, out: Expr, number: int) -> None:
        """Divide some rows of O by their sums, and write them."""
        s, flags, rows = self.shape, self.flags, self._stored
        for part in range(0, s.width, LANES):
            self._by_row("vdiv", self._in("o", number) + 4 * part, self._in("sum", number), s.width)
        self._barrier()
        flags.wait("MTE3", "V", _OUT_FREE)
        self._narrow(self._in("out"), self._in("o", number), s.width, s.width)
        flags.set("V", "MTE3", _OUT_FREE)
        flags.wait("V", "MTE3", _OUT_FREE)
        row_bytes = s.width * s.dtype.size_bytes
        store = CopyUbufToGmAlign(dtype=s.dtype, n_burst=1, len_burst=rows * row_bytes)
        self.builder.issue(store, out + self._first_row(number) * row_bytes, self._in("out"))
        flags.set("MTE3", "V", _OUT_FREE)

    @property
    def _stored(self) -> int:
        """Rows in memory, of those that are taken at a time."""
        return min(max(self.shape.stored_rows - self.second * self.share, 0), self.rows)

    def _first_row(self, number: int) -> int:
        """Return the first of some rows, beyond the AIV's first one in a block of rows."""
        tile, chunk = divmod(number, self.chunks)
        return tile * self.shape.tile + chunk * self.rows

    def _chances(self, keys: int, slot: Expr, parity: Expr, *, diagonal: bool) -> None:
        """Make P_j of S_j, whose rows lie `block` keys apart: `slot` is that of the block."""
        s, b = self.shape, self.builder
        # Online softmax for one block: scale the scores, raise the running maximum (`_grow`),
        # subtract it, exponentiate, hand P_j to the AIC, and update the running sum: sum = sum *
        # fade + row sums of P_j.
        for number in self._kept:
            tile, chunk = divmod(number, self.chunks)
            # One chunk takes the slots of UB in turn from block to block, several among themselves.
            buffer = parity if self.chunks == 1 else Expr(chunk)
            self._load_scores(keys, slot * s.tiles + tile, buffer, chunk)
            scores = self._in("s", buffer)
            self._all("vmuls", scores, keys, value=float_code(1 / math.sqrt(s.width)))
            if diagonal:
                self._mask(scores, keys, number)
            self._grow(scores, keys, slot, parity, number)
            for part in range(0, keys, LANES):
                self._by_row("vsub", scores + 4 * part, self._top(parity, number), s.block)
            self._barrier()
            self._all("vexp", scores, keys)
            self._barrier()
            self._store_chances(keys, slot * s.tiles + tile, buffer, chunk)
            if chunk + 1 == self.chunks:
                b.issue(FftsCrossCoreSync(on="MTE3", mode=2, flag_id=CHANCES))
            self.flags.set("MTE3", "V", buffer)
            self._reduce("add", scores, keys)
            self.flags.set("V", "MTE2", buffer + _SCORES_FREE)
            total = self._in("sum", number)
            self._of_stats("vmul", total, total, self._fade(slot, number))
            self._barrier()
            self._of_stats("vadd", total, total, self._in("new"))

    def _load_scores(self, keys: int, handed: Expr, buffer: Expr, chunk: int) -> None:
        """Bring some rows of S_j to UB."""
        s, b, flags = self.shape, self.builder, self.flags
        flags.wait("V", "MTE2", buffer + _SCORES_FREE)
        if not chunk:
            b.issue(WaitFlagDev(flag_id=SCORES))
        rest = 4 * (s.block - keys)
        load = CopyGmToUbufAlign(
            dtype=_FLOAT,
            n_burst=self.rows if rest else 1,
            len_burst=4 * keys * (1 if rest else self.rows),
            src_gap=rest,
            dst_gap=rest // DATA_BLOCK_BYTES,
        )
        source = handed * s.workspace["scores"] + 4 * chunk * self.rows * s.block
        b.issue(load, self._in("s", buffer), Expr.of(self.made["scores"]) + source)
        flags.set("MTE2", "V", buffer)
        flags.wait("MTE2", "V", buffer)

    def _store_chances(self, keys: int, handed: Expr, buffer: Expr, chunk: int) -> None:
        """Write some rows of P_j for the AIC."""
        s, flags, size = self.shape, self.flags, self.shape.dtype.size_bytes
        flags.wait("MTE3", "V", buffer)
        self._narrow(self._in("p", buffer), self._in("s", buffer), keys, s.block)
        flags.set("V", "MTE3", buffer)
        flags.wait("V", "MTE3", buffer)
        rest = size * (s.block - keys)
        store = CopyUbufToGmAlign(
            dtype=s.dtype,
            n_burst=self.rows if rest else 1,
            len_burst=size * keys * (1 if rest else self.rows),
            src_gap=rest // DATA_BLOCK_BYTES,
            dst_gap=rest,
        )
        into = handed * s.workspace["chances"] + size * chunk * self.rows * s.block
        self.builder.issue(store, Expr.of(self.made["chances"]) + into, self._in("p", buffer))

    def _top(self, parity: Expr, number: int) -> Expr:
        """Return the largest scores of some rows, of every other block of keys."""
        return self._in("top", parity * len(self._kept) + number)

    def _fade(self, slot: Expr, number: int) -> Expr:
        """Return how much what was summed before fades, in some rows."""
        return self._in("fade", slot * len(self._kept) + number)

    def _write_masks(self) -> None:
        """Write what is added to scores on the diagonal: 0, or a number below all scores."""
        # Row r of a mask begins with r + first + 1 zeros. Lanes are masked row by row, once a
        # kernel; each block of keys on the diagonal then takes one addition.
        first = self._first_lanes()
        for slot, lanes in enumerate(first):
            self._fill("mask", 0.0, self.rows, slot=slot)
            self._barrier()
            for row in range(self.rows):
                shown = lanes + row + 1
                if shown >= LANES:
                    break
                self.builder.issue(SetVectorMask(mask_high=0, mask_low=2**LANES - 2**shown))
                fill = instruction_named("vector_dup")(
                    dtype=_FLOAT, value=float_code(LOWEST), repeat=1
                )
                self.builder.issue(fill, self._in("mask", slot) + 4 * LANES * row)
            self.builder.issue(SetVectorMask(mask_high=2**64 - 1, mask_low=2**64 - 1))
        self._barrier()

    def _first_lanes(self) -> list[int]:
        """Return how many lanes each mask shows before its first row's own."""
        return sorted({self._lanes_shown(number) % LANES for number in self._kept})

    def _lanes_shown(self, number: int) -> int:
        """Return the keys that some rows see before their own, of the last whole lanes."""
        # The keys of a block of rows on the diagonal are as many as its rows; fewer than a repeat
        # of the Vector unit takes are its last ones.
        rows = self.shape.stored_rows
        before: int = align_up(rows, LANES) - rows
        return before + self._first_row(number) + self.second * self.share

    def _mask(self, scores: Expr, keys: int, number: int) -> None:
        """Lower the scores of keys that rows do not see, among the last of a block."""
        pitch = self.shape.block // _BLOCK
        shown = self._lanes_shown(number)
        width = align_up(self.shape.rows, LANES)
        self._barrier()
        for start in range(shown // LANES * LANES, width, LANES):
            place = scores + 4 * (keys - width + start)
            if start > shown:
                fill = instruction_named("vector_dup")(
                    dtype=_FLOAT,
                    value=float_code(LOWEST),
                    repeat=self.rows,
                    dst_repeat_stride=pitch,
                )
                self.builder.issue(fill, place)
                continue
            add = instruction_named("vadd")(
                dtype=_FLOAT,
                repeat=self.rows,
                dst_repeat_stride=pitch,
                src0_repeat_stride=pitch,
                src1_repeat_stride=_BLOCK,
            )
            mask = self._in("mask", self._first_lanes().index(shown % LANES))
            self.builder.issue(add, place, place, mask)

    def _grow(self, scores: Expr, keys: int, slot: Expr, parity: Expr, number: int) -> None:
        """Take the largest scores into `top`, and how much that fades what was summed before."""
        # fade = exp(old maximum - new maximum) rescales all that was summed under the old one; in
        # the first block the old one is `LOWEST`, so that fade is 0.
        before = self._top((parity + 1) % 2, number)
        top, fade = self._top(parity, number), self._fade(slot, number)
        self._reduce("max", scores, keys)
        self._of_stats("vmax", top, before, self._in("new"))
        self._barrier()
        self._of_stats("vsub", fade, before, top)
        self._barrier()
        self._of_stats("vexp", fade, fade)

    def _add_values(self) -> None:
        """Add O_j to O."""
        s, b, flags, slot = self.shape, self.builder, self.flags, self.turn.value
        size = 4 * self.rows * s.width
        for number in self._kept:
            tile, chunk = divmod(number, self.chunks)
            buffer = self.even.value if self.chunks == 1 else Expr(chunk)
            flags.wait("V", "MTE2", buffer + _VALUES_FREE)
            if not chunk:
                b.issue(WaitFlagDev(flag_id=VALUES))
            # O = O * fade + O_j, fade being that of block j.
            load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=size)
            source = (slot * s.tiles + tile) * s.workspace["values"] + chunk * size
            b.issue(load, self._in("o_j", buffer), Expr.of(self.made["values"]) + source)
            flags.set("MTE2", "V", buffer + _VALUES_FREE)
            flags.wait("MTE2", "V", buffer + _VALUES_FREE)
            self._barrier()
            total = self._in("o", number)
            for part in range(0, s.width, LANES):
                self._by_row("vmul", total + 4 * part, self._fade(slot, number), s.width)
            self._barrier()
            self._repeated("vadd", size // 256, (total, total, self._in("o_j", buffer)))
            flags.set("V", "MTE2", buffer + _VALUES_FREE)
        self.turn.set((slot + 1) % s.slots)
        self.even.set((self.even.value + 1) % 2)

    def _barrier(self) -> None:
        self.builder.issue(PipeBarrier(on="V"))

    def _fill(self, name: str, value: float, repeats: int, slot: int = 0) -> None:
        self._repeated("vector_dup", repeats, (self._in(name, slot),), value=float_code(value))

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
            self._repeated(name, self.rows * keys // LANES, (scores, scores), **fields)
            return
        pitch = self.shape.block // _BLOCK
        for part in range(0, keys, LANES):
            strides = {"dst_repeat_stride": pitch, "src_repeat_stride": pitch}
            one = instruction_named(name)(dtype=_FLOAT, repeat=self.rows, **strides, **fields)
            self.builder.issue(one, scores + 4 * part, scores + 4 * part)

    def _narrow(self, into: Expr, source: Expr, columns: int, pitch: int) -> None:
        """Convert rows of so many floats that begin `pitch` apart; the result lies alike."""
        size, name = self.shape.dtype.size_bytes, FROM_FLOAT[self.shape.dtype.name]
        for part in range(0, columns, LANES):
            one = instruction_named(name)(
                repeat=self.rows,
                dst_repeat_stride=pitch * size // DATA_BLOCK_BYTES,
                src_repeat_stride=pitch // _BLOCK,
            )
            self.builder.issue(one, into + size * part, source + 4 * part)

    def _by_row(self, name: str, rows: Expr, stats: Expr, width: int) -> None:
        """Compute 64 columns of all rows with what is kept of each row."""
        pitch = width // _BLOCK
        one = instruction_named(name)(
            dtype=_FLOAT,
            repeat=self.rows,
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
                repeat=self.rows,
                src0_repeat_stride=apart,
                src1_repeat_stride=pitch,
            )
            self.builder.issue(fold, folded, source, scores + 4 * part)
            self._barrier()
            source, apart = folded, _BLOCK
        across = instruction_named(f"vcg{name}")
        self.builder.issue(
            across(dtype=_FLOAT, repeat=self.rows, src_repeat_stride=apart),
            self._in("eighth"),
            source,
        )
        self._barrier()
        self.builder.issue(
            across(dtype=_FLOAT, repeat=self.stats), self._in("one"), self._in("eighth")
        )
        self._barrier()
        spread = instruction_named("vbrcb")(
            dtype=element_type("uint32"), repeat=self.rows // _BLOCK
        )
        self.builder.issue(spread, self._in("new"), self._in("one"))
        self._barrier()
