"""The C API's forms of an instruction: names, orders of arguments, what goes without saying."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

Order = tuple[tuple[str, ...], Mapping[str, Any]]
"""An order of arguments, and the parameters that it fixes."""


class CapiForms:
    """The part of a declaration that says how the C API calls an instruction."""

    __slots__ = ()
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    """Further names, most of the C API, each with the parameters that it fixes."""
    signature: ClassVar[tuple[str, ...]] = ()
    """The C API's order of arguments where it is not operands, scalar, parameters as declared; one
    with an underscore before its name is taken and means nothing."""
    signatures: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Further orders of arguments, distinguished by their number."""
    orders: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """Orders of arguments that a name of `variants` has for itself."""
    by_arch: ClassVar[Mapping[str, Order]] = MappingProxyType({})
    """Architectures whose C API has another order of arguments, and what goes without saying."""
    size_unit: ClassVar[int] = 0
    """Bytes that the C API's size form counts in one `len_burst`; 0: there is no such form."""
    count_form: ClassVar[Mapping[str, Any] | None] = None
    """The parameters that the C API's form with a count of elements fixes; None: there is none."""
    needed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Operands that a call must place, each with the form that does; other ones lie at 0."""
    unsigned_too: ClassVar[tuple[str, ...]] = ()
    """Operands of a signed type that the C API's pointers may say is unsigned."""
    pointers: ClassVar[tuple[str, ...]] = ()
    """Element types of the C API's pointers where bytes move whole; (): any."""

    def splits_elements(self) -> tuple[str, str, str] | None:
        """Return the parameter by which runs split elements, what it must be and is, or None."""
        return None
