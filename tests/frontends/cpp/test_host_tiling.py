"""Tilings for C++ host code: as fast as those in Python but for 3 %, and simple if they can be."""

from dataclasses import fields

import pytest

from cubecore.chips import chip
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.host_programs.tiling_calls import tiling_bytes
from cubecore.frontends.matmul_tiling.setters import MultiCoreMatmulTiling
from cubecore.tiling.model.tcubetiling import TCubeTiling

CHIP = chip("Ascend910B3")
BYTES = 4 * len(fields(TCubeTiling))
OPERANDS = ["set_a_type GM ND DT_FLOAT16 0", "set_b_type GM ND DT_FLOAT16 0"]


def calls(cores, m, n, k, *more):
    shape = f"{m} {n} {k}"
    result = ["set_c_type GM ND DT_FLOAT", f"set_org_shape {shape}", f"set_shape {shape}"]
    return [f"set_dim {cores}", *OPERANDS, *result, *more]


def asked(cores, m, n, k, share=(-1, -1), block=(-1, -1, -1)):
    """Return a tiling by the setters of Python, and its cycles."""
    setters = MultiCoreMatmulTiling(CHIP)
    setters.set_dim(cores)
    setters.set_a_type("GM", "ND", "DT_FLOAT16")
    setters.set_b_type("GM", "ND", "DT_FLOAT16")
    setters.set_c_type("GM", "ND", "DT_FLOAT")
    setters.set_org_shape(m, n, k)
    setters.set_shape(m, n, k)
    setters.set_single_shape(*share, -1)
    setters.set_fix_split(*block)
    tiling = setters.get_tiling()
    return tiling, setters.solution.best.predicted.cycles


def host(cores, m, n, k, *more):
    raw = tiling_bytes(CHIP, "MultiCoreMatmulTiling", calls(cores, m, n, k, *more))
    return TCubeTiling.from_bytes(raw[:BYTES])


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("shape", "simple"),
    [
        ((20, 256, 512, 192), {"singleCoreM": 64, "singleCoreN": 128}),  # of one size
        ((2, 512, 512, 128), {"singleCoreM": 256, "singleCoreN": 512}),  # whole rows of C
        ((1, 256, 256, 512), {"baseN": 256}),  # blocks of whole rows
        ((1, 128, 128, 256), {"baseM": 128, "baseN": 128}),  # a share in one block
        ((20, 2560, 128, 512), {"baseK": 128}),  # equal steps along K
    ],
)
def test_a_simple_tiling_is_taken_where_it_costs_little(shape, simple):
    best, least = asked(*shape)
    t = host(*shape)
    assert {name: getattr(best, name) for name in simple} != simple
    assert {name: getattr(t, name) for name in simple} == simple
    _, cycles = asked(*shape, (t.singleCoreM, t.singleCoreN), (t.baseM, t.baseN, t.baseK))
    assert cycles <= 1.03 * least


@pytest.mark.thinned(3)
@pytest.mark.parametrize("shape", [(20, 4096, 4096, 4096), (7, 1000, 999, 128), (3, 80, 112, 64)])
def test_a_fast_tiling_stays_where_a_simple_one_is_slow(shape):
    t = host(*shape)
    _, least = asked(*shape)
    _, cycles = asked(*shape, (t.singleCoreM, t.singleCoreN), (t.baseM, t.baseN, t.baseK))
    assert cycles <= 1.03 * least


def test_shares_and_blocks_that_are_given_stay():
    t = host(20, 256, 512, 192, "set_single_shape 52 128 -1")
    assert (t.singleCoreM, t.singleCoreN) == (52, 128)
    t = host(1, 128, 128, 256, "set_fix_split 64 64 -1")
    assert (t.baseM, t.baseN) == (64, 64)


def test_what_has_no_tiling_is_refused_as_in_python():
    with pytest.raises(CubecoreError):
        host(1, 128, 128, 256, "set_fix_split 2048 2048 -1")
