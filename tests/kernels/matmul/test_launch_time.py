"""The time of a kernel without its trees is that of its trees, to the cycle."""

import random
from dataclasses import replace

import pytest

from cubecore.chips import chip
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.planning.planner import plan_tilings
from cubecore.planning.timed_product import TimedProduct
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.workflows.request import make_request
from parts import part

CHIPS = ["Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend950PR_9589"]
CHANGES = (
    {"iterateOrder": (0, 1)},
    {"dbL0A": (1, 2), "dbL0B": (1, 2)},
    {"dbL0C": (1, 2)},
    {"baseK": (16, 32, 64, 128)},
    {"stepKa": (1, 2, 4), "depthA1": (1, 2, 4, 8)},
    {"stepKb": (1, 2, 4), "depthB1": (1, 2, 4, 8)},
    {"stepM": (1, 2), "depthA1": (2, 4, 8)},
    {"singleCoreN": (48, 80, 128, 256)},
)


def bias_of(source, kind):
    """Return the type of a bias, or none."""
    types = {"int8": ["int32"], "float16": ["float32", "float16"]}.get(kind, ["float32"])
    return source.choice([None, source.choice(types)])


def drawn(source):
    """Return a random product of which the walk knows every instruction."""
    kind = source.choice(["float16", "bfloat16", "int8", "float32"])
    nz = kind != "float32" and source.random() < 0.4
    sizes = [32, 64, 128, 256, 544] if nz else [1, 16, 31, 64, 100, 129, 256, 520]
    return {
        **{axis: source.choice(sizes) for axis in "mn"},
        "k": source.choice([32, 64, 512, 2048] if nz else [16, 64, 100, 512, 1000, 2048]),
        "a": kind,
        "b": kind,
        "chip": source.choice(CHIPS),
        "trans_a": source.random() < 0.3,
        "trans_b": source.random() < 0.5,
        "format_a": "NZ" if nz and source.random() < 0.6 else "ND",
        "format_b": "NZ" if nz and source.random() < 0.6 else "ND",
        "batch": source.choice([1, 1, 1, 5]),
        "bias": bias_of(source, kind),
        "hf32": kind == "float32" and source.random() < 0.5,
    }


def decoded(source):
    """Return a product of few rows and long K: device memory falls behind, or catches up."""
    kind = source.choice(["float16", "bfloat16", "int8"])
    return {
        "m": source.randint(1, 128),
        "n": 16 * source.randint(32, 1000),
        "k": source.randint(100, 20000),
        "a": kind,
        "b": kind,
        "chip": source.choice(CHIPS),
        "trans_b": source.random() < 0.5,
        "bias": bias_of(source, kind),
    }


def shared(source):
    """Return a product whose AI Cores compute blocks of several AIV clients in turn."""
    drawing = source.choice([drawn, drawn, decoded, large])
    return {
        **drawing(source),
        "launch": "mix",
        "chip": source.choice(["Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend910_9391"]),
        "split_k": source.random() < 0.3,
    }


def large(source):
    """Return a product of many tiles and long K: rows of tiles recur, and sections of K."""
    kind = source.choice(["float16", "bfloat16", "int8", "float32"])
    return {
        "m": source.randint(500, 20000),
        "n": 16 * source.randint(30, 1500),
        "k": source.choice([source.randint(500, 9000), 16 * source.randint(1000, 5000)]),
        "a": kind,
        "b": kind,
        "chip": source.choice(CHIPS),
        "trans_a": source.random() < 0.3,
        "trans_b": source.random() < 0.5,
        "batch": source.choice([1, 1, 3]),
        "bias": bias_of(source, kind),
    }


def tilings(source, request):
    """Yield legal tilings: some that the planner finds, and changes of them."""
    problem = request.problem
    found = plan_tilings(problem, request.chip, 3)
    for ranked in (found.best, *found.alternatives):
        tiling = ranked.tiling
        yield tiling
        for _ in range(3):
            values = {name: source.choice(v) for name, v in source.choice(CHANGES).items()}
            changed = replace(tiling, **values)
            if not check_tiling(changed, request.problem, request.chip).findings:
                tiling = changed
                yield tiling


def compared(seed, draw=drawn):
    """Return how many tilings of a random product were timed both ways, and found equal."""
    source = random.Random(seed)
    request = make_request(None, None, draw(source))
    count = 0
    for tiling in tilings(source, request):
        made = launch_time(request.problem, tiling, request.chip)
        if made is not None:
            line = TimedProduct(request.problem, tiling, request.chip).line
            slowest = max(line.groups, key=lambda group: group.end_cycles)
            told = (seed, tiling, made.cycles, made.pipes["M"], made.pipes["FIX"])
            busy = slowest.busy_cycles
            assert told == (seed, tiling, line.cycles, busy["M"], busy["FIX"])
            count += 1
    return count


def test_it_is_the_time_of_the_trees():
    assert sum(compared(seed) for seed in range(part(12))) > part(40)


def test_few_rows_and_long_k_take_the_time_of_the_trees():
    assert sum(compared(seed, decoded) for seed in range(part(3))) >= part(20)


def test_many_tiles_and_long_k_take_the_time_of_the_trees():
    assert sum(compared(seed, large) for seed in range(part(2))) >= part(8)


def test_clients_that_share_a_core_take_the_time_of_the_trees():
    assert sum(compared(seed, shared) for seed in range(part(6))) >= part(30)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 300))
def test_clients_that_share_a_core_take_the_time_of_the_trees_for_many(seed):
    compared(seed, shared)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_tiles_and_long_k_take_the_time_of_the_trees_for_many(seed):
    compared(seed, large)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 200))
def test_few_rows_and_long_k_take_the_time_of_the_trees_for_many(seed):
    compared(seed, decoded)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 600))
def test_it_is_the_time_of_the_trees_for_many(seed):
    compared(seed)


def test_what_recurs_is_skipped_with_the_same_answer():
    keys = {"m": 64, "n": 20000, "k": 512, "trans_b": True, "chip": "Ascend910B3"}
    request = make_request(None, None, keys)
    tiling = TCubeTiling.from_json(
        {
            **plan_tilings(request.problem, request.chip, 0).best.tiling.to_json(),
            "singleCoreN": 1008,
            "usedCoreNum": 20,
            "singleCoreM": 64,
            "baseM": 64,
            "baseN": 16,
            "baseK": 256,
            "stepKa": 1,
            "stepKb": 1,
            "depthA1": 2,
            "depthB1": 2,
        }
    )
    assert not check_tiling(tiling, request.problem, request.chip).findings
    made = launch_time(request.problem, tiling, request.chip)
    assert made is not None
    assert made.cycles == TimedProduct(request.problem, tiling, request.chip).line.cycles


@pytest.mark.parametrize(
    "keys",
    [
        {"bias": "float32", "batch": 3, "cores": 1},
        {"template": "NORM"},
        {"unit_flag": True},
    ],
)
def test_what_the_walk_does_not_know_is_left_to_the_trees(keys):
    request = make_request(None, None, {"m": 64, "n": 64, "k": 64, **keys})
    tiling = plan_tilings(request.problem, request.chip, 0).best.tiling
    assert launch_time(request.problem, tiling, request.chip) is None


def test_rows_too_far_apart_cost_what_the_chip_says():
    target = chip("Ascend910B3")
    assert target.gm_to_l1_lone_row_cycles is not None
    near, far = (
        make_request(None, None, {"m": 64, "n": 256, "k": k, "trans_b": True, "chip": target.name})
        for k in (65_024, 66_048)
    )
    times = []
    for request in (near, far):
        tiling = plan_tilings(request.problem, request.chip, 0).best.tiling
        times.append(TimedProduct(request.problem, tiling, request.chip).line.cycles)
    assert times[1] > times[0]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(6))
def test_beyond_a_limit_the_answer_is_a_cycle_between_it_and_the_end(seed):
    source = random.Random(seed)
    request = make_request(None, None, drawn(source) | {"launch": "cube", "bias": None})
    for tiling in tilings(source, request):
        made = launch_time(request.problem, tiling, request.chip)
        if made is None:
            continue
        for limit in (0, made.cycles // 2, made.cycles - 1):
            told = launch_time(request.problem, tiling, request.chip, limit)
            assert limit < told.cycles <= made.cycles
        assert launch_time(request.problem, tiling, request.chip, made.cycles) == made
