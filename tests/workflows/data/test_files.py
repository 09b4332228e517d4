"""Files in and out: operands, tilings and results, and what is said of a wrong one."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from cubecore.output_files import write_whole
from cubecore.tiling.model.cpp_source import to_header
from cubecore.tiling.model.export import to_json_text
from workflows.command import (
    BAD_REQUEST,
    DONE,
    FOUND,
    PROBLEM,
    SIZE,
    assert_refused,
    cli,
    names_in,
    shell,
)
from workflows.folders import folder, on_shelf, shelf  # noqa: F401 - fixtures
from workflows.shelf import TILING

# ruff: noqa: F811 - fixtures are arguments

# --- files that are written


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("t.bin", TILING.to_bytes()),
        ("t.json", to_json_text(TILING).encode()),
    ],
)
def test_plan_writes_its_tiling(folder, name, wanted):
    assert cli("plan", *PROBLEM, "--out", name).code == DONE
    assert (folder / name).read_bytes() == wanted


@pytest.mark.parametrize("name", ["t.h", "t.hpp"])
def test_plan_writes_a_header_with_the_problem_in_a_comment(folder, name):
    assert cli("plan", *PROBLEM, "--out", name).code == DONE
    lines = (folder / name).read_text().splitlines()
    comments = [line for line in lines if line.startswith("// ")]
    assert [line for line in lines if line not in comments] == [
        line for line in to_header(TILING).splitlines() if not line.startswith("// ")
    ]
    assert comments[1].startswith("// C[16x16] float32 = A[16x16] float16 x B[16x16] float16")
    assert names_in(folder) == [name]


def test_run_writes_c(folder):
    np.save("a.npy", np.eye(SIZE, dtype=np.int8))
    b = np.random.default_rng(0).integers(-99, 99, (SIZE, SIZE)).astype(np.int8)
    np.save("b.npy", b)
    files = ("--a-file", "a.npy", "--b-file", "b.npy", "--out", "c.npy")
    assert cli("run", *PROBLEM, "--a", "int8", *files).code == DONE
    assert names_in(folder) == ["a.npy", "b.npy", "c.npy"]
    assert (np.load("c.npy") == b).all()


def test_what_was_written_before_stays_when_a_request_is_refused(folder):
    (folder / "c.npy").write_text("mine")
    assert cli("run", *PROBLEM, "--out", "c.npy", "--a-file", "none.npy").code == BAD_REQUEST
    assert (folder / "c.npy").read_text() == "mine"
    assert names_in(folder) == ["c.npy"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("none/c.npy", "no such file or directory"),
        ("folder", "is a directory"),
        ("file/c.npy", "not a directory"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_output_that_cannot_be_written_is_refused(folder, command, path, reason):
    (folder / "folder").mkdir()
    (folder / "file").write_text("")
    line = f"cannot write --out {path}: {reason}"
    assert_refused(cli(command, *PROBLEM, "--out", path), line)
    as_json = cli(command, *PROBLEM, "--out", path, "--json")
    assert as_json.code == BAD_REQUEST
    assert as_json.json["error"]["message"] == line
    assert names_in(folder) == ["file", "folder"]


REPLACES = (
    "workflows/data/operands.py write_whole: a rename replaces whatever has the name, "
    "so that --out /dev/null or /dev/stdout, run as root, destroys the device"
)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_output_that_is_no_regular_file_is_not_replaced(folder, command):
    os.mkfifo(folder / "pipe")
    cli(command, *PROBLEM, "--out", "pipe")
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


def test_an_output_that_is_a_link_is_followed(folder):
    (folder / "link.json").symlink_to("target.json")
    assert cli("plan", *PROBLEM, "--out", "link.json").code == DONE
    assert (folder / "link.json").is_symlink()
    assert (folder / "target.json").exists()


def test_an_output_with_a_final_slash_is_no_file(folder):
    assert cli("plan", *PROBLEM, "--out", "none/").code == BAD_REQUEST
    assert names_in(folder) == []


def test_the_longest_name_that_the_file_system_takes(folder):
    name = "x" * 250 + ".json"
    (folder / name).write_text("")
    assert cli("plan", *PROBLEM, "--out", name).code == DONE


# --- operands

SHAPE = f"have shape [{SIZE}, {SIZE}]"
PAST = "pickled objects, which are never loaded"
ANOTHER = "be a .npy or .safetensors file, got another format"
OPERAND_LINES = {
    "float32.npy": "hold float16, got float32",
    "short.npy": f"{SHAPE}, got [8, 16]",
    "flat.npy": f"{SHAPE}, got [256]",
    "u8.npy": "hold float16, got uint8",
    "i16.npy": "hold float16, got int16",
    "bool.npy": "hold float16, got bool",
    "complex.npy": "hold float16, got complex128",
    "pickled.npy": f"hold numbers, got {PAST}",
    "bare_pickle.npy": ANOTHER,
    "empty.npy": ANOTHER,
    "noise.npy": ANOTHER,
    "several.npy": ANOTHER,
    "good.json": ANOTHER,
    "two.safetensors": "hold one tensor, got 2; name one as FILE.safetensors:TENSOR",
    "two.safetensors:x": "hold one of v, w, got x",
    "short.safetensors": f"{SHAPE}, got [4, 16]",
    "float64.safetensors": "hold a type that the Cube multiplies, got F64",
}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("loop", "too many levels of symbolic links"), (".", "is a directory")],
)
def test_an_operand_that_cannot_be_read_is_refused_with_one_line(on_shelf, name, reason):
    assert on_shelf
    line = f"cannot read --a-file {name}: {reason}"
    assert_refused(cli("run", *PROBLEM, "--a-file", name), line)


@pytest.mark.parametrize("name", OPERAND_LINES)
@pytest.mark.thinned(6)
def test_a_file_that_is_no_operand_is_refused_with_one_line(on_shelf, name):
    assert on_shelf
    line = f"--a-file {name} must {OPERAND_LINES[name]}"
    assert_refused(cli("run", *PROBLEM, "--a-file", name), line)
    assert cli("run", *PROBLEM, "--a-file", name, "--json").json["error"]["message"] == line


@pytest.mark.parametrize(
    "name",
    [
        "truncated.npy",
        "headless.npy",
        "negative.npy",
        "pickled3.npy",
        "text.npy",
        "truncated.safetensors",
        "noise.safetensors",
        "none.safetensors",
    ],
)
def test_a_broken_file_is_refused_with_one_line(on_shelf, name):
    assert on_shelf
    answer = cli("run", *PROBLEM, "--b-file", name)
    assert answer.code == BAD_REQUEST
    assert answer.out == ""
    assert answer.err.startswith(f"--b-file {name} must ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    [
        "a.npy",
        "fortran.npy",
        "v2.npy",
        "u16.npy",
        "fortran_u16.npy",
        "one.safetensors",
        "two.safetensors:w",
    ],
)
@pytest.mark.thinned(2)
def test_one_operand_in_many_forms(on_shelf, tmp_path, name):
    np.save(tmp_path / "eye.npy", np.eye(SIZE, dtype=np.float16))
    files = ("--a-file", name, "--b-file", tmp_path / "eye.npy", "--out", tmp_path / "c.npy")
    answer = cli("run", *PROBLEM, *files, "--json")
    assert answer.code == DONE
    assert answer.json["verified"]
    assert (np.load(tmp_path / "c.npy") == np.load(on_shelf / "a.npy")).all()


def test_a_file_in_the_other_byte_order_is_told_apart(on_shelf):
    assert on_shelf
    answer = cli("run", *PROBLEM, "--a-file", "big.npy")
    assert "got float16\n" not in answer.err


def test_a_number_without_axes_has_no_shape(on_shelf):
    assert on_shelf
    line = f"--a-file zero.npy must {SHAPE}, got []"
    assert_refused(cli("run", *PROBLEM, "--a-file", "zero.npy"), line)


def test_a_record_type_is_not_reinterpreted(on_shelf):
    assert on_shelf
    assert cli("run", *PROBLEM, "--a-file", "named.npy").code == BAD_REQUEST


def test_pickled_objects_in_a_version_3_file_are_named(on_shelf):
    assert on_shelf
    line = f"--a-file pickled3.npy must hold numbers, got {PAST}"
    assert_refused(cli("run", *PROBLEM, "--a-file", "pickled3.npy"), line)


def test_a_header_that_promises_an_exabyte_is_refused_by_its_shape(on_shelf):
    assert on_shelf
    line = f"--a-file huge.npy must {SHAPE}, got [1000000000000, 1000000]"
    assert_refused(cli("run", *PROBLEM, "--a-file", "huge.npy"), line)


TILING_LINES = {
    "other.json": "tiling.M must equal the problem's m = 16, got 32",
    "missing.json": "missing tiling.baseM",
    "misspelt.json": "tiling must have only the fields of TCubeTiling, got 'basem'; did you mean "
    "baseM?\nmissing tiling.baseM",
    "extra.json": "tiling must have only the fields of TCubeTiling, got 'baseX'; did you mean "
    "baseN?",
    "fraction.json": "tiling.baseM must be an integer, got 16.5",
    "wide.json": f"tiling.baseM must fit int32, got {10**30}",
    "text.json": "tiling.baseM must be an integer, got '16'",
    "truth.json": "tiling.baseM must be an integer, got True",
    "list.json": "list.json must be a JSON object, got list",
    "twice.json": "twice.json must give a field once, got baseM",
    "cut.json": "cut.json must be JSON, got Expecting value: line 1 column 11 (char 10)",
    "empty.json": "empty.json must hold a TCubeTiling: a JSON object, a 200-byte blob, its hex "
    "dump, a header or a log, got 0 B of none of them",
    "long.json": "long.json must be at most 1048576 B long, got a longer file",
    "cut.bin": "cut.bin must be 200 B long (50 x int32), got 199 B",
    "long.bin": "long.bin must be 200 B long (50 x int32), got 204 B",
    "noise.bin": "noise.bin must be 200 B long (50 x int32), got 256 B",
    "short.h": "short.h must hold the 50 values of TCubeTiling, got 3",
    "loop": "cannot read loop: too many levels of symbolic links",
    ".": "cannot read .: is a directory",
}


@pytest.mark.parametrize("name", TILING_LINES)
def test_a_file_that_is_no_tiling_is_refused(on_shelf, name):
    assert on_shelf
    for command in (("check", name), ("run", "--tiling", name), ("time", "--tiling", name)):
        assert_refused(cli(*command, *PROBLEM), TILING_LINES[name])
    as_json = cli("check", name, *PROBLEM, "--json")
    assert as_json.json["error"]["message"] == TILING_LINES[name]


def test_a_file_that_is_not_utf8_is_no_tiling(on_shelf):
    assert on_shelf
    assert cli("check", "latin.json", *PROBLEM).code == BAD_REQUEST


def test_a_tiling_of_zeros_is_illegal_not_malformed(on_shelf):
    assert on_shelf
    answer = cli("check", "zeros.json", *PROBLEM, "--json")
    assert answer.code == FOUND
    assert len(answer.json["findings"]) > 10


@pytest.mark.parametrize("name", ["largest.json", "least.json"])
def test_a_tiling_of_extreme_integers_is_illegal_not_malformed(on_shelf, name):
    assert on_shelf
    assert cli("check", name, *PROBLEM).code == FOUND


def test_compare_says_which_tiling_is_malformed(on_shelf):
    assert on_shelf
    answer = cli("compare", "good.json", "missing.json", *PROBLEM)
    assert "missing.json" in answer.err


def test_a_pickled_operand_is_refused_by_a_real_process(on_shelf):
    answer = shell("run", *PROBLEM, "--a-file", "pickled.npy", cwd=on_shelf)
    assert_refused(answer, f"--a-file pickled.npy must hold numbers, got {PAST}")


@pytest.mark.parametrize("name", ["nan.npy", "inf.npy"])
def test_an_operand_with_nan_or_infinity_gives_json(on_shelf, name):
    answer = shell("run", *PROBLEM, "--a-file", on_shelf / name, "--json")
    assert answer.err == ""
    assert answer.json["verified"]


def test_a_ctrl_c_while_a_file_is_written_leaves_nothing(folder, monkeypatch):
    def interrupted(_, target):
        raise KeyboardInterrupt(target)

    monkeypatch.setattr(Path, "replace", interrupted)
    (folder / "c.json").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_whole("c.json", b"behind", "--out")
    assert (folder / "c.json").read_text() == "before"
    assert names_in(folder) == ["c.json"]
