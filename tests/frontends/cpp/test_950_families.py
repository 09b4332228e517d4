"""Families with element types of 950's pages beyond A2's: values, and the findings on A2."""

import ml_dtypes
import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP, A2 = "Ascend950PR_9589", "Ascend910B3"
CPP = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
}
COUNT = 256
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 65536);
  GlobalTensor<{T}> xg, zg;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  auto a = memory.Get<{T}>(), b = a[256], d = a[512], t = a[2048];
  auto at = memory.Get<uint32_t>()[8192];
  DataCopy(a, xg, 1024);
  CreateVecIndex(at.ReinterpretCast<int32_t>(), 255, 256);
  PipeBarrier<PIPE_ALL>();
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, d, 256);
"""
LONG, WHOLE = ("int64", "uint64"), ("int16", "uint16", "int32", "uint32")
TURNED = (
    "CreateVecIndex(at.ReinterpretCast<int32_t>(), 0, 256); PipeBarrier<PIPE_V>();"
    "Muls(at.ReinterpretCast<int32_t>(), at.ReinterpretCast<int32_t>(), -{size}, 256);"
    "PipeBarrier<PIPE_V>();"
    "Adds(at.ReinterpretCast<int32_t>(), at.ReinterpretCast<int32_t>(), 255 * {size}, 256);"
    "PipeBarrier<PIPE_V>(); "
)


def multiplied(x, y, z):
    return x * y + z


def placed(values, *results):
    """dst, whose first elements are results."""
    made = values.copy()
    flat = np.concatenate([np.atleast_1d(np.asarray(r)).astype(made.dtype) for r in results])
    made[: flat.size] = flat
    return made


def place_bits(index, kind):
    return np.array([index]).astype(f"u{kind.itemsize}").view(kind)


def extreme(largest, count):
    def of(a, _, d):
        n = int(a[:count].argmax() if largest else a[:count].argmin())
        return placed(d, a[n], place_bits(n, a.dtype))

    return of


def extremes(a, _, d):
    """The smallest of each repeat with its lane."""
    lanes = 256 // a.dtype.itemsize
    parts = [a[:lanes], a[lanes : 2 * lanes]]
    pairs = [(p.min(), place_bits(p.argmin(), a.dtype)[0]) for p in parts]
    return placed(d, np.array(pairs).ravel())


FAMILIES = {
    # name: (types of 950 alone, call, of a, b and the old dst; the instruction that 2201 refuses)
    "axpy": (
        ("bfloat16", *LONG),
        "Axpy(d, a, ({T})3, 256);",
        lambda a, _, d: multiplied(a, a.dtype.type(3), d),
        "vaxpy",
    ),
    "mul_add_dst": (LONG, "MulAddDst(d, a, b, 256);", multiplied, "vmla"),
    "add_relu": (
        LONG,
        "AddRelu(d, a, b, 256);",
        lambda a, b, _: np.maximum(a + b, a.dtype.type(0)),
        "vaddrelu",
    ),
    "gather": (
        ("int8", "uint8", *LONG),
        TURNED + "Gather(d, a, at, 0u, 256u);",
        lambda a, *_: a[:COUNT][::-1],
        "vgather",
    ),
    "index": (
        ("int8", "int64"),
        "CreateVecIndex(d, ({T})7, 256u);",
        lambda a, *_: (np.arange(COUNT) + 7).astype(a.dtype),
        "vci",
    ),
    "max": (
        (*WHOLE, *LONG),
        "ReduceMax(d, a, t, 200, true);",
        extreme(largest=True, count=200),
        "vcmax",
    ),
    "min": (
        (*WHOLE, *LONG),
        "ReduceMin(d, a, t, 200, true);",
        extreme(largest=False, count=200),
        "vcmin",
    ),
    "sum": (
        ("int32", "uint32", *LONG),
        "ReduceSum(d, a, t, 200);",
        lambda a, _, d: placed(d, a[:200].sum(dtype=a.dtype)),
        "vcadd",
    ),
    "each_min": (
        WHOLE,
        "WholeReduceMin(d, a, 256 / sizeof({T}), 2, 1, 1, 8);",
        extremes,
        "vcmin",
    ),
    "each_sum": (
        ("int32", "uint32"),
        "WholeReduceSum(d, a, 64, 2, 1, 1, 8);",
        lambda a, _, d: placed(d, a[:128].reshape(2, 64).sum(axis=-1, dtype=a.dtype)),
        "vcadd",
    ),
}
MASKED_MAX = "ReduceMax(d, a, t, 20, 3, 8, true);"
CASES = [(name, kind) for name, (kinds, *_) in FAMILIES.items() for kind in kinds]
BLOCKS = [("brcb", kind) for kind in ("int8", "uint64")]


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def operand(kind):
    rng, dtype = np.random.default_rng(8), dtype_of(kind)
    if dtype.kind in "iu":
        return rng.integers(0, 256, 1024 * dtype.itemsize).astype(np.uint8).view(dtype)
    return rng.integers(-20, 20, 1024).astype(dtype)


def bodies():
    made = {
        f"{name}_{kind}": FRAME.format(
            T=CPP[kind],
            call=FAMILIES[name][1].format(T=CPP[kind], size=dtype_of(kind).itemsize),
        )
        for name, kind in CASES
    }
    made |= {f"{n}_{k}": FRAME.format(T=CPP[k], call="Brcb(d, a, 1, {1, 8});") for n, k in BLOCKS}
    return made | {"masked": FRAME.format(T="float", call=MASKED_MAX)}


@pytest.fixture(scope="module")
def late(chosen):
    of_test = {f"{case['name']}_{case['kind']}" for case in chosen("test_values")}
    left_out = {f"{name}_{kind}" for name, kind in CASES} - of_test
    needed = {name: body for name, body in bodies().items() if name not in left_out}
    return kernels(needed, "GM_ADDR x, GM_ADDR z", chip=CHIP)


@pytest.fixture(scope="module")
def earlier(chosen):
    of_test = {f"{case['name']}_{case['kind']}" for case in chosen("test_2201_refuses_the_types")}
    left_out = {f"{name}_{kind}" for name, kind in CASES} - of_test
    needed = {name: body for name, body in bodies().items() if name not in left_out}
    return kernels(needed, "GM_ADDR x, GM_ADDR z", chip=A2)


def run(made, name, kind):
    x, z = operand(kind), np.zeros(COUNT, dtype_of(kind))
    return [f.message for f in getattr(made, name)[1](x, z).findings], x, z


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_values(late, name, kind):
    said, x, z = run(late, f"{name}_{kind}", kind)
    assert said == []
    with np.errstate(all="ignore"):
        expected = np.asarray(FAMILIES[name][2](x[:256], x[256:512], x[512:768]))
    assert z.tobytes() == expected.astype(z.dtype).tobytes()


@pytest.mark.thinned(8)
@pytest.mark.parametrize(("name", "kind"), [c for c in CASES if c[0] != "index"])
def test_2201_refuses_the_types(earlier, name, kind):
    said, *_ = run(earlier, f"{name}_{kind}", kind)
    assert said[0].startswith(f"{FAMILIES[name][3]}.")
    assert said[0].endswith(f", got {kind}")


@pytest.mark.parametrize(("name", "kind"), BLOCKS)
def test_blocks_of_one_element(late, name, kind):
    said, x, z = run(late, f"{name}_{kind}", kind)
    assert said == []
    lanes = 32 // z.itemsize
    np.testing.assert_array_equal(z[: 8 * lanes], np.repeat(x[:8], lanes)[:COUNT])


def test_a_masked_extreme_of_repeats(late):
    """Lanes 0 to 19 of three repeats; the index counts through the repeats."""
    said, x, z = run(late, "masked", "float32")
    assert said == []
    lanes = x[:192].reshape(3, 64).copy()
    lanes[:, 20:] = -np.inf
    assert z[0] == lanes.max()
    assert z.view(np.uint32)[1] == lanes.argmax()
