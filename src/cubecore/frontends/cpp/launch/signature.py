"""An entry's parameters, as the compiler sees them, and values for them as 64-bit words."""

import keyword
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.dtypes import element_type
from cubecore.errors import refuse

_MASK = (1 << 64) - 1
_REALS = {"float32": "<f", "float64": "<d"}


@dataclass(frozen=True, slots=True)
class EntryParameter:
    """One parameter: p a pointer, i and u integers of `size` bytes, f a float, b, s a struct."""

    name: str
    letter: str
    type: str = ""
    size: int = 8

    @property
    def meaning(self) -> str:
        """The parameter's type in words."""
        if self.letter == "p":
            return "an array"
        if self.letter in {"i", "u"}:
            return f"{'u' if self.letter == 'u' else ''}int{8 * self.size}"
        return {"f": self.type, "b": "bool", "s": f"{self.size} bytes"}[self.letter]


def parameters_of(signature: str, names: tuple[str, ...]) -> tuple[EntryParameter, ...]:
    """Return the parameters that a signature's letters name."""
    parameters = []
    for at, part in enumerate(signature.split(";")[:-1]):
        name = python_name(names[at]) if at < len(names) and names[at] else f"arg{at}"
        letter, rest = part[0], part[1:]
        if letter in {"p", "f"}:
            parameters.append(EntryParameter(name, letter, rest))
        elif letter == "b":
            parameters.append(EntryParameter(name, letter, size=1))
        else:
            parameters.append(EntryParameter(name, letter, size=int(rest)))
    return tuple(parameters)


def python_name(name: str) -> str:
    """Return a parameter's name as Python can give it: a word of Python's own ends in `_`."""
    return f"{name}_" if keyword.iskeyword(name) or name == "core" else name


def tiling_name(parameters: Sequence[EntryParameter]) -> str | None:
    """Return the parameter that takes tiling data: the last pointer that is called so."""
    named = [p.name for p in parameters if p.letter == "p" and "tiling" in p.name.lower()]
    return named[-1] if named else None


def word_of(parameter: EntryParameter, value: Any, *, tensor: bool) -> int:
    """Return a value as the word that the entry takes; of a tensor or a struct 0.

    Raises
    ------
    RequestError
        If the parameter's type does not have the value.
    """
    letter, need = parameter.letter, f"be {parameter.meaning}"
    if tensor or (letter == "p" and value is None):
        if letter != "p":
            raise refuse(parameter.name, need, "an array")
        return 0
    if letter == "s":
        if not isinstance(value, bytes) or len(value) != parameter.size:
            got = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
            raise refuse(parameter.name, need, got)
        return 0
    number = isinstance(value, (bool, int, float, np.generic))
    if letter == "p" or not number:
        raise refuse(parameter.name, need, repr(value))
    if letter == "f":
        return _real(parameter, float(value))
    if int(value) != value:
        raise refuse(parameter.name, need, repr(value))
    if letter == "b":
        return int(bool(value))
    bits = 8 * parameter.size
    low, high = (0, 2**bits - 1) if letter == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= int(value) <= high:
        raise refuse(parameter.name, f"be in [{low}, {high}] ({parameter.meaning})", int(value))
    return int(value) & _MASK


def _real(parameter: EntryParameter, value: float) -> int:
    layout = _REALS.get(parameter.type)
    if layout is not None:
        with np.errstate(over="ignore"):
            raw = struct.pack(layout, np.float32(value) if layout == "<f" else value)
        return int.from_bytes(raw, "little")
    kind = element_type(parameter.type)
    return int(np.asarray(value).astype(kind.numpy).view(f"u{kind.size_bytes}"))
