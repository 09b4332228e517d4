"""The planner's answer is the fastest legal tiling there is: its bounds exclude nothing faster.

The oracle writes out every tiling (`tiling.naive`).
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.errors import CubecoreError, NoLegalTilingError
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.field_limits import NO_LIMITS, FieldLimits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver import branch_and_bound, lower_bounds
from cubecore.tiling.solver.branch_and_bound import TilingSearch
from cubecore.tiling.solver.candidates import (
    LARGEST_BLOCK,
    base_blocks,
    base_k_sizes,
    block_pairs,
    core_splits,
)
from cubecore.tiling.solver.l1_residency import (
    RESIDENCY_FIELDS,
    RESIDENCY_RULES,
    joined_residencies,
    keeps_rules,
    residencies,
    smallest_steps,
    with_derived_fields,
)
from cubecore.tiling.solver.l1_residency_cost import (
    least_of,
    pair_bounds,
    residency_bounds,
    residency_cycles,
)
from cubecore.tiling.solver.lower_bounds import block_bounds, pair_bound, split_bound
from cubecore.tiling.solver.solver import solve
from parts import strided
from tiling.naive import count, fastest

CHIPS = ("Ascend910B3", "Ascend910B1", "Ascend910B4", "Ascend910_9392", "Ascend950PR_9589")
MOST_ROWS = 60_000
PROBLEMS = 220


def drawn(rng):
    """Give a tiny problem and a chip, most often with buffers that it could fill."""
    kind = rng.choice(["float16", "float16", "bfloat16", "float32", "int8", "int8"])
    keys = {
        "m": rng.randint(1, 70),
        "n": rng.randint(1, 70),
        "k": rng.choice([1, 8, 16, 33, 40, 48, 64, 80, 96, 112]),
        "a": kind,
        "chip": rng.choice([*CHIPS, "Ascend310P3"]),
        "cores": rng.choice([1, 1, 2, 3, 4, 8, 20]),
        "trans_a": rng.random() < 0.5,
        "trans_b": rng.random() < 0.5,
        "template": rng.choice(["MDL", "MDL", "NORM", "IBSHARE"]),
        "launch": rng.choice(["cube", "cube", "mix"]),
        "batch": rng.choice([1, 1, 1, 3]),
        "split_k": rng.random() < 0.2,
        "bias": rng.choice([None, None, "int32" if kind == "int8" else "float32"]),
        "unit_flag": rng.choice([None, None, True, False]),
    }
    for letter, axis in (("a", "m"), ("b", "n"), ("c", "n")):
        if rng.random() < 0.12:
            keys |= {f"format_{letter}": "NZ", axis: 32 * rng.randint(1, 2)}
            keys |= {"k": rng.choice([32, 64, 96])}
    soc = chip(keys["chip"])
    if rng.random() < 0.6:
        sizes = [rng.choice([2048, 4096, 8192]) for _ in range(3)]
        names = ("l0a_bytes", "l0b_bytes", "l0c_bytes")
        soc = replace(soc, **dict(zip(names, sizes, strict=True)))
        size = rng.choice([4096, 8192, 12288, 20480])
        soc = replace(soc, l1_bytes=size, l1_user_bytes=size)
    return keys, soc


@pytest.fixture
def bit_by_bit(monkeypatch):
    """Let the search look at few candidates at a time, so that bounds decide on tiny problems."""
    for name in ("FIRST_PAIRS", "FIRST_RESIDENCIES", "PAIRS_AT_ONCE", "BLOCKS_AT_ONCE"):
        monkeypatch.setattr(branch_and_bound, name, 1)
    monkeypatch.setattr(branch_and_bound, "SPLITS_AT_ONCE", 1)
    monkeypatch.setattr(branch_and_bound, "FIRST_BLOCKS", 1)


def small(seed, *, every=False):
    """Give the first problem that the chip can multiply and whose tilings are not too many."""
    rng = random.Random(seed)
    while True:
        keys, soc = drawn(rng)
        if every:
            keys |= {axis: min(keys[axis], 16) for axis in "mn"}
            keys |= dict.fromkeys(("format_a", "format_b", "format_c"), "ND")
        try:
            p = Problem(**keys)
            if count(p, soc, every=every) <= MOST_ROWS:
                return p, soc, solve(p, soc, 2)
        except CubecoreError:
            continue


@pytest.mark.parametrize("seed", strided(range(PROBLEMS)))
@pytest.mark.thinned(4)
def test_the_plan_is_the_fastest_of_all_tilings(seed):
    p, soc, solution = small(seed)
    best, _ = fastest(p, soc, every=False)
    assert solution.best.predicted.cycles == best
    assert solution.proven
    assert solution.search_bound == best
    assert check_tiling(solution.best.tiling, p, soc).legal


@pytest.mark.parametrize("seed", strided(range(0, PROBLEMS, 4)))
@pytest.mark.usefixtures("bit_by_bit")
@pytest.mark.thinned(3)
def test_what_bounds_exclude_is_no_faster(seed):
    p, soc, solution = small(seed)
    assert solution.best.predicted.cycles == fastest(p, soc, every=False)[0]
    assert solution.proven


@pytest.mark.parametrize("seed", strided(range(12), 2))
@pytest.mark.thinned(2)
def test_no_other_share_of_a_core_is_faster(seed):
    """Shares of every length, where the planner looks at the smallest for a number of cores."""
    p, soc, solution = small(seed, every=True)
    assert solution.best.predicted.cycles == fastest(p, soc, every=True)[0]


ASKED = (
    {"dbL0A": 1},
    {"dbL0B": 2},
    {"dbL0C": 1},
    {"iterateOrder": 1},
    {"baseM": "32.."},
    {"baseN": {"multiple": 32}},
    {"baseK": {"multiple": 32}},
    {"baseK": "32..", "dbL0B": 2},
    {"baseM": 16, "baseN": "..32"},
    {"stepKa": "..1"},
    {"depthB1": "2.."},
    {"stepKb": 2},
    {"usedCoreNum": "..2"},
    {"singleCoreM": {"multiple": 16}},
)


@pytest.mark.parametrize("seed", strided(range(42)))
def test_what_is_asked_for_costs_no_more_than_it_must(seed):
    """The fastest of all tilings with a few fields as asked for is found."""
    asked = ASKED[seed % len(ASKED)]
    p, soc, free = small(1000 + seed)
    best, legal = fastest(p, soc, every=False, asked=allowed(asked, p))
    try:
        found = solve(p, soc, 1, FieldLimits.from_json(asked)).best
    except NoLegalTilingError:
        assert not legal
        return
    # Some fields may hold more than makes a difference, which the oracle does not write out.
    assert free.best.predicted.cycles <= found.predicted.cycles <= best
    assert all(getattr(found.tiling, name) in values for name, values in allowed(asked, p).items())
    assert check_tiling(found.tiling, p, soc).legal


def allowed(asked, p):
    """Return the values that will do by field: of numbers below 200, more than there are."""
    return {
        name: {x for x in range(200) if will_do(name, x, want, p)} for name, want in asked.items()
    }


def will_do(name, value, want, p):
    if isinstance(want, int):
        return value == want
    if isinstance(want, str):
        low, high = want.split("..")
        return int(low or 0) <= value <= int(high or 200)
    return value % want["multiple"] == 0 or (name == "singleCoreM" and value == p.m)


@pytest.mark.sweep
def test_many_plans_are_the_fastest_of_all_tilings():
    first = random.SystemRandom().randrange(10**6)
    print(f"seeds from {first}")
    for seed in range(first, first + 1000):
        p, soc, solution = small(seed)
        assert (solution.best.predicted.cycles, True) == (
            fastest(p, soc, every=False)[0],
            solution.proven,
        ), (seed, p)


@pytest.mark.usefixtures("bit_by_bit")
def test_a_bound_that_excludes_too_much_is_caught(monkeypatch):
    """The comparison above is worth something: bounds 3 % too high lose the fastest tiling."""
    monkeypatch.setattr(lower_bounds, "SAFE", 1.03)
    problems = (small(seed) for seed in range(40))
    assert any(
        solution.best.predicted.cycles > fastest(p, soc, every=False)[0]
        for p, soc, solution in problems
    )


def medium(seed):
    """Give an ordinary product."""
    rng = random.Random(seed)
    keys, _ = drawn(rng)
    extents = [rng.choice([16, 64, 100, 512, 700, 1024, 3000]) for _ in "mnk"]
    keys |= dict(zip("mnk", extents, strict=True))
    keys |= dict.fromkeys(("format_a", "format_b", "format_c"), "ND")
    return keys


def complete(case, rng):
    """Give complete tilings over random base blocks, with every bound of each."""
    splits = core_splits(case, case.problem.core_count(case.chip))
    split = rng.integers(0, len(splits), 4)
    pairs = block_pairs(case, splits.take(split))
    pair = rng.integers(0, len(pairs.columns), 6)
    blocks, _ = base_blocks(case, pairs.take(pair))
    block = np.unique(rng.integers(0, len(blocks), 6))
    blocks = blocks.take(block)
    of_blocks = block_bounds(case, blocks)
    a, b = (residencies(case, blocks, operand, NO_LIMITS) for operand in "ab")
    pairs_of_both = joined_residencies(of_blocks.least_bytes, a, b, case.chip.l1_bytes)
    at = pairs_of_both.block
    least = [least_of(own, len(blocks)) for own in (b, a)]
    of_a, of_b = (
        residency_bounds(case, blocks, of_blocks, own, other)
        for own, other in zip((a, b), least, strict=True)
    )
    of_splits, of_pairs = split_bound(case, blocks), pair_bound_of(case, blocks)
    both = pair_bounds(case, blocks, of_blocks, pairs_of_both)
    found = residency_cycles(case, blocks, pairs_of_both, both_orders=True)
    fields = {n: getattr(a.columns, n)[pairs_of_both.rows_a] for n in RESIDENCY_FIELDS["a"]}
    fields |= {n: getattr(b.columns, n)[pairs_of_both.rows_b] for n in RESIDENCY_FIELDS["b"]}
    for n_first in (0, 1):
        columns = blocks.take(at).with_fields(iterateOrder=np.full(len(at), n_first), **fields)
        tilings = with_derived_fields(replace(case, tiling=columns))
        held = np.flatnonzero(np.broadcast_to(keeps_rules(tilings, RESIDENCY_RULES), len(at)))
        assert np.array_equal(held, np.flatnonzero(found[n_first] < np.inf))
        levels = {
            "split": of_splits.cycles[at],
            "pair": of_pairs.cycles[at],
            "block": of_blocks.cycles[at],
            "a": of_a[pairs_of_both.rows_a],
            "b": of_b[pairs_of_both.rows_b],
            "both": both,
            "itself": found[n_first] - 1,
        }
        yield tilings.tiling.take(held), {name: x[held] for name, x in levels.items()}


def pair_bound_of(case, blocks):
    """Return the bound of the pair that each base block is of."""
    tiles = (-(-blocks.singleCoreM // blocks.baseM), -(-blocks.singleCoreN // blocks.baseN))
    return pair_bound(
        case, type(block_pairs(case, blocks.take(np.array([0]))))(blocks, tiles, True)
    )


@pytest.mark.parametrize("seed", strided(range(60)))
@pytest.mark.thinned(3)
def test_no_bound_is_above_what_it_bounds(seed):
    rng = np.random.default_rng(seed)
    while True:
        try:
            p = Problem(**medium(int(rng.integers(10**6))))
            soc = p.chip_record
            solve(p, soc, 0)
        except CubecoreError:
            continue
        break
    seen = 0
    for tilings, levels in complete(RuleCase(None, p, soc), rng):
        if len(tilings):
            cycles = cost(tilings, p, soc).total
            seen += len(cycles)
            for name, bound in levels.items():
                assert (bound <= cycles).all(), name
    assert seen or p.chip == "Ascend310P3"  # where UB holds few steps


@pytest.mark.parametrize("units", [(True, True), (False, False)])
@pytest.mark.parametrize("extent", [1, 15, 16, 17, 100, 255, 512, 1000, 4097, 100_000])
def test_blocks_are_the_smallest_of_every_number_of_tiles(extent, units):
    """By brute force, with 8-bit types and rows of A and of B padded to 32, or not."""
    p = Problem(m=extent, n=16, k=64, a="int8", cores=1, trans_a=units[0], trans_b=units[1])
    case = RuleCase(None, p, p.chip_record)
    found = set(np.unique(block_pairs(case, core_splits(case, 1)).columns.baseM).tolist())
    top = min(LARGEST_BLOCK, 128 * 1024 // 4 // 16)
    wanted = set()
    for unit in {16, 32} if units[0] else {16}:
        smallest = {}
        for size in range(unit, top + 1, unit):
            smallest.setdefault(-(-extent // size), size)
        wanted |= set(smallest.values())
    assert found == wanted


@pytest.mark.parametrize("k", [1, 31, 64, 100, 1000, 5000])
@pytest.mark.parametrize(("kind", "plain", "unit"), [("int8", 0, 16), ("float32", 1, 8)])
def test_base_k_is_the_smallest_of_every_number_of_steps(k, kind, plain, unit):
    p = Problem(m=16, n=16, k=k, a=kind, trans_b=bool(plain))
    case = RuleCase(None, p, p.chip_record)
    wanted = set()
    for multiple in {unit, p.a_type.c0}:
        smallest = {}
        for size in range(multiple, min(-(-k // 32) * 32, LARGEST_BLOCK) + 1, multiple):
            smallest.setdefault(-(-k // size), size)
        wanted |= set(smallest.values())
    assert set(base_k_sizes(case, k).tolist()) == wanted


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 12, 100, 513])
def test_steps_are_the_smallest_of_every_number_of_chunks(blocks):
    wanted = {}
    for step in range(1, blocks + 1):
        wanted.setdefault(-(-blocks // step), step)
    assert list(smallest_steps(blocks)) == sorted(wanted.values())


def test_what_is_not_proven_says_so():
    """With no work to spend the first tilings stand, and the bound of what was left is below."""
    p = Problem(m=1000, n=2040, k=1024)
    best = solve(p, p.chip_record, 1)
    assert best.proven
    search = TilingSearch(RuleCase(None, p, p.chip_record), 1, NO_LIMITS, strict=False)
    search.blocks_left = search.residencies_left = 0
    found = search.run()
    assert found.cycles.min() >= best.best.predicted.cycles
    assert found.bound <= best.best.predicted.cycles
    assert found.bound < found.cycles.min()
