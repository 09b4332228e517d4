"""Remarks of an instruction on itself: findings that its template alone decides."""

from dataclasses import dataclass
from typing import Protocol


class Line(Protocol):
    """A line of the author's file: a location, as far as an instruction needs to know."""

    @property
    def file(self) -> str:
        """The file's name."""
        ...

    @property
    def line(self) -> int:
        """The line's number, from 1."""
        ...


@dataclass(frozen=True, slots=True)
class RemarkedAccess:
    """An access that a remark names: bytes [start, end) from the first operand's address on."""

    how: str
    name: str
    start: int
    end: int
    location: Line


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding of a kind, about a line inside of the instruction, or about it as a whole.

    `subject` tells apart two remarks of a kind at one line. An instruction that one of its remarks
    `stops` is not executed.
    """

    kind: str
    message: str
    subject: str = ""
    location: Line | None = None
    accesses: tuple[RemarkedAccess, ...] = ()
    stops: bool = False
