"""The matmul kernel on architecture 3510: both engines, every type that it carries, its time."""

from dataclasses import replace

import numpy as np
import pytest

import cubecore
from cubecore import Problem
from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.workflows.data.operands import Operands, make_operands
from cubecore.workflows.data.verify import verify
from harness import as_stored, result_of
from kernels.broken import changed
from kernels.cases import brief, draw_operands, draw_problem, draw_tiling, exact
from parts import crossed, strided

A5 = chip("Ascend950PR_9599")
TYPES = [("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32")]
TYPES += [("int8", "int8", "int32"), ("float32", "float32", "float32")]
TYPES += [("float8_e4m3fn", "float8_e5m2", "float32"), ("float8_e5m2", "float8_e5m2", "float32")]
TIMED = [*TYPES, ("hifloat8", "hifloat8", "float32")]
SHAPES = [(50, 70, 90), (1, 33, 65), (129, 40, 17)]


@pytest.mark.parametrize(
    ("types", "shape", "trans_a", "trans_b"),
    crossed(TYPES, SHAPES, (False, True), (False, True), every=5),
    ids=str,
)
@pytest.mark.thinned(6)
def test_both_engines_multiply(types, shape, trans_a, trans_b):
    """Whole numbers, so that every product is exact: C is the product by NumPy's integers."""
    (m, n, k), (a, b, c) = shape, types
    problem = Problem.from_json(
        {"chip": A5.name, "m": m, "n": n, "k": k, "a": a, "b": b, "c": c}
        | {"trans_a": trans_a, "trans_b": trans_b}
        | {"cores": 4, "template": "NORM" if m == 50 else "MDL"}
    )
    tiling = TCubeTiling.from_json(cubecore.plan(problem).to_json()["tiling"])
    rng = np.random.default_rng(m)
    left, right = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    stored = {"a": (left.T if trans_a else left).astype(problem.a_type.numpy)}
    stored["b"] = (right.T if trans_b else right).astype(problem.b_type.numpy)
    for engine, values in on_both_engines(problem, tiling, stored):
        assert np.array_equal(values.reshape(m, n), left @ right), engine


def on_both_engines(problem, tiling, stored):
    """Yield (engine, C as it lies in memory) of a run without findings."""
    launch = matmul_launch(problem, tiling, A5)
    for engine in ("blas", "reference"):
        gm, bases = GlobalMemory(), {}
        for spec in launch.tensors:
            if spec.output:
                made = gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
                bases[spec.name] = made.address
            else:
                bases[spec.name] = gm.allocate_from(spec.name, stored[spec.name]).address
        outcome, ran = run_launch(launch, A5, gm, bases, engine)
        assert (ran, [f.message for f in outcome.findings]) == (engine, []), brief(tiling)
        yield engine, made.buffer.data.view(problem.c_type.numpy)


# codes of hifloat8 by the numbers -3 to 3: sign, dot, exponent, mantissa (arXiv 2409.16626)
HIF8 = {0: 0, 1: 0b0_0001_000, 2: 0b0_001_0_000, 3: 0b0_001_0_100}
HIF8 |= {-number: 0x80 | code for number, code in HIF8.items() if number}


@pytest.mark.parametrize(
    ("trans", "more"),
    crossed(
        [(False, False), (True, False), (False, True)],
        [{}, {"bias": "float32"}, {"split_k": True, "cores": 4}],
        every=2,
    ),
    ids=str,
)
@pytest.mark.thinned(3)
def test_hifloat8_multiplies_as_codes(trans, more):
    m, n, k = 50, 70, 200
    problem = {"chip": A5.name, "m": m, "n": n, "k": k, "a": "hifloat8"}
    problem |= {"trans_a": trans[0], "trans_b": trans[1]} | more
    rng = np.random.default_rng(8)
    left, right = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    bias = rng.integers(-9, 9, n).astype(np.float32) if "bias" in more else None
    coded = [np.vectorize(HIF8.get)(x).astype(np.uint8) for x in (left, right)]
    stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip(coded, trans, strict=True)]
    wanted = left @ right + (0 if bias is None else bias)
    for engine in ("blas", "reference"):
        run = cubecore.run(problem, operands=Operands(*stored, bias), engine=engine)
        assert ([f.message for f in run.findings], run.verified) == ([], True)
        assert run.engine == engine
        assert np.array_equal(run.c, wanted)


@pytest.mark.parametrize("seed", strided(range(40)))
@pytest.mark.thinned(3)
def test_random_products_with_every_option(seed):
    """Transposed, with bias, scales, C in NZ, a batch, a split K: legal tilings of any shape."""
    rng = np.random.default_rng(seed)
    while True:
        drawn = draw_problem(rng, 100)
        if drawn.a != "int4":
            break
    tiling = draw_tiling(rng, drawn)
    problem = replace(drawn, chip=A5.name, unit_flag=None)
    assert check_tiling(tiling, problem, A5).legal
    operands = draw_operands(rng, problem)
    wanted = exact(problem, operands)
    for engine, values in on_both_engines(problem, tiling, as_stored(problem, operands)):
        found = result_of(problem, values)
        assert np.array_equal(found, wanted), f"{engine}: {problem} {brief(tiling)}"


@pytest.mark.parametrize("types", TIMED, ids=str)
@pytest.mark.thinned(8)
def test_it_runs_and_is_timed(types):
    a, b, c = types
    problem = {"chip": A5.name, "m": 200, "n": 300, "k": 256, "a": a, "b": b, "c": c}
    run = cubecore.run(problem).to_json()
    assert run["verified"]
    assert run["findings"] == []
    time = cubecore.time(problem).to_json()
    assert time["us"] > 0
    assert time["limited_by"]


MODES = {
    "QF322FP8_PRE": "float16",
    "QF322HIF8_PRE": "hifloat8",
    "QF322F16_PRE": "float8_e5m2",
    "QF322BF16_PRE": "float32",
    "QF322F32_PRE": "bfloat16",
    "QS322BF16_PRE": "int8",
    "DEQF16": "int8",
}


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.thinned(8)
def test_its_own_conversions(mode, by_column):
    scale = [0.5 + i % 3 for i in range(48)] if by_column else 0.037
    epilogue = {"quant": "V" * by_column + mode, "scale": scale}
    problem = {"chip": A5.name, "m": 40, "n": 48, "k": 96, "a": MODES[mode]}
    run = cubecore.run(problem | {"epilogue": epilogue})
    assert [f.message for f in run.findings] == []
    assert run.verified
    assert run.engine == "blas"


def test_a_wrong_code_of_hifloat8_does_not_verify():
    """What verifies reads codes: the next number is beyond what rounding may do."""
    problem = Problem.from_json(
        {"chip": A5.name, "m": 40, "n": 48, "k": 96, "a": "float16", "c": "hifloat8"}
        | {"epilogue": {"quant": "QF322HIF8_PRE", "scale": 0.125}}
    )
    operands = make_operands(problem)
    run = cubecore.run(problem, operands=operands)
    assert run.c.dtype == np.uint8
    wrong = run.c.copy()
    wrong[3, 5] += 1
    assert verify(problem, operands, run.c, run.tiling).verified
    assert not verify(problem, operands, wrong, run.tiling).verified


def test_a_conversion_of_3510_alone_is_refused_elsewhere():
    epilogue = {"quant": "QF322FP8_PRE", "scale": 1.0}
    with pytest.raises(RequestError) as error:
        cubecore.run({"m": 64, "n": 64, "k": 64, "epilogue": epilogue})
    assert str(error.value) == (
        "epilogue.quant must be QF322B8_PRE or VQF322B8_PRE for an accumulator of float32 (Mmad, "
        "table 4), got QF322FP8_PRE"
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("trans", [False, True])
def test_hf32_keeps_10_bits(trans):
    """Values of 12 bits: what 11 would keep is lost."""
    m, n, k = 20, 24, 40
    rng = np.random.default_rng(2)
    a, b = (rng.integers(1 << 11, 1 << 12, s).astype(np.float32) for s in ((m, k), (k, n)))
    short = [np.round(x / 2) * 2 for x in (a, b)]  # ties to even: the 11th bit and the implied one
    stored = Operands(np.ascontiguousarray(a.T) if trans else a, b)
    problem = {"chip": A5.name, "m": m, "n": n, "k": k, "a": "float32", "trans_a": trans}
    wanted = (short[0].astype(np.float64) @ short[1]).astype(np.float32)
    for engine in ("blas", "reference"):
        run = cubecore.run(problem, hf32=True, operands=stored, engine=engine)
        assert [f.message for f in run.findings] == []
        assert (run.verified, run.engine) == (True, engine)
        assert np.allclose(run.c, wanted, rtol=1e-6, atol=0)


MIX = [("float16", "float16", "float32", "MDL"), ("int8", "int8", "int32", "NORM")]
MIX += [("bfloat16", "bfloat16", "float32", "IBSHARE"), ("float32", "float32", "float32", "MDL")]
MIX += [("float8_e4m3fn", "float8_e4m3fn", "float32", "IBSHARE")]


@pytest.mark.parametrize("types", MIX, ids=str)
@pytest.mark.parametrize(
    ("engine", "order"),
    [("blas", "program"), *(("reference", o) for o in ("program", "late", "early", "random:1"))],
)
@pytest.mark.thinned(8)
def test_two_clients_of_a_mix_launch_take_turns_on_their_ai_core(types, engine, order):
    """Four blocks of C on two AI Cores, whatever order the flags leave open."""
    a, b, c, template = types
    problem = Problem.from_json(
        {"chip": A5.name, "m": 60, "n": 72, "k": 96, "a": a, "b": b, "c": c, "cores": 4}
        | {"launch": "mix", "template": template, "trans_b": True}
    )
    rng = np.random.default_rng(7)
    left, right = rng.integers(-3, 4, (60, 96)), rng.integers(-3, 4, (72, 96))
    stored = Operands(left.astype(problem.a_type.numpy), right.astype(problem.b_type.numpy))
    shares = {"singleCoreM": 32, "singleCoreN": 48, "baseM": 32, "baseN": 48, "usedCoreNum": 4}
    tiling = replace(cubecore.plan(problem).tiling, **shares)
    launch = matmul_launch(problem, tiling, A5)
    assert [core.core for core in launch.cores] == [0, 1]
    run = cubecore.run(problem, tiling=tiling, operands=stored, engine=engine, order=order)
    assert (run.engine, run.order) == (engine, order)
    assert ([f.message for f in run.findings], run.verified) == ([], True)
    assert np.array_equal(run.c, left @ right.T)


def test_a_client_that_does_not_wait_for_the_one_before_is_a_race():
    """All of K fits: what MTE2 waits for is the client before, whose blocks are still read."""
    problem = Problem(m=64, n=32, k=96, chip=A5.name, launch="mix", cores=2)
    shares = {"singleCoreM": 48, "singleCoreN": 32, "baseM": 48, "baseN": 32, "usedCoreNum": 2}
    shares |= {"depthA1": 1, "depthB1": 1, "stepKa": 1, "stepKb": 1, "baseK": 96}
    shares |= {"stepM": 1, "stepN": 1}
    tiling = replace(cubecore.plan(problem).tiling, **shares)
    launch = matmul_launch(problem, tiling, A5)
    stored = {
        name: np.zeros(shape, np.float16) for name, shape in (("a", (64, 96)), ("b", (96, 32)))
    }

    def hasty(leaf):
        flag = leaf.template
        frees = isinstance(flag, WaitFlag | SetFlag) and (flag.src, flag.dst) == ("MTE1", "MTE2")
        return None if frees else leaf

    for broken, ids in ((launch, set()), (changed(launch, hasty), {"race-war"})):
        gm, bases = GlobalMemory(), {}
        for spec in broken.tensors:
            made = (
                gm.allocate(spec.name, spec.size_bytes)
                if spec.output
                else gm.allocate_from(spec.name, stored[spec.name])
            )
            bases[spec.name] = made.address
        outcome, _ = run_launch(broken, A5, gm, bases, "reference")
        found = {finding.id for finding in outcome.findings}
        assert found >= ids
        assert bool(found) is bool(ids)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("template", ["MDL", "NORM"])
def test_a_mix_launch_is_timed_as_its_clients_in_turn(template):
    """An AI Core with two blocks takes longer than with one, and no longer than twice."""
    asked = {"chip": A5.name, "m": 1152, "n": 512, "k": 512, "template": template}
    shares = {"singleCoreM": 32, "singleCoreN": 256, "baseM": 32, "baseN": 256, "baseK": 64}
    steps = {"stepKa": 1, "stepKb": 1, "depthA1": 2, "depthB1": 2}
    problem = Problem.from_json(asked | {"launch": "mix"})
    tiling = replace(cubecore.plan(problem).tiling, **shares, **steps, usedCoreNum=72)
    both = cubecore.time(problem, tiling=tiling).to_json()
    half = replace(problem, m=576, launch="cube")
    alone = cubecore.time(half, tiling=replace(tiling, M=576, usedCoreNum=36)).to_json()
    assert [len(x["cores"][0]["cores"]) for x in (both, alone)] == [36, 36]
    assert alone["cycles"] < both["cycles"] < 2 * alone["cycles"]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_are_of_this_architecture_alone(dtype):
    problem = {"chip": "Ascend910B3", "m": 64, "n": 64, "k": 64, "a": dtype, "b": dtype}
    with pytest.raises(RequestError) as error:
        cubecore.run(problem)
    assert "be types that arch 2201 multiplies" in str(error.value)
