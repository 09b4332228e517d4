"""Long work shows a bar on a terminal, and nothing in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

SCRIPT = """
from time import sleep
from cubecore.cli import progress
progress.PATIENCE_S = {patience}
with progress.working("thinking"):
    sleep(0.4)
"""
COUNT = """
from time import sleep
from cubecore.cli import progress
with progress.counting("planning", 40) as advance:
    for done in range(0, 41, 20):
        advance(done)
        sleep(0.15)
"""


def run_on_a_terminal(script):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    return seen


def test_a_terminal_sees_what_is_going_on():
    assert b"thinking" in run_on_a_terminal(SCRIPT.format(patience=0))


def test_short_work_shows_nothing():
    assert run_on_a_terminal(SCRIPT.format(patience=30)) == b""


def test_a_terminal_sees_how_many_are_done():
    seen = run_on_a_terminal(COUNT)
    assert b"planning" in seen
    assert b"20/40" in seen


@pytest.mark.parametrize("script", [SCRIPT.format(patience=0), COUNT])
def test_a_pipe_sees_nothing(script):
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
