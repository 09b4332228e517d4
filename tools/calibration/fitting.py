"""Fits constants to cases: least absolute errors, from derivatives by differences.

The fit is in the logarithms of constants and of predicted over measured times. Each round works out
how every error changes with every constant, and goes to the least sum of absolute errors of that
linear model, no constant farther than a bound, and a shorter one where that does not help; each
step corrects the derivatives. It ends with a round of which no step helps: begun again at its
result, it stays there. A pull to the start decides where points do not: a factor of 3 counts as
much as errors of 12 % in all where the start is a round figure, and 50 % where it is documented. So
a constant that only guessed kernels identify stays near the figure that is documented for it.
Values are rounded before they are tried: what is found is what ships.
"""

import math
import multiprocessing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tools.calibration.fit_cases import IDENTIFYING, WHOLE_TABLE, FitCase

from cubecore.chips import Chip

WEIGHTS: Mapping[str, float] = {
    "known": 1.0,
    "vector": 0.7,
    "dma": 0.7,
    "bench": 0.5,
    "launch": 1.0,
    "library": 0.4,
    "small": 0.3,
    "vector library": 0.3,
    "operator": 0.3,
}
"""What a case weighs by its group: less where its kernel is guessed."""
PIPES_WEIGHT = 0.5
"""What a case's pipes weigh together beside its whole time."""
WAITING = -0.4
"""A logarithm of fixpipe's time below this: it waited for the Cube, by the unit flag."""
UNCOSTED = "S"
"""The pipe of vector kernels that the model has no cost of."""
FLOOR = 0.02
"""Errors below this weigh by their square."""
PULL, PULL_DOCUMENTED = 0.25 / math.log(3) ** 2, 1.0 / math.log(3) ** 2
"""What half the square of a constant's way from its start counts, as a sum of absolute errors: from
a round figure, and from a documented one."""
CHANGE = 0.1
"""Relative change of a constant for its derivative."""
ENOUGH = 0.002
"""The share of the loss by which a step must help."""
BOUND, LEAST_BOUND, SHORTER = 1.0, 0.02, 0.4
"""Bounds on the way of a constant in a step, as logarithms: the first, the last, and what a bound
is times where a step does not help."""
ROUNDS = 12
"""Rounds at most; a fit that takes them all has not ended."""
INNER = 40
"""Steps to the least sum of the linear model."""
WORKERS = 2
"""Processes that time cases."""
OF_VECTOR_CORES = (
    *("gm_to_ub", "ub_to_gm", "gm_miss_ub", "hbm_ub", "vector_", "short_start_cycles.VECTOR"),
)
OF_AI_CORES = (
    *("gm_to_l1", "gm_miss_bytes", "l1_to", "mad_", "l0c", "scalar_", "start_cycles"),
    *("short_start_cycles.CONSTANT", "short_start_cycles.BASIC"),
    *("hbm_row", "hbm_latency"),
)
"""How the names of constants begin that only kernels of vector cores, or of AICs, depend on."""

OF_UB = ("vector", "vector library", "bench")
"""Groups of kernels of vector cores."""
GUESSED = ("library", "small")
"""Groups of products that start as another kind of kernel than their scalar work is of."""
OF_GUESSED = (".CONSTANT", ".BASIC")
"""How the names of their scalar costs end."""
FIXPIPE = "FIX"
_KINDS = {"NORM": ".NORM", "MDL": ".MDL", "CONSTANT": ".CONSTANT", "BASIC": ".BASIC"}
"""By kind of kernel: how the names of its scalar costs and its start end."""

Values = dict[str, float]
Vector = NDArray[np.float64]
Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """One error of a case: of its whole time or of a pipe."""

    source: str
    error: float
    weight: float
    stays: bool


_FORKED: list[FitCase] = []
"""The cases that processes find when they are forked."""


class Cases:
    """Cases that are timed by several processes; use it in a `with` statement."""

    def __init__(self, cases: Sequence[FitCase], workers: int = WORKERS) -> None:
        self.all = cases
        _FORKED[:] = cases
        self._pool = None
        if workers > 1:
            self._pool = multiprocessing.get_context("fork").Pool(workers)

    def __enter__(self) -> Self:
        """Return the cases."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()

    def errors(self, asked: Sequence[tuple[int, Values]]) -> list[list[float]]:
        """Return the errors of cases by their numbers, each with its values."""
        if self._pool is None:
            return [_errors_of(each) for each in asked]
        return self._pool.map(_errors_of, asked, chunksize=8)


def _errors_of(asked: tuple[int, Values]) -> list[float]:
    number, values = asked
    return [row.error for row in case_rows(_FORKED[number], values)]


@dataclass(frozen=True)
class Point:
    """Values, and every error with them."""

    values: Values
    errors: Vector


class Fit:
    """The fits of an architecture; a vector of errors has a place for each row of each case.

    Constants that are `fixed` stay as they are.
    """

    def __init__(
        self,
        start: Mapping[str, float],
        cases: Cases,
        documented: Collection[str] = (),
        fixed: Mapping[str, float] | None = None,
    ) -> None:
        self.cases = cases
        self.fixed = dict(fixed or {})
        self.pulls = np.array([PULL_DOCUMENTED if n in documented else PULL for n in start])
        chip = cases.all[0].case.chip
        self.whole = {name for name in start if isinstance(shipped_value(chip, name), int)}
        self.start: Values = dict(start)
        self.names = list(self.start)
        begin = self.rounded(self.start)
        by_case = [case_rows(case, {**self.fixed, **begin}) for case in cases.all]
        rows = [row for each in by_case for row in each]
        self.counts = [len(each) for each in by_case]
        self.weights = np.array([row.weight for row in rows])
        self.origins = np.array([row.source for row in rows])
        self.stays = np.array([row.stays for row in rows])
        self.at_start = Point(begin, np.array([row.error for row in rows]))
        self.slopes: list[Vector] = []
        self.ended = False

    def errors(self, values: Mapping[str, float], chosen: Chosen) -> Vector:
        """Return the logarithms of predicted over measured, 0 of cases that are not chosen."""
        firsts = np.cumsum([0, *self.counts[:-1]])
        numbers = [
            number for number, first in enumerate(firsts) if self.counts[number] and chosen[first]
        ]
        made = np.zeros(len(self.weights))
        found = self.cases.errors([(number, {**self.fixed, **values}) for number in numbers])
        for number, errors in zip(numbers, found, strict=True):
            made[firsts[number] : firsts[number] + self.counts[number]] = errors
        return made

    def on_all(self, begin: Mapping[str, float] | None = None) -> Values:
        """Return the values fitted on every case, from `begin` or the start; keeps derivatives."""
        everything = np.ones(len(self.weights), bool)
        at = self.point({**self.start, **begin}, everything) if begin else self.at_start
        for _ in range(ROUNDS):
            slopes = self.derivatives(at)
            self.slopes.append(slopes)
            before, at = at, self.descended(at, slopes, everything)
            losses = [self.loss(each, everything) for each in (before, at)]
            print("derivatives at {:.4f}, steps to {:.4f}".format(*losses), flush=True)
            if at is before:
                self.ended = True
                break
        return at.values

    def without(self, source: str) -> Values:
        """Return the values fitted on all cases but a publication's; after `on_all`.

        It begins at the start, as the fit on all does, and sees no case of the publication.
        Derivatives depend on no measurement: the first and the last of the fit on all serve it.
        """
        chosen = (self.origins != source) | self.stays
        at = Point(self.at_start.values, np.where(chosen, self.at_start.errors, 0.0))
        for slopes in (self.slopes[0], self.slopes[-1]):
            at = self.descended(at, slopes, chosen)
        return at.values

    def point(self, values: Mapping[str, float], chosen: Chosen) -> "Point":
        """Return values with the errors of the chosen cases."""
        values = self.rounded(values)
        return Point(values, self.errors(values, chosen))

    def descended(self, at: "Point", slopes: Vector, chosen: Chosen) -> "Point":
        """Return where steps that help lead; the same point where none does."""
        bound, loss = BOUND, self.loss(at, chosen)
        while bound >= LEAST_BOUND:
            tried = self.point(self._stepped(at, slopes, chosen, bound), chosen)
            slopes = self._corrected(slopes, at, tried)
            made = self.loss(tried, chosen)
            if made > (1 - ENOUGH) * loss:
                bound *= SHORTER
                continue
            at, loss = tried, made
            bound = min(bound / SHORTER, BOUND)
        return at

    def _corrected(self, slopes: Vector, before: "Point", after: "Point") -> Vector:
        """Return derivatives that say what a step was seen to change (Broyden's rule)."""
        way = self._way(before.values, after.values)
        if not (length := float(way @ way)):
            return slopes
        missed = after.errors - before.errors - slopes @ way
        return np.asarray(slopes + np.outer(missed, way) / length)

    def loss(self, at: "Point", chosen: Chosen) -> float:
        """Return what a fit makes least: absolute errors, and the way from the start."""
        size = np.abs(at.errors[chosen])
        robust = np.where(size > FLOOR, size, (size**2 / FLOOR + FLOOR) / 2)
        away = self._way(self.start, at.values)
        return float(self.weights[chosen] @ robust) + float(self.pulls @ away**2) / 2

    def rounded(self, values: Mapping[str, float]) -> Values:
        """Return values to four digits, whole numbers where the chips have them."""
        return {
            name: float(f"{max(round(value), 1) if name in self.whole else value:.4g}")
            for name, value in values.items()
        }

    def _way(self, before: Mapping[str, float], after: Mapping[str, float]) -> Vector:
        return np.array([math.log(after[name] / before[name]) for name in self.names])

    def derivatives(self, at: "Point") -> Vector:
        """Return the change of every error with the logarithm of every value.

        A case that a constant did not move in the first round is not timed for it again.
        """
        asked, places = [], []
        firsts = np.concatenate([[0], np.cumsum(self.counts)])
        slopes = np.zeros((len(self.weights), len(self.names)))
        for column, name in enumerate(self.names):
            old = at.values[name]
            new = old * (1 + CHANGE)
            if name in self.whole:
                new = max(round(new), old + 1)
            for number, case in enumerate(self.cases.all):
                rows = slice(firsts[number], firsts[number + 1])
                moves = self.slopes[0][rows, column].any() if self.slopes else depends(case, name)
                if moves:
                    asked.append((number, {**self.fixed, **at.values, name: new}))
                    places.append((number, column, math.log(new / old)))
        for (number, column, by), errors in zip(places, self.cases.errors(asked), strict=True):
            rows = slice(firsts[number], firsts[number + 1])
            slopes[rows, column] = (np.array(errors) - at.errors[rows]) / by
        return slopes

    def _stepped(self, at: "Point", slopes: Vector, chosen: Chosen, bound: float) -> Values:
        """Return the values of the least loss of the linear model, none farther than `bound`."""
        found, slopes = at.errors[chosen], slopes[chosen]
        away = self._way(self.start, at.values)
        moved = np.zeros(len(self.names))
        for _ in range(INNER):
            errors = found + slopes @ moved
            each = self.weights[chosen] / np.maximum(np.abs(errors), FLOOR)
            square = slopes.T @ (each[:, None] * slopes) + np.diag(self.pulls)
            moved = _within(square, -slopes.T @ (each * found) - self.pulls * away, bound)
        named = zip(self.names, np.exp(moved).tolist(), strict=True)
        return {name: at.values[name] * factor for name, factor in named}


def _within(square: Vector, right: Vector, bound: float) -> Vector:
    """Return the solution of the equations; of what passes `bound` the others make the best."""
    fixed = np.zeros(len(right))
    free = np.ones(len(right), bool)
    while free.any():
        rest = right[free] - square[np.ix_(free, ~free)] @ fixed[~free]
        solved = np.linalg.solve(square[np.ix_(free, free)], rest)
        past = np.abs(solved) > bound
        fixed[free] = np.clip(solved, -bound, bound)
        if not past.any():
            break
        free[np.flatnonzero(free)[past]] = False
    return fixed


def depends(case: FitCase, name: str) -> bool:
    """Return whether a case can depend on a constant, by the kind of cores that it runs on."""
    if case.case.group == "launch":
        return name == "launch_cycles"
    if name == "loop_gap_cycles":
        return case.point.launch == "looped"
    tiling = case.point.tiling
    if tiling.get("epilogue") == "vector cores":
        return True
    kind = case.case.launch().kind
    if name.startswith("scalar_") and case.case.group in GUESSED:
        return name.endswith(OF_GUESSED)
    if name.startswith(("short_start_cycles.", "scalar_")) and kind in _KINDS:
        return name.endswith(_KINDS[kind])
    if case.case.group == "operator":
        return True
    of_ub = case.case.group in OF_UB or tiling.get("into") == "UB"
    return not name.startswith(OF_AI_CORES if of_ub else OF_VECTOR_CORES)


def case_rows(case: FitCase, values: Mapping[str, float]) -> Sequence[Row]:
    """Return a case's errors as logarithms, with their weights.

    Errors of fixpipe count up to that of one that waited, which no constant can make up for.
    """
    wall, pipes = case.errors(values)
    source, group = case.point.repository, case.case.group
    weight, stays = WEIGHTS[group], group in IDENTIFYING
    found = [] if wall is None else [Row(source, math.log1p(wall.error), weight, stays)]
    each = PIPES_WEIGHT * weight / max(len(pipes), 1)
    for name, pipe in pipes.items():
        error = math.log1p(pipe.error)
        if name == FIXPIPE:
            error = max(error, WAITING)
        counts = 0.0 if name == UNCOSTED and group in OF_UB else each
        found.append(Row(source, error, counts, stays))
    return found


def shipped_value(chip: Chip, name: str) -> float:
    """Return a chip's value of a constant: of a field, or of a key of a table."""
    field, _, key = name.partition(".")
    value = getattr(chip, field)
    if not key:
        return value  # type: ignore[no-any-return]
    return next(iter(value.values())) if key == WHOLE_TABLE else value[key]  # type: ignore[no-any-return]
