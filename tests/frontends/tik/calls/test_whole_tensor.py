"""TIK's calls on whole tensors, against NumPy."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
RNG = np.random.default_rng(31)
SHAPES = [(3, 16), (5, 64), (300, 128)]


def done(body, dtype, *given):
    """Run `body(t, out, *inputs)` on tensors in UB."""
    t = Tik(Dprofile("v200", "aic"))
    inputs, held = [], []
    for number, values in enumerate(given):
        inputs.append(t.Tensor(str(values.dtype), values.shape, GM, f"x{number}"))
        held.append(t.Tensor(str(values.dtype), values.shape, UB, f"ub{number}"))
        t.data_move(held[-1], inputs[-1], 0, 1, values.nbytes // 32, 0, 0)
    out, y = (t.Tensor(dtype, given[0].shape, scope, scope) for scope in (UB, GM))
    body(t, out, *held)
    t.h_data_move(y, out)
    t.BuildCCE("k", inputs, [y])
    ran = t.launch({f"x{number}": values for number, values in enumerate(given)})
    assert ran.findings == ()
    return ran.outputs[GM]


def numbers(shape, dtype="float16"):
    return RNG.integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("call", "rule"),
    [
        *(("add", np.add), ("sub", np.subtract), ("mul", np.multiply)),
        *(("max", np.maximum), ("min", np.minimum), ("div", np.divide)),
    ],
)
def test_two_tensors_and_a_tensor_and_a_number(call, rule, shape):
    one, two = numbers(shape), numbers(shape)
    two[two == 0] = 3
    got = done(lambda t, out, a, b: getattr(t, f"h_{call}")(out, a, b), "float16", one, two)
    assert np.array_equal(got, rule(one, two))
    got = done(lambda t, out, a: getattr(t, f"h_{call}")(out, a, 4.0), "float16", one)
    assert np.array_equal(got, rule(one, np.float16(4)))


def test_one_tensor():
    given = np.abs(numbers((3, 48), "float32")) + 1
    for call, rule in (("abs", np.abs), ("relu", lambda v: np.maximum(v, 0))):
        got = done(lambda t, out, a, call=call: getattr(t, f"h_{call}")(out, a), "float32", -given)
        assert np.array_equal(got, rule(-given))
    got = done(lambda t, out, a: t.h_sqrt(out, a), "float32", given)
    assert np.array_equal(got, np.sqrt(given))
    got = done(lambda t, out, a: t.h_exp(out, a), "float32", given)
    assert np.allclose(got, np.exp(given.astype(np.float64)), rtol=2e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_conversions_and_filling(shape):
    given = (RNG.integers(-90, 90, shape) / 4).astype(np.float16)
    got = done(lambda t, out, a: t.h_cast(out, a, "floor"), "int32", given)
    assert np.array_equal(got, np.floor(given).astype(np.int32))
    assert (done(lambda t, out, _: t.h_duplicate(out, 5), "int32", given) == 5).all()


# ruff: noqa: E501 - whole lines
REFUSED = [
    (lambda t, x: t.h_add(x, x, x[0:, 0:16]), "h_add must take tensors of one known shape, got (4, 32), (4, 32), (4, 16)"),
    (lambda t, x: t.h_abs(x[0:, 0:16], x[0:, 0:16]), "h_abs must take contiguous tensors, got a view with gaps"),
    (lambda t, x: t.h_data_move(x[0, 0:8], x[0, 0:8]), "h_data_move.dst must be a multiple of 32 B, got 16 B"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "message"), REFUSED)
def test_refusals(broken, message):
    t = Tik(Dprofile("v200", "aic"))
    x = t.Tensor("float16", (4, 32), UB, "x")
    with pytest.raises(RequestError) as caught:
        broken(t, x)
    assert str(caught.value).partition(": ")[2] == message


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float16", 1e-3)])
@pytest.mark.parametrize(("call", "rule"), [("h_sin", np.sin), ("h_cos", np.cos)])
def test_sines(call, rule, dtype, tolerance):
    given = np.linspace(-12, 12, 1536).astype(dtype).reshape(12, 128)
    got = done(lambda t, out, a: getattr(t, call)(out, a), dtype, given)
    wanted = rule(given.astype(np.float64))
    assert np.abs(got - wanted).max() <= tolerance


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("mode", "rule"), [("GT", np.greater), ("le", np.less_equal), ("EQ", np.equal)]
)
def test_comparisons_and_selections(dtype, mode, rule):
    one, two = numbers((5, 48), dtype), numbers((5, 48), dtype)

    def body(t, out, a, b):
        bits = t.Tensor("bool", (8, 64), UB, "bits")
        t.h_cmpv(mask_tensor=bits, src0=a, src1=b, cmp_mode=mode)
        t.h_sel(out, a, b, bits)

    assert np.array_equal(done(body, dtype, one, two), np.where(rule(one, two), one, two))


@pytest.mark.parametrize("length", [16, 128, 384])
def test_reductions_of_rows(length):
    t = Tik(Dprofile("v200", "aic"))
    given = numbers((6, length), "float32")
    x, y = t.Tensor("float32", (6, length), GM, "x"), t.Tensor("float32", (16,), GM, "y")
    held, out = t.Tensor("float32", (6, length), UB, "held"), t.Tensor("float32", (16,), UB, "out")
    t.h_data_move(held, x)
    t.h_duplicate(out, 0.0)
    t.h_reduce_sum(out[:6], held, 1)
    t.h_reduce_max(out[8:14], held, -1)
    t.h_data_move(y, out)
    t.BuildCCE("k", [x], [y])
    got = t.launch({"x": given}).outputs["y"]
    assert np.array_equal(got[:6], given.sum(1))
    assert np.array_equal(got[8:14], given.max(1))


WHOLE_REFUSED = [
    (
        lambda t, a: t.h_reduce_sum(a, a, 0),
        "h_reduce_sum.axis must be -1 or 1, the last axis, got 0",
    ),
    (
        lambda t, a: t.h_cmpv(a, a, a, "GREATER"),
        "h_cmpv.cmp_mode must be one of EQ, NE, LT, LE, GT, GE, got 'GREATER'",
    ),
    (
        lambda t, a: t.h_reduce_max(a, t.Tensor("float16", (4, 136), UB, "x"), 1),
        "h_reduce_max.src must have rows of whole blocks of 32 B, and above 128 elements of whole "
        "repeats, got 136",
    ),
]


@pytest.mark.parametrize(("body", "message"), WHOLE_REFUSED)
def test_refusals_of_whole_tensors(body, message):
    t = Tik(Dprofile("v200", "aic"))
    tensor = t.Tensor("float16", (4, 64), UB, "tensor")
    with pytest.raises(RequestError) as caught:
        body(t, tensor)
    assert str(caught.value).partition(": ")[2] == message
