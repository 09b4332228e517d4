"""Rates as times: a count of operations or bytes over a published rate."""

from collections.abc import Mapping

from cubecore.dtypes import element_type
from cubecore.workflows.calibration.cases import Unmapped
from cubecore.workflows.calibration.columns import HALVED, OPERATIONS
from cubecore.workflows.calibration.measured_points import Point

_BYTES = {"TBps": 1e12, "GBps": 1e9}
_INPUTS = {"add": 2}
"""Arrays that a function reads, where they are not one."""
_APART = 0.05
"""A rate and a time that differ by more, beyond the rate's last digit, contradict each other."""


def rated_us(point: Point) -> float | None:
    """Return the time that a point's rate gives; None where it gives none.

    Raises
    ------
    Unmapped
        If a column is missing, or a rate and a time contradict each other.
    """
    counted = OPERATIONS if point.counts == "2MNK" else _BYTES
    name = next((name for name in counted if point.measured.get(name)), None)
    stated = point.wall_us or point.core_us
    if name is None or (stated is not None and not point.counts):
        return None
    if not point.counts:
        if point.pipes_us:
            return None
        raise Unmapped(f"counts must be stated for {name} to give a time")
    count = _operations(point, name) if name in OPERATIONS else _bytes(point, name)
    rate = point.measured[name]
    us = count / (rate * counted[name]) * 1e6
    if stated is not None and abs(us / stated - 1) > _APART + _rounding(rate):
        raise Unmapped(f"{name} gives {us:.4g} us and contradicts the time of {stated:.4g} us")
    return us


def _rounding(rate: float) -> float:
    """Return half a unit of the last published digit, as a part of the rate."""
    decimals = len(repr(float(rate)).partition(".")[2])
    return 0.5 * 10.0**-decimals / rate


def _operations(point: Point, rate: str) -> float:
    extents = {"M": point.m, "N": point.n, "K": point.k}
    _require(extents, rate)
    m, n, k = (extent or 0 for extent in extents.values())
    batch: int = point.tiling.get("batch", 1)
    return 2.0 * m * n * k * batch


def _bytes(point: Point, rate: str) -> float:
    """Return the bytes of an element-wise function that its `counts` counts."""
    if point.kind != "vector":
        raise Unmapped(f"counts {point.counts} is for kind vector, got {point.kind}")
    extents = {"M": point.m, "N": point.n}
    _require({**extents, "op": point.op, "dtype_a": point.types[0]}, rate)
    elements = (point.m or 0) * (point.n or 0)
    into, _, out = (_size(text or point.types[0]) for text in point.types)
    read, written = _INPUTS.get(point.op, 1) * into, out / (2 if point.op in HALVED else 1)
    parts = {"read": read, "write": written, "read+write": read + written}
    return elements * parts[point.counts]


def _size(text: str) -> float:
    names = {"half": "float16", "float": "float32"}
    return element_type(names.get(text, text)).bits / 8


def _require(columns: Mapping[str, object], rate: str) -> None:
    for name, value in columns.items():
        if not value:
            raise Unmapped(f"{name} must be stated for {rate} to give a time")
