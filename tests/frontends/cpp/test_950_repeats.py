"""Masks and repeats of class-API calls that are vector functions on 950, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
SIZE = 8192
"""Bytes of each array."""
BITS, HIGH = 0x5A5A5A5AF00FA55A, 0x0FF0
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 32768);
  auto bytes = memory.Get<uint8_t>();
  GlobalTensor<uint8_t> xg, og, zg;
  xg.SetGlobalBuffer((__gm__ uint8_t*)x);
  og.SetGlobalBuffer((__gm__ uint8_t*)o);
  zg.SetGlobalBuffer((__gm__ uint8_t*)z);
  DataCopy(bytes, xg, 8192);
  DataCopy(bytes[8192], og, 8192);
  Duplicate<uint16_t>(bytes[16384].ReinterpretCast<uint16_t>(), (uint16_t)0x1111, 4096);
  PipeBarrier<PIPE_ALL>();
  auto a = bytes.ReinterpretCast<{U}>();
  auto at = bytes[8192].ReinterpretCast<uint32_t>();
  auto d = bytes[16384].ReinterpretCast<{T}>();
  uint64_t bits[2] = {{{bits}}};
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, bytes[16384], 8192);
"""
CPP = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float8_e4m3fn": "fp8_e4m3fn_t",
    "float4_e2m1": "fp4x2_e2m1_t",
}
NONE, NEAREST = "CAST_NONE", "CAST_RINT"
CASTS = {
    # (source, target): rounding; blocks from repeat to repeat of dst and of src
    ("int8", "int32"): (NONE, 10, 3),
    ("int8", "int16"): (NONE, 8, 4),
    ("int32", "uint8"): (NONE, 2, 9),
    ("uint16", "uint32"): (NONE, 8, 4),
    ("float16", "bfloat16"): (NEAREST, 9, 8),
    ("float32", "float8_e4m3fn"): (NEAREST, 2, 8),
}
TIMES = 3


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def lanes_on(kind, lanes):
    """Which lanes of a repeat take part: the first few, those of the bits, or all of a count."""
    if kind == "few":
        return np.arange(lanes) < lanes // 2 - 3
    words = np.array([BITS, HIGH], np.uint64).view(np.uint8)
    return np.unpackbits(words, bitorder="little")[:lanes].astype(bool)


def body(call, target, source, lanes=128):
    """Return a kernel with a call; its array of bits has those of so many lanes."""
    bits = f"{BITS & (1 << lanes) - 1:#x}, {HIGH if lanes > 64 else 0:#x}"
    return FRAME.format(T=CPP[target], U=CPP[source], call=call, bits=bits)


def call_of(form, call, lanes):
    """Return a call with `MASK`, `TIMES` and `SET`, which says whether the call sets the mask."""
    words = {
        "few": ("", f"{lanes // 2 - 3}", TIMES, "true", ""),
        "bits": ("", "bits", TIMES, "true", ""),
        "set": (f"SetVectorMask<{{wide}}>({lanes // 2 - 3});", "MASK_PLACEHOLDER", TIMES, "false",
                "ResetMask();"),
        "counted": (f"SetMaskCount(); SetVectorMask<{{wide}}, MaskMode::COUNTER>({2 * lanes + 5});",
                    "MASK_PLACEHOLDER", 0, "false", "SetMaskNorm(); ResetMask();"),
    }  # fmt: skip
    before, mask, times, sets, behind = words[form]
    filled = call.replace("MASK", mask).replace("TIMES", str(times)).replace("SET", sets)
    return before, filled, behind


def cast_lanes(source, target):
    return 256 // max(dtype_of(source).itemsize, dtype_of(target).itemsize)


def cast_call(form, source, target):
    rounding, to, of = CASTS[source, target]
    wide = max(source, target, key=lambda name: dtype_of(name).itemsize)
    lanes = cast_lanes(source, target)
    call = "Cast<{T}, {U}, SET>(d, a, RoundMode::{R}, (uint64_t)MASK, TIMES, {{1, 1, {to}, {of}}});"
    if form == "bits":
        call = call.replace("(uint64_t)MASK", "MASK")
    text = call.format(T=CPP[target], U=CPP[source], R=rounding, to=to, of=of)
    before, text, behind = call_of(form, text, lanes)
    return before.format(wide=CPP[wide]) + text + behind


FORMS = ("few", "bits", "set", "counted")
CAST_CASES = [
    (source, target, form)
    for number, (source, target) in enumerate(CASTS)
    for form in (FORMS if number == 0 else (FORMS[number % 2],))
]
SCATTERED = ("float16", "int32", "int64")
SUMS = {"int16": "int32", "uint16": "uint32"}
EMPTY = {
    "block_max": "BlockReduceMax<float>(d, a, 1, 32, 1, 1, 8);",
    "block_min": "ReduceDataBlock<ReduceType::MIN, float, float>(d, a, 32, 1, 1, 1, 8);",
    "block_sum": "BlockReduceSum<float>(d, a, 1, 32, 1, 1, 8);",
    "pair_sum": "PairReduceSum<float>(d, a, 1, 32, 1, 1, 8);",
}


@pytest.fixture(scope="module")
def made():
    bodies = {
        f"{source}_{target}_{form}": body(
            cast_call(form, source, target), target, source, cast_lanes(source, target)
        )
        for source, target, form in CAST_CASES
    }
    for kind in SCATTERED:
        lanes = 256 // dtype_of(kind).itemsize
        for form, mask in (("few", f"(uint64_t){lanes // 2 - 3}"), ("bits", "bits")):
            call = f"Scatter(d, a, at, {dtype_of(kind).itemsize}u, {mask}, {TIMES}, 9);"
            bodies[f"scatter_{kind}_{form}"] = body(call, kind, kind, lanes)
    for kind, wide in SUMS.items():
        call = f"ReduceRepeat<ReduceType::SUM, {CPP[wide]}, {CPP[kind]}>(d, a, 100, 3, 2, 2, 17);"
        bodies[f"sum_{kind}"] = body(call, wide, kind)
    bodies |= {name: body(call, "float32", "float32") for name, call in EMPTY.items()}
    apart = "Cast(d, a, RoundMode::CAST_NONE, 64, 1, {2, 1, 16, 2});"
    bodies["apart"] = body(apart, "int32", "int8")
    one = "Cast(d, a, RoundMode::CAST_RINT, 7, 1, {1, 1, 1, 8});"
    bodies["one_of_two"] = body(one, "float4_e2m1", "bfloat16")
    return kernels(bodies, "GM_ADDR x, GM_ADDR o, GM_ADDR z", chip=CHIP)


def ran(made, name, x, order=None):
    given, offsets = np.zeros(SIZE, np.uint8), np.zeros(SIZE // 4, np.uint32)
    given[: x.nbytes] = x.view(np.uint8)
    if order is not None:
        offsets[: order.size] = order
    z = np.zeros(SIZE, np.uint8)
    run = getattr(made, name)[1](given, offsets.view(np.uint8), z)
    assert [f.message for f in run.findings] == []
    return z


def left():
    return np.full(SIZE, 0x11, np.uint8)


def operand(name):
    rng, kind = np.random.default_rng(5), dtype_of(name)
    count, low = SIZE // kind.itemsize, -100 if kind.kind == "i" else 0
    values = rng.integers(low, 200, count) if kind.kind in "iu" else rng.normal(0, 40, count)
    return values.astype(kind)


@pytest.mark.parametrize(("source", "target", "form"), CAST_CASES)
def test_casts(made, source, target, form):
    x = operand(source)
    lanes = cast_lanes(source, target)
    _, to, of = CASTS[source, target]
    expected = left().view(dtype_of(target))
    for repeat in range(TIMES):
        on = lanes_on("bits" if form == "bits" else "few", lanes)
        if form == "counted":
            on = np.arange(lanes) + repeat * lanes < 2 * lanes + 5
        begin = repeat * of * 32 // x.itemsize
        values = x[begin : begin + lanes]
        if x.dtype.kind in "iu":
            limits = np.iinfo(expected.dtype)
            values = np.clip(values.astype(np.int64), limits.min, limits.max)
        at = repeat * to * 32 // expected.itemsize
        part = expected[at : at + lanes]
        part[on] = values.astype(expected.dtype)[on]
    z = ran(made, f"{source}_{target}_{form}", x)
    np.testing.assert_array_equal(z, expected.view(np.uint8))


@pytest.mark.parametrize("form", ["few", "bits"])
@pytest.mark.parametrize("kind", SCATTERED)
def test_scatter(made, kind, form):
    x = operand(kind)
    lanes = 256 // x.itemsize
    order = np.random.default_rng(7).permutation(TIMES * lanes)
    expected = left().view(x.dtype)
    for repeat in range(TIMES):
        on, begin = lanes_on(form, lanes), repeat * 9 * 32 // x.itemsize
        to = order[repeat * lanes : (repeat + 1) * lanes] + 1
        expected[to[on]] = x[begin : begin + lanes][on]
    z = ran(made, f"scatter_{kind}_{form}", x, (order * x.itemsize).astype(np.uint32))
    np.testing.assert_array_equal(z, expected.view(np.uint8))


@pytest.mark.parametrize("kind", SUMS)
def test_sums_in_a_wider_type(made, kind):
    """Three repeats 17 blocks apart, of every second block; results two elements apart."""
    info = np.iinfo(kind)
    x = np.random.default_rng(6).integers(info.min, info.max, SIZE // 2, kind)
    expected = left().view(SUMS[kind])
    for repeat in range(3):
        blocks = x[repeat * 17 * 16 :][: 16 * 16].reshape(8, 2, 16)[:, 0]
        expected[2 * repeat] = blocks.ravel()[:100].sum(dtype=SUMS[kind])
    np.testing.assert_array_equal(ran(made, f"sum_{kind}", x), expected.view(np.uint8))


@pytest.mark.parametrize("name", EMPTY)
def test_groups_without_a_lane_get_the_result_of_none(made, name):
    x = operand("float32")[:64]
    halves = x[:32].reshape(-1, 2 if name == "pair_sum" else 8)
    results, none = {
        "block_max": (halves.max(axis=1), -np.inf),
        "block_min": (halves.min(axis=1), np.inf),
        "block_sum": (halves.sum(axis=1), 0),
        "pair_sum": (halves.sum(axis=1), 0),
    }[name]
    z = ran(made, name, x).view(np.float32)
    np.testing.assert_allclose(z[: len(results)], results, 1e-5)
    assert (z[len(results) : 2 * len(results)] == none).all()
    assert (z[2 * len(results) :].view(np.uint32) == 0x11111111).all()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("apart", "Cast must have block strides of 1 in cubecore, got 2 and 1"),
        (
            "one_of_two",
            "Cast: mask of a type of 4 bits must take both elements of a byte or none, "
            "got one of two",
        ),
    ],
)
def test_what_such_a_cast_lacks_is_refused(made, name, said):
    arrays = (np.zeros(SIZE, np.uint8) for _ in range(3))
    with pytest.raises(CubecoreError) as raised:
        getattr(made, name)[1](*arrays)
    assert said in str(raised.value)
