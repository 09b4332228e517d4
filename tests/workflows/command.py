"""The command line, in this process or in one of its own, and what it leaves."""

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from cubecore.cli.commands import main

DONE, FOUND, BAD_REQUEST = 0, 1, 2
SIZE = 16
PROBLEM = ("--m", "16", "--n", "16", "--k", "16")


@dataclass(frozen=True)
class Answer:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one object on stdout; NaN and Infinity are no JSON."""

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


def cli(*arguments):
    """Run a command in this process."""
    out, err, code = StringIO(), StringIO(), DONE
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
    return Answer(code, out.getvalue(), err.getvalue())


def shell(*arguments, **keys):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "cubecore", *map(str, arguments)]
    keys = {"capture_output": True, "text": True, "timeout": 60, **keys}
    done = subprocess.run(command, check=False, **keys)
    return Answer(done.returncode, done.stdout, done.stderr)


def assert_refused(answer, line):
    """The line, the whole line and nothing but the line."""
    assert (answer.code, answer.out, answer.err) == (BAD_REQUEST, "", line + "\n")


def bug(reason):
    return pytest.mark.xfail(strict=True, reason=reason)


def names_in(folder):
    """Return the names of what a folder holds."""
    return sorted(path.name for path in Path(folder).iterdir())
