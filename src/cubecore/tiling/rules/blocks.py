"""Rules about base blocks, depths, steps, flags and MDL (TCubeTiling structure, tables 1 to 3)."""

from cubecore.citations import cite
from cubecore.tiling.rules.extents import clamp, larger
from cubecore.tiling.rules.model import (
    Measure,
    Measurer,
    Remedy,
    RuleCase,
    nearest_multiple,
    rule,
    set_fields,
)
from cubecore.units import FRACTAL_ROWS, ceil_div

MAD_EXTENT_LIMIT = 4095
"""Largest m, n and k of one Mmad (Mmad, table 3)."""


def alignment(case: RuleCase, field: str, multiple: int, rule_fn: Measurer) -> Measure:
    """Measure whether a field is a multiple; the remedy is the nearest one."""
    value = getattr(case.tiling, field)
    return Measure(
        used=value,
        limit=multiple,
        relation="multiple",
        unit="",
        terms=lambda: field,
        remedy=lambda: set_fields(case, rule_fn, **{field: nearest_multiple(value, multiple)}),
    )


@rule("BASE-M-ALIGNMENT", "baseM in whole fractals", rows=("000/t2/alignment", "001/t2/alignment"))
def base_m_alignment(case: RuleCase) -> Measure:
    """Require baseM to be a multiple of 16. Both readings and editions agree."""
    return alignment(case, "baseM", FRACTAL_ROWS, base_m_alignment)


@rule("BASE-N-ALIGNMENT", "baseN in whole fractals", rows=("000/t2/alignment", "001/t2/alignment"))
def base_n_alignment(case: RuleCase) -> Measure:
    """Require baseN to be a multiple of 16. Both readings and editions agree."""
    return alignment(case, "baseN", FRACTAL_ROWS, base_n_alignment)


@rule("BASE-K-ALIGNMENT", "baseK in whole fractals", rows=("000/t2/alignment", "001/t2/alignment"))
def base_k_alignment(case: RuleCase) -> Measure:
    """Require baseK to be a multiple of C0 or of 16.

    Newer edition: of C0 if A is not transposed and B is, otherwise of 16; with 16 and an 8-bit type
    the block is padded to C0 on chip, and the capacity rules count the padding. Older edition:
    always of C0. Both readings agree.
    """
    plain = not case.problem.trans_a and case.problem.trans_b
    multiple = case.k_align if case.edition == "older" or plain else FRACTAL_ROWS
    return alignment(case, "baseK", multiple, base_k_alignment)


def _depth(case: RuleCase, depth: str, step_mn: str, step_k: str, rule_fn: Measurer) -> Measure:
    t = case.tiling
    product = getattr(t, step_mn) * getattr(t, step_k)
    value = getattr(t, depth)

    def remedy() -> Remedy | None:
        """Return the change that keeps the buffering as near as it can be."""
        wanted = 2 * product if value > 2 * product else product
        return set_fields(case, rule_fn, **{depth: wanted})

    return Measure(
        used=value,
        limit=(product, 2 * product),
        relation="in",
        unit="",
        terms=lambda: depth,
        limit_terms=lambda: f"{step_mn} x {step_k} or twice that",
        applies=product > 0,
        remedy=remedy,
    )


@rule("DEPTH-A1", "depthA1 is one or two steps of A", rows=("000/t2/depthA1", "001/t2/depthA1"))
def depth_a1(case: RuleCase) -> Measure:
    """Require depthA1 to be stepM * stepKa (single buffer) or twice that (double buffer).

    Both readings and editions agree. The editions differ in which blocks depthA1 counts: those in
    A1 (L1) in table 1 of the newer edition, those held for A2 (L0A) in table 1 of the older.
    cubecore counts A1, as table 2 of both editions does.
    """
    return _depth(case, "depthA1", "stepM", "stepKa", depth_a1)


@rule("DEPTH-B1", "depthB1 is one or two steps of B", rows=("000/t2/depthB1", "001/t2/depthB1"))
def depth_b1(case: RuleCase) -> Measure:
    """Require depthB1 to be stepN * stepKb (single buffer) or twice that (double buffer).

    Both readings and editions agree. The editions differ in which blocks depthB1 counts: those in
    B1 (L1) in table 1 of the newer edition, those held for B2 (L0B) in table 1 of the older.
    cubecore counts B1, as table 2 of both editions does.
    """
    return _depth(case, "depthB1", "stepN", "stepKb", depth_b1)


def _flag(field: str, rule_id: str, title: str, options: range, slug: str) -> Measurer:
    @rule(
        rule_id,
        title,
        rows=(f"000/t1/{slug}", f"001/t1/{slug}"),
        text=f"Require {field} to be {options[0]} or {options[-1]}. Readings and editions agree.",
    )
    def measure(case: RuleCase) -> Measure:
        """Measure the field."""
        return Measure(
            used=getattr(case.tiling, field),
            limit=tuple(options),
            relation="in",
            unit="",
            terms=lambda: field,
            remedy=lambda: set_fields(case, measure, **{field: options[0]}),
        )

    return measure


_flag("isBias", "IS-BIAS", "isBias is a flag", range(2), "isBias")
_flag(
    "iterateOrder",
    "ITERATE-ORDER",
    "iterateOrder is 0 (M first) or 1 (N first)",
    range(2),
    "iterateOrder",
)
_flag("dbL0A", "DB-L0A", "one or two buffers in L0A", range(1, 3), "dbL0A")
_flag("dbL0B", "DB-L0B", "one or two buffers in L0B", range(1, 3), "dbL0A")
_flag("dbL0C", "DB-L0C", "one or two buffers in L0C", range(1, 3), "dbL0A")


@rule("IS-BIAS-MATCHES", "isBias agrees with the problem", basis="the problem's bias")
def is_bias_matches(case: RuleCase) -> Measure | None:
    """Require isBias to be 1 if the problem has a bias, otherwise 0.

    Effective reading only: the pages do not state it.
    """
    if not case.effective:
        return None
    wanted = int(case.problem.bias is not None)
    return Measure(
        used=case.tiling.isBias,
        limit=wanted,
        relation="==",
        unit="",
        terms=lambda: "isBias",
        limit_terms=lambda: "the problem's bias",
        remedy=lambda: set_fields(case, is_bias_matches, isBias=wanted),
    )


def _mad_extent(field: str, rule_id: str) -> Measurer:
    @rule(
        rule_id,
        f"{field} is within one Mmad",
        basis=cite("002", "table 3"),
        text=(
            f"Require {field} to be at most 4095, the largest extent of one Mmad. Effective "
            "reading only: tables 1 to 3 of the TCubeTiling page do not repeat it."
        ),
    )
    def measure(case: RuleCase) -> Measure | None:
        """Measure the field."""
        if not case.effective:
            return None
        largest = MAD_EXTENT_LIMIT // case.k_align * case.k_align
        return Measure(
            used=getattr(case.tiling, field),
            limit=MAD_EXTENT_LIMIT,
            relation="<=",
            unit="",
            authority="Mmad",
            terms=lambda: field,
            remedy=lambda: set_fields(case, measure, **{field: largest}),
        )

    return measure


_mad_extent("baseM", "MMAD-M-EXTENT")
_mad_extent("baseN", "MMAD-N-EXTENT")
_mad_extent("baseK", "MMAD-K-EXTENT")


def _mdl_step(
    case: RuleCase, rule_fn: Measurer, *, step: str, step_k: str, depth: str, whole: str
) -> Measure | None:
    """Measure stepM (stepN) where K is not wholly in one step of the operand: fields by name."""
    if case.problem.template != "MDL":
        return None
    t = case.tiling
    k = t.singleCoreK if case.effective else getattr(t, whole)
    steps, value = getattr(t, step_k), getattr(t, step)
    base = clamp(t.baseK)

    def remedy() -> Remedy | None:
        """Return the change that keeps the buffering as near as it can be."""
        buffers = 2 if getattr(t, depth) >= 2 * value * steps else 1
        return set_fields(case, rule_fn, **{step: 1, depth: buffers * steps})

    return Measure(
        used=value,
        limit=1,
        relation="==",
        unit="",
        terms=lambda: f"{step_k} = {steps} base blocks of the {ceil_div(k, base)} of K: {step}",
        limit_terms=lambda: "one block at a time",
        applies=(ceil_div(k, base) > steps) & (t.baseK > 0) & (steps > 0),
        remedy=remedy,
    )


@rule(
    "MDL-STEP-M",
    "stepM is 1 unless a step of A holds all of K",
    rows=("000/t3/stepM", "001/t3/stepM"),
)
def mdl_step_m(case: RuleCase) -> Measure | None:
    """Require stepM to be 1 unless one step of A holds all of K. Template MDL only.

    Effective reading: K is the core's share, so the rule applies where ceil(singleCoreK / baseK) >
    stepKa. Documented reading: where Ka / baseK > stepKa, which differs when cores split K.
    """
    return _mdl_step(case, mdl_step_m, step="stepM", step_k="stepKa", depth="depthA1", whole="Ka")


@rule(
    "MDL-STEP-N",
    "stepN is 1 unless a step of B holds all of K",
    rows=("000/t3/stepN", "001/t3/stepN"),
)
def mdl_step_n(case: RuleCase) -> Measure | None:
    """Require stepN to be 1 unless one step of B holds all of K. Template MDL only.

    Effective reading: K is the core's share, so the rule applies where ceil(singleCoreK / baseK) >
    stepKb. Documented reading: where Kb / baseK > stepKb, which differs when cores split K.
    """
    return _mdl_step(case, mdl_step_n, step="stepN", step_k="stepKb", depth="depthB1", whole="Kb")


@rule(
    "MDL-K-STEP-MULTIPLE",
    "kaStepIter or kbStepIter is a multiple of the other",
    rows=("000/t3/k-step-multiple", "001/t3/k-step-multiple"),
)
def mdl_k_step_multiple(case: RuleCase) -> Measure | None:
    """Require one of kaStepIter and kbStepIter to be a multiple of the other. Template MDL only.

    kaStepIter = ceil(singleCoreK / (baseK * stepKa)), and kbStepIter likewise. Both readings and
    editions agree.
    """
    if case.problem.template != "MDL":
        return None
    t = case.tiling
    positive = (t.singleCoreK > 0) & (t.baseK > 0) & (t.stepKa > 0) & (t.stepKb > 0)
    a = clamp(ceil_div(t.singleCoreK, clamp(t.baseK * t.stepKa)))
    b = clamp(ceil_div(t.singleCoreK, clamp(t.baseK * t.stepKb)))
    # min(a, b) = -max(-a, -b), of integers and of arrays alike.
    more, fewer = larger(a, b), -larger(-a, -b)

    def remedy() -> Remedy | None:
        """Return the change that keeps the buffering as near as it can be."""
        step = min(t.stepKa, t.stepKb)
        if t.stepKa > step:
            buffers = 2 if t.depthA1 >= 2 * t.stepM * t.stepKa else 1
            changes = {"stepKa": step, "depthA1": buffers * max(t.stepM, 1) * step}
        else:
            buffers = 2 if t.depthB1 >= 2 * t.stepN * t.stepKb else 1
            changes = {"stepKb": step, "depthB1": buffers * max(t.stepN, 1) * step}
        return set_fields(case, mdl_k_step_multiple, **changes)

    return Measure(
        used=more,
        limit=fewer,
        relation="multiple",
        unit="",
        terms=lambda: (
            f"kaStepIter = ceil({t.singleCoreK} / ({t.baseK} x {t.stepKa})) = {a}, kbStepIter = "
            f"ceil({t.singleCoreK} / ({t.baseK} x {t.stepKb})) = {b}: the larger"
        ),
        applies=positive,
        remedy=remedy,
    )
