"""The record of a rule: it measures and decides nothing (D2).

A rule is a function of one `RuleCase` that returns a `Measure`: what the tiling uses, what it may
use, how the two must relate, the terms, and a remedy. Validator, solver, manual and report read the
same measure. The tiling of a case may be one `TCubeTiling` or a struct of arrays with the same
attribute names (NumPy int64), one element for each candidate; texts and remedies are built on
demand and only for one tiling.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import getdoc
from types import MappingProxyType
from typing import Any

import numpy as np

from cubecore.aliases import Column, JsonMapping
from cubecore.chips import Chip
from cubecore.citations import EDITIONS, cite_row, edition_of
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import did_you_mean, refuse
from cubecore.tiling.model.problem import SCALE_GROUP, Problem
from cubecore.units import FRACTAL_ROWS, INT32_MAX, INT32_MIN, align_up

READINGS = ("effective", "documented")


@dataclass(frozen=True)
class RuleCase:
    """The subject of a rule: a tiling (or many), the problem, the chip, the reading of the pages.

    `edition` of the page TCubeTiling structure is ``newer`` or ``older``; `reading` is
    ``effective`` (what the hardware and a kernel need) or ``documented`` (the table, literally).
    """

    tiling: Any
    problem: Problem
    chip: Chip
    edition: str = "newer"
    reading: str = "effective"

    def __post_init__(self) -> None:
        object.__setattr__(self, "edition", edition_of(self.edition))
        for name, accepted in (("edition", tuple(EDITIONS)), ("reading", READINGS)):
            value = getattr(self, name)
            if value not in accepted:
                raise refuse(
                    name,
                    f"be {' or '.join(accepted)}",
                    repr(value),
                    did_you_mean(str(value), accepted),
                )

    @cached_property
    def effective(self) -> bool:
        """True if the reading is what the hardware and a kernel need."""
        return self.reading == "effective"

    @cached_property
    def a(self) -> ElementType:
        """A's element type."""
        return self.problem.a_type

    @cached_property
    def b(self) -> ElementType:
        """B's element type."""
        return self.problem.b_type

    @cached_property
    def row_align(self) -> int:
        """Elements that rows of A come in on chip: C0 if A is stored [k, m], a fractal's 16 else.

        A stored row is padded to C0 on its way into NZ; the other axis to the fractal's 16 rows.
        """
        return max(self.a.c0, FRACTAL_ROWS) if self.problem.trans_a else FRACTAL_ROWS

    @cached_property
    def column_align(self) -> int:
        """Elements that columns of B come in on chip: 16 if B is stored [n, k], C0 else."""
        return FRACTAL_ROWS if self.problem.trans_b else max(self.b.c0, FRACTAL_ROWS)

    @cached_property
    def k_align(self) -> int:
        """Elements that K comes in on chip: C0 of the inputs."""
        return max(self.a.c0, self.b.c0)

    @cached_property
    def base_k_multiple(self) -> int:
        """A multiple of baseK that no alignment rule of this reading refuses."""
        if self.problem.mx:
            return max(self.k_align, 2 * SCALE_GROUP)
        return max(self.k_align if self.effective else 1, FRACTAL_ROWS)

    def k_is_inner(self, operand: str) -> bool:
        """True if K is the contiguous axis of operand "a" or "b" as it is stored."""
        return not self.problem.trans_a if operand == "a" else self.problem.trans_b

    @cached_property
    def accumulator(self) -> ElementType:
        """L0C's type. The older edition writes int32; both are 4 bytes."""
        return element_type("int32") if self.edition == "older" else self.problem.accumulator_type

    def with_tiling(self, changes: Mapping[str, int]) -> "RuleCase":
        """Return this case with some of the tiling's fields replaced."""
        return replace(self, tiling=replace(self.tiling, **changes))

    def with_problem(self, changes: JsonMapping) -> "RuleCase":
        """Return this case with some of the problem's keys replaced."""
        return replace(self, problem=replace(self.problem, **changes))


@dataclass(frozen=True)
class Remedy:
    """The nearest change that satisfies a rule: a clause, and what it changes where."""

    text: str
    tiling: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    problem: JsonMapping = field(default_factory=lambda: MappingProxyType({}))


def no_remedy() -> Remedy | None:
    """Return None: nothing that the tiling or the request holds can satisfy the rule."""
    return None


def _is_one_of(used: Column, options: tuple[Column, ...]) -> Column:
    matches = used == options[0]
    for option in options[1:]:
        matches = matches | (used == option)
    return matches


RELATIONS: dict[str, Callable[[Column, Column], Column]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    "==": operator.eq,
    "multiple": lambda used, limit: used % limit == 0,
    "in": _is_one_of,
}
"""The relation of `used` to `limit`; for "in" the limit is a tuple of the allowed values."""


@dataclass(frozen=True)
class Measure:
    """The measurement of a rule: `used` must stand in `relation` to `limit`, both in `unit`.

    `terms` says how `used` comes about and `limit_terms` how `limit` does; `authority` is what sets
    the limit. `applies` is False (or an array with False) where the rule has nothing to say, for
    example because a size that it divides by is not positive, which another rule reports.
    """

    used: Column
    limit: Column
    relation: str
    unit: str
    terms: Callable[[], str]
    remedy: Callable[[], Remedy | None] = no_remedy
    authority: str | Callable[[], str] = ""
    limit_terms: Callable[[], str] | None = None
    applies: Column = True

    def holds(self) -> Column:
        """True if the relation holds, or the rule does not apply; an array for many candidates."""
        holds = RELATIONS[self.relation](self.used, self.limit)
        if self.applies is True:
            return holds
        return np.logical_or(holds, np.logical_not(self.applies))


Measurer = Callable[[RuleCase], Measure | None]


@dataclass(frozen=True)
class Rule:
    """A declared rule. `rows` are the pages' rows that it carries, as ``000/t2/l0a-capacity``.

    `grows` says that what is used never shrinks when a field that the rule reads grows (a base
    block by whole fractals, mxTypePara by its factors), and that the limit does not depend on the
    tiling: what is too much with the smallest values always is. `counts` says that the effective
    reading looks at a core's share only by how many of them cover the size.
    """

    id: str
    title: str
    rows: tuple[str, ...]
    basis: str
    measure: Measurer
    text: str
    grows: bool = False
    counts: bool = False

    def rows_in(self, edition: str) -> tuple[str, ...]:
        """Return the rows of `edition`, or of the other where it has none."""
        return tuple(row for row in self.rows if row.startswith(EDITIONS[edition])) or self.rows

    def source(self, edition: str) -> str:
        """Return the page and table that say so in `edition`, or what else the rule rests on."""
        stated = [row for row in self.rows if row.startswith(EDITIONS[edition])]
        if not stated and self.basis:
            return self.basis
        return cite_row((*stated, *self.rows)[0])


_REGISTRY: dict[str, Rule] = {}


def rule(
    rule_id: str,
    title: str,
    *,
    rows: Iterable[str] = (),
    basis: str = "",
    text: str = "",
    grows: bool = False,
    counts: bool = False,
) -> Callable[[Measurer], Measurer]:
    """Declare the decorated function as the rule `rule_id`.

    `basis` says what the rule rests on where the TCubeTiling tables 1 to 3 do not state it. The
    docstring (or `text`) is what `explain` prints; it says what differs between editions and
    readings. `grows` and `counts` are those of `Rule`.
    """

    def register(measure: Measurer) -> Measurer:
        """Add the rule to the registry and return the function as it is."""
        assert rule_id not in _REGISTRY, f"{rule_id} is declared twice"
        declared = text or getdoc(measure) or ""
        assert declared, f"{rule_id} has no text"
        _REGISTRY[rule_id] = Rule(
            rule_id, title, tuple(rows), basis, measure, declared, grows, counts
        )
        return measure

    return register


def registered() -> tuple[Rule, ...]:
    """Return every rule declared so far, in the order of declaration."""
    return tuple(_REGISTRY.values())


def shrink(case: RuleCase, measure: Measurer, fields: Iterable[tuple[str, int]]) -> Remedy | None:
    """Return the remedy that makes one of `fields` smaller until `measure` holds.

    `fields` are (name, multiple) in the order of preference: the largest value of the first that
    helps alone is the remedy; if none does, all of them at their smallest.
    """
    choices = tuple(fields)
    for name, multiple in choices:
        value = _largest(case, measure, name, multiple)
        if value is not None:
            return Remedy(f"largest {name} here is {value}", {name: value})
    least = dict(choices)
    if satisfied(case.with_tiling(least), measure):
        return Remedy("set " + " and ".join(f"{n} to {v}" for n, v in least.items()), least)
    return None


Relaxation = tuple[Mapping[str, int], JsonMapping]


def relaxed_remedy(
    case: RuleCase,
    measure: Measurer,
    relaxations: Iterable[Relaxation],
    fields_of: Callable[[RuleCase], Iterable[tuple[str, int]]],
) -> Remedy | None:
    """Return the first of `relaxations` that lets `measure` hold, with smaller fields if need be.

    A relaxation is what to set in the tiling and where the request takes operands from, mildest
    first; `fields_of` gives what `shrink` may make smaller then.
    """
    for fields, keys in relaxations:
        relaxed = case.with_tiling(fields).with_problem(keys)
        words = [f"set {name} to {value}" for name, value in fields.items()]
        words += [f"keep {key[-1].upper()} in {position}" for key, position in keys.items()]
        if satisfied(relaxed, measure):
            return Remedy(" and ".join(words), fields, keys)
        remedy = shrink(relaxed, measure, fields_of(relaxed))
        if remedy is not None:
            return Remedy(" and ".join([*words, remedy.text]), {**fields, **remedy.tiling}, keys)
    return None


def set_fields(case: RuleCase, measure: Measurer, **changes: int) -> Remedy | None:
    """Return the remedy that sets `changes`, if int32 holds them and `measure` then holds."""
    if not all(INT32_MIN <= value <= INT32_MAX for value in changes.values()):
        return None
    if not satisfied(case.with_tiling(changes), measure):
        return None
    return Remedy("set " + " and ".join(f"{n} to {v}" for n, v in changes.items()), changes)


def nearest_multiple(value: int, multiple: int) -> int:
    """Return the multiple of `multiple`, at least one, that is nearest to `value`; ties go down."""
    below = max(value // multiple * multiple, multiple)
    above: int = align_up(max(value, 1), multiple)
    return below if value - below <= above - value else above


def spelled(name: str, value: int, padded: int) -> str:
    """Return ``64``, or ``64 (baseN 48 padded)`` where padding makes the difference."""
    return str(padded) if value == padded else f"{padded} ({name} {value} padded)"


def satisfied(case: RuleCase, measure: Measurer) -> bool:
    """True if `measure` holds for `case`, or has nothing to say about it."""
    measured = measure(case)
    return measured is None or bool(measured.holds())


def _largest(case: RuleCase, measure: Measurer, name: str, multiple: int) -> int | None:
    """Return the largest multiple below the field's value with which `measure` holds.

    The measure must be monotone in the field. None if not even one `multiple` will do.
    """
    low, high = 0, (getattr(case.tiling, name) - 1) // multiple
    while low < high:
        middle = (low + high + 1) // 2
        if satisfied(case.with_tiling({name: middle * multiple}), measure):
            low = middle
        else:
            high = middle - 1
    return low * multiple if low > 0 else None
