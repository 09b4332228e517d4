"""Errors on publications that had no part in the fit: each left out in turn.

What `python -m tools.refit` found without a publication is a file beside the points; here every
case of that publication is timed with those values.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from cubecore.chips import Chip
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError
from cubecore.lazy_dataclass import dataclass
from cubecore.package_data import packaged
from cubecore.workflows.calibration.cases import CalibrationCase
from cubecore.workflows.calibration.intervals import Residual, interval_among, residuals
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.validate import beside, published_cases
from cubecore.workflows.calibration.validation import Errors, HeldOut, MeasuredPair, Validation

if TYPE_CHECKING:
    from cubecore.aliases import Json

REFITTED = packaged("workflows", "calibration", "measured", "refitted.json")
"""Values by architecture and publication left out; those of ``""`` are fitted on all."""
FITTED = ("known", "library", "small", "vector", "vector library", "dma", "bench", "launch")
"""Groups of cases that a fit is made on: their kernels are known, or stand for known ones."""
IDENTIFYING = ("dma", "bench", "launch")
"""Groups that are never left out: loads, micro-benchmarks and launches, made to find constants."""
UNSEEN = ("operator",)
"""Groups that are in no fit."""
HALVES = ("half of the operators", "the other half of the operators")
"""The names of fits that half of the operators have a part in."""
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


def held_out(validation: Validation) -> tuple[HeldOut, ...]:
    """Return the errors left out, by publication and by kind of kernel and chip.

    `validation` is that of the published points: its errors are those of the chip files. Loads,
    micro-benchmarks and launches are in every fit; operators are in none.
    """
    cases = left_out_cases(refitted())
    shipped = {one.point.id: one.wall for one in validation.timed}
    rows: dict[tuple[str, str, str], list[LeftOutCase]] = {}
    for case in cases:
        chip = case.one.case.chip
        rows.setdefault((chip.arch, case.one.point.repository, ""), []).append(case)
    kinds: dict[tuple[str, str, str], list[LeftOutCase]] = {}
    for case in (*cases, *_of_other_half(cases)):
        chip, group = case.one.case.chip, _kind(case)
        kinds.setdefault(("", group, ""), []).append(case)
        kinds.setdefault(("", group, chip.name), []).append(case)
    return tuple(
        HeldOut(
            arch,
            source,
            chip_name,
            Errors.of([shipped.get(case.one.point.id) for case in of_row]),
            Errors.of([case.fitted for case in of_row]),
            Errors.of([case.held for case in of_row]),
            sum(case.inside for case in of_row),
        )
        for table in (rows, kinds)
        for (arch, source, chip_name), of_row in sorted(table.items())
    )


def _kind(case: "LeftOutCase") -> str:
    return OF_OTHER_HALF if case.of_half else _KIND[case.one.case.group]


OF_OTHER_HALF = "operators, fitted on the other half"
_KIND = {
    "known": "products, tiling published",
    "library": "products of libraries",
    "small": "products of libraries",
    "vector": "element-wise kernels, code published",
    "vector library": "element-wise kernels of libraries",
    "operator": "operators, in no fit",
}


@dataclass(frozen=True, slots=True)
class LeftOutCase:
    """A case beside both predictions: of the fit on all, and of that without its publication.

    `inside`: the interval, made without its publication, holds the measured time. `of_half`: an
    operator, and `held` is of the fit that the other half of the operators have a part in.
    """

    one: FitCase
    fitted: MeasuredPair
    held: MeasuredPair
    inside: bool = False
    of_half: bool = False


def _of_other_half(cases: Sequence[LeftOutCase]) -> Iterator[LeftOutCase]:
    """Return the operators with the predictions of the fits on the other half of them."""
    fits = refitted()
    for case in cases:
        if case.one.case.group in UNSEEN:
            half = HALVES[1 - operator_half(case.one.point.op)]
            held = case.one.errors(fits[case.one.case.chip.arch][half])[0]
            if held is not None:
                yield replace(case, held=held, of_half=True)


def left_out_cases(fits: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[LeftOutCase]:
    """Return every case that is left out of a fit, or in none, with both predictions."""
    found = []
    for one in (*fit_cases(), *unseen_cases()):
        if one.case.group in IDENTIFYING:
            continue
        of_arch, source = fits[one.case.chip.arch], one.point.repository
        fitted = one.errors(of_arch[""])[0]
        held = one.errors(of_arch.get(source, of_arch[""]))[0]
        if fitted is not None and held is not None:
            found.append(LeftOutCase(one, fitted, held, _holds(one, held)))
    return found


@cache
def unseen_cases() -> tuple[FitCase, ...]:
    """Return the published points that no fit is made on, but those on half of the operators."""
    return tuple(
        FitCase(point, case)
        for point, case in published_cases()
        if not isinstance(case, str) and case.group in UNSEEN
    )


def _holds(one: FitCase, held: MeasuredPair) -> bool:
    """Return whether the interval that is made without a case's publication holds it."""
    source, chip = one.point.repository, one.case.chip
    others = [each for each in residuals() if each.source != source]
    found = interval_among(others, held.predicted_us, chip.arch, one.case.group, input_bits(one))
    return found.holds(held.measured_us)


def input_bits(one: FitCase) -> int:
    """Return the bits of an element of a case's inputs, 16 where it is not stated."""
    name = one.point.types[0].split("(", maxsplit=1)[0].split("/", maxsplit=1)[0].strip(" ?")
    try:
        return element_type("float8_e4m3fn" if name == "fp8" else name).bits
    except CubecoreError:
        return 16


def residuals_of(fits: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Residual]:
    """Return what intervals are made of: each left-out case's measured over predicted time."""
    return [
        Residual(
            case.one.point.repository,
            case.one.case.chip.arch,
            case.one.case.group,
            input_bits(case.one),
            float(f"{case.held.predicted_us:.4g}"),
            float(f"{-math.log1p(case.held.error):.4f}"),
        )
        for case in left_out_cases(fits)
    ]
