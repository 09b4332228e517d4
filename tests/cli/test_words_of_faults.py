"""Inputs that Python would refuse in its own words, and options that say less than they mean."""

import json
import os
import subprocess
import sys

import pytest

from cubecore.workflows.calibration.measured_points import PUBLISHED
from workflows.command import DONE, FOUND, PROBLEM, assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

TEXTS = {
    "utf16": (json.dumps({"m": 1}).encode("utf-16"), "bytes that are no UTF-8"),
    "deep": (b'{"m": ' + b"[" * 20000 + b"]" * 20000 + b"}", "values nested too deeply"),
    "huge": (b'{"m": ' + b"9" * 5000 + b"}", "a number of too many digits"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_line_that_is_no_json(folder, name):
    data, got = TEXTS[name]
    (folder / "q.jsonl").write_bytes(data.replace(b"\n", b"") + b"\n")
    answer = cli("plan", "--queries", "q.jsonl")
    message = json.loads(answer.out.splitlines()[0])["error"]["message"]
    assert message == f"the line must be JSON, got {got}"
    assert answer.code == FOUND


@pytest.mark.parametrize("name", ["deep", "huge"])
def test_a_tiling_that_is_no_json(folder, name):
    data, got = TEXTS[name]
    (folder / "t.json").write_bytes(data)
    assert_refused(cli("check", "t.json", *PROBLEM), f"t.json must be JSON, got {got}")


def test_more_cores_than_there_are():
    text = cli("plan", *PROBLEM, "--cores", "100").out
    assert "100 cores were asked for; Ascend910B3 has 20\n" in text
    assert "were asked for" not in cli("plan", *PROBLEM, "--cores", "20").out


def test_outputs_say_their_form(folder):
    line = "--out must end in .json, .bin, .hex, .h or .hpp, got x.yaml"
    assert_refused(cli("plan", *PROBLEM, "--out", "x.yaml"), line)
    assert_refused(cli("run", *PROBLEM, "--out", "c.csv"), "--out must end in .npy, got c.csv")
    line = "cannot write --out -: an output is a file; ./- names one called -"
    assert_refused(cli("plan", *PROBLEM, "--out", "-"), line)
    assert_refused(cli("run", *PROBLEM, "--out", "-"), line)
    assert cli("plan", *PROBLEM, "--out", "./-").code == DONE
    assert [entry.name for entry in folder.iterdir()] == ["-"]


def test_names_without_an_encoding_or_with_line_ends_are_one_line(folder):
    assert_refused(
        cli("check", "a\u2028b\udcff\x1b.json", *PROBLEM),
        "cannot read a\\u2028b\\udcff\\x1b.json: no such file",
    )
    ran = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"cubecore", b"explain", b"\xff\xe2\x80\xa8"],
        capture_output=True, check=False, timeout=60, cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.count(b"\n") == 1
    assert b"Traceback" not in ran.stderr


def test_points_whose_tiling_or_names_make_no_sense(folder):
    point = next(
        made
        for made in map(json.loads, PUBLISHED.read_text("utf-8").splitlines())
        if made["kind"] == "matmul" and "singleM" in (made.get("tiling") or {})
    )
    made = [
        point | {"id": f"{name}-\ud800\u2028-{number}", "tiling": point["tiling"] | {name: value}}
        for name in point["tiling"]
        for number, value in enumerate(("x", [1], -1, 1e308, 10**30, "\ud800\u2028"))
    ]
    (folder / "p.jsonl").write_text("".join(json.dumps(p) + "\n" for p in made))
    answer = cli("validate", "--points", "p.jsonl", "--report", "r.html")
    assert (answer.code, answer.err) in {(DONE, ""), (FOUND, "")}
    answer.out.encode()
    assert "\\ud800\\u2028" in answer.out or "ud800" not in answer.out
