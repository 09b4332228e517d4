"""Behind the first conversion of fixpipe on architecture 3510: the second one, and its word.

A word of 64 bits (QUANT_POST): bits 31 to 13 are the factor, a float32's upper 19 bits; bits 8 to 0
a signed offset, of which 4-bit results take 5 bits, 8-bit ones 9 and 16-bit ones 17, the upper 8 in
bits 39 to 32; bit 9 says that an 8-bit result is signed.
"""

from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.cube.fixpipe_registers import is_ordinary
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Instruction, Pipe, instruction, param
from cubecore.isa.declare.registers import Registers
from cubecore.numerics.quantisation import SCALE_MASK

NO_POST = "NoConv"
_RESULTS = {"B8": "int8", "S4": "int4", "S16": "int16"}
_SOURCES = {"QS16": "int16", "QF16": "float16"}
POST_TARGETS = {
    f"{many}{source}2{result}_POST": target
    for source in _SOURCES
    for result, target in _RESULTS.items()
    for many in ("", "V")
}
"""The result of each mode of the second conversion; those of V have a factor for each column."""
UNCERTAIN_POST = (
    "the second conversion multiplies in float32, rounds to nearest even, clamps to one bit more "
    "than the result has, adds the offset and clamps again, as the first one does for 8 bits; "
    "ReLU comes before it: its pages have the modes and the register alone",
    "broadcast_en writes the first row of the tile to all rows: the page says that data is "
    "broadcast along M",
)


def post_need(mode: str, source: str) -> str | None:
    """Return what a mode of the second conversion must be; None if it can be made of `source`."""
    if mode == NO_POST:
        return None
    if mode.startswith("VQ"):
        return (
            "have one factor, as no page says where those of the columns are in the Fixpipe buffer"
        )
    takes = _SOURCES[mode[:4]]
    if takes == source:
        return None
    if takes == "int16":
        return "convert float16, as no quant_pre makes int16"
    return f"follow a quant_pre that makes {takes}"


WITHOUT_REGISTERS = {
    "clip_relu_pre": "no page of architecture 3510 says which register has the limit",
    "clip_relu_post": "no page of architecture 3510 says which register has the limit",
    "eltwise_op": "no page of architecture 3510 says where the other operand is",
    "eltwise_antq_en": "no page of architecture 3510 says where the other operand is",
    "c0_pad_en": "no page of architecture 3510 says what is filled",
}
"""Parameters of the C API that its pages name and nothing sets up, with the reason."""


@instruction(
    "set_quant_post",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_quant_post"},
    source="asc-devkit, asc_set_l0c2gm_quant_post (3510)",
    archs=ARCH,
)
class SetQuantPost(Instruction):
    """Set the factor and the offset of fixpipe's second conversion: QUANT_POST."""

    config: int = param(0, 2**64 - 1, "the register's 64 bits")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The factor is an ordinary number or 0."""
        if is_ordinary(self.config & SCALE_MASK):
            return []
        need = "hold no infinity, NaN or subnormal number in bits 31 to 13"
        return [Violation(f"{self.name}.config", need, f"{self.config:#x}")]

    def apply(self, registers: Registers) -> Registers:
        """Keep the word."""
        return replace(registers, quant_post=self.config)
