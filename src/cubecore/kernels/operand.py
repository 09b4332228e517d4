"""One operand of the product on its way from global memory over L1 to L0.

Call the operand's own axis r (M for A, N for B). A matrix is stored [rows, columns] with either K
or r along its inner axis; L1 holds chunks of it in NZ with C0 along that inner axis. Where K is
the inner axis a fractal already is what L0 wants; otherwise squares are transposed on the way.
"""

from dataclasses import dataclass
from functools import partial

from cubecore.dtypes import ElementType
from cubecore.isa.expr import Expr, Int
from cubecore.isa.moves import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.kernels.builder import Builder
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, align_up, ceil_div

ND2NZ_PITCH_LIMIT = 65535
"""Largest distance of rows that one ND2NZ transfer takes; longer rows go one by one."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one transfer brings to L1: `r` by `k` elements, in a buffer.

    `vector_rows` is 1 when the last row travels apart from the others, as a plain vector.
    """

    r: int
    k: int
    vector_rows: int


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """Geometry of A (`is_a`) or B in one core; extents are elements, steps are base blocks."""

    is_a: bool
    dtype: ElementType
    k_inner: bool
    pitch: int
    base_r: int
    base_k: int
    step_r: int
    step_k: int
    buffers: int

    @property
    def square(self) -> int:
        """Edge of the squares that a transposing load takes: 32 for 8-bit types, else 16."""
        return max(FRACTAL_ROWS, self.dtype.c0)

    @property
    def row_alignment(self) -> int:
        """Rows of an L1 column of fractals are a multiple of this."""
        return FRACTAL_ROWS if self.k_inner else self.square

    @property
    def base_columns(self) -> int:
        """A base block's extent along the stored inner axis."""
        return self.base_k if self.k_inner else self.base_r

    @property
    def step_columns(self) -> int:
        """Base blocks of a chunk along the stored inner axis."""
        return self.step_k if self.k_inner else self.step_r

    @property
    def apart(self) -> bool:
        """Whether each base block along the inner axis is an NZ matrix of its own.

        A block that starts inside a C0 piece could not be loaded from a common one.
        """
        return self.step_columns > 1 and self.base_columns % self.dtype.c0 != 0

    def has_vector(self, r: int) -> bool:
        """Whether a chunk of `r` rows ends in a base block of one row that GEMV must read as ND."""
        return self.is_a and self.k_inner and r % self.base_r == 1

    def chunk(self, r: int, k: int) -> Chunk:
        """Return the chunk of `r` by `k` elements."""
        return Chunk(r, k, int(self.has_vector(r)))

    def pitch_rows(self, chunk: Chunk) -> int:
        """Rows from one L1 column of C0 elements to the next."""
        if self.k_inner:
            return int(align_up(max(chunk.r - chunk.vector_rows, 1), self.row_alignment))
        # The last base block is read in whole squares, which may reach past its own rows.
        last = align_up(self.base_k, self.square)
        return int(align_up((self.step_k - 1) * self.base_k + last, self.row_alignment))

    def matrix_columns(self) -> int:
        """Columns of one NZ matrix in L1, whole C0 pieces."""
        blocks = 1 if self.apart else self.step_columns
        return int(align_up(blocks * self.base_columns, self.dtype.c0))

    def matrix_bytes(self, chunk: Chunk) -> int:
        """Bytes of one NZ matrix in L1; none where the chunk is one vector."""
        if self.k_inner and chunk.r == chunk.vector_rows:
            return 0
        return self.pitch_rows(chunk) * self.matrix_columns() * self.dtype.size_bytes

    @property
    def matrices(self) -> int:
        """NZ matrices of a chunk."""
        return self.step_columns if self.apart else 1

    @property
    def vector_bytes(self) -> int:
        """Bytes of the row that travels apart, for one NZ matrix's columns."""
        return self.matrix_columns() * self.dtype.size_bytes

    def buffer_bytes(self, core_r: int) -> int:
        """Bytes of one L1 buffer for a core with `core_r` rows of r.

        Whole fractals, so that moving a vector's last fractal stays inside.
        """
        full = Chunk(min(self.step_r * self.base_r, align_up(core_r, FRACTAL_ROWS)), 0, 0)
        rows = align_up(full.r, FRACTAL_ROWS if self.k_inner else 1)
        padded = self.matrices * self.matrix_bytes(Chunk(rows, 0, 0))
        return int(align_up(padded, FRACTAL_BYTES))

    # --- global memory to L1

    def load(self, b: Builder, source: Expr, target: Expr, chunk: Chunk) -> None:
        """Issue the transfers of one chunk: `source` in global memory, `target` in L1, bytes."""
        rows = chunk.r - chunk.vector_rows if self.k_inner else chunk.k
        columns = chunk.k if self.k_inner else chunk.r
        size = self.dtype.size_bytes
        width = self.base_columns if self.apart else columns
        for index, length in b.split("block", columns, width):
            at = source + index * (width * size)
            if rows:
                into = target + index * self.matrix_bytes(chunk)
                self._load_rows(b, at, into, (rows, length), self.pitch_rows(chunk))
            if chunk.vector_rows:
                row = at + rows * self.pitch * size
                self._load_rows(b, row, self._vector_at(target, chunk, index), (1, length), 1)

    def _load_rows(
        self, b: Builder, source: Expr, target: Expr, shape: tuple[int, int], pitch_rows: int
    ) -> None:
        rows, columns = shape
        nd2nz = partial(
            CopyGmToCbufMultiNd2Nz, dtype=self.dtype, d_value=columns, dst_nz_c0_stride=pitch_rows
        )
        if rows == 1 or self.pitch > ND2NZ_PITCH_LIMIT:
            with b.loop("row", rows) as row:
                at = source + row * (self.pitch * self.dtype.size_bytes)
                distance = min(self.pitch, ND2NZ_PITCH_LIMIT)
                template = nd2nz(n_value=1, src_d_value=distance)
                b.issue(template, target + row * DATA_BLOCK_BYTES, at)
        else:
            b.issue(nd2nz(n_value=rows, src_d_value=self.pitch), target, source)

    def _vector_at(self, target: Expr, chunk: Chunk, index: Int) -> Expr:
        blocks = Expr.of(index) * self.vector_bytes if self.apart else Expr(0)
        return target + self.matrices * self.matrix_bytes(chunk) + blocks

    # --- L1 to L0

    def move(
        self, b: Builder, buffer: Expr, slot: Expr, block: tuple[Expr, Expr], tile: "Tile"
    ) -> None:
        """Issue the loads of one base block: `block` is (r, k) in base blocks of the chunk."""
        r, k = block
        size = self.dtype.size_bytes
        if self.is_a and self.k_inner and tile.r == 1:
            offset = k * (self.vector_bytes if self.apart else self.base_k * size)
            start = self._vector_at(buffer, tile.chunk, 0) + offset
            b.issue(LoadCbufToCa(repeat=ceil_div(tile.k * size, FRACTAL_BYTES)), slot, start)
            return
        pitch = self.pitch_rows(tile.chunk)
        row, column = (r * self.base_r, k) if self.k_inner else (k * self.base_k, r)
        if self.apart:
            across = column * self.matrix_bytes(tile.chunk)
        else:
            across = column * (self.base_columns * pitch * size)
        start = buffer + across + row * DATA_BLOCK_BYTES
        (self._move_fractals if self.k_inner else self._move_squares)(b, start, slot, tile, pitch)

    def _move_fractals(self, b: Builder, start: Expr, slot: Expr, tile: "Tile", pitch: int) -> None:
        r, k = ceil_div(tile.r, FRACTAL_ROWS), ceil_div(tile.k, self.dtype.c0)
        down = pitch // FRACTAL_ROWS
        to_r, to_k = (k, 1) if self.is_a else (1, r)
        template = LoadCbufToCa if self.is_a else LoadCbufToCb
        if not self.is_a and (down == r or k == 1):
            b.issue(template(repeat=r * k), slot, start)
            return
        along_r = k <= r
        (count, step, to), (outer, outer_step, outer_to) = (
            ((r, 1, to_r), (k, down, to_k)) if along_r else ((k, down, to_k), (r, 1, to_r))
        )
        with b.loop("fractal", outer) as i:
            b.issue(
                template(repeat=count, src_stride=step, dst_gap=to - 1),
                slot + i * (outer_to * FRACTAL_BYTES),
                start + i * (outer_step * FRACTAL_BYTES),
            )

    def _move_squares(self, b: Builder, start: Expr, slot: Expr, tile: "Tile", pitch: int) -> None:
        fractals_r, k = ceil_div(tile.r, FRACTAL_ROWS), ceil_div(tile.k, self.dtype.c0)
        r, halves = ceil_div(tile.r, self.square), self.square // FRACTAL_ROWS
        across = pitch // self.square
        square_bytes = self.square * DATA_BLOCK_BYTES
        to_r, to_k = (halves * k, 1) if self.is_a else (halves, fractals_r)
        second = k if self.is_a else 1
        template = partial(
            LoadCbufToCaTranspose if self.is_a else LoadCbufToCbTranspose,
            dtype=self.dtype,
            dst_frac_gap=second - 1 if halves > 1 else 0,
        )
        # B with a half-used last square: walking K outermost lets the next row of fractals
        # overwrite what the unused half left behind.
        along_r = k <= r or (not self.is_a and fractals_r % halves != 0)
        (count, step, to), (outer, outer_step, outer_to) = (
            ((r, across, to_r), (k, 1, to_k)) if along_r else ((k, 1, to_k), (r, across, to_r))
        )
        with b.loop("square", outer) as i:
            b.issue(
                template(repeat=count, src_stride=step, dst_gap=to - 1),
                slot + i * (outer_to * FRACTAL_BYTES),
                start + i * (outer_step * square_bytes),
            )


@dataclass(frozen=True, slots=True)
class Tile:
    """A base block that is loaded into L0: its extents, and the chunk that it lies in."""

    r: int
    k: int
    chunk: Chunk
