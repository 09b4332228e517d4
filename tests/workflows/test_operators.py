"""Operators: what they compute is right on the machine, their times follow the work, bad input."""

import pytest

import cubecore
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.kernels.operators import functions
from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.kernels.operators.functions import FUNCTIONS
from cubecore.workflows.operators import results
from cubecore.workflows.operators.operator_run import run_operator
from cubecore.workflows.operators.operators import operator_problem, time_operator
from workflows.command import assert_refused, cli

CHIP_950 = "Ascend950PR_9589"
HALF = {"quant": "DEQF16", "scale": 1.0}
SHAPES = ("1x1", "7x64", "100x33", "49x200", "2x5000", "5")


def type_of(op, turn):
    """Return one of the types that a function takes, in turn."""
    kinds = FUNCTIONS[op].takes
    return kinds[(turn + list(FUNCTIONS).index(op)) % len(kinds)]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_operators_are_right(op):
    for turn, shape in enumerate(SHAPES):
        done = run_operator(op, shape, a=type_of(op, turn), seed=turn)
        assert done.findings == (), (op, shape)
        assert done.verified, (op, shape, done.worst)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_operators_in_registers_are_right(op):
    number = list(FUNCTIONS).index(op)
    for turn in range(number % 2, len(SHAPES), 2):
        shape = SHAPES[turn]
        done = run_operator(op, shape, a=type_of(op, turn), seed=turn, chip=CHIP_950)
        assert done.findings == (), (op, shape)
        assert done.verified, (op, shape, done.worst)


@pytest.mark.parametrize("op", [op for op, function in FUNCTIONS.items() if function.by_rows])
def test_rows_that_do_not_fit_in_ub_are_right(op):
    """They are walked in pieces: of equal lengths, with a shorter last one, one row and several."""
    for turn, shape in enumerate(("45x24577", "1x49151", "2x65536")):
        done = run_operator(op, shape, a=type_of(op, turn), seed=turn)
        assert done.findings == (), (op, shape)
        assert done.verified, (op, shape, done.worst)


@pytest.mark.parametrize("chip", [None, CHIP_950])
def test_halves_are_right_where_cores_share_rows_and_where_rows_are_shared(chip):
    """Fewer rows than cores, more; rows longer than a tile; rows off 32 B."""
    for turn, shape in enumerate(("3x5000", "300x4100", "64x4096", "129x33")):
        done = run_operator("swiglu", shape, a=type_of("swiglu", turn), chip=chip)
        assert done.findings == (), shape
        assert done.verified, (shape, done.worst)


def test_a_long_row_costs_about_as_much_for_each_column():
    """Loads are twice as many as of a row that fits; the Vector unit has as much to do."""
    short, long = (time_operator("rms_norm", f"400x{n}").timeline.us for n in (8192, 32768))
    assert 3 < long / short < 8


@pytest.mark.parametrize("chip", [None, CHIP_950])
def test_rows_of_many_lengths_are_right(chip):
    for columns in (1, 8, 63, 64, 65, 127, 128, 129, 2048, 2049, 4096, 4097, 9000):
        done = run_operator("softmax", f"3x{columns}", a="float32", chip=chip)
        assert done.verified, (columns, done.worst, done.findings)


@pytest.mark.parametrize(
    ("op", "shape", "a"),
    [
        ("attention", "3x16x64x64", "float16"),
        ("attention", "1x128x320x64", "bfloat16"),
        ("attention", "2x32x192x256", "float16"),
        ("quant_matmul", "128x256x64", "float16"),
        ("quant_matmul", "3x2176x96", "bfloat16"),
        ("quant_matmul", "70x192x40", "bfloat16"),
        ("weight_quant_matmul", "64x256x128", "float16"),
        ("weight_quant_matmul", "5x128x64", "float16"),
        ("softmax_axis", "1x1x5", "float32"),
        ("softmax_axis", "100x33x70", "float16"),
        ("softmax_axis", "3x7x130", "bfloat16"),
        ("softmax_axis", "2x300x65", "float32"),
        ("softmax_axis", "1x2000x257", "bfloat16"),
        ("rotary", "5x3x128", "float16"),
        ("rotary", "3x70x64", "bfloat16"),
        ("rotary", "2x300x96", "float32"),
        ("moe_permute", "16x8x2x100", "bfloat16"),
        ("moe_permute", "3x32x4x33", "float32"),
        ("moe_permute", "2x8x8x17000", "float16"),
        ("moe_unpermute", "16x8x2x100", "float16"),
        ("moe_unpermute", "3x32x4x33", "float32"),
        ("moe_unpermute", "2x12x12x1500", "bfloat16"),
    ],
)
def test_operators_of_several_extents_are_right(op, shape, a):
    done = run_operator(op, shape, a=a)
    assert done.findings == ()
    assert done.verified, done.worst


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("attention", "3x16x64x64"),
        ("attention", "1x128x320x64"),
        ("attention", "2x32x192x256"),
        ("quant_matmul", "70x192x40"),
        ("weight_quant_matmul", "5x128x64"),
        ("softmax_axis", "100x33x70"),
        ("softmax_axis", "3x7x130"),
        ("softmax_axis", "1x2000x257"),
        ("rotary", "3x70x64"),
        ("moe_permute", "3x32x4x33"),
        ("moe_unpermute", "16x8x2x100"),
    ],
)
def test_operators_in_registers_are_right_on_950(op, shape):
    """The values are those of A2's kernels, and no instruction of its vector unit is left."""
    problem, chip = operator_problem(op, shape), cubecore.chip(CHIP_950)
    issued = [each for program in problem.launch(chip).programs for each in program.issues]
    on_vector = [each.template for each in issued if each.template.pipe.name == "V"]
    assert all(isinstance(each, VectorFunction) for each in on_vector)
    assert bool(on_vector) == (op != "moe_permute")
    done = run_operator(op, shape, chip=CHIP_950)
    assert done.findings == ()
    assert done.verified, done.worst


@pytest.mark.parametrize("chip", [None, CHIP_950])
def test_columns_that_do_not_fit_are_read_twice(chip):
    """Those of 64 rows are in UB at once, those of 4,096 are walked for both numbers before."""
    for rows, times in ((64, 1), (4096, 2)):
        line = time_operator("softmax_axis", f"1x{rows}x2048", a="float32", chip=chip).timeline
        size = 4 * rows * 2048
        assert (line.read_bytes, line.written_bytes) == (times * size, size)


def test_mxfp4_is_right():
    """Two codes a byte, parts of rows, lanes off a register; an independent conversion."""
    for turn, shape in enumerate(("32x2", "64x130", "96x3000", "2112x34")):
        done = run_operator("mx_quant", shape, a="bfloat16", seed=turn, chip=CHIP_950)
        assert (done.findings, done.worst) == ((), 0), shape


@pytest.mark.parametrize("chip", [None, CHIP_950])
@pytest.mark.parametrize(
    "shape", ["1x64x1088x128", "2x16x256x64", "1x128x512x64", "1x64x576x128", "1x32x448x256"]
)
def test_attention_that_is_two_blocks_ahead_is_right(shape, chip):
    """Blocks of keys: fewer than it is ahead, as many, more, and a shorter last one."""
    options = AttentionOptions(ahead=2)
    done = run_operator("attention", shape, a="bfloat16", chip=chip, options=options)
    assert done.findings == ()
    assert done.verified, done.worst


def test_attention_of_950_hands_over_within_its_ai_cores():
    """Memory sees Q, K, V and O alone: on A2 scores and more go through it, too."""
    shape, (heads, queries, keys, width) = "4x64x512x128", (4, 64, 512, 128)
    given, result = 2 * heads * (queries + 2 * keys) * width, 2 * heads * queries * width
    on_950 = time_operator("attention", shape, chip=CHIP_950).timeline
    assert (on_950.read_bytes, on_950.written_bytes) == (given, result)
    on_a2 = time_operator("attention", shape).timeline
    assert on_a2.read_bytes > given
    assert on_a2.written_bytes > result


def test_a_chip_without_a_kernel_is_refused():
    done = cli("run", "--op", "attention", "--shape", "2x32x64x64", "--chip", "Ascend310B4")
    assert done.code == 2
    assert done.err == (
        "chip must be of architecture 2201 or 3510 to execute attention, got Ascend310B4 of 3002\n"
    )


def test_attention_walks_what_the_cores_share():
    """Heads on their own cores, rows of a head on several, and each AI Core's two slots."""
    whole = time_operator("attention", "40x64x256x128")
    parts = time_operator("attention", "1x2560x256x128")
    assert whole.timeline.issued == parts.timeline.issued
    assert len(whole.timeline.groups) >= 3


def test_sums_that_vector_cores_scale_take_longer_and_pass_through_memory_once_more():
    """Two bytes of each sum are written by fixpipe with DEQF16; here four, read, and two."""
    m, n, k = 1024, 2048, 2048
    fixpipe = cubecore.time(m=m, n=n, k=k, a="int8", c="float16", epilogue=HALF)
    after = time_operator("quant_matmul", f"{m}x{n}x{k}", a="float16").timeline
    assert after.written_bytes - fixpipe.timeline.written_bytes == 4 * m * n
    assert 1.05 < after.us / fixpipe.timeline.us < 2


def test_what_cores_hand_over_stays_in_l2():
    """All of K and V passes through an L2 too small for them; the workspace is rewritten in it."""
    heads, queries, keys, width = 96, 16, 512, 128
    shape = f"{heads}x{queries}x{keys}x{width}"
    small = {"l2_bytes": str(8 * 2**20)}
    timeline = time_operator("attention", shape, settings=small).timeline
    given = 2 * heads * (2 * keys + queries) * width
    assert timeline.hbm_read_bytes == pytest.approx(given, rel=0.02)
    assert timeline.read_bytes > 1.1 * given
    whole = time_operator("attention", shape).timeline
    assert whole.cycles < timeline.cycles < 1.1 * whole.cycles


def test_a_wrong_step_is_not_verified(monkeypatch):
    monkeypatch.setattr(functions, "_LARGE", 1.0)
    assert not run_operator("mish", "8x64", a="float32").verified
    monkeypatch.setitem(results.REFERENCES, "relu", lambda x: x)
    assert not run_operator("relu", "8x64").verified


def test_time_follows_the_work_and_the_answer_has_its_interval():
    few, many = (time_operator("gelu", f"{rows}x4096") for rows in (1024, 4096))
    assert 3 * few.timeline.read_bytes < many.timeline.read_bytes
    assert few.timeline.cycles < many.timeline.cycles
    made = cli("time", "--op", "gelu", "--shape", "1024x4096", "--json").json
    assert made["us"] == few.timeline.us
    assert made["operator"] == {"op": "gelu", "shape": [1024, 4096], "a": "float16"}
    interval = made["interval"]
    assert interval["low_us"] <= made["us"] <= interval["high_us"]
    assert interval["share"] == 0.8


def test_a_tile_is_one_vector_function_on_950():
    """Each core has 64 rows, in tiles of as many as fit."""
    made = time_operator("softmax", "4096x2048", chip=CHIP_950, record=1 << 20)
    assert made.to_json()["assumed"] == []
    functions = [
        issue
        for issue in operator_problem("softmax", "4096x2048").launch(made.chip).programs[0].issues
        if isinstance(issue.template, VectorFunction)
    ]
    assert 1 <= len(functions) <= 2  # of whole tiles, and of the last
    assert made.timeline.issued < time_operator("softmax", "4096x2048").timeline.issued / 2


def test_run_of_the_command_line():
    done = cli("run", "--op", "rms_norm", "--shape", "10x3x77", "--a", "float32")
    assert done.code == 0
    assert "rms_norm of 30 x 77 float32 on Ascend910B3" in done.out
    assert "verified" in done.out
    made = cli("run", "--op", "tanh", "--shape", "64", "--json").json
    assert made["verified"] is True


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--op", "softmax"), "--op needs --shape beside it"),
        (("--shape", "4x4"), "--shape needs --op beside it"),
        (("--op", "gelu", "--shape", "4x4", "--m", "5"), "--m does not apply to an operator"),
        (
            ("--op", "gelu", "--shape", "4x"),
            "--shape must be positive integers as in 4096x2048, below 2^31 each, got '4x'",
        ),
        (
            ("--op", "gelu", "--shape", "4x0"),
            "--shape must be positive integers as in 4096x2048, below 2^31 each, got '4x0'",
        ),
        (
            ("--op", "gelu", "--shape", "4", "--a", "int8"),
            "--a must be float16, bfloat16, float32 of an operator, got 'int8'",
        ),
        (
            ("--op", "softmax", "--shape", "4x100", "--set", "ub_user_bytes=2048"),
            "ub_user_bytes of Ascend910B3 must be at least 3840 B for a tile of 64 columns, "
            "got 2048",
        ),
        (
            ("--op", "softmax_axis", "--shape", "4x100"),
            "--shape must be blocks x length x columns of softmax_axis, got '4x100'",
        ),
        (
            ("--op", "softmax_axis", "--shape", "4x100x64", "--set", "ub_user_bytes=1024"),
            "ub_user_bytes of Ascend910B3 must be at least 2432 B for a tile of 64 columns, "
            "got 1024",
        ),
        (
            ("--op", "attention", "--shape", "4x64x64"),
            "--shape must be heads x queries x keys x head size of attention, got '4x64x64'",
        ),
        (
            ("--op", "attention", "--shape", "4x64x64x80"),
            "the head size of attention must be 64, 128 or 256, got 80",
        ),
        (
            ("--op", "attention", "--shape", "4x64x100x64"),
            "the keys of attention must be a multiple of 64, got 100",
        ),
        (
            ("--op", "attention", "--shape", "4x65x64x64"),
            "the queries of attention must be at most 64, or a multiple of 64, got 65",
        ),
        (
            ("--op", "attention", "--shape", "4x64x64x64", "--a", "float32"),
            "--a must be float16 or bfloat16 of attention, got 'float32'",
        ),
        (
            ("--op", "dequant_swiglu_quant", "--shape", "4x64", "--a", "float16"),
            "--a must be int32 of dequant_swiglu_quant, got 'float16'",
        ),
        (
            ("--op", "mx_quant", "--shape", "32x64", "--a", "bfloat16"),
            "chip must be of architecture 3510, which converts to float4, to run mx_quant, "
            "got Ascend910B3 of 2201",
        ),
        (
            ("--op", "mx_quant", "--shape", "33x64", "--a", "bfloat16"),
            "the rows of mx_quant must be a multiple of 32, which share a scale, got 33",
        ),
        (
            ("--op", "mx_quant", "--shape", "32x63", "--a", "bfloat16"),
            "the columns of mx_quant must be even, two codes a byte, got 63",
        ),
        (
            ("--op", "rotary", "--shape", "4x8x80"),
            "the head size of rotary must be a multiple of 32 up to 512, got 80",
        ),
        (
            ("--op", "moe_permute", "--shape", "4x8x3x64"),
            "the experts of a token must be at most 64 and divide the experts = 8, got 3",
        ),
        (
            ("--op", "moe_unpermute", "--shape", "5x8x2x64"),
            "the tokens of a permutation must be at most experts / chosen = 4, or a multiple of "
            "it, got 5",
        ),
    ],
)
def test_bad_input_is_one_sentence(arguments, line):
    assert_refused(cli("time", *arguments), line)


def test_an_unknown_operator_is_refused_with_the_likely_name():
    refused = cli("time", "--op", "softmx", "--shape", "4x4")
    assert refused.code == 2
    assert "did you mean softmax?" in refused.err
    assert operator_problem("add", "2x3x4").extents == (6, 4)
