"""Rules about UB: what a matmul takes of it for a while, and what lies there (table 1).

Without ND2NZ and NZ2ND on the way, operands change their layout in UB, a step of L1 at a time. The
pages name the four lengths and not what they are; the numbers here are those of the vendor's tiling
library, whose 75 recorded answers for Ascend310P3 they all reproduce.
"""

from functools import reduce

from cubecore.aliases import Column, Json, JsonMapping
from cubecore.dtypes import ElementType
from cubecore.tiling.model.mx_type_para import PLAIN
from cubecore.tiling.rules.extents import larger
from cubecore.tiling.rules.model import (
    Measure,
    Relaxation,
    Remedy,
    RuleCase,
    relaxed_remedy,
    rule,
    set_fields,
)
from cubecore.units import FRACTAL_ROWS

UB_CONVERSION_ARCHS = ("2002", "1001", "m100")
"""Architectures that convert layouts in UB: 2002 by the library's answers; 1001 and m100, which
have no fixpipe either, by inference. Elsewhere all four lengths are 0."""
UB_POSITIONS = ("VECIN", "VECOUT", "VECCALC")
"""Positions that are UB (vendor's TPosition)."""
CONFLICT_ELEMENTS = 256
"""A row of a multiple of this many elements is lengthened by 16 in UB (the library's answers)."""
_ROWS = ("000/t1/transLength", "001/t1/transLength")


def converts_in_ub(case: RuleCase) -> bool:
    """True if the chip changes the layout of operands in UB."""
    return case.chip.arch in UB_CONVERSION_ARCHS


def ub_lengths(case: RuleCase) -> Json:
    """Return A1Length, B1Length, C1Length and BiasLength in bytes, 0 for what needs no UB.

    A and B: one step of L1, rows as stored, unless they are NZ or in TSCM already. C: a base block,
    if it leaves to global memory or as ND. Bias: baseN of it.
    """
    p, t = case.problem, case.tiling
    lengths: Json = dict.fromkeys(("A1Length", "B1Length", "C1Length", "BiasLength"), 0)
    if not converts_in_ub(case):
        return lengths
    if p.format_a == "ND" and p.pos_a != "TSCM":
        outer, inner = t.stepM * t.baseM, t.stepKa * t.baseK
        lengths["A1Length"] = _step(case.a, *((inner, outer) if p.trans_a else (outer, inner)))
    if p.format_b == "ND" and p.pos_b != "TSCM":
        outer, inner = t.stepKb * t.baseK, t.stepN * t.baseN
        lengths["B1Length"] = _step(case.b, *((inner, outer) if p.trans_b else (outer, inner)))
    if p.pos_c == "GM" or p.format_c == "ND":
        lengths["C1Length"] = p.c_type.bytes_of(t.baseM * t.baseN)
    if p.bias_type is not None:
        lengths["BiasLength"] = p.bias_type.bytes_of(t.baseN)
    return lengths


def _step(kind: ElementType, rows: Column, columns: Column) -> Column:
    return kind.bytes_of(rows * (columns + FRACTAL_ROWS * (columns % CONFLICT_ELEMENTS == 0)))


def trans_length(case: RuleCase) -> Column:
    """Return transLength: the largest of the four lengths, since they share the space in turn."""
    return reduce(larger, ub_lengths(case).values())


def derived_fields(case: RuleCase) -> Json:
    """Return the fields that follow from the rest of a tiling, where the chip or matmul has them.

    A planner writes them into its candidates: transLength on chips that convert layouts in UB, and
    an mxTypePara that loads scales together with what they scale in MxMatmul.
    """
    fields = {"transLength": trans_length(case)} if converts_in_ub(case) else {}
    return fields | ({"mxTypePara": PLAIN} if case.problem.mx else {})


def _spelled(lengths: JsonMapping) -> str:
    return "max(" + ", ".join(f"{name} {value}" for name, value in lengths.items()) + ")"


@rule("TRANS-LENGTH", "transLength is the UB space of conversions", rows=_ROWS)
def trans_length_rule(case: RuleCase) -> Measure | None:
    """Require transLength to be max(A1Length, B1Length, C1Length, BiasLength).

    Effective reading: at least that, and only on chips that convert layouts in UB, since nothing
    else reads the field. Documented reading, both editions: exactly that, and 0 on other chips. The
    lengths: a step of A and of B in L1 (not of NZ, not in TSCM), its rows lengthened by 16 elements
    where they are multiples of 256; a base block of C; baseN of bias.
    """
    if case.effective and not converts_in_ub(case):
        return None
    wanted = trans_length(case)
    return Measure(
        used=case.tiling.transLength,
        limit=wanted,
        relation=">=" if case.effective else "==",
        unit="B",
        terms=lambda: "transLength",
        limit_terms=lambda: _spelled(ub_lengths(case)),
        remedy=lambda: set_fields(case, trans_length_rule, transLength=wanted),
    )


@rule(
    "UB-CAPACITY",
    "operands and conversions fit UB",
    rows=_ROWS,
    grows=True,
)
def ub_capacity(case: RuleCase) -> Measure | None:
    """Require the space of layout conversions and the operands in UB to fit UB.

    Effective reading: the core's share of an A or B in UB, which must lie there as a whole
    (vendor's Matmul pages, MatmulType), a base block of a C in UB, and the space of conversions.
    Documented reading, both editions: the space of conversions alone. The size is the part of UB
    that a kernel may use; the vendor's library plans more than that for 310P.
    """
    parts: Json = {}
    if converts_in_ub(case):
        parts["conversions"] = trans_length(case)
    if case.effective:
        parts |= _operands_in_ub(case)
    if not parts:
        return None
    return Measure(
        used=sum(parts.values()),
        limit=case.chip.ub_user_bytes,
        relation="<=",
        unit="B",
        authority=case.chip.name,
        terms=lambda: " + ".join(f"{name} {value}" for name, value in parts.items()),
        remedy=lambda: _remedy(case),
    )


def _operands_in_ub(case: RuleCase) -> Json:
    p, t = case.problem, case.tiling
    sizes = {}
    if p.pos_a in UB_POSITIONS:
        sizes["A"] = case.a.bytes_of(t.singleCoreM * t.singleCoreK)
    if p.pos_b in UB_POSITIONS:
        sizes["B"] = case.b.bytes_of(t.singleCoreK * t.singleCoreN)
    if p.pos_c in UB_POSITIONS:
        sizes["C"] = p.c_type.bytes_of(t.baseM * t.baseN)
    return sizes


def _remedy(case: RuleCase) -> Remedy | None:
    """Return smaller steps, blocks or shares; if that is not enough, operands from GM."""
    keys = ("pos_a", "pos_b", "pos_c")
    from_gm = {key: "GM" for key in keys if getattr(case.problem, key) in UB_POSITIONS}
    fields = (
        *((name, 1) for name in ("stepKa", "stepKb", "stepM", "stepN")),
        ("baseN", FRACTAL_ROWS),
        ("baseM", FRACTAL_ROWS),
        ("baseK", case.base_k_multiple),
    )
    each: list[Relaxation] = [({}, {key: "GM"}) for key in from_gm]
    return relaxed_remedy(case, ub_capacity, [({}, {}), *each, ({}, from_gm)], lambda _: fields)
