"""Straight lines: the same numbers as the functions that they come from, to the last bit."""

import random
from dataclasses import replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.errors import CubecoreError
from cubecore.tiling.cost.tracing import (
    NO_TRACES,
    TRACES_PER_PROBLEM,
    WARM_UP_PROBLEMS,
    TraceCache,
    TracedFunction,
)
from cubecore.tiling.model.field_limits import NO_LIMITS
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.capabilities import require_plannable, validate
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.branch_and_bound import TilingSearch
from cubecore.tiling.solver.candidates import TilingColumns
from parts import strided

CASE = RuleCase(None, Problem(m=64, n=32, k=16), chip("Ascend910B3"))
CHIPS = ("Ascend910B3", "Ascend910_9392", "Ascend310P3", "Ascend910A", "Ascend950PR_9589")
KINDS = ("float16", "int8", "bfloat16", "float32", "int4", "float8_e4m3fn", "float4_e2m1fn")


def warm():
    lines = TraceCache()
    lines.calls, lines.left = WARM_UP_PROBLEMS + 1, 1000
    return lines


def drawn(seed):
    """Give a problem of any kind that some chip can multiply."""
    rng = random.Random(seed)
    while True:
        keys = {axis: rng.choice([1, 16, 64, 100, 512, 3000, 70_000]) for axis in "mnk"}
        keys |= {f"format_{x}": rng.choice(["ND", "ND", "ND", "NZ"]) for x in "abc"}
        keys |= {f"pos_{x}": rng.choice(["GM", "GM", "GM", "TSCM"]) for x in "ab"}
        keys |= {
            "a": rng.choice(KINDS),
            "chip": rng.choice(CHIPS),
            "trans_a": rng.random() < 0.5,
            "trans_b": rng.random() < 0.5,
            "template": rng.choice(["MDL", "MDL", "NORM", "IBSHARE"]),
            "launch": rng.choice(["cube", "cube", "mix"]),
            "batch": rng.choice([1, 1, 3]),
            "bias": rng.choice([None, None, "float32", "int32"]),
            "split_k": rng.random() < 0.2,
        }
        try:
            problem = Problem(**keys)
            validate(problem, problem.chip_record)
            require_plannable(problem)
        except CubecoreError:
            continue
        return problem


def searched(problem, lines):
    case = RuleCase(None, problem, problem.chip_record)
    search = TilingSearch(case, 3, NO_LIMITS, strict=False, traces=lines)
    search.residencies_left = 3000
    return search.run()


@pytest.mark.parametrize("seed", strided(range(60)))
@pytest.mark.thinned(3)
def test_a_search_finds_the_same_by_lines(seed):
    problem = drawn(seed)
    plain, made = searched(problem, NO_TRACES), searched(problem, warm())
    assert (plain is None) == (made is None)
    if plain is None:
        return
    assert (plain.bound, plain.judged, plain.complete) == (made.bound, made.judged, made.complete)
    assert np.array_equal(plain.cycles, made.cycles)
    for name in set(plain.tilings.names) & set(FIELDS):
        wanted, found = getattr(plain.tilings, name), getattr(made.tilings, name)
        assert np.array_equal(wanted, found), name


def test_lines_are_of_a_kind_of_problem_and_a_kind_of_chip():
    case = RuleCase(None, Problem(m=5, n=5, k=5), chip("Ascend910B3"))
    lines = TraceCache.of(case)
    other_extents = replace(case, problem=Problem(m=7, n=1, k=9, seed=3))
    assert TraceCache.of(other_extents) is lines
    assert TraceCache.of(replace(case, problem=Problem(m=5, n=5, k=5, trans_a=True))) is not lines
    smaller = replace(case.chip, name="other", aic_count=7, l0a_bytes=4096)
    assert TraceCache.of(replace(case, chip=smaller)) is lines
    tables = {"short_start_cycles": None}, {"cube_k": {"float16": 8}}, {"frequency_hz": 1.5e9}
    for changed in tables:
        assert TraceCache.of(replace(case, chip=replace(case.chip, **changed))) is not lines
    assert chip("Ascend910B3") is case.chip


def tens(case, t):
    if case.problem.m == 1 or case.problem.n > 1000:
        return (t.x + case.problem.m,)
    return (t.x * 10,)


def test_another_decision_makes_another_line():
    function, lines = TracedFunction(tens), warm()
    columns = TilingColumns({"x": np.arange(3.0)})
    for _ in range(2):
        for m, n, wanted in ((64, 32, [0, 10, 20]), (1, 32, [1, 2, 3]), (64, 2000, [64, 65, 66])):
            case = replace(CASE, problem=Problem(m=m, n=n, k=16))
            (found,) = function(lines, case, columns)
            assert found.tolist() == wanted
    assert [len(made) for made in lines.traces.values()] == [3]


def test_few_lines_are_made_for_one_problem():
    own_kind = replace(chip("Ascend910B3"), short_start_cycles={"of this test": 1})
    case = RuleCase(None, Problem(m=4, n=4, k=4), own_kind)
    functions = [TracedFunction(lambda _, t, add=add: (t.x + add,)) for add in range(5)]
    columns = TilingColumns({"x": np.arange(3.0)})
    made = []
    for _ in range(WARM_UP_PROBLEMS + 4):
        lines = TraceCache.of(case)
        for add, function in enumerate(functions):
            (found,) = function(lines, case, columns)
            assert found.tolist() == [add, 1 + add, 2 + add]
        made.append(sum(len(lines) for lines in lines.traces.values()))
    assert made[WARM_UP_PROBLEMS - 1 :] == [min(5, i * TRACES_PER_PROBLEM) for i in range(5)]


def test_a_column_of_another_kind_makes_another_line():
    function, lines = TracedFunction(lambda _, t: (-(-t.x // 2) + np.floor(t.x / 2),)), warm()
    for x in (np.array([3, 4]), np.array([3.0, 4.0]), np.array([1.5, 2.5])):
        (found,) = function(lines, CASE, TilingColumns({"x": x}))
        assert found.tolist() == (-(-x // 2) + np.floor(x / 2)).tolist()
    (number,) = function(lines, CASE, TilingColumns({"x": 7}))
    assert number == 7
    assert [len(made) for made in lines.traces.values()] == [3]


def joined(case, top, a, b):
    part = np.where(a.u > 1, top.s * a.u, case.problem.k)
    other = np.clip(b.v + top.s, 1, 6) ** 2
    return (np.maximum(part, 3) - other, np.logical_not(part < other), case.problem.m + 1)


def test_a_join_has_a_row_for_each_pair_of_rows():
    """What a and b belong to is looked up for each of their rows, and theirs for each pair."""
    rng = np.random.default_rng(0)
    top = TilingColumns({"s": rng.random(4)})
    a, b = TilingColumns({"u": rng.random(9) * 3}), TilingColumns({"v": rng.random(7) * 9})
    up_a, up_b = rng.integers(0, 4, 9), rng.integers(0, 4, 7)
    pairs = np.array([(i, j) for i in range(9) for j in range(7) if up_a[i] == up_b[j]])
    rows = (up_a[pairs[:, 0]], pairs[:, 0], pairs[:, 1])
    function = TracedFunction(joined, parents=(None, 0, 0))
    wanted = []
    for i, j in pairs:
        s, u, v = top.s[up_a[i]], a.u[i], b.v[j]
        part, other = s * u if u > 1 else 16, min(max(v + s, 1), 6) ** 2
        wanted.append((max(part, 3) - other, not part < other))
    for lines in (NO_TRACES, warm()):
        found, flags, number = function(lines, CASE, top, a, b, ups=(None, up_a, up_b), rows=rows)
        assert list(zip(found.tolist(), flags.tolist(), strict=True)) == wanted
        assert number == 65


def test_a_struct_takes_its_parents_rows():
    function = TracedFunction(lambda _, top, own: (top.s + own.u,), parents=(None, 0))
    top, own = (
        TilingColumns({"s": np.array([1.0, 2.0])}),
        TilingColumns({"u": np.array([10.0, 20.0, 30.0])}),
    )
    for lines in (NO_TRACES, warm()):
        (found,) = function(lines, CASE, top, own, ups=(None, np.array([1, 0, 1])))
        assert found.tolist() == [12, 21, 32]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _, t: (1 if t.x > 1 else 2,), "must not decide on a column"),
        (lambda _, t: (t.x + np.arange(3),), "must use numbers and columns"),
        (lambda _, t: (np.cumsum(t.x),), "no implementation found"),
    ],
)
def test_what_a_line_cannot_hold_is_refused(function, message):
    with pytest.raises(TypeError, match=message):
        TracedFunction(function)(warm(), CASE, TilingColumns({"x": np.arange(3.0)}))
