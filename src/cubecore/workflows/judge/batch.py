"""`judge_batch`: many submissions judged at once, and their verdicts in a store."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib.util import find_spec
from time import perf_counter

from cubecore.aliases import Json
from cubecore.answers.judged.batch import JudgedBatch, JudgedRequest, summary_of
from cubecore.answers.verdict import FAULT, REQUEST
from cubecore.errors import CubecoreError
from cubecore.workflows.judge.batch_requests import BatchRequest, keys_of
from cubecore.workflows.judge.judge import JudgeFaultError, judge_started, remove_left_folders
from cubecore.workflows.judge.starts import LoadedInterpreter, NewInterpreter, Start
from cubecore.workflows.judge.tasks.kinds import task_of
from cubecore.workflows.judge.verdict_store import VerdictStore

Submit = Callable[[BatchRequest], Future[Json]]
_AHEAD = 2
"""Requests that are handed over for each one that is judged at a time."""
_FEW = 3
"""Fewer judgements load all themselves: that is what the process to share would do once more."""


def judge_batch(
    requests: Sequence[BatchRequest],
    store: str,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    on_judged: Callable[[int], None] = lambda _: None,
) -> JudgedBatch:
    """Judge many submissions, and add each verdict to a store as soon as there is one.

    What the store has is not judged again, so that a batch that was killed goes on where it was;
    only a judgement that cubecore itself failed is tried anew.

    Parameters
    ----------
    requests : sequence of BatchRequest
        Submissions with their tasks and options.
    store : str
        An SQLite file, which is made if there is none.
    jobs : int or None
        Judgements at a time, as many as there are cores unless given.
    executor : concurrent.futures.Executor or None
        Takes the judgements, each of which has processes of its own; threads here unless given.
    on_judged : callable
        Takes how many have a verdict, each time that there is another.

    Returns
    -------
    JudgedBatch
        A line for each request, and how long they took.

    Raises
    ------
    RequestError
        If a submission or a task cannot be read, or the store is none.

    Examples
    --------
    >>> judge_batch(batch_requests("answers", "task.py", "Ascend910B3", {}), "verdicts.sqlite")
    ... # doctest: +SKIP
    """
    # A key is all that was asked: an earlier run, or equal content elsewhere, is one question.
    begin, count = perf_counter(), jobs or os.cpu_count() or 1
    keys = keys_of(requests)
    remove_left_folders()
    with VerdictStore.open(store) as kept:
        done = {key for key, outcome in kept.outcomes().items() if outcome != FAULT}
        waiting = {k: r for k, r in zip(keys, requests, strict=True) if k not in done}
        on_judged(before := len(keys) - len(waiting))
        with _submitting(executor, count, waiting.values()) as submit:
            for key, judged in _judged(submit, waiting, _AHEAD * count):
                kept.add(key, waiting[key].submission, waiting[key].task, judged)
                before += 1
                on_judged(before)
        verdicts = {key: summary_of(verdict) for key, verdict in kept.among(keys)}
    lines = [
        JudgedRequest(request.submission, request.task, request.chip, *verdicts[key])
        for key, request in zip(keys, requests, strict=True)
    ]
    return JudgedBatch(tuple(lines), len(waiting), perf_counter() - begin, store)


@contextmanager
def _start(requests: Collection[BatchRequest]) -> Iterator[Start | None]:
    """Yield what starts the processes of several judgements."""
    if len(requests) < _FEW:
        yield None
        return
    torch = any(map(_needs_torch, {each.task for each in requests}))
    with LoadedInterpreter(torch=torch and find_spec("torch") is not None) as start:
        yield start


def _needs_torch(task: str) -> bool:
    try:
        return task_of(task).needs_torch
    except CubecoreError:
        return False


def judged_request(request: BatchRequest, start: Start | None = None) -> Json:
    """Return a request's verdict as JSON; what refuses or fails it is one too.

    Beside the verdict are its `outcome` in a word and the first `reason` that it is not right.
    """
    try:
        answer = judge_started(
            NewInterpreter() if start is None else start,
            request.submission,
            request.task,
            request.chip,
            _silent,
            request.options,
        )
    except JudgeFaultError as error:
        return {"outcome": FAULT, "reason": str(error)}
    except CubecoreError as error:
        return {"outcome": REQUEST, "reason": str(error)}
    reasons = [f"{error.stage}: {error.message}" for error in answer.errors]
    reasons += [case.line for case in answer.cases if case.why and not answer.correct]
    return {**answer.to_json(), "outcome": answer.outcome, "reason": next(iter(reasons), "")}


def _silent(_: str) -> None:
    """Tell nothing of the stages: a batch tells how many are judged."""


@contextmanager
def _submitting(
    executor: Executor | None, count: int, requests: Collection[BatchRequest]
) -> Iterator[Submit]:
    """Yield what hands a request over; what waits in an executor of ours is dropped at the end."""
    if executor is not None:
        yield lambda request: executor.submit(judged_request, request)
        return
    # Threads of this process share one that has torch loaded; others' executors cannot.
    with _start(requests) as start:
        ours = ThreadPoolExecutor(count)
        try:
            yield lambda request: ours.submit(judged_request, request, start)
        finally:
            ours.shutdown(wait=False, cancel_futures=True)


def _judged(
    submit: Submit, requests: dict[str, BatchRequest], ahead: int
) -> Iterator[tuple[str, Json]]:
    """Yield keys and verdicts as they come; few are handed over at a time, and none is kept."""
    # A future that is held holds its verdict: each is let go as soon as it is done, and
    # the others wait in `left`, so that memory does not grow with the batch.
    waiting, running = iter(requests.items()), dict[Future[Json], str]()
    while True:
        for key, request in waiting:
            running[submit(request)] = key
            if len(running) >= ahead:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()
