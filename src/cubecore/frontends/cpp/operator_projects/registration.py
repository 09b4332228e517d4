"""Registrations of operators, as an op_host answers them line by line."""

from collections.abc import Iterable
from dataclasses import dataclass, field

OPTIONAL, REQUIRED, DYNAMIC = 1, 2, 3
"""The kinds of parameters, by their numbers."""


@dataclass(frozen=True, slots=True)
class OperatorParameter:
    """An input or output: the types that it may have, one for each combination unless free.

    The shape of an output that is `computed` is its kernel's to say.
    """

    name: str
    kind: int
    types: tuple[int, ...]
    formats: tuple[int, ...]
    free_types: bool
    valued: bool
    type_of: str
    shape_of: str
    initial: int
    computed: bool


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: its type, and its value unless told."""

    name: str
    type: str
    required: bool
    default: str | None


@dataclass(eq=False, slots=True)
class Registration:
    """An operator, and which functions its op_host has for it."""

    type: str
    defined: bool
    tiles: bool
    infers_shapes: bool
    infers_types: bool
    inputs: list[OperatorParameter] = field(default_factory=list)
    outputs: list[OperatorParameter] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    chips: list[str] = field(default_factory=list)
    extended: dict[str, str] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The name without underscores and capitals, as kernels' names are compared."""
        return plain(self.extended.get("opInterface.value", self.type))


def plain(name: str) -> str:
    """Return a name without underscores and capitals: AddCustom and add_custom are one operator."""
    return name.replace("_", "").lower()


def registrations(lines: Iterable[str]) -> list[Registration]:
    """Return the operators of an answer."""
    found: list[Registration] = []
    for line in lines:
        what, *words = line.split("\t")
        if what == "operator":
            defined, tiles, shapes, types = (word == "1" for word in words[1:5])
            found.append(Registration(words[0], defined, tiles, shapes, types))
        elif what == "input":
            found[-1].inputs.append(_parameter(words))
        elif what == "output":
            found[-1].outputs.append(_parameter(words))
        elif what == "attribute":
            name, kind, required, has_value, value = words
            default = value if has_value == "1" else None
            found[-1].attributes.append(Attribute(name, kind, required == "1", default))
        elif what == "chip":
            found[-1].chips.append(words[0])
        elif what == "extended":
            found[-1].extended[words[0]] = words[1]
    return found


def _parameter(words: list[str]) -> OperatorParameter:
    name, kind, types, formats, free, valued, type_of, shape_of, initial, computed = words
    return OperatorParameter(
        name,
        int(kind),
        _numbers(types),
        _numbers(formats),
        free == "1",
        valued == "1",
        type_of,
        shape_of,
        int(initial),
        computed == "1",
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)
