"""One operand of the product and how it lies in L1.

Call the operand's own axis r (M for A, N for B). A matrix is stored [rows, columns] with either K
or r along its columns; L1 holds chunks of it in fractals with C0 along that inner axis. Where K is
the inner axis a fractal already is what L0 wants; otherwise squares are transposed on the way.
"""

from dataclasses import dataclass

from cubecore.chips.products import L0A_NZ_ARCHS
from cubecore.dtypes import INT4, INT8, ElementType
from cubecore.errors import refuse
from cubecore.isa.program.expr import Expr
from cubecore.kernels.matmul.mx_scales import PAIR, ScalePlan
from cubecore.tiling.cost.traffic import Stored
from cubecore.tiling.model.mx_type_para import scale_factor
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, align_up, ceil_div


@dataclass(frozen=True, slots=True)
class Chunk:
    """The data of one transfer to L1: `r` by `k` elements, in a buffer.

    `vector_rows` is 1 when the last row travels apart from the others, as a plain vector.
    """

    r: int
    k: int
    vector_rows: int


@dataclass(frozen=True, slots=True)
class BaseBlock:
    """A base block that is loaded into L0: its sizes, and the chunk that it lies in."""

    r: int
    k: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """Geometry of A (`is_a`) or B in one core; sizes are elements, steps are base blocks.

    `l0_by_column` says that the fractals of a piece of C0 of K follow each other in L0: so they do
    for B, and for A on chips that hold it as NZ. The stored matrix has `rows` rows of `pitch`
    elements; `nz` says that global memory holds it in fractals: pieces of C0 columns, each all rows
    long. `windowed` says that transposing loads take windows of an NZ matrix, as A's do on chips
    that hold it as NZ. `scales` are those of MxMatmul, which lie in L1 behind what they scale.
    """

    is_a: bool
    dtype: ElementType
    k_inner: bool
    nz: bool
    rows: int
    pitch: int
    base_r: int
    base_k: int
    step_r: int
    step_k: int
    buffers: int
    l0_by_column: bool = True
    windowed: bool = False
    scales: ScalePlan | None = None

    @property
    def moved(self) -> ElementType:
        """Return the type that loads move: the element; 8- and 4-bit floats move as integers."""
        integers = {INT8.bits: INT8, INT4.bits: INT4} if self.dtype.kind == "float" else {}
        return integers.get(self.dtype.bits, self.dtype)

    def multiplied(self, k: int) -> int:
        """Return the K of a matmul that takes k: whole pairs of scales."""
        return k if self.scales is None else int(align_up(k, PAIR))

    @property
    def square(self) -> int:
        """Edge of the squares that a transposing load takes: C0, at least the fractal's 16."""
        return max(FRACTAL_ROWS, self.dtype.c0)

    @property
    def banded(self) -> bool:
        """True if L1 holds bands of 16 rows, each with all its pieces of C0 side by side.

        A transposing load of 32-bit elements takes two fractals that follow each other: the left
        and the right half of a square. NZ would put one above the other.
        """
        return not self.k_inner and self.dtype.c0 < FRACTAL_ROWS and not self.windowed

    @property
    def row_alignment(self) -> int:
        """Rows of an L1 column of fractals are a multiple of this."""
        return FRACTAL_ROWS if self.k_inner else self.square

    @property
    def column_alignment(self) -> int:
        """Columns of a matrix in L1 are a multiple of this."""
        turned = self.banded or (self.windowed and not self.k_inner)
        return self.square if turned else self.dtype.c0

    @property
    def base_columns(self) -> int:
        """A base block's size along the stored inner axis."""
        return self.base_k if self.k_inner else self.base_r

    @property
    def step_columns(self) -> int:
        """Base blocks of a chunk along the stored inner axis."""
        return self.step_k if self.k_inner else self.step_r

    @property
    def apart(self) -> bool:
        """True if each base block along the inner axis is a matrix of its own.

        A block that starts inside a C0 piece could not be loaded from a common one.
        """
        return self.step_columns > 1 and self.base_columns % self.dtype.c0 != 0

    def has_vector(self, r: int) -> bool:
        """True if a chunk of `r` rows ends in a base block of one row that GEMV must read as ND."""
        return self.is_a and self.k_inner and not self.nz and r % self.base_r == 1

    def chunk(self, r: int, k: int) -> Chunk:
        """Return the chunk of `r` by `k` elements."""
        return Chunk(r, k, int(self.has_vector(r)))

    def stored(self, chunk: Chunk) -> tuple[int, int]:
        """Return the chunk's (rows, columns) in the stored matrix, its vector row apart."""
        if self.k_inner:
            return chunk.r - chunk.vector_rows, chunk.k
        return chunk.k, chunk.r

    def pitch_rows(self, chunk: Chunk) -> int:
        """Rows from one L1 column of C0 elements to the next."""
        # Rows of C0 elements lie below each other, one column of fractals behind the other.
        if self.k_inner:
            return int(align_up(max(chunk.r - chunk.vector_rows, 1), self.row_alignment))
        # The last base block is read in whole squares, which may reach past its own rows.
        last = align_up(self.base_k, self.square)
        return int(align_up((self.step_k - 1) * self.base_k + last, self.row_alignment))

    def matrix_columns(self) -> int:
        """Columns of one matrix in L1."""
        blocks = 1 if self.apart else self.step_columns
        return int(align_up(blocks * self.base_columns, self.column_alignment))

    def matrix_bytes(self, chunk: Chunk) -> int:
        """Bytes of one matrix in L1; none where the chunk is one vector."""
        if self.k_inner and chunk.r == chunk.vector_rows:
            return 0
        return int(self.dtype.bytes_of(self.pitch_rows(chunk) * self.matrix_columns()))

    @property
    def matrices(self) -> int:
        """Matrices of a chunk."""
        return self.step_columns if self.apart else 1

    @property
    def vector_bytes(self) -> int:
        """Bytes of the row that travels apart, for one matrix's columns."""
        return int(self.dtype.bytes_of(self.matrix_columns()))

    def buffer_bytes(self, core_r: int) -> int:
        """Bytes of one L1 buffer for a core with `core_r` rows of r, with the scales of a chunk."""
        scales = 0 if self.scales is None else self.scales.buffer_bytes(core_r)
        return self.values_bytes(core_r) + scales

    def values_bytes(self, core_r: int) -> int:
        """Bytes of one L1 buffer without scales.

        Whole fractals, so that moving a vector's last fractal stays inside.
        """
        full = Chunk(min(self.step_r * self.base_r, align_up(core_r, FRACTAL_ROWS)), 0, 0)
        rows = align_up(full.r, FRACTAL_ROWS if self.k_inner else 1)
        padded = self.matrices * self.matrix_bytes(Chunk(rows, 0, 0))
        return int(align_up(padded, FRACTAL_BYTES))

    # --- global memory

    @property
    def stored_bytes(self) -> int:
        """Bytes of the stored matrix; in NZ with its last piece and its last rows padded."""
        if self.nz:
            pieces = ceil_div(self.pitch, self.dtype.c0)
            return int(pieces * align_up(self.rows, FRACTAL_ROWS) * DATA_BLOCK_BYTES)
        return int(self.dtype.bytes_of(self.rows * self.pitch))

    def start(self, r: int, k: int) -> int:
        """Return where the element (r, k) lies, bytes; in NZ at the start of a piece of C0."""
        row, column = (r, k) if self.k_inner else (k, r)
        if not self.nz:
            return row * int(self.dtype.bytes_of(self.pitch)) + int(self.dtype.bytes_of(column))
        return self._offset(Expr(int(row > 0)), row, Expr(int(column > 0)), column).const

    def offset(self, r: Expr, r_size: int, k: Expr, k_size: int) -> Expr:
        """Return where the block (r, k) of a grid of r_size x k_size elements starts, bytes."""
        if self.k_inner:
            return self._offset(r, r_size, k, k_size)
        return self._offset(k, k_size, r, r_size)

    def _offset(self, row: Expr, rows: int, column: Expr, columns: int) -> Expr:
        """Return where a block of the stored matrix starts, in a grid of rows x columns."""
        if not self.nz:
            row_bytes = int(self.dtype.bytes_of(self.pitch))
            return row * (rows * row_bytes) + column * int(self.dtype.bytes_of(columns))
        if columns % self.dtype.c0 and column.constant != 0:
            raise refuse(
                f"blocks of {'A' if self.is_a else 'B'} in NZ",
                f"be multiples of C0 = {self.dtype.c0} along the stored inner axis",
                columns,
                "an NZ matrix cannot be cut inside a fractal",
            )
        piece_bytes = int(align_up(self.rows, FRACTAL_ROWS)) * DATA_BLOCK_BYTES
        return row * (rows * DATA_BLOCK_BYTES) + column * (columns // self.dtype.c0 * piece_bytes)


def _chunks_together(problem: Problem, tiling: TCubeTiling, factor: str, step_k: int) -> int:
    """Return the chunks of K whose scales travel at once: mxTypePara's, of template MDL alone."""
    if problem.template != "MDL":
        return 1
    chunks: int = ceil_div(ceil_div(tiling.singleCoreK, tiling.baseK), step_k)
    wanted: int = scale_factor(tiling.mxTypePara, factor)
    return max(1, min(wanted, chunks))


PADDED_ROW_BYTES = 512
"""Rows of padded operands start at multiples of this (vendor's advice for transfers of MTE2)."""


def operand_plan(
    problem: Problem, tiling: TCubeTiling, *, is_a: bool, padded: bool = False
) -> OperandPlan:
    """Return the geometry of A or B; template NORM moves one base block at a time (D13).

    With `padded` the rows of an ND operand are an odd number of 512 B apart: no row starts off that
    boundary, and no two rows a multiple of 8 KiB apart follow each other.
    """
    p, t = problem, tiling
    stored, extent = Stored.of(p, "a" if is_a else "b"), p.m if is_a else p.n
    dtype, k_inner, nz = stored.kind, stored.k_inner, stored.nz
    step_r, step_k = (t.stepM, t.stepKa) if is_a else (t.stepN, t.stepKb)
    depth = t.depthA1 if is_a else t.depthB1
    if p.template != "MDL":
        step_r = step_k = 1
    pitch = p.k if k_inner else extent
    if padded and not nz:
        row = PADDED_ROW_BYTES * (ceil_div(int(dtype.bytes_of(pitch)), PADDED_ROW_BYTES) | 1)
        pitch = row * 8 // dtype.bits
    base_r, scales = t.baseM if is_a else t.baseN, None
    if p.mx:
        size = step_r * base_r, step_k * t.baseK
        together = _chunks_together(p, t, "scaleFactorKa" if is_a else "scaleFactorKb", step_k)
        scales = ScalePlan(is_a, k_inner, extent, ceil_div(p.k, PAIR), *size, together)
    as_nz = p.chip_record.arch in L0A_NZ_ARCHS
    return OperandPlan(
        is_a=is_a,
        dtype=dtype,
        k_inner=k_inner,
        nz=nz,
        rows=extent if k_inner else p.k,
        pitch=pitch,
        base_r=base_r,
        base_k=t.baseK,
        step_r=step_r,
        step_k=step_k,
        buffers=depth // (step_r * step_k),
        l0_by_column=not is_a or as_nz,
        windowed=is_a and as_nz,
        scales=scales,
    )
