"""Image to column of architecture 3510: L0A holds NZ, and a register says how far columns lie."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH
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
from cubecore.isa.declare.registers import Load3dRepeat, Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l0_cost
from cubecore.isa.mte.load3d import UNCERTAIN, Img2col
from cubecore.layouts import Offsets
from cubecore.units import FRACTAL_ROWS, ceil_div

_TYPES = (
    *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "hifloat8", "float16", "bfloat16", "int16"),
    *("uint16", "int32", "uint32", "float32"),
)


@parameters
class _Img2col3510(Img2col):
    """`Img2col` with parts of K dst_stride fractals apart, as set_l3d_rpt_v2 said; it must have.

    Elements of 8 bits may be transposed too. L1 begins nowhere anew: 3510 has no set_l3d_size.
    """

    transposed_bits: ClassVar[tuple[int, ...]] = (8, 16, 32)

    @property
    def pitch(self) -> int:
        """Fractals from one part of K to the next; 0 before it is set."""
        return 0 if self.repetition is None else self.repetition.dst_stride

    def unmet(self, registers: Registers) -> list[Violation]:
        """A map, and how far parts of K lie apart."""
        violations = super().unmet(registers)
        if not self.pitch:
            violations.append(
                Violation(self.name, "follow a set_l3d_rpt_v2 with a dst_stride", "none")
            )
        return violations

    def offsets_dst(self) -> Offsets:
        """Shape as the source's; fractals of a part of K, C0 wide, follow each other."""
        rows, columns = self.window_axis(along_k=False), self.window_axis(along_k=True)
        i, j = rows.at[:, None], columns.at
        k, across = (i, j) if self.turned else (j, i)
        c0 = self.dtype.c0
        fractal = k // c0 * self.pitch + across // FRACTAL_ROWS
        return np.asarray(
            fractal * (FRACTAL_ROWS * c0) + across % FRACTAL_ROWS * c0 + k % c0, np.intp
        )

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Parts of K keep apart."""
        violations = super().preconditions(chip)
        if violations or self.feature is None or not self.pitch:
            return violations
        fractals = ceil_div(self.window_axis(along_k=self.turned).extent, FRACTAL_ROWS)
        if fractals <= self.pitch:
            return []
        need = f"follow a set_l3d_rpt_v2 with a dst_stride of {fractals} or more"
        return [Violation(self.name, need, str(self.pitch))]


_UNCERTAIN = (
    *UNCERTAIN,
    "transposed, parts of K are those of the transpose, in NZ: the page shows figures only",
)


@instruction(
    "img2colv2_cbuf_to_ca_v2",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0a"},
    source="asc-devkit, asc_copy_l12l0a (3510), 3D form; LoadData (3D), SetLoadDataRepeat",
    uncertain=_UNCERTAIN,
    archs=ARCH,
    copies=True,
)
class Img2colv2CbufToCaV2(_Img2col3510):
    """Expand a feature map from L1 to L0A, in NZ; with transpose, the window's transpose in NZ."""

    transposes = False
    dst = write(Mem.L0A, "row column")
    src = read(Mem.L1, "row column")
    dtype: ElementType = types("element type", *_TYPES)

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "img2colv2_cbuf_to_cb_v2",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b"},
    source="asc-devkit, asc_copy_l12l0b (3510), 3D form; LoadData (3D), SetLoadDataRepeat",
    uncertain=_UNCERTAIN,
    archs=ARCH,
    copies=True,
)
class Img2colv2CbufToCbV2(_Img2col3510):
    """Expand a feature map from L1 to L0B, in ZN: rows of the window are K of the matmul.

    transpose changes nothing: on this way every fractal is transposed.
    """

    transposes = True
    dst = write(Mem.L0B, "row column")
    src = read(Mem.L1, "row column")
    dtype: ElementType = types("element type", *_TYPES)

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))


@instruction(
    "set_l3d_rpt_v2",
    Pipe.S,
    names={"c_api": "asc_set_l13d_rpt", "cpp": "SetLoadDataRepeat"},
    source="asc-devkit, asc_set_l13d_rpt and SetLoadDataRepeat (3510)",
    uncertain=(
        "dst_stride is the basic API's; of the C API's word its page calls these bits reserved",
    ),
    archs=ARCH,
)
class SetL3dRptV2(Instruction):
    """Set how load3d repeats its window, and how far apart parts of K lie in L0."""

    rpt_stride: int = param(0, 65535, "16 rows, or 32 B of columns, between windows", default=0)
    rpt_time: int = param(0, 255, "windows", default=1)
    rpt_mode: int = param(0, 1, "the axis: 0 is M, 1 is K", default=0)
    dst_stride: int = param(0, 65535, "fractals between parts of K in L0", default=0)

    def apply(self, registers: Registers) -> Registers:
        """Keep them."""
        repeat = Load3dRepeat(self.rpt_stride, self.rpt_time, bool(self.rpt_mode), self.dst_stride)
        return replace(registers, load3d_repeat=repeat)
