"""The use of registers: what a template takes from them, and what it leaves there."""

from collections.abc import Mapping
from typing import ClassVar, Self

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.declare.registers import Registers


class RegisterUse:
    """The part of a declaration that says how an instruction uses registers."""

    __slots__ = ()
    name: ClassVar[str]
    reads_left: ClassVar[bool] = False
    """True if registers that hold earlier instructions' values (`registers.LEFT`) decide it."""
    resolved_by_left: ClassVar[bool] = False
    """True if `resolved` takes something from its `register`, which holds values."""
    addressed_by_left: ClassVar[bool] = False
    """True if its `register` says where operands lie."""
    register: ClassVar[str] = ""
    """The register of `registers.LEFT` that it leaves if it has `leaves`, and else reads."""

    @property
    def takes_registers(self) -> bool:
        """True if `resolved` may change this template."""
        return type(self).resolved is not RegisterUse.resolved

    def resolved(self, registers: Registers) -> Self:
        """Return the template with what it takes from the registers filled in."""
        return self

    def apply(self, registers: Registers) -> Registers:
        """Return the registers after this instruction, as far as no value decides them."""
        return registers

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Return the registers after this instruction has met these values."""
        return registers

    @property
    def answers(self) -> ElementType | None:
        """The element type whose bits the result is; None of an integer."""
        return None

    def result(self, registers: Registers) -> tuple[int, ...]:
        """Return what the scalar unit reads; floats as their bits."""
        raise NotImplementedError(f"{self.name} gives the scalar unit nothing")
