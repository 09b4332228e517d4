"""The answers of `plan`: the best tiling with its prediction, and those of many queries."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from cubecore.advice.beside import Beside, beside
from cubecore.advice.intervals import Interval, interval_line
from cubecore.advice.reasons import (
    ROW_STARTS,
    Reason,
    dearest,
    padded_extents,
    reasons,
    reasons_lines,
    reasons_without_line,
)
from cubecore.answers.time import product_interval, tiling_figures, time_legal
from cubecore.errors import NoLegalTilingError, RequestError
from cubecore.planning.event_ranking import START_UP, plan_of
from cubecore.planning.timed_product import TimedProduct
from cubecore.presented import Presented
from cubecore.presented.text import duration, number, table
from cubecore.reports.timelines import RECORDED
from cubecore.tiling.cost.closed_form import Prediction, start_cycles
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cubecore.aliases import Json
    from cubecore.presented import Figures
    from cubecore.tiling.model.core_grid import CoreBlock
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.tiling.rules.advice import Advice
    from cubecore.tiling.solver.solver import Ranked

_MAP_LIMIT = 16
SHOWN_BROKEN = 20
"""Broken lines that are named on standard error; the answers name all."""
_PROBLEM = ("chip", "m", "n", "k", "batch", "a", "b", "c", "trans_a", "trans_b", "format_b")
QUERY_COLUMNS = (
    *("line", "label", *_PROBLEM, "us", "cycles", "lower_bound_us", "limited_by"),
    *(*PLANNED_FIELDS, "error"),
)
"""Columns of the table of answers to queries."""


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
    def reasons(self) -> tuple[Reason, ...]:
        """Causes of the predicted time in words, the dearest first, as `time` has them.

        Where rows of A or B begin off a boundary, and that alone costs little, the size that puts
        them on it is named if the plan for it is faster.
        They are timed when asked for. Where launch and start take most of the time, those that
        need a timeline are left out; where `timed` is 0 there is none.
        """
        if not self.timed:
            return ()
        product = TimedProduct(self.problem, self.tiling, self.request.chip)
        if self.predicted.limited_by == START_UP:
            explained = reasons_without_line(product, self.predicted.cycles)
        else:
            explained = reasons(product, product.line)
        if any(reason.cause == ROW_STARTS for reason in explained):
            return explained
        return dearest([*explained, *self._padded(product)], self.predicted.cycles)

    @property
    def ties(self) -> int:
        """The number of first alternatives that are as fast within the model's error."""
        limit = (1 + TIED) * self.predicted.cycles
        return sum(ranked.predicted.cycles <= limit for ranked in self.alternatives)

    @property
    def beside(self) -> tuple[Beside, ...]:
        """Plans with split K, another template or padded rows that are over 10 % faster.

        They are made when asked for; none where `timed` is 0.
        """
        return beside(self.request, self.tiling, self.predicted.cycles) if self.timed else ()

    def _padded(self, product: TimedProduct) -> Iterator[Reason]:
        """Yield the saving of the plan for a size whose rows begin on the boundary.

        A second plan takes longer than it could tell where launch and start are nearly all.
        """
        beyond_start = self.predicted.cycles - start_cycles(self.request.chip, product.step)
        if beyond_start < LEAST_BEYOND_START * self.predicted.cycles:
            return
        off = padded_extents(product)
        if off is not None:
            text, extents = off
            yield Reason(ROW_STARTS, text, self.predicted.cycles - self._cycles_with(extents))

    def _cycles_with(self, extents: Mapping[str, int]) -> int:
        """Return the cycles of the plan for the problem with other sizes; its own if none is."""
        p = self.problem
        m, n, k = (extents.get(axis, own) for axis, own in (("m", p.m), ("n", p.n), ("k", p.k)))
        try:
            solution, _ = plan_of(replace(self.request, problem=replace(p, m=m, n=n, k=k)), 0)
        except (NoLegalTilingError, RequestError):
            return self.predicted.cycles
        return solution.best.predicted.cycles

    @property
    def interval(self) -> Interval | None:
        """The predicted time's interval, as `time` has it; None where `timed` is 0."""
        if not self.timed or self.predicted.us is None:
            return None
        return product_interval(self.predicted.us, self.request)

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

    @property
    def text(self) -> str:
        """The tiling, its prediction with causes, alternatives and the map of cores."""
        p = self.predicted
        lines = [problem_line(self.request), "", "Tiling", *tiling_lines(self.tiling), ""]
        lines[-1:] = [*_capped(self.request), ""]
        bound = f"{self.gap:.2f} times what no tiling can beat"
        if self.lower_bound_us is not None:
            least = duration(self.lower_bound_us)
            bound = f"no tiling can be under {least} ({self.gap:.2f} times)"
        lines.append(f"Predicted {_duration(p.us, p.cycles)}, limited by {p.limited_by}; {bound}")
        if self.interval is not None:
            lines.append(interval_line(self.interval))
        lines.append(self._proof)
        if p.not_modelled:
            lines.append(
                f"This leaves out {plural(len(p.not_modelled), 'cost')} that no source gives for "
                f"this chip: cubecore chips {self.request.chip.name} names them"
            )
        lines += [f"Advice {advice.id}: {advice.message}" for advice in self.advice]
        if reasons := self.reasons:
            lines += ["", *reasons_lines(reasons, p.cycles)]
        if others := self.beside:
            lines += ["", "Faster beside what was asked for"]
            for one in others:
                lines += [f"  {number(one.us)} us, {one.saves:.0%} less: {one.what}"]
                lines += [f"    {one.command}"]
        if self.alternatives:
            rows = [_ranked_row(i, one) for i, one in enumerate(self.alternatives, 2)]
            head = ("", "us", "cores", "singleCore M x N", "base M x N x K", "by")
            lines += ["", f"Alternatives{self._ties}", *table([head, *rows])]
        return "\n".join([*lines, "", "Cores", *core_map(self.blocks)]) + "\n"

    @property
    def _ties(self) -> str:
        """The number of alternatives that are as fast within the model's error."""
        if not self.ties:
            return ""
        first = "the first is" if self.ties == 1 else f"the first {self.ties} are"
        return f": {first} equal to it within the model's error, {TIED:.0%}"

    @property
    def _proof(self) -> str:
        """The sentence about what the search excludes."""
        from cubecore.tiling.solver.branch_and_bound import COARSE

        bound, us = self.search_bound_us, self.predicted.us
        if self.timed:
            among = f"Timed event by event, the fastest of {plural(self.timed, 'tiling')}"
            proof = ": no tiling can be faster" if self.proven else "; not proven"
            return among + proof
        if self.proven:
            return "Proven: lower bounds exclude every other tiling that the planner knows"
        if bound is None or us is None:
            return "Not proven to be the fastest that the planner knows"
        if not self.complete and bound >= us:
            return "Not proven: nothing that was looked at is faster, but some values were left out"
        if self.complete and bound >= (1 - COARSE) * us:
            what = "no other tiling that the planner knows is faster by more"
            return f"Proven to {COARSE:.1%}: {what}"
        return f"Not proven: what was not looked at may take {duration(bound)}"

    def to_rows(self) -> list[Json]:
        """Return a row for each tiling, the best first."""
        best = (self.tiling, self.predicted)
        ranked = [best, *((r.tiling, r.predicted) for r in self.alternatives)]
        return [
            {"us": p.us, "cycles": p.cycles, "limited_by": p.limited_by, **tiling.to_json()}
            for tiling, p in ranked
        ]

    def _figures(self) -> Figures:
        best = self.predicted
        time = duration(best.us) if best.us is not None else f"{best.cycles:,} cycles"
        figures = [("predicted", time), ("limited by", best.limited_by)]
        return problem_line(self.request), [*figures, *tiling_figures(self.tiling)]

    def _picture(self) -> str:
        from cubecore.reports.html.core_map import grid

        return grid(self.blocks)

    def _page(self) -> str:
        return time_legal(self.request, self.tiling, RECORDED).page()


def _ranked_row(place: int, ranked: Ranked) -> Sequence[object]:
    """Return an alternative as a row."""
    t, predicted = ranked.tiling, ranked.predicted
    return (
        place,
        number(predicted.us),
        t.usedCoreNum,
        f"{t.singleCoreM} x {t.singleCoreN}",
        f"{t.baseM} x {t.baseN} x {t.baseK}",
        predicted.limited_by,
    )


_SELDOM = (
    ("transLength",),
    ("mxTypePara",),
    ("BatchNum",),
    *(tuple(f"{x}LayoutInfo{axis}" for axis in "BSNGD") for x in "AB"),
    tuple(f"CLayoutInfo{axis}" for axis in ("B", "S1", "N", "G", "S2")),
)
"""Fields that are shown where one of their line is not 0."""


def tiling_lines(tiling: TCubeTiling) -> list[str]:
    """Return the fields that a kernel author sets, grouped."""
    groups = (
        ("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK"),
        ("baseM", "baseN", "baseK", "iterateOrder"),
        ("stepM", "stepN", "stepKa", "stepKb"),
        ("depthA1", "depthB1", "dbL0A", "dbL0B"),
        ("dbL0C", "isBias"),
        *_SELDOM,
    )
    named = [g for g in groups if g not in _SELDOM or any(getattr(tiling, n) for n in g)]
    return ["  " + "  ".join(f"{n} {getattr(tiling, n):<7}" for n in g).rstrip() for g in named]


def _capped(request: TilingRequest) -> list[str]:
    """Return the line about cores that were asked for and that the chip does not have."""
    asked, most = request.problem.cores, request.problem.core_limit(request.chip)
    if asked is None or asked <= most:
        return []
    return [f"{asked} cores were asked for; {request.chip.name} has {most}"]


def _duration(us: float | None, cycles: int) -> str:
    return f"{cycles:,} cycles" if us is None else f"{duration(us)} ({cycles:,} cycles)"


def core_map(blocks: Sequence[CoreBlock]) -> list[str]:
    """Return which core computes which block of C, as a grid with M downwards.

    Several cores share a block where K is split, or compute it for different matrices of a batch.
    """
    rows = sorted({b.m0 for b in blocks})
    columns = sorted({b.n0 for b in blocks})
    if len(rows) > _MAP_LIMIT or len(columns) > _MAP_LIMIT:
        first, last = blocks[0], blocks[-1]
        return [
            f"  {plural(len(blocks), 'core')}: {len(rows)} x {len(columns)} blocks of "
            f"{first.m_len} x {first.n_len}, the last {last.m_len} x {last.n_len}"
        ]
    at: dict[tuple[int, int], str] = {}
    for block in blocks:
        corner = (block.m0, block.n0)
        at[corner] = f"{at[corner]},{block.core}" if corner in at else str(block.core)
    heads = ["rows \\ columns", *(f"{n0}.." for n0 in columns)]
    body = [[f"{m0}..", *(at.get((m0, n0), "") for n0 in columns)] for m0 in rows]
    return table([heads, *body])


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """One answer of a sweep.

    Attributes
    ----------
    line : int
        The number of the question from 1; in a file, the line's.
    text : str
        The answer as one line of JSON, with the question's label where it has one.
    planned : bool
        True if the answer is a plan.
    label : str or None
        The question's ``label``.
    stored : bool
        True if it came from a store.
    error : RequestError or None
        The reason for which a malformed question has no plan.
    """

    line: int
    text: str = field(repr=False)
    planned: bool
    stored: bool
    error: RequestError | None
    label: str | None = None

    def to_json(self) -> Json:
        """Return a plan's keys, or ``{problem, error {rule, message}}``."""
        record: Json = json.loads(self.text)
        return record

    def to_row(self) -> Json:
        """Return the row of the table: the question, the time and the tiling's fields."""
        answer = self.to_json()
        predicted = answer.get("predicted") or {}
        return {
            **(answer.get("problem") or {}),
            "line": self.line,
            "label": answer.get("label"),
            **{name: predicted.get(name) for name in ("us", "cycles", "limited_by")},
            "lower_bound_us": answer.get("lower_bound_us"),
            **(answer.get("tiling") or {}),
            "error": (answer.get("error") or {}).get("message"),
        }


@dataclass(slots=True)
class SweepTally:
    """The count of a sweep's answers as they come.

    `resumed` were there from an earlier run, `planned_before` of them plans.
    """

    queries: int
    resumed: int = 0
    planned_before: int = 0
    planned: int = 0
    without_tiling: int = 0
    broken: int = 0
    from_store: int = 0
    complaints: list[str] = field(default_factory=list)
    begin: float = field(default_factory=perf_counter)

    def add(self, answer: QueryAnswer) -> None:
        """Count an answer."""
        self.planned += answer.planned
        self.from_store += answer.stored
        if answer.error is not None:
            self.broken += 1
            if self.broken <= SHOWN_BROKEN:
                lines = str(answer.error).splitlines()
                self.complaints += [f"{answer.line}: {line}" for line in lines]
        elif not answer.planned:
            self.without_tiling += 1

    @property
    def done(self) -> int:
        """Return the number of queries that have an answer."""
        return self.resumed + self.planned + self.without_tiling + self.broken

    @property
    def every_one_planned(self) -> bool:
        """True if every query has a plan."""
        return self.planned + self.planned_before == self.queries

    def to_json(self) -> Json:
        """Return the counts and the seconds since the start."""
        return {
            "queries": self.queries,
            "planned": self.planned,
            "without_tiling": self.without_tiling,
            "broken": self.broken,
            "from_store": self.from_store,
            "resumed": self.resumed,
            "wall_s": perf_counter() - self.begin,
        }

    def to_rows(self) -> list[Json]:
        """Return one row."""
        return [self.to_json()]

    @property
    def text(self) -> str:
        """The counts in a few lines."""
        wall = perf_counter() - self.begin
        lines = [f"{self.planned:,} of {self.queries:,} planned in {wall:.1f} s"]
        for count, what in (
            (self.resumed, "were there from an earlier run"),
            (self.from_store, "were in the store"),
            (self.without_tiling, "have no plan"),
            (self.broken, "make no sense"),
        ):
            if count:
                lines.append(f"  {count:,} {what}")
        return "\n".join(lines) + "\n"

    def complaint_lines(self, path: str) -> Iterator[str]:
        """Yield a line for each of the first broken queries, and how many more there are."""
        yield from (f"{path}:{text}" for text in self.complaints)
        if self.broken > SHOWN_BROKEN:
            more = plural(self.broken - SHOWN_BROKEN, "more line")
            yield f"{path}: {more} like these; the answers name them"
