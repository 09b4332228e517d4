"""Plans with fields asked for: what is asked is kept to, nothing is lost, and nothing is found."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.chips import chip
from cubecore.errors import NoLegalTilingError
from cubecore.tiling.model.field_limits import FieldLimits, Limits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.tiling.solver.solver import solve
from tiling.cases import B3, problem

P = problem(m=1000, n=3000, k=700)
SHARED = {"singleCoreM": "M", "singleCoreN": "N", "singleCoreK": "Ka"}


def best(p=P, soc=B3, **fields):
    return solve(p, soc, 1, FieldLimits(fields)).best


def only(value):
    return Limits(value, value)


@pytest.mark.parametrize(
    "asked",
    [
        {"baseM": 48},
        {"baseM": 64, "baseN": 128, "baseK": 32},
        {"baseK": 16},
        {"singleCoreM": 100},
        {"singleCoreM": 256, "singleCoreN": 752},
        {"iterateOrder": 0},
        {"iterateOrder": 1},
        {"dbL0A": 1},
        {"dbL0C": 2},
        {"stepKa": 2},
        {"depthA1": 4},
    ],
    ids=str,
)
@pytest.mark.thinned(3)
def test_a_fixed_field_is_as_asked(asked):
    found = best(**{name: only(value) for name, value in asked.items()})
    assert {name: getattr(found.tiling, name) for name in asked} == asked
    assert check_tiling(found.tiling, P, B3).legal
    assert found.predicted.cycles >= best().predicted.cycles


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("baseM", 33, 60),
        ("baseN", 500, 640),
        ("baseK", 16, 47),
        ("singleCoreM", 300, 400),
        ("singleCoreN", 1, 160),
        ("usedCoreNum", 3, 5),
    ],
)
def test_a_range_is_kept_to(name, low, high):
    p = P if name != "singleCoreN" else problem(m=100, n=3000, k=700)
    tiling = best(p, **{name: Limits(low, high)}).tiling
    assert low <= getattr(tiling, name) <= high
    assert check_tiling(tiling, p, B3).legal


@pytest.mark.parametrize("multiple", [32, 48, 96, 128, 1000])
@pytest.mark.parametrize("name", ["singleCoreM", "singleCoreN"])
def test_shares_are_multiples_or_whole(name, multiple):
    tiling = best(**{name: Limits(multiple=multiple)}).tiling
    share, extent = getattr(tiling, name), getattr(tiling, SHARED[name])
    assert share % multiple == 0 or share == extent
    assert check_tiling(tiling, P, B3).legal


def test_k_is_cut_at_multiples():
    p = problem(m=32, n=32, k=8192, split_k=True, cores=8)
    tiling = best(p, singleCoreK=Limits(multiple=1536)).tiling
    assert tiling.singleCoreK in {1536, 3072, 4608, 6144, 8192}
    assert best(p, singleCoreK=only(1024)).tiling.usedCoreNum == 8


@settings(max_examples=40)
@given(
    m=st.integers(1, 3000),
    n=st.integers(1, 3000),
    k=st.integers(1, 3000),
    kind=st.sampled_from(["float16", "int8", "float32"]),
    cores=st.integers(1, 20),
    soc=st.sampled_from(["Ascend910B3", "Ascend950PR_9589"]),
)
@pytest.mark.sweep
def test_asking_for_the_best_finds_it(m, n, k, kind, cores, soc):
    p, target = Problem(m=m, n=n, k=k, a=kind, cores=cores), chip(soc)
    free = solve(p, target, 1).best
    names = ("singleCoreM", "singleCoreN", "baseM", "baseN", "baseK", "iterateOrder", "dbL0C")
    fields = {name: only(getattr(free.tiling, name)) for name in names}
    again = solve(p, target, 1, FieldLimits(fields)).best
    assert again.predicted.cycles <= free.predicted.cycles
    assert {name: getattr(again.tiling, name) for name in names} == {
        name: getattr(free.tiling, name) for name in names
    }


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"baseM": only(50)},
            "no legal tiling for 1000 x 3000 x 700 on Ascend910B3 with baseM = 50: "
            "BASE-M-ALIGNMENT (baseM in whole fractals) excludes ",
        ),
        (
            {"baseM": only(512), "baseN": only(512)},
            "no legal tiling for 1000 x 3000 x 700 on Ascend910B3 with baseM = 512 and "
            "baseN = 512: L0C-CAPACITY (C's base blocks fit L0C) excludes ",
        ),
        (
            {"singleCoreM": only(100), "singleCoreN": only(100)},
            "no legal tiling for 1000 x 3000 x 700 on Ascend910B3 with singleCoreM = 100 "
            "and singleCoreN = 100: none on 20 cores",
        ),
        (
            {"baseM": Limits(33, 40)},
            "no legal tiling for 1000 x 3000 x 700 on Ascend910B3 with baseM in [33, 40]: "
            "none on 20 cores",
        ),
        (
            {"singleCoreN": Limits(low=5000, multiple=32)},
            "no legal tiling for 1000 x 3000 x 700 on Ascend910B3 with singleCoreN >= "
            "5000, a multiple of 32: none on 20 cores",
        ),
    ],
)
def test_what_cannot_be_had_is_one_sentence(fields, line):
    with pytest.raises(NoLegalTilingError) as caught:
        best(**fields)
    # How many candidates a rule excluded is the solver's own affair.
    assert re.sub(r"\d+ candidates$", "", str(caught.value)) == line


def test_one_core_is_one_core():
    with pytest.raises(NoLegalTilingError, match=r": none on 1 core$"):
        best(replace(P, cores=1), singleCoreM=only(100))


def test_masks_are_by_field():
    columns = TilingColumns(
        {"baseM": np.array([16, 32, 48]), "singleCoreM": np.array([96, 64, 90])}
    )
    columns = columns.with_fields(M=90)
    assert FieldLimits({"baseM": Limits(17, 48)}).mask(columns).tolist() == [False, True, True]
    assert FieldLimits({"singleCoreM": Limits(multiple=64)}).mask(columns).tolist() == [True] * 3
    assert FieldLimits({"singleCoreM": Limits(multiple=60)}).mask(columns).tolist() == [
        True,
        False,
        True,
    ]
    assert FieldLimits({"depthA1": only(7)}).mask(columns).tolist() == [True] * 3
    assert FieldLimits().mask(columns).all()
