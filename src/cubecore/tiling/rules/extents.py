"""Rules about cores and sizes: usedCoreNum, the 65535 of ND operands, singleCoreM, N and K."""

import numpy as np

from cubecore.aliases import Column
from cubecore.citations import EDITIONS
from cubecore.tiling.rules.model import (
    Measure,
    Measurer,
    Remedy,
    RuleCase,
    no_remedy,
    rule,
    set_fields,
)
from cubecore.units import align_up, ceil_div

ND_INNER_LIMIT = 65535
"""Elements of a stored row that one transfer can stride over (TCubeTiling structure, both editions,
table 1)."""
NO_INTRINSICS_CHECK_ARCH = "3510"
"""Ascend 950, which TCubeTiling structure, newer edition exempts from that limit."""


def larger(a: Column, b: Column) -> Column:
    """Return the larger of two integers, element by element where one is an array."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return np.maximum(a, b)


def clamp(value: Column, low: int = 1) -> Column:
    """Return `value`, at least `low`; an integer or an integer array."""
    return larger(value, low)


def _positive(field: str, rule_id: str, least: int, rows: tuple[str, ...]) -> Measurer:
    @rule(
        rule_id,
        f"{field} is greater than 0",
        rows=rows,
        basis="nothing can be computed with less",
        text=(
            f"Require {field} to be at least 1. The effective reading always applies the rule, the "
            "documented reading only where the edition states it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the field."""
        stated = any(row.startswith(EDITIONS[case.edition]) for row in rows)
        if not stated and not case.effective:
            return None
        value = getattr(case.tiling, field)
        return Measure(
            used=value,
            limit=1,
            relation=">=",
            unit="",
            terms=lambda: field,
            remedy=lambda: set_fields(case, measure, **{field: least}),
        )

    return measure


def _both(slug: str) -> tuple[str, ...]:
    return (f"000/{slug}", f"001/{slug}")


for _field, _id, _least, _rows in (
    ("usedCoreNum", "USED-CORE-NUM", 1, _both("t1/usedCoreNum")),
    ("singleCoreM", "SINGLE-CORE-M", 1, ("000/t1/singleCoreM",)),
    ("singleCoreN", "SINGLE-CORE-N", 1, ("000/t1/singleCoreM",)),
    ("singleCoreK", "SINGLE-CORE-K", 1, ("000/t1/singleCoreM",)),
    ("baseM", "BASE-M", 16, ("000/t1/baseM",)),
    ("baseN", "BASE-N", 16, ("000/t1/baseM",)),
    ("baseK", "BASE-K", 16, ("000/t1/baseM",)),
    ("depthA1", "DEPTH-A1", 1, _both("t1/depthA1")),
    ("depthB1", "DEPTH-B1", 1, _both("t1/depthA1")),
    ("stepM", "STEP-M", 1, _both("t1/stepM")),
    ("stepN", "STEP-N", 1, _both("t1/stepM")),
    ("stepKa", "STEP-KA", 1, _both("t1/stepM")),
    ("stepKb", "STEP-KB", 1, _both("t1/stepM")),
):
    _positive(_field, f"{_id}-POSITIVE", _least, _rows)


@rule(
    "USED-CORE-NUM-RANGE",
    "usedCoreNum is at most the number of cores",
    rows=("000/t2/usedCoreNum", "001/t2/usedCoreNum", "000/t1/usedCoreNum", "001/t1/usedCoreNum"),
)
def used_core_num_range(case: RuleCase) -> Measure:
    """Require usedCoreNum to be at most the number of cores.

    A cube launch counts AI Cores, a mix launch vector cores. Effective reading: the number that the
    problem asks for, at most the chip's. Documented reading: the chip's.
    """
    t = case.tiling
    chips = case.problem.core_limit(case.chip)
    limit = case.problem.core_count(case.chip) if case.effective else chips
    return Measure(
        used=t.usedCoreNum,
        limit=limit,
        relation="<=",
        unit="",
        authority=case.chip.name if limit == chips else "the request",
        terms=lambda: "usedCoreNum",
        remedy=lambda: set_fields(case, used_core_num_range, usedCoreNum=limit),
    )


@rule(
    "USED-CORE-NUM-PRODUCT",
    "usedCoreNum is the number of blocks of C",
    rows=("000/t1/usedCoreNum", "001/t1/usedCoreNum"),
    counts=True,
)
def used_core_num_product(case: RuleCase) -> Measure:
    """Require usedCoreNum to be the number of singleCoreM x singleCoreN blocks of C.

    Effective reading: ceil(M / singleCoreM) * ceil(N / singleCoreN), times ceil(K / singleCoreK) if
    K is split. Documented reading: (M / singleCoreM) * (N / singleCoreN), a real division,
    multiplied out: usedCoreNum * singleCoreM * singleCoreN = M * N. The vendor's own answers
    break the latter whenever a tail is ragged.
    """
    t = case.tiling
    applies = (t.singleCoreM > 0) & (t.singleCoreN > 0) & (t.singleCoreK > 0)
    if not case.effective:
        return Measure(
            used=t.usedCoreNum * t.singleCoreM * t.singleCoreN,
            limit=t.M * t.N,
            relation="==",
            unit="",
            terms=lambda: (
                f"usedCoreNum x singleCoreM x singleCoreN = {t.usedCoreNum} x "
                f"{t.singleCoreM} x {t.singleCoreN}"
            ),
            limit_terms=lambda: f"M x N = {t.M} x {t.N}",
            applies=applies,
            remedy=lambda: _exact_division(case),
        )
    blocks = ceil_div(t.M, clamp(t.singleCoreM)) * ceil_div(t.N, clamp(t.singleCoreN))
    k = case.problem.shared_k
    if case.problem.split_k:
        blocks = blocks * ceil_div(k, clamp(t.singleCoreK))

    def limit_terms() -> str:
        """Spell the blocks of the grid."""
        text = f"ceil({t.M} / {t.singleCoreM}) x ceil({t.N} / {t.singleCoreN})"
        return f"{text} x ceil({k} / {t.singleCoreK})" if case.problem.split_k else text

    return Measure(
        used=t.usedCoreNum,
        limit=blocks,
        relation="==",
        unit="",
        terms=lambda: "usedCoreNum",
        limit_terms=limit_terms,
        applies=applies,
        remedy=lambda: set_fields(case, used_core_num_product, usedCoreNum=blocks),
    )


def _exact_division(case: RuleCase) -> Remedy | None:
    t = case.tiling
    blocks, rest = divmod(t.M * t.N, t.singleCoreM * t.singleCoreN)
    if rest == 0:
        return set_fields(case, used_core_num_product, usedCoreNum=blocks)
    return set_fields(case, used_core_num_product, usedCoreNum=1, singleCoreM=t.M, singleCoreN=t.N)


def _inner_extent(case: RuleCase, operand: str, rows: str, columns: str) -> Measure | None:
    """Measure the stored row length of an ND operand, [rows, columns] if not transposed."""
    if getattr(case.problem, f"format_{operand}") != "ND":
        return None
    if case.edition == "newer" and (
        case.effective
        or case.problem.intrinsics_check
        or case.chip.arch == NO_INTRINSICS_CHECK_ARCH
    ):
        return None
    # A stored row runs along `columns`, of a transposed operand along `rows`: storing it the other
    # way makes the other extent the row.
    transposed = getattr(case.problem, f"trans_{operand}")
    name = rows if transposed else columns
    other = columns if transposed else rows
    value, outer = getattr(case.tiling, name), getattr(case.tiling, other)

    def remedy() -> Remedy | None:
        """Return the change of the request that shortens the rows."""
        if case.edition == "newer":
            return Remedy("enable intrinsicsCheck", problem={"intrinsics_check": True})
        if outer > ND_INNER_LIMIT:
            return no_remedy()
        how = "plain" if transposed else "transposed"
        text = f"store {operand.upper()} {how}: its rows are then {outer} long"
        return Remedy(text, problem={f"trans_{operand}": not transposed})

    return Measure(
        used=value,
        limit=ND_INNER_LIMIT,
        relation="<=",
        unit="",
        authority=f"an ND row of {operand.upper()}",
        terms=lambda: name,
        remedy=remedy,
    )


_INNER_TEXT = """Require a stored row of an ND operand to be at most 65535 elements long.

Older edition, both readings: a limit. Newer edition, documented reading: longer rows need
intrinsicsCheck, except on Ascend 950. Newer edition, effective reading: advice only, because the
setting belongs to the kernel and not to the tiling, and our kernel moves such rows one by one."""


@rule(
    "A-INNER-EXTENT",
    "rows of an ND A are at most 65535 elements",
    rows=("000/t1/M", "001/t1/M"),
    text=_INNER_TEXT,
)
def a_inner_extent(case: RuleCase) -> Measure | None:
    """Measure Ka, or M if A is transposed."""
    return _inner_extent(case, "a", "M", "Ka")


@rule(
    "B-INNER-EXTENT",
    "rows of an ND B are at most 65535 elements",
    rows=("000/t1/M", "001/t1/M"),
    text=_INNER_TEXT,
)
def b_inner_extent(case: RuleCase) -> Measure | None:
    """Measure N, or Kb if B is transposed."""
    return _inner_extent(case, "b", "Kb", "N")


def _single_core_extent(
    case: RuleCase, single: str, whole: str, align: int, rule_fn: Measurer
) -> Measure:
    t = case.tiling
    extent = getattr(t, whole)
    limit = align_up(extent, align) if case.effective else extent
    rounded = f"{whole} = {extent} rounded up to {align}"
    return Measure(
        used=getattr(t, single),
        limit=limit,
        relation="<=",
        unit="",
        authority=rounded if case.effective else whole,
        terms=lambda: single,
        remedy=lambda: set_fields(case, rule_fn, **{single: extent}),
    )


_SINGLE_ROWS = ("000/t1/singleCoreM", "001/t1/singleCoreM")


@rule("SINGLE-CORE-M", "singleCoreM is at most M", rows=_SINGLE_ROWS)
def single_core_m(case: RuleCase) -> Measure:
    """Require singleCoreM to be at most M.

    Effective reading: at most M rounded up to the fractal (16, or C0 if A is transposed), because
    the vendor's library rounds up and a kernel computes whole fractals. Documented reading: M.
    """
    return _single_core_extent(case, "singleCoreM", "M", case.row_align, single_core_m)


@rule("SINGLE-CORE-N", "singleCoreN is at most N", rows=_SINGLE_ROWS)
def single_core_n(case: RuleCase) -> Measure:
    """Require singleCoreN to be at most N.

    Effective reading: at most N rounded up to the fractal (16, or C0 unless B is transposed).
    Documented reading: N.
    """
    return _single_core_extent(case, "singleCoreN", "N", case.column_align, single_core_n)


@rule("SINGLE-CORE-K", "cores do not split K", rows=_SINGLE_ROWS)
def single_core_k(case: RuleCase) -> Measure | None:
    """Require singleCoreK to be K, unless split_k is set. Both readings and editions agree.

    K is the shorter of Ka and Kb: the matmul runs over the elements that both operands have.
    """
    if case.problem.split_k:
        return None
    k = case.problem.shared_k
    return Measure(
        used=case.tiling.singleCoreK,
        limit=k,
        relation="==",
        unit="",
        terms=lambda: "singleCoreK",
        limit_terms=lambda: "Ka" if case.problem.kb is None else "min(Ka, Kb)",
        remedy=lambda: set_fields(case, single_core_k, singleCoreK=k),
    )
