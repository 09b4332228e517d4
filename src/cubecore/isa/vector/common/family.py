"""A family: instructions that differ by a line of a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getdoc
from types import MappingProxyType
from typing import Any

from cubecore.dtypes import ElementType
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import PageTypes
from cubecore.isa.declare.instruction import Pipe, types
from cubecore.isa.vector.common.repeated import Repeated

ARITHMETIC = ("int16", "float16", "int32", "float32")

BYTES = ("int8", "uint8")
LONG = ("int64", "uint64")
WHOLE = ("int16", "uint16", "int32", "uint32")
LATE_ANY = PageTypes((*WHOLE, "float16", "bfloat16", "float32"), BYTES + LONG)
"""On 3510 what most functions of two tensors take."""
LATE_SCALED = PageTypes(("int16", "float16", "bfloat16", "int32", "float32"), BYTES + LONG)
"""On 3510 what most functions of a tensor and a scalar take."""
LATE_BITS = PageTypes(WHOLE, BYTES + LONG)
LATE_MOVED = PageTypes(("uint8", "uint16", "uint32", "uint64"))
"""On 3510 what moves whole elements takes, each as bits."""

BYTES_BY_COUNT = {"counted_types": BYTES}
"""As public kernels have it, and a 910B3 computes: the bits of each element, by a count alone."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One line of a family's table.

    `doc` says in one sentence what it computes; `does` computes it; `types` are the element
    types it takes, and `late` those of 3510, where the page lists others; `since` is the earliest
    AI Core that has it, if one before 2201's does. `fixed` are class attributes and `fields`
    parameters (with their types) in which it differs from its base otherwise.
    """

    name: str
    c_api: str
    doc: str
    cpp: str = ""
    tik: str = ""
    does: Callable[..., Any] | None = None
    types: tuple[str, ...] = ()
    late: PageTypes | None = None
    uncertain: tuple[str, ...] = ()
    since: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """Its names by dialect."""
        named = {"c_api": self.c_api, "cpp": self.cpp, "tik": self.tik}
        return {dialect: name for dialect, name in named.items() if name}


def declare(base: type[Any], member: Member, module: str, *, source: str = "") -> Any:
    """Declare the instruction that `member` makes of `base`; `source` adds to its page's."""
    body: dict[str, object] = {"__module__": module, **member.fixed}
    if member.does is not None:
        body["function"] = staticmethod(member.does)
    fields = dict(member.fields)
    if member.types:
        fields["dtype"] = (ElementType, types("element type", *member.types, late=member.late))
    first = member.c_api or next(iter(member.variants), "")
    page = (
        f"asc-devkit, {first} (2201); C API general notes"
        if first
        else "asc-devkit; C API general notes"
    )
    return family.member(
        base,
        member.name,
        Pipe.V,
        doc=member.doc,
        more=getdoc(Repeated) or "",
        body=body,
        fields=fields,
        names=member.names,
        source=f"{page}; {source}" if source else page,
        uncertain=member.uncertain,
        since=member.since,
        carried=True,
        variants=member.variants,
    )
