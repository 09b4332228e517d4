"""An operand's chunks from global memory to L1."""

from dataclasses import dataclass
from functools import partial

from cubecore.dtypes import INT8, ElementType
from cubecore.isa.mte.copies import (
    ND2NZ_PITCH_LIMIT,
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
)
from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.mx_scales import Zeros
from cubecore.kernels.matmul.operand import Chunk, OperandPlan
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up, ceil_div

_GAP_LIMIT = 65535
_BURST_LIMIT = 4095


@dataclass(frozen=True, slots=True)
class Loader:
    """Issues the transfers of an operand's chunks; addresses are bytes."""

    builder: Builder
    plan: OperandPlan

    def load(self, source: Expr, target: Expr, chunk: Chunk) -> None:
        """Bring one chunk from `source` in global memory to `target` in L1."""
        plan = self.plan
        rows, columns = plan.stored(chunk)
        # Blocks that lie apart in L1 are matrices of their own, a transfer each.
        width = plan.base_columns if plan.apart else columns
        for index, length in self.builder.split("block", columns, width):
            at = source + index * int(plan.dtype.bytes_of(width))
            into = target + index * plan.matrix_bytes(chunk)
            if rows:
                self._matrix(at, into, rows, length, plan.pitch_rows(chunk))
            if chunk.vector_rows:
                row = at + rows * int(plan.dtype.bytes_of(plan.pitch))
                self._nd_rows(row, vector_at(plan, target, chunk, index), 1, length, 1)
            if plan.scales is not None:
                self._whole_pairs(into, vector_at(plan, target, chunk, index), chunk)

    def _whole_pairs(self, matrix: Expr, vector: Expr, chunk: Chunk) -> None:
        """Fill K up to what a scaled matmul takes, with zeros."""
        plan, zeros = self.plan, Zeros(self.builder, self.plan.dtype)
        rows, columns = plan.stored(chunk)
        if not plan.k_inner:
            columns = min(columns, plan.matrix_columns())
            zeros.rows(matrix, chunk.k, columns, plan.pitch_rows(chunk))
            return
        if rows:
            zeros.columns(matrix, columns, plan.pitch_rows(chunk))
        if chunk.vector_rows:
            zeros.columns(vector, columns, 1)

    def _matrix(self, source: Expr, target: Expr, rows: int, columns: int, pitch_rows: int) -> None:
        """Bring rows x columns; L1's columns of C0 lie `pitch_rows` rows apart."""
        plan = self.plan
        issue = self._nz_rows if plan.nz else self._nd_rows
        if not plan.banded:
            issue(source, target, rows, columns, pitch_rows)
            return
        # Bands of 16 rows lie one behind another where a transposing load must find its squares
        # whole.
        row_bytes = DATA_BLOCK_BYTES if plan.nz else int(plan.dtype.bytes_of(plan.pitch))
        band_bytes = FRACTAL_ROWS * int(plan.dtype.bytes_of(plan.matrix_columns()))
        for band, length in self.builder.split("band", rows, FRACTAL_ROWS):
            at = source + band * (FRACTAL_ROWS * row_bytes)
            issue(at, target + band * band_bytes, length, columns, FRACTAL_ROWS)

    def _nd_rows(
        self, source: Expr, target: Expr, rows: int, columns: int, pitch_rows: int
    ) -> None:
        b, plan = self.builder, self.plan
        kind, per = _carrier(plan.moved)
        carried, pitch = ceil_div(columns, per), ceil_div(plan.pitch, per)
        nd2nz = partial(
            CopyGmToCbufMultiNd2Nz, dtype=kind, d_value=carried, dst_nz_c0_stride=pitch_rows
        )
        # The pitch field has 16 bits: beyond it each row is a transfer of its own.
        if rows == 1 or pitch > ND2NZ_PITCH_LIMIT:
            with b.loop("row", rows) as row:
                at = source + row * int(plan.dtype.bytes_of(plan.pitch))
                template = nd2nz(n_value=1, src_d_value=min(pitch, ND2NZ_PITCH_LIMIT))
                b.issue(template, target + row * DATA_BLOCK_BYTES, at)
        else:
            b.issue(nd2nz(n_value=rows, src_d_value=pitch), target, source)

    def _nz_rows(
        self, source: Expr, target: Expr, rows: int, columns: int, pitch_rows: int
    ) -> None:
        """One burst for each piece of C0 columns: its rows follow each other at both ends."""
        b = self.builder
        pieces = ceil_div(columns, self.plan.dtype.c0)
        whole = int(align_up(self.plan.rows, FRACTAL_ROWS))
        # All pieces in one instruction where its gap and burst fields can say so.
        together = whole - rows <= _GAP_LIMIT and pieces <= _BURST_LIMIT
        count = pieces if together else 1
        with b.loop("piece", ceil_div(pieces, count)) as piece:
            template = CopyGmToCbuf(
                n_burst=count,
                len_burst=rows,
                src_gap=whole - rows if together else 0,
                dst_gap=pitch_rows - rows if together else 0,
            )
            to = target + piece * (pitch_rows * DATA_BLOCK_BYTES)
            b.issue(template, to, source + piece * (whole * DATA_BLOCK_BYTES))


def vector_at(plan: OperandPlan, target: Expr, chunk: Chunk, index: Expr | int) -> Expr:
    """Return where the vector row of a chunk at `target` lies, for matrix `index` of the chunk."""
    blocks = Expr.of(index) * plan.vector_bytes if plan.apart else Expr(0)
    return target + plan.matrices * plan.matrix_bytes(chunk) + blocks


def _carrier(kind: ElementType) -> tuple[ElementType, int]:
    """Return the type in which ND2NZ moves `kind`, and how many elements one of it carries.

    Pieces of C0 are 32 B for every type, so pairs of 4-bit elements move as bytes.
    """
    return (INT8, 8 // kind.bits) if kind.bits < INT8.bits else (kind, 1)
