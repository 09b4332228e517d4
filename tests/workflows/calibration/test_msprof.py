"""A profiler's table laid beside the prediction: rows as points, and what is no row of one."""

import csv

import pytest

import cubecore
from cubecore.chips import chip
from cubecore.workflows.calibration.validate import validate
from workflows.calibration.planned import planned
from workflows.command import DONE, FOUND, assert_refused, cli

CHIP = "Ascend910B3"
PIPES = {
    "aic_mac_time(us)": "M",
    "aic_scalar_time(us)": "S",
    "aic_mte1_time(us)": "MTE1",
    "aic_mte2_time(us)": "MTE2",
    "aic_fixpipe_time(us)": "FIX",
}
ROW = {
    "Device_id": "0",
    "Op Name": "model/dense/MatMul",
    "OP Type": "MatMulV3",
    "Task Type": "AI_CORE",
    "Task Duration(us)": "123.4",
    "Block Dim": "20",
    "Input Shapes": '"2048,1024;1024,2560"',
    "Input Data Types": "FLOAT16;FLOAT16",
    "Input Formats": "ND;ND",
    "Output Shapes": '"2048,2560"',
    "Output Data Types": "FLOAT16",
    "Output Formats": "ND",
    "aicore_time(us)": "120.0",
    "aic_mac_time(us)": "N/A",
}


def written(tmp_path, *rows, columns=None, bom=False):
    path = tmp_path / "op_summary_1.csv"
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8-sig" if bom else "utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("bom", [False, True])
def test_a_row_lies_beside_what_time_says_of_its_product(tmp_path, bom):
    """Durations and pipes made of the prediction have no error."""
    problem = {"chip": CHIP, "m": 2048, "n": 2560, "k": 1024, "c": "float16", "cores": 20}
    line = cubecore.time(problem, tiling=planned(problem), step="CONSTANT").timeline
    hertz, starts = chip(CHIP).frequency_hz, chip(CHIP).short_start_cycles
    later = starts["BASIC"] - starts["CONSTANT"]  # a library's product starts as one by hand
    pipes = {**line.pipes, "S": line.pipes["S"] + later}
    own = {column: str(pipes[pipe] / hertz * 1e6) for column, pipe in PIPES.items()}
    row = ROW | own | {"Task Duration(us)": str(line.us + later / hertz * 1e6)}
    answer = validate(written(tmp_path, row, bom=bom), chip=CHIP)
    (case,) = answer.cases
    assert case.skipped is None
    assert case.point.id == "row1_model/dense/MatMul"
    assert case.wall.error == pytest.approx(0, abs=1e-9)
    assert set(case.pipes) == set(PIPES.values())
    for pair in case.pipes.values():
        assert pair.error == pytest.approx(0, abs=1e-9)
    assert "our planner's tiling" in case.assumed


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, (2048, 2560, 1024, "A:N B:N", "Row/Row")),
        ({"Input Shapes": "2048,1024;2560,1024"}, (2048, 2560, 1024, "A:N B:T", "Row/Row")),
        ({"Input Shapes": "1024,2048;1024,2560"}, (2048, 2560, 1024, "A:T B:N", "Row/Row")),
        ({"Input Shapes": "1024,2048;2560,1024"}, (2048, 2560, 1024, "A:T B:T", "Row/Row")),
        ({"Input Shapes": "64,64;64,64", "Output Shapes": "64,64"},
         (64, 64, 64, "A:N B:N", "Row/Row")),
        ({"Input Shapes": "2048,1024;160,64,16,16", "Input Formats": "ND;FRACTAL_NZ"},
         (2048, 2560, 1024, "A:N B:N", "Row/zN")),
        ({"Input Shapes": "2048,1024;1024,2560;2560"}, (2048, 2560, 1024, "A:N B:N", "Row/Row")),
    ],
)  # fmt: skip
def test_shapes_say_what_was_multiplied(tmp_path, cells, expected):
    (case,) = validate(written(tmp_path, ROW | cells), chip=CHIP).cases
    point = case.point
    assert (point.m, point.n, point.k, point.trans, point.formats) == expected
    assert case.skipped is None


@pytest.mark.parametrize(
    ("stated", "name"),
    [("FLOAT16", "half"), ("DT_BF16", "bfloat16"), ("FLOAT", "float"), ("DT_INT8", "int8")],
)
def test_types_have_the_profilers_names(tmp_path, stated, name):
    row = ROW | {"Input Data Types": f"{stated};{stated}", "Output Data Types": "FLOAT16"}
    (case,) = validate(written(tmp_path, row), chip=CHIP).cases
    assert case.point.types == (name, name, "half")


def test_the_other_tables_columns_have_other_names(tmp_path):
    names = {"Op Name": "Name", "OP Type": "Type", "Task Duration(us)": "Duration(us)"}
    row = {names.get(name, name): value for name, value in ROW.items()}
    (case,) = validate(written(tmp_path, row), chip=CHIP).cases
    assert case.wall.measured_us == 123.4


def test_rows_that_are_no_product_or_no_row_are_listed_and_the_rest_is_timed(tmp_path):
    rows = [
        ROW | {"OP Type": "NonMaxSuppression", "Op Name": "boxes"},
        ROW | {"Task Duration(us)": "soon"},
        ROW | {"Task Duration(us)": "N/A"},
        ROW | {"Input Shapes": "3,4,5;7,5,6", "Output Shapes": "3,4,6"},
        ROW | {"Input Shapes": "12,x;4,5"},
        ROW | {"Input Shapes": "12,13;14,15"},
        ROW | {"Block Dim": "many"},
        ROW | {"Input Data Types": "COMPLEX64;COMPLEX64"},
        ROW,
    ]
    answer = validate(written(tmp_path, *rows), chip=CHIP)
    need = "the shapes must be of one product of two matrices, or of a batch of them"
    assert [(line.line, line.reason) for line in answer.unreadable] == [
        (3, "Task Duration(us) must be a number, not negative, got 'soon'"),
        (4, "a row must have a duration, got none"),
        (5, f"{need}, got 3,4,5;7,5,6 -> 3,4,6"),
        (6, "Input Shapes must be numbers as 16,32;32,64, got '12,x;4,5'"),
        (7, f"{need}, got 12,13;14,15 -> 2048,2560"),
        (8, "Block Dim must be a whole number, got 'many'"),
    ]
    skipped, unknown, timed = answer.cases
    assert skipped.skipped == "no operator of `cubecore time --op` does what NonMaxSuppression does"
    assert unknown.skipped == "types must be ones of the kernel, got COMPLEX64 x COMPLEX64 -> half"
    assert timed.skipped is None


def operator_row(kind, shapes, result, **cells):
    types = ";".join(["FLOAT16"] * len(shapes.split(";")))
    of_vector = {"Input Shapes": shapes, "Output Shapes": result, "Input Data Types": types}
    return ROW | {"OP Type": kind, "Op Name": kind, "Block Dim": "40"} | of_vector | cells


OPERATORS = {
    "SoftmaxV2": ("8,256,1024", "8,256,1024", "softmax", 2048, 1024, {}),
    "SwiGlu": ("512,4096", "512,2048", "swiglu", 512, 4096, {}),
    "GeluV2": ("512,2048", "512,2048", "gelu", 512, 2048, {}),
    "ReduceSumD": ("512,2048", "512", "reduce_sum", 512, 2048, {}),
    "Cast": ("512,2048", "512,2048", "elementwise", 512, 2048,
             {"reads": 1, "writes": 1, "instructions": 1}),
    "RealDiv": ("512,2048;2048", "512,2048", "elementwise", 512, 2048,
                {"reads": 1, "writes": 1, "instructions": 1}),
    "QuantBatchMatmulV3": ("64,256;256,128;128", "64,128", "quant_matmul", None, None,
                           {"shape": [64, 128, 256]}),
    "WeightQuantBatchMatmulV2": ("64,256;256,128;128", "64,128", "weight_quant_matmul", None, None,
                                 {"shape": [64, 128, 256]}),
    "ConcatV2D": ("512,256;512,256", "512,512", "elementwise", 512, 512,
                  {"reads": 1, "writes": 1, "instructions": 0}),
    "SplitVD": ("512,512", "512,256;512,256", "elementwise", 1024, 256,
                {"reads": 1, "writes": 1, "instructions": 0}),
    "RotaryMul": ("2,64,8,128;2,64,1,128;2,64,1,128", "2,64,8,128", "rotary", None, None,
                  {"shape": [128, 8, 128]}),
    "ApplyRotaryPosEmb": ("2,64,8,128;2,64,2,128;2,64,1,128;2,64,1,128",
                          "2,64,8,128;2,64,2,128", "rotary", None, None, {"shape": [128, 10, 128]}),
    "MoeGatingTopKSoftmax": ("64,128", "64,8;64,8;64,8", "softmax", 64, 128, {}),
    "MoeInitRoutingV2": ("64,512;64,8", "512,512;512", "moe_permute", None, None,
                         {"shape": [64, 8, 8, 512]}),
    "MoeFinalizeRoutingV2": ("512,512;512", "64,512", "moe_unpermute", None, None,
                             {"shape": [64, 8, 8, 512]}),
    "GroupedMatmul": ("512,256;4,256,128", "512,128", "grouped_matmul", None, None,
                      {"shape": [4, 128, 128, 256]}),
}  # fmt: skip


def test_rows_of_other_operators_are_points_of_them(tmp_path):
    rows = [operator_row(kind, a, c) for kind, (a, c, *_) in OPERATORS.items()]
    answer = validate(written(tmp_path, *rows), chip=CHIP)
    assert not answer.unreadable
    for case, (_, _, *expected) in zip(answer.cases, OPERATORS.values(), strict=True):
        point = case.point
        assert [point.op, point.m, point.n, point.tiling] == expected
        assert case.skipped is None
        assert case.wall.measured_us == 123.4
    assert "groups have equal rows" in answer.cases[-1].assumed


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (operator_row("Cast", "1,2", "1,2", **{"Task Type": "AI_CPU"}),
         "task type AI_CPU runs on no AI Core"),
        (operator_row("FusedInferAttentionScore", "1,2,3,4;1,2,3,4;1,2,3,4", "1,2,3,4"),
         "a profile does not tell the axes of attention's operands"),
        (operator_row("ReduceSum", "8,16", "16"), "ReduceSum does not reduce the last axis alone"),
        (operator_row("Maximum", "8,16;8,16", "8"), "Maximum reads more elements than it writes"),
        (operator_row("GroupedMatmul", "512,256", "512,128"),
         "the shapes of GroupedMatmul are not of A [M, K] and B [groups, K, N]"),
        (operator_row("Relu", "", ""), "the shapes of Relu are empty"),
        (operator_row("RotaryMul", "128,64", "128,64"),
         "the shapes of RotaryMul are not of tokens, heads and their size"),
        (operator_row("MoeInitRouting", "64,512", "100,512"),
         "the shapes of MoeInitRouting are not of tokens and their experts' rows"),
        (operator_row("QuantBatchMatmulV3", "8,16", "9,4"),
         "the shapes of QuantBatchMatmulV3 are not of A [M, K] and C [M, N]"),
    ],
)  # fmt: skip
def test_a_row_that_no_operator_stands_for_says_why(tmp_path, row, reason):
    (case,) = validate(written(tmp_path, row), chip=CHIP).cases
    assert case.skipped == reason


def test_batches_of_products_are_one_point(tmp_path):
    rows = [
        ROW | {"OP Type": "BatchMatMulV2", "Input Shapes": "2,4,64,32;2,4,32,48",
               "Output Shapes": "2,4,64,48"},
        ROW | {"OP Type": "BatchMatMulV2", "Input Shapes": "2,4,64,32;32,48",
               "Output Shapes": "2,4,64,48"},
    ]  # fmt: skip
    batch, folded = validate(written(tmp_path, *rows), chip=CHIP).cases
    assert (batch.point.m, batch.point.n, batch.point.k) == (64, 48, 32)
    assert batch.point.tiling == {"batch": 8}
    assert (folded.point.m, folded.point.tiling) == (512, {})


def test_the_command(tmp_path):
    path = written(tmp_path, ROW)
    answer = cli("validate", "--points", path, "--chip", CHIP)
    assert answer.code == DONE
    assert "row1_model/dense/MatMul" in answer.out
    made = cli("validate", "--points", path, "--chip", CHIP, "--json").json
    assert made["cases"][0]["measured_us"] == 123.4
    broken = written(tmp_path, ROW, ROW | {"Block Dim": "many"})
    assert cli("validate", "--points", broken, "--chip", CHIP).code == FOUND


def test_files_and_chips_that_are_refused(tmp_path):
    path = written(tmp_path, ROW)
    line = "a profiler's table needs --chip"
    assert_refused(cli("validate", "--points", path), line)
    line = "--chip applies to a profiler's table; other points state theirs"
    assert_refused(cli("validate", "--chip", CHIP), line)
    few = written(tmp_path, {"Op Name": "x", "OP Type": "MatMulV3"})
    line = (
        f"--points must be a profiler's table of operators, got {few} without Input Shapes, "
        "Output Shapes, Input Data Types, Task Duration(us)"
    )
    assert_refused(cli("validate", "--points", few, "--chip", CHIP), line)
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    assert cli("validate", "--points", empty, "--chip", CHIP).code == 2
    none = tmp_path / "none.csv"
    line = f"--points must be a profiler's CSV file, got {none} (No such file or directory)"
    assert_refused(cli("validate", "--points", none, "--chip", CHIP), line)
    wrong = cli("validate", "--points", path, "--chip", "Ascend999")
    assert wrong.code == 2
