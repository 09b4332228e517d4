"""2D loads of architecture 3510 from L1 to L0: a window of an NZ matrix, as it is or transposed."""

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import FRACTAL, ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l0_cost
from cubecore.layouts import Offsets
from cubecore.units import FRACTAL_BYTES, FRACTAL_ROWS

_TURNED_TYPES = (
    *("int4", "float4_e2m1fn", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"),
    *("float16", "bfloat16", "int16", "uint16", "float32", "int32", "uint32", "hifloat8"),
    "float4_e1m2",
)
_ORDER = "transposed, the parts go to NZ as Mmad reads it: the page shows a figure only"


@parameters
class _Window(Instruction):
    """m_step x k_step fractals of 512 B of an M x K matrix in NZ, from (m, k) start on; 0: nothing.

    Strides lie between the fractals of two columns of C0, head to head.
    """

    signature = (
        *("dst", "src", "m_start_position", "k_start_position", "m_step", "k_step"),
        *("src_stride", "dst_stride"),
    )
    m_start_position: int = param(0, 65535, "first row of fractals: 16 rows each", default=0)
    k_start_position: int = param(0, 65535, "first column of fractals: 32 B each", default=0)
    m_step: int = param(0, 255, "rows of fractals")
    k_step: int = param(0, 255, "columns of fractals")
    src_stride: int = param(-32768, 32767, "512 B from one column of L1's fractals to the next")
    dst_stride: int = param(0, 65535, "512 B from one K of L0's fractals to the next")

    def _grid(self) -> tuple[Offsets, Offsets]:
        """Return the window's places (column of fractals, row of fractals)."""
        k, m = np.arange(self.k_step, dtype=np.intp), np.arange(self.m_step, dtype=np.intp)
        return k[:, None], m[None, :]

    def _fractal(self, k: Offsets, m: Offsets) -> Offsets:
        """Return which fractal of L1 is at a place of the window."""
        start = self.k_start_position * abs(self.src_stride) + self.m_start_position
        return start + k * self.src_stride + m

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A walk downwards stays at or above the source's address."""
        lowest = int(self._fractal(np.intp(max(self.k_step, 1) - 1), np.intp(0)))  # type: ignore[arg-type]
        if lowest >= 0:
            return []
        return [Violation(f"{self.name}.src_stride", "stay at or above the source", str(lowest))]

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.m_step * self.k_step * FRACTAL_BYTES


@parameters
class _Straight(_Window):
    pointers = _TURNED_TYPES
    block: ElementType = types("the unit of the move", "fractal", default=FRACTAL)

    def offsets_src(self) -> Offsets:
        """Shape [k_step, m_step]."""
        return self._fractal(*self._grid())

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        k, m = self._grid()
        return k * self.dst_stride + m


@parameters
class _Turned(_Window):
    """The window transposed: what was a column of L1's matrix is a row of L0's.

    The rows of L1 are cut into C0 anew, dst_stride fractals from one piece to the next: squares of
    16 x 16 of 16 bits, of 32 x 32 of 8 bits (m_step is even), of 64 x 64 of 4 bits (m_step is a
    multiple of 4), of 16 x 16 of 32 bits (k_step is even).
    """

    dtype: ElementType = types("element type", *_TURNED_TYPES)

    def _squares(self) -> tuple[Offsets, Offsets]:
        """Return (row, column) of each element of the window, [squares, edge, edge].

        Of a square the middle axis runs along L1's columns, the last one along its rows.
        """
        # Squares of whole fractals: 16 or C0, whichever is more, so that a transposed square is
        # made of whole fractals again. They are numbered down the columns first.
        edge = max(FRACTAL_ROWS, self.dtype.c0)
        down = self.m_step * FRACTAL_ROWS // edge
        across = self.k_step * self.dtype.c0 // edge
        number = np.arange(down * across, dtype=np.intp)[:, None, None]
        column, row = np.arange(edge, dtype=np.intp)[:, None], np.arange(edge, dtype=np.intp)
        high = max(down, 1)
        return number % high * edge + row, number // high * edge + column

    def offsets_src(self) -> Offsets:
        """Shape [squares, edge, edge]."""
        row, column = self._squares()
        c0 = self.dtype.c0
        fractal = self._fractal(column // c0, row // FRACTAL_ROWS)
        return fractal * (FRACTAL_ROWS * c0) + row % FRACTAL_ROWS * c0 + column % c0

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        row, column = self._squares()
        c0 = self.dtype.c0
        fractal = row // c0 * self.dst_stride + column // FRACTAL_ROWS
        return fractal * (FRACTAL_ROWS * c0) + column % FRACTAL_ROWS * c0 + row % c0

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Whole squares."""
        edge = max(FRACTAL_ROWS, self.dtype.c0)
        steps = (("m_step", edge // FRACTAL_ROWS), ("k_step", edge // self.dtype.c0))
        violations = [
            Violation(
                f"{self.name}.{name}", f"be a multiple of {unit} for {self.dtype}", str(value)
            )
            for name, unit in steps
            if (value := getattr(self, name)) % unit
        ]
        return violations + super().preconditions(chip)


@instruction(
    "load_cbuf_to_ca_v2",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0a", "cpp": "LoadData(LoadData2DParamsV2)"},
    source="asc-devkit, asc_copy_l12l0a (3510) and LoadData (2D V2)",
    archs=("3510",),
    copies=True,
)
class LoadCbufToCaV2(_Straight):
    """Move a window of fractals from L1 to L0A, each unchanged."""

    dst = write(Mem.L0A, "column row", "block")
    src = read(Mem.L1, "column row", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_cb_v2",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b", "cpp": "LoadData(LoadData2DParamsV2, B2)"},
    source="asc-devkit, asc_copy_l12l0b (3510) and LoadData (2D V2)",
    archs=("3510",),
    copies=True,
)
class LoadCbufToCbV2(_Straight):
    """Move a window of fractals from L1 to L0B, each unchanged."""

    dst = write(Mem.L0B, "column row", "block")
    src = read(Mem.L1, "column row", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_ca_v2_transpose",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0a_transpose", "cpp": "LoadData(ifTranspose)"},
    source="asc-devkit, asc_copy_l12l0a (3510) and LoadData (2D V2)",
    uncertain=(_ORDER,),
    archs=("3510",),
    copies=True,
)
class LoadCbufToCaV2Transpose(_Turned):
    """Transpose a window of fractals on the way from L1 to L0A."""

    dst = write(Mem.L0A, "square column row")
    src = read(Mem.L1, "square column row")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_cb_v2_transpose",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b_transpose", "cpp": "LoadData(ifTranspose, B2)"},
    source="asc-devkit, asc_copy_l12l0b (3510) and LoadData (2D V2)",
    uncertain=(_ORDER,),
    archs=("3510",),
    copies=True,
)
class LoadCbufToCbV2Transpose(_Turned):
    """Transpose a window of fractals on the way from L1 to L0B."""

    dst = write(Mem.L0B, "square column row")
    src = read(Mem.L1, "square column row")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))
