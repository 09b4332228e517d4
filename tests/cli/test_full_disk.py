"""A disk that is full, standard output that takes nothing, a folder that is gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflows.command import BAD_REQUEST, PROBLEM, names_in
from workflows.folders import folder  # noqa: F401 - a fixture
from workflows.sweeps import problems, write_queries

# ruff: noqa: F811 - fixtures are arguments

FULL = "cannot write to standard output: no space left on device\n"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def limited(size, *arguments, cwd):
    """Run a command whose files may have `size` bytes."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
        "from cubecore.cli.commands import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, arguments)],  # a short .pyc would stay
        capture_output=True, text=True, check=False, timeout=120, cwd=cwd,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.sweep
def test_a_sweep_onto_a_full_disk_is_one_sentence(folder):
    write_queries(folder / "q.jsonl", problems(40))
    asked = ("plan", "--queries", "q.jsonl", "--processes", "1", "--alternatives", "0")
    line = "cannot write --out a.jsonl: file too large\n"
    assert limited(20_000, *asked, "--out", "a.jsonl", cwd=folder) == (BAD_REQUEST, "", line)
    assert not (folder / "a.jsonl").exists()


def test_a_store_on_a_full_disk_is_one_sentence(folder):
    write_queries(folder / "q.jsonl", problems(40))
    asked = ("plan", "--queries", "q.jsonl", "--processes", "1", "--alternatives", "0")
    code, out, err = limited(60_000, *asked, "--store", "s.sqlite", cwd=folder)
    assert (code, out) == (BAD_REQUEST, "")
    assert err in {
        f"cannot write store s.sqlite: {reason}\n"
        for reason in ("disk I/O error", "database or disk is full")
    }


@pytest.mark.parametrize(
    "command",
    [
        ("run", *PROBLEM, "--out", "x.npy"),
        ("plan", *PROBLEM, "--out", "x.json"),
        ("time", *PROBLEM, "--report", "x.html"),
    ],
)
@pytest.mark.thinned(3)
def test_an_output_on_a_full_disk_is_one_sentence(folder, command):
    line = f"cannot write {command[-2]} {command[-1]}: file too large\n"
    assert limited(100, *command, cwd=folder) == (BAD_REQUEST, "", line)
    assert names_in(folder) == []


@needs_full
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("command", ["plan", "time", "run"])
@pytest.mark.thinned(6)
def test_standard_output_that_is_full(command, more):
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "cubecore", command, *PROBLEM, *more],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert (answer.returncode, answer.stderr) == (BAD_REQUEST, FULL)


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", [("--help",), ("--version",), ("plan", "--help"), ("run", "s.py"), ("run", "m.py")]
)
@pytest.mark.thinned(6)
def test_standard_output_that_is_full_under_help_and_scripts(folder, command, unbuffered):
    (folder / "s.py").write_text("print('line')\n")
    (folder / "m.py").write_text("print('line\\n' * 10000)\n")
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "cubecore", *command], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False, timeout=120, env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert (answer.returncode, answer.stderr) == (BAD_REQUEST, FULL)


def test_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    queries = write_queries(tmp_path / "q.jsonl", problems(1))
    reason = "no such file or directory"  # of the folder
    for arguments, line in (
        (
            ("store", "show", "s.sqlite"),
            "cannot read store s.sqlite: no such file",
        ),
        (
            ("plan", "--queries", queries, "--store", "s.sqlite"),
            f"cannot write --store s.sqlite: {reason}",
        ),
        (
            ("plan", *PROBLEM, "--out", "x.json"),
            f"cannot write --out x.json: {reason}",
        ),
        (("check", "x.json", *PROBLEM), "cannot read x.json: no such file"),
    ):
        code = (
            "import os, shutil, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); "
            "from cubecore.cli.commands import main; main(sys.argv[2:])"
        )
        gone.mkdir(exist_ok=True)
        ran = subprocess.run(
            [sys.executable, "-c", code, gone, *map(str, arguments)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (ran.returncode, ran.stdout, ran.stderr) == (BAD_REQUEST, "", line + "\n")
