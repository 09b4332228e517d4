"""Quantize, Dequantize and AntiQuantize of Ascend 950 against NumPy in float32."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
M, N, GROUP, SIZE = 5, 160, 96, 8192
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 32768);
  auto bytes = memory.Get<uint8_t>();
  GlobalTensor<uint8_t> xg, sg, zg;
  xg.SetGlobalBuffer((__gm__ uint8_t*)x);
  sg.SetGlobalBuffer((__gm__ uint8_t*)s);
  zg.SetGlobalBuffer((__gm__ uint8_t*)z);
  DataCopy(bytes, xg, 8192);
  DataCopy(bytes[8192], sg, 8192);
  PipeBarrier<PIPE_ALL>();
  auto a = bytes.ReinterpretCast<{X}>();
  auto scale = bytes[8192].ReinterpretCast<{S}>();
  auto offset = bytes[12288].ReinterpretCast<{S}>();
  auto d = bytes[16384].ReinterpretCast<{Y}>();
  auto tmp = bytes[24576];
  constexpr static {name}Config config = {{{name}Policy::{policy}, {config}}};
  {name}<config>(d, a, {arguments}, {{{m}, {n}, {group}}});
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(zg, bytes[16384], {{1, {bytes}, 0, 0}});
"""
CPP = {
    "int8": "int8_t",
    "int32": "int32_t",
    "uint64": "uint64_t",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float8_e4m3fn": "fp8_e4m3fn_t",
}
TENSORS, WITH_ROOM = "scale, offset", "scale, offset, tmp"
CASES = {
    # name: function, types of source, factors and result, policy, config, arguments
    "tensor": ("Quantize", "float32 float32 int8", "PER_TENSOR", "true", "0.5f, 1.25f"),
    "channel": ("Quantize", "float16 float32 int8", "PER_CHANNEL",
                "true, RoundMode::CAST_FLOOR", TENSORS),
    "token": ("Quantize", "bfloat16 bfloat16 float8_e4m3fn", "PER_TOKEN", "false", TENSORS),
    "group": ("Quantize", "float16 float16 int8", "PER_GROUP",
              "true, RoundMode::CAST_RINT, 1", f"tmp, {TENSORS}"),
    "group_of_rows": ("Quantize", "float32 float32 int8", "PER_GROUP",
                      "true, RoundMode::CAST_RINT, 0", TENSORS),
    "back_channel": ("Dequantize", "int32 uint64 float16", "PER_CHANNEL", "false", TENSORS),
    "back_token": ("Dequantize", "int32 float32 bfloat16", "PER_TOKEN", "false", WITH_ROOM),
    "anti_channel": ("AntiQuantize", "int8 float16 float16", "PER_CHANNEL", "true", TENSORS),
    "anti_group": ("AntiQuantize", "float8_e4m3fn float32 bfloat16", "PER_GROUP",
                   "true, 1", WITH_ROOM),
}  # fmt: skip


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def body(case, m=M, n=N, group=GROUP):
    name, types, policy, config, arguments = CASES[case]
    x, s, y = types.split()
    return FRAME.format(
        X=CPP[x], S=CPP[s], Y=CPP[y], name=name, policy=policy, config=config,
        arguments=arguments, m=m, n=n, group=group, bytes=m * n * dtype_of(y).itemsize,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made():
    bodies = {case: body(case) for case in CASES}
    bodies |= {"narrow": body("tensor", n=40), "odd_group": body("group", group=40)}
    return kernels(bodies, "GM_ADDR x, GM_ADDR s, GM_ADDR z", chip=CHIP)


def drawn(kind, count, seed, low=-40, high=40):
    rng = np.random.default_rng(seed)
    if kind == "uint64":  # of which the low words are floats
        words = rng.integers(0, 2**32, (count, 2), np.uint32)
        words[:, 0] = rng.uniform(0.1, 2, count).astype(np.float32).view(np.uint32)
        return words.reshape(-1).view(np.uint64)
    return rng.uniform(low, high, count).astype(dtype_of(kind))


def floats(array):
    if array.dtype == np.uint64:
        return array.view(np.float32)[::2]
    return array.astype(np.float32)


def spread(factors, policy, config):
    """Return the factor of each element, [M, N]."""
    f, column = floats(factors), np.arange(N)
    if policy == "PER_CHANNEL":
        return np.broadcast_to(f[:N], (M, N))
    if policy == "PER_TOKEN":
        return np.broadcast_to(f[:M, None], (M, N))
    if config.endswith(" 0"):
        return np.broadcast_to(f[:N], (M, N))  # all rows are of the first group
    groups = -(-N // GROUP)
    return f[np.arange(M)[:, None] * groups + column // GROUP]


@pytest.mark.parametrize("case", CASES)
def test_values(made, case):
    name, types, policy, config, _ = CASES[case]
    x_type, s_type, y_type = types.split()
    x = drawn(x_type, M * N, 1)
    scale, offset = drawn(s_type, N, 2, 0.1, 2), drawn(s_type, N, 3, -3, 3)
    given, factors = np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    given[: x.nbytes] = x.view(np.uint8)
    factors[: scale.nbytes] = scale.view(np.uint8)
    factors[4096 : 4096 + offset.nbytes] = offset.view(np.uint8)
    z = np.zeros(M * N, dtype_of(y_type))
    run = getattr(made, case)[1](given, factors, z)
    assert [f.message for f in run.findings] == []
    if policy == "PER_TENSOR":
        by, add = np.float32(0.5), np.float32(1.25)
    else:
        by, add = (spread(each, policy, config) for each in (scale, offset))
    add = add if config.startswith("true") else np.float32(0)
    values = floats(x).reshape(M, N)
    result = (values + add) * by if name == "AntiQuantize" else values * by + add
    if y_type == "int8":
        rounded = np.floor(result) if "FLOOR" in config else np.rint(result)
        result = np.clip(rounded, -128, 127)
    expected = result.astype(dtype_of(y_type)).ravel()
    np.testing.assert_array_equal(z.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("narrow", "Quantize must have n elements in whole blocks of 32 B, got 40"),
        ("odd_group", "Quantize must have a groupSize that is a multiple of 32, got 40"),
    ],
)
def test_sizes_that_the_pages_exclude_are_refused(made, case, said):
    arrays = [np.zeros(SIZE, np.uint8) for _ in range(3)]
    with pytest.raises(CubecoreError) as raised:
        getattr(made, case)[1](*arrays)
    assert said in str(raised.value)
