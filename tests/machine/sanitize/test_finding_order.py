"""Findings are listed as they were made, but races come before the flags that they are about."""

import numpy as np

from cubecore import kernel
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding

CORE, OTHER = "core 0 AIV0", "core 1 AIV0"


def flag(kind, line, pipes, core=CORE):
    where = Location("kernel.py", line, "f")
    return SanitizerFinding(kind, "text", "set_flag", where, core, pipes=pipes)


def race(kind, line, pipes, core=CORE, earlier_core=CORE):
    where = Location("kernel.py", line, "f")
    accesses = tuple(
        FindingAccess("reads", "vadd", "dst", pipe, "UB", 0, 32, of, where)
        for pipe, of in zip(pipes, (earlier_core, core), strict=True)
    )
    return SanitizerFinding(kind, "text", "vadd", where, core, accesses=accesses)


def order(*findings):
    log = FindingLog()
    for finding in findings:
        log.add(finding)
    return [f.location.line for f in log]


def test_a_race_comes_before_the_flags_between_its_pipes():
    assert order(
        flag("flag-doubled", 0, ("MTE2", "V")),
        flag("flag-late", 1, None),
        flag("flag-unmet", 2, ("V", "MTE2")),
        race("race-raw", 3, ("MTE2", "V")),
        flag("flag-leaked", 4, ("MTE2", "V")),
        race("race-war", 5, ("V", "MTE2")),
    ) == [3, 5, 0, 2, 4, 1]


def test_a_flag_keeps_its_place_before_races_of_other_pipes_and_cores():
    pipes = "MTE2", "V"
    assert order(
        flag("flag-unmet", 0, pipes),
        race("race-raw", 1, ("V", "MTE3")),
        race("race-waw", 2, ("V", "V")),
        race("race-raw", 3, pipes, core=OTHER, earlier_core=OTHER),
        race("race-raw", 4, pipes, earlier_core=OTHER),
    ) == [0, 1, 2, 3, 4]


def test_a_wait_that_nothing_meets_comes_before_waits_that_are_late():
    pipes = "MTE2", "V"
    assert order(
        flag("flag-late", 0, pipes),
        flag("flag-late", 1, ("V", "MTE3"), core=OTHER),
        flag("flag-late", 2, ("V", "MTE3")),
        flag("flag-unmet", 3, pipes),
    ) == [1, 3, 0, 2]


def ids(found):
    return [finding.id for finding in found.findings]


def doubled(drop, second=(0, 0)):
    """Return what a kernel says that loads two tiles and adds each, without one flag."""

    @kernel
    def adds(core, x):
        tiles = [core.ubuf("float", 64) for _ in "ab"]
        for number, event in zip((0, 1), second, strict=True):
            core.asc_copy_gm2ub(tiles[number], x, 256)
            core.asc_sync_notify("PIPE_MTE2", "PIPE_V", number)
            if number != drop:
                core.asc_sync_wait("PIPE_MTE2", "PIPE_V", number if drop is not None else event)
            core.asc_add(tiles[number], tiles[number], tiles[number], 64)

    return ids(adds[1](np.zeros(64, np.float32)))


def test_the_first_finding_of_a_missing_wait_is_the_race():
    assert doubled(None, (0, 1)) == []
    assert doubled(1) == ["race-raw", "race-raw", "race-waw", "flag-leaked"]


def test_the_first_finding_of_a_wait_that_nothing_meets_is_the_wait():
    assert doubled(None, (0, 2)) == ["flag-unmet"]
