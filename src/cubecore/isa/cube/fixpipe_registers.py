"""Registers of fixpipe: the factor of leaky ReLU, and the repetition of NZ2ND, arch 2201."""

from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.archs import Kirin
from cubecore.isa.declare.instruction import Instruction, Pipe, instruction, param
from cubecore.isa.declare.registers import Registers

_TOP = 0xFF
"""The exponent of infinities and NaN."""


def is_ordinary(bits: int) -> bool:
    """True if the lower 32 bits are those of a float32 that is an ordinary number or 0."""
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    return exponent != _TOP and (exponent != 0 or not fraction)


def with_nz2nd(
    registers: Registers, nd_num: int, src_nd_stride: int, dst_nd_stride: int
) -> Registers:
    """Return registers with how many matrices an NZ2ND fixpipe writes, and their distances."""
    return replace(
        registers, nd_num=nd_num, src_nd_stride=src_nd_stride, dst_nd_stride=dst_nd_stride
    )


@instruction(
    "set_lrelu_alpha",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_lrelu_alpha"},
    source="asc-devkit, asc_set_l0c2gm_lrelu_alpha (2201, 3510)",
    archs=("2201", "3510"),
)
class SetLreluAlpha(Instruction):
    """Set the factor of fixpipe's leaky ReLU; a half one is widened, which is exact."""

    alpha: int = param(0, 2**32 - 1, "the factor, bits of a float32", bits_of="float32")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """An ordinary number or 0, as the parameters of ReLU are (asc-devkit, relu_pre)."""
        if is_ordinary(self.alpha):
            return []
        need = "be no infinity, NaN or subnormal number"
        return [Violation(f"{self.name}.alpha", need, f"{self.alpha:#010x}")]

    def apply(self, registers: Registers) -> Registers:
        """Keep the factor."""
        return replace(registers, lrelu_alpha=self.alpha)


@instruction(
    "set_nd_para",
    Pipe.S,
    names={"c_api": "asc_set_l0c_copy_params", "cpp": "SetFixpipeNz2ndFlag"},
    source="asc-devkit, asc_set_l0c_copy_params (2201) and NZ2ND",
    kirin=Kirin(),
)
class SetNdPara(Instruction):
    """Set how many matrices an NZ2ND fixpipe writes, and their distances."""

    nd_num: int = param(1, 65535, "matrices")
    src_nd_stride: int = param(0, 512, "fractals (1024 B) between source matrices")
    dst_nd_stride: int = param(0, 65535, "elements between destination matrices")

    def apply(self, registers: Registers) -> Registers:
        """Keep the three values."""
        return with_nz2nd(registers, self.nd_num, self.src_nd_stride, self.dst_nd_stride)
