"""The planner's closed form against the event timing of the same tilings."""

import itertools
import random
import statistics
from dataclasses import replace

import pytest

from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.field_limits import FieldLimits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.solver.solver import solve
from cubecore.workflows.time import time


def drawn(seed, count, most):
    """Give problems whose extents are spread evenly over their logarithms."""
    rng = random.Random(seed)
    for _ in range(count):
        m, n, k = (int(2 ** rng.uniform(4, most)) for _ in range(3))
        yield Problem(
            m=m,
            n=n,
            k=k,
            a=rng.choice(["float16", "bfloat16", "int8", "float32"]),
            trans_a=rng.random() < 0.5,
            trans_b=rng.random() < 0.5,
            template=rng.choice(["MDL", "MDL", "NORM"]),
            chip=rng.choice(["Ascend910B1", "Ascend910B2", "Ascend910B3", "Ascend910B4"]),
        )


def compared(problems):
    """Return ratios of closed form over event timing of plans, and what a plan's choice costs.

    The latter is the plan's event timing over the best of it and its first two alternatives.
    """
    ratios, regrets = [], []
    for p in problems:
        solution = solve(p, p.chip_record, count=2)
        ranked = (solution.best, *solution.alternatives)
        timed = [time(p, tiling=r.tiling).timeline.cycles for r in ranked]
        ratios += [r.predicted.cycles / cycles for r, cycles in zip(ranked, timed, strict=True)]
        regrets.append(timed[0] / min(timed))
    return ratios, regrets


def summary(ratios, regrets):
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    return {
        "median": statistics.median(errors),
        "p90": errors[len(errors) * 9 // 10],
        "regret": statistics.mean(regrets),
    }


def test_plans_take_what_the_closed_form_says():
    found = summary(*compared(drawn(1, 20, 10.5)))
    assert found["median"] < 0.03
    assert found["p90"] < 0.1
    assert found["regret"] < 1.02


@pytest.mark.sweep
def test_many_plans_take_what_the_closed_form_says():
    seed = random.SystemRandom().randrange(10**6)
    found = summary(*compared(drawn(seed, 200, 13)))
    print(f"seed {seed}: {found}")
    assert found["median"] < 0.03
    assert found["p90"] < 0.15
    assert found["regret"] < 1.03


@pytest.mark.parametrize("steps", [(4, 4), (8, 4), (2, 2)])
def test_where_b_has_one_buffer_a_second_one_of_a_is_idle(steps):
    """MTE2 takes its loads in order: A's next chunk is behind B's, which waits for its buffer."""
    p = Problem(m=256, n=256, k=4096, trans_b=True)
    base = solve(p, p.chip_record, wanted=FieldLimits.from_json({"usedCoreNum": 1})).best.tiling
    shape = {"baseM": 128, "baseN": 256, "baseK": 64, "stepM": 1, "stepN": 1, "dbL0C": 1}
    shape |= dict(zip(("stepKa", "stepKb"), steps, strict=True))
    timed, closed = {}, {}
    for buffers in itertools.product((1, 2), (1, 2)):
        depths = {f"depth{x}1": n * step for x, n, step in zip("AB", buffers, steps, strict=True)}
        tiling = replace(base, **shape, **depths)
        timed[buffers] = time(p, tiling=tiling).timeline.cycles
        closed[buffers] = predict(tiling, p, p.chip_record).cycles
        assert closed[buffers] == pytest.approx(timed[buffers], rel=0.12)
    for found in (timed, closed):
        assert found[2, 1] == pytest.approx(found[1, 1], rel=0.01)
        assert found[2, 2] < found[1, 2] < found[2, 1]


def test_any_legal_tiling_is_timed_by_both():
    """Shapes of tilings that a planner would not choose: the closed form is no worse than twice."""
    p = Problem(m=300, n=520, k=700)
    best = solve(p, p.chip_record).best.tiling
    for changes in ({"dbL0A": 1}, {"dbL0C": 1}, {"iterateOrder": 1}):
        tiling = type(best)(**{**best.to_json(), **changes})
        closed = predict(tiling, p, p.chip_record).cycles
        assert 0.5 < closed / time(p, tiling=tiling).timeline.cycles < 2
