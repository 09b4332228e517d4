"""How much slower the planner's choice is than the fastest tiling that exact timing finds.

For each sampled problem many legal tilings are timed by the event simulation: all that the planner
ranks, the likeliest and others of a random sample of legal ones, and then neighbours of the fastest
one for as long as one of them is faster (other base blocks, steps, buffers, grids, orders), at most
TIMINGS in all. The space has millions of tilings and is not timed whole, so the regret is a lower
estimate; the search does not use the planner's bounds and leaves its grid of candidates. The second
figure is how far the closed form is from the simulation, for the plans and for all that was timed.

Prints one JSON object. The same arguments give the same figures; nothing here depends on a clock.
"""

import itertools
import json
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from targets import against, arguments

import cubecore
from cubecore.errors import CubecoreError
from cubecore.planning.timed_product import TimedProduct
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.solver.solver import solve
from cubecore.units import ceil_div

CHIPS = ("Ascend910B3", "Ascend910B1", "Ascend950PR_9589")
RANKED = 24
RANDOM = 300
LIKELY, UNLIKELY = 24, 12


def problems(count: int, seed: int) -> Iterator[Problem]:
    """Yield random products: short and long axes, powers of two and ragged, types, launches."""
    rng = random.Random(seed)  # noqa: S311 - shapes, not secrets

    def extent(most: int) -> int:
        """Return one axis."""
        kinds = (rng.randint(1, 300), 2 ** rng.randint(5, 12), rng.randint(1, most))
        return min(rng.choice((*kinds, 128 * rng.randint(1, 32))), most)

    for _ in range(count):
        chip = rng.choice(CHIPS)
        arch = 2201 if chip.startswith("Ascend910") else 3510
        yield Problem(
            m=extent(4096),
            n=extent(4096),
            k=extent(4096),
            chip=chip,
            a=rng.choice(("float16", "float16", "bfloat16", "int8")),
            trans_a=arch == 2201 and rng.random() < 0.3,
            trans_b=rng.random() < 0.5,
            launch="mix" if arch == 2201 and rng.random() < 0.15 else "cube",
        )


@dataclass
class Search:
    """The tilings of a problem that were timed, cycles by tiling; at most `most`."""

    problem: Problem
    most: int
    rng: random.Random
    cycles: dict[TCubeTiling, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chip = self.problem.chip_record

    def run(self, plan: TCubeTiling) -> None:
        """Time the plan, samples and neighbours of the fastest."""
        self.time(plan)
        for ranked in solve(self.problem, self.chip, RANKED).alternatives:
            self.time(ranked.tiling)
        legal = [t for t in self.random_tilings(plan) if self.legal(t)]
        legal.sort(key=lambda t: predict(t, self.problem, self.chip).cycles)
        rest = legal[LIKELY:]
        for tiling in [*legal[:LIKELY], *self.rng.sample(rest, min(UNLIKELY, len(rest)))]:
            self.time(tiling)
        self.climb()

    def climb(self) -> None:
        """Go on to a faster neighbour of the fastest for as long as there is one."""
        better = True
        while better and len(self.cycles) < self.most:
            best, least = min(self.cycles.items(), key=lambda item: item[1])
            near = [t for t in neighbours(best) if t not in self.cycles and self.legal(t)]
            near.sort(key=lambda t: predict(t, self.problem, self.chip).cycles)
            better = any((self.time(t) or least) < least for t in near[:RANKED])

    def legal(self, tiling: TCubeTiling) -> bool:
        """Whether every rule holds."""
        return not check_tiling(tiling, self.problem, self.chip).findings

    def time(self, tiling: TCubeTiling) -> int | None:
        """Time a tiling once; None where the kernel does not carry it, or there is no time left."""
        if tiling in self.cycles or len(self.cycles) >= self.most:
            return self.cycles.get(tiling)
        try:
            line = TimedProduct(self.problem, tiling, self.chip).timed()
        except CubecoreError:
            return None
        self.cycles[tiling] = line.cycles
        return line.cycles

    def random_tilings(self, plan: TCubeTiling) -> Iterator[TCubeTiling]:
        """Yield tilings whose fields were drawn one by one."""
        rng, p = self.rng, self.problem
        limit = p.core_limit(self.chip)
        for _ in range(RANDOM):
            rows = rng.randint(1, limit)
            columns = rng.randint(1, max(limit // rows, 1))
            base_m, base_n = (16 * rng.randint(1, 20) for _ in "mn")
            base_k = 16 * rng.randint(1, 16)
            step_a, step_b = (rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 16)) for _ in "ab")
            yield replace(
                gridded(plan, rows, columns),
                baseM=base_m,
                baseN=base_n,
                baseK=base_k,
                stepM=1,
                stepN=1,
                stepKa=step_a,
                stepKb=step_b,
                depthA1=step_a * rng.randint(1, 2),
                depthB1=step_b * rng.randint(1, 2),
                dbL0A=2,
                dbL0B=2,
                dbL0C=rng.randint(1, 2),
                iterateOrder=rng.randint(0, 1),
            )


def gridded(t: TCubeTiling, rows: int, columns: int) -> TCubeTiling:
    """Return a tiling on another grid of cores."""
    m, n = ceil_div(t.M, rows), ceil_div(t.N, columns)
    used = ceil_div(t.M, m) * ceil_div(t.N, n)
    return replace(t, singleCoreM=m, singleCoreN=n, usedCoreNum=used)


def neighbours(t: TCubeTiling) -> Iterator[TCubeTiling]:
    """Yield tilings that differ from one in a field or two that go together."""
    rows, columns = ceil_div(t.M, t.singleCoreM), ceil_div(t.N, t.singleCoreN)
    for dm, dn in itertools.product((-2, -1, 0, 1, 2), repeat=2):
        if (dm or dn) and rows + dm > 0 and columns + dn > 0:
            yield gridded(t, rows + dm, columns + dn)
    yield gridded(t, columns, rows)
    yield replace(t, iterateOrder=1 - t.iterateOrder)
    yield replace(t, dbL0C=3 - t.dbL0C)
    yield with_base(t, t.baseN, t.baseM, t.baseK, 1.0)
    for fit in (0.5, 1.0, 2.0):
        for way in (-32, -16, 16, 32):
            yield with_base(t, t.baseM + way, t.baseN, t.baseK, fit)
            yield with_base(t, t.baseM, t.baseN + way, t.baseK, fit)
            yield with_base(t, t.baseM, t.baseN, t.baseK + way, fit)
        for up, down in ((2, 1), (1, 2)):
            yield with_base(t, t.baseM * up // down, t.baseN * down // up, t.baseK, fit)
            yield with_base(t, t.baseM, t.baseN, t.baseK * up // down, fit)
    for a, b in itertools.product((-2, -1, 0, 1, 2), repeat=2):
        yield with_steps(t, t.stepKa + a, t.stepKb + b, 2, 2)
    for a, b in itertools.product((0.5, 1, 2), repeat=2):
        for buffers in ((1, 1), (1, 2), (2, 1), (2, 2)):
            yield with_steps(t, int(t.stepKa * a), int(t.stepKb * b), *buffers)


def with_base(t: TCubeTiling, m: int, n: int, k: int, fit: float) -> TCubeTiling:
    """Return a tiling of another base block, its steps `fit` times what they were."""
    base = replace(t, baseM=max(m // 16, 1) * 16, baseN=max(n // 16, 1) * 16, baseK=max(k, 16))
    buffers = (t.depthA1 // (t.stepM * t.stepKa), t.depthB1 // (t.stepN * t.stepKb))
    return with_steps(base, int(t.stepKa * fit), int(t.stepKb * fit), *buffers)


def with_steps(t: TCubeTiling, a: int, b: int, buffers_a: int, buffers_b: int) -> TCubeTiling:
    """Return a tiling of other steps along K and buffers in L1."""
    a, b = max(a, 1), max(b, 1)
    depth_a, depth_b = t.stepM * a * buffers_a, t.stepN * b * buffers_b
    return replace(t, stepKa=a, stepKb=b, depthA1=depth_a, depthB1=depth_b)


def one(problem: Problem, most: int, seed: int) -> dict[str, Any]:
    """Return what the search of a problem found."""
    answer = cubecore.plan(problem)
    plan = answer.tiling
    search = Search(problem, most, random.Random(seed))  # noqa: S311 - a sample, no secret
    search.run(plan)
    shown = [search.time(ranked.tiling) for ranked in answer.alternatives]
    best = min(search.cycles, key=search.cycles.__getitem__)
    own, least = search.cycles[plan], search.cycles[best]
    closed = {
        t: abs(predict(t, problem, search.chip).cycles / x - 1) for t, x in search.cycles.items()
    }
    p = problem
    fields = ("usedCoreNum", "singleCoreM", "singleCoreN", "baseM", "baseN", "baseK", "stepKa")
    fields += ("stepKb", "depthA1", "depthB1", "dbL0C", "iterateOrder")
    return {
        "problem": f"{p.m}x{p.n}x{p.k} {p.a}{' A^T' * p.trans_a}{' B^T' * p.trans_b} "
        f"{p.launch} {p.chip}",
        "timed": len(search.cycles),
        "regret": own / least - 1,
        "regret_of_best_shown": min([own, *filter(None, shown)]) / least - 1,
        "closed_form_off": closed[plan],
        "closed_form_off_all": statistics.median(closed.values()),
        "faster": {
            n: [getattr(plan, n), getattr(best, n)]
            for n in fields
            if getattr(plan, n) != getattr(best, n)
        },
    }


def main(count: int, most: int, seed: int) -> dict[str, Any]:
    """Return every figure, the problems with the most regret first."""
    made = []
    for number, problem in enumerate(problems(count, seed)):
        made.append(one(problem, most, seed + number))
        print(f"{number + 1}/{count} {made[-1]['regret']:.1%}", file=sys.stderr)
    regrets = sorted(row["regret"] for row in made)
    off = [row["closed_form_off"] for row in made]
    everywhere = [row["closed_form_off_all"] for row in made]
    return {
        "seed": seed,
        "timed": sum(row["timed"] for row in made),
        "figures": {
            "regret_mean": against(statistics.mean(regrets), 0.02),
            "regret_median": against(statistics.median(regrets), 0.02),
            "closed_form_off_median": against(statistics.median(off), 0.1),
            "closed_form_off_median_of_all_timed": against(statistics.median(everywhere), 0.1),
        },
        "regret_mean_if_alternatives_were_timed_too": statistics.mean(
            row["regret_of_best_shown"] for row in made
        ),
        "regret_p90": regrets[-(-9 * len(regrets) // 10) - 1],
        "regret_most": regrets[-1],
        "under_2_percent": sum(r < 0.02 for r in regrets),
        "problems": sorted(made, key=lambda row: -row["regret"]),
    }


if __name__ == "__main__":
    given = arguments(__doc__ or "", problems=50, timings=250, seed=1).parse_args()
    print(json.dumps(main(given.problems, given.timings, given.seed), indent=2))
