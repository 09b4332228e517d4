"""The catalogue against the fact sheet's table, row by row."""

import pytest

from cubecore.chips import chip, chip_names
from data_files import data

ROWS = data("chip_rows")
USER_UB = {"3510", "3002"}
"""Architectures whose configuration states the UB that a kernel may use, not the physical one."""
MEASURED_L1_TO_L0 = {"2201": (256, 128)}
"""Where documents and measurements contradict the configuration (the sheet's conflict note)."""


def number(text: str) -> int | None:
    return None if text in {"-", ""} else int(text)


def test_every_row_is_a_chip_and_every_chip_but_ascend310_a_row():
    assert sorted([row[0] for row in ROWS] + ["Ascend310"]) == sorted(chip_names())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_column_agrees(row):
    name, arch, aic, aiv, mhz, l2, memory, l0, l1, ub, ddr, l2_rw, *paths, vector = row
    c = chip(name)
    assert c.arch == arch
    assert (c.aic_count, c.aiv_count) == (int(aic), int(aiv))
    assert c.frequency_hz == (None if mhz == "-" else int(mhz) * 10**6)
    assert c.l2_bytes == (int(l2) * 2**20 or None)
    if memory == "-":
        assert c.gm_bytes is None
    else:
        digits = len(memory.partition(".")[2])
        assert round(c.gm_bytes / 2**30, digits) == float(memory)
    assert [c.l0a_bytes, c.l0b_bytes, c.l0c_bytes] == [int(kib) * 1024 for kib in l0.split("/")]
    assert c.l1_bytes == int(l1) * 1024
    assert (c.ub_user_bytes if arch in USER_UB else c.ub_bytes) == int(ub) * 1024
    assert c.ddr_bytes_per_cycle == number(ddr)
    assert [c.l2_read_bytes_per_cycle, c.l2_write_bytes_per_cycle] == [
        number(rate) for rate in l2_rw.split("/")
    ]
    l0a, l0b = MEASURED_L1_TO_L0.get(arch, (number(paths[0]), number(paths[1])))
    assert (c.l1_to_l0a_bytes_per_cycle, c.l1_to_l0b_bytes_per_cycle) == (l0a, l0b)
    assert [
        c.l1_to_ub_bytes_per_cycle,
        c.l0c_to_ub_bytes_per_cycle,
        c.ub_to_l2_bytes_per_cycle,
        c.ub_to_ddr_bytes_per_cycle,
        c.ub_to_l1_bytes_per_cycle,
    ] == [number(rate) for rate in paths[2:]]
    assert [
        c.aiv_ddr_bytes_per_cycle,
        c.aiv_l2_bytes_per_cycle,
        c.aiv_ub_to_l2_bytes_per_cycle,
        c.aiv_ub_to_ddr_bytes_per_cycle,
    ] == [number(rate) for rate in vector.split("/")]
