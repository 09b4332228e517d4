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
             "getuid", "geteuid", "O_NOFOLLOW", "setpgid", "killpg", "fork", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGKILL
from cubecore.cli.commands import main
for line in sys.argv[1:]:
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, (line, end.code)
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "kernels" / "transpose.py"


def as_windows(folder, *lines):
    """Return what the commands print, each a line, in one process."""
    ran = subprocess.run(
        [sys.executable, "-c", AS_WINDOWS, *lines],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
    )  # fmt: skip
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout


def test_a_system_without_resource_sysconf_and_pathconf(folder):
    (folder / "q.jsonl").write_text(json.dumps({"m": 16, "n": 16, "k": 16}) + "\n")
    problem = " ".join(map(str, PROBLEM))
    made = json.loads(as_windows(folder, f"run {problem} --out c.npy --json"))
    assert (made["verified"], made["peak_bytes"]) == (True, None)
    as_windows(
        folder,
        f"plan {problem} --out t.json",
        "plan --queries q.jsonl --out a.jsonl --store s.sqlite",
        f"run {EXAMPLE}",
        f"time {EXAMPLE}",
        f"time {problem} --report r.html",
    )
