"""Flags and small counters of a kernel under construction."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cubecore.isa.program.expr import Expr, Int
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.build.builder import Builder, ScalarVariable

Event = tuple[str, str, int]
"""(pipe that raises a flag, pipe that waits for it, event id)."""


def of_buffers(count: int, *pairs: tuple[str, str]) -> tuple[Event, ...]:
    """Return the flags between pairs of pipes, one for each of so many buffers."""
    return tuple((src, dst, event) for src, dst in pairs for event in range(count))


def of_tiles(buffers: int) -> tuple[Event, ...]:
    """Return the flags of free buffers where a tile is loaded, computed and stored."""
    return of_buffers(buffers, ("V", "MTE2"), ("MTE3", "V"))


@dataclass(frozen=True, slots=True)
class Flags:
    """Raises and awaits flags in a program."""

    builder: Builder

    def set(self, src: str, dst: str, event: Int) -> None:
        """Raise a flag."""
        self.builder.issue(SetFlag(src=src, dst=dst, event_id=0), event_id=event)

    def wait(self, src: str, dst: str, event: Int) -> None:
        """Wait for a flag."""
        self.builder.issue(WaitFlag(src=src, dst=dst, event_id=0), event_id=event)

    @contextmanager
    def raised(self, events: Sequence[Event]) -> Iterator[None]:
        """Raise flags before what is built inside, and wait for them behind it."""
        for event in events:
            self.set(*event)
        yield
        for event in events:
            self.wait(*event)


class Ring:
    """A counter modulo a small size; a size of 1 needs no scalar."""

    def __init__(self, builder: Builder, name: str, size: int) -> None:
        self.size = size
        self._scalar: ScalarVariable | None = builder.scalar(name) if size > 1 else None

    @property
    def at(self) -> Expr:
        """Return the index of the current slot."""
        return Expr(0) if self._scalar is None else self._scalar.value

    def next(self) -> None:
        """Step on."""
        if self._scalar is not None:
            self._scalar.set((self.at + 1) % self.size)
