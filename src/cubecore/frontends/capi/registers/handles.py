"""Registers as a kernel has them: handles whose values calls make."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Protocol

from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.capi.pointer import type_of

UNWRITTEN = 1
"""The number of a value that no call has made."""
ALL_LANES = 0
"""The number that stands for no mask."""


class Body(Protocol):
    """A vector function that is open, as its registers know it."""

    name: str

    def new_variable(self) -> int:
        """Return the number of a new register."""
        ...


class Register:
    """A register of the vector function that declares it; calls read and write its value.

    Attributes
    ----------
    function : Body
        The vector function.
    variable : int
        The number of the register among those of its function.
    value : int
        The number of the value that the last call has written.
    """

    kind = ""
    name = ""

    def __init__(self, function: Body) -> None:
        self.function, self.value = function, UNWRITTEN
        self.variable = function.new_variable()

    def __str__(self) -> str:
        """Return the type as C has it."""
        return self.name


class VectorRegister(Register):
    """A vector register of 256 bytes, of one element type.

    Attributes
    ----------
    dtype : ElementType
        The type of the lanes.
    """

    kind = "v"

    def __init__(
        self, function: Body, dtype: ElementType, of: "VectorRegister | None" = None
    ) -> None:
        self.dtype, self.name = dtype, register_names()[dtype.name]
        self._of = of
        if of is None:
            super().__init__(function)
        else:
            self.function, self.variable = function, of.variable

    @property
    def value(self) -> int:
        """The number of the value, which views of other types share."""
        return self._value if self._of is None else self._of.value

    @value.setter
    def value(self, number: int) -> None:
        if self._of is None:
            self._value = number
        else:
            self._of.value = number

    def cast(self, dtype: str | ElementType) -> "VectorRegister":
        """Return a view of the same register as another type, as a cast of C is.

        Parameters
        ----------
        dtype : str or ElementType
            The element type, such as "int32".

        Returns
        -------
        VectorRegister
            The view: what one of them writes the other one reads.

        Raises
        ------
        RequestError
            If the type is not an element type.
        """
        return VectorRegister(self.function, type_of(dtype, "a register"), self._of or self)


class MaskRegister(Register):
    """A mask register (vector_bool): a bit for each byte of a register."""

    kind, name = "m", "vector_bool"


class UnalignedBuffer(Register):
    """The buffer of an unaligned stream (vector_load_unalign, vector_store_unalign)."""

    kind, name = "u", "a buffer of an unaligned stream"


@cache
def register_names() -> Mapping[str, str]:
    """Return the types of vector registers as C has them, by element type."""
    from cubecore.isa.vector.registers.c_api.conversions import C_TYPES

    return MappingProxyType({element: f"vector_{word}" for element, (_, word) in C_TYPES.items()})


@cache
def declared_types() -> Mapping[str, ElementType | type[Register]]:
    """Return what a kernel declares by the name of its type in C."""
    vectors = {name: element_type(element) for element, name in register_names().items()}
    buffers = dict.fromkeys(("vector_load_unalign", "vector_store_unalign"), UnalignedBuffer)
    return MappingProxyType({**vectors, **buffers, MaskRegister.name: MaskRegister})
