"""The calls that led a Python kernel to a call of the core, by which lines are told apart."""

from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FrameType

from cubecore.frontends.source_locations import is_outside, location
from cubecore.isa.program.tree import Location

_PATH = 1 << 32
"""Beyond every instruction's offset in its code."""


class CallPaths:
    """Places in functions that a kernel calls, and their locations, told apart by the callers.

    `path` is that of `frame`, the last one that was asked for: 0 of the kernel itself, which this
    package calls, else a multiple of a number that no offset of an instruction reaches.
    """

    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.path = 0
        self._outer: FrameType | None = None
        self._path_of_outer = 0
        self._paths: dict[tuple[int, int, int], int] = {}
        self._locations: dict[tuple[int, int, str], Location] = {}
        self._codes: dict[int, CodeType] = {}

    def path_of(self, frame: FrameType) -> int:
        """Return the path of calls that led to a frame."""
        if frame is not self.frame:
            # While a function runs its callers stand still: a frame has one path. Calls of one
            # loop have one frame behind them, so that the last one's path is remembered, too.
            outer = frame.f_back
            if outer is not self._outer:
                self._outer, self._path_of_outer = outer, self._long_path_of(outer)
            path = 0 if self._path_of_outer < 0 else self._step(self._path_of_outer, outer)
            self.frame, self.path = frame, path
        return self.path

    def _long_path_of(self, frame: FrameType | None) -> int:
        """Return the path of a frame; -1 of one of this package's."""
        if frame is None or not is_outside(frame.f_code):
            return -1
        before = self._long_path_of(frame.f_back)
        return 0 if before < 0 else self._step(before, frame.f_back)

    def _step(self, path: int, caller: FrameType | None) -> int:
        """Return the path that goes on from where a caller is."""
        assert caller is not None
        # Equal code of two files is one key, so that a code's identity stands for it; while it is
        # held, no other code has the same.
        key = path, id(caller.f_code), caller.f_lasti
        longer = self._paths.get(key)
        if longer is None:
            self._codes[key[1]] = caller.f_code
            longer = self._paths[key] = _PATH * (len(self._paths) + 1)
        return longer

    def location(self, frame: FrameType, call: str = "") -> Location:
        """Return the nearest location outside this package, with the calls that led there.

        It is the same object for the same calls; the last of them is `call`.
        """
        outer: FrameType | None = frame
        while outer is not None and not is_outside(outer.f_code):
            outer = outer.f_back
        inner = frame if outer is None else outer
        key = id(inner.f_code), inner.f_lasti + self.path_of(inner), call
        where = self._locations.get(key)
        if where is None:
            callers = tuple(location(caller) for caller in _callers(inner))
            where = location(inner, call)
            where = replace(where, callers=callers) if callers else where
            self._locations[key], self._codes[key[0]] = where, inner.f_code
        return where

    def release(self) -> None:
        """Drop the frames, which hold what a kernel had."""
        self.frame = self._outer = None


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the frames that led to one, the nearest first, up to the call of the kernel."""
    outer = frame.f_back
    while outer is not None and is_outside(outer.f_code):
        yield outer
        outer = outer.f_back
