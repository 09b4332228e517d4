"""The scales of MxMatmul on their way: one for each 32 of K, stored in pairs.

Global memory holds them as the operand is stored: rows of scales where K is the inner axis ([m,
K/32] for A, [n, K/32] for a transposed B), else rows of pairs ([K/64, m, 2] and [K/64, n, 2]); K/32
is rounded up to whole pairs. In L1 they lie behind the block or chunk that they belong to, as
fractals of 16 x 2 row by row, which a transfer of 16-bit words makes of either (asc-devkit, Layout:
ScaleAND, ScaleADN, ScaleBND and ScaleBDN; MX scales and their fractals). Where a chunk has a part
of K, one transfer of scales may serve several chunks (mxTypePara; asc-devkit, MxFP4 Matmul examples
on the Matmul API and on the basic API): they lie behind the buffer of every second one then.
"""

from dataclasses import dataclass

from cubecore.dtypes import INT16, ElementType
from cubecore.errors import refuse
from cubecore.isa.cube.mad_mx import SHARED, LoadCbufToCaMx, LoadCbufToCbMx
from cubecore.isa.mte.copies_3510 import (
    CopyGmToCbufMultiDn2Nz,
    CopyGmToCbufMultiNd2NzV2,
    NzPara,
    SetMte2NzPara,
)
from cubecore.isa.mte.fill import CreateCbufMatrix
from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up, ceil_div

PAIR = 2 * SHARED
"""Values of K with a pair of scales; matmuls and base blocks are whole pairs."""
_PAIR_BYTES = 2


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """Geometry of an operand's scales; `r` is the operand's own axis (M for A, N for B).

    `rows` elements of r and `pairs` along K are stored. A chunk is `chunk_r` x `chunk_k` values; a
    transfer brings the scales of `chunks` of them, one behind the other along K.
    """

    is_a: bool
    k_inner: bool
    rows: int
    pairs: int
    chunk_r: int
    chunk_k: int
    chunks: int = 1

    @property
    def stored_bytes(self) -> int:
        """Bytes of one matrix's scales."""
        return self.rows * self.pairs * _PAIR_BYTES

    @property
    def pitch(self) -> int:
        """Blocks of 32 B of a row of fractals in L1."""
        return int(ceil_div(self.chunks * self.chunk_k, PAIR))

    def buffer_bytes(self, core_r: int) -> int:
        """Bytes of a transfer's scales in L1 for a core with `core_r` of r."""
        rows = min(self.chunk_r, align_up(core_r, FRACTAL_ROWS))
        return int(ceil_div(rows, FRACTAL_ROWS)) * self.pitch * DATA_BLOCK_BYTES

    def start(self, r: int, k: int) -> int:
        """Return where the scales of (r, k) lie, bytes.

        Raises
        ------
        RequestError
            If K lies inside a pair of scales, as it may where cores divide K.
        """
        if k % PAIR:
            need = f"be a multiple of {PAIR} in MxMatmul"
            remedy = "make singleCoreK one: a pair of scales cannot be cut"
            raise refuse("the K at which a core starts", need, k, remedy)
        return self.offset(Expr(int(r > 0)), r, Expr(int(k > 0)), k).const

    def offset(self, r: Expr, r_size: int, k: Expr, k_size: int) -> Expr:
        """Return where those of block (r, k) of a grid of r_size x k_size values start, bytes."""
        to_r, to_k = (self.pairs, 1) if self.k_inner else (1, self.rows)
        return r * (r_size * to_r * _PAIR_BYTES) + k * (k_size // PAIR * to_k * _PAIR_BYTES)

    def load(self, builder: Builder, source: Expr, target: Expr, r: int, k: int) -> None:
        """Bring the scales of r x k values; an odd one out comes with the one that pads it."""
        pairs = int(ceil_div(k, PAIR))
        para = NzPara(matrices=1, row_stride=1, column_stride=self.pitch, matrix_stride=0)
        kind = CopyGmToCbufMultiDn2Nz if self.k_inner else CopyGmToCbufMultiNd2NzV2
        # Pairs are moved as words of 16 bits, so that one transfer of words makes fractals of 16 x
        # 2 scales of either storage.
        between = self.pairs if self.k_inner else self.rows
        builder.issue(SetMte2NzPara(config=para.pack()))
        template = kind(
            dtype=INT16, loop1_src_stride=between * _PAIR_BYTES, n_value=pairs, d_value=r
        )
        builder.issue(template, target, source)

    def move(
        self, builder: Builder, start: Expr, slot: Expr, slot_bytes: int, r: int, k: int
    ) -> None:
        """Move the scales of r x k values from `start` in L1 to where L0's values have theirs.

        The values are in buffer `slot` of L0, each of which has so many bytes.
        """
        for second in builder.choose(slot, "==", 1):
            template = (LoadCbufToCaMx if self.is_a else LoadCbufToCbMx)(
                dst_at=slot_bytes // _VALUES_A_BYTE if second else 0,
                x_step=ceil_div(r, FRACTAL_ROWS),
                y_step=ceil_div(k, PAIR),
                src_stride=self.pitch,
                dst_stride=ceil_div(k, PAIR),
            )
            builder.issue(template, start)

    def at(self, r: Expr, r_size: int, k: Expr, k_size: int) -> Expr:
        """Return where block (r, k) of a chunk's grid starts in L1, bytes from the first scale."""
        rows = r * (r_size // FRACTAL_ROWS * self.pitch)
        return (rows + k * (k_size // PAIR)) * DATA_BLOCK_BYTES


_VALUES_A_BYTE = 16
"""Bytes of L0A or L0B to one byte of scales (asc-devkit, asc_copy_l12l0a_mx)."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """Fills up K to whole pairs of scales with zeros in L1, whose matmuls add nothing.

    A matmul takes whole pairs; ND2NZ fills up to 32 B of a row, and no row at all.
    """

    builder: Builder
    dtype: ElementType

    def columns(self, target: Expr, k: int, pitch_rows: int) -> None:
        """Fill the pieces of C0 that follow the k columns of a matrix at `target`."""
        have, want = ceil_div(k, self.dtype.c0), align_up(k, PAIR) // self.dtype.c0
        if want > have:
            blocks = int(want - have) * pitch_rows
            self._fill(target + int(have) * pitch_rows * DATA_BLOCK_BYTES, 1, blocks, 0)

    def rows(self, target: Expr, k: int, columns: int, pitch_rows: int) -> None:
        """Fill the rows that follow those of a matrix of k x columns at `target`."""
        missing = align_up(k, PAIR) - k
        if missing:
            pieces = ceil_div(columns, self.dtype.c0)
            self._fill(target + k * DATA_BLOCK_BYTES, pieces, missing, pitch_rows - missing)

    def _fill(self, target: Expr, runs: int, blocks: int, gap: int) -> None:
        zeros = CreateCbufMatrix(dtype=INT16, bits=0, repeat=runs, blk_num=blocks, dst_gap=gap)
        self.builder.issue(zeros, target)
