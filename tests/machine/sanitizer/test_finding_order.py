"""Findings are listed as they were made, those that explain others first."""

from cubecore.isa.program.tree import Location
from cubecore.machine.sanitizer.findings import CONSEQUENCES, KINDS, FindingLog, SanitizerFinding


def found(kind: str, line: int) -> SanitizerFinding:
    return SanitizerFinding(kind, "text", "vadd", Location("kernel.py", line, "f"), "core 0 AIV0")


def test_a_race_comes_before_the_flags_that_it_is_about():
    log = FindingLog()
    made = ["flag-doubled", "uninitialised", "flag-unmet", "race-raw", "flag-leaked", "race-war"]
    for line, kind in enumerate(made):
        log.add(found(kind, line))
    assert [(f.id, f.location.line) for f in log] == [
        ("uninitialised", 1),
        ("race-raw", 3),
        ("race-war", 5),
        ("flag-doubled", 0),
        ("flag-unmet", 2),
        ("flag-leaked", 4),
    ]


def test_consequences_are_kinds_of_synccheck():
    assert {KINDS[kind].check for kind in CONSEQUENCES} == {"synccheck"}
