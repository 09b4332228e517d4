"""Numbers of fillings: one for each copy's location and first reader, in a byte."""

import numpy as np

from cubecore.isa.program.tree import Location
from cubecore.machine.memory.filling_table import (
    FIRST_FILLING,
    Filling,
    FillingReader,
    FillingTable,
)


def filling(line: int, behind: str = "a run of 4 B") -> Filling:
    return Filling("copy", behind, Location("k.cpp", line, "k"))


READER = FillingReader("vadds", "src", Location("k.cpp", 900, "k"))


def test_a_location_has_one_number_however_long_its_runs_are() -> None:
    table = FillingTable()
    numbers = [table.number(filling(7, f"a run of {size} B")) for size in range(1, 600)]
    assert numbers == [FIRST_FILLING] * 599
    assert (
        table[FIRST_FILLING].sentence == "filling that copy (k.cpp:7 (k)) put behind a run of 1 B"
    )
    assert table.number(filling(8)) == FIRST_FILLING + 1


def test_results_of_filling_keep_their_first_reader() -> None:
    table = FillingTable()
    raw = table.number(filling(7))
    marks = np.array([0, 1, raw, 0], np.uint8)
    first = table.read_by(marks, READER)
    assert (first > 1).tolist() == [False, False, True, False]
    assert table[int(first[2])].reader == READER
    other = FillingReader("vexp", "src", Location("k.cpp", 901, "k"))
    assert table.read_by(first, other).tolist() == first.tolist()
    assert table.read_by(marks, other)[2] not in first


def test_more_than_a_byte_holds_share_a_number_read_and_one_unread() -> None:
    table = FillingTable()
    raw = [table.number(filling(line)) for line in range(400)]
    assert len(set(raw)) == 254 - FIRST_FILLING + 1
    assert (raw[-1], table[raw[-1]].reader) == (254, None)
    read = table.read_by(np.array(raw, np.uint8), READER)
    assert set(read.tolist()) == {255}
    assert table[255].reader == READER
