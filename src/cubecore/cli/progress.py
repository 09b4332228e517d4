"""A sign of life for long work: on a terminal only, and on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

PATIENCE_S = 0.7
"""Shorter work shows nothing."""
_REFRESH_S = 0.1


class _Stage:
    """The stage that a bar shows; another can be entered from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name

    def enter(self, name: str) -> None:
        """Show another stage from now on."""
        self.name = name


@contextmanager
def working(stage: str) -> Iterator[Callable[[str], None]]:
    """Show a stage with a moving bar and the time since the first; yield what enters the next one.

    In a pipe, or when the work is short, nothing is written.
    """
    shown = _Stage(stage)
    if not sys.stderr.isatty():
        yield shown.enter
        return
    done = Event()
    thread = Thread(target=_show, args=(shown, done), daemon=True)
    thread.start()
    try:
        yield shown.enter
    finally:
        done.set()
        thread.join()


def _show(stage: _Stage, done: Event) -> None:
    if done.wait(PATIENCE_S):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(stage.name, total=None)
        while not done.wait(_REFRESH_S):
            progress.update(task, description=stage.name)


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
