"""A smallest set of constraints that no tiling satisfies together.

Constraints are the rules, the fields that the user wants kept, and what the request narrows (a
what-if chip's fields, a number of cores). A free field takes any value of its kind: rules that say
the kind (positive, one of a few, whole fractals) are not listed. The set is found by leaving out
one constraint after another as long as the rest still conflicts, so that without any one of those
that remain there is a tiling, which is shown.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from cubecore.aliases import Json
from cubecore.chips import Chip
from cubecore.errors import InfeasibleError, NoLegalTilingError, Violation
from cubecore.tiling.model.field_limits import NO_LIMITS, FieldLimits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.repair.hitting_set import SEARCH_UNITS, HittingSetSearch
from cubecore.tiling.repair.neighbourhood import Neighbourhood, WorkBudget, asked_id, says_the_kind
from cubecore.tiling.repair.smallest import least, smallest
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.field_dependencies import GIVEN_FIELDS, RuleReads, readers
from cubecore.tiling.rules.model import RuleCase

CONFLICT_UNITS = 10_000_000
"""Work that one conflict may cost, about 0.4 s; beyond it the rest is not proven to be needed."""


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

    def to_json(self) -> Json:
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

    def to_json(self) -> Json:
        """Return the constraints and whether each is needed."""
        return {
            "minimal": self.minimal,
            "message": str(self),
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }


@dataclass(frozen=True)
class Narrowing:
    """The constraints of a request, and the problem and chip with some of them only.

    `narrowed` is given the names of those that stay.
    """

    constraints: tuple[Constraint, ...]
    narrowed: Callable[[Collection[str]], tuple[Problem, Chip]]


def _subject(problem: Problem, chip: Chip) -> str:
    return f"{problem.m} x {problem.n} x {problem.k} on {chip.name}"


class ConflictError(NoLegalTilingError):
    """No tiling is legal, and `conflict` says which constraints see to that (exit code 1)."""

    def __init__(self, problem: Problem, chip: Chip, conflict: Conflict) -> None:
        self.conflict = conflict
        *most, last = (constraint.text for constraint in conflict.constraints)
        reason = (
            f"{', '.join(most)} and {last} exclude each other" if most else f"{last} excludes all"
        )
        remedy = "drop any one of them" if most and conflict.minimal else ""
        subject = _subject(problem, chip)
        sentence = f"no legal tiling for {subject}: {reason}"
        super().__init__([Violation(subject, "", "", remedy, sentence)])

    @property
    def rule(self) -> str:
        """The id of the first rule that takes part."""
        return next((c.name for c in self.conflict.constraints if c.kind == "rule"), "")

    def to_json(self) -> Json:
        """Return the conflict beside the message."""
        return super().to_json() | {"rule": self.rule, "conflict": self.conflict.to_json()}


def any_legal(problem: Problem, chip: Chip) -> TCubeTiling | None:
    """Return a legal tiling of a problem whose fields are as it fixes them; None if none is found.

    Raises
    ------
    InfeasibleError
        If it is proven that there is none.
    """
    as_asked = Narrowing((), lambda _: (problem, chip))
    verdict = _deletion(least(problem, chip), (), as_asked, problem.fix).whole()
    if verdict.rules is None:
        return verdict.tiling
    subject = _subject(problem, chip)
    sentence = f"no legal tiling for {subject}"
    raise InfeasibleError([Violation(subject, "", "", sentence=sentence)])


def explained(error: InfeasibleError, narrowing: Narrowing) -> NoLegalTilingError:
    """Return a failure to plan with the constraints that exclude each other.

    Everything that the request narrows is in `narrowing`, but for what its problem asks of fields.
    The same error is returned where the search ends without a proof.
    """
    problem, chip = narrowing.narrowed([constraint.name for constraint in narrowing.constraints])
    conflict = _deletion(least(problem, chip), (), narrowing, problem.fix).run()
    return error if conflict is None else ConflictError(problem, chip, conflict)


def find_conflict(
    case: RuleCase, keep: Collection[str], narrowing: Narrowing, wanted: FieldLimits = NO_LIMITS
) -> Conflict | None:
    """Return why no tiling with the fields in `keep` as in the case's is legal.

    None if one is, or if the search ends without a proof. `wanted` is asked of fields besides.
    """
    return _deletion(case, keep, narrowing, wanted).run()


def _deletion(
    case: RuleCase, keep: Collection[str], narrowing: Narrowing, wanted: FieldLimits
) -> "_Deletion":
    asked = [
        Constraint("field", name, f"{name} {limits}") for name, limits in wanted.fields.items()
    ]
    kept = [
        Constraint("field", name, f"{name} = {getattr(case.tiling, name)}")
        for name in FIELDS
        if name in keep and name not in GIVEN_FIELDS
    ]
    listed = [Constraint("rule", rule.id, f"{rule.id} ({rule.title})") for rule in rules()]
    constraints = (*listed, *kept, *asked, *narrowing.constraints)
    return _Deletion(case, narrowing, wanted, constraints)


@dataclass(frozen=True)
class _Verdict:
    """A tiling that satisfies constraints, or rules that prove that none does, or neither."""

    tiling: TCubeTiling | None
    rules: frozenset[str] | None


class _Deletion:
    """Leaves out constraints one after another."""

    def __init__(
        self,
        case: RuleCase,
        narrowing: Narrowing,
        wanted: FieldLimits,
        constraints: Sequence[Constraint],
    ) -> None:
        self.case, self.narrowing, self.wanted = case, narrowing, wanted
        self.constraints = constraints
        self.units = CONFLICT_UNITS
        self.read: dict[frozenset[str], tuple[RuleCase, tuple[RuleReads, ...]]] = {}

    def whole(self) -> _Verdict:
        """Return the verdict on all constraints together."""
        return self._verdict(self.constraints)

    def run(self) -> Conflict | None:
        """Return the conflict; None if there is none, or none is proven."""
        # Deletion-based search for a minimal unsatisfiable subset. Invariant: `needed` together
        # with all of `pending` is unsatisfiable. A group is left out; if the rest is still
        # unsatisfiable, the proof's own rules say what else may go at once; if not, the group is
        # halved until a single constraint is shown to be needed.
        verdict = self.whole()
        if verdict.rules is None:
            return None
        left = self._charged(self._worth_naming(self.constraints), verdict.rules)
        pending = self._in_turn(left)
        needed: list[Constraint] = []
        minimal = True
        while pending:
            tried = pending.pop(0)
            left = [constraint for group in pending for constraint in group]
            verdict = self._verdict([*needed, *left])
            if verdict.rules is not None:
                charged = {c.name for c in self._charged(left, verdict.rules)}
                pending = [[c for c in group if c.name in charged] for group in pending]
                pending = [group for group in pending if group]
            elif len(tried) > 1:
                half = len(tried) // 2
                pending[:0] = [tried[:half], tried[half:]]
            else:
                minimal = minimal and verdict.tiling is not None
                needed.append(replace(tried[0], without=verdict.tiling))
        order = [constraint.name for constraint in self.constraints]
        return Conflict(tuple(sorted(needed, key=lambda c: order.index(c.name))), minimal)

    def _in_turn(self, constraints: Sequence[Constraint]) -> list[list[Constraint]]:
        """Return the groups that are left out in turn.

        A proof names every rule about one field that it saw; few of them are needed, most likely
        those about cores.
        """
        _, rules_read = self._readers(self.constraints)
        alone = {r.id for r in rules_read if len(r.reads) == 1 and not r.reads & _CORES}
        first = [c for c in constraints if c.name in alone]
        return [*([first] if first else []), *([c] for c in constraints if c.name not in alone)]

    def _worth_naming(self, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Return the constraints without the rules that stay whether they are named or not."""
        free = self._changeable(constraints) - self.wanted.fields.keys()
        _, rules_read = self._readers(constraints)
        kinds = {r.id for r in rules_read if says_the_kind(r, self.case, free)}
        return [c for c in constraints if c.kind != "rule" or c.name not in kinds]

    def _charged(
        self, constraints: Sequence[Constraint], charged: frozenset[str]
    ) -> list[Constraint]:
        """Return the constraints that a proof uses: its rules, what these read, what narrows."""
        _, rules_read = self._readers(self.constraints)
        read = {name for r in rules_read if r.id in charged for name in r.reads}
        return [
            c
            for c in constraints
            if c.kind in {"setting", "request"}
            or not charged.isdisjoint({c.name, asked_id(c.name)})
            or c.name in read
        ]

    def _changeable(self, constraints: Sequence[Constraint]) -> frozenset[str]:
        """Return the fields that are not kept as they are."""
        held = {c.name for c in constraints if c.kind == "field"} - self.wanted.fields.keys()
        return frozenset(FIELDS) - GIVEN_FIELDS - held

    def _readers(self, constraints: Sequence[Constraint]) -> tuple[RuleCase, tuple[RuleReads, ...]]:
        """Return the case with the narrowing in `constraints` only, and who reads what in it."""
        names = frozenset(c.name for c in constraints if c.kind in {"setting", "request"})
        if names not in self.read:
            problem, chip = self.narrowing.narrowed(names)
            case = replace(self.case, problem=problem, chip=chip)
            self.read[names] = case, readers(case)
        return self.read[names]

    def _verdict(self, constraints: Sequence[Constraint]) -> _Verdict:
        # A constraint that is left out is relaxed where it is made: rules are not judged, fields
        # become changeable, limits are not asked for, and settings and requests go back to their
        # defaults (`narrowed`).
        names = {kind: {c.name for c in constraints if c.kind == kind} for kind in _KINDS}
        case, rules_read = self._readers(constraints)
        changeable = self._changeable(constraints)
        without = frozenset(rule.id for rule in rules()) - names["rule"]
        wanted, named = self.wanted.of(names["field"]), frozenset(self.wanted.fields)
        space = Neighbourhood(case, changeable, without, wanted, named, rules_read)
        budget = WorkBudget(min(SEARCH_UNITS, self.units))
        # One budget serves all searches of a deletion: what a search leaves is there for the next
        # ones.
        allowed = budget.left
        outcome = HittingSetSearch(space, budget, lambda: (smallest(case),), first=True).run()
        self.units -= allowed - budget.left
        if outcome.impossible:
            return _Verdict(None, outcome.charged)
        for parts in outcome.smallest_sets:
            values = {name: int(x[0]) for part in parts for name, x in part.legal.items()}
            return _Verdict(case.with_tiling({**outcome.forced, **values}).tiling, None)
        return _Verdict(None, None)


_KINDS = ("rule", "field", "setting", "request")
_CORES = frozenset(("usedCoreNum", "singleCoreK"))
