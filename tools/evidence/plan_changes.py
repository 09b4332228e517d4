"""Plans beside one- and two-field changes of theirs, and beside the vendor's answers.

`python -m tools.evidence.plan_changes free 300` draws shapes, types, chips and launches; with
`fixed` one to three fields are asked for besides. Of each plan the legal changes of one field are
timed, and of the legal changes of two those that the closed form or the walk of chunks has first
and some drawn ones; none whose busiest pipe alone takes `BUSY` times as long as the plan.
`usedCoreNum` follows shares.

`answers` plans each product for which the record (`tests/data`) has a legal answer that can be
timed, and times both; `others 301` draws such answers with other extents, to which their tilings
are cut: as many cores along each axis, the same base blocks and steps.

Prints one JSON object a line, the last a summary. The same arguments give the same lines, and draws
are independent: `--first` begins with a later one.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import cubecore
from cubecore.answers.plan import TilingPlan
from cubecore.arrays import column
from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.planning.event_ranking import can_be_timed, timed_plan, timed_tiling
from cubecore.tiling.cost.chunk_columns import least_cycles
from cubecore.tiling.cost.chunk_walk import walked_cycles
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.tiling.solver.l1_residency import with_derived_fields
from cubecore.tiling.solver.refinement import measured
from cubecore.tiling.solver.solver import legal
from cubecore.units import ceil_div

CHIPS = ("Ascend910B3", "Ascend910B1", "Ascend910_9392", "Ascend950PR_9589")
TYPES = ("float16", "float16", "bfloat16", "int8", "float32")
SLACK, ANSWER_SLACK = 0.005, 0.01
"""Share of a plan's time by which a change of it, and a vendor's answer, may be faster."""
LIKELIEST, DRAWN = 40, 40
"""Changes of two fields that are timed: of each ranking, and drawn."""
BUSY = 1.05
"""Times a plan's time: changes whose busiest pipe alone takes longer are not timed."""
STEPS = (*range(1, 17), 20, 24, 32)
FIXABLE = ("singleCoreM", "singleCoreN", "baseM", "baseN", "baseK", "stepKa", "stepKb")
FIXABLE += ("depthA1", "depthB1", "dbL0C", "iterateOrder", "stepM", "stepN")
ATTEMPTS = 40
"""Draws of fields until a legal tiling has them."""


def shape(rng: random.Random) -> dict[str, Any]:
    """Return a drawn product."""

    def extent() -> int:
        kinds = (rng.randint(1, 300), 2 ** rng.randint(4, 12), rng.randint(1, 5000))
        return rng.choice((*kinds, 128 * rng.randint(1, 32)))

    chip = rng.choice(CHIPS)
    older = chip.startswith("Ascend910")
    kind = rng.choice(TYPES)
    return {
        **{axis: extent() for axis in "mnk"},
        "chip": chip,
        "a": kind,
        "trans_a": older and kind != "float32" and rng.random() < 0.3,
        "trans_b": rng.random() < 0.5,
        "launch": "mix" if older and rng.random() < 0.15 else "cube",
    }


def fixed_fields(rng: random.Random, problem: Problem) -> dict[str, int]:
    """Return one to three fields with drawn values."""
    cores = problem.core_count(problem.chip_record)

    def value(name: str) -> int:
        if name.startswith("singleCore"):
            extent = getattr(problem, name[-1].lower())
            return int(ceil_div(extent, rng.randint(1, cores)))
        if name.startswith("base"):
            return 16 * rng.randint(1, 16)
        if name in {"dbL0C", "iterateOrder"}:
            return rng.randint(0, 1) + (name == "dbL0C")
        return rng.randint(1, 2) if name in {"stepM", "stepN"} else rng.choice(STEPS)

    return {name: value(name) for name in rng.sample(FIXABLE, rng.randint(1, 3))}


def drawn_plan(kind: str, seed: int, number: int) -> TilingPlan:
    """Return the plan of a drawn product, in a drawn space if `kind` is "fixed"."""
    rng = random.Random(f"{kind} {seed} {number}")  # noqa: S311 - shapes, not secrets
    for _ in range(ATTEMPTS):
        asked = shape(rng)
        fix = fixed_fields(rng, Problem.from_json(asked)) if kind == "fixed" else {}
        try:
            return cubecore.plan(asked, fix=fix)
        except CubecoreError:
            continue
    raise AssertionError(f"{ATTEMPTS} draws of {kind} {seed} {number} have no legal tiling")


def values_of(plan: TilingPlan) -> dict[str, Sequence[int]]:
    """Return the values of each field that a change gives it."""
    t, p = plan.tiling, plan.problem
    cores = p.core_count(plan.request.chip)
    values: dict[str, Sequence[int]] = {
        **dict.fromkeys(("baseM", "baseN"), (*range(16, 641, 16), *range(704, 2049, 64))),
        "baseK": range(16, 513, 16),
        **dict.fromkeys(("stepKa", "stepKb", "depthA1", "depthB1"), STEPS),
        **dict.fromkeys(("stepM", "stepN"), (1, 2, 3, 4)),
        **dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), (1, 2)),
        "iterateOrder": (0, 1),
    }
    for axis, extent in (("M", p.m), ("N", p.n)):
        plain = {int(ceil_div(extent, count)) for count in range(1, cores + 1)}
        whole = {int(16 * ceil_div(share, 16)) for share in plain}
        shares = {share for share in plain | whole if share <= extent}
        values[f"singleCore{axis}"] = sorted(shares)
    return {name: [x for x in some if x != getattr(t, name)] for name, some in values.items()}


def changed(plan: TilingPlan) -> tuple[TilingColumns, int]:
    """Return the changes of one field, so many, and behind them those of two, legal or not."""
    t, p, values = plan.tiling, plan.problem, values_of(plan)
    names = list(values)
    field = np.repeat(np.arange(len(names)), [len(values[n]) for n in names])
    value = np.array([x for n in names for x in values[n]], dtype=float)
    first, second = np.nonzero(field[:, None] < field)
    count = len(field) + len(first)
    columns = {n: np.full(count, float(getattr(t, n))) for n in FIELDS}
    every = np.arange(count)
    for index, name in enumerate(names):
        for of, rows in ((np.arange(len(field)), 0), (first, len(field)), (second, len(field))):
            ours = field[of] == index
            columns[name][every[rows : rows + len(of)][ours]] = value[of[ours]]
    blocks = ceil_div(p.m, columns["singleCoreM"]) * ceil_div(p.n, columns["singleCoreN"])
    columns["usedCoreNum"] = blocks * ceil_div(p.k, columns["singleCoreK"])
    return TilingColumns(columns), len(field)


def legal_changes(plan: TilingPlan) -> tuple[RuleCase, TilingColumns, int]:
    """Return the legal changes within what is asked for, and how many are of one field."""
    p = plan.problem
    columns, singles = changed(plan)
    kept = np.flatnonzero(p.fix.mask(columns)) if p.fix.fields else np.arange(len(columns))
    case = RuleCase(columns.take(kept), p, plan.request.chip)
    columns = with_derived_fields(case).tiling
    rows = np.flatnonzero(column(legal(case, columns), len(kept)))
    return case, columns.take(rows), int(np.count_nonzero(kept[rows] < singles))


@dataclass(frozen=True)
class Held:
    """A plan beside its fastest change that was timed; `share` is how much faster that is."""

    plan: TilingPlan
    share: float
    change: dict[str, list[int]]
    timed: int
    legal: int

    def line(self, number: int) -> dict[str, Any]:
        """Return the line of the answer."""
        p = self.plan.problem
        told = f"{p.m}x{p.n}x{p.k} {p.a}{' A^T' * p.trans_a}{' B^T' * p.trans_b} {p.launch}"
        return {
            "number": number,
            "problem": f"{told} {p.chip}",
            "fix": {n: limits.only for n, limits in p.fix.fields.items()},
            "cycles": self.plan.predicted.cycles,
            "faster": round(self.share, 5),
            "change": self.change,
            "legal": self.legal,
            "timed": self.timed,
        }


def held(plan: TilingPlan, rng: random.Random) -> Held:
    """Return a plan beside its fastest change."""
    case, t, singles = legal_changes(plan)
    p, chip, own = plan.problem, plan.request.chip, plan.predicted.cycles
    values = measured(case, t)
    near = np.flatnonzero(least_cycles(case, values) <= BUSY * own)
    rows, pairs = set(near[near < singles].tolist()), near[near >= singles]
    if len(pairs):
        closed = np.broadcast_to(cost(t, p, chip).total, len(t))[pairs]
        walked = walked_cycles(case, {n: x[pairs] for n, x in values.items()}, 96)
        for ranking in (closed, walked):
            rows |= set(pairs[np.argsort(ranking, kind="stable")[:LIKELIEST]].tolist())
        rows |= set(rng.sample(pairs.tolist(), min(DRAWN, len(pairs))))
    table = {n: np.broadcast_to(x, len(t)) for n, x in t.fields.items()}
    best, fewest = plan.tiling, own
    for row in sorted(rows):
        new = TCubeTiling(**{n: int(x[row]) for n, x in table.items()})
        time = launch_time(p, new, chip, fewest - 1)
        if time is not None and time.cycles < fewest:
            assert not check_tiling(new, p, chip).findings
            best, fewest = new, time.cycles
    change = {
        n: [getattr(plan.tiling, n), getattr(best, n)]
        for n in FIELDS
        if getattr(plan.tiling, n) != getattr(best, n)
    }
    return Held(plan, 1 - fewest / own, change, len(rows), len(t))


def draws(kind: str, seed: int, first: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of so many draws."""
    for number in range(first, first + count):
        rng = random.Random(f"changes {kind} {seed} {number}")  # noqa: S311 - a sample
        yield held(drawn_plan(kind, seed, number), rng).line(number)


@dataclass(frozen=True)
class Answered:
    """A product with a tiling that the vendor's library gave, or one like it."""

    name: str
    problem: Problem
    chip: Chip
    theirs: TCubeTiling

    def line(self, number: int) -> dict[str, Any]:
        """Return the line of the answer: how much longer theirs takes than our plan."""
        ours, _ = timed_plan(self.problem, self.chip, 0)
        own = ours.best.predicted.cycles
        theirs = timed_tiling(self.theirs, self.problem, self.chip).predicted.cycles
        faster = round(1 - theirs / own, 5)
        return {"number": number, "answer": self.name, "cycles": own, "faster": faster}


def answers() -> list[Answered]:
    """Return the record's legal answers that can be timed."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from tiling.reference import answered

    return [
        Answered(record["id"], p, soc, tiling)
        for record, p, soc, tiling in answered()
        if record.get("return_code") == 0
        and p.kb in {None, p.k}
        and not tiling.mismatches(*p.extents)
        and can_be_timed(p, soc)
        and is_legal(tiling, p, soc)
    ]


def is_legal(tiling: TCubeTiling, problem: Problem, chip: Chip) -> bool:
    """Return whether a tiling breaks no rule; false where the product itself is refused."""
    try:
        return check_tiling(tiling, problem, chip).legal
    except CubecoreError:
        return False


def other(seed: int, number: int, known: Sequence[Answered]) -> Answered:
    """Return a drawn answer with other extents, to which its tiling is cut."""
    rng = random.Random(f"others {seed} {number}")  # noqa: S311 - shapes, not secrets
    while True:
        like = rng.choice(known)
        t, p = like.theirs, like.problem
        extents = {axis: _other_extent(rng, getattr(p, axis)) for axis in "mnk"}
        problem = replace(p, **extents)
        new = _cut(t, problem)
        if is_legal(new, problem, like.chip) and can_be_timed(problem, like.chip):
            shape = "x".join(str(extents[axis]) for axis in "mnk")
            return Answered(f"{like.name} as {shape}", problem, like.chip, new)


def _other_extent(rng: random.Random, extent: int) -> int:
    """Return another extent: some times a given one, in whole fractals or not."""
    scaled = extent * rng.choice((0.5, 0.75, 1, 1.25, 1.5, 2, 3))
    if rng.random() < 0.7:
        return int(max(16 * round(scaled / 16), 16))
    return max(int(scaled) + rng.randint(-15, 15), 1)


def _cut(t: TCubeTiling, problem: Problem) -> TCubeTiling:
    """Return a tiling with the same cores along each axis, for another product."""
    m, n, k = problem.m, problem.n, problem.shared_k
    share_m, share_n = (
        min(int(ceil_div(ceil_div(extent, blocks), 16) * 16), extent)
        for extent, blocks in (
            (m, ceil_div(t.M, t.singleCoreM)),
            (n, ceil_div(t.N, t.singleCoreN)),
        )
    )
    return replace(
        t,
        M=m,
        N=n,
        Ka=k,
        Kb=k,
        singleCoreM=share_m,
        singleCoreN=share_n,
        singleCoreK=k,
        usedCoreNum=int(ceil_div(m, share_m) * ceil_div(n, share_n)),
    )


def lines(kind: str, seed: int, first: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of a kind of evidence."""
    if kind in {"free", "fixed"}:
        yield from draws(kind, seed, first, count)
        return
    known = answers()
    for number in range(first, first + count):
        if kind == "others":
            yield other(seed, number, known).line(number)
        elif number < len(known):
            yield known[number].line(number)


def summary(kind: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many plans are behind, and by how much at most."""
    slack = SLACK if kind in {"free", "fixed"} else ANSWER_SLACK
    most = max(row["faster"] for row in rows)
    told = {"plans": len(rows), "most": most, "behind": sum(row["faster"] > slack for row in rows)}
    if kind in {"answers", "others"}:
        ratios = [1 - row["faster"] for row in rows]
        told["geometric_mean"] = round(statistics.geometric_mean(ratios), 4)
    return told


def main() -> None:
    """Print the lines and the summary."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("kind", choices=("free", "fixed", "answers", "others"))
    parser.add_argument("count", type=int, nargs="?", default=1000, help="%(default)s unless told")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s unless told")
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    given = parser.parse_args()
    rows = []
    for line in lines(given.kind, given.seed, given.first, given.count):
        rows.append(line)
        print(json.dumps(line), flush=True)
    print(json.dumps(summary(given.kind, rows)))


if __name__ == "__main__":
    main()
