"""plan: the best tilings for a problem, and why."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import NoLegalTilingError, RequestError, refuse, unable
from cubecore.lazy_dataclass import dataclass
from cubecore.planning.event_ranking import START_UP, timed_plan, timed_tiling
from cubecore.planning.local_search import STANDARD, LocalSearch, effort_named
from cubecore.presented import Presented
from cubecore.tiling.cost.closed_form import Prediction, start_cycles
from cubecore.tiling.model.core_grid import CoreBlock, problem_blocks
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.advice import Advice, advise_plan
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.solver import Ranked, Solution, planned_chip
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import (
    IllegalTilingError,
    TilingRequest,
    given_tiling,
    make_request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cubecore.planning.timed_product import TimedProduct
    from cubecore.tiling.repair.infeasibility import Narrowing
    from cubecore.workflows.advice.reasons import Reason
    from cubecore.workflows.beside import Beside
    from cubecore.workflows.calibration.intervals import Interval


TIED = 0.02
"""Share of the time within which tilings of a problem are equal: less than a prediction is off."""
LEAST_BEYOND_START = 0.15
"""Share of the time beyond launch and start from which on a padded size is planned as well."""


@dataclass(frozen=True, slots=True)
class TilingPlan(Presented):
    """The best tiling found, its predicted time, and the next best.

    Attributes
    ----------
    lower_bound_us : float
        The least time of any tiling in this model, by the hardware's rates; `gap` is the prediction
        over it.
    search_bound_us : float
        The least time of any tiling in the planner's space.
    proven : bool
        True if a bound excluded every other tiling: none is faster than this one.
    complete : bool
        True if no field's values were left out of the search.
    blocks
        The block of C that each core computes.
    judged : int
        The number of complete tilings that were predicted.
    timed : int
        The number of tilings that the event model timed. The predictions and their order are then
        those of `time`, and the hardware's bound alone holds for them; 0 for a chip or problem that
        `time` does not take, whose predictions are the closed form's.
    advice
        The limits on fields that no tiling could meet, with the reason.
    """

    request: TilingRequest
    tiling: TCubeTiling
    predicted: Prediction
    lower_bound_us: float | None
    gap: float
    search_bound_us: float | None
    complete: bool
    proven: bool
    alternatives: tuple[Ranked, ...]
    blocks: tuple[CoreBlock, ...]
    judged: int
    advice: tuple[Advice, ...] = ()
    timed: int = 0

    @property
    def problem(self) -> Problem:
        """The problem that was planned."""
        return self.request.problem

    @property
    def reasons(self) -> "tuple[Reason, ...]":
        """Causes of the predicted time in words, the dearest first, as `time` has them.

        Where rows of A or B begin off a boundary, and that alone costs little, the size that puts
        them on it is named if the plan for it is faster.
        They are timed when asked for. Where launch and start take most of the time, those that
        need a timeline are left out; where `timed` is 0 there is none.
        """
        if not self.timed:
            return ()
        from cubecore.planning.timed_product import TimedProduct
        from cubecore.workflows.advice.reasons import (
            ROW_STARTS,
            dearest,
            reasons,
            reasons_without_line,
        )

        product = TimedProduct(self.problem, self.tiling, self.request.chip)
        if self.predicted.limited_by == START_UP:
            told = reasons_without_line(product, self.predicted.cycles)
        else:
            told = reasons(product, product.line)
        if any(reason.cause == ROW_STARTS for reason in told):
            return told
        return dearest([*told, *self._padded(product)], self.predicted.cycles)

    @property
    def ties(self) -> int:
        """How many of the alternatives, the first ones, are as fast within the model's error."""
        limit = (1 + TIED) * self.predicted.cycles
        return sum(ranked.predicted.cycles <= limit for ranked in self.alternatives)

    @property
    def beside(self) -> "tuple[Beside, ...]":
        """Plans with split K, another template or padded rows that are over 10 % faster.

        They are made when asked for; none where `timed` is 0.
        """
        from cubecore.workflows.beside import beside

        return beside(self.request, self.tiling, self.predicted.cycles) if self.timed else ()

    def _padded(self, product: "TimedProduct") -> "Iterator[Reason]":
        """Yield the saving of the plan for a size whose rows begin on the boundary.

        A second plan takes longer than it could tell where launch and start are nearly all.
        """
        from cubecore.workflows.advice.reasons import ROW_STARTS, Reason, padded_extents

        beyond_start = self.predicted.cycles - start_cycles(self.request.chip, product.step)
        if beyond_start < LEAST_BEYOND_START * self.predicted.cycles:
            return
        off = padded_extents(product)
        if off is not None:
            text, extents = off
            yield Reason(ROW_STARTS, text, self.predicted.cycles - self._cycles_with(extents))

    def _cycles_with(self, extents: Mapping[str, int]) -> int:
        """Return the cycles of the plan for the problem with other extents; its own if none is."""
        p = self.problem
        m, n, k = (extents.get(axis, own) for axis, own in (("m", p.m), ("n", p.n), ("k", p.k)))
        try:
            request = replace(self.request, problem=replace(p, m=m, n=n, k=k))
            return _solution(request, 0)[0].best.predicted.cycles
        except (NoLegalTilingError, RequestError):
            return self.predicted.cycles

    @property
    def interval(self) -> "Interval | None":
        """The predicted time's interval, as `time` has it; None where `timed` is 0."""
        if not self.timed or self.predicted.us is None:
            return None
        from cubecore.workflows.calibration.intervals import interval

        chip, bits = self.request.chip, self.problem.a_type.bits
        return interval(self.predicted.us, chip.arch, "known", bits)

    def to_json(self, *, reasons: bool = True) -> Json:
        """Return the public contract's object.

        Its reasons, and what lies beside its space, are timed for it, unless left out.
        """
        interval = self.interval
        answer = {
            "problem": self.problem.to_json(),
            "tiling": self.tiling.to_json(),
            "predicted": self.predicted.to_json(),
            "interval": None if interval is None else interval.to_json(),
            "lower_bound_us": self.lower_bound_us,
            "gap": self.gap,
            "search_bound_us": self.search_bound_us,
            "complete": self.complete,
            "proven": self.proven,
            "alternatives": [ranked.to_json() for ranked in self.alternatives],
            "ties": self.ties,
            "cores": [block.to_json() for block in self.blocks],
            "judged": self.judged,
            "timed": self.timed,
            "advice": [advice.to_json() for advice in self.advice],
        }
        if reasons:
            answer["reasons"] = [reason.to_json() for reason in self.reasons]
            answer["beside"] = [one.to_json() for one in self.beside]
        return answer


@takes_problem
def plan(
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    alternatives: int = 5,
    search: str = STANDARD,
    **keys: Unpack[ProblemKeys],
) -> TilingPlan:
    """Return the fastest legal tiling for a problem, and the next best.

    The closed form ranks tilings; those that it puts first are timed event by event, and so are
    changes of one and two fields of the fastest, until none of them is faster: that is the answer.
    Predictions are what `time` says.

    Parameters
    ----------
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    alternatives : int
        How many more tilings to return.
    search : str
        ``quick`` leaves out the changes of the fastest, ``thorough`` looks at more of everything.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    TilingPlan
        The tiling, its predicted time, bounds, alternatives and the block of each core.

    Raises
    ------
    RequestError
        If the problem is malformed, or the chip or cubecore does not support it.
    NoLegalTilingError
        If no tiling satisfies every rule; a `ConflictError` where the constraints that exclude each
        other are known.

    Examples
    --------
    >>> cubecore.plan(m=512, n=512, k=1024).tiling.baseM
    112
    """
    if alternatives < 0:
        raise refuse("alternatives", "be at least 0", alternatives)
    if "exact" in keys:
        raise unable("exact", "exact is gone: every plan is timed event by event")
    effort_named(search)
    return plan_request(make_request(problem, settings, keys), alternatives, search)


def plan_request(request: TilingRequest, alternatives: int, search: str = STANDARD) -> TilingPlan:
    """Return the plan of a request, as `plan` does; raises `NoLegalTilingError` as it does."""
    solution, timed = _solution(request, alternatives, search)
    return TilingPlan(
        request=request,
        tiling=solution.best.tiling,
        predicted=solution.best.predicted,
        lower_bound_us=solution.lower_bound_us,
        gap=solution.gap,
        search_bound_us=request.chip.microseconds(solution.search_bound),
        complete=solution.complete,
        proven=solution.proven,
        alternatives=solution.alternatives,
        blocks=problem_blocks(request.problem, request.chip, solution.best.tiling),
        judged=solution.judged,
        advice=advise_plan(RuleCase(solution.best.tiling, request.problem, request.chip)),
        timed=timed,
    )


def _solution(
    request: TilingRequest, alternatives: int, search: str = STANDARD
) -> tuple[Solution, int]:
    """Return the solution, and how many tilings were timed event by event for it."""

    def narrowed() -> "Narrowing":
        from cubecore.workflows.advice.infeasibility import narrowing

        return narrowing(request.problem, request.settings, planned_chip)

    return timed_plan(request.problem, request.chip, alternatives, narrowed, search)


def improved_plan(plan: TilingPlan, tiling: TCubeTiling, cycles: int) -> TilingPlan:
    """Return the plan that a search from another, faster tiling of known cycles leads to.

    What was the plan is then the first alternative.
    """
    problem, chip = plan.problem, plan.request.chip
    local = LocalSearch(problem, chip, problem.fix, effort_named(STANDARD))
    found, _ = local.run(tiling, cycles)
    best = timed_tiling(found, problem, chip)
    gap = plan.gap * best.predicted.cycles / plan.predicted.cycles
    return replace(
        plan,
        tiling=found,
        predicted=best.predicted,
        gap=gap,
        proven=gap <= 1,
        alternatives=(Ranked(plan.tiling, plan.predicted), *plan.alternatives),
        blocks=problem_blocks(problem, chip, found),
        judged=plan.judged + local.judged,
        timed=plan.timed + len(local.times),
        advice=advise_plan(RuleCase(found, problem, chip)),
    )


def legal_or_planned(
    tiling: TCubeTiling | JsonMapping | None, request: TilingRequest
) -> TCubeTiling:
    """Return the given tiling if it is the problem's and legal; the plan's, if none is given.

    Raises
    ------
    RequestError
        If the tiling is malformed, or its extents or fields differ from those asked for.
    IllegalTilingError
        If the tiling breaks a rule.
    NoLegalTilingError
        If none is given and none satisfies every rule.
    """
    if tiling is None:
        return _solution(request, 0)[0].best.tiling
    given = given_tiling(tiling, request.problem)
    checked = check_case(RuleCase(given, request.problem, request.chip))
    if checked.findings:
        raise IllegalTilingError(checked.findings)
    return given
