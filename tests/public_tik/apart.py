"""Running a job in a process of its own: operators change modules, leave, or never end."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def _child(pipe: Connection, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    pipe.send(job(*arguments))
    pipe.close()


def apart(job: Callable[..., Any], *arguments: Any, limit: float) -> Any:
    """Return what a job returns; its process is ended when its time, in seconds, is over.

    Raises
    ------
    TimeoutError
        It has not ended by then.
    EOFError
        It ended without a result.
    """
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, job, arguments))
    process.start()
    theirs.close()
    try:
        if not mine.poll(limit):
            raise TimeoutError
        return mine.recv()
    finally:
        process.kill()
        process.join()
