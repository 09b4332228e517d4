"""The limit of each element of C, derived from how it is summed and written."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.numerics import largest_finite
from cubecore.numerics.codes import codes_of, numbers
from cubecore.numerics.quantisation import SCALE_MASK
from cubecore.tiling.model.problem import Problem

FLOAT32_UNIT = 2.0**-24
"""Half a unit in the last place of float32, relative: the largest rounding error."""
DEVIATIONS = 6
"""Standard deviations that the error of a sum may have."""
HALF_UNITS = {
    "float16": (2.0**-11, 2.0**-25),
    "bfloat16": (2.0**-8, 2.0**-134),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
}
"""Half a unit in the last place of what fixpipe rounds to: of 1, and of the least numbers."""
_LEAST_ROUNDING = 2.0**-150
"""Half of the least float32 number."""


def limit_policy(problem: Problem) -> str:
    """Return how limits are derived, as an answer says it."""
    if problem.accumulator_type.kind == "int":
        summed = "integer sums must be exact"
    else:
        kind = problem.accumulator_type
        summed = (
            f"{DEVIATIONS} standard deviations of independent roundings to {kind}, one for each "
            "addition and as large as the largest partial sum, plus the drift of a sequential "
            "float32 sum where terms round alike"
        )
    has_scale = problem.scales_columns or problem.epilogue.scale is not None
    scale = ", times the scale" if has_scale else ""
    rounds = problem.c_type is not problem.accumulator_type
    written = f", plus the rounding to {problem.c_type}" if rounds else ""
    return f"{summed}{scale}{written}; NaN and infinities must be the same"


@dataclass(eq=False, slots=True)
class Judged:
    """Errors of elements and their limits; an error of the same NaN or infinity is 0.

    `share` is the error over the limit: an element above 1 does not pass.
    """

    error: Array
    relative: Array
    limit: Array
    share: Array
    nan: int
    infinite: int
    nonfinite_differ: int

    def replace(self, indices: tuple[Array, ...], other: "Judged") -> None:
        """Enter what a second look at some finite elements found, from the first of them on."""
        indices = tuple(index[: other.error.size] for index in indices)
        self.limit[indices], self.share[indices] = other.limit, other.share

    @classmethod
    def joined(cls, parts: "list[Judged]") -> "Judged":
        """Return elements one after another."""
        arrays = ("error", "relative", "limit", "share")
        counts = ("nan", "infinite", "nonfinite_differ")
        error, relative, limit, share = (
            np.concatenate([getattr(part, name) for part in parts]) for name in arrays
        )
        nan, infinite, differ = (sum(getattr(part, name) for part in parts) for name in counts)
        return cls(error, relative, limit, share, nan, infinite, differ)


@dataclass(frozen=True, eq=False, slots=True)
class ErrorLimits:
    """The tolerance of one problem's elements: their scales and the additions behind each."""

    problem: Problem
    scales: Array | None
    additions: int

    @property
    def exact_sums(self) -> bool:
        """True if sums have no error: they are of integers."""
        return self.problem.accumulator_type.kind == "int"

    @property
    def factor(self) -> float:
        """The limit of a sum over its largest partial sum.

        An error of rounding to nearest is uniform, of deviation 1 / sqrt(3) of its largest.
        """
        return DEVIATIONS / math.sqrt(3) * math.sqrt(self.additions) * self._units[0]

    @property
    def _units(self) -> tuple[float, float]:
        """Half a unit in the last place of a sum, relative and of the least numbers."""
        kind = self.problem.accumulator_type.name
        return HALF_UNITS.get(kind, (FLOAT32_UNIT, _LEAST_ROUNDING))

    @property
    def _largest(self) -> float:
        return largest_finite(self.problem.accumulator_type)

    def judge(
        self,
        exact: Array,
        magnitude: Array,
        result: Array,
        columns: Any,
        *,
        drift: Array | float = 0.0,
        sequential: bool = False,
    ) -> Judged:
        """Compare elements with the sums behind them.

        `columns` are those of the elements, to find their scales; `...` for whole rows. `drift` is
        allowed on top; with `sequential` as much as any sequential sum could drift.
        """
        with np.errstate(all="ignore"):
            return self._judge(exact, magnitude, result, columns, drift, sequential)

    def _judge(
        self,
        exact: Array,
        magnitude: Array,
        result: Array,
        columns: Any,
        drift: Array | float,
        sequential: bool,
    ) -> Judged:
        scales = self.scales
        if scales is not None and scales.ndim:
            scales = scales[columns]
        wide = numbers(result, self.problem.c_type).astype(np.float64)
        if self.exact_sums:
            info = np.iinfo(np.int32)
            exact, limit = np.clip(exact, info.min, info.max), np.zeros_like(exact)
            partial = np.zeros_like(exact)
        else:
            partial = (magnitude + np.abs(exact)) / 2
            unit, least = self._units
            rate = (self.additions + 2) * unit if sequential else self.factor
            limit = partial * rate + drift + self.additions * least
        special = ~np.isfinite(exact)
        nan = int(np.count_nonzero(np.isnan(exact)))
        infinite = int(np.count_nonzero(special)) - nan
        wanted, allowed = self._written(exact, limit, scales)
        same = (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
        if not self.exact_sums:
            same |= self._overflown(exact, magnitude, limit, scales, wide)
        whole = np.isfinite(wanted) & ~special
        allowed = np.where(whole & np.isfinite(allowed), allowed, 0.0)
        error = np.where(same, 0.0, np.abs(wide - wanted))
        error = np.where(np.isnan(error) | (special & ~same), np.inf, error)
        return Judged(
            error=error,
            relative=np.where(error == 0, 0.0, np.where(special, np.inf, error / np.abs(wanted))),
            limit=allowed,
            share=np.where(error == 0, 0.0, error / allowed),
            nan=nan,
            infinite=infinite,
            nonfinite_differ=int(np.count_nonzero((special | ~np.isfinite(wide)) & ~same)),
        )

    def _overflown(
        self, exact: Array, magnitude: Array, limit: Array, scales: Array | None, wide: Array
    ) -> Array:
        """Return which finite sums are infinite or NaN in L0C, as an order of them would be."""
        # Positive and negative terms apart are the largest partial sums of either sign.
        highest, lowest = (magnitude + exact) / 2, (magnitude - exact) / 2
        finite = np.isfinite(exact)
        most = self._largest
        high, low = (finite & (part + limit >= most) for part in (highest, lowest))
        factor = 1.0 if scales is None else np.abs(_kept(scales))
        far = finite & ((np.abs(exact) + limit) * factor >= most)
        if not (high | low | far).any():
            return np.zeros(exact.shape, bool)
        passed = np.zeros(exact.shape, bool)
        for value, where in (
            (np.inf, high | far & (exact > 0)),
            (-np.inf, low | far & (exact < 0)),
            (np.nan, high & low),
        ):
            rounded = self._written(np.full(exact.shape, value), limit, scales)[0]
            passed |= where & ((wide == rounded) | (np.isnan(wide) & np.isnan(rounded)))
        return passed

    def _written(self, exact: Array, limit: Array, scales: Array | None) -> tuple[Array, Array]:
        """Return what fixpipe makes of a sum in C's type, and how far off that may be."""
        kind = self.problem.c_type
        if self.problem.epilogue.relu:
            exact = np.maximum(exact, 0.0)
        if scales is not None:
            exact, limit = scaled(exact, limit, scales)
        if kind.name in HALF_UNITS and kind is not self.problem.accumulator_type:
            largest = largest_finite(kind)
            exact = np.where(np.isnan(exact), 0.0, np.clip(exact, -largest, largest))
            unit, least = HALF_UNITS[kind.name]
            # Half a unit is as large as the power of two below: a neighbour is farther than that.
            _, exponent = np.frexp(np.abs(exact) + limit)
            return exact, limit + np.maximum(np.ldexp(unit, exponent - 1), least)
        if kind.library == "codes":
            lowest, near, highest = (
                numbers(codes_of(value, kind, finite=True), kind).astype(np.float64)
                for value in (exact - limit, exact, exact + limit)
            )
            return near, np.maximum(near - lowest, highest - near)
        if kind.kind == "float" or self.problem.epilogue.quant is None:
            return exact, limit
        # Rounding is monotone: what the value may be bounds what is written.
        values = (exact - limit, exact, exact + limit)
        low, near, high = (self._to_int8(value) for value in values)
        return near, np.maximum(near - low, high - near)

    def _to_int8(self, value: Array) -> Array:
        """Return the value rounded to even, in nine bits, with its offset, in eight bits."""
        whole = np.rint(np.where(np.isnan(value), 0.0, value))
        shifted: Array = np.clip(whole, -256, 255) + self.problem.epilogue.offset
        return np.clip(shifted, -128, 127)


def scaled(exact: Array, limit: Array, scales: Array) -> tuple[Array, Array]:
    """Return a sum times its scale, and how far off it may be.

    A scale keeps 10 bits of its mantissa; the matmul may be rounded to float32 twice.
    """
    factor = _kept(scales)
    product = exact * factor
    return product, limit * np.abs(factor) + np.abs(product) * (4 * FLOAT32_UNIT)


def _kept(scales: Array) -> Array:
    kept = np.asarray(scales, np.float32).view(np.uint32) & np.uint32(SCALE_MASK)
    factor: Array = kept.view(np.float32).astype(np.float64)
    return factor
