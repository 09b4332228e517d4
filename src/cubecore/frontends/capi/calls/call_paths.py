"""The calls that led a Python kernel to a call of the core, by which lines are told apart."""

from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FrameType

from cubecore.frontends.source_locations import is_outside, location
from cubecore.isa.program.tree import Location

Place = int | tuple[int, ...]
"""An instruction of a function's code; behind it, those by which its callers came there."""


class CallPaths:
    """Places in functions that a kernel calls, and their locations, told apart by the callers."""

    def __init__(self) -> None:
        self._locations: dict[tuple[int, Place], Location] = {}
        self._codes: dict[int, CodeType] = {}

    def place(self, frame: FrameType) -> Place:
        """Return a frame's place: of the kernel itself, which this package calls, a number."""
        callers = list(_callers(frame))
        if not callers:
            return frame.f_lasti
        # Equal code of two files is one key, so that a code's identity stands for it; held, no
        # other code has the same.
        self._codes.update((id(caller.f_code), caller.f_code) for caller in callers)
        steps = (number for caller in callers for number in (id(caller.f_code), caller.f_lasti))
        return (frame.f_lasti, *steps)

    def location(self, frame: FrameType) -> Location:
        """Return the nearest location outside this package, with the calls that led there.

        It is the same object for the same calls.
        """
        outer: FrameType | None = frame
        while outer is not None and not is_outside(outer.f_code):
            outer = outer.f_back
        inner = frame if outer is None else outer
        key = id(inner.f_code), self.place(inner)
        self._codes[key[0]] = inner.f_code
        where = self._locations.get(key)
        if where is None:
            callers = tuple(location(caller) for caller in _callers(inner))
            where = replace(location(inner), callers=callers) if callers else location(inner)
            self._locations[key] = where
        return where


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the frames that led to one, the nearest first, up to the call of the kernel."""
    outer = frame.f_back
    while outer is not None and is_outside(outer.f_code):
        yield outer
        outer = outer.f_back
