"""Steps of a judgement, each forked from one process that has loaded what they share.

A step has a session and limits of its own, and a box if it runs a submission. It answers by a pipe:
what it found, or a refusal. Whatever a step's code prints is kept for a sentence on its failure.
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
from dataclasses import dataclass, field
from time import perf_counter
from typing import NoReturn, Protocol

from cubecore.aliases import Json
from cubecore.answers.verdict import FAULT, REQUEST, STOPPED
from cubecore.errors import CubecoreError
from cubecore.sandbox.box import Sandbox
from cubecore.sandbox.confinement import TOTAL_BYTES
from cubecore.sandbox.kernel_calls import end_with_parent
from cubecore.workflows.judge.limits import CpuBudget
from cubecore.workflows.judge.submissions.runner import Stopped

_LOG_BYTES = 4000
_MOST_BYTES = 64 << 20
"""The most bytes of an answer."""
_PART_BYTES = 1 << 16
_LOOK_S = 0.5
"""Seconds between two looks at the memory and the CPU time of a box."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The end of a step: what it returned, its CPU seconds and its seconds."""

    output: Json
    cpu_s: float
    wall_s: float

    @property
    def failed(self) -> tuple[str, str] | None:
        """The kind of a failure (request, stopped or fault), and its sentence; None for none."""
        for kind in (REQUEST, STOPPED, FAULT):
            if kind in self.output:
                return kind, str(self.output[kind])
        return None


class Service(Protocol):
    """Work that a step has done outside of its box."""

    def answered(self, text: bytes, left_s: float) -> bytes:
        """Answer a question within some seconds, in the judge's process."""

    def used_by(self, ask: int, answers: int) -> None:
        """Have this process, the step's, write its questions and read the answers."""


def forked(
    name: str,
    work: Callable[[], Json],
    budget: CpuBudget,
    wall_s: float,
    box: Sandbox | None = None,
    service: Service | None = None,
) -> StepOutcome:
    """Run work in a process of its own, and in a box if there is one; return its output.

    It may take the CPU seconds that are left, which it lessens. A service answers the questions of
    the work, here.
    """
    cpu_s = budget.left_s  # the child counts seconds of its own
    if not cpu_s:
        return StepOutcome({STOPPED: f"{name} {budget.sentence}"}, 0.0, 0.0)
    # The child holds an end of a pipe that nothing of its own inherits: it closes when the child
    # ends. What it says comes by two others, which are read meanwhile. Whoever is left in its
    # session is killed before it is waited for: until then its number is not given away.
    begin = perf_counter()
    pipes = [os.pipe() for _ in range(4)]
    answers, answers_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        for file in (answers_end, *(ours for ours, _ in pipes)):
            os.close(file)
        files = (*(theirs for _, theirs in pipes), answers)
        _work(work, files, cpu_s, box, service)
    for file in (answers, *(theirs for _, theirs in pipes)):
        os.close(file)
    end, answer, log, asked = (ours for ours, _ in pipes)
    said = _Output(answer, log, _Questions(asked, answers_end, service))
    watch = _Watch(begin + wall_s, f"did not end within {wall_s:g} s", box, budget)
    late = said.read_until(end, watch)
    inside_s = watch.used_s  # processes that are killed here are not in what this one waits for
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)  # the whole session, and what it has left behind
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    for file in (answers_end, *(ours for ours, _ in pipes)):
        os.close(file)
    seconds = max(inside_s, used.ru_utime + used.ru_stime), perf_counter() - begin
    budget.steps_s += seconds[0]
    if late:
        return StepOutcome({STOPPED: f"{name} {late}"}, *seconds)
    try:
        output = json.loads(bytes(said.answer))
    except (ValueError, RecursionError):
        output = _without_answer(name, status, bytes(said.log), budget)
    return StepOutcome(output, *seconds)


@dataclass(eq=False, slots=True)
class _Questions:
    """The questions of a step to its service, a line each: a hostile one has no other effect."""

    asked: int
    tell: int
    service: Service | None
    text: bytearray = field(default_factory=bytearray)

    def answer(self, left_s: float) -> None:
        """Answer a line that is there."""
        line, end, rest = bytes(self.text).partition(b"\n")
        if not end or self.service is None:
            return
        self.text[:] = rest
        answer = self.service.answered(line, left_s)
        while answer:
            answer = answer[os.write(self.tell, answer) :]


class _Watch:
    """The limits of a step, and of all processes in its box together."""

    def __init__(self, end: float, late: str, box: Sandbox | None, budget: CpuBudget) -> None:
        self.end, self.late = end, late
        self._box, self._budget = box, budget
        self._began_s = box.cpu_s() if box is not None else 0.0
        self._looked = perf_counter()

    def passed(self) -> str:
        """Return the sentence on a limit that is passed, empty for none."""
        if perf_counter() >= self.end:
            return self.late
        # A limit of a process is one of each; their sums are looked at while they run.
        if self._box is None or perf_counter() - self._looked < _LOOK_S:
            return ""
        self._looked = perf_counter()
        if self._box.memory_bytes() > TOTAL_BYTES:
            return f"took more than {TOTAL_BYTES / (1 << 30):g} GiB of memory"
        # The service's work for the step is in the budget already. A second more: a process that is
        # ended by its own limit says where it was.
        return self._budget.sentence if self.used_s > self._budget.left_s + 1 else ""

    @property
    def used_s(self) -> float:
        """The CPU seconds in the box since the step began; 0 without one."""
        return 0.0 if self._box is None else self._box.cpu_s() - self._began_s


class _Output:
    """The output of a step: its answer, its questions, and the end of the rest that it prints."""

    def __init__(self, answer: int, log: int, questions: _Questions) -> None:
        self.answer, self.log = bytearray(), bytearray()
        self._questions = questions
        self._files = {answer: self.answer, log: self.log, questions.asked: questions.text}
        for file in (*self._files, questions.tell):
            os.set_blocking(file, False)

    def read_until(self, end: int, watch: _Watch) -> str:
        """Read until the file `end` closes; the sentence on a limit that is passed before."""
        watched = {end, *self._files}
        while not (passed := watch.passed()):
            left_s = max(0.0, watch.end - perf_counter())
            ready, _, _ = select.select(list(watched), [], [], min(left_s, _LOOK_S))
            for file in {*ready} - {end}:
                if not self._read(file):
                    watched.discard(file)
            if max(len(self.answer), len(self._questions.text)) > _MOST_BYTES:
                return watch.late
            with suppress(BlockingIOError, BrokenPipeError):  # of who does not read its answers
                self._questions.answer(watch.end - perf_counter())
            if end in ready:
                for file in watched - {end}:
                    while self._read(file) and len(self.answer) <= _MOST_BYTES:
                        pass
                return ""
        return passed

    def _read(self, file: int) -> bool:
        """Read what is there; False if nothing is."""
        try:
            part = os.read(file, _PART_BYTES)
        except BlockingIOError:
            return False
        buffer = self._files[file]
        buffer += part
        if buffer is self.log:
            del buffer[:-_LOG_BYTES]
        return bool(part)


def lower_cpu_limit(seconds: float) -> None:
    """Take seconds that others used for it from what this process, a step's, has left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, soft - round(seconds)), hard))


def _work(
    work: Callable[[], Json],
    files: tuple[int, ...],
    cpu_s: float,
    box: Sandbox | None,
    service: Service | None,
) -> NoReturn:
    """Do the work of a child, and end it."""
    code, (_, answer, log, ask, answers) = 1, files
    try:
        os.setsid()
        end_with_parent()
        limit = int(cpu_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 4))
        os.dup2(log, 1)
        os.dup2(log, 2)
        if box is not None:
            box.enter((answer, ask, answers))
        if service is not None:
            service.used_by(ask, answers)
        raw = json.dumps(_output_of(work)).encode()
        while raw:
            raw = raw[os.write(answer, raw) :]
        code = 0
    except BaseException:  # noqa: BLE001 - told as our own fault, with where it is
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _output_of(work: Callable[[], Json]) -> Json:
    """Return what work returns, or how it failed."""
    try:
        return work()
    except Stopped as error:
        return {STOPPED: str(error)}
    except CubecoreError as error:
        return {REQUEST: str(error)}
    except MemoryError:
        return {STOPPED: "the memory of this machine does not suffice"}
    except BaseException:  # noqa: BLE001 - told as our own fault, with where it is
        return {FAULT: traceback.format_exc()}


def _without_answer(name: str, status: int, log: bytes, budget: CpuBudget) -> Json:
    """Return why a child left no answer: its limit of CPU time, a lack of memory, or a crash."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGXCPU or (number == signal.SIGKILL and not budget.left_s):
        return {STOPPED: f"{name} {budget.sentence}"}
    if number == signal.SIGKILL:  # nobody else's but the system's, which lacks memory
        return {STOPPED: f"{name} was killed, as where the machine's memory does not suffice"}
    if number == signal.SIGBUS:  # a page of a file that its folder has no room for: global memory
        return {STOPPED: f"{name} has no room left for its arrays"}
    return {FAULT: f"{name} ended with status {status}: {log.decode('utf-8', 'replace')}"}
