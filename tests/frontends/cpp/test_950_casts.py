"""Conversions of tensors that page Cast lists for 950 and not for A2, by a count of elements."""

import ml_dtypes
import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP, COUNT = "Ascend950PR_9589", 300
CPP = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float8_e5m2": "fp8_e5m2_t",
    "float8_e4m3fn": "fp8_e4m3fn_t",
    "hifloat8": "hifloat8_t",
    "int4": "int4b_t",
    "float4_e2m1": "fp4x2_e2m1_t",
    "float4_e1m2": "fp4x2_e1m2_t",
}
BODY = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 32768);
  auto bytes = memory.Get<uint8_t>();
  GlobalTensor<uint8_t> xg, zg;
  xg.SetGlobalBuffer((__gm__ uint8_t*)x);
  zg.SetGlobalBuffer((__gm__ uint8_t*)z);
  DataCopy(bytes, xg, 4096);
  PipeBarrier<PIPE_ALL>();
  auto a = bytes.ReinterpretCast<{source}>();
  auto b = bytes[8192].ReinterpretCast<{middle}>();
  auto d = bytes[16384].ReinterpretCast<{target}>();
  {calls}
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(zg, bytes[{at}], {{1, {size}, 0, 0}});
"""
EXACT, NEAREST = "CAST_NONE", "CAST_RINT"
ONE_STEP = {
    ("int8", "int16"): EXACT,
    ("int8", "int32"): EXACT,
    ("uint8", "uint16"): EXACT,
    ("uint8", "uint32"): EXACT,
    ("int16", "uint8"): EXACT,
    ("int16", "int32"): EXACT,
    ("int16", "uint32"): EXACT,
    ("uint16", "uint8"): EXACT,
    ("uint16", "uint32"): EXACT,
    ("int32", "uint8"): EXACT,
    ("int32", "uint16"): EXACT,
    ("uint32", "uint8"): EXACT,
    ("uint32", "int16"): EXACT,
    ("uint32", "uint16"): EXACT,
    ("float16", "bfloat16"): NEAREST,
    ("bfloat16", "float16"): NEAREST,
    ("float32", "float8_e5m2"): NEAREST,
    ("float32", "float8_e4m3fn"): NEAREST,
    ("float8_e5m2", "float32"): EXACT,
    ("float8_e4m3fn", "float32"): EXACT,
}
THERE_AND_BACK = {
    # of values that the narrow type has
    ("int16", "int4"): (EXACT, EXACT, range(-8, 8)),
    ("float16", "int4"): (NEAREST, EXACT, range(-8, 8)),
    ("bfloat16", "float4_e2m1"): (NEAREST, EXACT, (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -3, -6)),
    ("bfloat16", "float4_e1m2"): (NEAREST, EXACT, (0, 0.25, 0.5, 0.75, 1, 1.5, 1.75, -0.25, -1.75)),
    ("float16", "hifloat8"): ("CAST_ROUND", EXACT, (0, 1, 1.5, -2, 3, 7, 8, -20, 64, 0.25)),
    ("float32", "hifloat8"): ("CAST_ROUND", EXACT, (0, 1, 1.5, -2, 3, 7, 8, -16, 64, 0.25)),
}
DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn")
}


def dtype_of(name):
    return DTYPES.get(name) or np.dtype(name)


def operand(name):
    """Numbers over the type's range, the largest and smallest among them."""
    rng, kind = np.random.default_rng(3), dtype_of(name)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        small = rng.integers(max(info.min, -300), min(info.max, 300), COUNT, endpoint=True)
        x = small.astype(kind)
        x[:2] = info.min, info.max
        return x
    if kind.itemsize == 1:
        codes = rng.integers(0, 0x78, COUNT).astype(np.uint8) | rng.choice([0, 0x80], COUNT)
        return codes.astype(np.uint8).view(kind)
    return rng.normal(0, 40, COUNT).astype(kind)


def expected(x, target):
    kind = dtype_of(target)
    if kind.kind in "iu" and x.dtype.kind in "iu":
        info = np.iinfo(kind)
        return np.clip(x.astype(np.int64), info.min, info.max).astype(kind)
    return x.astype(np.float32).astype(kind)


@pytest.fixture(scope="module")
def made():
    bodies = {}
    for (source, target), mode in ONE_STEP.items():
        size = COUNT * dtype_of(target).itemsize
        calls = f"Cast(d, a, RoundMode::{mode}, {COUNT});"
        bodies[f"{source}_{target}"] = BODY.format(
            source=CPP[source],
            middle=CPP[target],
            target=CPP[target],
            calls=calls,
            at=16384,
            size=size,
        )
    for (source, target), (there, back, _) in THERE_AND_BACK.items():
        calls = (
            f"Cast(b, a, RoundMode::{there}, {COUNT}); PipeBarrier<PIPE_V>();"
            f"Cast(d, b, RoundMode::{back}, {COUNT});"
        )
        bodies[f"{source}_{target}"] = BODY.format(
            source=CPP[source],
            middle=CPP[target],
            target=CPP[source],
            calls=calls,
            at=16384,
            size=COUNT * dtype_of(source).itemsize,
        )
    return kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)


def ran(made, name, x, kind):
    given = np.zeros(4096, np.uint8)
    given[: x.nbytes] = x.view(np.uint8)
    z = np.zeros(COUNT * kind.itemsize, np.uint8)
    run = getattr(made, name)[1](given, z)
    return [f.message for f in run.findings], z.view(kind)


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("source", "target"), ONE_STEP)
def test_values(made, source, target):
    x = operand(source)
    said, z = ran(made, f"{source}_{target}", x, dtype_of(target))
    assert said == []
    np.testing.assert_array_equal(z.view(np.uint8), expected(x, target).view(np.uint8))


@pytest.mark.parametrize(("source", "target"), THERE_AND_BACK)
def test_there_and_back(made, source, target):
    x = np.resize(np.array(THERE_AND_BACK[source, target][2]), COUNT).astype(dtype_of(source))
    said, z = ran(made, f"{source}_{target}", x, x.dtype)
    assert said == []
    np.testing.assert_array_equal(z, x)
