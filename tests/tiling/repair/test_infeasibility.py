"""Conflicts: no tiling satisfies them together, and without any one of them there is one."""

import itertools
import os
import random
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError, InfeasibleError
from cubecore.planning.narrowing import narrowing
from cubecore.tiling.model.field_limits import NO_LIMITS, PLANNED_FIELDS, FieldLimits, Limits
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.repair.infeasibility import (
    Constraint,
    Narrowing,
    any_legal,
    find_conflict,
)
from cubecore.tiling.rules.checker import check_tiling, rule_named
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from parts import part, stride
from tiling.cases import B3, problem, tiling
from tiling.solver.test_plans_legal import drawn


def conflict_of(p, t, keep=(), settings=None, wanted=NO_LIMITS, **how):
    """Return the conflict, after its witnesses have been looked at one by one."""
    settings = settings or {}
    narrow = narrowing(p, settings)
    case = RuleCase(t, p, B3.what_if(settings), **how)
    found = find_conflict(case, keep, narrow, wanted)
    if found is not None:
        assert found.minimal
        for constraint in found.constraints:
            others = [c for c in found.constraints if c is not constraint]
            assert_satisfies(constraint.without, others, case, narrow, wanted, how)
    return found


def assert_satisfies(witness, constraints, case, narrow, wanted, how):
    names = {c.name for c in constraints}
    p, soc = narrow.narrowed({c.name for c in constraints if c.kind in {"setting", "request"}})
    broken = {f.rule for f in check_tiling(witness, p, soc, **how).findings}
    assert not broken & names
    for constraint in constraints:
        if constraint.name in wanted.fields:
            limits = wanted.fields[constraint.name]
            value = getattr(witness, constraint.name)
            whole = constraint.name == "singleCoreM" and value >= witness.M
            assert limits.low <= value <= limits.high
            assert value % limits.multiple == 0 or whole
        elif constraint.kind == "field":
            kept = getattr(case.tiling, constraint.name)
            assert getattr(witness, constraint.name) == kept


def named(conflict):
    return {c.name for c in conflict.constraints}


# Each conflict, and the values of the fields over which its rules can be enumerated.
BLOCKS = range(16, 4097, 16)
CASES = {
    "a buffer too small for one fractal": (
        {},
        {},
        (),
        {"l0a_bytes": "256"},
        {"L0A-CAPACITY", "l0a_bytes"},
        {"baseM": BLOCKS, "baseK": BLOCKS, "dbL0A": (1, 2)},
    ),
    "two blocks that fill L0C": (
        {},
        {"baseM": 256, "baseN": 256},
        ("baseM", "baseN", "baseK"),
        {},
        {"L0C-CAPACITY", "baseM", "baseN"},
        {"dbL0C": (1, 2)},
    ),
    "a block that is no fractal": (
        {},
        {"baseM": 24},
        ("baseM",),
        {},
        {"BASE-M-ALIGNMENT", "baseM"},
        {},
    ),
    "a depth that is no step": (
        {},
        {"depthA1": 7, "stepKa": 4},
        ("depthA1", "stepKa"),
        {},
        {"DEPTH-A1", "depthA1", "stepKa"},
        {"stepM": range(1, 2049)},
    ),
    "shares for more cores than were asked for": (
        {"cores": 3},
        {},
        ("singleCoreM", "singleCoreN"),
        {},
        {"USED-CORE-NUM-RANGE", "USED-CORE-NUM-PRODUCT", "singleCoreM", "singleCoreN", "cores"},
        {"usedCoreNum": range(1, 100)},
    ),
    "more cores than were asked for": (
        {"cores": 3},
        {"usedCoreNum": 4},
        ("usedCoreNum",),
        {},
        {"USED-CORE-NUM-RANGE", "usedCoreNum", "cores"},
        {},
    ),
    "a bias that no table holds": (
        {"bias": "float32"},
        {},
        (),
        {"bt_bytes": "16"},
        {"BIAS-TABLE-CAPACITY", "bt_bytes"},
        {"baseN": BLOCKS},
    ),
    "L1 with settings that make a chip only together": (
        {},
        {},
        (),
        {"l1_bytes": "600", "l1_user_bytes": "600"},
        {"L1-CAPACITY", "l1_bytes, l1_user_bytes"},
        {
            **dict.fromkeys(("baseM", "baseN", "baseK"), range(16, 257, 16)),
            **dict.fromkeys(("depthA1", "depthB1"), (1, 2)),
        },
    ),
    "a depth in a small L1": (
        {},
        {"depthA1": 16},
        ("depthA1", "baseM", "baseK"),
        {"l1_bytes": "70000", "l1_user_bytes": "70000"},
        {"L1-CAPACITY", "depthA1", "baseM", "baseK", "l1_bytes, l1_user_bytes"},
        {"baseN": range(16, 1025, 16), "depthB1": range(1, 65)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_conflicts_is_found_and_each_part_is_needed(name):
    changes, fields, keep, settings, want, _ = CASES[name]
    p = problem(**changes)
    assert named(conflict_of(p, tiling(p, **fields), keep, settings)) == want


@pytest.mark.parametrize("name", CASES)
def test_enumeration_finds_nothing_that_satisfies_a_conflict(name):
    changes, fields, _, settings, want, values = CASES[name]
    p = problem(**changes)
    given = tiling(p, **fields)
    grid = np.meshgrid(*(np.array(list(v)) for v in values.values()), indexing="ij")
    table = {n: g.reshape(-1) for n, g in zip(values, grid, strict=True)}
    columns = {n: np.array([getattr(given, n)]) for n in FIELDS} | table
    case = RuleCase(TilingColumns(columns), p, B3.what_if(settings))
    rows = len(next(iter(table.values()), [0]))
    legal = np.ones(rows, dtype=bool)
    for rule_id in want - set(FIELDS) - {*settings, "cores", "l1_bytes, l1_user_bytes"}:
        legal &= np.broadcast_to(rule_named(rule_id).measure(case).holds(), rows)
    assert not legal.any()


WANTED = {
    "two blocks": (
        {"baseM": Limits(256, 256), "baseN": Limits(256, 256), "baseK": Limits(64, 64)},
        {"L0C-CAPACITY", "baseM", "baseN"},
    ),
    "ranges": (
        {"baseM": Limits(300), "baseN": Limits(200), "stepKa": Limits(1, 9)},
        {"L0C-CAPACITY", "baseM", "baseN"},
    ),
    "no whole fractal": ({"baseM": Limits(20, 20)}, {"BASE-M-ALIGNMENT", "baseM"}),
    "nothing in the range": ({"baseM": Limits(100, 150, 96)}, {"baseM"}),
    "shares for too many cores": (
        {"singleCoreM": Limits(8, 12), "singleCoreN": Limits(1, 500)},
        {"USED-CORE-NUM-RANGE", "USED-CORE-NUM-PRODUCT", "singleCoreM"},
    ),
    "a step and a depth": (
        {"depthA1": Limits(9, 9), "stepKa": Limits(multiple=2, low=2)},
        {"DEPTH-A1", "depthA1", "stepKa"},
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_what_is_asked_of_fields_takes_part(name):
    fields, want = WANTED[name]
    assert named(conflict_of(problem(), tiling(), wanted=FieldLimits(fields))) == want


def test_what_can_be_had_is_no_conflict():
    for fields in (
        {"baseM": Limits(48, 48)},
        {"baseM": Limits(100, 200, 48), "singleCoreM": Limits(multiple=96)},
        {"baseK": Limits(16, 16), "depthA1": Limits(64, 64)},
    ):
        assert conflict_of(problem(), tiling(), wanted=FieldLimits(fields)) is None


def test_a_rule_that_reads_no_field_conflicts_alone():
    p = problem(k=70000)
    found = conflict_of(p, tiling(p), edition="001")
    assert named(found) == {"A-INNER-EXTENT"}


def test_where_a_tiling_is_legal_nothing_conflicts():
    assert conflict_of(problem(), tiling()) is None
    assert conflict_of(problem(), tiling(baseK=192)) is None
    assert conflict_of(problem(), tiling(), keep=FIELDS) is None


def test_every_kept_field_of_an_illegal_tiling():
    """With everything kept, some rule and the fields that it reads are the conflict."""
    for changes in ({"baseK": 192}, {"stepM": 2}, {"usedCoreNum": 3}, {"isBias": 2}):
        t = tiling(**changes)
        found = conflict_of(problem(), t, keep=FIELDS)
        broken = {f.rule for f in check_tiling(t, problem(), B3).findings}
        assert len(named(found) & broken) == 1


def test_the_sentence_and_the_json():
    found = conflict_of(problem(), tiling(), (), {"l0a_bytes": "256"})
    assert str(found) == (
        "no tiling satisfies together: L0A-CAPACITY (A's base blocks fit L0A), l0a_bytes = 256; "
        "without any one of them there is one"
    )
    made = found.to_json()
    assert made["minimal"] is True
    assert [(c["kind"], c["name"]) for c in made["constraints"]] == [
        ("rule", "L0A-CAPACITY"),
        ("setting", "l0a_bytes"),
    ]
    assert all(set(c["without"]) == set(FIELDS) for c in made["constraints"])


def test_every_pair_of_kept_blocks_is_right_about_what_it_says():
    """Whether blocks can be kept is what the capacities say, computed by hand."""
    for m, n, k in itertools.product((16, 128, 256, 512), (16, 256, 512), (16, 64, 1024)):
        t = tiling(baseM=m, baseN=n, baseK=k)
        found = find_conflict(
            RuleCase(t, problem(), B3),
            ("baseM", "baseN", "baseK"),
            Narrowing((), lambda _: (problem(), B3)),
        )
        fits = 2 * m * k <= 65536 and 2 * k * n <= 65536 and 4 * m * n <= 131072
        assert (found is None) == fits


def known(keys, rng):
    """Return the problem of a request and one of its plans, or None where it has none."""
    with suppress(CubecoreError):
        plan = cubecore.plan(keys, alternatives=3)
        return plan.problem, rng.choice([plan.tiling, *(a.tiling for a in plan.alternatives)])
    return None


def claimed(keys, seed):
    """Return conflicts that are claimed of wishes and kept fields that a known tiling satisfies."""
    rng = random.Random(seed)
    found = known(keys, rng)
    if found is None:
        return None
    p, t = found
    asked = rng.sample(PLANNED_FIELDS, rng.randint(0, 6))
    wanted = FieldLimits({n: Limits(getattr(t, n), getattr(t, n)) for n in asked})
    narrow = narrowing(p, None)
    spoiled = {n: 16 * rng.randint(1, 40) for n in PLANNED_FIELDS if n not in asked}
    case = RuleCase(
        replace(t, **spoiled), p, narrow.narrowed({c.name for c in narrow.constraints})[1]
    )
    try:
        any_legal(replace(p, fix=wanted), case.chip)
    except InfeasibleError as error:
        return [str(error)]
    conflict = find_conflict(case, asked, narrow)
    return [] if conflict is None else [str(conflict)]


LENGTH_IN_UB = {
    "chip": "Ascend910A",
    "m": 6016,
    "n": 17408,
    "k": 64,
    "trans_a": True,
    "trans_b": True,
    "format_a": "NZ",
    "format_b": "NZ",
    "pos_a": "VECOUT",
}


def test_a_length_that_a_rule_gives_has_that_value():
    """Once 0, the only value of its own, stood for all that transLength can be."""
    assert claimed(LENGTH_IN_UB, 1) == []


def test_nothing_conflicts_where_a_tiling_is_known():
    answers = [claimed(drawn(random.Random(seed)), seed) for seed in range(0, 24, stride())]
    assert [x for answer in answers for x in answer or ()] == []
    assert sum(answer is not None for answer in answers) > part(10)


@pytest.mark.sweep
def test_nothing_conflicts_where_one_of_many_tilings_is_known():
    first = random.randrange(2**40)
    count = int(os.environ.get("CUBECORE_SWEEP_PROBLEMS", "2000"))
    print(f"seeds from {first}")
    answers = [(s, claimed(drawn(random.Random(s)), s)) for s in range(first, first + count)]
    assert [(seed, x) for seed, answer in answers for x in answer or ()] == []


def test_what_a_constraint_is():
    made = Constraint("field", "baseM", "baseM = 16")
    assert made.to_json() == {
        "kind": "field",
        "name": "baseM",
        "text": "baseM = 16",
        "without": None,
    }
    assert replace(made, without=tiling()).to_json()["without"]["baseM"] == 128
