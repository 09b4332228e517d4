"""Ranges of parameters: what a value breaks, and strides that lie between no two repetitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from typing import Any, Protocol, TypeVar

from cubecore.errors import Violation
from cubecore.isa.declare import common_3510


class NamedTemplate(Protocol):
    """The protocol of a template: a dataclass with a name."""

    @property
    def name(self) -> str:
        """The instruction's name."""
        ...

    @property
    def unlisted_types(self) -> tuple[str, ...]:
        """Element types that it takes besides those of its page."""
        ...


_T = TypeVar("_T")


def types_on(arch: str, meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the element types that a parameter takes on an architecture."""
    late = meta.get("late") if arch in common_3510.ARCH else None
    listed: tuple[str, ...] = late.listed if late else meta["types"]
    return listed


def field_violations(template: NamedTemplate, f: "Field[Any]", arch: str) -> list[Violation]:
    """Return what a parameter's value breaks: its types, its words, or its range."""
    value, meta = getattr(template, f.name), f.metadata
    if isinstance(value, bool):
        value = int(value)  # equal templates are judged once, so both must read the same
    subject = f"{template.name}.{f.name}"
    if "types" in meta:
        listed = types_on(arch, meta)
        if value.name not in (*listed, *template.unlisted_types):
            return [Violation(subject, f"be one of {', '.join(listed)}", value.name)]
    if "options" in meta and value not in meta["options"]:
        options = ", ".join(str(option) for option in meta["options"])
        return [Violation(subject, f"be one of {options}", repr(value))]
    if "low" in meta:
        if not meta["low"] <= value <= meta["high"]:
            return [Violation(subject, f"be in [{meta['low']}, {meta['high']}]", str(value))]
        if value % meta["multiple"]:
            return [Violation(subject, f"be a multiple of {meta['multiple']}", str(value))]
    return []


def arch_type_violations(
    template: NamedTemplate, allowed: tuple[str, ...] | None, chip_name: str
) -> list[Violation]:
    """Return the element types that an architecture does not take; () and None are any."""
    if not allowed:
        return []
    need = f"be one of {', '.join(allowed)} on {chip_name}"
    typed = [f.name for f in fields(template) if "types" in f.metadata]  # type: ignore[arg-type]
    return [
        Violation(f"{template.name}.{name}", need, kind.name)
        for name in typed
        if (kind := getattr(template, name)).name not in allowed
    ]


STRIDES = {
    "nd_num": ("src_nd_stride", "dst_nd_stride", "src_nd_matrix_stride", "dst_nz_matrix_stride"),
    "n_burst": ("src_gap", "dst_gap", "source_gap", "src_stride", "dst_stride"),
    "repeat": (
        *("src_gap", "dst_gap", "src_stride", "dst_stride", "matrix_stride", "vector_stride"),
        *("dst_repeat_stride", "src_repeat_stride", "src0_repeat_stride", "src1_repeat_stride"),
    ),
}
"""Counts of repetitions, and the strides between these."""


@cache
def attributes_of(cls: type[object], kind: type[_T]) -> Mapping[str, _T]:
    """Return what a class's own body has of a kind, by name: bases are those of many classes."""
    return {name: each for name, each in vars(cls).items() if isinstance(each, kind)}


def strides_of(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield the strides of an instruction, each with its count, as far as names tell."""
    names = {f.name for f in fields(kind)}
    for count, strides in STRIDES.items():
        if count in names:
            mode = "repeats" if count == "repeat" and hasattr(kind, "repeats") else count
            yield from ((name, mode) for name in strides if name in names)


def may_overlap(uses: Sequence[tuple[object, bool, bool]]) -> bool:
    """Return whether an operand is written to a memory that another one is read from.

    `uses` are the operands' memories, and whether each is written and read.
    """
    return any(
        to != source and uses[to][0] is uses[source][0] and uses[to][1] and uses[source][2]
        for to in range(len(uses))
        for source in range(len(uses))
    )
