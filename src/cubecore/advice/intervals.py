"""Intervals of predictions: how far the model was off on publications that it was not fitted to.

`python -m tools.calibration.refit` keeps what each measured case took over what the fit without its
publication predicted. A prediction's interval comes from those of them that are nearest: of the
same kind of kernel, of nearly its time, on the same architecture, of elements of the same size. It
reaches as far as 80 % of them were off, up and down alike, since the sign of one publication's
errors says nothing of another's; and it grows with how far they are away, and where no operator of
its name was measured.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cubecore.package_data import packaged
from cubecore.presented.text import duration

if TYPE_CHECKING:
    from cubecore.aliases import Json

LEFT_OUT = packaged("workflows", "calibration", "measured", "left_out.json")
"""The residuals of left-out cases: what `Residual` holds, one list each."""
SHARE = 0.8
"""The share of cases that an interval is made to hold."""
NEAREST = 40
"""The residuals that an interval is made of."""
PRODUCT, VECTOR, ATTENTION = "product", "vector", "attention"
ATTENTION_LIBRARY = "attention library"
_KINDS = {
    "known": (PRODUCT, ""),
    "library": (PRODUCT, "library"),
    "small": (PRODUCT, "library"),
    "vector": (VECTOR, ""),
    "vector library": (VECTOR, "library"),
    "operator": (VECTOR, "library"),
    ATTENTION: (ATTENTION, ""),
    ATTENTION_LIBRARY: (ATTENTION, "library"),
}
"""The kind of kernel of a group of cases, and whether its code was guessed."""
_OTHER_ARCH, _OTHER_BITS, _GUESSED = 1.5, 0.5, 2.0
"""The distance of residuals that differ in more than the time, in factors of 2 of the time."""
_GROWTH = 0.04
"""The widening of an interval for each factor of 2 that its residuals are away."""
_UNMEASURED = 1.2
"""The widening for an operator of which no kernel was measured: with each operator's residuals left
out in turn, and those of four cases or more counting the same, such intervals hold 81 % of them."""


@dataclass(frozen=True, slots=True)
class Residual:
    """The ratio of measured over predicted of a case, and what kind of case it is.

    `bits` are those of an element of the inputs, `us` is the prediction of the fit without
    `source`, `ratio` a logarithm, `op` the operator, empty of a product.
    """

    source: str
    arch: str
    group: str
    bits: int
    us: float
    ratio: float
    op: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """The times between which a kernel is expected to end, in so many of 10 cases.

    Not `measured`: no kernel of the operator is among the measured ones.
    """

    low_us: float
    high_us: float
    measured: bool = True

    def to_json(self) -> "Json":
        """Return both ends, the share of cases that they hold, and whether such were measured."""
        ends = {"low_us": self.low_us, "high_us": self.high_us}
        return {**ends, "share": SHARE, "measured": self.measured}

    def holds(self, us: float) -> bool:
        """Return whether a time lies in the interval."""
        return self.low_us <= us <= self.high_us


@cache
def residuals() -> tuple[Residual, ...]:
    """Return the residuals of every case that was held out of a fit."""
    rows = json.loads(LEFT_OUT.read_text("utf-8"))
    return tuple(Residual(*row) for row in rows)


def interval(us: float, arch: str, group: str, bits: int, op: str = "") -> Interval:
    """Return the interval of a prediction.

    Parameters
    ----------
    us : float
        The prediction.
    arch : str
        The chip's architecture.
    group : str
        The group of cases that the kernel is like: `known` for one whose order of instructions is
        known, `vector` for one of vector cores.
    bits : int
        The bits of an element of its inputs.
    op : str
        The operator; empty of a product, and of a kernel of which no more is known.
    """
    return interval_among(residuals(), us, arch, group, bits, op)


def interval_among(
    those: Sequence[Residual], us: float, arch: str, group: str, bits: int, op: str = ""
) -> Interval:
    """Return the interval of a prediction, made of the nearest of `those`."""
    kind, guessed = _KINDS[group]

    def distance(one: Residual) -> float:
        away = abs(math.log2(us / one.us))
        away += _OTHER_ARCH * (one.arch != arch) + _OTHER_BITS * (one.bits != bits)
        return away + _GUESSED * (_KINDS[one.group][1] != guessed)

    of_kind = [one for one in those if _KINDS[one.group][0] == kind]
    nearest = sorted((distance(one), one.ratio) for one in of_kind)[:NEAREST]
    off = _quantile(sorted(abs(ratio) for _, ratio in nearest), SHARE)
    wider = 1 + _GROWTH * sum(away for away, _ in nearest) / max(len(nearest), 1)
    measured = not op or any(one.op == op for one in of_kind)
    off *= wider if measured else wider * _UNMEASURED
    return Interval(us * math.exp(-off), us * math.exp(off), measured)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, between two of them in proportion; 0 of none."""
    if not values:
        return 0.0
    at = share * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def interval_line(interval: Interval) -> str:
    """Return an interval in words: 80% interval 34 to 45 us."""
    reason = "from errors on similar measured kernels"
    if not interval.measured:
        reason = "no measured kernel of this kind: from errors on others, and wider"
    return f"80% interval {interval_range(interval)} ({reason})"


def interval_range(interval: Interval) -> str:
    """Return both ends of an interval: 34 to 45 us."""
    low, high = (duration(us) for us in (interval.low_us, interval.high_us))
    if low.rpartition(" ")[2] == high.rpartition(" ")[2]:
        low = low.rpartition(" ")[0]
    return f"{low} to {high}"
