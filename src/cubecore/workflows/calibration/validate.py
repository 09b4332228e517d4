"""validate: the timing model against published measurements, case by case."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cubecore.arrays import collecting_seldom
from cubecore.chips import Chip
from cubecore.chips import chip as named_chip
from cubecore.errors import CubecoreError, DeadlockError, unable
from cubecore.kernels.elementwise import KIND
from cubecore.timing.launch import time_launch
from cubecore.timing.records import Timeline
from cubecore.workflows.calibration.cases import CalibrationCase, Unmapped, because
from cubecore.workflows.calibration.matmul_cases import matmul_case
from cubecore.workflows.calibration.measured_points import Point, Unreadable, published, read_points
from cubecore.workflows.calibration.msprof import read_profile
from cubecore.workflows.calibration.rates import rated_us
from cubecore.workflows.calibration.validation import MeasuredPair, Validated, Validation
from cubecore.workflows.calibration.vector_cases import (
    bench_case,
    dma_case,
    head_case,
    launch_case,
    vector_case,
)
from cubecore.workflows.executors import in_order, require_executor

if TYPE_CHECKING:
    from concurrent.futures import Executor

_CASES: Mapping[str, Callable[[Point], CalibrationCase]] = {
    "matmul": matmul_case,
    "matmul+vector": matmul_case,
    "grouped_matmul": matmul_case,
    "grouped_matmul+vector": matmul_case,
    "vector": vector_case,
    "flash_attention": head_case,
    "vector_ubench": bench_case,
    "dma_read": dma_case,
    "launch": launch_case,
}
HOST_LOOP_US = 30
"""The time of a launch from Python on the host: shorter kernels in a loop wait for it."""
_NO_KERNEL = {
    "conv": "convolutions are not in the kernels",
}
SMALL_US = 15.0
"""Kernels with a tiling of our own below this are counted apart: their start decides."""
_TICK_US = 0.02
"""The system counter of the micro-benchmarks ticks at 50 MHz (GetSystemCycle, on A2)."""


def validate(
    points: str | Path | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    chip: str | None = None,
    executor: "Executor | None" = None,
) -> Validation:
    """Return predictions of the timing model beside measurements.

    Parameters
    ----------
    points : str or Path or None
        A file of one JSON object a line, or a profiler's table of operators (.csv); the published
        points that come with cubecore unless given. A line that is no point is listed with its
        reason, a point that cannot be timed says why.
    settings : mapping or None
        Fields of every chip to replace, as texts: a what-if chip.
    chip : str or None
        Full SoC name that a profiler's table is of.
    executor : Executor or None
        A `concurrent.futures.Executor` that times the points, as for `plan_many`.

    Returns
    -------
    Validation
        Every case with both times, and errors by group.

    Raises
    ------
    RequestError
        If the file cannot be read, no chip takes the settings, or a profiler's table comes without
        `chip`.

    Examples
    --------
    >>> cubecore.validate("points.jsonl")  # doctest: +SKIP
    """
    is_table = points is not None and Path(points).suffix == ".csv"
    if chip is not None and not is_table:
        raise unable("--chip", "--chip applies to a profiler's table; other points state theirs")
    unreadable: list[Unreadable] = []
    read: Sequence[Point]
    if points is None:
        read = published()
    elif is_table:
        if chip is None:
            raise unable("--chip", "a profiler's table needs --chip")
        read, unreadable = read_profile(Path(points), named_chip(chip).name)
    else:
        read, unreadable = read_points(Path(points))
    changed = dict(settings or {})
    if executor is not None:
        require_executor(executor)
        cases = list(in_order(executor, _timed_point, ((point, changed) for point in read)))
    else:
        with collecting_seldom():
            mapped = published_cases() if points is None else ((p, _mapped(p)) for p in read)
            cases = [_validated(point, case, changed) for point, case in mapped]
    return Validation(tuple(cases), tuple(unreadable))


def validation_of(points: Sequence[Point]) -> Validation:
    """Return the validation on some points."""
    return Validation(tuple(_timed_point(point, {}) for point in points), ())


def _timed_point(point: Point, settings: Mapping[str, str]) -> Validated:
    """Return a point's case beside its measurement; a task of its own."""
    return _validated(point, _mapped(point), settings)


@cache
def published_cases() -> tuple[tuple[Point, CalibrationCase | str], ...]:
    """Return the published points with their cases or why they have none; launches are cached."""
    return tuple((point, _mapped(point)) for point in published())


def _mapped(point: Point) -> CalibrationCase | str:
    try:
        case = case_of(point)
    except Unmapped as reason:
        return str(reason)
    return replace(case, launch=cache(case.launch))


@cache
def published_validation() -> Validation:
    """Return the validation on the points that come with cubecore."""
    return validate()


def _validated(point: Point, case: CalibrationCase | str, settings: Mapping[str, str]) -> Validated:
    if isinstance(case, str):
        return Validated(point, point.chip, point.kind, skipped=case)
    return beside(point, case, case.chip.what_if(settings))


def beside(point: Point, case: CalibrationCase, chip: Chip) -> Validated:
    """Return what a point measured beside what its case takes on `chip`."""
    try:
        timeline = _timed(case, chip)
        more_us = math.fsum(_timed(other, chip).us for other in case.others)
    except Unmapped as reason:
        return Validated(point, chip.name, point.kind, skipped=str(reason))
    hertz = chip.require("frequency_hz", "timing")
    pipes = {
        name: MeasuredPair(us, timeline.pipes[name] * 1e6 / hertz)
        for name, us in point.pipes_us.items()
        if timeline.pipes.get(name) and not case.others
    }
    wall, assumed = _wall(point, timeline.us + more_us, len(case.others) + 1, chip)
    if wall is None and not pipes:
        nothing = "no time of the launch or its pipes is stated"
        return Validated(point, chip.name, point.kind, skipped=nothing)
    group = "partial" if point.left_out else "doubted" if point.doubt else case.group
    if group == "library" and wall is not None and wall.measured_us < SMALL_US:
        group = "small"
    others = (text for other in case.others for text in other.assumed)
    left_out = (f"{point.left_out}: left out",) if point.left_out else ()
    doubts = (point.doubt,) if point.doubt else ()
    assumed = (*point.assumed, *case.assumed, *others, *left_out, *doubts, *assumed)
    assumed = tuple(dict.fromkeys(assumed))
    return Validated(point, chip.name, group, wall, pipes, case.tiling_known, assumed)


def case_of(point: Point) -> CalibrationCase:
    """Return the case that a point describes.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    if point.untimed:
        raise Unmapped(point.untimed)
    # Kernels of one time share all that the point says but what each of them is.
    if point.kernels:
        first, *rest = (case_of(kernel) for kernel in point.kernels)
        return replace(first, others=tuple(rest), planned_on=None)
    if point.kind in _NO_KERNEL:
        raise Unmapped(_NO_KERNEL[point.kind])
    if point.kind not in _CASES:
        raise Unmapped(f"kind must be one of {', '.join(_CASES)}, got {point.kind!r}")
    rated_us(point)
    if point.launch == "looped" and (point.wall_us or math.inf) < HOST_LOOP_US:
        raise Unmapped(f"launch looped times the host below {HOST_LOOP_US} us a launch")
    try:
        return _CASES[point.kind](point)
    except CubecoreError as error:
        raise because(error) from None
    except KeyError as error:
        raise Unmapped(f"tiling.{error.args[0]} must be stated for kind {point.kind}") from None
    except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        # A tiling is free text and numbers: what does not fit its kind is the point's.
        raise Unmapped(f"the tiling must be stated as its kind has it, got {error!r}") from None


def _timed(case: CalibrationCase, chip: Chip) -> Timeline:
    try:
        return time_launch(case.launch(), chip, stand_in=True)
    except (CubecoreError, DeadlockError) as error:
        raise because(error) from None
    except (KeyError, ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise Unmapped("the tiling must give the cores work that can be done") from None


def _wall(
    point: Point, us: float, launches: int, chip: Chip
) -> tuple[MeasuredPair | None, tuple[str, ...]]:
    """Return the launches' time beside the prediction of what was measured, and what that is."""
    hertz = chip.require("frequency_hz", "timing")
    launch_us = launches * chip.require("launch_cycles", "timing") * 1e6 / hertz
    gap_us = launches * (chip.loop_gap_cycles or 0) * 1e6 / hertz
    if point.launch == "looped" and (measured := point.wall_us or rated_us(point)) is not None:
        return MeasuredPair(measured, us + gap_us), ("a turn of the host's loop",)
    if point.wall_us is not None:
        if point.launch == "not counted":
            alone = "a kernel's time, without its launch"
            return MeasuredPair(point.wall_us, us - launch_us), (alone,)
        return MeasuredPair(point.wall_us, us), ()
    if point.core_us is not None:
        text = "the cores' time, without the launch"
        return MeasuredPair(point.core_us, us - launch_us), (text,)
    if (measured := rated_us(point)) is not None:
        return MeasuredPair(measured, us), ("the time of the rate",)
    if ticks := point.measured.get("cycles_1000_add"):
        still = chip.require("start_cycles", "timing")
        still = (chip.short_start_cycles or {}).get(KIND, still)
        still_us = still * 1e6 / hertz
        return MeasuredPair(ticks * _TICK_US, us - launch_us - still_us), ()
    return None, ()
