"""Fits the timing model's constants automatically, on all publications and without each of them.

`python -m tools.refit [ARCH...]` writes src/cubecore/workflows/calibration/measured/refitted.json.
The shipped constants were fitted by hand; this is the check of how far such a fit carries to a
publication that had no part in it, so it starts from documented or round figures, not from the
shipped ones, and it takes no random step: the same points give the same file.

The fit is in the logarithms of constants and of predicted over measured times: Gauss-Newton steps
with derivatives by differences, weights that make it the least sum of absolute errors, a weak pull
to the start (a factor of 3 counts as much as an error of 5 %), and part of a step where a whole one
does not help. Fits without a publication take the same steps from the same start; only their
derivatives, which cost the most and change slowly, are those that the fit on all came by.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.workflows.calibration.held_out import REFITTED, FitCase, fit_cases

STARTS: Mapping[str, Mapping[str, float]] = {
    "2201": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's page on L2 splitting
        "hbm_row_bytes": 32,
        "hbm_ub_row_bytes": 32,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "gm_to_l1_bytes_per_cycle": 110,  # configuration file
        "gm_to_l1_transfer_cycles": 50,
        "gm_to_l1_row_cycles": 1.0,
        "gm_to_l1_pitch_row_cycles": 1.0,
        "gm_miss_bytes_per_cycle": 32,  # configuration file
        "gm_to_l1_misaligned_block_cycles.*": 0.5,
        "gm_to_ub_bytes_per_cycle": 110,  # configuration file
        "gm_miss_ub_bytes_per_cycle": 32,
        "gm_to_ub_transfer_cycles": 50,
        "ub_to_gm_bytes_per_cycle": 64,  # configuration file
        "l1_to_l0_head_cycles": 28,  # appendix: LoadData 2D
        "l1_to_l0_queued_cycles": 10,
        "l1_to_l0_contention": 0.1,
        "mad_head_cycles": 21,  # the vendor's roofline of Mmad
        "mad_queued_cycles": 10,
        "l0c_to_gm_bytes_per_cycle": 64,
        "l0c_to_gm_row_cycles": 1.0,
        "vector_head_cycles": 24,  # head and tail in a public cost model
        "scalar_step_cycles.NORM": 200,
        "scalar_step_cycles.MDL": 200,
        "scalar_step_cycles.CONSTANT": 100,
        "scalar_step_cycles.BASIC": 100,
        "start_cycles": 5000,
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 5000,
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 5000,
    },
    "3510": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's matmul README
        "hbm_ub_row_bytes": 32,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "gm_to_l1_bytes_per_cycle": 100,  # configuration file
        "gm_to_l1_transfer_cycles": 50,
        "gm_to_l1_row_cycles": 0.1,
        "gm_to_l1_pitch_row_cycles": 1.0,
        "gm_to_l1_turned_row_cycles": 1.0,
        "gm_miss_bytes_per_cycle": 31,  # configuration file
        "gm_to_ub_bytes_per_cycle": 100,  # configuration file
        "gm_miss_ub_bytes_per_cycle": 32,
        "gm_to_ub_transfer_cycles": 50,
        "ub_to_gm_bytes_per_cycle": 42,  # configuration file
        "l1_to_l0_head_cycles": 30,  # appendix: LoadData 2D
        "l1_to_l0_queued_cycles": 10,
        "l1_to_l0_contention": 0.1,
        "mad_head_cycles": 25,  # the vendor's roofline of Mmad
        "mad_queued_cycles": 10,
        "l0c_to_gm_bytes_per_cycle": 64,
        "l0c_to_gm_row_cycles": 1.0,
        "l0c_to_gm_misaligned_row_cycles": 10,
        "vector_head_cycles": 35,  # start-up and drain in a public cost model
        "scalar_step_cycles.NORM": 200,
        "scalar_step_cycles.MDL": 200,
        "scalar_step_cycles.CONSTANT": 100,
        "scalar_step_cycles.BASIC": 100,
        "start_cycles": 5000,
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 5000,
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 3000,
    },
}
"""Where fits start. Figures without a source are round: they stand for not knowing."""
STEPS = 3
STEPS_WITHOUT = 8
PIPES_WEIGHT = 0.5
"""What a case's pipes weigh together beside its whole time."""
FLOOR = 0.02
"""Errors below this weigh by their square."""
PULL = 0.05 / math.log(3) ** 2
"""What the square of a constant's way from its start counts, as a sum of absolute errors."""
CHANGE = 0.1
"""Relative change of a constant for its derivative."""
ENOUGH = 0.01
"""A step that helps by less than this share of the loss is the last."""

Values = dict[str, float]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One error of a case: of its whole time or of a pipe."""

    source: str
    error: float
    weight: float


class Fit:
    """The fits of an architecture; a vector of errors has a place for each row of each case."""

    def __init__(self, start: Mapping[str, float], cases: Sequence[FitCase]) -> None:
        self.start: Values = dict(start)
        self.names = list(self.start)
        self.cases = cases
        rows = self.rows(self.start)
        self.weights = np.array([row.weight for row in rows])
        self.origins = np.array([row.source for row in rows])
        self.slopes: list[Vector] = []

    def rows(self, values: Mapping[str, float]) -> list[Row]:
        """Return every error with `values`."""
        return [row for case in self.cases for row in case_rows(case, values)]

    def errors(self, values: Mapping[str, float]) -> Vector:
        """Return the logarithms of predicted over measured."""
        return np.array([row.error for row in self.rows(values)])

    def on_all(self) -> Values:
        """Return the values fitted on every case; keeps the derivatives on the way."""
        self.slopes = []
        values = dict(self.start)
        for _ in range(STEPS):
            self.slopes.append(self._derivatives(values))
            moved = self._moved(values, self.slopes[-1], np.ones(len(self.weights), bool))
            if moved is None:
                break
            values = moved
        return rounded(values)

    def without(self, source: str) -> Values:
        """Return the values fitted on all cases but a publication's; after `on_all`."""
        chosen = self.origins != source
        values = dict(self.start)
        for step in range(STEPS_WITHOUT):
            moved = self._moved(values, self.slopes[min(step, len(self.slopes) - 1)], chosen)
            if moved is None:
                break
            values = moved
        return rounded(values)

    def _moved(self, values: Values, slopes: Vector, chosen: NDArray[np.bool_]) -> Values | None:
        """Return the values after a step that helps; None where no part of it does, or enough."""
        errors = self.errors(values)
        loss = self._loss(errors, values, chosen)
        step = self._step(values, errors, slopes, chosen)
        for share in (1.0, 0.5, 0.2):
            factors = np.exp(share * step).tolist()
            tried = {n: values[n] * x for n, x in zip(self.names, factors, strict=True)}
            better = self._loss(self.errors(tried), tried, chosen)
            if better < (1 - ENOUGH) * loss:
                return tried
        return None

    def _loss(self, errors: Vector, values: Values, chosen: NDArray[np.bool_]) -> float:
        size = np.abs(errors[chosen])
        robust = np.where(size > FLOOR, size, (size**2 / FLOOR + FLOOR) / 2)
        return (
            float(self.weights[chosen] @ robust)
            + PULL * float(self._away(values) @ self._away(values)) / 2
        )

    def _away(self, values: Values) -> Vector:
        return np.array([math.log(values[name] / self.start[name]) for name in self.names])

    def _derivatives(self, values: Values) -> Vector:
        """Return the change of every error with the logarithm of every value."""
        errors, columns = self.errors(values), []
        for name in self.names:
            old = values[name]
            new = max(old * (1 + CHANGE), old + 1 if old >= 2 else old)
            moved = self.errors({**values, name: new})
            columns.append((moved - errors) / math.log(new / old))
        return np.array(columns).T

    def _step(
        self, values: Values, errors: Vector, slopes: Vector, chosen: NDArray[np.bool_]
    ) -> Vector:
        """Return the Gauss-Newton step of the logarithms of the values, none longer than 1."""
        errors, slopes = errors[chosen], slopes[chosen]
        each = self.weights[chosen] / np.maximum(np.abs(errors), FLOOR)
        left = slopes.T @ (each[:, None] * slopes) + PULL * np.eye(len(self.names))
        right = -slopes.T @ (each * errors) - PULL * self._away(values)
        return np.clip(np.linalg.solve(left, right), -1.0, 1.0)


def rounded(values: Values) -> Values:
    """Return values to four digits."""
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def case_rows(case: FitCase, values: Mapping[str, float]) -> Sequence[Row]:
    """Return a case's errors as logarithms, with their weights."""
    wall, pipes = case.errors(values)
    source = case.point.repository
    found = [] if wall is None else [Row(source, math.log1p(wall.error), 1.0)]
    each = PIPES_WEIGHT / max(len(pipes), 1)
    return [*found, *(Row(source, math.log1p(pipe.error), each) for pipe in pipes)]


def main(arguments: list[str]) -> None:
    """Fit the architectures that are named, or all; keep what the file has of the others."""
    found = json.loads(REFITTED.read_text("utf-8")) if REFITTED.exists() else {}
    for arch, start in STARTS.items():
        if arguments and arch not in arguments:
            continue
        fit = Fit(start, [one for one in fit_cases() if one.case.chip.arch == arch])
        found[arch] = {"": fit.on_all()}
        for source in sorted(set(fit.origins.tolist())):
            found[arch][source] = fit.without(source)
        text = json.dumps(dict(sorted(found.items())), indent=1)
        REFITTED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
