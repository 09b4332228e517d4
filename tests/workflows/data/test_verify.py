"""Verification: right products keep their limits, broken ones do not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import cubecore
from cubecore.answers.run import Verification
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.workflows.data.float32_screen import is_worth_screening
from cubecore.workflows.data.operands import Operands, make_operands
from cubecore.workflows.data.verify import verify
from parts import crossed
from workflows.data.products import BREAKABLE, random_case

FLOAT32_POLICY = (
    "6 standard deviations of independent roundings to float32, one for each addition and as large "
    "as the largest partial sum, plus the drift of a sequential float32 sum where terms round alike"
)
NONFINITE = "NaN and infinities must be the same"


def judged(case, result) -> Verification:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return verify(case.problem, case.operands, result, case.tiling)


def wrongly_refused(seeds) -> list[int]:
    cases = ((seed, random_case(np.random.default_rng(seed))) for seed in seeds)
    return [seed for seed, case in cases if not judged(case, case.right()).verified]


def missed(seeds) -> tuple[int, list[int]]:
    """Return how many broken products differ from the right ones, and those that were passed."""
    differ, passed = 0, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        case = random_case(rng, BREAKABLE)
        broken = case.broken(rng)
        if np.array_equal(broken, case.right()):
            continue
        differ += 1
        if judged(case, broken).verified:
            passed.append(seed)
    return differ, passed


def test_right_products_are_verified():
    assert wrongly_refused(range(60)) == []


def test_broken_products_are_found():
    differ, passed = missed(range(1000, 1060))
    assert differ > 50
    assert passed == []


@pytest.mark.sweep
def test_4000_right_products_are_verified():
    assert wrongly_refused(range(4000)) == []


@pytest.mark.sweep
def test_2000_broken_products_are_found():
    differ, passed = missed(range(1_000_000, 1_002_150))
    assert differ >= 2000
    assert len(passed) <= differ // 1000


@pytest.mark.thinned(3)
@pytest.mark.parametrize("k", [64, 256, 1024])
def test_an_outlier_column_of_a_is_verified(k):
    made = make_operands(Problem(m=64, n=64, k=k))
    made.a[:, 5] = 1000
    for engine in ("blas", "reference"):
        assert cubecore.run(m=64, n=64, k=k, operands=made, engine=engine).verified


LARGE = Problem(m=520, n=512, k=8192)
"""Large enough for the screen, with a short block of rows at the end."""


@pytest.fixture(scope="module")
def large():
    given = make_operands(LARGE)
    a, b = given.a.astype(np.float32), given.b.astype(np.float32)
    return given, a @ b, cubecore.plan(LARGE).tiling


def test_a_large_product_is_screened_and_verified(large):
    given, product, tiling = large
    assert is_worth_screening(LARGE)
    answer = verify(LARGE, given, product, tiling)
    exact = given.a.astype(np.float64) @ given.b.astype(np.float64)
    error = np.abs(product - exact)
    assert answer.verified
    assert 0.8 * error.max() <= answer.max_abs_error <= error.max() * (1 + 1e-6)
    assert 0 < answer.compared < error.size // 100
    assert answer.max_rel_error <= (error / np.abs(exact)).max() * (1 + 1e-6)
    half = replace(LARGE, c="float16")
    assert verify(half, given, product.astype(np.float16), tiling).verified


@pytest.mark.parametrize("place", [(0, 0), (255, 511), (256, 3), (519, 511)])
def test_one_wrong_element_of_a_large_product_is_found(large, place):
    given, product, tiling = large
    wrong = product.copy()
    wrong[place] += 0.1
    answer = verify(LARGE, given, wrong, tiling)
    assert not answer.verified
    assert answer.max_abs_error == pytest.approx(0.1, rel=0.01)
    assert answer.worst > 1


def test_a_large_product_without_a_step_is_found(large):
    given, product, tiling = large
    part = given.a[:128, -16:].astype(np.float32) @ given.b[-16:, :128].astype(np.float32)
    wrong = product.copy()
    wrong[:128, :128] -= part
    assert not verify(LARGE, given, wrong, tiling).verified
    wrong[:] = 0
    assert not verify(LARGE, given, wrong, tiling).verified


def test_a_large_product_with_nan_is_compared_as_such(large):
    given, product, tiling = large
    a, wanted = given.a.copy(), product.copy()
    a[3, 7], a[300, 8] = np.nan, np.inf
    wanted[3] = np.nan
    wanted[300] = np.where(given.b[8] > 0, np.inf, -np.inf)
    answer = verify(LARGE, Operands(a, given.b), wanted, tiling)
    assert answer.verified
    assert (answer.nan, answer.infinite, answer.nonfinite_differ) == (512, 512, 0)
    wanted[300, 5] *= -1
    wanted[17, 5] = np.nan
    answer = verify(LARGE, Operands(a, given.b), wanted, tiling)
    assert not answer.verified
    assert answer.nonfinite_differ == 2


@pytest.mark.parametrize("engine", ["blas", "reference"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.thinned(3)
def test_nan_and_infinity_are_compared_and_counted(engine, kind, relu):
    of = "float16" if kind == "float32" else kind
    p = Problem(m=32, n=48, k=64, a=of, b=of, c=kind, epilogue=Epilogue(relu=relu))
    made = make_operands(p)
    made.a[1, 2], made.a[4, 5], made.a[7, 9] = np.nan, np.inf, -np.inf
    made.b[5, 6] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = cubecore.run(p, operands=made, engine=engine)
    assert answer.verified
    assert answer.to_json()["nonfinite"] == {"nan": 48 + 1, "infinite": 48 + 47, "differ": 0}
    assert np.isfinite(answer.verification.tolerance)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("row", "value"), [(1, 0.0), (1, np.inf), (4, np.nan), (4, 1.0), (2, np.nan), (2, np.inf)]
)
def test_a_result_that_is_not_finite_where_the_product_is_not_differs(row, value):
    p = Problem(m=32, n=48, k=64)
    made, tiling = make_operands(p), cubecore.plan(p).tiling
    made.a[1, 2], made.a[4, 5] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        wanted = made.a.astype(np.float32) @ made.b.astype(np.float32)
    assert verify(p, made, wanted, tiling).verified
    wanted[row, 3] = value
    answer = verify(p, made, wanted, tiling)
    assert not answer.verified
    assert answer.nonfinite_differ == 1


@pytest.mark.parametrize(
    ("terms", "passes", "fails"),
    [
        ([3e38, 3e38, 0.0], [np.inf], [-np.inf, np.nan, 3e38]),
        ([3e38, 3e38, -3e38, -3e38], [0.0, np.inf, -np.inf, np.nan], [1e38]),
        ([3e38, 3e38, -5e38 / 2], [np.inf, 3.5e38], [-np.inf, np.nan, 0.0]),
        ([1e38, 1e38, -1e38], [1e38], [np.inf, -np.inf, np.nan]),
    ],
)
def test_sums_that_may_leave_float32_are_infinite_as_an_order_makes_them(terms, passes, fails):
    p = Problem(m=1, n=1, k=len(terms), a="float32", b="float32")
    given = Operands(np.array([terms], np.float32), np.ones((len(terms), 1), np.float32))
    tiling = cubecore.plan(p).tiling
    with np.errstate(over="ignore"):
        for values, wanted in ((passes, True), (fails, False)):
            for value in values:
                answer = verify(p, given, np.array([[value]], np.float32), tiling)
                assert answer.verified is wanted, value


@pytest.mark.parametrize(
    ("k", "value"), crossed([200, 384, 4096, 16384], [0.1, 0.7, 1 / 3], every=2)
)
@pytest.mark.thinned(6)
def test_the_drift_of_repeated_terms_is_right(k, value):
    p = Problem(m=16, n=16, k=k, a="float32", b="float32")
    given = Operands(np.full((16, k), value, np.float32), np.full((k, 16), value, np.float32))
    total = np.zeros((16, 16), np.float32)
    for step in range(k):
        total += np.multiply.outer(given.a[:, step], given.b[step])
    tiling = cubecore.plan(p).tiling
    assert verify(p, given, total, tiling).verified
    total[3, 4] -= given.a[0, 0] * given.b[0, 0] * 16
    assert not verify(p, given, total, tiling).verified


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({}, f"{FLOAT32_POLICY}; {NONFINITE}"),
        ({"c": "float16"}, f"{FLOAT32_POLICY}, plus the rounding to float16; {NONFINITE}"),
        ({"a": "int8", "b": "int8"}, f"integer sums must be exact; {NONFINITE}"),
        (
            {"a": "int8", "b": "int8", "epilogue": {"quant": "DEQF16", "scale": 0.5}},
            "integer sums must be exact, times the scale, plus the rounding to float16; "
            f"{NONFINITE}",
        ),
    ],
)
def test_the_answer_states_how_limits_are_derived(keys, wanted):
    assert cubecore.run(m=16, n=16, k=32, **keys).to_json()["tolerance_policy"] == wanted


def test_the_answer_says_how_many_elements_its_errors_are_of():
    small = cubecore.run(m=16, n=48, k=32, batch=2)
    assert small.to_json()["float64_elements"] == 2 * 16 * 48
    assert "  errors  " not in small.text
    most = small.verification.compared - 5
    large = replace(small, verification=replace(small.verification, compared=most))
    line = "  errors  of 1,531 elements in float64, with those farthest from a float32 matmul; it "
    assert f"{line}settles the other 5\n" in large.text
