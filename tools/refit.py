"""Fits the timing model's constants automatically, on all publications and without each of them.

`python -m tools.refit [ARCH...]` writes refitted.json and left_out.json beside the measured points;
with `--ship` it then writes what it found on all points into the files of the architectures. It
starts from documented or round figures, not from the shipped ones, and takes no random step: the
same points give the same file. Loads, micro-benchmarks and launches stay where their publication is
left out: they are made to identify constants.

The fit is in the logarithms of constants and of predicted over measured times: Gauss-Newton steps
with derivatives by differences, weights that make it the least sum of absolute errors, a weak pull
to the start (a factor of 3 counts as much as an error of 5 %), and part of a step where a whole one
does not help. Derivatives cost the most and change slowly: several steps are taken with each, and
fits without a publication follow the last ones of the fit on all. `--go-on` begins where the last
fit on all ended, with derivatives anew.
"""

import dataclasses
import gc
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cubecore.workflows.calibration.held_out import (
    IDENTIFYING,
    FitCase,
    fit_cases,
    refitted,
    residuals_of,
)

STARTS: Mapping[str, Mapping[str, float]] = {
    "2201": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's page on L2 splitting
        "hbm_row_bytes": 32,
        "hbm_ub_row_bytes": 32,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "hbm_write_weight": 1.0,
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
        "scalar_load_cycles.MDL": 100,
        "scalar_tile_cycles.MDL": 300,
        "start_cycles": 5000,
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 5000,
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 2500,
    },
    "3510": {
        "hbm_bytes_per_second": 1.6e12,  # the vendor's matmul README
        "hbm_ub_row_bytes": 32,
        "hbm_latency_cycles": 500,
        "hbm_ub_latency_cycles": 500,
        "l2_latency_cycles": 100,
        "l2_write_reach": 1.0,
        "hbm_write_weight": 1.0,
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
        "scalar_load_cycles.MDL": 100,
        "scalar_tile_cycles.MDL": 300,
        "start_cycles": 5000,
        "short_start_cycles.CONSTANT": 5000,
        "short_start_cycles.BASIC": 5000,
        "short_start_cycles.VECTOR": 2000,
        "launch_cycles": 2500,  # empty kernels take 1.5 us
    },
}
"""Where fits start. Figures without a source are round: they stand for not knowing."""
DERIVATIVES = 2
"""How often derivatives are worked out, at most."""
STEPS_EACH = 4
"""Steps that are taken with the same derivatives."""
ROUNDS = 60
"""Steps of a fit without a publication, which costs no timing."""
WEIGHTS: Mapping[str, float] = {
    "known": 1.0,
    "vector": 0.7,
    "dma": 0.7,
    "bench": 0.5,
    "launch": 1.0,
    "library": 0.4,
    "small": 0.3,
    "vector library": 0.3,
}
"""What a case weighs by its group: less where its kernel is guessed."""
PIPES_WEIGHT = 0.5
"""What a case's pipes weigh together beside its whole time."""
WAITING = -0.4
"""A logarithm of fixpipe's time below this: it waited for the Cube, by the unit flag."""
FLOOR = 0.02
"""Errors below this weigh by their square."""
PULL = 0.05 / math.log(3) ** 2
"""What the square of a constant's way from its start counts, as a sum of absolute errors."""
CHANGE = 0.1
"""Relative change of a constant for its derivative."""
ENOUGH = 0.002
"""A step that helps by less than this share of the loss is the last with its derivatives."""
SHARES = (1.0, 0.4, 0.15)
"""Parts of a step that are tried."""
OF_VECTOR_CORES = (
    *("gm_to_ub", "ub_to_gm", "gm_miss_ub", "hbm_ub", "vector_", "short_start_cycles.VECTOR"),
)
OF_AI_CORES = (
    *("gm_to_l1", "gm_miss_bytes", "l1_to", "mad_", "l0c", "scalar_", "start_cycles"),
    *("short_start_cycles.CONSTANT", "short_start_cycles.BASIC"),
    *("hbm_row", "hbm_latency"),
)
"""How the names of constants begin that only kernels of vector cores, or of AICs, depend on."""

_KINDS = {"NORM": ".NORM", "MDL": ".MDL", "CONSTANT": ".CONSTANT", "BASIC": ".BASIC"}
"""By kind of kernel: how the names of its scalar costs and its start end."""

Values = dict[str, float]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One error of a case: of its whole time or of a pipe."""

    source: str
    error: float
    weight: float
    stays: bool


class Fit:
    """The fits of an architecture; a vector of errors has a place for each row of each case."""

    def __init__(self, start: Mapping[str, float], cases: Sequence[FitCase]) -> None:
        self.start: Values = dict(start)
        self.names = list(self.start)
        self.cases = cases
        by_case = [case_rows(case, self.start) for case in cases]
        rows = [row for each in by_case for row in each]
        self.counts = [len(each) for each in by_case]
        self.weights = np.array([row.weight for row in rows])
        self.origins = np.array([row.source for row in rows])
        self.stays = np.array([row.stays for row in rows])
        self.slopes: Vector = np.zeros((len(rows), len(self.names)))
        self.around: Values = dict(start)
        self.found: Vector = np.array([row.error for row in rows])

    def errors(self, values: Mapping[str, float]) -> Vector:
        """Return the logarithms of predicted over measured."""
        return np.array([row.error for case in self.cases for row in case_rows(case, values)])

    def on_all(self, begin: Mapping[str, float] | None = None) -> Values:
        """Return the values fitted on every case, from `begin` or the start; keeps derivatives."""
        values, everything = {**self.start, **(begin or {})}, np.ones(len(self.weights), bool)
        for _ in range(DERIVATIVES if begin is None else 1):
            self.slopes = self._derivatives(values)
            self.around, self.found = dict(values), self.errors(values)
            moved = self._moved(values, self.slopes, everything)
            if moved is None:
                break
            values = moved
        return rounded(values)

    def without(self, source: str) -> Values:
        """Return the values fitted on all cases but a publication's; after `on_all`.

        Errors are taken to follow the last derivatives: then the sum has one least value, which
        does not depend on where its search begins.
        """
        chosen = (self.origins != source) | self.stays
        moved = np.array([math.log(self.start[n] / self.around[n]) for n in self.names])
        for _ in range(ROUNDS):
            errors = self.found + self.slopes @ moved
            values = self._at(moved)
            step = self._step(values, errors, self.slopes, chosen)
            moved = moved + step
        return rounded(self._at(moved))

    def _at(self, moved: Vector) -> Values:
        factors = np.exp(moved).tolist()
        return {n: self.around[n] * x for n, x in zip(self.names, factors, strict=True)}

    def _moved(self, values: Values, slopes: Vector, chosen: NDArray[np.bool_]) -> Values | None:
        """Return the values after the steps that help; None where not even one does."""
        errors, moved = self.errors(values), None
        loss = self._loss(errors, values, chosen)
        for _ in range(STEPS_EACH):
            step = self._step(values, errors, slopes, chosen)
            for share in SHARES:
                factors = np.exp(share * step).tolist()
                tried = {n: values[n] * x for n, x in zip(self.names, factors, strict=True)}
                found = self.errors(tried)
                better = self._loss(found, tried, chosen)
                if better < (1 - ENOUGH) * loss:
                    break
            else:
                break
            moved = values = tried
            errors, loss = found, better
        return moved

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
        before = [[row.error for row in case_rows(case, values)] for case in self.cases]
        columns = []
        for name in self.names:
            old = values[name]
            new = max(old * (1 + CHANGE), old + 1 if old >= 2 else old)
            column: list[float] = []
            for case, errors in zip(self.cases, before, strict=True):
                after = errors
                if depends(case, name):
                    after = [row.error for row in case_rows(case, {**values, name: new})]
                column += [b - a for a, b in zip(errors, after, strict=True)]
            columns.append(np.array(column) / math.log(new / old))
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


def depends(case: FitCase, name: str) -> bool:
    """Return whether a case can depend on a constant, by the kind of cores that it runs on."""
    if case.case.group == "launch":
        return name == "launch_cycles"
    tiling = case.point.tiling
    if tiling.get("epilogue") == "vector cores":
        return True
    kind = case.case.launch().kind
    if name.startswith(("short_start_cycles.", "scalar_")) and kind in _KINDS:
        return name.endswith(_KINDS[kind])
    of_ub = case.case.group in {"vector", "vector library", "bench"} or tiling.get("into") == "UB"
    return not name.startswith(OF_AI_CORES if of_ub else OF_VECTOR_CORES)


def case_rows(case: FitCase, values: Mapping[str, float]) -> Sequence[Row]:
    """Return a case's errors as logarithms, with their weights.

    Pipes whose time is mostly waiting, which no constant can make up for, are rows of no weight.
    """
    wall, pipes = case.errors(values)
    source, group = case.point.repository, case.case.group
    weight, stays = WEIGHTS[group], group in IDENTIFYING
    found = [] if wall is None else [Row(source, math.log1p(wall.error), weight, stays)]
    each = PIPES_WEIGHT * weight / max(len(pipes), 1)
    for pipe in pipes:
        error = math.log1p(pipe.error)
        found.append(Row(source, max(error, WAITING), each, stays))
    return found


# --- what was found, in the chips' files

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "cubecore"
FILES = PACKAGE / "chips" / "data"
MEASURED = PACKAGE / "workflows" / "calibration" / "measured"
SOURCE = "refit"


def shipped(text: str, values: Mapping[str, float]) -> str:
    """Return an architecture's file with other values, their source the fit."""
    tables: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        field, _, key = name.partition(".")
        tables.setdefault(field, {})[key] = value
    lines = [_line(line, tables) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _line(line: str, tables: Mapping[str, Mapping[str, float]]) -> str:
    field = line.partition(" = ")[0]
    if field not in tables or "value" not in line:
        return line
    for key, value in tables[field].items():
        line = _scaled(line, value) if key == "*" else _valued(line, key or "value", value)
    return re.sub(r'source = "\w+"', f'source = "{SOURCE}"', line)


def _valued(line: str, name: str, value: float) -> str:
    """Return a line with another number behind a name."""
    return re.sub(
        rf"\b{name} = (-?[\d._]+)", lambda found: f"{name} = {_as(found[1], value)}", line
    )


_LARGE = 100_000
"""Whole numbers from here on are written with separators."""


def _as(old: str, value: float) -> str:
    """Return a value as the old one is written: a whole number where that is one."""
    whole = max(round(value), 1)
    return f"{value:.4g}" if "." in old else f"{whole:_}" if whole >= _LARGE else str(whole)


def _scaled(line: str, value: float) -> str:
    """Return a table's line with its values in proportion, the first being `value`."""
    table = re.search(r"value = \{(.*?)\}", line)
    assert table is not None
    entries = [entry.split(" = ") for entry in table[1].strip().split(", ")]
    first = float(entries[0][1])
    scaled = ", ".join(f"{k.strip()} = {float(v) * value / first:.3g}" for k, v in entries)
    return line.replace(table[1], f" {scaled} ")


def main(arguments: list[str]) -> None:
    """Fit the architectures that are named, or all; keep what the file has of the others."""
    ship, goes_on = ("--ship" in arguments), ("--go-on" in arguments)
    chosen = [name for name in arguments if not name.startswith("--")]
    found = refitted()
    fit_cases()
    gc.disable()  # the cases stay, and nothing else is large: looking for garbage doubles the time
    for arch, start in STARTS.items():
        if chosen and arch not in chosen:
            continue
        fit = Fit(start, [one for one in fit_cases() if one.case.chip.arch == arch])
        found[arch] = {"": fit.on_all(found[arch][""] if goes_on else None)}
        for source in sorted(set(fit.origins[~fit.stays].tolist())):
            found[arch][source] = fit.without(source)
        text = json.dumps(dict(sorted(found.items())), indent=1)
        (MEASURED / "refitted.json").write_text(text + "\n", encoding="utf-8")
        if ship:
            file = FILES / f"arch_{arch}.toml"
            file.write_text(shipped(file.read_text("utf-8"), found[arch][""]), encoding="utf-8")
    rows = [json.dumps(dataclasses.astuple(one)) for one in residuals_of(found)]
    text = ",\n".join(rows)
    (MEASURED / "left_out.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
