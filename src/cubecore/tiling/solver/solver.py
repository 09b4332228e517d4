"""The solver: the fastest legal tiling by the closed form, the next best, and what is proven.

The space is that of `candidates`, the search that of `branch_and_bound`.
Every candidate passes the rules that `check_tiling` applies (newer edition, effective).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from cubecore.aliases import Column, Json
from cubecore.arrays import Array, column, keep_freed_memory
from cubecore.chips import Chip
from cubecore.errors import NoLegalTilingError, Violation
from cubecore.tiling.cost.closed_form import (
    Prediction,
    cost,
    lower_bound,
    predict,
    predictions,
)
from cubecore.tiling.model.field_limits import NO_LIMITS, FieldLimits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling, Tilings
from cubecore.tiling.rules.capabilities import require_plannable, validate
from cubecore.tiling.rules.checker import rule_named, rules
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.branch_and_bound import GROUP_FIELDS, SearchResult, TilingSearch
from cubecore.tiling.solver.candidates import BUFFER_FIELDS, TilingColumns, concatenate
from cubecore.tiling.solver.l1_residency import keeps_rules
from cubecore.tiling.solver.refinement import Shortlist, refined
from cubecore.units import FRACTAL_ROWS, INT32_MAX, align_up, ceil_div, plural

BATCH_FIELDS = ("batchM", "batchN", "singleBatchM", "singleBatchN")
_TIE_FIELDS = (
    ("usedCoreNum", 1),
    ("dbL0A", -1),
    ("dbL0B", -1),
    ("iterateOrder", 1),
    ("dbL0C", 1),
    ("singleCoreM", 1),
    ("singleCoreN", 1),
    ("baseM", 1),
    ("baseN", 1),
    ("baseK", 1),
    ("stepM", 1),
    ("stepN", 1),
    ("stepKa", 1),
    ("stepKb", 1),
    ("depthA1", 1),
    ("depthB1", 1),
)
"""Equal predicted cycles are ordered by these fields: smallest first, or largest (-1) first."""


@dataclass(frozen=True)
class Ranked:
    """A legal tiling and what the closed form expects of it."""

    tiling: TCubeTiling
    predicted: Prediction

    def to_json(self) -> Json:
        """Return the public contract's ``{tiling, predicted}``."""
        return {"tiling": self.tiling.to_json(), "predicted": self.predicted.to_json()}


@dataclass(frozen=True)
class Solution:
    """The best tiling found, the next best found, bounds that none can beat, and what was judged.

    `alternatives` differ from each other and from `best` in core split or base block; `variants`
    are other residencies of theirs, of a search that looks closer. `lower_bound`
    is the hardware's, in cycles; `lower_bound_us` in microseconds (None without a known clock).
    `search_bound` is the search's: every candidate that it did not look at takes at least so many
    cycles. `complete` says that this is all of the space, `proven` that besides no candidate is
    faster than `best`.
    `judged` counts the complete tilings of which it was decided whether they are legal and how
    fast they can be.
    """

    best: Ranked
    alternatives: tuple[Ranked, ...]
    lower_bound: int
    lower_bound_us: float | None
    search_bound: int
    complete: bool
    proven: bool
    judged: int
    variants: tuple[Ranked, ...] = ()

    @property
    def gap(self) -> float:
        """Predicted cycles over the lower bound."""
        return self.best.predicted.cycles / self.lower_bound


def solve(
    problem: Problem, chip: Chip, count: int = 5, wanted: FieldLimits = NO_LIMITS
) -> Solution:
    """Return the best tiling for `problem` on `chip` and up to `count` alternatives.

    The same request gives the same answer: ties in predicted cycles have an order. `wanted` narrows
    fields; the lower bound is that of the product without it.

    Raises
    ------
    RequestError
        If the chip cannot multiply the problem's types, or cubecore cannot plan it yet.
    NoLegalTilingError
        If no candidate satisfies the rules; the message names the rule that excluded the most.
    """
    validate(problem, chip)
    require_plannable(problem)
    return solve_plannable(problem, chip, count, wanted)


def solve_plannable(
    problem: Problem,
    chip: Chip,
    count: int,
    wanted: FieldLimits,
    *,
    explained: bool = True,
    refine: bool = False,
    classes: int = 0,
) -> Solution:
    """Return what `solve` does for a problem that is known to be one that can be planned.

    Unless `explained`, the error for an empty answer has no reason. With `refine` the
    tilings are in the order of a closer look than the closed form's, template MDL, and up to
    `classes` more of each class of base blocks are among them.
    """
    keep_freed_memory()
    case = RuleCase(None, problem, chip)
    refine = refine and problem.template == "MDL"
    request = _Request(count + 1, wanted, explained=explained, refine=refine, classes=classes)
    found = None
    if refine and not wanted.fields:
        # A sweep over M asks for the same tiling for up to 16 values: one search serves them.
        found = _found_in_whole_fractals(case, request)
    if found is None:
        found = _search(case, request)
    picked = found.picked
    ranked = _ranked(picked.tilings, case, plain=not wanted.fields and not refine)
    bound = lower_bound(problem, chip)
    reached = max(math.ceil(found.bound), bound)
    best = ranked[0].predicted.cycles
    return Solution(
        best=ranked[0],
        alternatives=tuple(ranked[1 : picked.number]),
        lower_bound=bound,
        lower_bound_us=chip.microseconds(bound),
        search_bound=reached,
        complete=found.complete,
        proven=found.complete and reached >= best,
        judged=found.judged,
        variants=tuple(ranked[picked.number :]),
    )


def single_solution(tiling: TCubeTiling, problem: Problem, chip: Chip) -> Solution:
    """Return a tiling that is known to be legal as the answer; nothing is proven of others."""
    bound = lower_bound(problem, chip)
    least = chip.microseconds(bound)
    best = Ranked(tiling, predict(tiling, problem, chip))
    return Solution(best, (), bound, least, bound, complete=False, proven=False, judged=1)


@dataclass(frozen=True, slots=True)
class _Request:
    """The number of tilings that are asked for, their limits, and how they are looked for."""

    count: int
    wanted: FieldLimits
    explained: bool
    refine: bool
    classes: int

    def search(self, case: RuleCase, *, strict: bool) -> TilingSearch:
        """Return the search for what is asked for."""
        return TilingSearch(
            case,
            self.count - 1,
            self.wanted,
            strict=strict,
            shortlist=self.refine,
        )

    def picked(self, case: RuleCase, result: SearchResult, *, strict: bool = False) -> Shortlist:
        """Return the best tilings of what the search found, with variants if it refines.

        Only legal ones, if that is `strict`.
        """
        if self.refine:
            found = refined(case, result, self.count, self.wanted, self.classes)
            if not strict:
                return found
            rows = np.flatnonzero(column(legal(case, found.tilings), len(found.tilings)))
            if number := int(np.count_nonzero(rows < found.number)):
                return Shortlist(found.tilings.take(rows), number)
        best = result.tilings.take(_best_of_each(result, self.count))
        return Shortlist(best, len(best))


@dataclass(frozen=True, slots=True)
class _Found:
    """The tilings that were picked of what a search found, and what it proved (`SearchResult`)."""

    picked: Shortlist
    bound: float
    complete: bool
    judged: int

    @staticmethod
    def of(result: SearchResult, picked: Shortlist) -> "_Found":
        """Return what was picked, without the rest of what was found."""
        return _Found(picked, result.bound, result.complete, result.judged)


def _found_in_whole_fractals(case: RuleCase, asked: _Request) -> _Found | None:
    """Return the tilings found for as many rows as fill M's last fractal, cut to the problem's.

    None where rows of A^T would be longer, or one would not be legal. A buffer and a matmul take
    whole fractals, so the rows that fill one cost their loads and stores alone. Problems that
    differ in these are searched for once.
    """
    problem = case.problem
    # Searched for whole fractals with a fixed seed: all problems with the same number of fractals
    # ask for the same record and share the kept search.
    rows = align_up(problem.m, FRACTAL_ROWS)
    if problem.trans_a or rows > INT32_MAX:
        return None
    try:
        found = _kept_search(replace(problem, m=rows, seed=0), case.chip, asked)
    except NoLegalTilingError:
        if rows == problem.m:
            raise
        return None
    if rows == problem.m:
        return found
    picked = _cut_to(problem, found.picked)
    kept = np.all(legal(case, picked.tilings))
    return replace(found, picked=picked) if kept else None


@lru_cache(maxsize=256)
def _kept_search(problem: Problem, chip: Chip, asked: _Request) -> _Found:
    """Return what is found for a problem; the latest ones are kept."""
    return _search(RuleCase(None, problem, chip), asked)


def _cut_to(problem: Problem, picked: Shortlist) -> Shortlist:
    """Return tilings for more rows with the problem's; shares that were even still are."""
    t, m = picked.tilings, problem.m
    blocks = ceil_div(t.M, t.singleCoreM)
    # A share that cuts M evenly stays even for fewer rows; others keep their length, and the last
    # block is shorter.
    even = t.singleCoreM == ceil_div(t.M, blocks)
    if problem.launch == "mix":  # whole fractals leave a core's second client fewer rows
        even &= t.singleCoreM % FRACTAL_ROWS != 0
    share = np.minimum(np.where(even, ceil_div(m, blocks), t.singleCoreM), m)
    used = t.usedCoreNum // blocks * ceil_div(m, share)
    return picked._replace(tilings=t.with_fields(M=m, singleCoreM=share, usedCoreNum=used))


def _search(case: RuleCase, asked: _Request) -> _Found:
    """Return what is picked of what the search found.

    Base blocks are held to every rule only if what comes out needs it, as where numbers of buffers
    are asked for that may not fit L0, or if nothing does and it is to be explained.
    """
    wanted = asked.wanted
    # Rules are judged for what comes out, which is much less than all base blocks.
    if not wanted.of(BUFFER_FIELDS).fields:
        search = asked.search(case, strict=False)
        result = search.run()
        if result is not None:
            picked = asked.picked(case, result)
            if np.all(legal(case, picked.tilings)):
                return _Found.of(result, picked)
        elif not asked.explained:
            raise _no_tiling(case, search, wanted)
    search = asked.search(case, strict=True)
    result = search.run()
    if result is None:
        raise _no_tiling(case, search, wanted)
    return _Found.of(result, asked.picked(case, result, strict=True))


def legal(case: RuleCase, tilings: Tilings) -> Column:
    """Return whether tilings keep every rule."""
    judged = replace(case, tiling=tilings)
    return keeps_rules(judged, tuple(declared.measure for declared in rules()))


def _best_of_each(result: SearchResult, count: int) -> Array:
    """Return the best tiling of each core split and base block of C, best first, at most `count`.

    Ties by `_TIE_FIELDS`.
    """
    columns = result.tilings
    order = np.argsort(result.cycles, kind="stable")
    keys = zip(*(getattr(columns, n)[order].tolist() for n in GROUP_FIELDS), strict=True)
    least: dict[tuple[int, ...], float] = {}
    # Rows that are as fast as the last group's best: ties among them are settled below.
    near, last = [], math.inf
    for key, row, cycles in zip(keys, order.tolist(), result.cycles[order].tolist(), strict=True):
        if cycles > last:
            break
        if least.setdefault(key, cycles) == cycles:
            near.append(row)
        if len(least) == count:
            last = cycles
    # np.lexsort sorts by its last key first: cycles, then the tie fields from front to back, hence
    # reversed(). What is largest first is negated.
    rows = np.array(near)
    ties = [sign * getattr(columns, name)[rows] for name, sign in reversed(_TIE_FIELDS)]
    rows = rows[np.lexsort((*ties, result.cycles[rows]))]
    first: dict[tuple[int, ...], int] = {}
    groups = (getattr(columns, name)[rows].tolist() for name in GROUP_FIELDS)
    for row, *group in zip(rows.tolist(), *groups, strict=True):
        first.setdefault(tuple(group), row)
    return np.array(list(first.values())[:count])


def _ranked(columns: TilingColumns, case: RuleCase, *, plain: bool) -> list[Ranked]:
    """Return the tilings in the rows of `columns` with their predictions.

    `plain` takes back a second buffer in L0C that saves no cycle.
    """
    # A second buffer of L0C that gains nothing only takes room: the plainer tiling is the answer.
    with_one = columns.with_fields(dbL0C=np.ones_like(columns.dbL0C))
    both = concatenate([columns, with_one]) if plain else columns
    result, count = cost(both, case.problem, case.chip), len(columns)
    chosen = np.arange(count)
    if plain:
        cycles = np.ceil(np.broadcast_to(result.total, 2 * count))
        chosen = chosen + count * (cycles[count:] == cycles[:count])
    predicted = predictions(result, chosen.tolist(), len(both), case.chip)
    fixed = dict.fromkeys(FIELDS, 0) | dict.fromkeys(BATCH_FIELDS, 1)
    rows = both.take(chosen).fields
    listed = {n: np.broadcast_to(x, count).astype(np.int64).tolist() for n, x in rows.items()}
    return [
        Ranked(TCubeTiling(**fixed | {n: x[row] for n, x in listed.items()}), predicted[row])
        for row in range(count)
    ]


def _no_tiling(case: RuleCase, search: TilingSearch, wanted: FieldLimits) -> NoLegalTilingError:
    """Return the error that names what was asked for and the rule that excluded the most."""
    problem, chip = case.problem, case.chip
    asked = f" with {wanted}" if wanted.fields else ""
    among = " among the likeliest" if search.unexplored_bound < math.inf else ""
    reason = f"none{among} on {plural(problem.core_count(chip), 'core')}"
    if search.excluded:
        worst, count = search.excluded.most_common(1)[0]
        reason = f"{worst} ({rule_named(worst).title}) excludes {count} candidates{among}"
    subject = f"{problem.m} x {problem.n} x {problem.k} on {chip.name}"
    sentence = f"no legal tiling for {subject}{asked}: {reason}"
    return NoLegalTilingError([Violation(subject, "", "", sentence=sentence)])
