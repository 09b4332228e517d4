"""Matmuls of architecture 3510 with a scale for each 32 values of K (MX), and their loads.

Scales are float8_e8m0 and lie in memories of their own that have no addresses of their own: what
belongs to byte x of L0A or L0B lies at x / 16.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Self

import numpy as np

from cubecore import layouts
from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import DATA_BLOCK, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l0_cost
from cubecore.layouts import Offsets
from cubecore.numerics import accumulate_product, exact
from cubecore.numerics.codes import numbers
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, ceil_div

FLOAT32 = element_type("float32")
SCALE = element_type("float8_e8m0fnu")
SHARED = 32
"""Values of K with one scale."""
_BYTES_PER_SCALE_BYTE = 16
_FRACTAL_SCALES = 2
"""Scales of one row, or column, in a fractal of 16 x 2."""
_FP4, _FP8 = ("float4_e2m1fn", "float4_e1m2"), ("float8_e4m3fn", "float8_e5m2")


@parameters
class _LoadScales(Instruction):
    """Move x_step rows of y_step blocks of 32 bytes; strides count 32 bytes. A step 0: nothing.

    A block is a fractal of 16 x 2 scales. dst_at is where in the scales' memory they go: the
    address of the values divided by 16.
    """

    signature = (
        *("dst_at", "src", "x_start_pos", "y_start_pos", "x_step", "y_step"),
        *("src_stride", "dst_stride"),
    )
    pointers = (SCALE.name,)
    block: ElementType = types("the unit of the move", "datablock", default=DATA_BLOCK)
    dst_at: int = param(0, 65535, "bytes from the start of the scales' memory", multiple=32)
    x_start_pos: int = param(0, 65535, "first row", default=0)
    y_start_pos: int = param(0, 65535, "first block of a row", default=0)
    x_step: int = param(0, 255, "rows: 16 of M, or of N, each")
    y_step: int = param(0, 255, "blocks of a row: 64 of K each")
    src_stride: int = param(0, 65535, "32 B from one row to the next in L1")
    dst_stride: int = param(0, 65535, "32 B from one row to the next at the target")
    addressed: bool | None = taken("whether dst's address is known")

    def resolved(self, registers: Registers) -> Self:
        """Dst has its place when the instruction starts."""
        return replace(self, addressed=True)

    def operands(self) -> tuple[Operand, ...]:
        """Dst's place is a parameter."""
        return self.declared if self.addressed else self.declared[:1]

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """Dst's place is a parameter."""
        return (addresses[0], self.dst_at) if self.addressed else addresses

    def offsets_src(self) -> Offsets:
        """Shape [x_step, y_step]."""
        x = self.x_start_pos + np.arange(self.x_step, dtype=np.intp)[:, None]
        return x * self.src_stride + self.y_start_pos + np.arange(self.y_step, dtype=np.intp)

    def offsets_dst(self) -> Offsets:
        """Shape [x_step, y_step]."""
        x = np.arange(self.x_step, dtype=np.intp)[:, None]
        return x * self.dst_stride + np.arange(self.y_step, dtype=np.intp)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.x_step * self.y_step * DATA_BLOCK_BYTES


@instruction(
    "load_cbuf_to_ca_mx",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0a_mx", "cpp": "LoadData(LoadData2DMxParams)"},
    source="asc-devkit, asc_copy_l12l0a_mx, LoadData (MX); Cube performance (3510)",
    archs=("3510",),
    copies=True,
)
class LoadCbufToCaMx(_LoadScales):
    """Move the scales of the left matrix from L1 to L0A's scales."""

    src = read(Mem.L1, "row block", "block")
    dst = write(Mem.L0A_MX, "row block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes at the rate of scales."""
        return l0_cost(chip, costs.l1_to_l0_scale_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_cb_mx",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b_mx", "cpp": "LoadData(LoadData2DMxParams, B2)"},
    source="asc-devkit, asc_copy_l12l0b_mx, LoadData (MX); Cube performance (3510)",
    archs=("3510",),
    copies=True,
)
class LoadCbufToCbMx(_LoadScales):
    """Move the scales of the right matrix from L1 to L0B's scales."""

    src = read(Mem.L1, "row block", "block")
    dst = write(Mem.L0B_MX, "row block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes at the rate of scales."""
        return l0_cost(chip, costs.l1_to_l0_scale_cycles(chip, self.size_bytes))


@instruction(
    "mad_mx",
    Pipe.M,
    names={"c_api": "asc_mmad_mx", "cpp": "MmadMx"},
    variants={"MmadMx(C2)": {"c_matrix_source": True, "c_matrix_init_val": False}},
    source="asc-devkit, asc_mmad_mx, MmadMx and the fractals of MX scales (3510)",
    uncertain=(
        "the order in which float products are summed is not documented",
        "rows of fractals of scales follow each other without a gap: as the page's example of a "
        "load has it",
        "float4_e1m2 is multiples of a quarter up to 1.75: a comment in a host library's header "
        "says so, no page does",
    ),
    archs=("3510",),
)
class MadMx(CubeProduct):
    """Multiply a tile of L0A by a tile of L0B, both scaled, into a tile of float32 in L0C.

    c[m, n] = start + sum over k of (sa[m, k / 32] * a[m, k]) * (sb[k / 32, n] * b[k, n]). A scale
    is a power of 2, or NaN. a is NZ, b ZN. Scales of a are fractals of 16 x 2 row by row, elements
    row by row (Zz); those of b of 2 x 16 column by column, elements column by column (Nn). Start,
    limits and the unit flag are those of `mad`; k is whole pairs of scales.
    """

    signature = (
        *("c", "a", "b", "m", "k", "n", "unit_flag", "disable_gemv"),
        *("c_matrix_source", "c_matrix_init_val"),
    )
    orders = MappingProxyType(
        {"MmadMx(C2)": ("c", "a", "b", "bias", "m", "k", "n", "unit_flag", "disable_gemv")}
    )
    a = read(Mem.L0A, "m k", "a_type", layout="NZ", align_bytes=512)
    scale_a = read(Mem.L0A_MX, "m k", "scale_type")
    scale_b = read(Mem.L0B_MX, "k n", "scale_type")
    a_type: ElementType = types("left matrix", *_FP4, *_FP8)
    b_type: ElementType = types("right matrix", *_FP4, *_FP8)
    k: int = param(0, 4095, "columns of a, rows of b", multiple=2 * SHARED)
    disable_gemv: bool = param(0, 1, "one row is read as NZ, not as a vector", default=False)
    addressed: bool | None = taken("whether the scales' addresses are known: a 16th of a's and b's")

    @property
    def c_type(self) -> ElementType:
        """The result."""
        return FLOAT32

    @property
    def scale_type(self) -> ElementType:
        """The scales."""
        return SCALE

    def resolved(self, registers: Registers) -> Self:
        """The scales have a place when the instruction starts."""
        return replace(self, addressed=True)

    def operands(self) -> tuple[Operand, ...]:
        """C is only written unless it accumulates; the scales' places are no arguments."""
        wide = self.a_type.bits == 8
        return _operands(self.accumulates, self.starts_from_bias, bool(self.addressed), wide)

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """The scales lie at a 16th of a's and b's address."""
        if not self.addressed:
            return addresses
        given = addresses[: len(self.operands()) - 2]
        return (*given, *(given[at] // _BYTES_PER_SCALE_BYTE for at in (1, 2)))

    @property
    def is_gemv(self) -> bool:
        """True if a is read as a vector."""
        return self.m == 1 and not self.disable_gemv

    def offsets_a(self) -> Offsets:
        """Shape [m, k]."""
        if self.is_gemv:
            return np.arange(0 if self.empty else self.k, dtype=np.intp)[None, :]
        return self.laid_out(layouts.NZ, self.m, self.k, layouts.l0a_fractal(self.a_type.c0))

    def offsets_b(self) -> Offsets:
        """Shape [k, n]."""
        return self.laid_out(layouts.ZN, self.k, self.n, layouts.l0b_fractal(self.b_type.c0))

    def offsets_scale_a(self) -> Offsets:
        """Shape [m, scales of a row]."""
        scales = ceil_div(self.k, SHARED)
        fractal = layouts.Fractal(FRACTAL_ROWS, _FRACTAL_SCALES)
        return self.laid_out(layouts.ZZ, self.m, scales, fractal)

    def offsets_scale_b(self) -> Offsets:
        """Shape [scales of a column, n]: the transpose of a's."""
        scales = ceil_div(self.k, SHARED)
        fractal = layouts.Fractal(FRACTAL_ROWS, _FRACTAL_SCALES)
        return self.laid_out(layouts.ZZ, self.n, scales, fractal).T

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Scale exactly, then as `mad`."""
        if self.empty:
            return {"c": np.zeros((0, 0), np.float32)}
        start: Array = np.zeros((1, 1), np.float32)
        if self.accumulates:
            start = inputs["c"]
        elif self.starts_from_bias:
            start = inputs["bias"][..., None, :]
        # In float64 a value times a power of 2 is exact. Each scale serves 32 values along K: the
        # last axis of a, the one before it of b.
        scale_a, scale_b = exact(inputs["scale_a"]), exact(inputs["scale_b"])
        a = exact(numbers(inputs["a"], self.a_type))
        b = exact(numbers(inputs["b"], self.b_type))
        a = a * scale_a.repeat(SHARED, axis=-1)[..., : self.k]
        b = b * scale_b.repeat(SHARED, axis=-2)[..., : self.k, :]
        return {"c": accumulate_product(start, a, b, FLOAT32)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Both of 4 bits or both of 8."""
        if self.a_type.bits == self.b_type.bits:
            return []
        need = f"be of {self.a_type.bits} bits, as a"
        return [Violation(f"{self.name}.b_type", need, self.b_type.name)]

    def cost(self, chip: Chip) -> InstructionCost:
        """Whole fractals."""
        if self.empty:
            return InstructionCost(0)
        cycles = costs.mad_cycles(chip, self.a_type, self.m, self.n, self.k)
        queued = chip.require("mad_queued_cycles", "timing")
        head = chip.require("mad_head_cycles", "timing")
        return InstructionCost(math.ceil(cycles) + queued, idle_head=head - queued)


_C, _A, _B, _BIAS, *_SCALES = MadMx.declared
_WIDE_ALIGN = 1024


@lru_cache
def _operands(accumulates: bool, biased: bool, addressed: bool, wide: bool) -> tuple[Operand, ...]:
    """8-bit values start at multiples of 1024 B, so that their scales do at multiples of 64."""
    c = replace(_C, access=OperandAccess.UPDATE if accumulates else OperandAccess.WRITE)
    a, b = (replace(o, align_bytes=_WIDE_ALIGN) if wide else o for o in (_A, _B))
    return (c, a, b, *((_BIAS,) if biased else ()), *(_SCALES if addressed else ()))
