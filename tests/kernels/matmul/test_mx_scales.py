"""MxMatmul by the ordinary door: values against loops, layouts of scales, errors, time."""

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore import Problem
from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.data.operands import OperandFiles, Operands
from cubecore.workflows.data.verify import verify
from parts import crossed, strided

A5 = chip("Ascend950PR_9599")
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
QUARTERS = [*(q / 4 for q in range(8)), *(-q / 4 for q in range(8))]
FOUR_BITS = {"float4_e2m1fn": FP4, "float4_e1m2": QUARTERS}
TYPES = {
    "float4_e1m2": np.dtype(np.uint8),
    "float4_e2m1fn": np.dtype(ml_dtypes.float4_e2m1fn),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
PAIRS = [("float4_e2m1fn", "float4_e2m1fn")]
PAIRS += [("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "float8_e5m2")]
PAIRS += [("float4_e1m2", "float4_e1m2"), ("float4_e2m1fn", "float4_e1m2")]
ONE = 127  # the code of the scale 1


def value(dtype: str, code: int) -> float:
    """What a code means."""
    if dtype in FOUR_BITS:
        return float(FOUR_BITS[dtype][code])
    return float(np.array(code, np.uint8).view(TYPES[dtype]))


class Drawn:
    """One operand: codes [rows, k] of values, codes [rows, ceil(k / 32)] of scales."""

    def __init__(self, rng: np.random.Generator, dtype: str, rows: int, k: int) -> None:
        self.dtype, self.rows, self.k = dtype, rows, k
        if dtype in FOUR_BITS:
            self.codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        else:
            values = rng.integers(-6, 7, (rows, k)).astype(TYPES[dtype])
            self.codes = values.view(np.uint8)
        self.groups = -(-k // 32)
        self.scales = rng.integers(ONE - 1, ONE + 2, (rows, self.groups)).astype(np.uint8)

    def scaled(self) -> list[list[float]]:
        """Each value times the scale of its 32."""
        return [
            [
                value(self.dtype, int(code)) * 2.0 ** (int(self.scales[r, j // 32]) - ONE)
                for j, code in enumerate(row)
            ]
            for r, row in enumerate(self.codes)
        ]

    def stored(self, *, k_inner: bool) -> tuple[np.ndarray, np.ndarray]:
        """Values and scales as stored: [r, k] and [r, K/32], or [k, r] and [K/64, r, 2]."""
        count = self.groups + self.groups % 2
        padded = np.zeros((self.rows, count), np.uint8)
        padded[:, : self.groups] = self.scales
        codes, scales = self.codes, padded
        if not k_inner:
            codes = np.ascontiguousarray(codes.T)
            scales = np.zeros((count // 2, self.rows, 2), np.uint8)
            for r in range(self.rows):
                for s in range(count):
                    scales[s // 2, r, s % 2] = padded[r, s]
        return codes.view(TYPES[self.dtype]), scales.view(E8M0)


def product(problem: dict, seed: int = 0) -> tuple[Problem, Operands, np.ndarray]:
    """Return a problem, operands as stored, and the product by loops over K; every sum is exact."""
    p = Problem.from_json({"chip": A5.name, "cores": 4} | problem)
    rng = np.random.default_rng(seed)
    a, b = Drawn(rng, p.a, p.m, p.k), Drawn(rng, p.b, p.n, p.k)
    left, right = np.array(a.scaled()), np.array(b.scaled())
    wanted = np.zeros((p.m, p.n))
    for j in range(p.k):
        wanted += np.outer(left[:, j], right[:, j])
    stored_a, scale_a = a.stored(k_inner=not p.trans_a)
    stored_b, scale_b = b.stored(k_inner=p.trans_b)
    bias = None
    if p.bias is not None:
        bias = rng.integers(-99, 100, p.n).astype(np.float32)
        wanted += bias
    return p, Operands(stored_a, stored_b, bias, scale_a=scale_a, scale_b=scale_b), wanted


SCALED = {"scale_a": "float8_e8m0fnu"}
SHAPES = [(50, 70, 192), (1, 34, 256), (33, 16, 96), (18, 130, 1000)]


@pytest.mark.parametrize(
    ("types", "trans_b", "shape"), crossed(PAIRS, (False, True), SHAPES), ids=str
)
@pytest.mark.thinned(9)
def test_products(types, trans_b, shape):
    """Any K: what is missing to whole pairs of scales is zeros."""
    (m, n, k), (a, b) = shape, types
    template = "NORM" if m in {1, 50} else "MDL"
    asked = {"m": m, "n": n, "k": k, "a": a, "b": b, "trans_b": trans_b, "template": template}
    problem, operands, wanted = product(asked | SCALED, seed=m)
    run = cubecore.run(problem, operands=operands)
    assert run.engine == "blas"
    assert [f.message for f in run.findings] == []
    assert run.verified
    assert np.array_equal(run.c, wanted.astype(np.float32))


TRANSPOSED = (
    {"trans_a": True, "m": 66, "template": "NORM"},
    {"trans_a": True, "trans_b": True, "m": 34, "k": 1000},
    {"trans_a": True, "m": 2, "k": 96, "bias": "float32"},
    {"bias": "float32", "trans_b": True},
)


@pytest.mark.parametrize(("types", "more"), crossed(PAIRS, TRANSPOSED), ids=str)
@pytest.mark.thinned(5)
def test_a_transposed_and_with_bias(types, more):
    a, b = types
    asked = {"m": 50, "n": 70, "k": 320, "a": a, "b": b} | more
    problem, operands, wanted = product(asked | SCALED, seed=3)
    run = cubecore.run(problem, operands=operands)
    assert run.engine == "blas"
    assert [f.message for f in run.findings] == []
    assert np.array_equal(run.c, wanted.astype(np.float32))


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("types", "trans"),
    crossed(PAIRS, [(False, False), (True, False), (False, True)], every=5),
    ids=str,
)
def test_cores_that_divide_k(types, trans):
    """Slices begin with whole pairs of scales; the last one is ragged; they add up in C."""
    a, b = types
    asked = {"m": 34, "n": 50, "k": 1000, "a": a, "b": b, "trans_a": trans[0], "trans_b": trans[1]}
    problem, operands, wanted = product(asked | SCALED | {"split_k": True}, seed=5)
    slices = cubecore.plan(replace(problem, k=256, cores=1, split_k=False)).tiling
    tiling = replace(slices, Ka=1000, Kb=1000, usedCoreNum=4)
    run = cubecore.run(problem, tiling=tiling, operands=operands)
    assert run.engine == "blas"
    assert [f.message for f in run.findings] == []
    assert np.array_equal(run.c, wanted.astype(np.float32))


def test_a_slice_that_begins_inside_a_pair_of_scales():
    asked = {"m": 34, "n": 50, "k": 1024, "a": "float4_e2m1fn", "split_k": True, "cores": 11}
    problem, operands, _ = product(asked)
    shares = {"singleCoreM": 34, "singleCoreN": 50, "singleCoreK": 96, "usedCoreNum": 11}
    tiling = replace(cubecore.plan(problem).tiling, **shares)
    with pytest.raises(RequestError) as error:
        cubecore.run(problem, tiling=tiling, operands=operands)
    assert str(error.value) == (
        "the K at which a core starts must be a multiple of 64 in MxMatmul, got 96; make "
        "singleCoreK one: a pair of scales cannot be cut"
    )


@pytest.mark.parametrize("order", ["program", "late", "early"])
def test_every_order_that_flags_allow(order):
    asked = {"m": 70, "n": 66, "k": 640, "a": "float4_e2m1fn", "trans_b": True}
    problem, operands, wanted = product(asked)
    run = cubecore.run(problem, operands=operands, engine="reference", order=order)
    assert run.verified
    assert np.array_equal(run.c, wanted.astype(np.float32))


@pytest.mark.parametrize(
    "more",
    [
        {"format_b": "NZ", "trans_b": True, "k": 128},
        {"format_a": "NZ", "m": 64, "k": 128},
        {"batch": 3},
        {"epilogue": {"relu": True}, "c": "float16"},
        {"epilogue": {"quant": "QF322B8_PRE", "scale": 0.125}},
        {"epilogue": {"quant": "VQF322B8_PRE", "scale": [0.5] * 64}},
        {"format_c": "NZ"},
        {"launch": "mix", "split_k": True},
        {"unit_flag": False, "template": "NORM"},
    ],
    ids=str,
)
@pytest.mark.thinned(4)
def test_options_that_go_with_scales(more):
    """Verified against an independent product with block scales."""
    asked = {"chip": A5.name, "m": 40, "n": 64, "k": 320, "a": "float4_e2m1fn"} | more
    run = cubecore.run(asked)
    assert run.engine == "blas"
    assert [f.message for f in run.findings] == []
    assert run.verified


def test_a_tiling_whose_chunks_are_ragged():
    """Several base blocks a chunk, several chunks, tails along M, N and K."""
    asked = {"m": 90, "n": 100, "k": 1000, "a": "float8_e5m2", "trans_b": True, "cores": 1}
    problem, operands, wanted = product(asked | SCALED, seed=5)
    plan = cubecore.plan(problem).to_json()["tiling"]
    tiling = plan | {"usedCoreNum": 1, "singleCoreM": 90, "singleCoreN": 100, "iterateOrder": 0}
    tiling |= {"baseM": 32, "baseN": 48, "baseK": 128, "stepM": 1, "stepN": 1, "stepKa": 3}
    tiling |= {"stepKb": 3, "depthA1": 6, "depthB1": 3, "dbL0A": 2, "dbL0B": 2, "dbL0C": 2}
    run = cubecore.run(problem, operands=operands, tiling=TCubeTiling.from_json(tiling))
    assert run.verified
    assert np.array_equal(run.c, wanted.astype(np.float32))


TRAVELS = (
    *[((2, 2), 1, "late"), ((3, 1), 2, "late"), ((3, 1), 2, "early"), ((4, 5), 2, "early")],
    *[((4, 5), 2, "program"), ((4, 5), 2, "late"), ((1, 4), 1, "early")],
)


@pytest.mark.parametrize("travel", strided(TRAVELS), ids=str)
@pytest.mark.thinned(3)
def test_scales_that_travel_for_several_chunks(travel):
    """Any factors, ragged groups of chunks, one or two buffers, several tiles; in any order."""
    factors, depth, order = travel
    asked = {"m": 34, "n": 50, "k": 1200, "a": "float8_e5m2", "trans_b": True, "cores": 1}
    problem, operands, wanted = product(asked | SCALED, seed=5)
    plan = cubecore.plan(problem).to_json()["tiling"]
    tiling = plan | {"usedCoreNum": 1, "singleCoreM": 34, "singleCoreN": 50, "iterateOrder": 0}
    tiling |= {"baseM": 32, "baseN": 48, "baseK": 64, "stepM": 1, "stepN": 1, "stepKa": 4}
    tiling |= {"stepKb": 2, "depthA1": 4 * depth, "depthB1": 4, "dbL0A": 2, "dbL0B": 2, "dbL0C": 2}
    tiling |= {"mxTypePara": 0x01010000 | factors[1] << 8 | factors[0]}
    made = TCubeTiling.from_json(tiling)
    assert cubecore.check(made, problem).legal
    run = cubecore.run(problem, operands=operands, tiling=made, engine="reference", order=order)
    assert [f.message for f in run.findings] == []
    assert np.array_equal(run.c, wanted.astype(np.float32))


def test_scales_that_travel_less_often_take_less_of_mte2():
    """Four chunks at once: MTE2 has a quarter of the transfers and of the rows of scales."""
    asked = {"chip": A5.name, "m": 256, "n": 256, "k": 8192, "a": "float4_e2m1fn", "cores": 1}
    asked |= SCALED | {"trans_b": True}
    tiling = cubecore.plan(asked).to_json()["tiling"] | {"baseM": 256, "baseN": 256, "baseK": 256}
    tiling |= {"stepKa": 2, "stepKb": 2, "depthA1": 4, "depthB1": 4, "dbL0C": 1}
    busy = {}
    for factor in (1, 4):
        made = TCubeTiling.from_json(tiling | {"mxTypePara": 0x01010000 | 0x0101 * factor})
        timed = cubecore.time(asked, tiling=made).to_json()
        busy[factor] = timed["pipes"]["MTE2"]["busy_cycles"]
    soc = chip(A5.name)
    transfers, rows = 2 * (16 - 4), 2 * 256 * (16 - 4)
    saved = transfers * soc.gm_to_l1_transfer_cycles
    saved += rows * (soc.gm_to_l1_row_cycles + soc.gm_to_l1_turned_row_cycles)
    assert busy[1] - busy[4] == pytest.approx(saved, rel=0.2)


@pytest.mark.parametrize("name", ["scale_a", "scale_b"])
def test_a_wrong_scale_does_not_verify(name):
    """What verifies a run reads the scales itself: one of them changed, it is another product."""
    problem, operands, _ = product({"m": 20, "n": 18, "k": 64, "a": "float4_e2m1fn"})
    run = cubecore.run(problem, operands=operands)
    codes = getattr(operands, name).copy()
    codes.view(np.uint8).reshape(-1)[3] += 1
    given = {n: getattr(operands, n) for n in ("a", "b", "scale_a", "scale_b")} | {name: codes}
    assert verify(problem, operands, run.c, run.tiling).verified
    assert not verify(problem, Operands(**given), run.c, run.tiling).verified


def test_files_hold_scales_as_stored(tmp_path):
    problem, operands, wanted = product({"m": 24, "n": 20, "k": 96, "a": "float4_e2m1fn"})
    names = {}
    for name in ("a", "b", "scale_a", "scale_b"):
        values = getattr(operands, name)
        names[name] = str(tmp_path / f"{name}.npy")
        np.save(names[name], values.view(np.uint8))
    files = OperandFiles(**names)
    run = cubecore.run(problem, operands=files, out=str(tmp_path / "c.npy"))
    assert run.verified
    assert np.array_equal(np.load(tmp_path / "c.npy"), wanted.astype(np.float32))


INPUTS = "float8_e4m3fn or float8_e5m2 or float4_e2m1fn or float4_e1m2"
REFUSED = [
    (
        {"a": "float16", "scale_a": "float8_e8m0fnu"},
        f"a must be {INPUTS} with scales, got float16\nb must be {INPUTS} with scales, got float16",
    ),
    (
        {"a": "float4_e2m1fn", "scale_a": "float8_e8m0fnu", "scale_b": "float16"},
        "scale_b must be float8_e8m0fnu (TCubeTiling structure, newer edition, table 2), "
        "got float16",
    ),
    (
        {"a": "float4_e2m1fn", "template": "IBSHARE"},
        "template must be NORM or MDL in MxMatmul (vendor's guide, MxMatmul: constraints), got "
        "IBSHARE",
    ),
    (
        {"a": "float4_e2m1fn", "n": 33},
        "no legal tiling for 64 x 33 x 128 on Ascend950PR_9599: B-4BIT-ROW (stored rows of a "
        "4-bit B are even) excludes all",
    ),
]


@pytest.mark.parametrize(("changes", "line"), REFUSED, ids=str)
def test_what_is_refused(changes, line):
    asked = {"chip": A5.name, "m": 64, "n": 64, "k": 128} | changes
    for ask in (cubecore.run, cubecore.time):
        with pytest.raises(cubecore.CubecoreError) as error:
            ask(asked)
        assert str(error.value) == line


@pytest.mark.parametrize(
    ("name", "wrong", "line"),
    [
        (
            *("scale_a", (24, 3)),
            "scale_a must be an array of float8_e8m0fnu with shape [24, 4], got float8_e8m0fnu "
            "[24, 3]",
        ),
        (
            *("scale_b", (4, 20)),
            "scale_b must be an array of float8_e8m0fnu with shape [2, 20, 2], got float8_e8m0fnu "
            "[4, 20]",
        ),
    ],
)
def test_scales_of_another_shape_are_refused(name, wrong, line):
    problem, operands, _ = product({"m": 24, "n": 20, "k": 96, "a": "float4_e2m1fn"})
    given = {n: getattr(operands, n) for n in ("a", "b", "scale_a", "scale_b")}
    given[name] = np.zeros(wrong, np.uint8).view(E8M0)
    with pytest.raises(RequestError) as error:
        cubecore.run(problem, operands=Operands(**given))
    assert str(error.value) == line


@pytest.mark.thinned(2)
@pytest.mark.parametrize("types", PAIRS[:2], ids=str)
def test_it_is_timed_and_four_bits_are_faster(types):
    a, b = types
    asked = {"chip": A5.name, "m": 1024, "n": 1024, "k": 4096, "a": a, "b": b, "trans_b": True}
    timed = cubecore.time(asked | SCALED).to_json()
    half = cubecore.time(asked | {"a": "float16", "b": "float16"}).to_json()
    assert 0 < timed["us"] < half["us"]
    json.dumps(timed)


def test_a_smaller_rate_of_scales_takes_longer():
    asked = {"chip": A5.name, "m": 512, "n": 512, "k": 2048, "a": "float4_e2m1fn", "trans_b": True}
    plain = cubecore.time(asked)
    slow = cubecore.time(
        asked, tiling=plain.tiling, settings={"l1_to_l0_scale_bytes_per_cycle": "1"}
    )
    busy = [t.to_json()["pipes"]["MTE1"]["busy_cycles"] for t in (plain, slow)]
    assert busy[0] < busy[1]
