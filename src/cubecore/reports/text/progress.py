"""A sign of life for long work: on a terminal only, and on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

PATIENCE_S = 0.7
"""Shorter work shows nothing."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show `what` with a moving bar and the time since, until the block ends.

    In a pipe, or when the work is short, nothing is written.
    """
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    thread = Thread(target=_show, args=(what, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(what: str, done: Event) -> None:
    if done.wait(PATIENCE_S):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        done.wait()


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show `what` with a bar, the count and the time left; yield what takes the count so far.

    In a pipe nothing is written.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.update(task, completed=count)
