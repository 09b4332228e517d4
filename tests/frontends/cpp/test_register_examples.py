"""The examples in registers of Ascend 950: right to the last bit or by NumPy in float64, clean."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
BLOCKS = 2
COLUMNS = 256


@pytest.fixture(scope="module")
def add():
    return cubecore.load(EXAMPLES / "reg_add.cpp", chip=CHIP, checks="all").reg_add


@pytest.fixture(scope="module")
def softmax():
    return cubecore.load(EXAMPLES / "reg_softmax.cpp", chip=CHIP, checks="all").reg_softmax


@pytest.mark.parametrize("share", [1, 64, 1000, 4096])
def test_vectors_of_any_length_are_added(add, share):
    rng = np.random.default_rng(share)
    x, y = rng.normal(size=(2, BLOCKS * share)).astype(np.float32)
    z = np.zeros_like(x)
    run = add[BLOCKS](x, y, z, share)
    assert np.array_equal(z, x + y)
    assert run.findings == ()


@pytest.mark.parametrize("rows", [1, 24, 64])
def test_rows_of_softmax_are_those_of_float64(softmax, rows):
    rng = np.random.default_rng(rows)
    x = rng.normal(0, 3, size=(BLOCKS * rows, COLUMNS)).astype(np.float32)
    y = np.zeros_like(x)
    run = softmax[BLOCKS](x, y, rows)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, exact, rtol=2e-6)
    assert run.findings == ()
