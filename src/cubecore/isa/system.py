"""Registers of the scalar unit, and scalar work."""

from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.registers import CTRL_FLOAT_IEEE_BIT, CTRL_INT_SATURATE_BIT, Registers
from cubecore.isa.spec import Cost, Instruction, Pipe, choice, instruction, param

_CTRL_BITS = {CTRL_FLOAT_IEEE_BIT, CTRL_INT_SATURATE_BIT}


@instruction(
    "set_ctrl",
    Pipe.S,
    names={"c_api": "asc_set_ctrl", "cpp": "SetCtrlSpr"},
    source="asc-devkit, asc_set_ctrl; spec/isa_semantics.md 2.5",
)
class SetCtrl(Instruction):
    """Replace CTRL; the model knows bits 48 (float infinities) and 53 (integer saturation)."""

    value: int = param(0, 2**64 - 1, "the register")

    def apply(self, registers: Registers) -> Registers:
        """Keep the value."""
        return replace(registers, ctrl=self.value)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Only modelled bits may be set; mask mode (56) has instructions of its own."""
        other = sorted(b for b in range(64) if self.value >> b & 1 and b not in _CTRL_BITS)
        if not other:
            return []
        return [Violation("set_ctrl.value", "set no bit but 48 and 53", f"bits {other}")]


@instruction(
    "scalar_work",
    Pipe.S,
    source="facts/hardware.md section 5, scalar cost per iteration",
)
class ScalarWork(Instruction):
    """The scalar unit's own work for one step of a loop: a cost, no effect.

    Not a hardware instruction: it stands for address and loop arithmetic that is not modelled one
    by one. `step` names the chip's entry in `scalar_step_cycles`.
    """

    step: str = choice("kind of step", "NORM", "MDL", "CONSTANT", "BASIC", default="BASIC")

    def cost(self, chip: Chip) -> Cost:
        """What the chip states for the step."""
        return Cost(chip.require("scalar_step_cycles", "timing")[self.step])
