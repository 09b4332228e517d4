"""How fast the planner is: one problem, candidates judged, a sweep on all cores, a repair.

Prints one JSON object. Each figure stands beside its target; `met` says whether it holds here, on
this machine, now. One problem's time is CPU time, which other processes change little. Ratios are
of measurements made in one process, interleaved, so that they mean the same on a slower machine.
Nothing here is a test.
"""

import json
import os
import platform
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from targets import against, arguments

import cubecore
from cubecore.planning.event_ranking import solved
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.tiling.solver.l1_residency import keeps_rules
from cubecore.workflows.sweep.pool import available_cores

SWEEP_TARGET = 10_000
"""Queries that a sweep is to answer in a minute on two cores."""
WARMING = 1000
"""Problems that are planned first: some of each kind of `problems`."""
ROWS, AT_ONCE = 1 << 17, 1 << 13
"""Candidates that are judged, and how many of them in one call."""
CHIPS = ("Ascend910B3", "Ascend910B1", "Ascend910_9392", "Ascend310P3")


def problems(count: int, seed: int) -> list[dict[str, Any]]:
    """Return random products: short and long axes, powers of two, ragged; types, transpositions."""
    rng = random.Random(seed)  # noqa: S311 - shapes, not secrets

    def extent() -> int:
        """Return one axis."""
        kinds = (
            rng.randint(1, 300),
            2 ** rng.randint(4, 14),
            rng.randint(1, 9000),
            128 * rng.randint(1, 100),
        )
        return rng.choice(kinds)

    return [
        {
            **{axis: extent() for axis in "mnk"},
            "a": rng.choice(("float16", "float16", "int8")),
            "chip": rng.choice(CHIPS),
            "trans_a": rng.random() < 0.3,
            "trans_b": rng.random() < 0.5,
        }
        for _ in range(count)
    ]


def seconds(job: Callable[[], Any]) -> float:
    """Return how long a job takes without plans that are known."""
    solved.cache_clear()
    begin = perf_counter()
    job()
    return perf_counter() - begin


def cpu_seconds(job: Callable[[], Any]) -> float:
    """Return how long a job keeps a processor busy."""
    begin = process_time()
    job()
    return process_time() - begin


def one_by_one(asked: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Plan each problem in this process, which has planned others of its kind before."""
    for problem in problems(min(WARMING, len(asked)), seed + 1):
        cubecore.plan(problem)
    made: list[cubecore.Plan] = []
    taken = sorted(
        cpu_seconds(lambda p=problem: made.append(cubecore.plan(p))) for problem in asked
    )
    rank = min(len(taken) - 1, round(0.99 * len(taken)))
    judged = sum(plan.judged for plan in made)
    return {
        "plan_median_s": against(statistics.median(taken), 0.005, problems=len(asked)),
        "plan_p99_s": against(taken[rank], 0.05, slowest_s=taken[-1]),
        "proven": {"value": sum(plan.proven for plan in made) / len(made)},
        "judged_in_plans_per_s": {"value": judged / sum(taken), "tilings": judged},
    }


def _judged(case: RuleCase, tilings: Any) -> tuple[Any, ...]:
    """Return whether every rule holds, and the cycles of the closed form."""
    judged = replace(case, tiling=tilings)
    measures = tuple(declared.measure for declared in rules())
    return keeps_rules(judged, measures), cost(tilings, case.problem, case.chip).total


def judged(rows: int) -> dict[str, Any]:
    """Judge many candidates as the search does: every rule, and the cost of all of them."""
    plan = cubecore.plan(m=8192, n=8192, k=8192)
    rng = np.random.default_rng(0)
    varied = {
        name: getattr(plan.tiling, name) * rng.integers(1, 3, rows).astype(float)
        for name in ("baseM", "baseN", "baseK", "stepKa", "stepKb", "depthA1", "depthB1")
    }
    columns = TilingColumns({name: getattr(plan.tiling, name) for name in FIELDS} | varied)
    case = RuleCase(None, plan.problem, plan.request.chip)
    parts = [np.arange(first, first + AT_ONCE) for first in range(0, rows, AT_ONCE)]

    def all_of_them() -> None:
        """Judge every part."""
        for part in parts:
            _judged(case, columns.take(part))

    all_of_them()
    taken = [seconds(all_of_them) for _ in range(5)]
    rate = rows / statistics.median(taken)
    return {"candidates_per_s": against(rate, 1_000_000, least=True, rows=rows)}


def sweep(asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Plan all of them on all cores, start of the processes included."""
    cores = available_cores()
    wall = seconds(lambda: list(cubecore.plan_many(asked, processes=cores)))
    rate = len(asked) / wall
    return {
        "sweep_10000_s": against(
            SWEEP_TARGET / rate, 60.0, cores=cores, queries=len(asked), wall_s=wall
        )
    }


def ratios(asked: list[dict[str, Any]]) -> dict[str, float]:
    """Ratios of interleaved measurements in this process."""
    plans = [cubecore.plan(problem) for problem in asked[:20]]
    jobs: Mapping[str, Callable[[Any], Any]] = {
        "plan": lambda plan: cubecore.plan(plan.problem),
        "check": lambda plan: cubecore.check(plan.tiling, plan.problem),
        "repair": lambda plan: cubecore.check(
            replace(plan.tiling, baseK=2 * plan.tiling.baseK, dbL0C=2), plan.problem, repair=True
        ),
    }
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for plan in plans:
        for name, job in jobs.items():
            taken[name].append(seconds(lambda job=job, plan=plan: job(plan)))
    middle = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "plan_over_check": middle["plan"] / middle["check"],
        "repair_over_plan": middle["repair"] / middle["plan"],
    }


def main(count: int, seed: int, rows: int) -> dict[str, Any]:
    """Return every figure."""
    asked = problems(count, seed)
    return {
        "machine": {
            "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "seed": seed,
        "figures": {**one_by_one(asked, seed), **judged(rows), **sweep(asked)},
        "ratios": ratios(asked),
    }


def reference() -> dict[str, Any]:
    """Return how much longer the vendor's answers take than our plans, as `time` says.

    The record of answers must lie beside the checkout, as the tests have it.
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from tiling.reference import ratios_by_cores

    found: dict[str, Any] = ratios_by_cores()
    return found


if __name__ == "__main__":
    parser = arguments(__doc__ or "", problems=1000, seed=0, rows=ROWS)
    about = "how much longer the vendor's answers take than our plans, and nothing else"
    parser.add_argument("--reference", action="store_true", help=about)
    given = parser.parse_args()
    answer = reference() if given.reference else main(given.problems, given.seed, given.rows)
    print(json.dumps(answer, indent=2))
