"""Memory layout of the matrices of a batch, and the fields of TCubeTiling that state it.

The layouts are the vendor's (asc-devkit, IterateBatch): NORMAL is [B, M, K] by [B, K, N]; BSNGD,
SBNGD and BNGS1S2 name axes of attention, where S and D of A are M and K, S of B is N, and a matrix
of a batch is one S by D for each of B, N and G. B, N and G of A and B are the same here.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cubecore.aliases import Column
from cubecore.chips import Chip
from cubecore.errors import NoLegalTilingError, Violation
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling, Tilings
from cubecore.tiling.rules.extents import ND_INNER_LIMIT, NO_INTRINSICS_CHECK_ARCH
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import align_up

_PAGE = "vendor's IterateBatch"
LAYOUTS_BY_ARCH: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("2201", "3510"), ("NORMAL", "BSNGD", "SBNGD", "BNGS1S2")),
    "2002": ("NORMAL",),
}
"""Layouts that IterateBatch takes (its table of matmuls; Kirin's is not listed apart)."""
_BATCHED_TYPES = ("float16", "bfloat16", "float32")
"""Inputs of IterateBatch that cubecore multiplies (its types, int32 being an output's)."""


def batch_violations(problem: Problem, chip: Chip) -> Iterator[Violation]:
    """Yield what a layout asks of the other keys and does not get, or what is given without one."""
    p = problem
    if p.layout is None:
        for name in ("heads", "groups", "batch_num"):
            if getattr(p, name) not in {None, 1}:
                yield Violation("layout", f"be given with {name}", "nothing")
        return
    layouts = LAYOUTS_BY_ARCH.get(chip.arch, ())
    if p.layout not in layouts:
        need = f"be {' or '.join(layouts)}" if layouts else "be left out"
        yield Violation("layout", f"{need} on {chip.name} ({_PAGE})", p.layout)
    if p.template != "NORM":
        yield Violation("template", f"be NORM with a layout ({_PAGE})", p.template)
    if p.a not in _BATCHED_TYPES:
        need = f"be {' or '.join(_BATCHED_TYPES)} with a layout ({_PAGE})"
        yield Violation("a", need, p.a)
    if p.epilogue.quant is not None:
        yield Violation(
            "epilogue.quant", f"be null with a layout ({_PAGE})", repr(p.epilogue.quant)
        )
    if p.batch % (p.heads * p.groups):
        need = f"be a multiple of heads * groups = {p.heads * p.groups}"
        yield Violation("batch", need, str(p.batch))
    for name in ("pos_a", "pos_b", "pos_c"):
        if getattr(p, name) != "GM":
            yield Violation(name, "be GM with a layout", getattr(p, name))
    yield from _axis_violations(p, chip)
    if p.batch_num is not None and together(p) % p.batch_num:
        axes = "heads * groups" if p.layout != "NORMAL" else "batch"
        need = f"divide {axes} = {together(p)} ({_PAGE})"
        yield Violation("batch_num", need, str(p.batch_num))


def _axis_violations(p: Problem, chip: Chip) -> Iterator[Violation]:
    if p.layout == "NORMAL":
        for name in ("heads", "groups"):
            if getattr(p, name) != 1:
                yield Violation(name, "be 1 with layout NORMAL", str(getattr(p, name)))
        return
    apart = p.layout in {"BSNGD", "SBNGD"}
    if apart:
        for name in ("format_a", "format_b", "format_c"):
            if getattr(p, name) != "ND":
                need = f"be ND with layout {p.layout} ({_PAGE})"
                yield Violation(name, need, getattr(p, name))
    for name, must, axes in (
        ("trans_a", False, "S and D are M and K of A"),
        ("trans_b", True, "S and D are N and K of B"),
    ):
        if getattr(p, name) is not must:
            need = f"be {str(must).lower()} with layout {p.layout}: {axes}"
            yield Violation(name, need, str(not must).lower())
    row = row_elements(p)
    checked = p.intrinsics_check or chip.arch == NO_INTRINSICS_CHECK_ARCH
    if apart and not checked and row > ND_INNER_LIMIT:
        need = f"be true for a stored row of {row} elements, over {ND_INNER_LIMIT} ({_PAGE})"
        yield Violation("intrinsics_check", need, "false")


def row_elements(problem: Problem) -> int:
    """Return the elements from one row of A to the next, as they are stored."""
    elements = problem.heads * problem.groups * problem.shared_k
    if problem.layout == "BSNGD":
        return elements
    if problem.layout == "SBNGD":
        return problem.batch * problem.shared_k
    return problem.k


def together(problem: Problem) -> int:
    """Return how many matrices one call may compute: a divisor of it (vendor's IterateBatch)."""
    return problem.batch if problem.layout == "NORMAL" else problem.heads * problem.groups


def batch_fields(problem: Problem) -> dict[str, int]:
    """Return the layout fields of a problem with a layout: the axes of A, B and C."""
    p = problem
    outer = {"B": p.batch // (p.heads * p.groups), "N": p.heads, "G": p.groups}
    values: dict[str, int] = {}
    for operand, inner in (
        ("A", {"S": p.m, "D": p.k}),
        ("B", {"S": p.n, "D": p.kb or p.k}),
        ("C", {"S1": p.m, "S2": p.n}),
    ):
        values |= {f"{operand}LayoutInfo{axis}": size for axis, size in (outer | inner).items()}
    return values


def with_batch(tiling: TCubeTiling, problem: Problem, chip: Chip) -> TCubeTiling:
    """Return a tiling with the fields of the problem's layout; as it is, if there is none.

    BatchNum is the most matrices of a batch whose shares of A and B fit L1 together, fractals
    whole, or what is asked for.

    Raises
    ------
    NoLegalTilingError
        If L1 does not hold one matrix, or as many as were asked for.
    """
    if problem.layout is None:
        return tiling
    most = largest_batch(tiling, problem, chip)
    asked = problem.batch_num
    if most == 0 or (asked is not None and asked > most):
        raise too_large(tiling, problem, chip)
    batched: Column = replace(tiling, **batch_fields(problem), BatchNum=asked or most)
    return batched  # type: ignore[no-any-return]


def largest_batch(tiling: TCubeTiling, problem: Problem, chip: Chip) -> int:
    """Return the most matrices that one call computes; 0 if one does not fit.

    NORMAL has no such limit: MatmulConfig says how the batch compares with L1.
    """
    count = together(problem)
    if problem.layout == "NORMAL":
        return count
    fit = chip.l1_user_bytes // int(_matrix_bytes(tiling, problem, chip))
    return max((n for n in range(1, min(fit, count) + 1) if count % n == 0), default=0)


def fits_together(shares: Column, problem: Problem, chip: Chip) -> Column:
    """Return for which shares of a core L1 holds as many matrices as are asked for, or one.

    Of the layouts that are loaded together: all but NORMAL.
    """
    return (problem.batch_num or 1) * _matrix_bytes(shares, problem, chip) <= chip.l1_user_bytes


def too_large(shares: Column, problem: Problem, chip: Chip) -> NoLegalTilingError:
    """Return the refusal of a batch of which L1 does not hold the smallest of some shares."""
    count = problem.batch_num or 1
    size = count * int(np.min(_matrix_bytes(shares, problem, chip)))
    need = f"fit L1's {chip.l1_user_bytes} B on {chip.name} ({_PAGE})"
    subject = f"{count} x a core's share of A and B of {problem.layout}"
    return NoLegalTilingError([Violation(subject, need, f"{size} B")])


def _matrix_bytes(tiling: Tilings, problem: Problem, chip: Chip) -> Column:
    """Return the bytes of a core's share of one matrix of A and of B, in whole fractals.

    Of one tiling, or of each of many.
    """
    case, t = RuleCase(tiling, problem, chip), tiling
    k = align_up(t.singleCoreK, case.k_align)
    a = case.a.bytes_of(align_up(t.singleCoreM, case.row_align) * k)
    return a + case.b.bytes_of(align_up(t.singleCoreN, case.column_align) * k)
