"""The tilings near a given one: what may change, to which values, and which rules then speak."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Json, JsonMapping
from cubecore.tiling.model.field_limits import NO_LIMITS, SHARED_AXES, FieldLimits, Limits, is_uncut
from cubecore.tiling.model.mx_type_para import PLAIN
from cubecore.tiling.repair.field_domains import BLOCKS, COUNTS, Cover, Domain, base_columns, domain
from cubecore.tiling.rules.field_dependencies import RuleReads, measured, readers
from cubecore.tiling.rules.model import Measure, Rule, RuleCase
from cubecore.tiling.solver.candidates import TilingColumns

Fields = frozenset[str]
Table = dict[str, NDArray[np.int64]]
"""Values of some fields, one row for each combination."""

GROWING: Fields = frozenset((*BLOCKS, *COUNTS, *SHARED_AXES))
"""Fields that are lengths and counts, of which every domain holds the smallest."""
FACTORS = "mxTypePara"
"""A field of four factors; `PLAIN`, each of them 1, takes the least of L1."""
_DERIVED = ("broken", "equalities", "lowered", "growing")
"""The parts of a space that depend on its starting point."""


def row_count(table: JsonMapping) -> int:
    """Return the rows of a table; one of no fields has one row."""
    return len(next(iter(table.values()))) if table else 1


class WorkBudget:
    """Work that may still be done, in rules measured of one row each; about 10 ns apiece.

    Unlike a clock it gives the same answer every time.
    """

    CALL = 1000
    """The cost of measuring a rule besides its rows."""

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, rows: int, rules: int) -> None:
        """Count the measuring of some rules over some rows."""
        self.left -= (rows + self.CALL) * rules

    @property
    def spent(self) -> bool:
        """True if nothing is left."""
        return self.left <= 0


class Neighbourhood:
    """The tilings that a request allows around a starting point, the tiling of `case`.

    Fields outside `changeable` stay. Rules whose ids are in `without` are left out, except those
    that say what kind of value a changeable field has, unless it is `named`: positive, one of a
    few, whole fractals. What is `wanted` of fields is a rule too, with the id of `asked_id`.
    `known` are the case's `readers`, where they are known.
    """

    def __init__(
        self,
        case: RuleCase,
        changeable: Fields,
        without: Fields = frozenset(),
        wanted: FieldLimits = NO_LIMITS,
        named: Fields = frozenset(),
        rules: tuple[RuleReads, ...] | None = None,
    ) -> None:
        self.case, self.changeable, self.wanted = case, changeable, wanted
        declared = (
            RuleReads(rule.rule, rule.reads & changeable)
            for rule in rules or readers(case)
            if rule.id not in without or says_the_kind(rule, case, changeable - named)
        )
        asked = (
            RuleReads(_asked_rule(name, limits), frozenset({name}) & changeable)
            for name, limits in wanted.fields.items()
        )
        self.readers = (*declared, *asked)
        self.base: Json = base_columns(case.tiling)
        self._domains: dict[str, Domain] = {}

    def moved(self, values: Mapping[str, int]) -> "Neighbourhood":
        """Return this space around another starting point."""
        # Domains and rules do not depend on the starting point and are shared with it; cached
        # properties in `_DERIVED` do, and are left out so that they are computed anew.
        other = Neighbourhood.__new__(Neighbourhood)
        other.__dict__ |= {k: v for k, v in self.__dict__.items() if k not in _DERIVED}
        other.base = self.base | {name: np.array([value]) for name, value in values.items()}
        return other

    @cached_property
    def broken(self) -> tuple[RuleReads, ...]:
        """The rules that the starting point breaks."""
        start = self.judge({})
        return tuple(r for r in self.readers if not np.all(measured(r, start).holds()))

    @cached_property
    def equalities(self) -> frozenset[str]:
        """The ids of rules that hold something to one or two values."""
        start = self.judge({})
        relations = ((r.id, measured(r, start).relation) for r in self.readers)
        return frozenset(name for name, relation in relations if relation in {"==", "in"})

    def judge(self, table: JsonMapping) -> RuleCase:
        """Return the case of the tilings that `table` makes of the starting point."""
        c = self.case
        return RuleCase(
            TilingColumns({**self.base, **table}), c.problem, c.chip, c.edition, c.reading
        )

    def domain(self, name: str) -> Domain:
        """Return the values of a changeable field that the rules about it alone allow."""
        if name not in self._domains:
            alone = tuple(r for r in self.readers if r.reads == {name})
            limits = self.wanted.fields.get(name)
            self._domains[name] = domain(name, self.case, alone, limits)
        return self._domains[name]

    def least(self, name: str) -> int | None:
        """Return the smallest value of a changeable field of `GROWING`; None if it has none.

        A core's share of an axis of which only some lengths are tried may be 1.
        """
        values_of_field = self.domain(name)
        if not len(values_of_field.values):
            return None
        tried = (
            values_of_field.cover is Cover.ALL
            or name in self.wanted.fields
            or name not in SHARED_AXES
        )
        return int(values_of_field.values[0]) if tried else 1

    @cached_property
    def lowered(self) -> "Neighbourhood":
        """The neighbourhood of a starting point with the smallest lengths and counts."""
        least = {name: self.least(name) for name in sorted(GROWING & self.changeable)}
        lowest = {name: value for name, value in least.items() if value is not None}
        return self.moved(lowest | ({FACTORS: PLAIN} if FACTORS in self.changeable else {}))

    @cached_property
    def growing(self) -> frozenset[str]:
        """The ids of the rules that grow, and read nothing but lengths, counts and factors."""
        rules = (r for r in self.readers if r.rule.grows)
        return frozenset(r.id for r in rules if r.reads <= GROWING | {FACTORS})

    def parts(self, fields: Fields) -> tuple[Fields, ...]:
        """Return `fields` in parts such that no rule reads fields of two."""
        # Connected components: fields are joined if a rule reads both, and components that a new
        # field touches become one. Independent parts are explored apart: sums of sizes instead of
        # products.
        parts: list[Fields] = []
        for name in sorted(fields):
            near = {name}.union(*(r.reads & fields for r in self.readers if name in r.reads))
            touching = [part for part in parts if part & near]
            parts = [part for part in parts if part not in touching]
            parts.append(frozenset({name}).union(*touching))
        return tuple(parts)


def says_the_kind(rule: RuleReads, case: RuleCase, about: Fields) -> bool:
    """True if a rule reads one field only, of `about`, and says what kind of value it has."""
    if len(rule.reads) != 1 or not rule.reads <= about:
        return False
    judged = RuleCase(
        TilingColumns(base_columns(case.tiling)),
        case.problem,
        case.chip,
        case.edition,
        case.reading,
    )
    (field,) = rule.reads
    kinds = {">=", "in", "multiple"} if field in BLOCKS else {">=", "in"}
    return measured(rule, judged).relation in kinds


def asked_id(name: str) -> str:
    """Return the id of the rule that holds a field to what is asked of it."""
    return f"asked {name}"


def _asked_rule(name: str, limits: Limits) -> Rule:
    def measure(case: RuleCase) -> Measure:
        """Measure the field: its value where one will do, else whether it will."""
        value, wanted = getattr(case.tiling, name), limits.only
        if wanted is None:
            fits = value % limits.multiple == 0
            if name in SHARED_AXES:
                fits = fits | is_uncut(name, case.tiling)
            value, wanted = fits & (value >= limits.low) & (value <= limits.high), 1
        return Measure(used=value, limit=wanted, relation="==", unit="", terms=lambda: name)

    return Rule(asked_id(name), f"{name} {limits}", (), "the request", measure, "")
