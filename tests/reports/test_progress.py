"""Long work shows a bar on a terminal, and nothing in a pipe."""

import os
import pty
import subprocess
import sys

SCRIPT = """
from time import sleep
from cubecore.reports import progress
progress.PATIENCE_S = {patience}
with progress.working("thinking"):
    sleep(0.4)
"""


def run_on_a_terminal(patience):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SCRIPT.format(patience=patience)]
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
    assert b"thinking" in run_on_a_terminal(0)


def test_short_work_shows_nothing():
    assert run_on_a_terminal(30) == b""


def test_a_pipe_sees_nothing():
    command = [sys.executable, "-c", SCRIPT.format(patience=0)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
