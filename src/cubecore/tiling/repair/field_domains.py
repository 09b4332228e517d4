"""The values that a field of a tiling may take: what a search over tilings has to try.

Rules about one field alone (positive, aligned, a flag, one of a few) are applied here, so that a
domain holds only values that they allow.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Json
from cubecore.tiling.model.field_limits import Limits
from cubecore.tiling.model.mx_type_para import SHIFTS, SPARE_BITS, with_factor
from cubecore.tiling.model.tcubetiling import FIELDS, Tilings
from cubecore.tiling.rules.field_dependencies import RuleReads, measured
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.units import FRACTAL_ROWS, INT32_MAX, align_up, ceil_div, distinct

Ints = NDArray[np.int64]

MOST_VALUES = 65536
"""Longer ranges are cut; what is proven over them is then a sample."""
EVERY_SHARE = 2048
"""Up to this size every length of a core's share is tried; beyond, one of each kind."""
EVERY_BLOCK = 1 << 17
"""Up to this length every whole number of fractals is."""
MOST_BLOCK, MOST_COUNT = 1 << 13, 1 << 17
"""Larger base blocks and counts of them fit no chip; matmuls of these fit int64."""
BLOCKS = ("baseM", "baseN", "baseK")
COUNTS = (
    *("depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb"),
    *("usedCoreNum", "dbL0A", "dbL0B", "dbL0C"),
)
LENGTHS = ("transLength",)
"""Fields that rules ask to be long enough, and nothing asks to be longer."""
_SHARES = ("singleCoreM", "singleCoreN", "singleCoreK")


class Cover(Enum):
    """The part of a domain that its values represent.

    ALL: every value that can be legal. CLASSES: one or more of every class that the rules tell
    apart, so that what none of them satisfies, no value does. SAMPLE: some values.
    """

    ALL = "all"
    CLASSES = "classes"
    SAMPLE = "sample"


@dataclass(frozen=True)
class Domain:
    """The values of a field, ascending, and what they stand for."""

    values: Ints
    cover: Cover


def domain(
    field: str, case: RuleCase, alone: tuple[RuleReads, ...], limits: Limits | None = None
) -> Domain:
    """Return the values of `field` that the rules in `alone`, which read only it, allow.

    `limits` are what is asked of the field, which one of the rules in `alone` holds it to.
    """
    named = _named_values(field, case, alone)
    whole = Domain(named, Cover.ALL) if named is not None else _range(field, case, alone, limits)
    allowed = np.ones(len(whole.values), dtype=bool)
    columns = base_columns(case.tiling) | {field: whole.values}
    judged = RuleCase(TilingColumns(columns), case.problem, case.chip, case.edition, case.reading)
    for reader in alone:
        allowed &= np.broadcast_to(measured(reader, judged).holds(), allowed.shape)
    return Domain(whole.values[allowed], whole.cover)


def base_columns(tiling: Tilings) -> Json:
    """Return a tiling's fields as arrays of one row, absurd values cut so that matmuls fit."""
    most = dict.fromkeys(COUNTS, MOST_COUNT) | dict.fromkeys(BLOCKS, MOST_BLOCK)
    columns = {}
    for name in FIELDS:
        value, limit = getattr(tiling, name), most.get(name)
        columns[name] = np.array([value if limit is None else min(max(value, -limit), limit)])
    return columns


def _named_values(field: str, case: RuleCase, alone: tuple[RuleReads, ...]) -> Ints | None:
    """Return the values that a rule about `field` alone says it must have; None without one."""
    for reader in alone:
        values = wanted_values(reader, field, base_columns(case.tiling), case)
        if values is not None:
            return distinct(np.concatenate([np.atleast_1d(x) for x in values]))
    return None


def wanted_values(
    reader: RuleReads, field: str, columns: Json, case: RuleCase
) -> tuple[Any, ...] | None:
    """Return the values that `field` must have one of, by a rule that reads the others.

    One array or integer for each choice, over the rows of `columns`. None if the rule does not hold
    the field itself to given values, or not in every row. A length that must be at least so much is
    just that.
    """
    length = max(len(values) for values in columns.values())
    answers = []
    for probe_value in (1, 2):
        probe = np.full(length, probe_value)
        judged = TilingColumns(columns | {field: probe})
        measure = measured(
            reader, RuleCase(judged, case.problem, case.chip, case.edition, case.reading)
        )
        least = measure.relation == ">=" and field in LENGTHS
        if not (least or measure.relation in {"==", "in"}) or measure.used is not probe:
            return None
        if not np.all(measure.applies):
            return None
        limits = measure.limit if measure.relation == "in" else (measure.limit,)
        answers.append(tuple(np.asarray(limit, dtype=np.int64) for limit in limits))
    same = all(np.array_equal(x, y) for x, y in zip(*answers, strict=True))
    return answers[0] if same else None


def _range(
    field: str, case: RuleCase, alone: tuple[RuleReads, ...], limits: Limits | None
) -> Domain:
    if limits is not None and field in _SHARES:
        return _asked_shares(field, case, limits)
    values = _kind(field, case, alone)
    if limits is None:
        return values
    # What is asked for may lie beyond what fits; the rule that excludes it is to say so.
    lowest = [align_up(max(limits.low, 1), limits.multiple), limits.low]
    most = dict.fromkeys(COUNTS, MOST_COUNT) | dict.fromkeys(BLOCKS, MOST_BLOCK)
    lowest += [align_up(limits.low, math.lcm(FRACTAL_ROWS, limits.multiple))]
    more = [value for value in lowest if value <= most.get(field, INT32_MAX)]
    return Domain(distinct(np.append(values.values, more)), values.cover)


def _kind(field: str, case: RuleCase, alone: tuple[RuleReads, ...]) -> Domain:
    chip = case.chip
    bits = min(case.a.bits, case.b.bits)
    if field in _SHARES:
        return _shares(field, case)
    if field in BLOCKS:
        largest = max(chip.l0a_bytes * 8 // bits, chip.l0b_bytes * 8 // bits, chip.l0c_bytes // 4)
        return _up_to(largest // FRACTAL_ROWS)
    if field == "usedCoreNum":
        return _up_to(_most(field, case, alone))
    if field in COUNTS:
        # The documented capacities may count a block of 16 x 16 as one of 16.
        smallest = FRACTAL_ROWS * (FRACTAL_ROWS if case.effective else 1)
        return _up_to(chip.l1_bytes * 8 // bits // smallest)
    if field == "mxTypePara":
        return _scale_factors(case.tiling.mxTypePara)
    if field in LENGTHS:
        return Domain(np.array([0], dtype=np.int64), Cover.CLASSES)
    values = {0, 1, int(getattr(case.tiling, field))}
    return Domain(np.array(sorted(values), dtype=np.int64), Cover.SAMPLE)


def _scale_factors(given: int) -> Domain:
    """Return the given factors of the scales, each as it is or 1, the least that any rule asks."""
    given = given & 0xFFFFFFFF & ~SPARE_BITS
    values = [given]
    for name in SHIFTS:
        values += [with_factor(value, name, 1) for value in values]
    return Domain(distinct(np.array(values, dtype=np.int64)), Cover.CLASSES)


def _up_to(largest: int) -> Domain:
    cover = Cover.ALL if largest <= MOST_VALUES else Cover.SAMPLE
    return Domain(np.arange(1, min(largest, MOST_VALUES) + 1, dtype=np.int64), cover)


def _most(field: str, case: RuleCase, alone: tuple[RuleReads, ...]) -> int:
    """Return the largest value that a rule about the field alone allows, INT32_MAX without one."""
    probe = np.ones(1, dtype=np.int64)
    columns = TilingColumns(base_columns(case.tiling) | {field: probe})
    judged = RuleCase(columns, case.problem, case.chip, case.edition, case.reading)
    measures = (measured(reader, judged) for reader in alone)
    return min(
        (int(x.limit) for x in measures if x.relation == "<=" and x.used is probe),
        default=INT32_MAX,
    )


def _asked_shares(field: str, case: RuleCase, limits: Limits) -> Domain:
    """Return every length of a core's share that will do."""
    extent = extent_of(field, case)
    align = max(case.row_align, case.column_align, case.k_align)
    unit = limits.multiple
    ends = (align_up(max(limits.low, 1), unit), min(limits.high, align_up(extent, align)))
    values = np.arange(ends[0], ends[1] + 1, unit, dtype=np.int64)
    whole = [extent] if limits.low <= extent <= limits.high else []
    cover = Cover.ALL if len(values) <= MOST_VALUES else Cover.SAMPLE
    beyond = [limits.low] if not len(values) and not whole else []
    return Domain(distinct(np.concatenate([values[:MOST_VALUES], whole, beyond])), cover)


def extent_of(field: str, case: RuleCase) -> int:
    """Return what the cores divide: the size that `field`, a core's share, is a part of."""
    p = case.problem
    return {"singleCoreM": p.m, "singleCoreN": p.n, "singleCoreK": p.shared_k}[field]


def _shares(field: str, case: RuleCase) -> Domain:
    """Return lengths of a core's share: all of them, or for every count of cores a few."""
    p = case.problem
    extent = extent_of(field, case)
    align = max(case.row_align, case.column_align, case.k_align)
    if not case.effective and field != "singleCoreK":
        # The letter wants usedCoreNum * singleCoreM * singleCoreN = M * N.
        return Domain(_divisors(p.m, p.n, extent), Cover.ALL)
    if extent <= EVERY_SHARE:
        return _up_to(align_up(extent, align))
    most = p.core_limit(case.chip)
    # Rules tell shares apart by their number and by how many base blocks of 16 and more fill them.
    even = ceil_div(extent, np.arange(1, most + 2, dtype=np.int64))
    ends = np.maximum(even[:-1] - 1, even[1:])
    whole = np.arange(align, min(extent, EVERY_BLOCK) + 1, align, dtype=np.int64)
    values = distinct(
        np.concatenate(
            [even[:-1], align_up(even[:-1], align), ends, whole, [align_up(extent, align)]]
        )
    )
    in_blocks = extent <= EVERY_BLOCK or field != "singleCoreK" or not p.split_k
    return Domain(values, Cover.CLASSES if case.effective and in_blocks else Cover.SAMPLE)


def _divisors(m: int, n: int, most: int) -> Ints:
    """Return the divisors of m * n that are at most `most`."""
    divisors = np.array([1], dtype=np.int64)
    rest = [m, n]
    for prime in range(2, math.isqrt(max(m, n)) + 1):
        power, step = 1, divisors
        for factor in range(2):
            while rest[factor] % prime == 0:
                rest[factor] //= prime
                power += 1
        for _ in range(power - 1):
            step = step[step <= most // prime] * prime
            divisors = distinct(np.append(divisors, step))
    for prime in {value for value in rest if value > 1}:
        for _ in range(rest.count(prime)):
            divisors = distinct(np.append(divisors, divisors[divisors <= most // prime] * prime))
    return divisors
