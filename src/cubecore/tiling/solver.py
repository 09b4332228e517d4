"""The solver: every core split, base block and stay in L1 worth looking at, ranked by the cost.

In stages, each over arrays: core splits and base blocks of the best, both cut by an estimate; a few
ways to use L1 for the best blocks, by the closed form; all ways for the best of those.
Every candidate passes the rules that `check_tiling` applies (edition 000, effective).
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import Chip
from cubecore.errors import NoLegalTilingError, Violation
from cubecore.tiling.candidates import Columns, Stay, base_blocks, concatenate, core_splits, stays
from cubecore.tiling.cost import Prediction, cost, lower_bound, predict_all
from cubecore.tiling.estimate import best_splits, promising_blocks
from cubecore.tiling.problem import Problem
from cubecore.tiling.rule_model import Case
from cubecore.tiling.rules import legal_mask, rule_named
from cubecore.tiling.rules_blocks import mdl_k_step_multiple, mdl_step_m, mdl_step_n
from cubecore.tiling.rules_l1 import l1_capacity
from cubecore.tiling.rules_ub import derived_fields
from cubecore.tiling.struct import FIELDS, TCubeTiling
from cubecore.tiling.support import require_plannable, validate
from cubecore.tiling.wanted import NOTHING, SHARED_AXES, Wanted
from cubecore.units import plural

BLOCKS_EXPANDED = 16
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

    def to_json(self) -> dict[str, Any]:
        """Return the public contract's ``{tiling, predicted}``."""
        return {"tiling": self.tiling.to_json(), "predicted": self.predicted.to_json()}


@dataclass(frozen=True)
class Solution:
    """The best tiling found, the next best, a bound that none can beat, and what was judged.

    `alternatives` differ from each other and from `best` in core split or base block. `lower_bound`
    is in cycles, `lower_bound_us` in microseconds (None without a known clock). `judged` counts the
    complete tilings whose cost was computed.
    """

    best: Ranked
    alternatives: tuple[Ranked, ...]
    lower_bound: int
    lower_bound_us: float | None
    judged: int

    @property
    def gap(self) -> float:
        """Predicted cycles over the lower bound."""
        return self.best.predicted.cycles / self.lower_bound


def solve(problem: Problem, chip: Chip, count: int = 5, wanted: Wanted = NOTHING) -> Solution:
    """Return the best tiling for `problem` on `chip` and up to `count` alternatives.

    The same request gives the same answer: ties in predicted cycles have an order. `wanted` narrows
    fields; the lower bound is that of the product without it.

    Raises:
        RequestError: the chip cannot multiply the problem's types, or cubecore cannot plan it yet.
        NoLegalTilingError: no candidate satisfies the rules; names the rule that excluded the most.
    """
    validate(problem, chip)
    require_plannable(problem)
    chip = planned_chip(chip)
    case = Case(None, problem, chip)
    excluded: Counter[str] = Counter()
    splits = core_splits(case, problem.core_count(chip), wanted)
    if wanted.fields:
        splits = splits.take(wanted.of((*SHARED_AXES, "usedCoreNum")).mask(splits))
    if len(splits) == 0:
        raise _no_tiling(case, excluded, wanted)
    blocks = base_blocks(case, best_splits(case, splits), wanted)
    if wanted.fields:
        blocks = blocks.take(wanted.mask(blocks.columns))
    if len(blocks.pair) == 0:
        raise _no_tiling(case, excluded, wanted)
    least = _derived(case, blocks.columns.with_fields(**_LEAST_STAY))
    fits, by_rule = legal_mask(least, problem, chip)
    excluded.update(by_rule)
    if not fits.any():
        raise _no_tiling(case, excluded, wanted)
    blocks = blocks.take(np.flatnonzero(fits))
    promising = blocks.columns.take(promising_blocks(case, blocks))
    found = _search(case, promising, excluded, (count, wanted), strict=False)
    if found is None or not legal_mask(found.tilings, problem, chip)[0].all():
        found = _search(case, promising, excluded, (count, wanted), strict=True)
    if found is None:
        raise _no_tiling(case, excluded, wanted)
    ranked = _ranked(found.tilings, len(found.block), case, plain=not wanted.fields)
    bound = lower_bound(problem, chip)
    return Solution(
        best=ranked[0],
        alternatives=tuple(ranked[1:]),
        lower_bound=bound,
        lower_bound_us=chip.microseconds(bound),
        judged=found.judged,
    )


def _search(
    case: Case,
    blocks: Columns,
    excluded: Counter[str],
    asked: tuple[int, Wanted],
    *,
    strict: bool,
) -> "Judged | None":
    """Return the best tiling over `blocks` and the next best, `asked` for a count; None if none is.

    Every rule is applied to every candidate if `strict`; else those that exclude most, and the
    caller looks at what is found.
    """
    count, wanted = asked
    rough = _judge(case, blocks, excluded, wanted, thorough=False, strict=strict)
    if len(rough.block) == 0:
        return None
    blocks = blocks.take(rough.block[_first_of_each(rough, rough.block, BLOCKS_EXPANDED)])
    fine = _judge(case, blocks, excluded, wanted, thorough=True, strict=strict)
    if len(fine.block) == 0:
        return None
    group = _groups(blocks, ("singleCoreM", "singleCoreN", "baseM", "baseN"))[fine.block]
    picked = _first_of_each(fine, group, count + 1)
    judged = rough.judged + fine.judged
    return Judged(fine.tilings.take(picked), fine.cycles[picked], fine.block[picked], judged)


def planned_chip(chip: Chip) -> Chip:
    """Return the chip that plans are made for: with as much L1 as the vendor's library uses.

    The rules let a given tiling fill L1; a planned one leaves what that library leaves.
    """
    return replace(chip, l1_bytes=chip.l1_user_bytes)


_LEAST_STAY = {
    "stepM": 1,
    "stepN": 1,
    "stepKa": 1,
    "stepKb": 1,
    "depthA1": 1,
    "depthB1": 1,
    "iterateOrder": 0,
}
"""A base block that breaks a rule with one block of A and of B in L1 breaks it with more."""
_L1_RULES = (
    ("L1-CAPACITY", l1_capacity),
    ("MDL-STEP-M", mdl_step_m),
    ("MDL-STEP-N", mdl_step_n),
    ("MDL-K-STEP-MULTIPLE", mdl_k_step_multiple),
)


def _derived(case: Case, columns: Columns) -> Columns:
    """Return `columns` with the fields that follow from the others."""
    return columns.with_fields(**derived_fields(_case(case, columns)))


def _case(case: Case, columns: Columns) -> Case:
    return Case(columns, case.problem, case.chip)


def _holds(
    case: Case, columns: Columns, rules: Any, excluded: Counter[str], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return where `columns` satisfy some rules ahead of the full check, counting exclusions."""
    mask = np.ones(shape, dtype=bool)
    judged = _case(case, columns)
    for name, measure in rules:
        measured = measure(judged)
        if measured is None:
            continue
        holds = np.broadcast_to(measured.holds(), shape)
        excluded[name] += int(mask.size - np.count_nonzero(holds))
        mask &= holds
    return mask


@dataclass(frozen=True)
class Judged:
    """Tilings, their cycles rounded up, and the position of each one's base block.

    `judged` counts the tilings whose cost was computed.
    """

    tilings: Columns
    cycles: NDArray[Any]
    block: NDArray[Any]
    judged: int


def _judge(
    case: Case,
    blocks: Columns,
    excluded: Counter[str],
    wanted: Wanted,
    *,
    thorough: bool,
    strict: bool,
) -> Judged:
    """Return the tilings over `blocks` and their cost; all of them legal if `strict`."""
    a, b = stays(case, blocks, thorough=thorough)
    shape = (len(blocks), a.step.shape[1], b.step.shape[1])
    stay_fields = _stay_fields(a, b)
    spread = {n: x[:, None, None] for n, x in blocks.fields.items() if isinstance(x, np.ndarray)}
    spread_out = _derived(case, Columns(blocks.fields | spread | stay_fields))
    mask = _holds(case, spread_out, _L1_RULES, excluded, shape)
    mask &= a.useful[:, :, None] & b.useful[:, None, :]
    rows, i, j = np.nonzero(mask)
    chosen = {n: np.broadcast_to(x, shape)[rows, i, j] for n, x in stay_fields.items()}
    tilings, block = _ordered(blocks.take(rows).with_fields(**chosen), rows, wanted)
    if len(block) == 0:
        return Judged(tilings, np.zeros(0), block, 0)
    tilings = _derived(case, tilings)
    mask = wanted.mask(tilings)
    if strict:
        legal, by_rule = legal_mask(tilings, case.problem, case.chip)
        excluded.update(by_rule)
        mask = mask & legal
    if not np.all(mask):
        tilings, block = tilings.take(mask), block[mask]
    cycles = np.ceil(cost(tilings, case.problem, case.chip).total)
    return Judged(tilings, cycles, block, len(block))


def _ordered(rows: Columns, block: NDArray[Any], wanted: Wanted) -> tuple[Columns, NDArray[Any]]:
    """Return the rows M first and, where it makes a difference, N first; or as asked."""
    limits = wanted.fields.get("iterateOrder")
    if limits is not None and limits.only is not None:
        return rows.with_fields(iterateOrder=np.full(len(block), limits.only)), block
    m_first = rows.with_fields(iterateOrder=np.zeros_like(block))
    turns = np.nonzero((rows.singleCoreM > rows.baseM) & (rows.singleCoreN > rows.baseN))[0]
    n_first = rows.take(turns).with_fields(iterateOrder=np.ones_like(turns))
    return concatenate([m_first, n_first]), np.concatenate([block, block[turns]])


def _stay_fields(a: Stay, b: Stay) -> dict[str, Any]:
    return {
        "stepM": a.step[:, :, None],
        "stepKa": a.step_k[:, :, None],
        "depthA1": (a.step * a.step_k * a.buffers)[:, :, None],
        "stepN": b.step[:, None, :],
        "stepKb": b.step_k[:, None, :],
        "depthB1": (b.step * b.step_k * b.buffers)[:, None, :],
    }


def _groups(columns: Columns, fields: tuple[str, ...]) -> NDArray[Any]:
    """Return a number for each row: equal where `fields` are."""
    values = np.stack([columns.fields[name] for name in fields], axis=1)
    return np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)


def _first_of_each(judged: Judged, group: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the best row of each group, best group first, at most `count`."""
    least = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(least, group, judged.cycles)
    worst = np.sort(least)[min(count, len(least)) - 1]
    near = np.nonzero((judged.cycles <= worst) & (judged.cycles == least[group]))[0]
    keys = [sign * judged.tilings.fields[name][near] for name, sign in reversed(_TIE_FIELDS)]
    order = near[np.lexsort((*keys, judged.cycles[near]))]
    first = np.sort(np.unique(group[order], return_index=True)[1])
    return order[first[:count]]


def _ranked(columns: Columns, count: int, case: Case, *, plain: bool) -> list[Ranked]:
    """Return the tilings in the rows of `columns` with their predictions.

    `plain` takes back a second buffer in L0C that saves no cycle.
    """
    with_one = columns.with_fields(dbL0C=np.ones_like(columns.dbL0C))
    both = concatenate([columns, with_one]) if plain else columns
    predicted = predict_all(both, len(both), case.problem, case.chip)
    fixed = dict.fromkeys(FIELDS, 0) | dict.fromkeys(BATCH_FIELDS, 1)
    rows = {name: np.broadcast_to(x, len(both)).tolist() for name, x in both.fields.items()}
    made = []
    for row in range(count):
        chosen = row
        if plain and predicted[row + count].cycles == predicted[row].cycles:
            chosen = row + count
        fields = fixed | {name: values[chosen] for name, values in rows.items()}
        made.append(Ranked(TCubeTiling(**fields), predicted[chosen]))
    return made


def _no_tiling(case: Case, excluded: Counter[str], wanted: Wanted) -> NoLegalTilingError:
    """Return the error that names what was asked for and the rule that excluded the most."""
    problem, chip = case.problem, case.chip
    asked = f" with {wanted}" if wanted.fields else ""
    need = f"have a tiling{asked} that satisfies every rule"
    found = f"none on {plural(problem.core_count(chip), 'core')}"
    if excluded:
        worst, count = excluded.most_common(1)[0]
        found = f"none: {worst} ({rule_named(worst).title}) excluded {count} candidates"
    subject = f"{problem.m} x {problem.n} x {problem.k} on {chip.name}"
    return NoLegalTilingError([Violation(subject, need, found)])
