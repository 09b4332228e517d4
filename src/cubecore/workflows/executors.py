"""Work given to an executor of the caller's: threads, processes, a cluster.

Any `concurrent.futures.Executor` will do: ThreadPoolExecutor, ProcessPoolExecutor, Dask's
``client.get_executor()``, and others of the interface. Answers come in the order of the questions,
each once, whatever order the workers end in.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from cubecore.errors import CubecoreError, RequestError, refuse, unable

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

AHEAD = 64
"""Tasks that are given to the executor before the first of them is answered."""
T = TypeVar("T")


def require_executor(executor: object) -> None:
    """Refuse something that takes no tasks.

    Raises
    ------
    RequestError
        If it has no method `submit`.
    """
    if not callable(getattr(executor, "submit", None)):
        need = "be a concurrent.futures.Executor"
        raise refuse("executor", need, type(executor).__name__)


def in_order(
    executor: "Executor", function: Callable[..., T], tasks: Iterable[tuple[object, ...]]
) -> Iterator[T]:
    """Yield what a function returns for each task's arguments, in the order of the tasks.

    Tasks are taken as they are needed, `AHEAD` at a time; those that wait are cancelled when no
    more answers are asked for.

    Raises
    ------
    RequestError
        If the executor takes no more tasks, or loses one: its workers are gone.
    """
    waiting: deque[Future[T]] = deque()
    try:
        for task in tasks:
            waiting.append(_submitted(executor, function, task))
            if len(waiting) >= AHEAD:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        for future in waiting:
            future.cancel()


def _submitted(
    executor: "Executor", function: Callable[..., T], task: tuple[object, ...]
) -> "Future[T]":
    try:
        return executor.submit(function, *task)
    except Exception as error:
        raise _lost(error) from error


def _result(future: "Future[T]") -> T:
    try:
        return future.result()
    except CubecoreError:
        raise
    except Exception as error:
        raise _lost(error) from error


def _lost(error: Exception) -> RequestError:
    said = " ".join(str(error).split()).rstrip(".")
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return unable("executor", f"the executor lost its workers: {reason}")
