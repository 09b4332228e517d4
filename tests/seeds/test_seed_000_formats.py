"""C0_size and fractal_num of every type, and what NZ operands are aligned to (seeds 000 and 001).

The numbers here are the documents' own, type by type; nothing is computed by the package.
"""

import pytest

from cubecore.dtypes import element_type
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import rule_named
from cubecore.tiling.rules.model import RuleCase
from harness import A2, make_tiling

C0_SIZE = {
    "float": 8,
    "half": 16,
    "bfloat16_t": 16,
    "int8_t": 32,
    "fp8_e4m3fn_t": 32,
    "fp8_e5m2_t": 32,
    "hifloat8_t": 32,
    "int4b_t": 64,
    "fp4x2_e2m1_t": 64,
    "fp4x2_e1m2_t": 64,
}
FRACTAL_NUM = dict.fromkeys(C0_SIZE, 1) | {"float": 2}
EDITIONS = ("000", "001")
READINGS = ("effective", "documented")
every_type = pytest.mark.parametrize("dtype", C0_SIZE)
every_reading = pytest.mark.parametrize(
    ("edition", "reading"), [(e, r) for e in EDITIONS for r in READINGS]
)


def measure(rule, dtype, edition="000", reading="documented", fields=(), **options):
    extents = {"m": 256, "n": 256, "k": 512}
    problem = Problem(**(extents | {"a": dtype} | options))
    tiling = make_tiling(problem, **dict(fields))
    return rule_named(rule).measure(RuleCase(tiling, problem, A2, edition, reading))


def allowed(rule, dtype, values, key, **how):
    """Return which of `values` for the problem's `key` the rule lets pass."""
    return [v for v in values if measure(rule, dtype, **{key: v}, **how).holds()]


@every_type
@every_reading
def test_base_k_is_whole_c0(dtype, edition, reading):
    how = {"edition": edition, "reading": reading}
    assert measure("BASE-K-ALIGNMENT", dtype, trans_b=True, **how).limit == C0_SIZE[dtype]
    # The old edition asks for C0 whatever is transposed, the new one for 16.
    for options in ({}, {"trans_a": True, "trans_b": True}, {"trans_a": True}):
        limit = C0_SIZE[dtype] if edition == "001" else 16
        assert measure("BASE-K-ALIGNMENT", dtype, **options, **how).limit == limit


def test_c0_of_int32():
    assert element_type("int32_t").c0 == 8


@every_type
def test_l1_counts_pieces_of_c0_as_printed(dtype):
    c0, bits = C0_SIZE[dtype], element_type(dtype).bits
    fields = {"baseM": 96, "baseN": 160, "baseK": 64, "depthA1": 3, "depthB1": 5}
    plain = measure("L1-CAPACITY", dtype, fields=fields).used
    assert plain == (3 * 96 * 64 + 5 * -(-160 // c0) * 64) * bits // 8
    turned = measure("L1-CAPACITY", dtype, fields=fields, trans_a=True, trans_b=True).used
    assert turned == (3 * -(-96 // c0) * 64 + 5 * 160 * 64) * bits // 8


@every_type
@every_reading
@pytest.mark.thinned(4)
def test_nz_extents_along_k_are_whole_c0(dtype, edition, reading):
    how = {"edition": edition, "reading": reading}
    steps = range(4, 257, 4)
    want = [k for k in steps if k % C0_SIZE[dtype] == 0]
    assert allowed("A-NZ-K", dtype, steps, "k", format_a="NZ", **how) == want
    assert allowed("B-NZ-K", dtype, steps, "k", format_b="NZ", trans_b=True, **how) == want
    assert allowed("B-NZ-K", dtype, steps, "kb", format_b="NZ", trans_b=True, **how) == want


@every_type
@every_reading
@pytest.mark.thinned(4)
def test_nz_extents_along_m_and_n_are_whole_fractals(dtype, edition, reading):
    how = {"edition": edition, "reading": reading}
    steps = range(4, 257, 4)
    rows = [m for m in steps if m % 16 == 0]
    assert allowed("A-NZ-M", dtype, steps, "m", format_a="NZ", **how) == rows
    assert allowed("B-NZ-N", dtype, steps, "n", format_b="NZ", trans_b=True, **how) == rows
    # The inner axis comes in C0, which only the effective reading says of M and N.
    inner = max(C0_SIZE[dtype], 16) if reading == "effective" else 16
    want = [m for m in steps if m % inner == 0]
    assert allowed("A-NZ-M", dtype, steps, "m", format_a="NZ", trans_a=True, **how) == want
    assert allowed("B-NZ-N", dtype, steps, "n", format_b="NZ", **how) == want


@every_type
@every_reading
def test_nz_shares_along_k_are_whole_c0_times_fractal_num(dtype, edition, reading):
    whole = C0_SIZE[dtype] * FRACTAL_NUM[dtype]
    for rule, options in (
        ("A-NZ-SINGLE-CORE-K", {"format_a": "NZ"}),
        ("B-NZ-SINGLE-CORE-K", {"format_b": "NZ", "trans_b": True}),
    ):
        passed = [
            k
            for k in range(4, 257, 4)
            if measure(rule, dtype, edition, reading, {"singleCoreK": k}, **options).holds()
        ]
        assert passed == [k for k in range(4, 257, 4) if k % whole == 0]


@every_type
@every_reading
@pytest.mark.thinned(4)
def test_nz_shares_along_m_and_n_are_whole_fractals(dtype, edition, reading):
    for rule, field, options in (
        ("A-NZ-SINGLE-CORE-M", "singleCoreM", {"format_a": "NZ"}),
        ("B-NZ-SINGLE-CORE-N", "singleCoreN", {"format_b": "NZ", "trans_b": True}),
    ):
        passed = [
            x
            for x in range(4, 257, 4)
            if measure(rule, dtype, edition, reading, {field: x}, **options).holds()
        ]
        assert passed == [x for x in range(4, 257, 4) if x % 16 == 0]


@every_reading
def test_nd_operands_have_no_such_rules(edition, reading):
    names = ("A-NZ-M", "A-NZ-K", "A-NZ-SINGLE-CORE-M", "A-NZ-SINGLE-CORE-K")
    for name in names:
        assert measure(name, "half", edition, reading, format_b="NZ", m=3, k=3) is None
        other = name.replace("A-", "B-").replace("-M", "-N")
        assert measure(other, "half", edition, reading, format_a="NZ", n=3, k=3) is None


@pytest.mark.parametrize("dtype", ["fp4x2_e2m1_t", "fp4x2_e1m2_t"])
@pytest.mark.parametrize("reading", READINGS)
def test_the_inner_axis_of_float4_is_even(dtype, reading):
    sizes = range(1, 20)
    even = [x for x in sizes if x % 2 == 0]
    for rule, key, options in (
        ("A-4BIT-ROW", "k", {}),
        ("A-4BIT-ROW", "m", {"trans_a": True}),
        ("B-4BIT-ROW", "n", {}),
        ("B-4BIT-ROW", "k", {"trans_b": True}),
    ):
        assert allowed(rule, dtype, sizes, key, reading=reading, **options) == even
        other = {"k": "m", "m": "k", "n": "k"}[key] if "A" in rule else {"n": "k", "k": "n"}[key]
        assert allowed(rule, dtype, sizes, other, reading=reading, **options) == list(sizes)
