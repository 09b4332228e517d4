"""Registers of the scalar unit, and scalar work."""

from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.archs import Kirin
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Pipe,
    choice,
    instruction,
    param,
)
from cubecore.isa.declare.registers import (
    CTRL_CAST_BIT,
    CTRL_CAST_WRAPS_BIT,
    CTRL_FLOAT_IEEE_BIT,
    CTRL_INT_SATURATE_BIT,
    CTRL_MASK_COUNTS_BIT,
    Registers,
)

_PARTS = ("step", "load", "tile")
_CTRL_BITS = {
    *(CTRL_FLOAT_IEEE_BIT, CTRL_INT_SATURATE_BIT, CTRL_MASK_COUNTS_BIT),
    *(CTRL_CAST_WRAPS_BIT, CTRL_CAST_BIT),
}


@instruction(
    "set_ctrl",
    Pipe.S,
    names={"c_api": "asc_set_ctrl", "cpp": "SetCtrlSpr"},
    source="asc-devkit, asc_set_ctrl",
    uncertain=(
        "the initial value of every bit is 0; that of CTRL[60] is documented for 3510 alone",
        "half results are clamped while CTRL[48] is clear, as this page has it; two pages on "
        "precision say that they are not unless asked for",
    ),
    archs=("2201", "3510"),
)
class SetCtrl(Instruction):
    """Replace CTRL.

    The model knows bits 48 (infinities in half), 53 (integer saturation), 56 (the mask counts) and,
    under bit 60, 59 (conversions to integers keep the low bits).
    """

    value: int = param(0, 2**64 - 1, "the register")

    def apply(self, registers: Registers) -> Registers:
        """Keep the value."""
        return replace(registers, ctrl=self.value)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Only modelled bits may be set."""
        other = sorted(b for b in range(64) if self.value >> b & 1 and b not in _CTRL_BITS)
        if not other:
            return []
        return [
            Violation("set_ctrl.value", "set no bit but 48, 53, 56, 59 and 60", f"bits {other}")
        ]


@instruction(
    "set_hf32_mode",
    Pipe.S,
    names={"cpp": "SetHF32Mode"},
    variants={"asc_enable_hf32": {"enable": True}, "asc_set_fp32_mode": {"enable": False}},
    source="asc-devkit, asc_enable_hf32 and asc_set_fp32_mode (2201, 3510)",
    archs=("2201", "3510"),
)
class SetHf32Mode(Instruction):
    """Let `mad` round float32 inputs to HF32, at a higher rate, or stop doing so."""

    enable: bool = param(0, 1, "round to HF32")

    def apply(self, registers: Registers) -> Registers:
        """Keep the switch; how to round is a register of its own."""
        return replace(registers, hf32_enabled=bool(self.enable))


@instruction(
    "set_fp8_mode",
    Pipe.S,
    names={"c_api": "asc_enable_fp8"},
    source="asc-devkit, asc_enable_fp8 (3510)",
    archs=("3510",),
)
class SetFp8Mode(Instruction):
    """Let `mad` multiply 8-bit floats as what they are, which it does; there is no HiF8 mode."""


@instruction(
    "set_hf32_trans_mode",
    Pipe.S,
    names={"c_api": "asc_enable_hf32_trans", "cpp": "SetHF32TransMode"},
    source="asc-devkit, asc_enable_hf32_trans (2201, 3510)",
    archs=("2201", "3510"),
    uncertain=(
        "mode 1 truncates: the C API and the English pages say toward zero; the basic API's name "
        "NEAREST_ZERO could mean to nearest, Matmul's SetHF32 says to nearest, ties away from zero",
    ),
)
class SetHf32TransMode(Instruction):
    """Choose how float32 becomes HF32; it matters only while HF32 mode is on."""

    mode: int = param(0, 1, "0 to nearest even, 1 toward zero")

    def apply(self, registers: Registers) -> Registers:
        """Keep the mode."""
        return replace(registers, hf32_toward_zero=bool(self.mode))


@instruction(
    "set_mmad_direction",
    Pipe.S,
    variants={
        "asc_set_mmad_direction_m": {"first": "m"},
        "asc_set_mmad_direction_n": {"first": "n"},
    },
    source="asc-devkit, asc_set_mmad_direction_m and _n, SetMMColumnMajor (2201)",
    archs=("2201", "3510"),
)
class SetMmadDirection(Instruction):
    """Choose the axis along which `mad` finishes its fractals first.

    An order within one product: its values do not depend on it, and its cost is one number.
    """

    first: str = choice("the axis that runs faster", "m", "n", default="m")


@instruction(
    "scalar_work",
    Pipe.S,
    source="published times of matmul kernels, scalar cost per iteration",
    archs=("2201", "3510"),
    kirin=Kirin(inferred=False),
)
class ScalarWork(Instruction):
    """The scalar unit's own work for one part of a kernel: a cost, no effect.

    Not a hardware instruction: it stands for address and loop arithmetic that is not modelled one
    by one. `step` names the chip's entry in `scalar_step_cycles`, or in the table of another part:
    `scalar_load_cycles`, `scalar_tile_cycles`.
    """

    step: str = choice("kind of kernel", "NORM", "MDL", "CONSTANT", "BASIC", default="BASIC")
    part: str = choice("a base-K step, a load of L1, a tile of C", *_PARTS, default="step")

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cost that the chip states, if it states one for loads or tiles."""
        if self.part == "step":
            return InstructionCost(chip.require("scalar_step_cycles", "timing")[self.step])
        table = chip.scalar_load_cycles if self.part == "load" else chip.scalar_tile_cycles
        return InstructionCost((table or {}).get(self.step, 0))
