"""plan_many: many problems on all cores, answers in the order of the questions."""

import json
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.plan import QueryAnswer
from cubecore.chips import chip, default_chip
from cubecore.errors import RequestError, refuse, unable
from cubecore.planning.local_search import STANDARD, effort_named
from cubecore.tiling.model.problem import Problem
from cubecore.units import INT32_MAX
from cubecore.workflows.executors import require_executor
from cubecore.workflows.sweep.answers import AnswerLine, SweepOptions, broken_line, checked
from cubecore.workflows.sweep.pool import CHUNK, available_cores, plan_chunks
from cubecore.workflows.sweep.queries import Query
from cubecore.workflows.sweep.store import Store

if TYPE_CHECKING:
    from concurrent.futures import Executor


def plan_many(
    problems: Iterable[Problem | JsonMapping],
    *,
    settings: Mapping[str, str] | None = None,
    alternatives: int = 5,
    processes: int | None = None,
    store: str | None = None,
    executor: "Executor | None" = None,
    search: str = STANDARD,
) -> Generator[QueryAnswer, None, None]:
    """Yield the plan of every problem, in their order, as they are made.

    Parameters
    ----------
    problems : iterable of Problem or mapping
        The products; a mapping may have a ``label`` of your own. One that makes no sense, or has no
        legal tiling, is an answer of its own and does not stop the rest.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    alternatives : int
        How many more tilings each answer has.
    processes : int or None
        Processes to plan in; one for each core that this process may use unless given.
    store : str or None
        An SQLite file that answers of this version of the model are read from and kept in.
    executor : Executor or None
        A `concurrent.futures.Executor` that plans in place of processes of our own: a pool's or a
        cluster's (Dask's ``client.get_executor()``). This process alone writes the store.
    search : str
        As `plan` has it. A store keeps answers of the standard search.

    Yields
    ------
    QueryAnswer
        One for each problem.

    Raises
    ------
    RequestError
        At once, if the settings are malformed or the store cannot be written; later, if the
        executor loses its workers (the store keeps the answers so far).

    Examples
    --------
    >>> answers = cubecore.plan_many([{"m": 64, "n": 64, "k": 64}], processes=1)
    >>> next(answers).planned
    True
    """
    if isinstance(problems, str | bytes | PathLike | Mapping) or not isinstance(problems, Iterable):
        need = "be several, each a record or a mapping"
        raise refuse("problems", need, repr(problems), "cubecore plan --queries reads a file")
    options = make_options(settings, alternatives, search=search)
    require_storable(store, search)
    count = _process_count(processes, problems)
    if executor is not None:
        require_executor(executor)
    opened = None if store is None else Store.open(store, write=True)
    queries = (Query.of(number, problem) for number, problem in enumerate(problems, 1))
    answers = sweep(queries, options, count, opened, executor)
    return _closing(answers, opened)


def _process_count(processes: int | None, problems: Iterable[object]) -> int:
    """Return the processes to plan in: those asked for, or as many as problems keep busy."""
    if processes is not None and processes < 1:
        raise refuse("processes", "be at least 1", processes)
    if processes is None and isinstance(problems, Sequence):
        processes = useful_processes(len(problems))
    return processes or available_cores()


def make_options(
    settings: Mapping[str, str] | None,
    alternatives: int,
    soc: str | None = None,
    search: str = STANDARD,
) -> SweepOptions:
    """Return the options of a sweep.

    Raises
    ------
    RequestError
        If `alternatives` is negative, there is no such search, or the chip does not have the
        settings.
    """
    if alternatives < 0:
        raise refuse("alternatives", "be at least 0", alternatives)
    if alternatives > INT32_MAX:
        raise refuse("alternatives", f"be at most {INT32_MAX}", alternatives)
    chip(soc or default_chip()).what_if(settings or {})
    effort_named(search)
    return SweepOptions(dict(settings or {}), alternatives, search)


def require_storable(store: str | None, search: str, name: str = "search") -> None:
    """Refuse a store for another search than the one whose answers it keeps."""
    if store is not None and search != STANDARD:
        raise unable(name, f"a store keeps answers of the standard search, not of {search}")


def useful_processes(count: int) -> int:
    """Return how many processes `count` problems keep busy."""
    return max(1, min(available_cores(), (count + CHUNK - 1) // CHUNK))


def _closing(
    answers: Generator[QueryAnswer, None, None], store: Store | None
) -> Generator[QueryAnswer, None, None]:
    with ExitStack() as stack:
        if store is not None:
            stack.enter_context(store)
        yield from stack.enter_context(closing(answers))


@dataclass(slots=True)
class _Chunk:
    """Some questions: their answers as far as they are known, and problems to plan by place."""

    queries: list[Query]
    answers: list[QueryAnswer | None] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    problems: list[Json] = field(default_factory=list)


def sweep(
    queries: Iterable[Query],
    options: SweepOptions,
    processes: int,
    store: Store | None,
    executor: "Executor | None" = None,
) -> Generator[QueryAnswer, None, None]:
    """Yield the answers to queries in their order; new ones are in the store by then.

    Raises
    ------
    RequestError
        If a planning process ended, or the store can no longer be written.
    """
    # `to_plan` is pulled by `plan_chunks` a few chunks ahead of the answers; `begun` holds these
    # chunks in order, so that answers meet their questions again and come out in the order asked.
    begun: deque[_Chunk] = deque()

    def to_plan() -> Iterator[list[Json]]:
        """Yield the problems of every chunk that are not answered yet."""
        rest = iter(queries)
        while taken := list(islice(rest, CHUNK)):
            chunk = _Chunk(taken)
            _answer_from_store(chunk, options, store)
            begun.append(chunk)
            yield chunk.problems

    for lines in plan_chunks(to_plan(), options, processes, executor):
        chunk = begun.popleft()
        if store is not None and lines:
            store.add(lines, options)
        for index, line in zip(chunk.indices, lines, strict=True):
            chunk.answers[index] = _answer(chunk.queries[index], line, stored=False)
        yield from (answer for answer in chunk.answers if answer is not None)


def _answer_from_store(chunk: _Chunk, options: SweepOptions, store: Store | None) -> None:
    """Answer what makes no sense and what the store knows; the rest is to be planned."""
    for index, query in enumerate(chunk.queries):
        error = query.error
        if error is None:
            try:
                chunk.problems.append(checked(query.asked, options))
                chunk.indices.append(index)
            except RequestError as found:
                error = found
        broken = None if error is None else broken_line(query.line, _shown(query.asked), error)
        chunk.answers.append(None if broken is None else _answer(query, broken, error=error))
    if store is None or not chunk.problems:
        return
    stored = store.answers(chunk.problems, options)
    left = []
    for index, problem, line in zip(chunk.indices, chunk.problems, stored, strict=True):
        if line is None:
            left.append((index, problem))
        else:
            chunk.answers[index] = _answer(chunk.queries[index], line, stored=True)
    chunk.indices = [index for index, _ in left]
    chunk.problems = [problem for _, problem in left]


def _answer(
    query: Query, line: AnswerLine, *, stored: bool = False, error: RequestError | None = None
) -> QueryAnswer:
    label = query.label
    text = line.text if label is None else f'{line.text[:-1]}, "label": {json.dumps(label)}}}'
    return QueryAnswer(query.line, text, line.planned, stored, error, label)


def _shown(asked: object) -> Any:
    """Return a question that makes no sense, as far as JSON can show it."""
    try:
        json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return asked
