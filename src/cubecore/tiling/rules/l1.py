"""The rule about L1: A, B, bias and scales in it at a time (TCubeTiling structure, table 2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cubecore.aliases import Column
from cubecore.tiling.model.mx_type_para import PLAIN, scale_factor
from cubecore.tiling.model.problem import SCALE_GROUP
from cubecore.tiling.rules.buffers import column_extent, k_extent, row_extent
from cubecore.tiling.rules.extents import clamp, larger
from cubecore.tiling.rules.model import (
    Measure,
    Relaxation,
    Remedy,
    RuleCase,
    relaxed_remedy,
    rule,
    spelled,
)
from cubecore.units import FRACTAL_ROWS, SCALE_WORD_BYTES, align_up, ceil_div


@dataclass(frozen=True)
class _Part:
    """The bytes of one operand in L1, and the terms that they are computed from."""

    size_bytes: Column
    spell: Callable[[], str]


@rule(
    "L1-CAPACITY",
    "A's and B's blocks, bias and scales fit L1",
    rows=("000/t2/l1-capacity", "001/t2/l1-capacity"),
    grows=True,
)
def l1_capacity(case: RuleCase) -> Measure:
    """Require depthA1 blocks of A, depthB1 blocks of B and baseN elements of bias to fit L1.

    Effective reading, both editions: blocks count as they lie on chip: baseM padded to C0 if A is
    transposed, baseN padded to C0 unless B is transposed, baseK padded to C0, with the bias beside
    them. Of an operand in TSCM the core's whole share counts (vendor's Matmul pages, MatmulType),
    and in MxMatmul its scale. Another scale counts the part that belongs to the blocks in L1, times
    mxTypePara's factor along K (asc-devkit, MxFP4 Matmul examples: both buffers hold one load), or
    one load with both factors where that is more. The size is the physical one: the vendor's
    published kernel fills it, although the tiling library leaves some bytes free, which the
    documented readings do not count. Documented reading, newer edition: CeilDiv(baseM,
    C0) for a transposed A and CeilDiv(baseN, C0) for a B that is not, as printed, without the
    factor C0; bias counts. Documented reading, older edition: plain
    matmuls, without bias.
    """
    parts = tuple(_parts(case))
    return Measure(
        used=sum(part.size_bytes for part in parts),
        limit=case.chip.l1_bytes if case.effective else case.chip.l1_user_bytes,
        relation="<=",
        unit="B",
        authority=case.chip.name,
        terms=lambda: " + ".join(part.spell() for part in parts),
        remedy=lambda: _remedy(case),
    )


def _parts(case: RuleCase) -> Iterator[_Part]:
    problem = case.problem
    in_tscm = case.effective
    yield _a_share(case) if in_tscm and problem.pos_a == "TSCM" else _a_blocks(case)
    yield _b_share(case) if in_tscm and problem.pos_b == "TSCM" else _b_blocks(case)
    bias, t = problem.bias_type, case.tiling
    if bias is not None and (case.effective or case.edition == "newer"):
        yield _Part(bias.bytes_of(t.baseN), lambda: f"{t.baseN} x {bias}")
    if problem.scales_columns and case.effective:
        words = SCALE_WORD_BYTES * t.baseN
        yield _Part(words, lambda: f"{t.baseN} x {SCALE_WORD_BYTES} B of scales")
    if problem.mx and case.effective:
        yield _scale_share(case, "A") if problem.pos_a == "TSCM" else _scale_load(case, "A")
        yield _scale_share(case, "B") if problem.pos_b == "TSCM" else _scale_load(case, "B")


def _as_printed(case: RuleCase) -> bool:
    return not case.effective and case.edition == "newer"


def _a_blocks(case: RuleCase) -> _Part:
    t, kind, rows, k = case.tiling, case.a, row_extent(case), k_extent(case)
    divides = _as_printed(case) and case.problem.trans_a
    if divides:
        rows = ceil_div(t.baseM, kind.c0)

    def spell() -> str:
        """Spell A's blocks."""
        m = f"ceil({t.baseM} / {kind.c0})" if divides else spelled("baseM", t.baseM, rows)
        return f"{t.depthA1} x {m} x {k} x {kind}"

    return _Part(kind.bytes_of(t.depthA1 * rows * k), spell)


def _b_blocks(case: RuleCase) -> _Part:
    t, kind, columns, k = case.tiling, case.b, column_extent(case), k_extent(case)
    divides = _as_printed(case) and not case.problem.trans_b
    if divides:
        columns = ceil_div(t.baseN, kind.c0)

    def spell() -> str:
        """Spell B's blocks."""
        n = f"ceil({t.baseN} / {kind.c0})" if divides else spelled("baseN", t.baseN, columns)
        return f"{t.depthB1} x {k} x {n} x {kind}"

    return _Part(kind.bytes_of(t.depthB1 * columns * k), spell)


def _a_share(case: RuleCase) -> _Part:
    t = case.tiling
    m, k = align_up(t.singleCoreM, case.row_align), align_up(t.singleCoreK, case.k_align)
    return _Part(case.a.bytes_of(m * k), lambda: f"{m} x {k} x {case.a} in TSCM")


def _b_share(case: RuleCase) -> _Part:
    t = case.tiling
    n, k = align_up(t.singleCoreN, case.column_align), align_up(t.singleCoreK, case.k_align)
    return _Part(case.b.bytes_of(n * k), lambda: f"{k} x {n} x {case.b} in TSCM")


def _scale_load(case: RuleCase, operand: str) -> _Part:
    """Return what L1 holds of a scale: a byte for 32 elements along K of each block that it holds.

    mxTypePara acts in the MDL template only, where a load may bring the scales of more blocks.
    """
    t = case.tiling
    if operand == "A":
        base, depth, loaded, axes = t.baseM, t.depthA1, t.stepM * t.stepKa, ("Ka", "M")
    else:
        base, depth, loaded, axes = t.baseN, t.depthB1, t.stepN * t.stepKb, ("Kb", "N")
    if case.problem.template == "MDL":
        # Held: a scale for each block in L1, times the factor along K. Loaded at once: a step's,
        # times both factors. Whichever is more must fit.
        along, across = (clamp(scale_factor(t.mxTypePara, f"scaleFactor{x}")) for x in axes)
        depth, loaded = depth * along, loaded * along * across
    blocks = larger(depth, loaded)
    rows, groups = align_up(base, FRACTAL_ROWS), _groups(t.baseK)
    return _Part(blocks * rows * groups, lambda: f"{blocks} x {rows} x {groups} of scale{operand}")


def _scale_share(case: RuleCase, operand: str) -> _Part:
    """Return a core's share of a scale, which lies in TSCM with what it scales."""
    t = case.tiling
    count = align_up(t.singleCoreM if operand == "A" else t.singleCoreN, FRACTAL_ROWS)
    groups = _groups(t.singleCoreK)
    return _Part(count * groups, lambda: f"{count} x {groups} of scale{operand} in TSCM")


def _groups(k: Column) -> Column:
    return align_up(ceil_div(k, SCALE_GROUP), 2)


def _remedy(case: RuleCase) -> Remedy | None:
    """Return smaller buffers or blocks; if that is not enough, plain scales, operands from GM."""
    plain = {"mxTypePara": PLAIN} if case.problem.mx else {}
    from_gm = {key: "GM" for key in ("pos_a", "pos_b") if getattr(case.problem, key) == "TSCM"}
    relaxations: tuple[Relaxation, ...] = (({}, {}), (plain, {}), ({}, from_gm), (plain, from_gm))
    return relaxed_remedy(case, l1_capacity, relaxations, _shrinkable)


def _shrinkable(case: RuleCase) -> tuple[tuple[str, int], ...]:
    """Return what to make smaller, in the order of preference, with its multiple."""
    t = case.tiling
    return (
        ("depthA1", max(t.stepM * t.stepKa, 1)),
        ("depthB1", max(t.stepN * t.stepKb, 1)),
        ("baseK", case.base_k_multiple),
        ("baseM", FRACTAL_ROWS),
        ("baseN", FRACTAL_ROWS),
        ("depthA1", 1),
        ("depthB1", 1),
    )
