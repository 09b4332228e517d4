"""The examples in registers of Ascend 950: right to the last bit or by NumPy in float64, clean."""

import numpy as np
import pytest

import cubecore
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler
from frontends.cpp.example_cases import twin

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


@pytest.mark.thinned(2)
@pytest.mark.parametrize("share", [1, 64, 1000, 4096])
def test_vectors_of_any_length_are_added(add, share):
    rng = np.random.default_rng(share)
    x, y = rng.normal(size=(2, BLOCKS * share)).astype(np.float32)
    z = np.zeros_like(x)
    run = add[BLOCKS](x, y, z, share)
    assert np.array_equal(z, x + y)
    assert run.findings == ()


@pytest.mark.thinned(3)
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


@pytest.mark.thinned(3)
@pytest.mark.parametrize("rows", [1, 24, 64])
def test_normalised_rows_are_those_of_float64(rows):
    made = cubecore.load(EXAMPLES / "reg_layernorm.cpp", chip=CHIP, checks="all").reg_layernorm
    names = twin("reg_layernorm")
    given = names["inputs"](BLOCKS * rows)
    y = np.zeros_like(given[0])
    run = made[BLOCKS](*given, y, rows)
    assert (np.abs(y - names["reference"](*given)) <= names["tolerance"](*given)).all()
    assert run.findings == ()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("groups", [1, 3, 4])
def test_codes_and_scales_are_those_of_exponents(groups):
    made = cubecore.load(EXAMPLES / "reg_mx_quantise.cpp", chip=CHIP, checks="all").reg_mx_quantise
    x, codes, scales, _ = given_to("reg_mx_quantise", groups)
    run = made[BLOCKS](x, codes, scales, groups)
    wanted = twin("reg_mx_quantise")["reference"](x)
    assert run.findings == ()
    np.testing.assert_array_equal(codes, wanted[0])
    np.testing.assert_array_equal(scales, wanted[1])


def launched(made, arguments, order):
    """Return a launch, the bytes that it leaves, and its cycles."""
    own = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    run = made.using(trace=True, checks="all", order=order)[BLOCKS](*own)
    assert run.findings == ()
    left = b"".join(one.tobytes() for one in own if isinstance(one, np.ndarray))
    return left, times_of(run.kernel, (run,), 0).longest.timeline.cycles


def given_to(name, size):
    rng = np.random.default_rng(size)
    if name == "reg_add":
        x, y = rng.normal(size=(2, BLOCKS * size)).astype(np.float32)
        return x, y, np.zeros_like(x), size
    if name == "reg_layernorm":
        x, gamma, beta = twin(name)["inputs"](BLOCKS * size)
        return x, gamma, beta, np.zeros_like(x), size
    if name == "reg_mx_quantise":
        (x,) = twin("reg_mx_quantise")["inputs"](BLOCKS * 32 * size)
        scales = np.zeros((BLOCKS * size, COLUMNS), np.uint8)
        return x, np.zeros(x.shape, np.uint8), scales, size
    x = rng.normal(0, 3, size=(BLOCKS * size, COLUMNS)).astype(np.float32)
    return x, np.zeros_like(x), size


@pytest.mark.parametrize("order", ["program", "late", "early", "random:3"])
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("reg_add", 1), ("reg_add", 1000), ("reg_add", 4096), ("reg_softmax", 1)),
        *(("reg_softmax", 64), ("reg_layernorm", 1), ("reg_layernorm", 64)),
        *(("reg_mx_quantise", 1), ("reg_mx_quantise", 4)),
    ],
)
@pytest.mark.thinned(18)
def test_the_twin_in_python_leaves_the_same_bytes_in_the_same_time(name, size, order):
    arguments = given_to(name, size)
    compiled = getattr(cubecore.load(EXAMPLES / f"{name}.cpp", chip=CHIP), name)
    (got, cycles), (wanted, expected) = (
        launched(made, arguments, order) for made in (twin(name)[name], compiled)
    )
    assert got == wanted
    assert abs(cycles / expected - 1) <= 0.02
