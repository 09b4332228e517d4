"""A product with MX scales on architecture 3510: C = (sa x A) (sb x B^T), one block of C a core.

A is [m, k] and B [n, k], row-major, 4-bit elements two to a byte. Their scales, one for each 32 of
K, are packed as L1 wants them (`pack_scales`). It is the plain kernel: one buffer of everything,
one block of K after the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.dtypes import FLOAT32, INT8, ElementType
from cubecore.errors import RequestError, Violation
from cubecore.isa.expr import Expr
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.moves import CopyGmToCbuf, CopyGmToCbufMultiNd2Nz, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.mx import SHARED, LoadCbufToCaMx, LoadCbufToCbMx, MadMx
from cubecore.isa.product import DEPENDENT_MAD_FRACTALS
from cubecore.isa.program import Program
from cubecore.isa.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.kernels.builder import Builder
from cubecore.units import FRACTAL_BYTES, FRACTAL_ROWS, align_up, ceil_div

_K_OF_BLOCK = 2 * SHARED
"""Values of K whose scales lie in one block of 32 bytes, 16 rows of them."""
_BLOCK = 32
_TENSORS = ("a", "b", "sa", "sb", "c")


def pack_scales(scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return codes [rows, k / 32] as fractals of 16 x 2 row by row; rows padded with code 0."""
    rows, count = scales.shape
    tall, wide = int(align_up(rows, FRACTAL_ROWS)), int(align_up(count, 2))
    padded = np.zeros((tall, wide), np.uint8)
    padded[:rows, :count] = scales
    cut = padded.reshape(tall // FRACTAL_ROWS, FRACTAL_ROWS, wide // 2, 2)
    return np.ascontiguousarray(cut.transpose(0, 2, 1, 3)).reshape(-1)


@dataclass(frozen=True, kw_only=True)
class MxProblem:
    """Extents, types and the base block; k and base_k are multiples of 64, the others of 16.

    m and n may end within a block.
    """

    m: int
    n: int
    k: int
    a: ElementType
    b: ElementType
    base_m: int = 128
    base_n: int = 128
    base_k: int = 256

    def require_legal(self, chip: Chip) -> None:
        """Refuse what the kernel cannot cut, or what does not fit a core's memories.

        Raises:
            RequestError: every such value.
        """
        found = []
        if chip.arch != "3510":
            found.append(Violation("chip", "be of architecture 3510 to multiply MX", chip.name))
        for name, unit in (("k", 64), ("base_k", 64), ("base_m", 16), ("base_n", 16)):
            value = getattr(self, name)
            if value < 1 or value % unit:
                found.append(Violation(name, f"be a multiple of {unit}", str(value)))
        if not found and self.k % self.base_k:
            found.append(Violation("k", f"be a multiple of base_k {self.base_k}", str(self.k)))
        for name, rows, room in (
            ("base_m", self.base_m, chip.l0a_bytes),
            ("base_n", self.base_n, chip.l0b_bytes),
        ):
            size = self.a.bytes_of(rows * self.base_k)
            if size > room or ceil_div(size, FRACTAL_BYTES) > 255:
                need = f"leave a block of {min(room, 255 * FRACTAL_BYTES)} B at most in L0"
                found.append(Violation(name, need, f"{size} B"))
        if 4 * self.base_m * self.base_n > chip.l0c_bytes:
            need = f"leave a tile of {chip.l0c_bytes} B at most in L0C"
            found.append(Violation("base_m", need, f"{4 * self.base_m * self.base_n} B"))
        if found:
            raise RequestError(found)


def mx_launch(problem: MxProblem, chip: Chip) -> Launch:
    """Return the launch; blocks of C are dealt out to the cores in turn, row by row.

    Its tensors are a, b, sa, sb (packed) and c, float32 [m, n].

    Raises:
        RequestError: what `MxProblem.require_legal` refuses, or more blocks than the chip's cores.
    """
    problem.require_legal(chip)
    p = problem
    down, across = ceil_div(p.m, p.base_m), ceil_div(p.n, p.base_n)
    if down * across > chip.aic_count:
        need = f"make {chip.aic_count} blocks of C at most on {chip.name}"
        raise RequestError([Violation("base_m x base_n", need, str(down * across))])
    programs: dict[tuple[int, int], Program] = {}
    cores = []
    for core in range(down * across):
        m0, n0 = core // across * p.base_m, core % across * p.base_n
        shape = min(p.base_m, p.m - m0), min(p.base_n, p.n - n0)
        if shape not in programs:
            programs[shape] = _program(p, *shape)
        program = programs[shape]
        row = int(p.a.bytes_of(p.k))
        starts = (m0 * row, n0 * row, m0 * _scale_row(p), n0 * _scale_row(p), (m0 * p.n + n0) * 4)
        slots = dict(zip(program.slots, zip(_TENSORS, starts, strict=True), strict=True))
        cores.append(CoreProgram(core, program, slots))
    return Launch(_tensors(p), tuple(cores), "BASIC")


def _scale_row(p: MxProblem) -> int:
    """Bytes of one row's scales, where 16 rows share blocks."""
    return p.k // SHARED


def _tensors(p: MxProblem) -> tuple[TensorSpec, ...]:
    rows = {"a": p.m, "b": p.n}
    values = [TensorSpec(x, int(p.a.bytes_of(r * p.k))) for x, r in rows.items()]
    scales = [
        TensorSpec(f"s{x}", int(align_up(r, FRACTAL_ROWS)) * _scale_row(p)) for x, r in rows.items()
    ]
    return (*values, *scales, TensorSpec("c", 4 * p.m * p.n, output=True))


@dataclass(frozen=True)
class _Side:
    """One operand: its rows, and where its block and its scales lie in L1 and L0."""

    rows: int
    values_at: int
    scales_at: int

    @property
    def fractals(self) -> int:
        """Rows of fractals."""
        return int(ceil_div(self.rows, FRACTAL_ROWS))


_FREE, _LOADED = 0, 1


def _program(p: MxProblem, m: int, n: int) -> Program:
    """Return one core's program for a block of m x n."""
    b = Builder(f"MX block {m} x {n}")
    slots = [b.slot(name) for name in _TENSORS]
    sides = (_Side(m, 0, 262144), _Side(n, 131072, 262144 + 65536))
    b.issue(SetFlag(src="MTE1", dst="MTE2", event_id=_FREE))
    b.issue(SetFlag(src="M", dst="MTE1", event_id=_FREE))
    with b.loop("k", p.k // p.base_k) as k:
        b.issue(WaitFlag(src="MTE1", dst="MTE2", event_id=_FREE))
        for side, values, scales in zip(sides, slots[:2], slots[2:4], strict=True):
            _to_l1(b, p, side, Expr.of(values), Expr.of(scales), k)
        b.issue(SetFlag(src="MTE2", dst="MTE1", event_id=_LOADED))
        b.issue(WaitFlag(src="MTE2", dst="MTE1", event_id=_LOADED))
        b.issue(WaitFlag(src="M", dst="MTE1", event_id=_FREE))
        _to_l0(b, p, sides)
        b.issue(SetFlag(src="MTE1", dst="MTE2", event_id=_FREE))
        b.issue(SetFlag(src="MTE1", dst="M", event_id=_LOADED))
        b.issue(WaitFlag(src="MTE1", dst="M", event_id=_LOADED))
        for first in b.choose(k, "==", 0):
            mad = MadMx(a_type=p.a, b_type=p.b, m=m, k=p.base_k, n=n, c_matrix_init_val=first)
            b.issue(mad, 0, 0, 0)
        if sides[0].fractals * sides[1].fractals < DEPENDENT_MAD_FRACTALS:
            b.issue(PipeBarrier(on="M"))
        b.issue(SetFlag(src="M", dst="MTE1", event_id=_FREE))
    b.issue(WaitFlag(src="MTE1", dst="MTE2", event_id=_FREE))
    b.issue(WaitFlag(src="M", dst="MTE1", event_id=_FREE))
    b.issue(SetFlag(src="M", dst="FIX", event_id=_LOADED))
    b.issue(WaitFlag(src="M", dst="FIX", event_id=_LOADED))
    store = CopyMatrixCcToGm(
        src_type=FLOAT32,
        n_size=n,
        m_size=m,
        dst_stride=p.n,
        src_stride=sides[0].fractals * FRACTAL_ROWS,
        nz2nd_en=True,
    )
    b.issue(store, Expr.of(slots[4]), 0)
    return b.finish()


def _to_l1(b: Builder, p: MxProblem, side: _Side, values: Expr, scales: Expr, k: Expr) -> None:
    """Bring one block of K: the values as NZ, 4-bit ones as pairs; the scales' blocks as they are.

    A core's rows of scales begin at a row of fractals, since blocks are multiples of 16.
    """
    block_bytes, row_bytes = int(p.a.bytes_of(p.base_k)), int(p.a.bytes_of(p.k))
    load = CopyGmToCbufMultiNd2Nz(
        dtype=INT8,
        n_value=side.rows,
        d_value=block_bytes,
        src_d_value=row_bytes,
        dst_nz_c0_stride=side.fractals * FRACTAL_ROWS,
    )
    b.issue(load, side.values_at, values + k * block_bytes)
    blocks, all_blocks = p.base_k // _K_OF_BLOCK, p.k // _K_OF_BLOCK
    move = CopyGmToCbuf(n_burst=side.fractals, len_burst=blocks, src_gap=all_blocks - blocks)
    b.issue(move, side.scales_at, scales + k * (blocks * _BLOCK))


def _to_l0(b: Builder, p: MxProblem, sides: tuple[_Side, _Side]) -> None:
    """Fractals of NZ in L1 are NZ in L0A, and of B^T ZN in L0B; scales go beside them."""
    blocks = p.base_k // _K_OF_BLOCK
    for side, load, load_scales in zip(
        sides, (LoadCbufToCa, LoadCbufToCb), (LoadCbufToCaMx, LoadCbufToCbMx), strict=True
    ):
        columns = int(p.a.bytes_of(p.base_k)) // _BLOCK
        b.issue(load(repeat=side.fractals * columns), 0, side.values_at)
        scales = load_scales(
            dst_at=0, x_step=side.fractals, y_step=blocks, src_stride=blocks, dst_stride=blocks
        )
        b.issue(scales, side.scales_at)
