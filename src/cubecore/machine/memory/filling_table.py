"""Filling: bytes that a copy writes beyond the data that it was asked for.

Such a byte has a mark above 1 in its initialised map: the filling's number in a table. Copies move
marks as they move bytes. Results that a vector instruction computes of filling are numbered as
well, with their reader. Everything else that is written is marked 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.program.tree import Location

Marks = NDArray[np.uint8]
FIRST_FILLING = 2
"""Marks from here on are those of filling; 1 is all else that was written."""
_SHARED = {False: 254, True: 255}
"""The numbers that fillings share, read or not, of which there are too many for a byte."""


class FillingReader(NamedTuple):
    """The instruction that read filling first, by which of its operands, and where it stands."""

    instruction: str
    operand: str
    where: Location


class Filling(NamedTuple):
    """The copy that filled bytes in, behind which data, and the first operand that read them.

    `defined`: they have a value that a product may take for zeros.
    """

    instruction: str
    behind: str
    where: Location
    reader: FillingReader | None = None
    defined: bool = True

    @property
    def sentence(self) -> str:
        """The bytes in words."""
        return f"filling that {self.instruction} ({self.where}) put behind {self.behind}"


class FillingTable:
    """The numbers of fillings, the same for all cores: one for each location and first reader."""

    def __init__(self) -> None:
        self._numbers: dict[Filling, int] = {}
        self._fillings: dict[int, Filling] = {}

    def number(self, filling: Filling) -> int:
        """Return a filling's number; of one location the first is named."""
        key = filling._replace(behind="")
        number = self._numbers.get(key)
        if number is None:
            number = FIRST_FILLING + len(self._numbers)
            if number >= _SHARED[False]:
                number = _SHARED[filling.reader is not None]
            self._numbers[key] = number
            self._fillings.setdefault(number, filling)
        return number

    def __getitem__(self, number: int) -> Filling:
        return self._fillings[number]

    def read_by(self, marks: Marks, reader: FillingReader) -> Marks:
        """Return the marks of what an operand makes of marked elements."""
        table = np.zeros(256, np.uint8)
        for number in np.unique(marks[marks >= FIRST_FILLING]).tolist():
            filling = self[number]
            table[number] = self.number(
                filling if filling.reader else filling._replace(reader=reader)
            )
        return np.asarray(table[marks])
