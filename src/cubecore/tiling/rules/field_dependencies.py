"""Fields of a tiling that each rule reads: what may be changed to satisfy a broken rule.

A rule is a function of the fields that it looks at. They are found by letting it measure a tiling
that takes notes; a test holds that no other field makes a difference.
"""

from dataclasses import dataclass

import numpy as np

from cubecore.aliases import Column
from cubecore.tiling.model.tcubetiling import FIELDS, Tilings
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.model import Measure, Rule, RuleCase

GIVEN_FIELDS = frozenset(("M", "N", "Ka", "Kb"))
"""Extents of the problem: never changed."""


@dataclass(frozen=True)
class RuleReads:
    """A rule that has something to say in a case, and the fields that it reads there.

    `reads` leaves out the problem's sizes.
    """

    rule: Rule
    reads: frozenset[str]

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.rule.id


class _Notebook:
    """A tiling in columns of one row that notes which fields are looked at."""

    def __init__(self, tiling: Tilings) -> None:
        self._columns = {n: np.array([getattr(tiling, n)], dtype=np.int64) for n in FIELDS}
        self.noted: set[str] = set()

    def __getattr__(self, name: str) -> Column:
        if name not in FIELDS:
            raise AttributeError(name)
        self.noted.add(name)
        return self.__dict__["_columns"][name]


def readers(case: RuleCase) -> tuple[RuleReads, ...]:
    """Return the rules that measure something in `case`, with what they read."""
    rules_read = []
    for declared in rules():
        book = _Notebook(case.tiling)
        measure = declared.measure(
            RuleCase(book, case.problem, case.chip, case.edition, case.reading)
        )
        if measure is not None:
            measure.holds()
            rules_read.append(RuleReads(declared, frozenset(book.noted) - GIVEN_FIELDS))
    return tuple(rules_read)


def measured(reader: RuleReads, case: RuleCase) -> Measure:
    """Return what a reader's rule measures; the reader is one of the case's."""
    measure = reader.rule.measure(case)
    assert measure is not None, f"{reader.id} has nothing to say where it had"
    return measure
