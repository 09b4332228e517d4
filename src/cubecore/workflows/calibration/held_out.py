"""Errors on publications that had no part in the fit: each left out in turn.

What `python -m tools.refit` found without a publication is a file beside the points; here every
case of that publication is timed with those values.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from cubecore.chips import Chip
from cubecore.chips import chip as named_chip
from cubecore.lazy_dataclass import dataclass
from cubecore.package_data import packaged
from cubecore.workflows.calibration.cases import CalibrationCase
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.validate import beside, published_cases
from cubecore.workflows.calibration.validation import Errors, HeldOut, MeasuredPair, Validation

if TYPE_CHECKING:
    from cubecore.aliases import Json

REFITTED = packaged("workflows", "calibration", "measured", "refitted.json")
"""Values by architecture and publication left out; those of ``""`` are fitted on all."""
FITTED = ("known", "vector", "vector library", "dma", "bench", "launch")
"""Groups of cases that a fit is made on: their kernels are known, or stand for known ones."""
WHOLE_TABLE = "*"
"""After a table's name: all of the table, by the value of its first key."""


def with_values(chip: Chip, values: Mapping[str, float], *, launch_only: bool = False) -> Chip:
    """Return a chip with other values: ``field``, ``table.key``, or ``table.*`` to scale a table.

    Whole numbers are rounded. An empty kernel takes the launch's time only (`launch_only`).
    """
    values_by_field: Json = {}
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
    ) -> tuple[MeasuredPair | None, tuple[MeasuredPair, ...]]:
        """Return the whole and the pipes, measured beside predicted with `values`."""
        comparison = beside(self.point, self.case, self.chip(values))
        return comparison.wall, tuple(comparison.pipes.values())

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


def refitted() -> dict[str, dict[str, dict[str, float]]]:
    """Return the values of every fit: by architecture, then by the publication left out."""
    constants: dict[str, dict[str, dict[str, float]]] = json.loads(REFITTED.read_text("utf-8"))
    return constants


def held_out(validation: Validation) -> tuple[HeldOut, ...]:
    """Return the errors on each publication that a fit was made without.

    `validation` is that of the published points: its errors are those of the chip files.
    """
    return tuple(
        _held_out(arch, source, fits, validation)
        for arch, fits in sorted(refitted().items())
        for source in sorted(fits)
        if source
    )


def _held_out(
    arch: str, source: str, fits: Mapping[str, Mapping[str, float]], validation: Validation
) -> HeldOut:
    shipped = [
        one.wall
        for one in validation.timed
        if one.group in FITTED
        and one.point.repository == source
        and named_chip(one.chip).arch == arch
    ]
    cases = [
        one for one in fit_cases() if one.case.chip.arch == arch and one.point.repository == source
    ]

    def errors(values: Mapping[str, float]) -> Errors:
        return Errors.of([one.errors(values)[0] for one in cases])

    return HeldOut(arch, source, Errors.of(shipped), errors(fits[""]), errors(fits[source]))
