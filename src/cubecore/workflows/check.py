"""check: every rule that a tiling breaks, and the nearest tiling that breaks none."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from cubecore.aliases import JsonMapping
from cubecore.answers.check import RepairedFindings
from cubecore.errors import RequestError, Violation, did_you_mean
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import Findings, check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import Planned, given_tiling, is_plan, make_request

if TYPE_CHECKING:
    from cubecore.tiling.repair.repair import Repair


@takes_problem
def check(
    tiling: TCubeTiling | JsonMapping | Planned,
    problem: Problem | JsonMapping | Planned | None = None,
    *,
    edition: str = "newer",
    reading: str = "effective",
    repair: bool = False,
    keep: Collection[str] = (),
    settings: Mapping[str, str] | None = None,
    **keys: Unpack[ProblemKeys],
) -> Findings:
    """Return every rule that a tiling breaks, with values and remedy, and advice.

    Parameters
    ----------
    tiling : TCubeTiling or mapping or TilingPlan
        The tiling to check; a plan's, for its problem unless one is given.
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    edition : str
        Edition of the TCubeTiling page: newer or older (000 and 001 stand for them).
    reading : str
        effective (what hardware and kernel need) or documented (the page read literally).
    repair : bool
        Find the legal tiling that changes the fewest fields, ties as the planner ranks them.
    keep : collection of str
        Fields that the repair leaves as they are.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Findings
        `RepairedFindings` with `repair`.

    Raises
    ------
    RequestError
        If the tiling or the problem is malformed, their extents differ, the tiling is not as `fix`
        asks, or a name in `keep` is not a field of TCubeTiling.

    Examples
    --------
    >>> tiling = cubecore.plan(m=64, n=64, k=64).tiling
    >>> cubecore.check(tiling, m=64, n=64, k=64).legal
    True
    """
    planned = problem is None and is_plan(tiling)
    request = make_request(tiling if planned else problem, settings, keys, tiling)
    given = given_tiling(tiling, request.problem)
    _require_fields(keep)
    case = RuleCase(given, request.problem, request.chip, edition, reading)
    return _repaired(case, keep, settings) if repair else check_case(case)


def _repaired(
    case: RuleCase, keep: Collection[str], settings: Mapping[str, str] | None
) -> RepairedFindings:
    from cubecore.tiling.repair.repair import repair as find_repair

    mended = find_repair(case, keep)
    conflict = None
    if mended is None:
        from cubecore.planning.narrowing import narrowing
        from cubecore.tiling.repair.infeasibility import find_conflict

        conflict = find_conflict(case, keep, narrowing(case.problem, settings))
    else:
        mended = _timed(mended, case)
    answer = check_case(case)
    return RepairedFindings(answer.findings, answer.advice, mended, conflict, letter=answer.letter)


def _timed(mended: "Repair", case: RuleCase) -> "Repair":
    """Return a repair with the time that `time` says, where it takes the problem."""
    from cubecore.planning.event_ranking import can_be_timed, timed
    from cubecore.tiling.solver.solver import Ranked

    if mended.predicted is None or not can_be_timed(case.problem, case.chip):
        return mended
    ranked = timed(Ranked(mended.tiling, mended.predicted), case.problem, case.chip)
    return replace(mended, predicted=ranked.predicted)


def _require_fields(keep: Collection[str]) -> None:
    violations = [
        Violation("keep", "name fields of TCubeTiling", repr(name), did_you_mean(name, FIELDS))
        for name in keep
        if name not in FIELDS
    ]
    if violations:
        raise RequestError(violations)
