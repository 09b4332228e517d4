"""A chip file of one's own: an entry of the catalogue with some facts replaced.

``base`` names the SoC whose facts it takes, ``name`` the chip (the file's unless given), and
``[facts]`` holds those that differ: ``l2_bytes = 100663296``, or with a source and a note as
``l2_bytes = { value = 100663296, source = "data sheet" }``. Of a field that is a table, the entries
that are given replace those of the base.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cubecore.chips.model import FACT_FIELDS, Chip, Fact, number_type
from cubecore.errors import did_you_mean, refuse, unable, unreadable

_ENDING = ".toml"
_KEYS = ("base", "name", "facts")
_PARTS = ("value", "source", "note")
_MOST_BYTES = 1 << 20
RELIABILITY = "OWN"
"""Reliability of a fact of such a file: its author states it."""


def is_chip_file(name: object) -> bool:
    """Return True if a chip is named by a file."""
    return isinstance(name, str) and name.endswith(_ENDING)


def chip_file_text(path: str) -> str:
    """Return the text of a chip file.

    Raises
    ------
    RequestError
        If it cannot be read.
    """
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if len(data) > _MOST_BYTES:
        raise refuse(path, f"be at most {_MOST_BYTES} B long", "a longer file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse(path, "be TOML", "bytes that are no UTF-8") from None


def chip_table(path: str, text: str) -> Mapping[str, Any]:
    """Return what a chip file says, its keys known and its `base` a text.

    Raises
    ------
    RequestError
        If it is no TOML, has an unknown key, or names no base.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise refuse(path, "be TOML", str(error).splitlines()[0]) from None
    for key in table:
        if key not in _KEYS:
            near = f"facts stand under [facts]: {key}" if key in FACT_FIELDS else ""
            near = near or did_you_mean(key, _KEYS)
            raise refuse(path, "have no keys but base, name and facts", repr(key), near)
    if "base" not in table:
        remedy = 'base = "Ascend910B3" takes the facts of that SoC'
        raise unable(path, f"{path} has no field base", remedy)
    for key in ("base", "name"):
        value = table.get(key, "chip")
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise refuse(f"{path}: {key}", "be a name", repr(value))
    if not isinstance(table.get("facts", {}), dict):
        raise refuse(f"{path}: facts", "be a table", repr(table["facts"]))
    return table


def derived_chip(path: str, table: Mapping[str, Any], base: Chip) -> Chip:
    """Return the base with the facts of a chip file in place of its own.

    Raises
    ------
    RequestError
        If a fact is unknown or has a wrong value.
    """
    facts = {key: _fact(path, key, entry, base) for key, entry in table.get("facts", {}).items()}
    chip = replace(
        base,
        name=table.get("name", Path(path).stem),
        products=(),
        sources=MappingProxyType({**base.sources, **facts}),
        **{key: fact.value for key, fact in facts.items()},
    )
    chip.prove()
    return chip


def _fact(path: str, key: str, entry: Any, base: Chip) -> Fact:
    where = f"{path}: {key}"
    if key not in FACT_FIELDS:
        remedy = did_you_mean(key, FACT_FIELDS) or f"cubecore chips {base.name} lists them"
        raise unable(path, f"{path}: no chip field named {key}", remedy)
    parts: Mapping[str, Any] = {"value": entry}
    if isinstance(entry, dict) and (number_type(key) is not Mapping or "value" in entry):
        parts = entry
        for name in parts:
            if name not in _PARTS:
                raise refuse(where, "have value, source and note only", repr(name))
        if "value" not in parts:
            raise unable(where, f"{where} has no field value")
    texts = {name: parts.get(name, "") for name in ("source", "note")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise refuse(f"{where}: {name}", "be a text", repr(text))
    value = _value(where, key, parts["value"], base)
    return Fact(key, value, texts["source"] or path, RELIABILITY, texts["note"])


def _value(where: str, key: str, value: object, base: Chip) -> Any:
    if number_type(key) is not Mapping:
        return _number(where, key, value)
    if not isinstance(value, dict):
        raise refuse(where, "be a table of numbers", value)
    numbers = {name: _number(f"{where}.{name}", "", one) for name, one in value.items()}
    return MappingProxyType({**(getattr(base, key) or {}), **numbers})


def _number(where: str, key: str, value: object) -> int | float:
    """Return a number of the field's kind; of a table's entries any."""
    kind = number_type(key) if key else None
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or (kind is int and not isinstance(value, int)):
        raise refuse(where, "be a whole number" if kind is int else "be a number", repr(value))
    assert isinstance(value, int | float)
    if not 0 <= value <= _LARGEST:
        raise refuse(where, f"be from 0 to {_LARGEST}", value)
    return float(value) if kind is float else value


_LARGEST = 2**53
"""Beyond it arithmetic on a size or a rate is no longer exact."""
