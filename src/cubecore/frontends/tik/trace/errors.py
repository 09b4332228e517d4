"""Refusals that name the line of the user's program."""

import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import FrameType

from cubecore.errors import RequestError, Violation
from cubecore.frontends.source_locations import is_outside
from cubecore.isa.program.tree import Location

_HERE = str(Path(__file__).parents[1])
_MOST_CALLS = 16
"""Calls that a location tells of."""
_Place = tuple[str, int, str]
"""A file, a line of it, and the function."""


def user_location(call: str = "", operands: tuple[str, ...] = ()) -> Location:
    """Return the nearest place on the stack outside of this package, with its callers.

    It is the same object for the same calls. `call` is what the user calls there, on tensors that
    are called `operands`.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads source files, this does not
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    places, outer = [_place(frame)], frame.f_back
    while outer is not None and is_outside(outer.f_code) and len(places) < _MOST_CALLS:
        places.append(_place(outer))
        outer = outer.f_back
    return _location(tuple(places), call, operands)


def _place(frame: FrameType) -> _Place:
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


@lru_cache(maxsize=65536)
def _location(places: tuple[_Place, ...], call: str, operands: tuple[str, ...]) -> Location:
    where, *callers = (Location(Path(file).name, line, name) for file, line, name in places)
    return replace(where, call=call, operands=operands, callers=tuple(callers))


@lru_cache(maxsize=4096)
def _is_ours(file: str) -> bool:
    return file.startswith((_HERE, "<frozen")) or file.endswith("contextlib.py")


def refuse(subject: str, requirement: str, value: object, remedy: str = "") -> RequestError:
    """Return the refusal of one value at the user's line, ready to raise."""
    return RequestError([located(Violation(subject, requirement, str(value), remedy))])


def unable(subject: str, sentence: str, remedy: str = "") -> RequestError:
    """Return the refusal of one state or missing ability at the user's line, ready to raise."""
    return RequestError([located(Violation(subject, "", "", remedy, sentence))])


def located(violation: Violation) -> Violation:
    """Return a violation whose subject starts with the user's file and line."""
    where = user_location()
    return violation.within(f"{where.file}:{where.line}")


def require_immediate(value: object, subject: str, low: int, high: int) -> int:
    """Return an integer that the program knows while it is built, in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(subject, "be an immediate of type int", type(value).__name__)
    if not low <= value <= high:
        raise refuse(subject, f"be in [{low}, {high}]", value)
    return value
