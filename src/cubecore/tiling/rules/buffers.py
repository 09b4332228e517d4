"""Rules about buffers: L0A, L0B, L0C and BiasTable (TCubeTiling structure, tables 1 and 2).

The effective reading is what our kernel and the hardware need: a full buffer is legal, and blocks
count as they lie on chip, an operand's stored rows padded to C0 and the other axis to 16. The
documented reading is the letter: a strict bound, nothing padded.
"""

from cubecore.aliases import Column
from cubecore.tiling.rules.model import Measure, RuleCase, rule, shrink, spelled
from cubecore.units import FRACTAL_ROWS, align_up


def bound(case: RuleCase) -> str:
    """Return the relation of what is used to the size: strict in the letter."""
    return "<=" if case.effective else "<"


def k_extent(case: RuleCase) -> Column:
    """Return baseK as it lies on chip, or as it is in the letter."""
    return align_up(case.tiling.baseK, case.k_align) if case.effective else case.tiling.baseK


def row_extent(case: RuleCase) -> Column:
    """Return baseM as it lies on chip, or as it is in the letter."""
    return align_up(case.tiling.baseM, case.row_align) if case.effective else case.tiling.baseM


def column_extent(case: RuleCase) -> Column:
    """Return baseN as it lies on chip, or as it is in the letter."""
    return align_up(case.tiling.baseN, case.column_align) if case.effective else case.tiling.baseN


@rule(
    "L0A-CAPACITY",
    "A's base blocks fit L0A",
    rows=("000/t2/l0a-capacity", "001/t2/l0a-capacity", "001/t1/baseM"),
    grows=True,
)
def l0a_capacity(case: RuleCase) -> Measure:
    """Require dbL0A blocks of baseM x baseK elements of A to fit L0A.

    Effective reading: baseK, and baseM if A is transposed, are rounded up to C0, and the blocks may
    fill L0A exactly. Documented reading: no rounding, and less than L0A; both editions agree.
    """
    t = case.tiling
    rows, k = row_extent(case), k_extent(case)
    return Measure(
        used=case.a.bytes_of(t.dbL0A * rows * k),
        limit=case.chip.l0a_bytes,
        relation=bound(case),
        unit="B",
        authority=case.chip.name,
        terms=lambda: (
            f"{t.dbL0A} x {spelled('baseM', t.baseM, rows)} x {spelled('baseK', t.baseK, k)}"
            f" x {case.a}"
        ),
        remedy=lambda: shrink(
            case,
            l0a_capacity,
            (("baseK", case.base_k_multiple), ("baseM", FRACTAL_ROWS), ("dbL0A", 1)),
        ),
    )


@rule(
    "L0B-CAPACITY",
    "B's base blocks fit L0B",
    rows=("000/t2/l0b-capacity", "001/t2/l0b-capacity", "001/t1/baseM"),
    grows=True,
)
def l0b_capacity(case: RuleCase) -> Measure:
    """Require dbL0B blocks of baseK x baseN elements of B to fit L0B.

    Effective reading: at most the buffer, with baseN padded to C0 unless B is transposed and baseK
    padded to C0. Documented reading: less than the buffer, without padding; both editions agree.
    """
    t = case.tiling
    columns, k = column_extent(case), k_extent(case)
    return Measure(
        used=case.b.bytes_of(t.dbL0B * columns * k),
        limit=case.chip.l0b_bytes,
        relation=bound(case),
        unit="B",
        authority=case.chip.name,
        terms=lambda: (
            f"{t.dbL0B} x {spelled('baseK', t.baseK, k)} x {spelled('baseN', t.baseN, columns)}"
            f" x {case.b}"
        ),
        remedy=lambda: shrink(
            case,
            l0b_capacity,
            (("baseK", case.base_k_multiple), ("baseN", FRACTAL_ROWS), ("dbL0B", 1)),
        ),
    )


@rule(
    "L0C-CAPACITY",
    "C's base blocks fit L0C",
    rows=("000/t2/l0c-capacity", "001/t2/l0c-capacity", "001/t1/baseM"),
    grows=True,
)
def l0c_capacity(case: RuleCase) -> Measure:
    """Require dbL0C blocks of baseM x baseN accumulators of 4 bytes to fit L0C.

    Effective reading: at most the buffer. Documented reading: less than the buffer. The newer
    edition counts int32 or float, the older int32, which is as large.
    """
    t = case.tiling
    return Measure(
        used=case.accumulator.bytes_of(t.dbL0C * t.baseM * t.baseN),
        limit=case.chip.l0c_bytes,
        relation=bound(case),
        unit="B",
        authority=case.chip.name,
        terms=lambda: f"{t.dbL0C} x {t.baseM} x {t.baseN} x {case.accumulator}",
        remedy=lambda: shrink(
            case,
            l0c_capacity,
            (("dbL0C", 1), ("baseN", FRACTAL_ROWS), ("baseM", FRACTAL_ROWS)),
        ),
    )


@rule(
    "BIAS-TABLE-CAPACITY",
    "the bias of a base block fits BiasTable",
    rows=("000/t2/biasT-capacity", "001/t2/biasT-capacity"),
    grows=True,
)
def bias_table_capacity(case: RuleCase) -> Measure | None:
    """Require baseN elements of bias to fit BiasTable.

    Effective reading: at most the table, which holds accumulators: a 16-bit bias is widened to 4
    bytes on its way in. Documented reading: less than the table, in the bias's own type. The rule
    does not apply without bias, nor on a chip whose BiasTable is absent or unknown.
    """
    bias = case.problem.bias_type
    size = case.chip.bt_bytes
    if bias is None or size is None:
        return None
    held = case.problem.accumulator_type if case.effective else bias
    t = case.tiling
    return Measure(
        used=held.bytes_of(t.baseN),
        limit=size,
        relation=bound(case),
        unit="B",
        authority=case.chip.name,
        terms=lambda: f"{t.baseN} x {held}",
        remedy=lambda: shrink(case, bias_table_capacity, (("baseN", FRACTAL_ROWS),)),
    )
