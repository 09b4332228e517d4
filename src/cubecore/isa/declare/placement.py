"""The placement of operands: where they lie, how they may meet, and what values steer."""

from collections.abc import Mapping
from typing import ClassVar, Self

from cubecore.arrays import Array
from cubecore.errors import Violation


class Placement:
    """The part of a declaration that says what addresses and values decide."""

    __slots__ = ()
    in_repeats: ClassVar[bool] = False
    """True if the offsets' first axis counts repeats, which run one after another."""
    overlap: ClassVar[str] = "none"
    """The overlap of dst and sources in one memory that the documents allow.

    `none`, also where they say nothing (C API general notes); `whole`: one address, or apart;
    `general`: within a repeat wholly or not at all, and dst of a repeat is source of no later one;
    `accumulate`: the latter is allowed of src1 with a repeat stride of 0. "" is for instructions
    that write no memory that they read, and set by the declaration.
    """
    steered_by: ClassVar[tuple[str, ...]] = ()
    """Operands whose values may decide which elements the others touch."""

    @property
    def steering(self) -> tuple[str, ...]:
        """Operands whose values decide which elements the others of this template touch."""
        return self.steered_by

    def located(self, values: Mapping[str, Array]) -> Self:
        """Return the template with what it takes from its steering operands' values filled in."""
        return self

    def reaching(self) -> Self:
        """Return the template that may touch all that this one may, whatever values are."""
        return self

    def fully_addressed(self) -> Self:
        """Return the template with all its operands: those too whose address a register has."""
        return self

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """Return the operands' addresses: those given, and those that come from registers."""
        return addresses

    def rebased(self, addresses: tuple[int, ...]) -> tuple[Self, tuple[int, ...]]:
        """Return the template that knows an address which decides what it touches, and addresses.

        An address that the template knows is counted in its offsets, and 0 is left in its place.
        """
        return self, addresses

    def address_violations(self, addresses: Mapping[str, int]) -> list[Violation]:
        """Return what is wrong with the operands' addresses beyond alignment and bounds."""
        return []

    @property
    def lies_anywhere(self) -> bool:
        """True if only the operands' alignment, bounds and distances decide anything."""
        kind = type(self)
        return (
            kind.address_violations is Placement.address_violations
            and kind.rebased is Placement.rebased
        )
