"""Why no tiling is legal: a smallest set of constraints that no tiling satisfies together.

Constraints are the rules, the fields that the user wants kept, and what the request narrows (a
what-if chip's fields, a number of cores). A free field takes any value of its kind: rules that say
the kind (positive, one of a few, whole fractals) are not listed. The set is found by leaving out
one constraint after another as long as the rest still conflicts, so that without any one of those
that remain there is a tiling, which is shown.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cubecore.chips import Chip
from cubecore.tiling.nearest import SEARCH_UNITS, Search
from cubecore.tiling.problem import Problem
from cubecore.tiling.reads import GIVEN_FIELDS, readers
from cubecore.tiling.repair import seeds
from cubecore.tiling.rule_model import Case
from cubecore.tiling.rules import rules
from cubecore.tiling.space import Budget, Space
from cubecore.tiling.struct import FIELDS, TCubeTiling


@dataclass(frozen=True)
class Constraint:
    """One of the things that conflict.

    `kind` is ``rule``, ``field`` (kept as the user gave it), ``setting`` (of a what-if chip) or
    ``request`` (a key of the problem). `without` is a tiling that satisfies all the others.
    """

    kind: str
    name: str
    text: str
    without: TCubeTiling | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the parts."""
        without = None if self.without is None else self.without.to_json()
        return {"kind": self.kind, "name": self.name, "text": self.text, "without": without}


@dataclass(frozen=True)
class Conflict:
    """Constraints that no tiling satisfies together.

    `minimal` says whether it is proven that each of them is needed: `without` shows a tiling.
    """

    constraints: tuple[Constraint, ...]
    minimal: bool

    def __str__(self) -> str:
        """Return one sentence."""
        listed = ", ".join(constraint.text for constraint in self.constraints)
        need = "; without any one of them there is one" if self.minimal else ""
        return f"no tiling satisfies together: {listed}{need}"

    def to_json(self) -> dict[str, Any]:
        """Return the constraints and whether each is needed."""
        return {
            "minimal": self.minimal,
            "message": str(self),
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }


@dataclass(frozen=True)
class Narrowing:
    """What a request narrows: constraints, and the problem and chip with some of them only.

    `narrowed` is given the names of those that stay.
    """

    constraints: tuple[Constraint, ...]
    narrowed: Callable[[Collection[str]], tuple[Problem, Chip]]


def find_conflict(case: Case, keep: Collection[str], narrowing: Narrowing) -> Conflict | None:
    """Return why no tiling with the fields in `keep` as in the case's is legal.

    None if one is, or if the search ends without a proof.
    """
    kept = [
        Constraint("field", name, f"{name} = {getattr(case.tiling, name)}")
        for name in FIELDS
        if name in keep and name not in GIVEN_FIELDS
    ]
    listed = [Constraint("rule", rule.id, f"{rule.id} ({rule.title})") for rule in rules()]
    return _Deletion(case, narrowing).run([*listed, *kept, *narrowing.constraints])


@dataclass(frozen=True)
class _Verdict:
    """A tiling that satisfies constraints, or rules that prove that none does, or neither."""

    tiling: TCubeTiling | None
    rules: frozenset[str] | None


class _Deletion:
    """Leaves out constraints one after another."""

    def __init__(self, case: Case, narrowing: Narrowing) -> None:
        self.case, self.narrowing = case, narrowing

    def run(self, constraints: Sequence[Constraint]) -> Conflict | None:
        """Return the conflict; None if there is none, or none is proven."""
        verdict = self._verdict(constraints)
        if verdict.rules is None:
            return None
        left = self._charged(constraints, verdict.rules)
        needed: list[Constraint] = []
        minimal = True
        while left:
            tried = left.pop(0)
            verdict = self._verdict([*needed, *left])
            if verdict.rules is not None:
                left = self._charged(left, verdict.rules)
                continue
            minimal = minimal and verdict.tiling is not None
            needed.append(replace(tried, without=verdict.tiling))
        return Conflict(tuple(needed), minimal)

    def _charged(self, constraints: Sequence[Constraint], charged: Collection[str]) -> list[Any]:
        """Return the constraints that a proof uses: its rules, what these read, what narrows."""
        case = self.case
        read = {name for r in readers(case) if r.id in charged for name in r.reads}
        return [
            c
            for c in constraints
            if c.name in charged or c.kind in {"setting", "request"} or c.name in read
        ]

    def _verdict(self, constraints: Sequence[Constraint]) -> _Verdict:
        names = {kind: {c.name for c in constraints if c.kind == kind} for kind in _KINDS}
        problem, chip = self.narrowing.narrowed(names["setting"] | names["request"])
        case = replace(self.case, problem=problem, chip=chip)
        changeable = frozenset(FIELDS) - GIVEN_FIELDS - names["field"]
        without = frozenset(rule.id for rule in rules()) - names["rule"]
        space = Space(case, changeable, without)
        search = Search(space, Budget(SEARCH_UNITS), lambda: tuple(seeds(case)), first=True)
        outcome = search.run()
        if outcome.impossible:
            return _Verdict(None, outcome.charged)
        for parts in outcome.found:
            values = {name: int(x[0]) for part in parts for name, x in part.legal.items()}
            return _Verdict(case.with_tiling({**outcome.forced, **values}).tiling, None)
        return _Verdict(None, None)


_KINDS = ("rule", "field", "setting", "request")
