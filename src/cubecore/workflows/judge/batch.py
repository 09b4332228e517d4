"""`judge_batch`: many submissions judged at once, and their verdicts in a store."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import perf_counter

from cubecore.aliases import Json
from cubecore.answers.judged.batch import JudgedBatch, JudgedRequest, summary_of
from cubecore.answers.verdict import FAULT, REQUEST
from cubecore.errors import CubecoreError
from cubecore.workflows.judge.batch_requests import BatchRequest, keys_of
from cubecore.workflows.judge.judge import JudgeFaultError, judge, remove_left_folders
from cubecore.workflows.judge.verdict_store import VerdictStore

_AHEAD = 2
"""Requests that are handed over for each one that is judged at a time."""


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
    # Verdicts are known by what was asked, so that the order of the request, an earlier run and two
    # submissions of equal content are all one question to the store.
    begin, count = perf_counter(), jobs or os.cpu_count() or 1
    keys = keys_of(requests)
    remove_left_folders()
    with VerdictStore.open(store) as kept, _executor(executor, count) as running:
        done = {key for key, outcome in kept.outcomes().items() if outcome != FAULT}
        left = {k: r for k, r in zip(keys, requests, strict=True) if k not in done}
        before = len(keys) - len(left)
        on_judged(before)
        for number, (key, told) in enumerate(_judged(running, left, _AHEAD * count), 1):
            kept.add(key, left[key].submission, left[key].task, told)
            on_judged(before + number)
        verdicts = {key: summary_of(verdict) for key, verdict in kept.among(keys)}
    lines = [
        JudgedRequest(request.submission, request.task, *verdicts[key])
        for key, request in zip(keys, requests, strict=True)
    ]
    return JudgedBatch(tuple(lines), len(left), perf_counter() - begin, store)


def judged_request(request: BatchRequest) -> Json:
    """Return a request's verdict as JSON; what refuses or fails it is one too.

    Beside the verdict are its `outcome` in a word and the first `reason` that it is not right.
    """
    try:
        answer = judge(request.submission, request.task, chip=request.chip, **request.options)
    except JudgeFaultError as error:
        return {"outcome": FAULT, "reason": str(error)}
    except CubecoreError as error:
        return {"outcome": REQUEST, "reason": str(error)}
    reasons = [f"{error.stage}: {error.message}" for error in answer.errors]
    reasons += [case.line for case in answer.cases if case.why and not answer.correct]
    return {**answer.to_json(), "outcome": answer.outcome, "reason": next(iter(reasons), "")}


@contextmanager
def _executor(given: Executor | None, count: int) -> Iterator[Executor]:
    """Yield the executor; what waits in one of ours is dropped when the batch ends early."""
    if given is not None:
        yield given
        return
    ours = ThreadPoolExecutor(count)
    try:
        yield ours
    finally:
        ours.shutdown(wait=False, cancel_futures=True)


def _judged(
    executor: Executor, requests: dict[str, BatchRequest], ahead: int
) -> Iterator[tuple[str, Json]]:
    """Yield keys and verdicts as they come; few are handed over at a time, and none is kept."""
    # A future that is held holds its verdict: each is let go as soon as it is done, and
    # the others wait in `left`, so that memory does not grow with the batch.
    left, running = iter(requests.items()), dict[Future[Json], str]()
    while True:
        for key, request in left:
            running[executor.submit(judged_request, request)] = key
            if len(running) >= ahead:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()
