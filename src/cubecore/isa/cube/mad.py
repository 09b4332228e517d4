"""The Cube: BiasTable loads and `mad`."""

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
from cubecore.chips.products import (
    BIAS_TABLE_SOURCE_ARCHS,
    HALF_SUM_ARCHS,
    L0A_NZ_ARCHS,
    UNIT_FLAG_ARCHS,
    combination,
    combinations,
)
from cubecore.dtypes import FLOAT32, INT4, ElementType
from cubecore.errors import Violation
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.archs import NO_BIAS_COPY, ON_X90_ALONE, Kirin
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    choice,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.layouts import Offsets
from cubecore.numerics import (
    HF32_ROUNDINGS,
    HF32_SHORT_ROUNDINGS,
    accumulate_product,
    round_hf32,
)
from cubecore.numerics.codes import numbers
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up, ceil_div

_INPUTS = (
    *("float16", "bfloat16", "float32", "int8", "int4"),
    *("float8_e4m3fn", "float8_e5m2", "hifloat8"),
)


@instruction(
    "copy_cbuf_to_bt",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12bt", "cpp": "DataCopy(C2)"},
    source="asc-devkit, asc_copy_l12bt (2201, 3510)",
    archs=("2201", "3510"),
    uncertain=(
        "with conv_control the run's length and gap at the source count float16 blocks: inferred",
    ),
    kirin=Kirin(("int32", "float16"), ON_X90_ALONE, NO_BIAS_COPY),
)
class CopyCbufToBt(Instruction):
    """Copy bias values from L1 to BiasTable, converting float16 to float32 on request.

    Values, not bytes: an uninitialised value travels. With conv_control each 32 B block of the
    source fills 64 B of BiasTable.
    """

    propagates = True
    signature = ("dst", "src", "conv_control", "n_burst", "len_burst", "source_gap", "dst_gap")
    size_unit = DATA_BLOCK_BYTES
    dst = write(Mem.BT, "run value", "dst_type")
    src = read(Mem.L1, "run value", "src_type")
    src_type: ElementType = types("type in L1", "float32", "int32", "float16")
    n_burst: int = param(1, 4095, "runs", default=1)
    len_burst: int = param(1, 65535, "length of a run, 32 B blocks of the source")
    source_gap: int = param(0, 65535, "gap between runs in L1, 32 B blocks", default=0)
    dst_gap: int = param(0, 65535, "gap between runs in BiasTable, 32 B blocks", default=0)
    conv_control: bool = param(0, 1, "convert float16 to float32", default=False)

    @property
    def dst_type(self) -> ElementType:
        """The type in BiasTable."""
        return FLOAT32 if self.conv_control else self.src_type

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, values of a run]."""
        return self._runs(self.src_type.c0, self.len_burst + self.source_gap)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        blocks = self.len_burst * (2 if self.conv_control else 1)
        return self._runs(self.dst_type.c0, blocks + self.dst_gap)

    def _runs(self, c0: int, pitch_blocks: int) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp) * (pitch_blocks * c0)
        return starts[:, None] + np.arange(self.len_burst * self.src_type.c0, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Widening float16 is exact."""
        return {"dst": inputs["src"].astype(self.dst_type.numpy)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Only float16 is converted, and always where sums are float32."""
        converts = self.src_type.name == "float16" and chip.arch not in HALF_SUM_ARCHS
        if self.conv_control == converts:
            return []
        need, got = "be set for float16 and only for it", f"for {self.src_type}"
        if chip.arch in HALF_SUM_ARCHS:
            need = f"be off on {chip.name}"
        subject = f"{self.name}.conv_control"
        return [Violation(subject, need, f"{int(self.conv_control)} {got}")]

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst * DATA_BLOCK_BYTES

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to BiasTable link."""
        return InstructionCost(math.ceil(costs.l1_to_bt_cycles(chip, self.size_bytes)))


@instruction(
    "mad",
    Pipe.M,
    since="m100",
    names={"c_api": "asc_mmad", "cpp": "Mmad"},
    variants={
        "asc_mmad_s4": {"a_type": INT4, "b_type": INT4},
        "Mmad(C2)": {"bias_in_c2": True, "c_matrix_init_val": False},
        "Mmad(CO1)": {"bias_in_l0c": True, "c_matrix_init_val": False},
    },
    source="Mmad, tables 2 to 5 and constraints; asc-devkit, asc_mmad, UnitFlag, HF32, K "
    "direction alignment and boundary values of Mmad (2201)",
    uncertain=(
        "the order in which float products are summed is not documented",
        "HF32 keeps 11 bits of mantissa on arch 2201, subnormal numbers included: the page shows "
        "it in a figure only; on 3510 it says 10",
        "an int32 sum outside its range saturates: documented for the product, inferred with bias",
        "a bias in CO1 is a tile of its own that C starts from, laid out as C: the page says where "
        "it lies and no more",
        "the unit flag is not for accumulation in L0C, says Mmad, and has a sum's earlier mads "
        "carry 2: a sum over K into one tile is taken as meant by the second",
        "feat_offset, smask_offset and is_weight_offset of the C API's longer form do nothing: "
        "reserved, or without a word on their effect",
        "hifloat8 operands are what their pointers say: the page of asc_enable_hif8 has 8-bit data "
        "converted in its mode, and not whether that is needed, too",
        "Kirin: a half sum is rounded once for each mad and may become infinite; Kirin 9030 takes "
        "no bias (table of products), though table 6 names a half one",
    ),
    archs=("2201", "3510", "3003", "3113"),
)
class Mad(CubeProduct):
    """Multiply a tile of L0A by a tile of L0B into a tile of L0C.

    c[m, n] = start + sum over k of a[m, k] * b[k, n]; start is 0 (c_matrix_init_val), the tile's
    old value, the bias of column n from BiasTable (c_matrix_source; bias_in_c2 where it is an
    operand), or another tile of L0C (bias_in_l0c). m, k or n equal to 0: nothing happens. Padding
    of the last fractals of a and b never reaches the result, and lanes of c beyond m and n keep
    what they held. m equal to 1 is GEMV: a is read from L0A as k consecutive elements, not as ZZ.
    Architecture 3510 holds a as NZ: its fractals column by column.

    float32 has fractals of 16 x 8 in L0A and 8 x 16 in L0B. A transposing load makes them in pairs,
    16 of K at a time; k_direction_align tells where the next row of fractals of a starts after such
    loads. Only fractals with some of the k columns are read either way. With hf32 float32 inputs
    are rounded to HF32 first; sums and results stay float32.

    With unit_flag, `mad` and fixpipe synchronise through one hardware flag per 512 B of L0C; no
    set_flag or wait_flag is needed. With 2 or 3 `mad` waits until the flag of a fractal is down,
    and with 3 it raises it when the fractal is written; fixpipe waits until it is up, and with 3
    takes it down when the fractal is read. So a sum over K issues 2, 2, ..., 3 and one fixpipe with
    3. Values are the same with and without it.
    """

    signature = (
        *("c", "a", "b", "m", "k", "n"),
        *("unit_flag", "k_direction_align", "c_matrix_source", "c_matrix_init_val"),
    )
    signatures = (
        (
            *("c", "a", "b", "m", "k", "n", "_feat_offset", "_smask_offset", "unit_flag"),
            *("k_direction_align", "_is_weight_offset", "c_matrix_source", "c_matrix_init_val"),
        ),
    )
    orders = MappingProxyType(
        {
            f"Mmad({position})": (
                *("c", "a", "b", start, "m", "k", "n", "unit_flag", "k_direction_align"),
            )
            for position, start in (("C2", "bias"), ("CO1", "start"))
        }
    )
    by_arch = MappingProxyType(
        {
            "3510": (
                (
                    *("c", "a", "b", "m", "k", "n", "unit_flag", "disable_gemv"),
                    *("c_matrix_source", "c_matrix_init_val"),
                ),
                MappingProxyType({"a_layout": "NZ"}),
            )
        }
    )
    overlap = "whole"  # a bias in CO1 at c itself is the accumulation
    needed = MappingProxyType({"start": "Mmad with a bias operand in CO1 says where"})
    start = read(Mem.L0C, "m n", "c_type", layout="NZ", align_bytes=128)
    a_type: ElementType = types("left matrix", *_INPUTS)
    b_type: ElementType = types("right matrix", *_INPUTS)
    c_type: ElementType = types("result matrix", "float32", "int32", "float16")
    bias_in_c2: bool = param(
        0, 1, "start from a row of BiasTable that is an operand (Mmad with a bias)", default=False
    )
    bias_in_l0c: bool = param(
        0, 1, "start from a tile of L0C that is an operand (Mmad with a bias)", default=False
    )
    k_direction_align: bool = param(
        0, 1, "float32: a row of fractals of L0A is a multiple of 16 long, not of 8", default=False
    )
    a_layout: str = choice(
        "how L0A holds a: ZZ, or NZ on architecture 3510", "ZZ", "NZ", default="ZZ"
    )
    disable_gemv: bool = param(
        0, 1, "architecture 3510: one row is read as NZ, not as a vector", default=False
    )
    hf32: str = choice(
        "rounding of float32 inputs, from set_hf32_mode; to 10 bits on architecture 3510",
        "off",
        *HF32_ROUNDINGS,
        *HF32_SHORT_ROUNDINGS,
        default="off",
    )

    @property
    def accumulates(self) -> bool:
        """True if the old value of c is read."""
        return super().accumulates and not (self.bias_in_c2 or self.bias_in_l0c)

    @property
    def starts_from_bias(self) -> bool:
        """True if the bias operand is read."""
        return (self.c_matrix_source or self.bias_in_c2) and not self.c_matrix_init_val

    @property
    def starts_from_tile(self) -> bool:
        """True if the start operand is read."""
        row = self.c_matrix_source or self.bias_in_c2
        return self.bias_in_l0c and not (self.c_matrix_init_val or row)

    @property
    def takes_registers(self) -> bool:
        """HF32 is for float32 alone."""
        return self.a_type is FLOAT32

    def resolved(self, registers: Registers) -> Self:
        """Take the rounding of float32 inputs from the HF32 registers."""
        if not self.takes_registers or registers.hf32 == "off":
            return self
        short = HF32_SHORT_ROUNDINGS[HF32_ROUNDINGS.index(registers.hf32)]
        return replace(self, hf32=short if self.a_layout == "NZ" else registers.hf32)

    @property
    def is_gemv(self) -> bool:
        """True if a is read as a vector."""
        return self.m == 1 and not self.disable_gemv

    @property
    def a_row_fractals(self) -> int:
        """Fractals of L0A from one row of fractals to the next."""
        fractals: int = ceil_div(self.k, self.a_type.c0)
        pairs = self.k_direction_align and self.a_type is FLOAT32
        return align_up(fractals, FRACTAL_ROWS // FLOAT32.c0) if pairs else fractals

    def operands(self) -> tuple[Operand, ...]:
        """C is only written unless it accumulates; of bias and start the one that is the start.

        C starts at a multiple of 256 elements (Mmad, table 2).
        """
        started = "bias" if self.starts_from_bias else "start" if self.starts_from_tile else ""
        return _mad_operands(self.accumulates, started, self.c_type.bits * 32)

    def offsets_a(self) -> Offsets:
        """Shape [m, k]."""
        if self.is_gemv:
            return np.arange(0 if self.empty else self.k, dtype=np.intp)[None, :]
        c0 = self.a_type.c0
        if self.a_layout == "NZ":
            return self.laid_out(layouts.NZ, self.m, self.k, layouts.l0a_fractal(c0))
        padded = self.a_row_fractals * c0
        return self.laid_out(layouts.ZZ, self.m, padded, layouts.l0a_fractal(c0))[:, : self.k]

    def offsets_b(self) -> Offsets:
        """Shape [k, n]."""
        return self.laid_out(layouts.ZN, self.k, self.n, layouts.l0b_fractal(self.b_type.c0))

    def offsets_start(self) -> Offsets:
        """Shape [m, n]."""
        return self.offsets_c()

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """See `cubecore.numerics.accumulate_product`."""
        if self.empty:
            return {"c": np.zeros((0, 0), self.c_type.numpy)}
        if self.accumulates:
            start = inputs["c"]
        elif self.starts_from_bias:
            start = inputs["bias"][..., None, :]
        elif self.starts_from_tile:
            start = inputs["start"]
        else:
            start = np.zeros((1, 1), self.c_type.numpy)
        a, b = numbers(inputs["a"], self.a_type), numbers(inputs["b"], self.b_type)
        if self.hf32 != "off":
            a, b = round_hf32(a, self.hf32), round_hf32(b, self.hf32)
        return {"c": accumulate_product(start, a, b, self.c_type)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Types, bias and unit flag are what the chip has; HF32 is for float32."""
        row = combination(chip.arch, self.a_type.name, self.b_type.name)
        if row is None or row.c != self.c_type.name:
            allowed = ", ".join(f"{r.a} x {r.b} -> {r.c}" for r in combinations(chip.arch))
            got = f"{self.a_type} x {self.b_type} -> {self.c_type}"
            return [Violation("mad", f"multiply one of {allowed} on {chip.name}", got)]
        if self.c_matrix_source and chip.arch not in BIAS_TABLE_SOURCE_ARCHS:
            return [Violation("mad.c_matrix_source", f"be off on {chip.name}", "on")]
        if (self.starts_from_bias or self.starts_from_tile) and not row.bias:
            inputs = f"{self.a_type} x {self.b_type}"
            return [Violation("mad", f"take no bias for {inputs} ({row.bias_source})", "one")]
        layout = "NZ" if chip.arch in L0A_NZ_ARCHS else "ZZ"
        if self.a_layout != layout:
            return [Violation("mad.a_layout", f"be {layout} on {chip.name}", self.a_layout)]
        if self.disable_gemv and layout != "NZ":
            return [Violation("mad.disable_gemv", f"be off on {chip.name}", "on")]
        if self.unit_flag and chip.arch not in UNIT_FLAG_ARCHS:
            return [Violation("mad.unit_flag", f"be 0 on {chip.name}", str(self.unit_flag))]
        if self.hf32 != "off" and self.a_type is not FLOAT32:
            return [Violation("mad.hf32", f"be off for {self.a_type}", self.hf32)]
        roundings = HF32_SHORT_ROUNDINGS if layout == "NZ" else HF32_ROUNDINGS
        if self.hf32 not in {"off", *roundings}:
            need = f"be off or {' or '.join(roundings)} on {chip.name}"
            return [Violation("mad.hf32", need, self.hf32)]
        return []

    def cost(self, chip: Chip) -> InstructionCost:
        """Whole fractals, and a head that is longer when the Cube had to wait."""
        if self.empty:
            return InstructionCost(0)
        hf32 = self.hf32 != "off"
        cycles = costs.mad_cycles(chip, self.a_type, self.m, self.n, self.k, hf32=hf32)
        queued = chip.require("mad_queued_cycles", "timing")
        head = chip.require("mad_head_cycles", "timing")
        return InstructionCost(math.ceil(cycles) + queued, idle_head=head - queued)


_C, _A, _B, _BIAS, _START = Mad.declared
_STARTS = {"bias": (_BIAS,), "start": (_START,), "": ()}


@lru_cache
def _mad_operands(accumulates: bool, started: str, align_bytes: int) -> tuple[Operand, ...]:
    access = OperandAccess.UPDATE if accumulates else OperandAccess.WRITE
    c = replace(_C, access=access, align_bytes=align_bytes)
    return (c, _A, _B, *_STARTS[started])
