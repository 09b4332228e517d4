"""The record of errors on publications that had no part in a fit: each left out in turn.

`python -m tools.calibration.held_out` times every case with what the fit found without the case's
publication, and writes held_out.json beside the measured points, which `cubecore validate
--held-out` sums up.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.calibration.fit_cases import (
    HALVES,
    IDENTIFYING,
    UNSEEN,
    FitCase,
    fit_cases,
    input_bits,
    operator_half,
    refitted,
    unseen_cases,
)

from cubecore.advice.intervals import Residual, interval_among, residuals
from cubecore.workflows.calibration.held_out import HELD_OUT, HeldOutCase
from cubecore.workflows.calibration.validation import MeasuredPair

Fits = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Values by architecture and publication left out; those of ``""`` are fitted on all."""


@dataclass(frozen=True, slots=True)
class LeftOutCase:
    """A case beside both predictions: of the fit on all, and of that without its publication.

    `inside`: the interval, made without its publication, holds the measured time.
    """

    one: FitCase
    fitted: MeasuredPair
    held: MeasuredPair
    inside: bool = False


def left_out_cases(fits: Fits, cases: Sequence[FitCase] | None = None) -> Iterator[LeftOutCase]:
    """Yield every case that is left out of a fit, or in none, with both predictions."""
    for one in (*fit_cases(), *unseen_cases()) if cases is None else cases:
        if one.case.group in IDENTIFYING:
            continue
        of_arch, source = fits[one.case.chip.arch], one.point.repository
        fitted = one.errors(of_arch[""])[0]
        held = one.errors(of_arch[source])[0] if source in of_arch else fitted
        if fitted is not None and held is not None:
            yield LeftOutCase(one, fitted, held, _holds(one, held))


def _holds(one: FitCase, held: MeasuredPair) -> bool:
    """Return whether the interval that is made without a case's publication holds it."""
    source, chip = one.point.repository, one.case.chip
    others = [each for each in residuals() if each.source != source]
    found = interval_among(
        others, held.predicted_us, chip.arch, one.case.group, input_bits(one), one.point.op
    )
    return found.holds(held.measured_us)


def record(fits: Fits, cases: Sequence[FitCase] | None = None) -> Iterator[HeldOutCase]:
    """Yield the line of each case, or of those that are given."""
    for case in left_out_cases(fits, cases):
        half = None
        if case.one.case.group in UNSEEN:
            name = HALVES[1 - operator_half(case.one.point.op)]
            pair = case.one.errors(fits[case.one.case.chip.arch][name])[0]
            half = None if pair is None else pair.error
        yield HeldOutCase(case.one.point.id, case.fitted.error, case.held.error, case.inside, half)


def residuals_of(fits: Fits) -> list[Residual]:
    """Return what intervals are made of: each left-out case's measured over predicted time."""
    return [
        Residual(
            case.one.point.repository,
            case.one.case.chip.arch,
            case.one.case.group,
            input_bits(case.one),
            float(f"{case.held.predicted_us:.4g}"),
            float(f"{-math.log1p(case.held.error):.4f}"),
            case.one.point.op,
        )
        for case in left_out_cases(fits)
    ]


def written(case: HeldOutCase) -> list[str | float | bool | None]:
    """Return a case's line: errors to a millionth."""
    errors = [None if e is None else round(e, 6) for e in (case.fitted, case.held, case.half)]
    return [case.id, *errors[:2], case.inside, errors[2]]


def main() -> None:
    """Write the record."""
    rows = [json.dumps(written(case)) for case in record(refitted())]
    HELD_OUT.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
