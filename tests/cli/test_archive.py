"""cubecore in a zip archive, which Python imports from without unpacking it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cubecore
from cubecore.workflows.sweep.answers import model_version
from workflows.command import BAD_REQUEST, DONE, PROBLEM, cli

SOURCES = Path(cubecore.__file__).parents[1]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Return an archive of the package's files."""
    root = tmp_path_factory.mktemp("archive")
    unused = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES / "cubecore", root / "files" / "cubecore", ignore=unused)
    return shutil.make_archive(str(root / "cubecore"), "zip", root / "files")


def from_archive(archive, *command, code=None, cwd=None):
    called = ["-c", code] if code else ["-m", "cubecore", *map(str, command)]
    ran = subprocess.run(
        [sys.executable, *called], env=os.environ | {"PYTHONPATH": archive},
        capture_output=True, text=True, check=False, timeout=300, cwd=cwd,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "command", [("chips",), ("plan", *PROBLEM, "--json"), ("explain", "baseM")]
)
@pytest.mark.thinned(3)
def test_answers_are_those_of_a_folder(archive, command):
    answer = cli(*command)
    assert from_archive(archive, *command) == (answer.code, answer.out, answer.err)


@pytest.mark.sweep
def test_pages_and_measured_points_are_read(archive, tmp_path):
    command = ("time", *PROBLEM, "--report", "r.html")
    assert from_archive(archive, *command, cwd=tmp_path)[0] == DONE
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    code = (
        "from cubecore.workflows.calibration.measured_points import published; "
        "from cubecore.workflows.sweep.answers import model_version; "
        "print(len(published()), model_version())"
    )
    _, out, err = from_archive(archive, code=code)
    assert (out.split()[1:], err) == ([model_version()], "")
    assert int(out.split()[0]) > 100


def test_a_kernel_in_cpp_needs_an_installed_cubecore(archive, tmp_path):
    (tmp_path / "k.cpp").write_text("")
    line = "cubecore runs from an archive, and the compiler cannot read it; install cubecore\n"
    assert from_archive(archive, "run", "k.cpp", cwd=tmp_path) == (BAD_REQUEST, "", line)
