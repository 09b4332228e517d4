"""TIK's vector calls in both dialects, against NumPy on whole arrays."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
V910, V310, V310P = ("v100", "cloud"), ("v100", "mini"), ("v200", "aic")


def kernel(body, inputs, outputs, target=V910):
    """Build a kernel whose inputs are in UB; `body(t, inputs, outputs)` issues it; run it."""
    t = Tik(Dprofile(*target))
    given, made = {}, {}
    for name, values in inputs.items():
        source = t.Tensor(str(values.dtype), values.shape, GM, f"{name}_gm")
        given[name] = t.Tensor(str(values.dtype), values.shape, UB, name)
        t.data_move(given[name], source, 0, 1, -(-values.nbytes // 32), 0, 0)
    for name, (dtype, count, fill) in outputs.items():
        made[name] = t.Tensor(dtype, (count,), UB, name)
        if fill is not None:
            lanes = 256 // np.dtype(dtype).itemsize
            t.vec_dup(min(lanes, count), made[name], fill, -(-count // lanes), 8)
    body(t, given, made)
    results = {}
    for name, (dtype, count, _) in outputs.items():
        results[name] = t.Tensor(dtype, (count,), GM, f"{name}_gm")
        t.data_move(
            results[name], made[name], 0, 1, -(-count * np.dtype(dtype).itemsize // 32), 0, 0
        )
    t.BuildCCE("k", [t.gm_tensors[f"{n}_gm"] for n in inputs], list(results.values()))
    ran = t.launch({f"{name}_gm": values for name, values in inputs.items()})
    assert ran.findings == ()
    return {name: ran.outputs[f"{name}_gm"] for name in outputs}


def reals(seed, count, dtype="float16"):
    return np.random.default_rng(seed).uniform(0.5, 4, count).astype(dtype)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "div": np.divide,
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("name", list(BINARY))
def test_two_sources_in_both_dialects(name, dtype):
    if (name, dtype) == ("div", "int32"):
        pytest.skip("there is no integer division")
    lanes = 256 // np.dtype(dtype).itemsize
    x, y = (reals(seed, 3 * lanes).astype(dtype) for seed in (1, 2))

    def body(t, given, made):
        getattr(t, f"vec_{name}")(lanes, made["high"], given["x"], given["y"], 3, 8, 8, 8)
        getattr(t, f"v{name}")(lanes - 3, made["low"], given["x"], given["y"], 3, 1, 1, 1, 8, 8, 8)

    got = kernel(
        body, {"x": x, "y": y}, {"high": (dtype, 3 * lanes, 0), "low": (dtype, 3 * lanes, 7)}
    )
    want = BINARY[name](x, y).astype(dtype)
    assert np.array_equal(got["high"], want)
    masked = want.reshape(3, lanes).copy()
    masked[:, lanes - 3 :] = 7
    assert np.array_equal(got["low"].reshape(3, lanes), masked)


def test_strides_and_the_accumulate_idiom():
    x = np.arange(1, 513, dtype=np.float32)

    def body(t, given, made):
        t.vadd(64, made["sum"], made["sum"], given["x"], 8, 1, 1, 1, 0, 0, 8)
        t.vmuls(64, made["wide"], given["x"], 2, 2, 2, 1, 16, 8)

    got = kernel(body, {"x": x}, {"sum": ("float32", 64, 0), "wide": ("float32", 256, -1)})
    assert np.array_equal(got["sum"], x.reshape(8, 64).sum(axis=0))
    wide = np.full((16, 2, 8), -1, np.float32)
    wide[:, 0] = x[:128].reshape(16, 8) * 2
    assert np.array_equal(got["wide"], wide.reshape(-1))


UNARY = {
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "exp": np.exp,
    "ln": np.log,
    "sqrt": np.sqrt,
    "rec": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


@pytest.mark.parametrize("name", list(UNARY))
def test_one_source(name):
    x = reals(3, 128)

    def body(t, given, made):
        getattr(t, f"vec_{name}")([2**64 - 1, 2**64 - 2], made["y"], given["x"], 1, 8, 8)

    got = kernel(body, {"x": x}, {"y": ("float16", 128, 0)})["y"]
    want = UNARY[name](x.astype(np.float64)).astype(np.float16)
    want[0] = 0
    np.testing.assert_allclose(got, want, rtol=2e-3)


def test_scalars_of_every_kind():
    x = reals(4, 128)

    def body(t, given, made):
        two = t.Scalar("float16", init_value=2)
        t.vec_muls(128, made["y"], given["x"], two, 1, 8, 8)
        t.vec_adds(128, made["y"], made["y"], 0.5, 1, 8, 8)
        count = t.Scalar("int32", init_value=100)
        t.vec_adds(count, made["y"], made["y"], 1, 1, 8, 8)
        t.vec_axpy(128, made["z"], given["x"], 3.0, 1, 8, 8)

    got = kernel(body, {"x": x}, {"y": ("float16", 128, 0), "z": ("float16", 128, 1)})
    want = x * np.float16(2) + np.float16(0.5)
    want[:100] += np.float16(1)
    assert np.array_equal(got["y"], want)
    exact = (x.astype(np.float32) * 3 + 1).astype(np.float16)
    np.testing.assert_allclose(got["z"], exact, rtol=2e-3)


@pytest.mark.parametrize(
    ("source", "target", "mode", "oracle"),
    [
        ("float16", "float32", "", lambda x: x),
        ("float32", "float16", "none", lambda x: x),
        ("float16", "int32", "floor", np.floor),
        ("float16", "int32", "ceil", np.ceil),
        ("float32", "int32", "round", np.rint),
        ("float32", "int32", "to-zero", np.trunc),
        ("int32", "float32", "", lambda x: x),
    ],
)
def test_conversions(source, target, mode, oracle):
    x = np.random.default_rng(5).uniform(-40, 40, 64).astype(source)

    def body(t, given, made):
        sizes = {n: np.dtype(n).itemsize for n in (source, target)}
        strides = (sizes[target] * 2, sizes[source] * 2)
        t.vec_conv(64, mode, made["y"], given["x"], 1, *strides)

    got = kernel(body, {"x": x}, {"y": (target, 64, 0)})["y"]
    assert np.array_equal(got, oracle(x.astype(np.float64)).astype(target))


def test_int32_to_half_needs_a_scale():
    x = np.arange(-32, 32, dtype=np.int32)

    def body(t, given, made):
        t.vconv(64, "", made["y"], given["x"], 1, 1, 1, 4, 8, 0.5)
        with pytest.raises(
            RequestError, match=r"vconv\.deqscale must be given for int32 to float16"
        ):
            t.vconv(64, "", made["y"], given["x"], 1, 1, 1, 4, 8)

    got = kernel(body, {"x": x}, {"y": ("float16", 64, 0)})["y"]
    assert np.array_equal(got, (x * 0.5).astype(np.float16))


RELATIONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", list(RELATIONS))
def test_comparisons_and_selections(name):
    x, y = (np.random.default_rng(s).integers(0, 4, 256).astype(np.float16) for s in (1, 2))

    def body(t, given, made):
        getattr(t, f"vec_cmpv_{name}")(made["bits"], given["x"], given["y"], 2, 8, 8)
        handle = getattr(t, f"vcmp_{name}")(128, given["x"], given["y"], 1, 1)
        t.vsel(128, 0, made["one"], handle, given["x"], given["y"], 1, 1, 1, 1, 8, 8, 8)
        t.vec_sel(128, 0, made["all"], made["bits"], given["x"], given["y"], 2, 8, 8, 8)

    outputs = {"bits": ("uint16", 16, None), "one": ("float16", 128, 0), "all": ("float16", 256, 0)}
    got = kernel(body, {"x": x, "y": y}, outputs)
    holds = RELATIONS[name](x, y)
    bits = np.unpackbits(got["bits"].view(np.uint8), bitorder="little").astype(bool)
    assert np.array_equal(bits, holds)
    assert np.array_equal(got["one"], np.where(holds, x, y)[:128])
    served = np.tile(holds[:128], 2)
    assert np.array_equal(got["all"], np.where(served, x, y))


def test_reductions_of_a_repeat():
    x = np.random.default_rng(6).integers(-8, 9, 256).astype(np.float16)

    def body(t, given, made):
        t.vcadd(128, made["sum"], given["x"], 2, 1, 1, 8)
        t.vcmax(128, made["max"], given["x"], 2, 1, 1, 8)
        t.vcmin(128, made["min"], given["x"], 2, 1, 1, 8)
        t.vcgadd(128, made["blocks"], given["x"], 2, 1, 1, 8)
        t.vec_cpadd(128, made["pairs"], given["x"], 2, 1, 8)

    outputs = dict.fromkeys(("sum", "max", "min", "blocks"), ("float16", 16, 0))
    got = kernel(body, {"x": x}, outputs | {"pairs": ("float16", 128, 0)})
    rows = x.reshape(2, 128)
    pairs = rows.astype(np.float32)
    assert np.array_equal(got["sum"][:2], pairs.sum(axis=1))
    assert np.array_equal(got["pairs"], pairs.reshape(-1, 2).sum(axis=1).astype(np.float16))
    assert np.array_equal(got["blocks"], x.reshape(16, 16).astype(np.float64).sum(axis=1))
    for name, best in (("max", np.argmax), ("min", np.argmin)):
        places = best(rows, axis=1)
        assert np.array_equal(got[name][:4:2], rows[[0, 1], places])
        assert np.array_equal(got[name].view(np.uint16)[1:4:2], places)


@pytest.mark.parametrize("repeats", [1, 5, 64, 130])
def test_a_sum_of_all_repeats(repeats):
    x = np.random.default_rng(7).integers(-3, 4, 64 * repeats).astype(np.float32)

    def body(t, given, made):
        work = t.Tensor("float32", (repeats,), UB, "work")
        t.vec_reduce_add(64, made["sum"], given["x"], work, repeats, 8)
        t.vec_reduce_max(64, made["max"], given["x"], work, repeats, 8)

    got = kernel(body, {"x": x}, {"sum": ("float32", 8, 0), "max": ("float32", 8, 0)})
    assert got["sum"][0] == x.sum()
    assert got["max"][0] == x.max()


def test_transposes():
    x = np.arange(512, dtype=np.float16).reshape(2, 16, 16)

    def body(t, given, made):
        t.vec_trans(made["two"], given["x"], 2, 1, 1)
        rows = [given["x"][16 * i :] for i in range(16)]
        t.vnchwconv(False, False, [made["one"][16 * i :] for i in range(16)], rows, 1, 0, 0)

    got = kernel(body, {"x": x}, {"two": ("float16", 512, 0), "one": ("float16", 256, 0)})
    assert np.array_equal(got["two"].reshape(2, 16, 16), x.transpose(0, 2, 1))
    assert np.array_equal(got["one"].reshape(16, 16), x[0].T)


def test_stepping_over_a_tensor_of_ub_is_a_finding_where_it_happens():
    """By one block, as public operators do: it reads and writes what lies behind the tensor."""
    for taken in (1, 0):
        t = Tik(Dprofile("v100", "mini"))
        x, y = t.Tensor("float16", (272,), GM, "x"), t.Tensor("float16", (272,), GM, "y")
        n = t.InputScalar("int32", "n")
        a, b = (t.Tensor("float16", (count,), UB, name) for count, name in ((128, "a"), (144, "b")))
        t.data_move(a, x, 0, 1, 8, 0, 0)
        t.data_move(b, x[128:], 0, 1, 9, 0, 0)
        with t.if_scope(n > 0):
            t.vec_adds(72, a, a, 1.0, 2, 8, 8)
        t.data_move(y, a, 0, 1, 8, 0, 0)
        t.data_move(y[128:], b, 0, 1, 9, 0, 0)
        t.BuildCCE("k", [x, n], [y])
        values = np.arange(272).astype(np.float16)
        run = t.launch({"x": values, "n": np.int32(taken)})
        told = [f.message for f in run.findings if f.id == "out-of-bounds"]
        assert (
            told
            == [
                "vec_adds.dst must stay inside a (0 to 256 B), got bytes [0, 400)",
                "vec_adds.src must stay inside a (0 to 256 B), got bytes [0, 400)",
            ][: 2 * taken]
        )
        lanes = np.r_[0:72, 128:200]
        values[lanes] += taken
        assert np.array_equal(run.outputs["y"], values)


# ruff: noqa: ARG005 - each takes what there is
BROKEN = [
    (lambda t, x: t.vec_add(129, x, x, x, 1, 8, 8, 8), "vec_add.mask must be in [1, 128], got 129"),
    (lambda t, x: t.vec_add(0, x, x, x, 1, 8, 8, 8), "vec_add.mask must be in [1, 128], got 0"),
    (
        lambda t, x: t.vec_add(128, x, x, x, 0, 8, 8, 8),
        "vec_add.repeat_times must be in [1, 255] as an immediate, got 0",
    ),
    (
        lambda t, x: t.vec_add(128, x, x, x, 255, 255, 8, 8),
        "vec_add.dst must stay inside x (0 to 256 B), got bytes [0, 2072896)",
    ),
    (
        lambda t, x: t.vec_add(16, x[2:], x, x, 1, 8, 8, 8),
        "vec_add.dst must start at a multiple of 32 B in UB, got 4 B into x",
    ),
    (
        lambda t, x: t.vec_add(128, x, x, x, 2, 8, 8, 256),
        "vec_add.src1_repeat_stride must be in [0, 255], got 256",
    ),
    (
        lambda t, x: t.vec_add(128, x, x, x.reinterpret_cast_to("int32"), 1, 8, 8, 8),
        "vec_add.src1 must have dst's type float16, got int32",
    ),
    (
        lambda t, x: t.vec_add(128, x, x),
        "vec_add must be given mask, dst, src0, src1, repeat_times, dst_rep_stride, "
        "src0_rep_stride, src1_rep_stride, got no src1",
    ),
    (
        lambda t, x: t.vdiv(128, x, x, x, 1, 1, 1, 1, 8, 8, 8),
        "vdiv must run on architecture 2201 or 3510 or 1001 or 2002, got m100",
    ),
    (
        lambda t, x: t.vec_exp(64, *[x.reinterpret_cast_to("float32")] * 2, 1, 8, 8),
        "vec_exp.dst must not be float32 on Ascend310, got float32",
    ),
    (
        lambda t, x: t.vmrgch(x, x, 1),
        "tik.vmrgch is not supported: it needs the order of a channel "
        "merge, which no public page documents",
    ),
    (lambda t, x: x[0][1], "an element of x cannot be indexed"),
    (lambda t, x: x[0:8:2], "a slice of x must have step 1, got 2"),
    (lambda t, x: x[128], "an index of x must be in [-128, 128), got 128"),
    (
        lambda t, x: t.Tensor("float16", (126_849,), UB, "y"),
        "the tensors of UB must take at most 253952 B together, got 253984 B; the largest are "
        "y 253728 B, x 256 B",
    ),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_refusal_names_the_line(broken, message):
    t = Tik(Dprofile(*V310))
    x = t.Tensor("float16", (128,), UB, "x")
    with pytest.raises(RequestError) as caught:
        broken(t, x)
    line = broken.__code__.co_firstlineno
    assert str(caught.value) == f"test_vector.py:{line}: {message}"
