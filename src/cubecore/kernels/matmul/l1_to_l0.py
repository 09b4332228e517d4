"""An operand's base blocks from L1 to L0."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies import (
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.mte.load2d_3510 import LoadCbufToCaV2Transpose
from cubecore.isa.program.expr import Expr
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.gm_to_l1 import vector_at
from cubecore.kernels.matmul.operand import BaseBlock, OperandPlan
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, ceil_div


class _Grid(NamedTuple):
    """Fractals or squares in a row: how many, and the steps between them at either end."""

    trips: int
    source_step: int
    slot_step: int


@dataclass(frozen=True, slots=True)
class Mover:
    """Issues the loads of an operand's base blocks into L0; addresses are bytes."""

    builder: Builder
    plan: OperandPlan

    def move(self, buffer: Expr, slot: Expr, r: Expr, k: Expr, tile: BaseBlock) -> None:
        """Load base block (r, k) of the chunk at `buffer`."""
        plan, chunk = self.plan, tile.chunk
        if plan.is_a and plan.k_inner and tile.r == 1 and not plan.nz:
            length = plan.vector_bytes if plan.apart else int(plan.dtype.bytes_of(plan.base_k))
            start = vector_at(plan, buffer, chunk, 0) + k * length
            repeat = ceil_div(plan.dtype.bytes_of(tile.k), FRACTAL_BYTES)
            self.builder.issue(LoadCbufToCa(repeat=repeat), slot, start)
            return
        row, column = (r * plan.base_r, k) if plan.k_inner else (k * plan.base_k, r)
        if plan.banded:
            pieces = plan.matrix_columns() // plan.dtype.c0
            band_bytes = pieces * DATA_BLOCK_BYTES
            start = buffer + row * band_bytes
            start = start + column * (plan.base_columns // plan.dtype.c0 * FRACTAL_BYTES)
            across = pieces // (plan.square // plan.dtype.c0)
            self._squares(start, slot, tile, step_r=1, step_k=across)
            return
        pitch = plan.pitch_rows(chunk)
        if plan.apart:
            across = plan.matrix_bytes(chunk)
        else:
            across = int(plan.dtype.bytes_of(plan.base_columns * pitch))
        start = buffer + column * across + row * DATA_BLOCK_BYTES
        if plan.k_inner:
            self._fractals(start, slot, tile, pitch // FRACTAL_ROWS)
        elif plan.windowed:
            self._window(start, slot, tile, pitch // FRACTAL_ROWS)
        else:
            self._squares(start, slot, tile, step_r=pitch // plan.square, step_k=1)

    def _fractals(self, start: Expr, slot: Expr, tile: BaseBlock, down: int) -> None:
        """Fractals as they are; `down` of them make a column of C0 in L1."""
        by_column = self.plan.l0_by_column
        r, k = ceil_div(tile.r, FRACTAL_ROWS), ceil_div(tile.k, self.plan.dtype.c0)
        to_r, to_k = (1, r) if by_column else (k, 1)
        template = LoadCbufToCa if self.plan.is_a else LoadCbufToCb
        # Source and target are both one run of fractals.
        if by_column and (down == r or k == 1):
            self.builder.issue(template(repeat=r * k), slot, start)
            return
        along_r, along_k = _Grid(r, 1, to_r), _Grid(k, down, to_k)
        inner, outer = (along_r, along_k) if k <= r else (along_k, along_r)
        self._nest(template, inner, outer, slot, start, FRACTAL_BYTES)

    def _squares(
        self, start: Expr, slot: Expr, tile: BaseBlock, *, step_r: int, step_k: int
    ) -> None:
        """Squares, transposed; the steps are from one to the next along r and k at the source."""
        plan = self.plan
        edge, c0 = plan.square, plan.dtype.c0
        fractals_r, r = ceil_div(tile.r, FRACTAL_ROWS), ceil_div(tile.r, edge)
        squares_k = ceil_div(tile.k, edge)
        along, across = edge // FRACTAL_ROWS, edge // c0
        k = squares_k * across
        if plan.is_a:
            to_r, to_k, second = along * k, across, (k if along > 1 else 1)
        else:
            to_r, to_k, second = along, across * fractals_r, (1 if along > 1 else fractals_r)
        # A transposing load takes squares: `second` is from a square's first fractal to its others
        # in L0.
        template = partial(
            LoadCbufToCaTranspose if plan.is_a else LoadCbufToCbTranspose,
            dtype=plan.moved,
            dst_frac_gap=second - 1 if along * across > 1 else 0,
        )
        # B with a part-used last square: walking K outermost lets the next row of fractals
        # overwrite what the unused part left behind, once that is complete.
        overlapping = not plan.is_a and fractals_r % along != 0
        along_r, along_k = _Grid(r, step_r, to_r), _Grid(squares_k, step_k, to_k)
        r_inside = squares_k <= r or overlapping
        inner, outer = (along_r, along_k) if r_inside else (along_k, along_r)
        square_bytes = int(plan.dtype.bytes_of(edge * edge))
        self._nest(
            template,
            inner,
            outer,
            slot,
            start,
            square_bytes,
            apart=not overlapping,
        )

    def _window(self, start: Expr, slot: Expr, tile: BaseBlock, down: int) -> None:
        """Transpose a window of NZ whose columns of C0 are `down` fractals long in L1."""
        plan = self.plan
        edge, c0 = plan.square, plan.dtype.c0
        rows = ceil_div(tile.r, FRACTAL_ROWS)
        pieces, each = ceil_div(tile.k, edge), edge // FRACTAL_ROWS
        # A part-used last square reaches into the next piece of K: pieces then go one by one, so
        # that the next one overwrites what the unused part left behind.
        overlapping = pieces > 1 and rows % each != 0
        count = 1 if overlapping else pieces
        template = LoadCbufToCaV2Transpose(
            dtype=plan.moved,
            m_step=count * each,
            k_step=ceil_div(tile.r, edge) * edge // c0,
            src_stride=down,
            dst_stride=rows,
        )
        to_bytes = edge // c0 * rows * FRACTAL_BYTES
        with self.builder.loop("piece", pieces // count) as i:
            at = start + i * (edge * DATA_BLOCK_BYTES)
            self.builder.issue(template, slot + i * to_bytes, at)
            if overlapping:
                self.builder.issue(PipeBarrier(on="MTE1"))

    def _nest(
        self,
        template: Callable[..., Instruction],
        inner: _Grid,
        outer: _Grid,
        slot: Expr,
        start: Expr,
        unit_bytes: int,
        *,
        apart: bool = True,
    ) -> None:
        """Repeat along the inner grid within one instruction, along the outer in a loop.

        Instructions that do not write apart from each other run one after the other.
        """
        load = template(
            repeat=inner.trips, src_stride=inner.source_step, dst_gap=inner.slot_step - 1
        )
        with self.builder.loop("part", outer.trips) as i:
            self.builder.issue(
                load,
                slot + i * (outer.slot_step * FRACTAL_BYTES),
                start + i * (outer.source_step * unit_bytes),
            )
            if not apart:
                self.builder.issue(PipeBarrier(on="MTE1"))
