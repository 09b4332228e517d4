"""Timed products for the report's and the trace's tests."""

from dataclasses import replace
from functools import cache
from typing import Any

from cubecore.workflows.time import Timed, time

SMALL = {"m": 64, "n": 64, "k": 64, "cores": 1}
RAGGED = {"m": 1000, "n": 77, "k": 3000, "a": "int8"}
BIASED = {"m": 512, "n": 640, "k": 2048, "bias": "float32"}
LARGE = {"m": 8192, "n": 8192, "k": 8192}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'\"\u2028"


@cache
def _timed(record: int, problem: tuple[tuple[str, Any], ...]) -> Timed:
    return time(record=record, **dict(problem))


def timed(record: int = 20_000, **problem: Any) -> Timed:
    """Return a product timed with segments; equal requests are timed once."""
    return _timed(record, tuple(problem.items()))


def hostile(of: Timed) -> Timed:
    """Return the same with markup for the names of programs, instructions and stalls."""
    line = of.timeline
    groups = tuple(
        replace(
            group,
            program=HOSTILE,
            segments=tuple(replace(segment, name=HOSTILE) for segment in group.segments),
        )
        for group in line.groups
    )
    stalls = tuple(replace(stall, reason=HOSTILE) for stall in line.stalls)
    return replace(of, timeline=replace(line, groups=groups, stalls=stalls, limited_by=HOSTILE))
