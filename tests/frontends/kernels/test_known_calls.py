"""Calls of vector functions that were met before: their values hang on all that the body reads."""

import numpy as np
import pytest

from cubecore import kernel, vector_function

CHIP = "Ascend950PR_9589"
LANES = 64
FACTOR = 2.0
FACTORS = [2.0]
BODIES: list[float] = []


def filled_twice(fill, values=(2.0, 3.0)):
    """Return what a launch stores that fills a register's lanes with each of some values."""

    @kernel(outputs="z", chip=CHIP, types={"z": "float"})
    def launch(core, z):
        for number, value in enumerate(values):
            row = core.ubuf("float", LANES)
            fill(core, row, value)
            core.asc_sync_pipe("PIPE_ALL")
            core.asc_copy_ub2gm_sync(z + number * LANES, row, 4 * LANES)

    z = np.empty(LANES * len(values), np.float32)
    assert launch[1](z).clean
    return z[::LANES].tolist()


def store(core, row, value):
    lanes, mask = core.vector_float(), core.asc_create_mask_b32("PAT_ALL")
    core.asc_duplicate_scalar(lanes, value, mask)
    core.asc_storealign(row, lanes, mask)


@vector_function
def plain(core, row, value):
    store(core, row, value)


@vector_function
def by_global(core, row, value):
    store(core, row, value * FACTOR)


@vector_function
def by_list(core, row, value):
    store(core, row, value * FACTORS[0])


@vector_function
def counted(core, row, value):
    BODIES.append(value)
    store(core, row, value)


@vector_function
def by_default(core, row, value, more=0.5):
    store(core, row, value + more)


def test_other_arguments_are_another_call():
    assert filled_twice(plain) == [2, 3]
    assert filled_twice(plain, (0.0, -0.0, 1.5, 1.0)) == [0, 0, 1.5, 1]
    assert np.signbit(filled_twice(plain, (0.0, -0.0))).tolist() == [False, True]


@pytest.mark.parametrize("function", [by_global, by_list])
def test_a_body_that_reads_a_global_follows_it(function, monkeypatch):
    assert filled_twice(function) == [4, 6]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    FACTORS.append(FACTORS.pop() + 3)
    try:
        assert filled_twice(function) == [10, 15]
    finally:
        FACTORS.append(FACTORS.pop() - 3)


def test_a_body_that_leaves_something_behind_runs_each_time():
    BODIES.clear()
    filled_twice(counted)
    filled_twice(counted)
    assert BODIES == [2, 3, 2, 3]


def test_a_body_that_reads_a_variable_around_it_follows_it():
    def of(more):
        @vector_function
        def around(core, row, value):
            store(core, row, value + more)

        return around

    assert filled_twice(of(1.0)) == [3, 4]
    assert filled_twice(of(2.0)) == [4, 5]


def test_a_default_has_its_part():
    assert filled_twice(by_default) == [2.5, 3.5]


def test_a_finding_is_there_each_time():
    @vector_function
    def beyond(core, row, value):
        store(core, row + 8, value)

    @kernel(outputs="z", chip=CHIP, types={"z": "float"})
    def launch(core, z):
        row = core.ubuf("float", LANES)
        for _ in range(2):
            beyond(core, row, 1.0)
        core.asc_sync_pipe("PIPE_ALL")
        core.asc_copy_ub2gm_sync(z, row, 4 * LANES)

    z = np.empty(LANES, np.float32)
    for _ in range(2):
        kinds = {finding.id for finding in launch[1](z).findings}
        assert "out-of-bounds" in kinds
