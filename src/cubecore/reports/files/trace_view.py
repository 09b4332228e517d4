"""The part of a launch that a Chrome trace shows, as the options of the command line select it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from cubecore.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACED_INSTRUCTIONS = 20_000
"""Instructions of each group of cores that a trace holds, unless there are many groups."""
MOST_BYTES = 200_000_000
"""Beyond this neither Perfetto nor a browser opens a trace."""
EVENT_BYTES = 130
"""Of an event without its name, at most; a trace is measured before it is made."""


@dataclass(frozen=True, slots=True)
class TraceView:
    """The part of a launch that a trace holds.

    `instructions` of each group at most, None for as many as keep the file small; the groups with
    one of `cores`, None for all; what lies in `window`, in microseconds from the cores' start.
    `waits` adds lanes of each pipe's waits and of the scalar unit's own work.
    """

    instructions: int | None = None
    cores: frozenset[int] | None = None
    window: tuple[float, float] | None = None
    waits: bool = False

    @property
    def record(self) -> int:
        """Return the number of instructions of each group to be recorded.

        No more than make a trace too large: a longer recording would only fill the memory.
        """
        if self.instructions is None:
            return TRACED_INSTRUCTIONS
        return min(self.instructions, MOST_BYTES // EVENT_BYTES + 1)

    @property
    def is_long(self) -> bool:
        """True if more instructions are asked for than always make a small trace."""
        return self.record > TRACED_INSTRUCTIONS

    @classmethod
    def of_options(
        cls, instructions: int | None, cores: str | None, window: str | None, waits: bool
    ) -> TraceView:
        """Return the view that options of the command line ask for.

        `cores` is as ``0,4..7``, `window` as ``0..250``, microseconds.

        Raises
        ------
        RequestError
            If a text is malformed, or asks for less than one instruction.
        """
        if instructions is not None and instructions < 1:
            raise refuse("--trace-instructions", "be at least 1", instructions)
        return cls(
            instructions,
            None if cores is None else frozenset(_numbers(cores)),
            None if window is None else _window(window),
            waits,
        )


WHOLE = TraceView()
"""The first instructions of every group, as many as keep a trace small."""
_NUMBERS = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?", re.ASCII)


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        numbers = _NUMBERS.fullmatch(part.strip())
        if numbers is None:
            raise refuse("--trace-cores", "be numbers of cores, such as 0,4..7", repr(text))
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        yield from range(first, last + 1)


def _window(text: str) -> tuple[float, float]:
    begin, dots, end = text.partition("..")
    try:
        window = float(begin), float(end)
    except ValueError:
        window = (0.0, 0.0)
    if not dots or not 0 <= window[0] < window[1] < inf:
        raise refuse("--trace-window", "be microseconds, such as 0..250", repr(text))
    return window
