"""Commands in a process group of their own, with limits; nothing of them is left behind."""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Left:
    """The end of a command: its code, its output, its CPU seconds, processes that were left."""

    code: int
    out: str
    error: str
    cpu_s: float
    late: bool
    left_over: bool


def run_alone(command: Sequence[str], folder: Path, wall_s: float) -> Left:
    """Run a command; end it and all that it started after `wall_s` seconds."""
    before = os.times()
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        late = False
        try:
            out, error = process.communicate(timeout=wall_s)
        except subprocess.TimeoutExpired:
            late = True
            _end(process.pid)
            out, error = process.communicate()
        left_over = _alive(process.pid)
        _end(process.pid)
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return Left(process.returncode, out, error, spent, late, left_over)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _end(group: int) -> None:
    if _alive(group):
        os.killpg(group, signal.SIGKILL)
