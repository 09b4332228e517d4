"""Structs of tiling data: found in a kernel's file, filled by the names of their fields."""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.errors import did_you_mean, refuse, unable, unreadable
from cubecore.frontends.cpp.rewriting.tokens import Token, tokens

_LETTERS = {
    "bool": "?",
    "char": "b",
    "int8_t": "b",
    "uint8_t": "B",
    "int16_t": "h",
    "uint16_t": "H",
    "int32_t": "i",
    "int": "i",
    "uint32_t": "I",
    "float": "f",
    "int64_t": "q",
    "uint64_t": "Q",
    "double": "d",
}
_CHOOSING = ("REGISTER_TILING_DEFAULT", "GET_TILING_DATA_WITH_STRUCT")
_DEFAULT = "cubecore_tiling_default"
_OPTION = "--tiling-data"


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its type's name, and how many there are of an array."""

    name: str
    type: str
    count: int


def struct_named(text: str, name: str | None) -> tuple[str, tuple[Field, ...]]:
    """Return a struct of a file, or the one that its kernels ask for, and its fields in order.

    Raises
    ------
    RequestError
        If there is no such struct, or it has a field of another type.
    """
    code = [t for t in tokens(text) if t.kind not in {"space", "comment"}]
    wanted = name or _chosen(code)
    for at, token in enumerate(code[:-2]):
        if token.text in {"struct", "class"} and code[at + 1].text == wanted:
            end = next((n for n in range(at, len(code)) if code[n].text in {"{", ";"}), at)
            if code[end].text == "{":
                return wanted, tuple(_fields(code, end, wanted))
    declared = re.search(rf"BEGIN_TILING_DATA_DEF\(\s*{re.escape(wanted)}\s*\)", text)
    if declared is not None:
        return wanted, tuple(_declared(text[declared.end() :], text, wanted))
    raise unable(_OPTION, f"{_OPTION}: the file defines no struct {wanted}")


def _chosen(code: list[Token]) -> str:
    for word in _CHOOSING:
        for at, token in enumerate(code[:-2]):
            if token.text == word and code[at + 1].text == "(":
                name = [t.text for t in code[at + 2 : at + 8]]
                stop = next((n for n, t in enumerate(name) if t in {")", ","}), len(name))
                return name[stop - 1]
    words = [token.text for token in code]
    if _DEFAULT in words:  # what an operator's host code registers
        return words[words.index(_DEFAULT) + 2]
    raise unable(_OPTION, f"{_OPTION}: the kernel registers no struct of tiling data")


def _fields(code: list[Token], at: int, name: str) -> list[Field]:
    """Return the fields between the braces that open at `at`."""
    fields: list[Field] = []
    depth, begin = 0, at + 1
    for number in range(at, len(code)):
        depth += (code[number].text == "{") - (code[number].text == "}")
        if depth == 0:
            break
        if depth == 1 and code[number].text == ";":
            fields += _declaration([t.text for t in code[begin:number]], name)
            begin = number + 1
    return fields


def _declaration(words: list[str], name: str) -> list[Field]:
    while words and words[0] in {"public", ":", "const", "std", "::", "volatile"}:
        words = words[1:]
    if not words or words[0] in {"static", "using", "constexpr", "typedef", "friend"}:
        return []
    if words[0] not in _LETTERS:
        need = f"have fields of {', '.join(_LETTERS)}"
        raise refuse(f"{_OPTION} {name}", need, words[0])
    kind, fields = words[0], []
    for part in " ".join(words[1:]).split(","):
        match = re.match(r"(\w+)\s*((?:\[\s*\d+\s*\]\s*)*)", part.strip())
        if match is None:
            raise refuse(f"{_OPTION} {name}", "have fields with names", part.strip())
        extents = [int(n) for n in re.findall(r"\d+", match[2])]
        fields.append(Field(match[1], kind, int(np.prod(extents)) if extents else 1))
    return fields


def _declared(text: str, whole: str, name: str) -> Iterator[Field]:
    """Yield the fields of the macros of operator projects."""
    end = text.find("END_TILING_DATA_DEF")
    macro = r"TILING_DATA_FIELD_DEF(?:_ARR|_STRUCT)?"
    pattern = rf"{macro}\(\s*(\w+)\s*,\s*(?:([^,;]+?)\s*,\s*)?(\w+)\s*\)"
    for match in re.finditer(pattern, text[: end if end >= 0 else None]):
        if match[1] not in _LETTERS:
            need = f"have fields of {', '.join(_LETTERS)}"
            raise refuse(f"{_OPTION} {name}", need, match[1])
        yield Field(match[3], match[1], _length(match[2], whole, f"{name}.{match[3]}"))


def _length(written: str | None, text: str, field: str) -> int:
    """Return an array's length: a product or sum of numbers and of constants of the file."""
    if written is None:
        return 1
    terms = []
    for term in written.split("+"):
        factors = []
        for factor in term.split("*"):
            word = factor.strip(" ()")
            constant = re.search(rf"\b{re.escape(word)}\s*=\s*(\w+)\s*;", text)
            number = constant[1] if constant else word
            if not re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", number):
                raise refuse(f"{_OPTION} {field}", "have a length of numbers", repr(written))
            factors.append(int(number, 0))
        terms.append(math.prod(factors))
    return sum(terms)


def packed(name: str, fields: tuple[Field, ...], values: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return a struct's bytes as the compiler lays them out; fields not given are 0.

    Raises
    ------
    RequestError
        If the struct does not have a field, or the field's type does not have its value.
    """
    field_of = {f.name: f for f in fields}
    for given in values:
        if given not in field_of:
            need = f"name a field of {name}"
            raise refuse(_OPTION, need, given, did_you_mean(given, field_of))
    # Native alignment ("@"), as a C++ compiler lays members out; struct adds no padding at the end,
    # which the last line does.
    layout = "@" + "".join(f"{f.count}{_LETTERS[f.type]}" for f in fields)
    flat: list[Any] = []
    for each in fields:
        flat += _values(each, values.get(each.name))
    widest = max((struct.calcsize(_LETTERS[f.type]) for f in fields), default=1)
    raw = struct.pack(layout, *flat)
    return np.frombuffer(raw + bytes(-len(raw) % widest), np.uint8).copy()


def _values(each: Field, given: Any) -> list[Any]:
    if given is None:
        return [0] * each.count
    several = given.split(":") if isinstance(given, str) else np.ravel(given).tolist()
    letter, numbers = _LETTERS[each.type], []
    for one in several:
        try:
            value = float(one) if letter in "fd" else int(one, 0) if isinstance(one, str) else one
            struct.pack(letter, value)
        except (ValueError, TypeError, struct.error):
            raise refuse(f"{_OPTION} {each.name}", f"be {each.type}", repr(one)) from None
        numbers.append(value)
    if len(numbers) > each.count:
        raise refuse(f"{_OPTION} {each.name}", f"be at most {each.count} values", len(numbers))
    return numbers + [0] * (each.count - len(numbers))


def filled(text: str, given: str) -> NDArray[np.uint8]:
    """Return tiling data from ``a=1,b=2`` or from a file of bytes.

    Raises
    ------
    RequestError
        If a struct or field does not exist, or a file cannot be read.
    """
    if "=" not in given:
        if not given.endswith(".bin"):
            raise refuse(_OPTION, "be FIELD=VALUE,... or a file", repr(given))
        try:
            return np.fromfile(given, np.uint8)
        except OSError as error:
            raise unreadable(f"{_OPTION} {given}", error) from None
    values: dict[str, str] = {}
    for part in given.split(","):
        name, sign, value = part.partition("=")
        if not sign:
            raise refuse(_OPTION, "be FIELD=VALUE,... or a file", repr(part))
        values[name.strip()] = value.strip()
    return packed(*struct_named(text, None), values)
