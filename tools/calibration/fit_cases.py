"""The cases that fits are made on, each timed with any values of the constants."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cubecore.chips import Chip
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError
from cubecore.workflows.calibration.cases import CalibrationCase
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.validate import beside, published_cases
from cubecore.workflows.calibration.validation import MeasuredPair

REFITTED = Path(__file__).with_name("refitted.json")
"""Values by architecture and publication left out; those of ``""`` are fitted on all."""
FITTED = ("known", "library", "small", "vector", "vector library", "dma", "bench", "launch")
"""Groups of cases that a fit is made on: their kernels are known, or stand for known ones."""
IDENTIFYING = ("dma", "bench", "launch")
"""Groups that are never left out: loads, micro-benchmarks and launches, made to find constants."""
UNSEEN = ("operator", "attention", "attention library")
"""Groups that are in no fit."""
HALVES = ("half of the operators", "the other half of the operators")
"""The names of fits that half of the operators have a part in."""
WHOLE_TABLE = "*"
"""After a table's name: all of the table, by the value of its first key."""


def with_values(chip: Chip, values: Mapping[str, float], *, launch_only: bool = False) -> Chip:
    """Return a chip with other values: ``field``, ``table.key``, or ``table.*`` to scale a table.

    Whole numbers are rounded. An empty kernel takes the launch's time only (`launch_only`).
    """
    values_by_field: dict[str, Any] = {}
    for name, value in values.items():
        field, _, key = name.partition(".")
        old = values_by_field.get(field, getattr(chip, field))
        if launch_only and field != "launch_cycles":
            continue
        if key == WHOLE_TABLE:
            first = next(iter(old.values()))
            values_by_field[field] = {k: v * value / first for k, v in old.items()}
        elif key:
            values_by_field[field] = {**old, key: _as(old[key], value)}
        else:
            values_by_field[field] = _as(old, value)
    return replace(chip, **values_by_field)


def _as(old: float, value: float) -> float:
    return max(round(value), 1) if isinstance(old, int) else value


@dataclass(frozen=True, slots=True)
class FitCase:
    """A point that a fit is made on, and its case."""

    point: Point
    case: CalibrationCase

    def errors(
        self, values: Mapping[str, float]
    ) -> tuple[MeasuredPair | None, Mapping[str, MeasuredPair]]:
        """Return the whole and the pipes, measured beside predicted with `values`."""
        comparison = beside(self.point, self.case, self.chip(values))
        return comparison.wall, comparison.pipes

    def planned(self, values: Mapping[str, float]) -> "FitCase":
        """Return the case with our planner's tiling for `values`, where it has one of ours."""
        if self.case.planned_on is None:
            return self
        case = self.case.planned_on(self.chip(values))
        return replace(self, case=replace(case, launch=cache(case.launch)))

    def chip(self, values: Mapping[str, float]) -> Chip:
        """Return the case's chip with `values`."""
        empty = self.case.group == "launch"
        return with_values(self.case.chip, values, launch_only=empty)


@cache
def fit_cases() -> tuple[FitCase, ...]:
    """Return the published points that fits are made on."""
    return tuple(
        FitCase(point, case)
        for point, case in published_cases()
        if not isinstance(case, str) and case.group in FITTED
    )


def operator_half(op: str) -> int:
    """Return in which half of the operators one is: they alternate by name."""
    ops = sorted({one.point.op for one in unseen_cases()})
    return ops.index(op) % 2


def refitted() -> dict[str, dict[str, dict[str, float]]]:
    """Return the values of every fit: by architecture, then by the publication left out."""
    constants: dict[str, dict[str, dict[str, float]]] = json.loads(REFITTED.read_text("utf-8"))
    return constants


@cache
def unseen_cases() -> tuple[FitCase, ...]:
    """Return the published points that no fit is made on, but those on half of the operators."""
    return tuple(
        FitCase(point, case)
        for point, case in published_cases()
        if not isinstance(case, str) and case.group in UNSEEN
    )


def input_bits(one: FitCase) -> int:
    """Return the bits of an element of a case's inputs, 16 where it is not stated."""
    name = one.point.types[0].split("(", maxsplit=1)[0].split("/", maxsplit=1)[0].strip(" ?")
    try:
        return element_type("float8_e4m3fn" if name == "fp8" else name).bits
    except CubecoreError:
        return 16
