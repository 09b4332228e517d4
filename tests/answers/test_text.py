"""Answers as text: plain lines, aligned, with the figures that the records hold."""

import pytest

import cubecore
from cubecore.advice.intervals import interval_range
from cubecore.answers.plan import core_map
from cubecore.presented.text import number, table
from cubecore.tiling.model.core_grid import core_blocks
from cubecore.tiling.model.request import problem_line
from harness import make_tiling

SMALL = {"m": 33, "n": 17, "k": 40}


def test_a_table_aligns_its_columns_numbers_to_the_right():
    rows = [("name", "count"), ("a", 1), ("long name", 1000), ("none", None)]
    assert table(rows) == [
        "  name       count",
        "  a              1",
        "  long name   1000",
        "  none",
    ]


def test_a_table_of_nothing_is_nothing():
    assert table([]) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (0, "0"),
        (1, "1"),
        (0.012345, "0.01235"),
        (12.3456, "12.35"),
        (999.94, "999.9"),
        (1234.4, "1,234"),
        (1_234_567, "1,234,567"),
        (-1234.4, "-1,234"),
    ],
)
def test_numbers_have_four_digits_or_all_before_the_point(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({}, "C[33x17] float32 = A[33x40] float16 x B[40x17] float16 on Ascend910B3"),
        (
            {"trans_a": True, "trans_b": True, "a": "int8", "bias": "int32"},
            "C[33x17] int32 = A[40x33]^T int8 x B[17x40]^T int8 + bias int32 on Ascend910B3",
        ),
        (
            {"c": "half", "epilogue": {"relu": True}, "chip": "Ascend910B1"},
            "C[33x17] float16 = A[33x40] float16 x B[40x17] float16, relu on Ascend910B1",
        ),
        (
            {"a": "float8_e5m2", "scale_a": "float8_e8m0fnu", "chip": "Ascend950PR_9599"},
            "C[33x17] float32 = A[33x40] float8_e5m2 x B[40x17] float8_e5m2, MX scales on "
            "Ascend950PR_9599",
        ),
    ],
)
def test_a_problem_is_one_line_with_its_operands_as_stored(keys, line):
    assert problem_line(cubecore.plan(SMALL, **keys).request) == line


def test_every_answer_ends_with_one_newline_and_no_blanks_before_it():
    plan = cubecore.plan(SMALL)
    other = make_tiling(plan.problem)
    shown = [
        plan.text,
        cubecore.check(plan.tiling, SMALL).text,
        cubecore.check(make_tiling(plan.problem, baseM=8), SMALL).text,
        cubecore.run(SMALL).text,
        cubecore.time(SMALL).text,
        cubecore.compare(plan.tiling, other, SMALL).text,
    ]
    for answer in shown:
        assert answer.endswith("\n")
        assert not answer.endswith("\n\n")
        assert all(line == line.rstrip() for line in answer.splitlines())


def test_the_map_of_cores_names_every_core_once():
    problem = cubecore.Problem(m=100, n=90, k=16)
    blocks = core_blocks(make_tiling(problem, singleCoreM=48, singleCoreN=32))
    lines = core_map(blocks)
    assert lines == [
        "  rows \\ columns  0..  32..  64..",
        "             0..    0     3     6",
        "            48..    1     4     7",
        "            96..    2     5     8",
    ]


def test_the_map_names_every_core_of_a_block_where_k_is_split():
    problem = cubecore.Problem(m=32, n=16, k=96, split_k=True)
    blocks = core_blocks(make_tiling(problem, singleCoreM=16, singleCoreK=32))
    assert core_map(blocks)[1:] == [
        "             0..  0,2,4",
        "            16..  1,3,5",
    ]


def test_the_first_line_names_every_option():
    plan = cubecore.plan(
        m=32, n=32, k=64, a="int8", format_b="NZ", batch=3, template="NORM", launch="mix",
        epilogue={"quant": "REQ8", "scale": 0.5, "relu": True},
    )  # fmt: skip
    assert problem_line(plan.request) == (
        "C[32x32] int8 = A[32x64] int8 x B[64x32] int8 NZ, relu, REQ8, 3 matrices, NORM, mix on "
        "Ascend910B3"
    )


def test_a_map_too_large_for_lines_is_a_sentence():
    problem = cubecore.Problem(m=1, n=20 * 16, k=16)
    blocks = core_blocks(make_tiling(problem, singleCoreN=16))
    assert core_map(blocks) == ["  20 cores: 1 x 20 blocks of 1 x 16, the last 1 x 16"]


def test_a_comparison_shows_only_the_fields_that_differ():
    plan = cubecore.plan(SMALL)
    other = make_tiling(plan.problem, baseM=8)
    compared = cubecore.compare(make_tiling(plan.problem), other, SMALL)
    shown = compared.text
    likely = interval_range(compared.first.timed.interval)
    assert f"  in 8 of 10 cases  {likely}  -" in shown.splitlines()
    assert [line.split() for line in shown.splitlines()[2:5]] == [
        ["first", "second"],
        ["baseM", "16", "8"],
        ["legal", "yes", "no"],
    ]
    assert shown.splitlines()[-1].startswith("second: BASE-M-ALIGNMENT: baseM = 8, ")
    assert "first:" not in shown


def test_a_run_that_is_wrong_says_so_in_capitals_and_lists_its_findings(monkeypatch):
    from importlib import import_module

    from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
    from cubecore.kernels.matmul.launch import matmul_launch
    from kernels.broken import changed

    def launch(*args):
        return changed(
            matmul_launch(*args),
            lambda leaf: None if isinstance(leaf.template, CopyGmToCbufMultiNd2Nz) else leaf,
        )

    monkeypatch.setattr(import_module("cubecore.workflows.run"), "matmul_launch", launch)
    shown = cubecore.run(SMALL).text
    assert shown.splitlines()[1].startswith("FAILED: ")
    assert any(line.startswith("Findings: ") for line in shown.splitlines())
    assert any(line.startswith("  uninitialised: mad.a must ") for line in shown.splitlines())


def test_a_plan_without_a_clock_does_not_print_unknown_microseconds():
    plan = cubecore.plan(m=16, n=16, k=16, chip="KirinX90")
    assert plan.predicted.us is None
    assert "unknown us" not in plan.text
