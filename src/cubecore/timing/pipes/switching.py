"""Functions that take turns: greenlets, or threads of which one runs where greenlet is missing.

A turn ends where the function returns, or asks for its `Hub` to go on. Greenlets switch ten times
faster; with threads a launch whose cores signal each other is timed on every system that has NumPy.
"""

from collections.abc import Callable
from threading import Semaphore, Thread, current_thread
from typing import Protocol


class Turn(Protocol):
    """A function that has its turns."""

    @property
    def dead(self) -> bool:
        """True once the function has returned."""

    def switch(self) -> object:
        """Let it go on to the end of its turn; what it raises is raised here."""


class Hub(Protocol):
    """The giver of turns."""

    def switch(self) -> object:
        """End the turn of the function that calls this."""


class _ThreadTurn(Thread):
    """A function on a thread, which runs only between `switch` and the end of its turn."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(daemon=True)  # one that waits for ever must not outlive the process
        self._function = function
        self._raised: BaseException | None = None
        self._begins, self._ends = Semaphore(0), Semaphore(0)
        self.dead = False

    def run(self) -> None:
        self._begins.acquire()
        try:
            self._function()
        except BaseException as raised:  # noqa: BLE001 - raised again by the thread that gives turns
            self._raised = raised
        self.dead = True
        self._ends.release()

    def switch(self) -> None:
        if self.ident is None:
            self.start()
        self._begins.release()
        self._ends.acquire()
        if self._raised is not None:
            raise self._raised

    def end_turn(self) -> None:
        """Let the thread that gives turns go on until the next turn."""
        self._ends.release()
        self._begins.acquire()


class _ThreadHub:
    """The thread that gives the turns."""

    def switch(self) -> None:
        turn = current_thread()
        assert isinstance(turn, _ThreadTurn)
        turn.end_turn()


def turns(functions: list[Callable[[], None]]) -> "tuple[Hub, list[Turn]]":
    """Return what the caller's functions switch to, and a `Turn` for each of them."""
    try:
        from greenlet import getcurrent, greenlet
    except ModuleNotFoundError:
        return _ThreadHub(), [_ThreadTurn(each) for each in functions]
    return getcurrent(), [greenlet(each) for each in functions]
