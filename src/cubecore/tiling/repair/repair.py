"""The legal tiling nearest to an illegal one: the fewest changed fields, then the fastest."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from cubecore.aliases import Json
from cubecore.errors import CubecoreError
from cubecore.tiling.cost.closed_form import Prediction, predict
from cubecore.tiling.model.field_limits import NO_LIMITS
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.repair.hitting_set import SEARCH_UNITS, HittingSetSearch, SearchOutcome
from cubecore.tiling.repair.neighbourhood import Neighbourhood, WorkBudget
from cubecore.tiling.repair.ranking import Best, Ranker
from cubecore.tiling.repair.smallest import legal, smallest
from cubecore.tiling.rules.capabilities import require_plannable
from cubecore.tiling.rules.checker import RuleFinding, check_case
from cubecore.tiling.rules.field_dependencies import GIVEN_FIELDS
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.solver import solve_plannable

RANK_UNITS = 12_000_000
"""Work that may be spent on the fastest of the smallest changes, about 0.2 s."""


@dataclass(frozen=True)
class FieldChange:
    """One field's new value, and the rules that break if it alone keeps the old one."""

    field: str
    before: int
    after: int
    findings: tuple[RuleFinding, ...]

    def to_json(self) -> Json:
        """Return the public contract's keys; `rule` and `message` are the first rule's."""
        return {
            "field": self.field,
            "from": self.before,
            "to": self.after,
            "rule": self.findings[0].rule,
            "message": self.findings[0].message,
            "rules": [finding.rule for finding in self.findings],
        }


@dataclass(frozen=True)
class Repair:
    """A legal tiling near a given one.

    `fewest` says whether it is proven that no fewer changed fields do; `fastest` whether it is
    proven that the closed form, by which the planner ranks, has none of as few fields before it.
    `predicted` is None on a chip whose Cube rate is unknown.
    """

    tiling: TCubeTiling
    changes: tuple[FieldChange, ...]
    fewest: bool
    fastest: bool
    predicted: Prediction | None

    def to_json(self) -> Json:
        """Return the public contract's `repaired` and `changed`, and what is proven of them."""
        return {
            "repaired": self.tiling.to_json(),
            "changed": [change.to_json() for change in self.changes],
            "proven": {"fewest": self.fewest, "fastest": self.fastest},
            "predicted": None if self.predicted is None else self.predicted.to_json(),
        }


def repair(case: RuleCase, keep: Collection[str] = ()) -> Repair | None:
    """Return the legal tiling that changes the fewest fields of the case's, ties by predicted time.

    M, N, Ka, Kb and the fields in `keep` are not changed. The same request gives the same answer.
    None if no tiling was found; `cubecore.tiling.repair.infeasibility` says why none is legal.
    """
    # 1. A smallest hitting set of the broken rules says which fields must change; 2. of all sets of
    # that size the ranker takes the fastest combination; 3. if that yields nothing legal, a tiling
    # known to be legal is taken whole.
    space = Neighbourhood(case, frozenset(FIELDS) - GIVEN_FIELDS - frozenset(keep))
    if not space.broken:
        return _repair_of(case, case, fewest=True, fastest=True)
    seed_tilings = cache(lambda: tuple(seeds(case)))
    outcome = HittingSetSearch(space, WorkBudget(SEARCH_UNITS), seed_tilings).run()
    if outcome.impossible:
        return None
    start = case.with_tiling(outcome.forced)
    ranker = Ranker(space.moved(outcome.forced), case.tiling, WorkBudget(RANK_UNITS))
    ranked, fastest = _fastest(ranker, outcome, seed_tilings)
    if ranked is not None:
        repaired = _repair_of(case, start.with_tiling(dict(ranked.values)), outcome.fewest, fastest)
        if repaired is not None:
            return repaired
    for seed in seed_tilings():
        whole = {name: getattr(seed, name) for name in space.changeable}
        repaired = _repair_of(case, case.with_tiling(whole), fewest=False, fastest=False)
        if repaired is not None:
            return repaired
    return None


def seeds(case: RuleCase) -> Iterator[TCubeTiling]:
    """Yield tilings that may be legal: the planner's, and the smallest."""
    with suppress(CubecoreError):
        require_plannable(case.problem)
        yield solve_plannable(case.problem, case.chip, 0, NO_LIMITS).best.tiling
    yield smallest(case)


def _fastest(
    ranker: Ranker, outcome: SearchOutcome, seed_tilings: Callable[[], Iterable[TCubeTiling]]
) -> tuple[Best | None, bool]:
    """Return the fastest of the smallest changes, and whether it is proven to be."""
    proven = outcome.every and outcome.fewest
    best: Best | None = None
    for parts in outcome.smallest_sets:
        if best is not None and ranker.budget.spent:
            proven = False
            break
        candidate, sure = ranker.best(parts)
        proven = proven and sure
        best = candidate if best is None else min(best, candidate)
    if best is None or proven:
        return best, proven
    start = ranker.space.case.with_tiling(outcome.forced)
    for seed in seed_tilings():
        values = {name: getattr(seed, name) for name, _ in best.values}
        if legal(start.with_tiling(values)):
            best = min(best, ranker.rank(values))
    return ranker.improved(best), False


def _findings(case: RuleCase) -> tuple[RuleFinding, ...]:
    return check_case(case).findings


def _repair_of(given: RuleCase, repaired: RuleCase, fewest: bool, fastest: bool) -> Repair | None:
    """Return the repair, changes that nothing needs taken back; None if it is not legal."""
    if not legal(repaired):
        return None
    old = given.tiling.to_json()
    settled = None
    while settled != repaired.tiling:
        settled = repaired.tiling
        for name in FIELDS:
            back = repaired.with_tiling({name: old[name]})
            if back.tiling != repaired.tiling and legal(back):
                repaired = back
    new = repaired.tiling.to_json()
    changes = tuple(
        FieldChange(name, old[name], new[name], _findings(repaired.with_tiling({name: old[name]})))
        for name in FIELDS
        if old[name] != new[name]
    )
    try:
        predicted = predict(repaired.tiling, repaired.problem, repaired.chip)
    except CubecoreError:
        predicted = None
    return Repair(repaired.tiling, changes, fewest, fastest, predicted)
