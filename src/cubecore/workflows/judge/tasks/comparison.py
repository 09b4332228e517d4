"""Results beside those of the reference: how far apart they are, and where."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.frontends.result_comparison import Tolerance
from cubecore.workflows.judge.values import array_of, is_sparse, is_tensor

RIGHT, WRONG, REFUSED = "right", "wrong", "refused"
LATE, NOT_RUN, TOO_LARGE, UNCOMPARABLE = "late", "not run", "too large", "uncomparable"
BLOCK = 1 << 16
"""Elements that are compared at a time."""
CLOSE = "|result - expected| <= atol + rtol * |expected|"


@dataclass(frozen=True, slots=True)
class Compared:
    """A case's results beside the expected ones: the outcome, and the first wrong element.

    `output` is the number of the output that it lies in, `reason` says what is wrong where that is
    no element.
    """

    outcome: str
    rule: str
    atol: float
    rtol: float
    max_abs: float = 0.0
    max_rel: float = 0.0
    output: int = 0
    where: tuple[int, ...] = ()
    value: float = 0.0
    expected: float = 0.0
    wrong: int = 0
    reason: str = ""

    def to_json(self) -> Json:
        """Return the comparison as JSON; numbers that JSON does not have are texts."""
        return {
            "outcome": self.outcome,
            "max_abs": _number(self.max_abs),
            "max_rel": _number(self.max_rel),
            "wrong": self.wrong,
            "output": self.output,
            "where": list(self.where),
            "value": _number(self.value),
            "expected": _number(self.expected),
            "tolerance": {"atol": self.atol, "rtol": self.rtol, "rule": self.rule},
            "reason": self.reason,
        }


def _number(value: float) -> float | str:
    return float(value) if np.isfinite(value) else str(value)


def leaves(value: Any) -> list[tuple[str, Any]]:
    """Return the arrays and numbers of a result in their order, by name where they have one.

    A sparse tensor has two: the indices, and the values.
    """
    if isinstance(value, Mapping):
        return [(str(name), leaf) for name, each in value.items() for _, leaf in leaves(each)]
    if isinstance(value, (list, tuple)):
        return [(name, leaf) for each in value for name, leaf in leaves(each)]
    if is_sparse(value):
        return [("", value._indices()), ("", value._values())]  # noqa: SLF001 - summed up or not
    return [] if value is None else [("", value)]


def plain(value: Any) -> Array:
    """Return an array of a result: of a tensor, of an array or of a number."""
    return array_of(value) if is_tensor(value) else np.asarray(value)


def same(one: Any, other: Any) -> bool:
    """Return whether two values have equal arrays, to the bit."""
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(plain(a).tobytes() == plain(b).tobytes() for (_, a), (_, b) in pairs)


def ordered(expected: Any, got: Any) -> list[tuple[str, Any]]:
    """Return the results in the order of the expected ones, where both have names."""
    found = leaves(got)
    names = [name for name, _ in leaves(expected)]
    by_name = {name: leaf for name, leaf in found if name}
    if names and all(name in by_name for name in names):
        return [(name, by_name[name]) for name in names]
    return found


def close(
    expected: Any,
    got: Any,
    atol: float | None = None,
    rtol: float | None = None,
    *,
    either: bool = False,
) -> Compared:
    """Compare results by their distance: within `atol` + `rtol` times the expected value.

    None is the type's default, as `Tolerance` has it. With `either`, one of the two suffices.
    Values that are no numbers in both are equal, and so are equal infinities.
    """
    wanted, found = leaves(expected), ordered(expected, got)
    limits = _limits(wanted[0][1] if wanted else 0.0, atol, rtol)
    if len(found) != len(wanted):
        reason = f"{len(wanted)} outputs must be returned, got {len(found)}"
        return Compared(WRONG, CLOSE, *limits, reason=reason)
    worst = [0.0, 0.0]
    first: Compared | None = None
    for number, ((name, one), (_, other)) in enumerate(zip(wanted, found, strict=True)):
        want, have = plain(one), plain(other)
        limits = _limits(want, atol, rtol)
        if want.shape != have.shape:
            subject = name or f"output {number}"
            reason = f"{subject} must have shape {list(want.shape)}, got {list(have.shape)}"
            return Compared(WRONG, CLOSE, *limits, output=number, reason=reason)
        distance = _distance(want.reshape(-1), have.reshape(-1), *limits, either=either)
        worst = [max(worst[0], distance.max_abs), max(worst[1], distance.max_rel)]
        if first is None and distance.wrong:
            blank = Compared(WRONG, CLOSE, *limits, output=number, wrong=distance.wrong)
            first = _first(blank, want, have, distance.first)
    if first is None:
        return Compared(RIGHT, CLOSE, *limits, max_abs=worst[0], max_rel=worst[1])
    return replace(first, max_abs=worst[0], max_rel=worst[1])


def _limits(one: Any, atol: float | None, rtol: float | None) -> tuple[float, float]:
    relative, absolute = Tolerance(rtol, atol).of(plain(one).dtype)
    return absolute, relative


@dataclass(frozen=True, slots=True)
class _Distance:
    """Two arrays' largest distance, also as a share; elements too far, and the first of them."""

    max_abs: float = 0.0
    max_rel: float = 0.0
    wrong: int = 0
    first: int = -1


def _distance(want: Array, have: Array, atol: float, rtol: float, *, either: bool) -> _Distance:
    """Return how far flat arrays are apart."""
    found = _Distance()
    # Block by block: temporary arrays as large as a result are pages that the system clears anew.
    for begin in range(0, want.size, BLOCK):
        one, other = want[begin : begin + BLOCK], have[begin : begin + BLOCK]
        if one.dtype == other.dtype and one.tobytes() == other.tobytes():
            continue
        errors, relative, wrong = _distances(one, other, atol, rtol, either=either)
        count, first = int(np.count_nonzero(wrong)), found.first
        if count and first < 0:
            first = begin + int(np.argmax(wrong))
        most = max(found.max_abs, float(errors.max())), max(found.max_rel, float(relative.max()))
        found = _Distance(*most, found.wrong + count, first)
    return found


def _distances(
    want: Array, have: Array, atol: float, rtol: float, *, either: bool
) -> tuple[Array, Array, Array]:
    """Return how far elements are apart, also as shares, and which are too far."""
    wide = np.promote_types(np.float64, np.complex64 if want.dtype.kind == "c" else np.float64)
    one, other = want.astype(wide), have.astype(wide)
    same = (want == have) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        errors = np.abs(other - one)
        errors[np.isnan(errors)] = np.inf
        errors[same] = 0
        relative = np.where(errors == 0, 0.0, errors / np.maximum(np.abs(one), 1e-12))
        share = rtol * np.abs(one)
        limit = np.maximum(atol, share) if either else atol + share
        near = (errors <= limit) & np.isfinite(one)
    return errors, relative, ~(same | near)


def _first(blank: Compared, want: Array, have: Array, index: int) -> Compared:
    """Return a comparison with the first element that is wrong."""
    place = tuple(int(n) for n in np.unravel_index(index, want.shape))
    return replace(
        blank,
        where=place,
        value=_real(have.reshape(-1)[index]),
        expected=_real(want.reshape(-1)[index]),
    )


def _real(value: Any) -> float:
    return float(np.real(value))
