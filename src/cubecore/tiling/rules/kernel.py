"""Rules of the kernel alone: the multiples that it needs to cut fractals stored as NZ.

An address inside a fractal cannot be the start of a transfer, so blocks that follow each other
along the inner axis of an NZ matrix start at whole fractals.
"""

from cubecore.tiling.rules.model import (
    Measure,
    Measurer,
    RuleCase,
    nearest_multiple,
    rule,
    set_fields,
    shrink,
)
from cubecore.units import FRACTAL_ROWS, SCALE_WORD_BYTES

_BASIS = "NZ: a transfer starts at a fractal"
_SCALES = "asc-devkit, DataCopy L1 to Fixpipe buffer: a scale is a word of 64 bits"


def _whole_fractals(
    case: RuleCase, field: str, extent: int, fractal: int, rule_fn: Measurer
) -> Measure | None:
    """Measure blocks of `field` along an axis of `extent`, which one block may cover whole."""
    value = getattr(case.tiling, field)
    return Measure(
        used=value,
        limit=fractal,
        relation="multiple",
        unit="",
        terms=lambda: field,
        applies=value < extent,
        remedy=lambda: set_fields(case, rule_fn, **{field: nearest_multiple(value, fractal)}),
    )


def _stored_inner(operand: str, letter: str) -> Measurer:
    @rule(
        f"{operand.upper()}-NZ-BASE",
        f"base blocks of an NZ {operand.upper()} in whole fractals",
        basis=_BASIS,
        text=(
            f"Require base{letter} (baseK if the stored rows of {operand.upper()} run along K) to "
            "be a multiple of C0 where several base blocks follow each other along the inner axis "
            f"of an NZ {operand.upper()}. Effective reading only: the pages do not state it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the block along the stored inner axis."""
        p = case.problem
        if not case.effective or getattr(p, f"format_{operand}") != "NZ":
            return None
        k_inner = not p.trans_a if operand == "a" else p.trans_b
        field = "baseK" if k_inner else f"base{letter}"
        extent = p.k if k_inner else getattr(p, letter.lower())
        kind = case.a if operand == "a" else case.b
        return _whole_fractals(case, field, extent, max(kind.c0, FRACTAL_ROWS), measure)

    return measure


_stored_inner("a", "M")
_stored_inner("b", "N")


@rule("FB-CAPACITY", "scales of a tile's columns fit the Fixpipe buffer", basis=_SCALES)
def fb_capacity(case: RuleCase) -> Measure | None:
    """Require a word of 64 bits for each of baseN columns to fit the Fixpipe buffer.

    Applies where fixpipe takes a scale for each column. Effective reading only: the pages do not
    state it.
    """
    chip, base_n = case.chip, case.tiling.baseN
    if not case.effective or not case.problem.scales_columns or chip.fb_bytes is None:
        return None
    return Measure(
        used=SCALE_WORD_BYTES * base_n,
        limit=chip.fb_bytes,
        relation="<=",
        unit="B",
        terms=lambda: f"{base_n} x {SCALE_WORD_BYTES} B of scales",
        remedy=lambda: shrink(case, fb_capacity, [("baseN", FRACTAL_ROWS)]),
    )


def _columns_of_c(field: str, rule_id: str, title: str) -> None:
    @rule(
        rule_id,
        title,
        basis=_BASIS,
        text=(
            f"Require {field} to be a multiple of 16 where C is stored as NZ, of 32 for an 8-bit C "
            "(fixpipe merges two fractals of L0C). Effective reading only: the pages do not state "
            "it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the columns."""
        p = case.problem
        if not case.effective or p.format_c != "NZ":
            return None
        return _whole_fractals(case, field, p.n, p.c_fractal_columns, measure)


_columns_of_c("singleCoreN", "C-NZ-SINGLE-CORE-N", "a core's columns of an NZ C in whole fractals")
_columns_of_c("baseN", "C-NZ-BASE-N", "a tile's columns of an NZ C in whole fractals")
