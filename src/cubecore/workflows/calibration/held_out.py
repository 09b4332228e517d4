"""Errors on publications that had no part in the fit: each held out in turn.

`python -m tools.calibration.held_out` times every published case with what the fit found without
its publication; its record lies beside the points and is summed up here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from cubecore.chips import chip
from cubecore.package_data import packaged
from cubecore.workflows.calibration.validation import Errors, HeldOut, Validated, Validation

HELD_OUT = packaged("workflows", "calibration", "measured", "held_out.json")
"""The record: what `HeldOutCase` holds, one list each."""
OF_OTHER_HALF = "operators, fitted on the other half"
KINDS: Mapping[str, str] = {
    "known": "products, tiling published",
    "library": "products of libraries",
    "small": "products of libraries",
    "vector": "element-wise kernels, code published",
    "vector library": "element-wise kernels of libraries",
    "operator": "operators, in no fit",
    "attention": "attention by hand, in no fit",
    "attention library": "attention of libraries, in no fit",
}
"""The rows of the record's tables, by group of cases."""


@dataclass(frozen=True, slots=True)
class HeldOutCase:
    """The errors of a published case with other constants than the chip files have.

    `fitted` is that of the fit on all, `held` that of the fit without its publication, `half` that
    of an operator with constants fitted on the other half of the operators. `inside`: the interval,
    made without its publication, holds what was measured.
    """

    id: str
    fitted: float
    held: float
    inside: bool
    half: float | None = None


@cache
def held_out_cases() -> tuple[HeldOutCase, ...]:
    """Return the record."""
    return tuple(HeldOutCase(*row) for row in json.loads(HELD_OUT.read_text("utf-8")))


def held_out(validation: Validation) -> tuple[HeldOut, ...]:
    """Return the errors held out, by publication and by kind of kernel and chip.

    `validation` is that of the published points: its errors are those of the chip files. Loads,
    micro-benchmarks and launches are in every fit; operators are in none.
    """
    shipped = {one.point.id: one for one in validation.timed}
    rows: dict[tuple[str, str, str], list[tuple[Validated, HeldOutCase]]] = {}
    kinds: dict[tuple[str, str, str], list[tuple[Validated, HeldOutCase]]] = {}
    for case in held_out_cases():
        if (one := shipped.get(case.id)) is None:
            continue
        rows.setdefault((chip(one.chip).arch, one.point.repository, ""), []).append((one, case))
        of_kind = [(KINDS[one.group], case)]
        if case.half is not None:
            other = HeldOutCase(case.id, case.fitted, case.half, case.inside)
            of_kind.append((OF_OTHER_HALF, other))
        for kind, each in of_kind:
            kinds.setdefault(("", kind, ""), []).append((one, each))
            kinds.setdefault(("", kind, one.chip), []).append((one, each))
    return tuple(
        HeldOut(
            *key,
            Errors.of([one.wall for one, _ in of_row]),
            _sizes(case.fitted for _, case in of_row),
            _sizes(case.held for _, case in of_row),
            sum(case.inside for _, case in of_row),
        )
        for table in (rows, kinds)
        for key, of_row in sorted(table.items())
    )


def _sizes(errors: Iterable[float]) -> Errors:
    return Errors(tuple(sorted(map(abs, errors))))
