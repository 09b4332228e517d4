"""Element types that the class API's pages list for 950: values, and calls that take them not."""

import ml_dtypes
import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP, A2 = "Ascend950PR_9589", "Ascend910B3"
COUNT = 256

CPP = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
}
BYTES, LONG = {"int8", "uint8"}, {"int64", "uint64"}
WHOLE = {"int16", "uint16", "int32", "uint32"}
ANY = {*WHOLE, "float16", "bfloat16", "float32", *BYTES, *LONG}
INTEGERS = WHOLE | BYTES | LONG
SCALED = ANY - {"uint16", "uint32"}
A2_TYPES = {"int16", "float16", "int32", "float32"}
"""What the page of 2201 lists for a sum."""


def quotient(x, y):
    """Toward zero; of a divisor 0 all ones."""
    if x.dtype.kind not in "iu":
        return x / y
    exact = [int(abs(int(p)) // abs(int(q))) if q else 0 for p, q in zip(x, y, strict=True)]
    signs = [(-1 if (p < 0) != (q < 0) else 1) for p, q in zip(x, y, strict=True)]
    ones = -1 if x.dtype.kind == "i" else 2 ** (8 * x.dtype.itemsize) - 1
    whole = [s * e if q else ones for s, e, q in zip(signs, exact, y, strict=True)]
    return np.array(whole, x.dtype)


def flipped(x):
    return (~x.view(f"u{x.dtype.itemsize}")).view(x.dtype)


def shifted(x):
    return x >> x.dtype.type(3)


def larger_than_five(x):
    return np.maximum(x, x.dtype.type(5))


def reciprocal(x):
    return quotient(np.ones_like(x), x)


TWO = {
    "Add": (ANY, np.add),
    "Sub": (ANY, np.subtract),
    "Mul": (ANY - BYTES, np.multiply),
    "Div": (WHOLE | LONG | {"float16", "float32"}, quotient),
    "Max": (ANY, np.maximum),
    "Min": (ANY, np.minimum),
    "And": (INTEGERS, np.bitwise_and),
    "Or": (INTEGERS, np.bitwise_or),
}
ONE = {
    "Abs": ({"int16", "float16", "int32", "float32", "int8", "int64"}, np.abs),
    "Relu": ({"float16", "int32", "float32", "int64"}, lambda x: np.maximum(x, x.dtype.type(0))),
    "Not": (INTEGERS | {"float16", "float32"}, flipped),
    "Reciprocal": ({"float16", "float32", *LONG}, reciprocal),
}
SCALAR = {
    "Adds": (SCALED, 5, lambda x: x + x.dtype.type(5)),
    "Muls": (SCALED - BYTES, 5, lambda x: x * x.dtype.type(5)),
    "Maxs": (SCALED, 5, larger_than_five),
    "Mins": (SCALED, 5, lambda x: np.minimum(x, x.dtype.type(5))),
    "ShiftRight": (INTEGERS, 3, shifted),
    "ShiftLeft": (INTEGERS, 3, lambda x: x << x.dtype.type(3)),
}
RELATIONS = {"LT": np.less, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal}
PICKED = ANY - BYTES - LONG
FRAME = """
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, 8192);
  pipe.InitBuffer(out, 1, 4096);
  GlobalTensor<{T}> xg, zg;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  auto a = in.AllocTensor<{T}>();
  DataCopy(a, xg, 512);
  in.EnQue(a);
  a = in.DeQue<{T}>();
  auto d = out.AllocTensor<{T}>();
  {call}
  out.EnQue(d);
  d = out.DeQue<{T}>();
  DataCopy(zg, d, 256);
  in.FreeTensor(a);
  out.FreeTensor(d);
"""
AS_BITS = "d.ReinterpretCast<uint8_t>()"
PICK = """
  Compare(m, a, a[256], CMPMODE::LT, 256);
  Select(d, m, a, a[256], SELMODE::VSEL_TENSOR_TENSOR_MODE, 256);
"""


def clear(kind):
    return f"Duplicate(d, ({CPP[kind]})0, 256);"


CASES = [
    *(
        (f"Compare{mode}", t, f"{clear(t)}Compare({AS_BITS}, a, a[256], CMPMODE::{mode}, 256);")
        for mode in RELATIONS
        for t in ANY
    ),
    *(
        (
            f"Compares{mode}",
            t,
            f"{clear(t)}Compares({AS_BITS}, a, ({CPP[t]})5, CMPMODE::{mode}, 256);",
        )
        for mode in RELATIONS
        for t in ANY
    ),
    *(("Select", t, f"auto m = in.AllocTensor<uint8_t>();{PICK}in.FreeTensor(m);") for t in PICKED),
    *((name, t, f"{name}(d, a, a[256], 256);") for name, (on, _) in TWO.items() for t in on),
    *((name, t, f"{name}(d, a, 256);") for name, (on, _) in ONE.items() for t in on),
    *(
        (name, t, f"{name}(d, a, ({CPP[t]}){scalar}, 256);")
        for name, (on, scalar, _) in SCALAR.items()
        for t in on
    ),
    *(("Duplicate", t, f"Duplicate(d, ({CPP[t]})5, 256);") for t in ANY),
]
WRONG = {
    "masked": ("int8", "Add(d, a, a[256], 64, 4, {1, 1, 1, 8, 8, 8});"),
    "masked_long": ("int64", "Adds(d, a, (int64_t)1, 32, 8, {1, 1, 8, 8});"),
    "product": ("int8", "Muls(d, a, (int8_t)2, 256);"),
    "rounded": ("int16", "ShiftRight(d, a, (int16_t)2, 128, 2, {1, 1, 8, 8}, true);"),
}


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def operands(name):
    kind, rng = dtype_of(name), np.random.default_rng(5)
    if name in INTEGERS:  # over the whole range, where sums wrap
        bits = rng.integers(0, 256, 2 * COUNT * kind.itemsize).astype(np.uint8)
        x = bits.view(kind).copy()
        x[COUNT::7] = 0  # divisors
        return x
    return rng.integers(1, 90, 2 * COUNT).astype(kind) * rng.choice([-1, 1], 2 * COUNT).astype(kind)


def expected(name, x):
    first, second = x[:COUNT], x[COUNT:]
    with np.errstate(all="ignore"):
        if name.startswith("Compare"):
            other = x.dtype.type(5) if name.startswith("Compares") else second
            bits = RELATIONS[name[-2:]](first, other)
            packed = np.packbits(bits, bitorder="little")
            return np.resize(packed, COUNT * x.dtype.itemsize).view(x.dtype)
        if name == "Select":
            return np.where(first < second, first, second)
        if name in TWO:
            return np.asarray(TWO[name][1](first, second)).astype(x.dtype)
        if name in ONE:
            return np.asarray(ONE[name][1](first)).astype(x.dtype)
        if name in SCALAR:
            return np.asarray(SCALAR[name][2](first)).astype(x.dtype)
    return np.full(COUNT, 5, x.dtype)


@pytest.fixture(scope="module")
def late(chosen):
    needed = {(case["name"], case["kind"]) for case in chosen("test_values")}
    needed |= {("Add", kind) for kind in A2_TYPES}
    bodies = {
        f"{name}_{t}": FRAME.format(T=CPP[t], call=call)
        for name, t, call in CASES
        if (name, t) in needed
    }
    bodies |= {name: FRAME.format(T=CPP[t], call=call) for name, (t, call) in WRONG.items()}
    return kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)


@pytest.fixture(scope="module")
def earlier():
    bodies = {
        f"{name}_{t}": FRAME.format(T=CPP[t], call=call) for name, t, call in CASES if name == "Add"
    }
    return kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=A2)


def run(made, name, kind):
    x, z = operands(kind), np.zeros(COUNT, dtype_of(kind))
    return getattr(made, name)[1](x, z), x, z


@pytest.mark.thinned(20)
@pytest.mark.parametrize(("name", "kind"), sorted({case[:2] for case in CASES}))
def test_values(late, name, kind):
    ran, x, z = run(late, f"{name}_{kind}", kind)
    assert [f.message for f in ran.findings] == []
    raw = slice(COUNT // 8 if name.startswith("Compare") else None)
    assert np.array_equal(z.view(np.uint8)[raw], expected(name, x).view(np.uint8)[raw])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", sorted(ANY))
def test_2201_takes_fewer_types_of_a_sum(late, earlier, kind):
    ran, _, z = run(earlier, f"Add_{kind}", kind)
    if kind in A2_TYPES:
        assert [f.message for f in ran.findings] == []
        assert np.array_equal(z, run(late, f"Add_{kind}", kind)[2])
    else:
        need = "vadd.dtype must be one of int16, float16, int32, float32"
        assert ran.findings[0].message == f"{need}, got {kind}"


MESSAGES = {
    "masked": "vadd: the call must be of a count of elements for int8 on Ascend950PR_9589, "
    "got masks and repeats",
    "masked_long": "vadds: the call must be of a count of elements for int64 on Ascend950PR_9589, "
    "got masks and repeats",
    "product": "vmuls.dtype must be one of int16, float16, bfloat16, int32, float32, int64, "
    "uint64, got int8",
    "rounded": "vshr.rounds must be clear on Ascend950PR_9589, got set",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_pages_leave_out_is_a_finding(late, name):
    ran, _, _ = run(late, name, WRONG[name][0])
    assert ran.findings[0].message == MESSAGES[name]
