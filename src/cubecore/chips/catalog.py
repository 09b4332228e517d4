"""The catalogue: TOML files by full SoC name, each over its architecture's shared file."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from cubecore.chips.model import FACT_FIELDS, Chip, Fact, number_type
from cubecore.errors import did_you_mean, refuse

_DATA = files("cubecore.chips") / "data"
_ARCH_PREFIX = "arch_"


@cache
def chip_names() -> tuple[str, ...]:
    """Return the full SoC names of the catalogue, sorted."""
    stems = (p.name.removesuffix(".toml") for p in _DATA.iterdir() if p.name.endswith(".toml"))
    return tuple(sorted(s for s in stems if not s.startswith(_ARCH_PREFIX)))


@cache
def chip(name: str) -> Chip:
    """Return the chip called `name`.

    Raises:
        RequestError: `name` is a family name (answered with the SoC names that it may mean) or
            unknown.
    """
    if name not in chip_names():
        candidates = expand_family(name)
        remedy = (
            f"{name} may mean {', '.join(candidates)}"
            if candidates
            else did_you_mean(name, chip_names()) or "cubecore chips lists them"
        )
        raise refuse("chip", "be the full name of a SoC", repr(name), remedy)
    return _load(name)


@cache
def expand_family(name: str) -> tuple[str, ...]:
    """Return the SoC names that a family or product name may mean; empty if none does."""
    wanted = _fold(name)
    return tuple(
        soc for soc in chip_names() if wanted in {_fold(family) for family in _products(soc)}
    )


def _fold(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _read(stem: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / f"{stem}.toml").read_text("utf-8"))


def _products(soc: str) -> list[str]:
    own = _read(soc)
    shared: list[str] = _read(_ARCH_PREFIX + own["arch"]).get("products", [])
    return [*shared, *own.get("products", [])]


def _load(name: str) -> Chip:
    own = _read(name)
    shared = _read(_ARCH_PREFIX + own["arch"])
    sources = shared.get("sources", {}) | own.get("sources", {})
    facts: dict[str, Fact] = {}
    for table in (shared.get("facts", {}), own.get("facts", {})):
        for key, entry in table.items():
            facts[key] = _fact(name, key, entry, sources)
    values = {key: fact.value for key, fact in facts.items()}
    result = Chip(
        name=name,
        arch=own["arch"],
        products=tuple(_products(name)),
        sources=MappingProxyType(facts),
        **values,
    )
    _prove(result)
    return result


def _fact(chip_name: str, key: str, entry: Mapping[str, Any], sources: Mapping[str, Any]) -> Fact:
    where = f"{chip_name}.toml: {key}"
    if key not in FACT_FIELDS:
        raise refuse(where, "be a field of a chip", key, did_you_mean(key, FACT_FIELDS))
    source = sources.get(entry.get("source", ""))
    if source is None:
        raise refuse(where, "name one of the file's sources", entry.get("source", "none"))
    value = entry["value"]
    kind = number_type(key)
    if kind is Mapping:
        value = MappingProxyType(dict(value))
    elif kind is float:
        value = float(value)
    elif not isinstance(value, int):
        raise refuse(where, "be an integer", value)
    return Fact(key, value, source["text"], source["reliability"], entry.get("note", ""))


def _prove(c: Chip) -> None:
    """Hold a loaded chip to what is true of every chip, both sides in the text."""
    for small, large in (("l1_user_bytes", "l1_bytes"), ("ub_user_bytes", "ub_bytes")):
        if getattr(c, small) > getattr(c, large):
            raise refuse(
                f"{c.name}.{small}", f"be at most {large} = {getattr(c, large)} B", getattr(c, small)
            )
    for key in FACT_FIELDS:
        value = getattr(c, key)
        numbers = value.values() if isinstance(value, Mapping) else () if value is None else (value,)
        for number in numbers:
            if number < 0 or (number == 0 and key not in {"aiv_count", "gm_latency_overlap"}):
                raise refuse(f"{c.name}.{key}", "be greater than 0", number)
