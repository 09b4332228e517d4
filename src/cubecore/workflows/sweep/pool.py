"""Processes that plan: each reads problems and writes answers, a line each.

They are fresh interpreters that run this package and nothing of the caller's, so that a script
without a guard, a notebook or a thread may start them. One whose caller is gone sees its input end
and stops.
"""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue

from cubecore.aliases import JsonMapping
from cubecore.errors import unable
from cubecore.workflows.executors import in_order
from cubecore.workflows.sweep.answers import AnswerLine, SweepOptions, plan_line

CHUNK = 16
"""Problems that a process is given at a time."""
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from cubecore.workflows.sweep.pool import serve; serve()"
)
_PLANNED, _REFUSED = "+", "-"

Problems = Sequence[JsonMapping]


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve() -> None:
    """Answer problems on standard input until it ends; the first line holds the options."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides when to stop
    first = json.loads(sys.stdin.readline())
    options = SweepOptions(**first)
    for line in sys.stdin:
        answer = plan_line(json.loads(line), options)
        sys.stdout.write(f"{_PLANNED if answer.planned else _REFUSED}{answer.text}\n")
        sys.stdout.flush()


class Worker:
    """One such process."""

    def __init__(self, options: SweepOptions) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._send([json.dumps(options.to_json())])

    def plan(self, problems: Problems) -> list[AnswerLine]:
        """Return the answers to some problems, in their order.

        Raises
        ------
        RequestError
            If the process ended.
        """
        assert self._process.stdout is not None
        self._send([json.dumps(problem) for problem in problems])
        lines = list(islice(self._process.stdout, len(problems)))
        if len(lines) < len(problems) or not lines[-1].endswith("\n"):
            self._lost()
        return [AnswerLine(line[0] == _PLANNED, line[1:].rstrip("\n")) for line in lines]

    def _send(self, lines: list[str]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines))
            self._process.stdin.flush()
        except OSError:
            self._lost()

    def _lost(self) -> None:
        code = self._process.wait()
        raise unable("a planning process", f"a planning process ended with exit code {code}")

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what it was to be sent no longer matters
                continue
        self._process.wait()


def plan_chunk(chunk: Problems, options: SweepOptions) -> list[AnswerLine]:
    """Return the answers to some problems, in their order."""
    return [plan_line(problem, options) for problem in chunk]


def plan_chunks(
    chunks: Iterable[Problems],
    options: SweepOptions,
    processes: int,
    executor: Executor | None = None,
) -> Iterator[list[AnswerLine]]:
    """Yield the answers to each chunk of problems, in their order.

    An `executor` plans in place of processes of our own. With one process this one plans. Chunks
    are taken as they are needed, a few ahead.

    Raises
    ------
    RequestError
        If a process ended.
    """
    if executor is not None:
        yield from in_order(executor, plan_chunk, ((chunk, options) for chunk in chunks))
        return
    if processes <= 1:
        for chunk in chunks:
            yield plan_chunk(chunk, options)
        return
    # A thread per process: each takes an idle process, blocks on its answers and puts it back.
    # Order is kept by the queue of futures, whose length bounds how far questions are read ahead.
    idle: SimpleQueue[Worker | None] = SimpleQueue()  # None: one that may be started
    workers: list[Worker] = []
    for _ in range(processes):
        idle.put(None)

    def work(chunk: Problems) -> list[AnswerLine]:
        """Let an idle process plan a chunk."""
        if not chunk:
            return []
        worker = idle.get()
        try:
            if worker is None:
                worker = Worker(options)
                workers.append(worker)
            return worker.plan(chunk)
        finally:
            idle.put(worker)

    executor = ThreadPoolExecutor(processes)
    waiting: deque[Future[list[AnswerLine]]] = deque()
    try:
        for chunk in chunks:
            waiting.append(executor.submit(work, chunk))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.stop()
