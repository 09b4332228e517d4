"""Verification: every element of C against an independent matmul and a limit of its own."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from cubecore.answers.run import Verification
from cubecore.arrays import Array
from cubecore.chips.products import L0A_NZ_ARCHS
from cubecore.machine.blas.threads import one_thread_each
from cubecore.numerics import HF32_ROUNDINGS, HF32_SHORT_ROUNDINGS, round_hf32
from cubecore.tiling.model.problem import SCALE_GROUP, Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import ceil_div
from cubecore.workflows.data.float32_screen import Screen, is_worth_screening
from cubecore.workflows.data.limits import ErrorLimits, Judged, limit_policy
from cubecore.workflows.data.operands import Operands, matrices, shared_scales
from cubecore.workflows.data.product_sums import Factors
from cubecore.workflows.data.stored_layout import from_nz

_ROWS_AT_ONCE = 256
"""Rows of C that are judged together: float64 takes memory."""
_THREADS_FROM = 1 << 28
"""Matmuls of so many multiplications are verified by as many threads as there are processors."""
_CHAIN_ELEMENTS = 1 << 22
"""Terms of sequential sums that are held at once."""


def verify(
    problem: Problem, operands: Operands, result: Array, tiling: TCubeTiling
) -> Verification:
    """Compare `result`, as stored, with the matmul of the operands in float64.

    Integers must be exact; a sum that leaves int32 is clamped after each baseK of K, as L0C is.
    A float may be off by six standard deviations of the roundings of a float32 sum, by the drift of
    a sequential float32 sum where terms repeat, and by the rounding to C's type. NaN and infinity
    must be where the matmul has them.
    """
    p = problem
    pairs = factors(p, operands)
    shape = (p.batch, p.m, p.n)
    c = (from_nz(result, p.m, p.n) if p.format_c == "NZ" else result).reshape(shape)
    scale = operands.scale if p.scales_columns else p.epilogue.scale
    scales = None if scale is None else np.asarray(scale, np.float32)
    slices = ceil_div(p.k, tiling.singleCoreK)
    limits = ErrorLimits(p, scales, p.k + (operands.bias is not None) + slices)
    tasks: list[Callable[[], Judged]] = []
    for i in range(p.batch):
        sums = Factors(p, pairs[0][i], pairs[1][i], operands.bias, tiling.baseK)
        tasks += _tasks(limits, sums, c[i])
    return _combined(p, [part for part in _performed(p, tasks) if part.error.size])


def factors(problem: Problem, operands: Operands) -> tuple[Array, Array]:
    """Return A as [batch, m, k] and B as [batch, k, n], scaled, or rounded to HF32, as is asked."""
    a, b = matrices(problem, operands)
    if problem.mx:
        k, (of_a, of_b) = problem.k, shared_scales(problem, operands)
        of_a, of_b = (x.repeat(SCALE_GROUP, axis=2)[:, :, :k] for x in (of_a, of_b))
        return a.astype(np.float64) * of_a, b.astype(np.float64) * of_b.swapaxes(1, 2)
    if problem.hf32:
        short = problem.chip_record.arch in L0A_NZ_ARCHS
        rounding = (HF32_SHORT_ROUNDINGS if short else HF32_ROUNDINGS)[0]
        return round_hf32(a, rounding), round_hf32(b, rounding)
    return a, b


def _performed(problem: Problem, tasks: list[Callable[[], Judged]]) -> list[Judged]:
    """Return what the tasks find; large matmuls take every processor."""
    if problem.m * problem.n * problem.k < _THREADS_FROM:
        return [task() for task in tasks]
    with (
        one_thread_each(),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        return list(pool.map(lambda task: task(), tasks))


def _tasks(limits: ErrorLimits, sums: Factors, result: Array) -> Iterator[Callable[[], Judged]]:
    """Yield what judges blocks of rows of one matrix."""
    screen = Screen(limits, sums) if is_worth_screening(limits.problem) else None

    def judge(rows: slice) -> Judged:
        block = result[rows]
        if screen is None:
            return _judge_rows(limits, sums, rows, block)
        doubtful = screen.doubtful(rows, block)
        if doubtful is None:
            return _judge_rows(limits, sums, rows, block)
        at_row, columns = doubtful
        return _judge_elements(limits, sums, at_row + rows.start, columns, block[doubtful])

    for row in range(0, limits.problem.m, _ROWS_AT_ONCE):
        yield partial(judge, slice(row, row + _ROWS_AT_ONCE))


def _judge_rows(limits: ErrorLimits, sums: Factors, rows: slice, result: Array) -> Judged:
    exact, magnitude = sums.of_rows(rows)
    judged = limits.judge(exact, magnitude, result, ...)
    at_row, at_column = np.nonzero(judged.share > 1)
    if not at_row.size or limits.exact_sums:
        return judged
    if (limits.judge(exact, magnitude, result, ..., sequential=True).share > 1).any():
        return judged
    doubtful = result[at_row, at_column]
    judged.replace(
        (at_row, at_column), _drifting(limits, sums, at_row + rows.start, at_column, doubtful)
    )
    return judged


def _judge_elements(
    limits: ErrorLimits, sums: Factors, rows: Array, columns: Array, result: Array
) -> Judged:
    exact, magnitude = sums.of_elements(rows, columns)
    judged = limits.judge(exact, magnitude, result, columns)
    beyond = np.flatnonzero(judged.share > 1)
    if not beyond.size:
        return judged
    if (limits.judge(exact, magnitude, result, columns, sequential=True).share > 1).any():
        return judged
    drifting = _drifting(limits, sums, rows[beyond], columns[beyond], result[beyond])
    judged.replace((beyond,), drifting)
    return judged


def _drifting(
    limits: ErrorLimits, sums: Factors, rows: Array, columns: Array, result: Array
) -> Judged:
    """Judge elements with the drift of a sequential float32 sum allowed, until one does not pass.

    Terms that repeat are rounded alike, so that errors add up as independent ones do not.
    """
    count = max(_CHAIN_ELEMENTS // limits.problem.k, 1)
    parts = []
    for first in range(0, result.size, count):
        here = slice(first, first + count)
        exact, magnitude = sums.of_elements(rows[here], columns[here])
        drift = sums.drift(rows[here], columns[here], exact)
        parts.append(limits.judge(exact, magnitude, result[here], columns[here], drift=drift))
        if (parts[-1].share > 1).any():
            break
    return Judged.joined(parts)


def _combined(problem: Problem, parts: list[Judged]) -> Verification:
    return Verification(
        verified=all(bool((part.share <= 1).all()) for part in parts),
        max_abs_error=max(float(part.error.max()) for part in parts),
        max_rel_error=max(float(part.relative.max()) for part in parts),
        tolerance=max(float(part.limit.max()) for part in parts),
        worst=max(float(part.share.max()) for part in parts),
        nan=sum(part.nan for part in parts),
        infinite=sum(part.infinite for part in parts),
        nonfinite_differ=sum(part.nonfinite_differ for part in parts),
        policy=limit_policy(problem),
        compared=sum(part.error.size for part in parts),
    )
