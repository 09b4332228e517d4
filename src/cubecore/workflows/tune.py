"""tune: a tiling judged and timed, the small changes that help it, and the best plan beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import Unpack

from cubecore.advice.timed_changes import TimedChange, tiling_change
from cubecore.aliases import JsonMapping
from cubecore.answers.check import RepairedFindings
from cubecore.answers.plan import TilingPlan
from cubecore.answers.time import Timed
from cubecore.answers.tune import Tuned
from cubecore.errors import NoLegalTilingError
from cubecore.kernels.matmul.launch import require_supported
from cubecore.kernels.matmul.launch_time import is_known
from cubecore.kernels.runnable import require_timed
from cubecore.planning.event_ranking import timed as event_timed
from cubecore.planning.timed_product import TimedProduct
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.repair.faster import Nearby, nearby
from cubecore.tiling.rules.checker import Findings
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.solver import Ranked
from cubecore.timing.records import Timeline
from cubecore.units import plural
from cubecore.workflows.check import check
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.plan import improved_plan, plan_request
from cubecore.workflows.request import Planned, given_tiling, is_plan, make_request

MOST_FIELDS = 3
"""Fields of a change."""
LEAST_GAIN = 0.005
"""Share of the time that a change of more fields must save beyond those of fewer."""
_TIMED, _WALKED = 16, 4
"""Changes of so many fields that are timed; the second where trees have to be walked."""
_SHOWN = 3


@takes_problem
def tune(
    tiling: TCubeTiling | JsonMapping | Planned,
    problem: Problem | JsonMapping | Planned | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    **keys: Unpack[ProblemKeys],
) -> Tuned:
    """Return whether a tiling is legal, where its time goes, and which small changes help.

    Parameters
    ----------
    tiling : TCubeTiling or mapping or TilingPlan
        The tiling; one that breaks rules is repaired first.
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`; a shape that is not given is the tiling's.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments, for a page.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Tuned
        Findings, timing, changes and the best plan.

    Raises
    ------
    RequestError
        If the tiling or the problem is malformed, or no model times the request.

    Examples
    --------
    >>> plan = cubecore.plan(m=512, n=512, k=512, fix={"baseM": 48})
    >>> tuned = cubecore.tune(plan.tiling, m=512, n=512, k=512)
    >>> tuned.changes[0].what
    'baseM 48 -> 112'
    """
    planned = problem is None and is_plan(tiling)
    request = make_request(tiling if planned else problem, settings, keys, tiling)
    require_timed(request.chip)
    require_supported(request.problem)
    given = given_tiling(tiling, request.problem)
    findings = check(given, request.problem, settings=request.settings)
    if not findings.legal:
        findings = check(given, request.problem, repair=True, settings=request.settings)
    legal = _legal_one(given, findings)
    best = _best_plan(request)
    if legal is None:
        return Tuned(request, given, findings, None, (), best)
    line = TimedProduct(request.problem, legal, request.chip).timed(record=record)
    findings = _as_timed(findings, line)
    changes = tuple(_changes(request, legal, line.cycles))
    best = _at_least(best, legal, line.cycles, changes)
    return Tuned(request, given, findings, Timed(request, legal, line), changes, best)


def _best_plan(request: TilingRequest) -> TilingPlan | None:
    """Return the planner's tiling; None where none is legal."""
    try:
        return plan_request(request, 0)
    except NoLegalTilingError:
        return None


def _at_least(
    best: TilingPlan | None, given: TCubeTiling, cycles: int, changes: Sequence[TimedChange]
) -> TilingPlan | None:
    """Return the plan, or the better one to which a faster tiling beside it leads."""
    near = [(given, cycles), *((one.tiling, one.cycles) for one in changes if one.tiling)]
    tiling, least = min(near, key=lambda entry: entry[1])
    fits = best is not None and next(best.problem.fix.broken(tiling), None) is None
    if best is None or not fits or least >= best.predicted.cycles:
        return best
    return improved_plan(best, tiling, least)


def _legal_one(given: TCubeTiling, findings: Findings) -> TCubeTiling | None:
    """Return the tiling if it is legal, else the nearest legal one."""
    if findings.legal:
        return given
    assert isinstance(findings, RepairedFindings), "a repair was asked for"
    return None if findings.repair is None else findings.repair.tiling


def _as_timed(findings: Findings, line: Timeline) -> Findings:
    """Return findings whose repair has the time of its timeline in place of the closed form's."""
    mended = findings.repair if isinstance(findings, RepairedFindings) else None
    if mended is None or mended.predicted is None:
        return findings
    predicted = replace(mended.predicted, cycles=line.cycles, us=line.us)
    return replace(findings, repair=replace(mended, predicted=predicted))  # type: ignore[call-arg]


def _changes(request: TilingRequest, given: TCubeTiling, cycles: int) -> Iterator[TimedChange]:
    """Yield the best changes of one field, of two, ... where they beat those of fewer."""
    problem, chip = request.problem, request.chip
    count = _TIMED if is_known(problem, chip) else _WALKED
    fewest = cycles
    for number, level in enumerate(nearby(RuleCase(given, problem, chip), MOST_FIELDS), 1):
        ranked = _ranked(request, given, level[:count])
        faster = [one for one in ranked if one.predicted.cycles <= (1 - LEAST_GAIN) * fewest]
        for one in faster[:_SHOWN]:
            yield tiling_change(plural(number, "field"), given, one, cycles)
        if faster:
            fewest = faster[0].predicted.cycles


def _ranked(
    request: TilingRequest, given: TCubeTiling, some: Sequence[Nearby]
) -> tuple[Ranked, ...]:
    """Return the fastest change of each set of fields, those that take as long by nearness."""
    problem, chip = request.problem, request.chip
    first: dict[frozenset[str], tuple[tuple[float, float], Ranked]] = {}
    for one in some:
        prediction = predict(one.tiling, problem, chip)
        ranked = event_timed(Ranked(one.tiling, prediction), problem, chip)
        entry = (ranked.predicted.cycles, _distance(given, one)), ranked
        if one.fields not in first or entry[0] < first[one.fields][0]:
            first[one.fields] = entry
    return tuple(ranked for _, ranked in sorted(first.values(), key=lambda entry: entry[0]))


def _distance(given: TCubeTiling, one: Nearby) -> float:
    """Return by which factors the fields of a change differ, as the sum of their logarithms."""
    pairs = ((getattr(given, name), getattr(one.tiling, name)) for name in one.fields)
    return sum(abs(log((new + 1) / (old + 1))) for old, new in pairs)
