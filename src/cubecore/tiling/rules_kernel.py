"""Rules that no seed states: what a kernel needs to cut fractals that are stored as NZ.

An address inside a fractal cannot be the start of a transfer, so blocks that follow each other
along the inner axis of an NZ matrix start at whole fractals.
"""

from cubecore.tiling.rule_model import Case, Measure, Measurer, nearest_multiple, rule, set_fields
from cubecore.units import FRACTAL_ROWS

_BASIS = "NZ: a transfer starts at a fractal"


def _whole_fractals(
    case: Case, field: str, extent: int, fractal: int, rule_fn: Measurer
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


def _stored_inner(operand: str, own: str) -> Measurer:
    @rule(
        f"{operand.upper()}-NZ-BASE",
        f"base blocks of an NZ {operand.upper()} in whole fractals",
        basis=_BASIS,
        text=(
            f"Hold base{own} (baseK if the stored rows of {operand.upper()} run along K) to a "
            "multiple of C0 where several of them follow each other along the inner axis of an NZ "
            f"{operand.upper()}. documented: not stated."
        ),
    )
    def measure(case: Case) -> Measure | None:
        """Measure the block along the stored inner axis."""
        p = case.problem
        if not case.effective or getattr(p, f"format_{operand}") != "NZ":
            return None
        k_inner = not p.trans_a if operand == "a" else p.trans_b
        field = "baseK" if k_inner else f"base{own}"
        extent = p.k if k_inner else getattr(p, own.lower())
        kind = case.a if operand == "a" else case.b
        return _whole_fractals(case, field, extent, max(kind.c0, FRACTAL_ROWS), measure)

    return measure


_stored_inner("a", "M")
_stored_inner("b", "N")


@rule("C-NZ-SINGLE-CORE-N", "a core's columns of an NZ C in whole fractals", basis=_BASIS)
def c_nz_single_core_n(case: Case) -> Measure | None:
    """Hold singleCoreN to a multiple of 16 where C is stored as NZ. documented: not stated."""
    if not case.effective or case.problem.format_c != "NZ":
        return None
    return _whole_fractals(case, "singleCoreN", case.problem.n, FRACTAL_ROWS, c_nz_single_core_n)
