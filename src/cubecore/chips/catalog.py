"""The catalogue: TOML files by full SoC name, each over its architecture's shared file.

``arch_<NpuArch>.toml`` states what all its SoCs share, and in ``[families.<name>]`` what some of
them share; the SoC's own file states the rest. The more special statement holds.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from cubecore.chips.chip_file import chip_file_text, chip_table, derived_chip, is_chip_file
from cubecore.chips.model import FACT_FIELDS, REQUIRED_FACTS, Chip, Fact, number_type
from cubecore.errors import did_you_mean, refuse
from cubecore.package_data import packaged

_DATA = packaged("chips", "data")
_ARCH_PREFIX = "arch_"
DEFAULT_CHIP = "Ascend910B3"
_DEFAULT_OF_ARCH = {"3510": "Ascend950PR_9589"}
"""The SoC that stands for its architecture, where that is not the default's."""


@cache
def chip_names() -> tuple[str, ...]:
    """Return the full SoC names of the catalogue, sorted."""
    stems = (p.name.removesuffix(".toml") for p in _DATA.iterdir() if p.name.endswith(".toml"))
    return tuple(sorted(s for s in stems if not s.startswith(_ARCH_PREFIX)))


def default_chip() -> str:
    """Return the SoC that requests without a chip are for: CUBECORE_CHIP's, else Ascend910B3."""
    asked = os.environ.get("CUBECORE_CHIP")
    return soc_name(asked, "CUBECORE_CHIP") if asked else DEFAULT_CHIP


def default_chip_of(arch: str) -> str:
    """Return the SoC that programs of an architecture are for: CUBECORE_CHIP's, else one of it.

    Examples
    --------
    >>> default_chip_of("3510")
    'Ascend950PR_9589'
    """
    if os.environ.get("CUBECORE_CHIP"):
        return default_chip()
    return _DEFAULT_OF_ARCH.get(arch, DEFAULT_CHIP)


@cache
def soc_name(name: str, subject: str = "chip") -> str:
    """Return the full SoC name that a name means: itself, or the only one that it can mean.

    A chip file's name is that file.

    Raises
    ------
    RequestError
        If the name is a family's (the answer lists the SoC names that it may stand for) or unknown.
    """
    if name in chip_names() or is_chip_file(name):
        return name
    candidates = expand_family(name)
    if len(candidates) == 1:
        return candidates[0]
    remedy = (
        f"{name} may mean {', '.join(candidates)}"
        if candidates
        else did_you_mean(name, chip_names()) or "cubecore chips lists them"
    )
    raise refuse(subject, "be the full name of a SoC", repr(name), remedy)


def chip(name: str) -> Chip:
    """Return the chip of a SoC name, or of a chip file.

    Parameters
    ----------
    name : str
        As Ascend910B3, or a name that can mean one SoC only: 910b3, Kirin X90. `cubecore chips`
        lists the full names. A name that ends in ``.toml`` is a file of one's own.

    Returns
    -------
    Chip
        Every fact that is known of it, with its source.

    Raises
    ------
    RequestError
        If the name is a family's (the answer lists the SoC names that it may stand for) or unknown,
        or the file is no chip file.

    Examples
    --------
    >>> cubecore.chip("Ascend910B3").arch
    '2201'
    """
    if is_chip_file(name):
        return _own(name, chip_file_text(name))
    return _listed(soc_name(name))


def chip_key(name: object) -> str:
    """Return what stands for a chip in the key of an answer: a file's text, a full name itself."""
    if is_chip_file(name):
        from hashlib import blake2b

        return blake2b(chip_file_text(str(name)).encode(), digest_size=16).hexdigest()
    return str(name)


def is_chip(name: object) -> bool:
    """Return True if `chip` takes a name: a full one of the catalogue's, or a file's."""
    return isinstance(name, str) and (name in chip_names() or is_chip_file(name))


@cache
def _own(path: str, text: str) -> Chip:
    """Return the chip of a file with a text; each is made once."""
    table = chip_table(path, text)
    base = table["base"]
    if is_chip_file(base):
        raise refuse(f"{path}: base", "be a SoC of the catalogue", repr(base))
    return derived_chip(path, table, _listed(soc_name(base, f"{path}: base")))


@cache
def expand_family(name: str) -> tuple[str, ...]:
    """Return the SoC names that a family or matmul name may mean; empty if none does.

    Case, spaces, punctuation and the words "matmul" and "series" do not count.
    """
    wanted = _fold(name)
    return tuple(soc for soc in chip_names() if wanted in _names_of(soc))


def _names_of(soc: str) -> set[str]:
    folded = _fold(soc)
    return {folded, folded.removeprefix("ascend"), *map(_fold, _products(soc))}


def _fold(name: str) -> str:
    words = re.findall("[a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in {"product", "products", "series"})


@cache
def _read(stem: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / f"{stem}.toml").read_text("utf-8"))


def _tables(soc: str) -> tuple[Mapping[str, Any], ...]:
    """Return what describes `soc`: its architecture, its family if it has one, its own file."""
    record = _read(soc)
    arch = record.get("arch", "none")
    where = f"{_ARCH_PREFIX}{arch}.toml"
    if not (_DATA / where).is_file():
        raise refuse(f"{soc}.toml: arch", f"have a file {_ARCH_PREFIX}<arch>.toml", arch)
    shared = _read(_ARCH_PREFIX + arch)
    if "family" not in record:
        return shared, record
    families = shared.get("families", {})
    if record["family"] not in families:
        options = ", ".join(families) or "none"
        raise refuse(f"{soc}.toml: family", f"be one of {where}: {options}", record["family"])
    return shared, families[record["family"]], record


def _products(soc: str) -> list[str]:
    """Return the names that may mean `soc`, the most specific first."""
    tables = reversed(_tables(soc))
    return [product for table in tables for product in table.get("products", [])]


@cache
def _listed(name: str) -> Chip:
    """Return a chip of the catalogue; each is made once."""
    return _load(name)


def _load(name: str) -> Chip:
    tables = _tables(name)
    sources = {key: text for table in tables for key, text in table.get("sources", {}).items()}
    entries: dict[str, Any] = {}
    for table in tables:
        entries |= {
            key: _of_part(one, entries.get(key)) for key, one in table.get("facts", {}).items()
        }
    facts = {key: _fact(name, key, entry, sources) for key, entry in entries.items()}
    missing = [field for field in REQUIRED_FACTS if field not in facts]
    if missing:
        raise refuse(f"{name}.toml", "state every size that rules need", f"no {', '.join(missing)}")
    result = Chip(
        name=name,
        arch=_read(name)["arch"],
        products=tuple(_products(name)),
        sources=MappingProxyType(facts),
        **{key: fact.value for key, fact in facts.items()},
    )
    result.prove()
    return result


def _of_part(entry: Any, whole: Any) -> Any:
    """Return the entry of a part: `times` is its share of the value that its architecture has."""
    if not isinstance(entry, Mapping) or "times" not in entry or whole is None:
        return entry
    return {**entry, "value": round(whole["value"] * entry["times"])}


def _fact(chip_name: str, key: str, entry: object, sources: Mapping[str, Any]) -> Fact:
    where = f"{chip_name}.toml: {key}"
    if key not in FACT_FIELDS:
        raise refuse(where, "be a field of a chip", key, did_you_mean(key, FACT_FIELDS))
    if not isinstance(entry, Mapping):
        raise refuse(where, "be a table with value and source", entry)
    source = sources.get(entry.get("source", ""))
    if source is None:
        raise refuse(where, "name one of the file's sources", entry.get("source", "none"))
    return Fact(
        key,
        _value(where, key, entry.get("value")),
        source["text"],
        source["reliability"],
        entry.get("note", ""),
    )


def _value(where: str, key: str, value: object) -> Any:
    kind = number_type(key)
    if kind is Mapping:
        if not isinstance(value, dict) or not all(map(_is_number, value.values())):
            raise refuse(where, "be a table of numbers", value)
        return MappingProxyType(dict(value))
    if not _is_number(value) or (kind is int and not isinstance(value, int)):
        raise refuse(where, "be a whole number" if kind is int else "be a number", value)
    return kind(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
