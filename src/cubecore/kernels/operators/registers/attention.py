"""Attention on Ascend 950: what its parts hand over stays in the AI Core.

Fixpipe writes half of the rows of S_j and of O_j to the Unified Buffer of each AIV; vector
functions make P_j, and MTE3 puts it into L1 as the Cube reads it. Flags of mode 4 between the AIC
and each AIV count blocks of keys. It is the kernel of examples/kernels/flash_attention_950.py, with
shapes as parameters.
"""

from collections.abc import Callable

from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe_to_ub import BY_ROWS, CopyMatrixCcToUb
from cubecore.isa.declare.registers import CROSS_CORE_FLAGS
from cubecore.isa.mte.copies_unaligned_3510 import CopyUbufToGmAlignV2
from cubecore.isa.mte.load2d_3510 import LoadCbufToCaV2
from cubecore.isa.mte.partner import AIVS, CopyUbufToCbufV2
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.scalar.sync import SetIntraBlock, WaitIntraBlock
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.attention.join import LeftParts
from cubecore.kernels.operators.attention.key_steps import key_steps
from cubecore.kernels.operators.attention.products import (
    VALUES_FREE,
    AttentionProducts,
    AttentionTrees,
    Extents,
    attention_launch,
)
from cubecore.kernels.operators.attention.shape import CHANCES, SCORES, VALUES, AttentionShape
from cubecore.kernels.operators.attention.shares import AttentionPart, RowBlock, row_blocks
from cubecore.kernels.operators.registers.attention_join import RegisterJoin
from cubecore.kernels.operators.registers.attention_rows import AttentionBuffers, RowFunctions
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS

_OF_AIVS = tuple(part * CROSS_CORE_FLAGS for part in range(AIVS))
"""Added by an AIC to a flag of mode 4 for each AIV."""


def register_attention(shape: AttentionShape, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of attention on the AI Cores of Ascend 950, or on so many of them."""
    return attention_launch(shape, chip, cores, AttentionTrees(_Products, _Rows))


class _Products(AttentionProducts):
    """The AIC's tree."""

    in_memory = ()
    a_layout = "NZ"

    def load_left(self, into: Expr | int, matrix: Expr, columns: int) -> None:
        """Move all rows of some columns from L1 to L0A, where columns of fractals remain."""
        down = self.shape.tile // FRACTAL_ROWS
        across = columns // FRACTAL_ROWS
        move = LoadCbufToCaV2(m_step=down, k_step=across, src_stride=down, dst_stride=down)
        self.builder.issue(move, into, matrix)

    def values_loaded(self, slot: Expr) -> None:
        """Tell MTE1 that V_j is there."""
        self.flags.set("MTE2", "MTE1", slot + VALUES_FREE)

    def take_chances(self, slot: Expr, keys: int) -> None:
        """Wait for P_j, which both AIVs put into L1."""
        for part in _OF_AIVS:
            self.builder.issue(WaitIntraBlock(flag_id=CHANCES + part))

    def signal(self, flag: int) -> None:
        """Tell both AIVs that their rows of a tile are there."""
        for part in _OF_AIVS:
            self.builder.issue(SetIntraBlock(on="FIX", flag_id=flag + part))

    def hand_over(self, name: str, slot: Expr, start: int, tile: Expr, columns: int) -> None:
        """Write half of the rows to each AIV."""
        store = CopyMatrixCcToUb(
            src_type=element_type("float32"),
            n_size=columns,
            m_size=self.shape.tile,
            dst_stride=self.shape.columns_of(name),
            src_stride=self.shape.tile,
            dual_dst_ctl=BY_ROWS,
            nz2nd_en=True,
        )
        into = AttentionBuffers(self.shape).of(name, slot) + 4 * start
        self.builder.issue(store, into, tile)


class _Rows:
    """An AIV's tree; the `second` one has the second half of the rows."""

    def __init__(
        self,
        shape: AttentionShape,
        extents: Extents,
        *,
        second: bool = False,
        joined: int | None = None,
    ) -> None:
        self.shape, self.second = shape, second
        self.buffers = AttentionBuffers(shape)
        self.functions = RowFunctions(self.buffers, second=second)
        name = f"attention_rows_{shape.name}" + "_second" * second
        b = self.builder = Builder(name, BASIC)
        self.flags = Flags(b)
        self.turn = b.scalar("turn")
        self.out = [b.slot(f"o{number}") for number in range(len(extents))]
        # Slots of S_j and O_j need no flags of their own: who writes one again has waited for what
        # was made of it. P's slots and O leave by MTE3.
        self.out_free = shape.slots
        self.left = LeftParts(b, shape, len(extents)) if shape.splits > 1 else None
        with self.flags.raised([("MTE3", "V", event) for event in range(shape.slots + 1)]):
            for number, extent in enumerate(extents):
                for block in row_blocks(b, shape, extent):
                    self._rows(number, block)
        self.joined = None if joined is None else RegisterJoin(b, shape, joined)
        self.program = b.finish()

    def on_core(self, core: int, share: tuple[AttentionPart, ...], joins: int = 0) -> CoreProgram:
        """Return the tree with its slots filled for the parts of a core."""
        s = self.shape
        first = self.second * self.buffers.share
        away = first * s.width * s.dtype.size_bytes
        slots = {out: ("y", part.query + away) for out, part in zip(self.out, share, strict=True)}
        if self.left is not None and self.joined is not None:
            slots |= {**self.left.slots(share, first), **self.joined.slots(joins)}
        return CoreProgram(core, self.program, slots, sub=1 + self.second)

    def _rows(self, part: int, block: RowBlock) -> None:
        """Follow the products with every block of keys, and write O, or a part of it."""
        s, flags = self.shape, self.flags
        rows = min(max(s.stored_rows - self.second * self.buffers.share, 0), self.buffers.share)
        self.turn.set(0)
        if self.left is not None and rows:
            flags.wait("MTE3", "V", self.out_free)
        self._issue(self.functions.begin)
        # As on A2, P_(j+1) is made before O_j is added: the AIC is then still at work on O_j.
        for step in key_steps(self.builder, s, block.number):
            if step.values:
                self._add_values()
            else:
                slot = step.turn(self.turn.value, s.slots)
                self._chances(step.keys, slot, diagonal=step.diagonal)
        if not rows:
            return
        if self.left is None:
            self._write(Expr.of(self.out[part]), block.row, rows)
            return
        flags.set("V", "MTE3", self.out_free)
        flags.wait("V", "MTE3", self.out_free)
        names = {"parts": "o", "tops": "top", "sums": "total"}
        places = {name: self.buffers.of(held) for name, held in names.items()}
        self.left.store(part, block.row, rows, places)
        flags.set("MTE3", "V", self.out_free)

    def _write(self, out: Expr, row: Expr, rows: int) -> None:
        """Divide O by the sums of its rows, and write it."""
        s, flags = self.shape, self.flags
        flags.wait("MTE3", "V", self.out_free)
        self._issue(self.functions.divide)
        flags.set("V", "MTE3", self.out_free)
        flags.wait("V", "MTE3", self.out_free)
        row_bytes = s.width * s.dtype.size_bytes
        store = CopyUbufToGmAlignV2(dtype=s.dtype, n_burst=1, len_burst=rows * row_bytes)
        self.builder.issue(store, out + row * row_bytes, self.buffers.of("out"))
        flags.set("MTE3", "V", self.out_free)

    def _chances(self, keys: int, slot: Expr, *, diagonal: bool) -> None:
        """Make P_j of S_j, and put this AIV's rows of it into L1."""
        s, b, flags = self.shape, self.builder, self.flags
        share, size = self.buffers.share, s.dtype.size_bytes
        b.issue(WaitIntraBlock(flag_id=SCORES))
        flags.wait("MTE3", "V", slot)
        self._by_slot(slot, lambda number: self.functions.chances(keys, number, diagonal))
        flags.set("V", "MTE3", slot)
        flags.wait("V", "MTE3", slot)
        # A column of 16 keys of P_j holds all rows of the AI Core in L1, and an AIV's in UB.
        move = CopyUbufToCbufV2(
            n_burst=keys // FRACTAL_ROWS,
            len_burst=share * FRACTAL_ROWS * size // DATA_BLOCK_BYTES,
            src_gap=0,
            dst_gap=(s.tile - share) * FRACTAL_ROWS * size // DATA_BLOCK_BYTES,
        )
        at, apart = s.l1_places["p"]
        at += self.second * share * FRACTAL_ROWS * size
        b.issue(move, slot * apart + at, self.buffers.of("chances", slot))
        flags.set("MTE3", "V", slot)
        b.issue(SetIntraBlock(on="MTE3", flag_id=CHANCES))

    def _add_values(self) -> None:
        """Add O_j to O."""
        self.builder.issue(WaitIntraBlock(flag_id=VALUES))
        self._by_slot(self.turn.value, self.functions.add_values)
        self.turn.set((self.turn.value + 1) % self.shape.slots)

    def _by_slot(self, slot: Expr, function: Callable[[int], Issued]) -> None:
        """Issue the function of a slot."""
        # What is kept of rows lies in one place for all slots, so that each slot has a function of
        # its own: one finds all that it accesses at the same distances.
        for number in range(self.shape.slots):
            with self.builder.when(slot, "==", number):
                self._issue(function(number))

    def _issue(self, issued: Issued) -> None:
        self.builder.issue(issued.template, *issued.addresses)
