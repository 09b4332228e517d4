"""Costs of copies and matmuls on a chip, as formulas over the chip's constants.

The planner's closed form and the instructions' costs both come from here. Arguments may be integers
or NumPy arrays; results are cycles, not rounded. A constant that the catalogue does not know adds
nothing (`Chip.unknown_costs` names it; the event timing refuses such a chip, the planner says so).
"""

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from cubecore.aliases import Column
from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up, ceil_div

_FIXPIPE_ALIGN_BYTES = 16
PITCH_CONFLICT_BYTES = 8 * 1024
"""Rows a multiple of this apart lie in one bank of L2: `gm_to_l1_pitch_row_cycles` more a row."""


def mad_cycles(
    chip: Chip, a: ElementType, m: Column, n: Column, k: Column, *, hf32: bool = False
) -> Column:
    """Return the Cube's cycles for an m x k by k x n matmul without its head.

    The axes are rounded up to the fractal (16, 16, C0), as the hardware computes whole fractals
    (asc-devkit, cycles of Mmad). `hf32` says that float32 inputs are rounded to HF32.
    """
    per_cycle = (chip.cube_k or {}).get(a.name)
    if per_cycle is None or chip.cube_m is None or chip.cube_n is None:
        raise refuse(f"{chip.name}.cube_k", f"give the Cube's rate for {a}", "no published value")
    if hf32:
        per_cycle *= chip.require("hf32_speedup", "timing")
    # Whole fractals in every axis: `per_cycle` is how much of K one fractal of C takes in a cycle.
    tiles = ceil_div(m, chip.cube_m) * ceil_div(n, chip.cube_n)
    return tiles * ceil_div(align_up(k, a.c0), per_cycle)


DEPENDENT_MAD_FRACTALS = 10
"""Matmuls onto one tile of fewer 16 x 16 fractals need a barrier (C API, asc_mmad)."""


def are_dependent(m: Column, n: Column) -> Column:
    """Return where matmuls onto one m x n tile of C have to wait for each other."""
    return ceil_div(m, FRACTAL_ROWS) * ceil_div(n, FRACTAL_ROWS) < DEPENDENT_MAD_FRACTALS


def l1_to_l0a_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return MTE1's cycles to move `size_bytes` into L0A without its head."""
    return _over(size_bytes, chip.l1_to_l0a_bytes_per_cycle)


def l1_to_l0b_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return MTE1's cycles to move `size_bytes` into L0B without its head."""
    return _over(size_bytes, chip.l1_to_l0b_bytes_per_cycle)


def l1_to_l0_scale_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return MTE1's cycles to move `size_bytes` of MX scales beside L0A or L0B."""
    return _over(size_bytes, chip.l1_to_l0_scale_bytes_per_cycle)


def l1_to_bt_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return MTE1's cycles to move `size_bytes` into BiasTable, head included."""
    return (chip.l1_to_bt_head_cycles or 0) + _over(size_bytes, chip.l1_to_bt_bytes_per_cycle)


def l1_to_fb_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return MTE1's cycles to move `size_bytes` into the Fixpipe buffer, head included."""
    return (chip.l1_to_fb_head_cycles or 0) + _over(size_bytes, chip.l1_to_fb_bytes_per_cycle)


def kernel_start_cycles(chip: Chip, kind: str | None) -> int:
    """Return the cycles from the start of a kind of kernel to its first instruction.

    None is a kernel of the Matmul API with a tiling of run time, as all kinds are that start no
    sooner.
    """
    return (chip.short_start_cycles or {}).get(kind or "", chip.start_cycles or 0)


LINE_BYTES = 256
"""Rows that start at a multiple of this cost nothing more for it."""


def gm_to_l1_cycles(chip: Chip, rows: Column, row_bytes: Column, pitch_bytes: Column) -> Column:
    """Return MTE2's cycles for one strided transfer into L1, without latency.

    `rows` rows of `row_bytes` whose starts are `pitch_bytes` apart: a cost for the transfer, for
    each row, for the bytes, and for rows that start off a 256-byte boundary since they are no
    multiple of it apart. What rows take more that all start alike, off one,
    is `row_start_cycles`; rows that meet in one bank of L2, `pitch_conflict_cycles`.
    """
    blocks = ceil_div(row_bytes, DATA_BLOCK_BYTES)
    per_row = (
        (chip.gm_to_l1_row_cycles or 0)
        + _over(row_bytes, chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle)
        + blocks * _misaligned_block_cycles(chip.gm_to_l1_misaligned_block_cycles, pitch_bytes)
    )
    return (chip.gm_to_l1_transfer_cycles or 0) + rows * per_row


def pitch_conflict_cycles(chip: Chip, rows: Column, pitch_bytes: Column) -> Column:
    """Return how much longer a strided transfer takes whose rows L2 has in one bank.

    Of rows that L2 does not hold, device memory's rate decides: they take nothing more.
    """
    meets = (pitch_bytes % PITCH_CONFLICT_BYTES == 0) & np.greater(rows, 1)
    return np.where(meets, rows * (chip.gm_to_l1_pitch_row_cycles or 0), 0)


def stretch_bytes(rows: Column, row_bytes: Column, pitch_bytes: Column) -> Column:
    """Return the bytes of a stretch of memory: rows that follow without a gap are one."""
    return np.where(np.equal(pitch_bytes, row_bytes), rows * row_bytes, row_bytes)


def gm_to_l1_lone_row_cycles(chip: Chip, row_bytes: Column) -> Column:
    """Return MTE2's cycles for one row of a matrix whose rows are too far apart for one transfer.

    Such rows go one by one, each asked for right behind the one before. What rows take more that
    start off a 256-byte boundary is `row_start_cycles`.
    """
    transfer = chip.gm_to_l1_lone_row_cycles
    if transfer is None:
        transfer = chip.gm_to_l1_transfer_cycles or 0
    rate = chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle
    return transfer + (chip.gm_to_l1_row_cycles or 0) + _over(row_bytes, rate)


def _misaligned_block_cycles(table: Mapping[str, float] | None, pitch_bytes: Column) -> Column:
    table = table or {}
    if isinstance(pitch_bytes, int | float):  # of one problem: arrays would be slower
        costs = (
            c
            for at, c in sorted(table.items(), key=lambda x: int(x[0]))
            if pitch_bytes % (2 * int(at))
        )
        return next(costs, 0.0)
    result: Column = 0.0
    for boundary, cycles in sorted(table.items(), key=lambda item: -int(item[0])):
        result = np.where(pitch_bytes % (2 * int(boundary)) != 0, cycles, result)
    return result


def row_start_cycles(chip: Chip, start_bytes: int, row_bytes: int) -> float:
    """Return how much longer a row takes that starts `start_bytes` behind a 256-byte boundary.

    Only if it reaches over the next one: then it takes a line more than it has to.
    """
    start = start_bytes % LINE_BYTES
    if start + row_bytes <= LINE_BYTES:
        return 0.0
    blocks: int = ceil_div(row_bytes, DATA_BLOCK_BYTES)
    return blocks * float(_misaligned_block_cycles(chip.gm_to_l1_misaligned_block_cycles, start))


def mean_row_start_cycles(
    chip: Chip,
    row_bytes: Column,
    *,
    step_bytes: Column,
    share_bytes: Column = 0,
    cores: Column = 1,
    among: Column = True,
) -> Column:
    """Return how much longer a row takes in the mean of those that start `step_bytes` apart.

    Of the slowest of some cores whose shares lie `share_bytes` apart. Rows of all multiples of the
    step count equally, as the event timing has them; unless they are `among` several blocks, a row
    starts where its core's share does.
    """
    if not (cycles_of := chip.gm_to_l1_misaligned_block_cycles):
        return 0.0
    # One lookup for what would be loops over cores and starts: the search asks for whole columns.
    table = _row_starts(tuple(cycles_of.items()))
    apart = np.where(among, step_bytes % LINE_BYTES, 0)
    apart = np.where(apart % _SIXTEENTH == 0, apart // _SIXTEENTH, 1)
    share = share_bytes % LINE_BYTES
    share = np.where(share % _SIXTEENTH == 0, share // _SIXTEENTH, _STEPS)
    row = np.minimum(ceil_div(row_bytes, _SIXTEENTH), _STEPS)
    index = _STEPS * share + np.minimum(cores, _STEPS) - 1
    index = (_STEPS + 1) * (_STEPS * index + apart) + row
    return ceil_div(row_bytes, DATA_BLOCK_BYTES) * np.interp(index, _INDEXES, table)


_SIXTEENTH = 16
"""Rows that start off a multiple of it cost as much wherever they do."""
_STEPS = LINE_BYTES // _SIXTEENTH
_INDEXES = np.arange((_STEPS + 1) ** 2 * _STEPS**2)


@lru_cache(maxsize=64)
def _row_starts(cycles_of: tuple[tuple[str, float], ...]) -> Array:
    """Return what a block of a row costs for its start, by share, cores, step and length.

    Shares, steps and lengths are multiples of 16 B; the last share is any other, and may lead
    everywhere.
    """
    half, spelled = _SIXTEENTH // 2, dict(cycles_of)
    cycles_at = [_misaligned_block_cycles(spelled, at) for at in range(0, LINE_BYTES, half)]
    starts = half * np.arange(2 * _STEPS)[:, None]
    reaches = starts + _SIXTEENTH * np.arange(_STEPS + 1) > LINE_BYTES
    each, every = np.array(cycles_at)[:, None] * reaches, np.arange(2 * _STEPS)
    means = np.zeros((2 * _STEPS, _STEPS, _STEPS + 1))
    for step in range(_STEPS):
        apart = 2 * math.gcd(step, _STEPS)
        of_rest = each.reshape(-1, apart, _STEPS + 1).mean(axis=0)
        means[:, step] = of_rest[every % apart]
    slowest = [
        np.maximum.accumulate(means[2 * share * np.arange(_STEPS) % (2 * _STEPS)])
        for share in range(_STEPS)
    ]
    anywhere = np.broadcast_to(means.max(axis=0), slowest[0].shape).copy()
    anywhere[0] = means[0]
    return np.stack([*slowest, anywhere]).reshape(-1)


def gm_miss_cycles(chip: Chip, missing_bytes: Column, *, into_ub: bool = False) -> Column:
    """Return how much longer a core takes to ask for bytes that L2 does not hold.

    What a core may have on its way at once comes from device memory at a lower rate than from L2.
    """
    slow, fast = chip.gm_miss_bytes_per_cycle, chip.gm_to_l1_bytes_per_cycle
    if into_ub:
        slow, fast = chip.gm_miss_ub_bytes_per_cycle, chip.gm_to_ub_bytes_per_cycle
    if slow is None or fast is None or slow >= fast:
        return missing_bytes * 0
    return missing_bytes * (1 / slow - 1 / fast)


def l2_gone(chip: Chip, since_bytes: Column) -> Column:
    """Return the share of a block that L2 no longer holds when so many bytes came in since.

    1 - exp(-(bytes / capacity)^power): with a high power nearly the least recently used goes first
    (published hit rates of streams of 0.4, 0.6 and 1.5 times the capacity).
    """
    if not chip.l2_bytes:
        return since_bytes * 0 + 1.0
    power = chip.l2_survival_power or 1
    return 1 - _fading((since_bytes / chip.l2_bytes) ** power)


def l2_kept_dirty(chip: Chip, brought_bytes: Column) -> Column:
    """Return the share of what a launch writes that L2 still holds at its end.

    exp(-(bytes brought in / (reach x capacity))^2): measured streams of 0.67, 1.34, 2.0 and 2.67
    times the capacity keep all, 0.41, 0.16 and 0.06 of their output.
    """
    if not chip.l2_bytes:
        return brought_bytes * 0.0
    return _fading((brought_bytes / (chip.l2_bytes * (chip.l2_write_reach or 1.0))) ** 2)


def _fading(exponent: Column) -> Column:
    """Return exp(-exponent); a number's is the C library's, the same as everywhere in Python."""
    return math.exp(-exponent) if isinstance(exponent, int | float) else np.exp(-exponent)


def gm_to_ub_cycles(
    chip: Chip, size_bytes: Column, rows: Column = 1, pitch_bytes: Column = 0
) -> Column:
    """Return a vector core's MTE2 cycles for one transfer into UB, without latency.

    `rows` rows, `size_bytes` in all, whose starts are `pitch_bytes` apart: a cost for the transfer,
    for the bytes, and for rows that start off a 256-byte boundary.
    """
    rate = chip.gm_to_ub_bytes_per_cycle or chip.aiv_l2_bytes_per_cycle
    blocks = rows * ceil_div(size_bytes / rows, DATA_BLOCK_BYTES)
    off = blocks * _misaligned_block_cycles(chip.gm_to_l1_misaligned_block_cycles, pitch_bytes)
    return (chip.gm_to_ub_transfer_cycles or 0) + _over(size_bytes, rate) + off


def ub_to_gm_cycles(chip: Chip, size_bytes: Column) -> Column:
    """Return a vector core's MTE3 cycles for one transfer out of UB."""
    rate = chip.ub_to_gm_bytes_per_cycle or chip.ub_to_l2_bytes_per_cycle
    return (chip.gm_to_ub_transfer_cycles or 0) + _over(size_bytes, rate)


def l0c_to_l1_cycles(chip: Chip, elements: Column) -> Column:
    """Return fixpipe's cycles to write `elements` to L1, whatever their type, head included."""
    return (chip.l0c_to_l1_head_cycles or 0) + _over(elements, chip.l0c_to_l1_elements_per_cycle)


def l0c_to_gm_cycles(
    chip: Chip, rows: Column, size_bytes: Column, pitch_bytes: Column = 0
) -> Column:
    """Return fixpipe's cycles to write `rows` rows, `size_bytes` in all, head included.

    Rows that start off a 16-byte boundary, `pitch_bytes` apart, cost more where the chip says so.
    """
    off = pitch_bytes % _FIXPIPE_ALIGN_BYTES != 0
    per_row = (chip.l0c_to_gm_row_cycles or 0) + np.where(
        off, chip.l0c_to_gm_misaligned_row_cycles or 0, 0
    )
    return (
        (chip.l0c_to_gm_head_cycles or 0)
        + rows * per_row
        + _over(size_bytes, chip.l0c_to_gm_bytes_per_cycle)
    )


def vector_cycles(chip: Chip, repeats: Column, each: float = 1) -> Column:
    """Return the Vector unit's cycles for `repeats` repeats without bank conflict.

    `each` is what a repeat of the instruction costs in repeats at full rate.
    """
    return (chip.vector_head_cycles or 0) + repeats * each * (chip.vector_repeat_cycles or 0)


def vector_repeat_cycles(chip: Chip, name: str, element: str, lanes: int) -> float:
    """Return what a repeat of `lanes` lanes costs, in repeats of 256 bytes a cycle.

    The chip states `vector_elements_per_cycle` for the instructions that are slower.
    """
    rates = chip.vector_elements_per_cycle or {}
    rate = rates.get(f"{name}.{element}") or rates.get(name)
    return 1 if rate is None else lanes / rate


def whole_cycles(cycles: float) -> int:
    """Return cycles rounded up, forgiving what a sum of fractions adds."""
    return math.ceil(cycles - 1e-9)


def hbm_cycles(chip: Chip, size_bytes: Column, row_bytes: Column, *, of_ub: bool = False) -> Column:
    """Return the cycles that device memory, shared by all cores, is busy with `size_bytes`.

    `of_ub`: they come from or go to the Unified Buffer.
    """
    if chip.hbm_bytes_per_second is None or chip.frequency_hz is None:
        rate = _configured_memory_rate(chip)
        return _over(size_bytes, rate)
    weight = 1 + hbm_row_bytes(chip, of_ub=of_ub) / row_bytes
    return size_bytes * weight * chip.frequency_hz / chip.hbm_bytes_per_second


def hbm_row_bytes(chip: Chip, *, of_ub: bool) -> int:
    """Return the bytes that each row of a transfer adds at device memory."""
    ub_row_bytes = chip.hbm_ub_row_bytes if of_ub else None
    return (chip.hbm_row_bytes if ub_row_bytes is None else ub_row_bytes) or 0


def _configured_memory_rate(chip: Chip) -> int | None:
    per_core = chip.ddr_bytes_per_cycle
    return None if per_core is None else per_core * chip.aic_count


def peak_ops_per_cycle(chip: Chip, a: ElementType) -> int | None:
    """Return multiply and add operations per cycle of all AI Cores; None if the rate is unknown."""
    per_cycle = (chip.cube_k or {}).get(a.name)
    if per_cycle is None or chip.cube_m is None or chip.cube_n is None:
        return None
    return 2 * chip.cube_m * chip.cube_n * per_cycle * chip.aic_count


def _over(size_bytes: Column, bytes_per_cycle: float | None) -> Column:
    return size_bytes / bytes_per_cycle if bytes_per_cycle else size_bytes * 0
