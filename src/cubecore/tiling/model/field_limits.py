"""Limits of a request on a tiling's fields: values, ranges and multiples.

The solver proposes candidates by itself; where a field is asked for, it proposes values that fit,
and takes nothing else.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Column
from cubecore.errors import RequestError, Violation, did_you_mean, shown
from cubecore.tiling.model.tcubetiling import FIELDS, Tilings
from cubecore.units import FRACTAL_ROWS, INT32_MAX, align_up, ceil_div, distinct

Ints = NDArray[np.int64]
SHARED_AXES = {"singleCoreM": ("M",), "singleCoreN": ("N",), "singleCoreK": ("Ka", "Kb")}
"""Fields that divide a size among cores, with the size: the shorter where there are two."""
PLANNED_FIELDS = (
    *("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK"),
    *("depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb", "iterateOrder"),
    *("dbL0A", "dbL0B", "dbL0C"),
)
"""The fields that the planner chooses; the others follow from them, from the problem, or are 0."""
_TEXT = re.compile(r"(?:(\d{1,10})|(\d{0,10})\.\.(\d{0,10}))?(?:/(\d{1,10}))?", re.ASCII)
_PARTS = ("min", "max", "multiple")


@dataclass(frozen=True, slots=True)
class Limits:
    """The values of one field that will do: `low` to `high`, multiples of `multiple`.

    A core's share may also be the whole size, whatever the multiple: such an axis is not cut.
    """

    low: int = 0
    high: int = INT32_MAX
    multiple: int = 1

    @property
    def only(self) -> int | None:
        """The one value that will do, if there is one."""
        return self.low if self.low == self.high else None

    @classmethod
    def from_json(cls, name: str, value: Any) -> "Limits":
        """Return the limits of the field `name` that a request gives.

        `value` is a number, an object with some of ``min``, ``max`` and ``multiple``, or a text as
        on the command line: ``48``, ``16..64``, ``16..``, ``..64``, any of them with ``/32``.

        Raises
        ------
        RequestError
            If the value has none of these forms, or admits no number.
        """
        if isinstance(value, cls):
            return value
        subject = f"fix.{name}"
        parts = _parts(value)
        if parts is None:
            need = "be a number, a text like 16..64/32, or an object of min, max and multiple"
            raise RequestError([Violation(subject, need, shown(value))])
        limits = cls(parts["min"], parts["max"], parts["multiple"])
        if not 0 <= limits.low <= INT32_MAX or not limits.high <= INT32_MAX or limits.multiple < 1:
            need = f"hold numbers from 0 to {INT32_MAX}, and a multiple of at least 1"
            raise RequestError([Violation(subject, need, shown(value))])
        if limits.low > limits.high:
            need = f"have a max of at least its min {limits.low}"
            raise RequestError([Violation(subject, need, shown(limits.high, str))])
        return limits

    def to_json(self) -> int | dict[str, int]:
        """Return the number, or the object with what narrows."""
        if self.only is not None and self.multiple == 1:
            return self.low
        parts = zip(_PARTS, (self.low, self.high, self.multiple), (1, INT32_MAX, 1), strict=True)
        return {name: value for name, value, default in parts if value != default} or {"min": 1}

    def __str__(self) -> str:
        """Return ``= 48``, ``>= 16``, or ``in [16, 64], a multiple of 32``."""
        if self.only is not None:
            more = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
            return f"= {self.low}{more}"
        parts = []
        if self.low > 1 and self.high < INT32_MAX:
            parts = [f"in [{self.low}, {self.high}]"]
        elif self.low > 1 or self.high < INT32_MAX:
            parts = [f">= {self.low}" if self.low > 1 else f"<= {self.high}"]
        parts += [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        return ", ".join(parts) or ">= 1"


@dataclass(frozen=True)
class FieldLimits:
    """The limits on a tiling's fields, by name; none by default."""

    fields: Mapping[str, Limits] = field(default_factory=lambda: MappingProxyType({}))

    def __hash__(self) -> int:
        """Return a hash: problems, which hold one, are compared and kept in sets."""
        return hash(tuple(sorted(self.fields.items(), key=lambda item: item[0])))

    @classmethod
    def from_json(cls, value: Any) -> "FieldLimits":
        """Return what a request's ``fix`` asks for: limits by field, as `Limits.from_json` reads.

        Raises
        ------
        RequestError
            One violation for each field that cannot be limited, and for each malformed value.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            need = "be a JSON object of TCubeTiling's fields"
            raise RequestError([Violation("fix", need, shown(value))])
        violations: list[Violation] = []
        limits: dict[str, Limits] = {}
        for name, asked in value.items():
            try:
                _require_planned(name)
                limits[name] = _at_least(name, Limits.from_json(name, asked))
            except RequestError as error:
                violations += error.violations
        if violations:
            raise RequestError(violations)
        return cls(MappingProxyType({name: limits[name] for name in FIELDS if name in limits}))

    def to_json(self) -> dict[str, int | dict[str, int]]:
        """Return the limits by field, as `from_json` takes them."""
        return {name: limits.to_json() for name, limits in self.fields.items()}

    def broken(self, tiling: Tilings) -> Iterator[tuple[str, Limits]]:
        """Yield the fields of one tiling that are not as asked, and their limits."""
        for name, limits in self.fields.items():
            if not self.of([name]).mask(_One(tiling)).all():
                yield name, limits

    def __str__(self) -> str:
        """Return ``baseM = 48 and singleCoreN a multiple of 32``."""
        return " and ".join(f"{name} {limits}" for name, limits in self.fields.items())

    def of(self, names: Iterable[str]) -> "FieldLimits":
        """Return what is asked of some fields only."""
        return FieldLimits({name: self.fields[name] for name in names if name in self.fields})

    def mask(self, columns: Any) -> NDArray[np.bool_]:
        """Return which candidates have every field as asked; a field that they lack is let pass."""
        kept = np.ones(len(columns), dtype=bool)
        for name, limits in self.fields.items():
            if not hasattr(columns, name):
                continue
            values = getattr(columns, name)
            fits = np.asarray(values) % limits.multiple == 0
            # An axis that is not cut may have any length.
            if name in SHARED_AXES:
                fits = fits | is_uncut(name, columns)
            kept &= fits & (values >= limits.low) & (values <= limits.high)
        return kept

    def shares(self, name: str, extent: int, proposed: Ints) -> Ints:
        """Return the shares of an axis to try: `proposed`, as they can be made to fit."""
        limits = self.fields.get(name)
        if limits is None:
            return proposed
        if limits.only is not None:
            return np.array([limits.only])
        # Three sources of candidates: what is proposed anyhow, the same number of blocks with the
        # share rounded to what is asked, and the ends of the range, which may be all that fits in
        # it. A share that is the whole axis needs no multiple.
        unit = math.lcm(FRACTAL_ROWS, limits.multiple)
        rounded = align_up(ceil_div(extent, ceil_div(extent, proposed)), unit)
        ends = _within(limits, unit)
        candidates = distinct(np.minimum(np.concatenate([proposed, rounded, ends]), extent))
        fits = (candidates % limits.multiple == 0) | (candidates >= extent)
        return np.asarray(
            candidates[fits & (candidates >= limits.low) & (candidates <= limits.high)]
        )

    def blocks(self, name: str, proposed: Ints, unit: int = FRACTAL_ROWS) -> Ints:
        """Return the base blocks to try, multiples of `unit`; the start of a range is one."""
        limits = self.fields.get(name)
        if limits is None or not len(proposed):
            return proposed
        if limits.only is not None:
            return np.full(1, limits.only)
        unit = self.unit(name, unit)
        near = (proposed >= limits.low) & (proposed <= limits.high) & (proposed % unit == 0)
        return distinct(np.append(proposed[near], _within(limits, unit)[:1]))

    def unit(self, name: str, unit: int) -> int:
        """Return what a field must be a multiple of that must be one of `unit` besides."""
        limits = self.fields.get(name)
        return unit if limits is None else math.lcm(unit, limits.multiple)


def is_uncut(name: str, tiling: Tilings) -> Column:
    """True if the share `name` is its whole size: of one tiling, or of each of many."""
    share = getattr(tiling, name)
    wholes = [share >= getattr(tiling, extent) for extent in SHARED_AXES[name]]
    return wholes[0] if len(wholes) == 1 else wholes[0] | wholes[1]


class _One:
    """One tiling as a column of one row."""

    def __init__(self, tiling: Tilings) -> None:
        self._tiling = tiling

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Column:
        return np.array([getattr(self._tiling, name)])


def _parts(value: Any) -> dict[str, int] | None:
    """Return min, max and multiple of a value in any of its spellings; None if it is none."""
    parts = dict(zip(_PARTS, (0, INT32_MAX, 1), strict=True))
    if isinstance(value, str):
        match = _TEXT.fullmatch(value.strip())
        if match is None or not value.strip() or value.strip() == "..":
            return None
        one, low, high, multiple = match.groups()
        given = {"min": one or low, "max": one or high, "multiple": multiple}
        return parts | {name: int(text) for name, text in given.items() if text}
    if isinstance(value, Mapping):
        right = set(value) <= set(_PARTS) and all(_is_integer(x) for x in value.values())
        return parts | {name: int(x) for name, x in value.items()} if right and value else None
    return parts | {"min": int(value), "max": int(value)} if _is_integer(value) else None


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _at_least(name: str, limits: Limits) -> Limits:
    """Return limits without the 0 that only a flag can be."""
    if name == "iterateOrder":
        return limits
    if limits.high < 1:
        raise RequestError([Violation(f"fix.{name}", "be at least 1", shown(limits.high, str))])
    return replace(limits, low=max(limits.low, 1))


def _require_planned(name: Any) -> None:
    if name in PLANNED_FIELDS:
        return
    if name in FIELDS:
        need = "name fields that the planner chooses"
        why = "it follows from the problem, or is reserved"
        raise RequestError([Violation("fix", need, repr(name), why)])
    near = did_you_mean(str(name), PLANNED_FIELDS)
    raise RequestError([Violation("fix", "name fields of TCubeTiling", repr(name), near)])


def _within(limits: Limits, unit: int) -> Ints:
    """Return the ends of a range, in whole units."""
    ends = (align_up(max(limits.low, 1), unit), limits.high // unit * unit)
    return np.array([end for end in ends if limits.low <= end <= limits.high], dtype=np.int64)


NO_LIMITS = FieldLimits()
"""The limits of a plain plan: none."""
