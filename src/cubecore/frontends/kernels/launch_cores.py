"""Cores of a launch: those of all blocks, some of them, and the instructions of their pipes."""

from collections.abc import Iterable, Iterator

import numpy as np

from cubecore.chips.model import Chip
from cubecore.errors import refuse, unable
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace

_MOST_BLOCKS = 65_535
"""Blocks of a launch whose blocks take turns on the cores."""


def issued_by_pipe(traces: Iterable[InstructionTrace]) -> dict[str, int]:
    """Return how many instructions each pipe was given, the most first."""
    counts: dict[str, int] = {}
    for trace in traces:
        numbers = np.bincount(np.asarray(trace.kinds, np.int64), minlength=len(trace.templates))
        for template, count in zip(trace.templates, numbers.tolist(), strict=False):
            pipe = template.pipe.value
            counts[pipe] = counts.get(pipe, 0) + count
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def sampled_cores(cores: tuple[CoreId, ...], count: int) -> tuple[CoreId, ...]:
    """Return the cores of some AI Cores of a launch, the first and the last among them."""
    numbers = sorted({core.core for core in cores})
    steps = max(min(count, len(numbers)) - 1, 1)
    chosen = {numbers[step * (len(numbers) - 1) // steps] for step in range(steps + 1)}
    return tuple(core for core in cores if core.core in chosen)


def aivs_of_core(chip: Chip) -> int:
    """Return the AIVs of an AI Core."""
    return max(chip.mix_aiv_per_aic, 1)


def launch_cores(name: str, kind: str, blocks: int, chip: Chip, *, turns: bool) -> Iterator[CoreId]:
    """Yield the cores of a launch, in order.

    Raises
    ------
    RequestError
        If there are more blocks than the chip has cores, unless they take turns.
    """
    vector = kind == "vector"
    most, what = (chip.aiv_count or 0, "AIVs") if vector else (chip.aic_count, "AI Cores")
    if not most:
        raise unable(name, f"{name} is a {kind} kernel; {chip.name} has no {what}")
    limit, whose = (_MOST_BLOCKS, "") if turns else (most, f", the {what} of {chip.name}")
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= limit:
        raise refuse(f"{name}[blocks]", f"be in [1, {limit}]{whose}", blocks)
    each = aivs_of_core(chip)
    for block in range(min(blocks, most)):
        if vector:
            yield CoreId(block // each, 1 + block % each)
        else:
            parts = 1 if kind == "cube" else each + 1
            yield from (CoreId(block, sub) for sub in range(parts))
