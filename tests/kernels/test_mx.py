"""The MX kernel on an Ascend 950: values against loops over codes, its findings, its time."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.kernels.mx import MxProblem, mx_launch, pack_scales
from cubecore.machine.engines import run_launch
from cubecore.machine.memory import GlobalMemory
from cubecore.timing.schedule import time_launch

A5 = chip("Ascend950PR_9599")
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
FP8 = {
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
CASES = [
    ("float4_e2m1fn", "float4_e2m1fn", (48, 64, 128), (32, 32, 64)),
    ("float4_e2m1fn", "float4_e2m1fn", (50, 37, 256), (32, 16, 128)),
    ("float4_e2m1fn", "float4_e2m1fn", (5, 3, 64), (16, 16, 64)),
    ("float8_e4m3fn", "float8_e5m2", (40, 33, 128), (16, 48, 64)),
    ("float8_e5m2", "float8_e5m2", (130, 150, 192), (128, 128, 64)),
]


def drawn(rng: np.random.Generator, dtype: str, rows: int, k: int) -> tuple[np.ndarray, bytes]:
    """Values [rows, k], and the bytes that hold their codes, of 4 bits the first one low."""
    if dtype in FP8:
        values = rng.integers(-6, 7, (rows, k)).astype(FP8[dtype])
        return values.astype(np.float64), values.tobytes()
    codes = rng.integers(0, 16, (rows, k))
    raw = bytes(int(row[j]) | int(row[j + 1]) << 4 for row in codes for j in range(0, k, 2))
    return np.array([[FP4[code] for code in row] for row in codes]), raw


@pytest.mark.parametrize("case", CASES, ids=str)
def test_products(case):
    """Scales near 1, so that every partial sum is a float32 and no order matters."""
    a, b, (m, n, k), (base_m, base_n, base_k) = case
    bases = {"base_m": base_m, "base_n": base_n, "base_k": base_k}
    problem = MxProblem(m=m, n=n, k=k, a=element_type(a), b=element_type(b), **bases)
    rng = np.random.default_rng(m)
    (left, raw_a), (right, raw_b) = drawn(rng, a, m, k), drawn(rng, b, n, k)
    scales = {x: rng.integers(126, 129, (r, k // 32)).astype(np.uint8)
              for x, r in (("sa", m), ("sb", n))}  # fmt: skip
    stored = {"a": np.frombuffer(raw_a, np.uint8), "b": np.frombuffer(raw_b, np.uint8)}
    stored |= {name: pack_scales(codes) for name, codes in scales.items()}
    wanted = np.zeros((m, n))
    for s in range(k // 32):
        part = slice(32 * s, 32 * s + 32)
        factor_a = 2.0 ** (scales["sa"][:, s].astype(int) - 127)
        factor_b = 2.0 ** (scales["sb"][:, s].astype(int) - 127)
        wanted += (left[:, part] @ right[:, part].T) * np.outer(factor_a, factor_b)
    launch = mx_launch(problem, A5)
    gm, at = GlobalMemory(), {}
    for spec in launch.tensors:
        if spec.output:
            made = gm.allocate(spec.name, spec.size_bytes)
        else:
            assert stored[spec.name].nbytes == spec.size_bytes
        tensor = made if spec.output else gm.place(spec.name, stored[spec.name])
        at[spec.name] = tensor.address
    outcome, engine = run_launch(launch, A5, gm, at)
    assert engine == "reference"
    assert [f.message for f in outcome.findings] == []
    found = made.buffer.data.view(np.float32).reshape(m, n)
    assert np.array_equal(found, wanted.astype(np.float32))


def test_it_is_timed_and_more_of_k_takes_longer():
    kind = element_type("float4_e2m1fn")
    times = [
        time_launch(mx_launch(MxProblem(m=256, n=256, k=k, a=kind, b=kind), A5), A5).cycles
        for k in (256, 1024, 4096)
    ]
    assert times == sorted(times)
    assert times[0] < times[2]


def test_scales_are_packed_in_blocks_of_16_x_2():
    codes = np.arange(17 * 4).reshape(17, 4).astype(np.uint8)
    packed = pack_scales(codes)
    assert packed.size == 32 * 4
    for row in range(17):
        for s in range(4):
            at = (row // 16 * 2 + s // 2) * 32 + row % 16 * 2 + s % 2
            assert packed[at] == codes[row, s]


@pytest.mark.parametrize(
    ("changes", "on", "line"),
    [
        ({"k": 96}, "Ascend950PR_9599", "k must be a multiple of 64, got 96"),
        ({"k": 320}, "Ascend950PR_9599", "k must be a multiple of base_k 256, got 320"),
        ({"base_m": 24}, "Ascend950PR_9599", "base_m must be a multiple of 16, got 24"),
        ({}, "Ascend910B3", "chip must be of architecture 3510 to multiply MX, got Ascend910B3"),
        (
            {"base_n": 1024},
            "Ascend950PR_9599",
            "base_n must leave a block of 65536 B at most in L0, got 131072 B",
        ),
        (
            {"m": 4096, "n": 4096},
            "Ascend950PR_9599",
            "base_m x base_n must make 36 blocks of C at most on Ascend950PR_9599, got 1024",
        ),
    ],
)
def test_what_it_cannot_cut_is_refused(changes, on, line):
    kind = element_type("float4_e2m1fn")
    p = {"m": 64, "n": 64, "k": 512, "a": kind, "b": kind} | changes
    with pytest.raises(RequestError) as error:
        mx_launch(MxProblem(**p), chip(on))
    assert line in str(error.value)
