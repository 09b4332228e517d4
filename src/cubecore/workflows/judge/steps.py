"""Steps of a judgement, each forked from one process that has loaded what they share.

A step has a session and limits of its own. It leaves a file of JSON behind it: what it found, or a
refusal. Whatever a step's code prints goes to its log.
"""

import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from cubecore.aliases import Json
from cubecore.errors import CubecoreError
from cubecore.lazy_dataclass import dataclass
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.runner import Stopped

REQUEST, STOPPED, FAULT = "request", "stopped", "fault"
_LOG_BYTES = 4000
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The end of a step: what it left, its CPU seconds and its seconds."""

    left: Json
    cpu_s: float
    wall_s: float

    @property
    def failed(self) -> tuple[str, str] | None:
        """The kind of a failure (request, stopped or fault), and its sentence; None for none."""
        for kind in (REQUEST, STOPPED, FAULT):
            if kind in self.left:
                return kind, str(self.left[kind])
        return None


def forked(name: str, work: Callable[[], Json], folder: Path, options: JudgeOptions) -> StepOutcome:
    """Run work in a process of its own, in `folder`, and return what it left."""
    # The child holds one end of a pipe: it closes when the child ends, so that a wait with a limit
    # is one select. What the child starts by exec does not inherit the end. Whoever is left in its
    # session is killed before it is waited for: until then its number is not given away.
    begin, file, log = perf_counter(), folder / f"{name}.json", folder / f"{name}.log"
    theirs, ours = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        _work(work, file, log, options)
    os.close(ours)
    ended, _, _ = select.select([theirs], [], [], options.wall_s)
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)  # the whole session, and what it has left behind
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    os.close(theirs)
    seconds = used.ru_utime + used.ru_stime, perf_counter() - begin
    if not ended:
        return StepOutcome({STOPPED: f"{name} did not end within {options.wall_s:g} s"}, *seconds)
    try:
        return StepOutcome(json.loads(file.read_text("utf-8")), *seconds)
    except (OSError, ValueError):
        return StepOutcome(_without_answer(name, status, log, options), *seconds)


def _work(work: Callable[[], Json], file: Path, log: Path, options: JudgeOptions) -> None:
    """Do the work of a child, and end it."""
    code = 1
    try:
        os.setsid()
        _end_with_parent()
        resource.setrlimit(resource.RLIMIT_CPU, (int(options.cpu_s) + 1, int(options.cpu_s) + 5))
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        try:
            left = work()
        except Stopped as error:
            left = {STOPPED: str(error)}
        except CubecoreError as error:
            left = {REQUEST: str(error)}
        except MemoryError:
            left = {STOPPED: "the memory of this machine does not suffice"}
        except BaseException:  # noqa: BLE001 - told as our own fault, with where it is
            left = {FAULT: traceback.format_exc()}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(left), "utf-8")
        part.replace(file)
        code = 0
    finally:
        os._exit(code)


def _end_with_parent() -> None:
    """End this process with the one that it was forked from, where the system can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _without_answer(name: str, status: int, log: Path, options: JudgeOptions) -> Json:
    """Return why a child left no answer: its limit of CPU time, a lack of memory, or a crash."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in {signal.SIGXCPU, signal.SIGKILL}:
        return {STOPPED: f"{name} was ended by its limit of {options.cpu_s:g} s of CPU time"}
    with suppress(OSError):
        said = log.read_text("utf-8", "replace")[-_LOG_BYTES:]
        return {FAULT: f"{name} ended with status {status}: {said}"}
    return {FAULT: f"{name} ended with status {status}"}
