"""Systems that lack what Linux has."""

import json
import subprocess
import sys
from pathlib import Path

from workflows.command import PROBLEM
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

AS_WINDOWS = """
import os, signal, sys
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("sysconf", "sysconf_names", "pathconf", "pathconf_names", "sched_getaffinity",
             "getuid", "geteuid", "O_NOFOLLOW", "setpgid", "killpg"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGKILL
from cubecore.cli.commands import main
main()
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "kernels" / "transpose.py"


def as_windows(folder, *arguments):
    ran = subprocess.run(
        [sys.executable, "-c", AS_WINDOWS, *arguments],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
    )  # fmt: skip
    assert ran.stderr == ""
    return ran


def test_a_system_without_resource_sysconf_and_pathconf(folder):
    (folder / "q.jsonl").write_text(json.dumps({"m": 16, "n": 16, "k": 16}) + "\n")
    ran = as_windows(folder, "run", *PROBLEM, "--out", "c.npy", "--json")
    made = json.loads(ran.stdout)
    assert (made["verified"], made["peak_bytes"]) == (True, None)
    assert as_windows(folder, "plan", *PROBLEM, "--out", "t.json").returncode == 0
    asked = ("--queries", "q.jsonl", "--out", "a.jsonl", "--store", "s.sqlite")
    assert as_windows(folder, "plan", *asked).returncode == 0
    assert as_windows(folder, "run", EXAMPLE).returncode == 0
    assert as_windows(folder, "time", EXAMPLE).returncode == 0
    assert as_windows(folder, "time", *PROBLEM, "--report", "r.html").returncode == 0
