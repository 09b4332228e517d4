"""The walk over chunks is near the event timing, and so is the order in which it puts tilings."""

import random
import statistics
from dataclasses import replace

import numpy as np

from cubecore.arrays import column
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.planning.planner import plan_tilings
from cubecore.tiling.cost.chunk_columns import COLUMNS, chunk_columns, least_cycles
from cubecore.tiling.cost.chunk_walk import walked_cycles
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.workflows.request import make_request

CHIPS = ["Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend950PR_9589"]


def drawn(source, chips=CHIPS, **more):
    """Return the request of a random product with few rows of A."""
    n, k = source.choice([(1536, 2048), (4096, 1024), (2048, 4096), (5120, 512), (576, 7168)])
    keys = {"m": source.randint(1, 128), "n": n, "k": k, "trans_b": source.random() < 0.7}
    return make_request(None, None, {**keys, "chip": source.choice(chips), **more})


def walked(request, tilings, most):
    """Return the walked cycles of tilings, and the least that walks of them take."""
    made = {name: np.array([float(getattr(t, name)) for t in tilings]) for name in FIELDS}
    case = RuleCase(TilingColumns(made), request.problem, request.chip)
    measured = [column(x, len(tilings)) for x in chunk_columns(case)]
    values = dict(zip(COLUMNS, measured, strict=True))
    return walked_cycles(case, values, most), least_cycles(case, values)


def test_walks_are_near_the_event_timing():
    source, ratios = random.Random(5), []
    for _ in range(12):
        request = drawn(source)
        found = plan_tilings(request.problem, request.chip, 5)
        tilings = [ranked.tiling for ranked in (found.best, *found.alternatives)]
        cycles, least = walked(request, tilings, 96)
        for tiling, near, floor in zip(tilings, cycles, least, strict=True):
            events = launch_time(request.problem, tiling, request.chip)
            if events is not None:
                ratios.append(near / events.cycles)
                assert 0.8 < ratios[-1] < 1.25, (request.problem, tiling)
                assert floor <= 1.05 * events.cycles
    assert len(ratios) > 40
    assert abs(statistics.median(ratios) - 1) < 0.01
    assert statistics.mean(abs(ratio - 1) for ratio in ratios) < 0.03


def test_walks_of_two_clients_are_near_the_event_timing():
    """The second one finds in L2 what both share, and loads ahead where its buffers lie alike."""
    source, ratios = random.Random(8), []
    for _ in range(12):
        request = drawn(source, CHIPS[:3], launch="mix")
        found = plan_tilings(request.problem, request.chip, 5)
        tilings = [ranked.tiling for ranked in (found.best, *found.alternatives)]
        cycles, least = walked(request, tilings, 256)
        for tiling, near, floor in zip(tilings, cycles, least, strict=True):
            events = launch_time(request.problem, tiling, request.chip)
            ratios.append(near / events.cycles)
            assert 0.85 < ratios[-1] < 1.2, (request.problem, tiling)
            assert floor <= 1.05 * events.cycles
    assert abs(statistics.median(ratios) - 1) < 0.02
    assert statistics.mean(abs(ratio - 1) for ratio in ratios) < 0.03


def test_an_operand_that_stays_in_one_buffer_is_walked_first():
    """The other one's chunks need not wait for it: two buffers hold them from the start."""
    source, told = random.Random(3), 0
    for _ in range(20):
        request = drawn(source)
        best = plan_tilings(request.problem, request.chip, 0).best.tiling
        whole = -(-best.singleCoreK // best.baseK)
        tiling = replace(
            best, iterateOrder=0, baseM=-(-best.singleCoreM // 16) * 16, stepM=1, stepKa=whole,
            depthA1=whole, stepN=1, stepKb=whole, depthB1=2 * whole,
        )  # fmt: skip
        events = launch_time(request.problem, tiling, request.chip)
        if events is not None and tiling.singleCoreN > tiling.baseN:
            (near,), _ = walked(request, [tiling], 96)
            assert abs(near / events.cycles - 1) < 0.06
            told += 1
    assert told >= 3


def test_a_long_walk_goes_on_at_its_pace():
    request = make_request(None, None, {"m": 64, "n": 16384, "k": 4096, "trans_b": True})
    found = plan_tilings(request.problem, request.chip, 3)
    tilings = [ranked.tiling for ranked in (found.best, *found.alternatives)]
    short, whole = (walked(request, tilings, most)[0] for most in (96, 100_000))
    assert np.allclose(short, whole, rtol=0.03)


def test_tilings_are_refined_to_faster_ones():
    gains = []
    source = random.Random(6)
    for _ in range(8):
        request = drawn(source)
        problem, chip = request.problem, request.chip
        first, refined = (
            plan_tilings(problem, chip, 0, refine=refine).best.tiling for refine in (False, True)
        )
        times = [launch_time(problem, tiling, chip).cycles for tiling in (first, refined)]
        gains.append(times[0] / times[1])
    assert statistics.mean(gains) > 1.01
    assert min(gains) > 0.97
