"""What a move or a product costs on a chip, as formulas over the chip's constants.

The planner's closed form and the instructions' costs both come from here. Arguments may be integers
or NumPy arrays; results are cycles, not rounded. A constant that the catalogue does not know adds
nothing (`Chip.unknown_costs` names it; the event timing refuses such a chip, the planner says so).
"""

import math
from typing import Any

import numpy as np

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

PITCH_CONFLICT_BYTES = 16 * 1024
"""A row pitch that is a multiple of this costs `gm_to_l1_pitch_row_cycles` more a row."""


def mad_cycles(chip: Chip, a: ElementType, m: Any, n: Any, k: Any, *, hf32: bool = False) -> Any:
    """Return the Cube's cycles for an m x k by k x n product without its head.

    The axes are rounded up to the fractal (16, 16, C0), as the hardware computes whole fractals
    (facts/hardware.md 2.1). `hf32` says that float32 inputs are rounded to HF32.
    """
    per_cycle = (chip.cube_k or {}).get(a.name)
    if per_cycle is None or chip.cube_m is None or chip.cube_n is None:
        raise refuse(f"{chip.name}.cube_k", f"give the Cube's rate for {a}", "no published value")
    if hf32:
        per_cycle *= chip.require("hf32_speedup", "timing")
    tiles = ceil_div(m, chip.cube_m) * ceil_div(n, chip.cube_n)
    return tiles * ceil_div(align_up(k, a.c0), per_cycle)


def l1_to_l0a_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return MTE1's cycles to move `size_bytes` into L0A without its head."""
    return _over(size_bytes, chip.l1_to_l0a_bytes_per_cycle)


def l1_to_l0b_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return MTE1's cycles to move `size_bytes` into L0B without its head."""
    return _over(size_bytes, chip.l1_to_l0b_bytes_per_cycle)


def l1_to_bt_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return MTE1's cycles to move `size_bytes` into BiasTable, head included."""
    return (chip.l1_to_bt_head_cycles or 0) + _over(size_bytes, chip.l1_to_bt_bytes_per_cycle)


def l1_to_fb_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return MTE1's cycles to move `size_bytes` into the Fixpipe buffer, head included."""
    return (chip.l1_to_fb_head_cycles or 0) + _over(size_bytes, chip.l1_to_fb_bytes_per_cycle)


def gm_to_l1_cycles(chip: Chip, rows: Any, row_bytes: Any, pitch_bytes: Any) -> Any:
    """Return MTE2's cycles for one strided transfer into L1, without latency.

    `rows` rows of `row_bytes` whose starts are `pitch_bytes` apart: a cost for the transfer, for
    each row, for rows a multiple of 16 KiB apart, for the bytes, and for rows that start off a
    256-byte boundary (facts/timing_notes.md).
    """
    extra_row = np.where(
        np.asarray(pitch_bytes) % PITCH_CONFLICT_BYTES == 0, chip.gm_to_l1_pitch_row_cycles or 0, 0
    )
    blocks = ceil_div(row_bytes, DATA_BLOCK_BYTES)
    per_row = (
        (chip.gm_to_l1_row_cycles or 0)
        + np.where(np.asarray(rows) > 1, extra_row, 0)
        + _over(row_bytes, chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle)
        + blocks * _misaligned_block_cycles(chip, pitch_bytes)
    )
    return (chip.gm_to_l1_transfer_cycles or 0) + rows * per_row


def _misaligned_block_cycles(chip: Chip, pitch_bytes: Any) -> Any:
    table = chip.gm_to_l1_misaligned_block_cycles or {}
    if isinstance(pitch_bytes, int | float):  # of one problem: arrays would be slower
        found = (
            c
            for at, c in sorted(table.items(), key=lambda x: int(x[0]))
            if pitch_bytes % (2 * int(at))
        )
        return next(found, 0.0)
    pitch = np.asarray(pitch_bytes)
    result = np.zeros(pitch.shape)
    for boundary, cycles in sorted(table.items(), key=lambda item: -int(item[0])):
        result = np.where(pitch % (2 * int(boundary)) != 0, cycles, result)
    return result


def gm_to_ub_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return a vector core's MTE2 cycles for one transfer into UB, without latency."""
    rate = chip.gm_to_ub_bytes_per_cycle or chip.aiv_l2_bytes_per_cycle
    return (chip.gm_to_ub_transfer_cycles or 0) + _over(size_bytes, rate)


def ub_to_gm_cycles(chip: Chip, size_bytes: Any) -> Any:
    """Return a vector core's MTE3 cycles for one transfer out of UB."""
    rate = chip.ub_to_gm_bytes_per_cycle or chip.ub_to_l2_bytes_per_cycle
    return (chip.gm_to_ub_transfer_cycles or 0) + _over(size_bytes, rate)


def l0c_to_l1_cycles(chip: Chip, elements: Any) -> Any:
    """Return fixpipe's cycles to write `elements` to L1, whatever their type, head included."""
    return (chip.l0c_to_l1_head_cycles or 0) + _over(elements, chip.l0c_to_l1_elements_per_cycle)


def l0c_to_gm_cycles(chip: Chip, rows: Any, size_bytes: Any) -> Any:
    """Return fixpipe's cycles to write `rows` rows, `size_bytes` in all, head included."""
    return (
        (chip.l0c_to_gm_head_cycles or 0)
        + rows * (chip.l0c_to_gm_row_cycles or 0)
        + _over(size_bytes, chip.l0c_to_gm_bytes_per_cycle)
    )


def vector_cycles(chip: Chip, repeats: Any, each: float = 1) -> Any:
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


def hbm_cycles(chip: Chip, size_bytes: Any, row_bytes: Any) -> Any:
    """Return the cycles that device memory, shared by all cores, is busy with `size_bytes`."""
    if chip.hbm_bytes_per_second is None or chip.frequency_hz is None:
        rate = _configured_memory_rate(chip)
        return _over(size_bytes, rate)
    weight = 1 + (chip.hbm_row_bytes or 0) / row_bytes
    return size_bytes * weight * chip.frequency_hz / chip.hbm_bytes_per_second


def _configured_memory_rate(chip: Chip) -> int | None:
    per_core = chip.ddr_bytes_per_cycle
    return None if per_core is None else per_core * chip.aic_count


def peak_ops_per_cycle(chip: Chip, a: ElementType) -> int | None:
    """Return multiply and add operations per cycle of all AI Cores; None if the rate is unknown."""
    per_cycle = (chip.cube_k or {}).get(a.name)
    if per_cycle is None or chip.cube_m is None or chip.cube_n is None:
        return None
    return 2 * chip.cube_m * chip.cube_n * per_cycle * chip.aic_count


def _over(size_bytes: Any, bytes_per_cycle: float | None) -> Any:
    return size_bytes / bytes_per_cycle if bytes_per_cycle else size_bytes * 0
