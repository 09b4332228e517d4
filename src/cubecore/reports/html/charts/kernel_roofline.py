"""A launch of a user's kernel against the chip's ceilings: its operations are counted by issue."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cubecore.aliases import Json
from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.vector.common.mask import REPEAT_BYTES
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.reports.html.charts.roofline import (
    CUBE,
    VECTOR,
    Ceiling,
    below,
    cube_ceiling,
)
from cubecore.timing.records import Timeline


def kernel_roofline(
    traces: Mapping[Any, InstructionTrace], chip: Chip, timeline: Timeline
) -> Json | None:
    """Return what `roofline` does of a matmul; None where a figure is unknown.

    A matmul counts 2 m n k operations, a vector instruction one for each lane that its mask lets
    through. A kernel with matmuls is set against the Cube, and its vector work left out.
    """
    counts = operations(traces)
    unit = CUBE if any(kind == CUBE for kind, _ in counts) else VECTOR
    mine = {element: count for (kind, element), count in counts.items() if kind == unit}
    if not mine:
        return None
    ceiling = _ceiling(chip, unit, max(mine, key=lambda each: mine[each]))
    if ceiling is None:
        return None
    return below(ceiling, "kernel", sum(mine.values()), chip, timeline)


def _ceiling(chip: Chip, unit: str, element: ElementType) -> Ceiling | None:
    """Return the unit's ceiling; None where its rate is unknown."""
    if unit == CUBE:
        peak = peak_ops_per_cycle(chip, element)
        return None if peak is None else cube_ceiling(element.name, peak)
    cores, each = chip.aiv_count, chip.vector_repeat_cycles
    if not cores or not each:
        return None
    per_cycle, rate = cores * (REPEAT_BYTES // element.size_bytes) / each, "vector_repeat_cycles"
    return Ceiling(unit, element.name, per_cycle, "aiv", "gm_to_ub_bytes_per_cycle", rate)


def operations(
    traces: Mapping[Any, InstructionTrace],
) -> Counter[tuple[str, ElementType]]:
    """Return the operations that all cores issued, by unit and element type.

    Cores that issued the same are counted once, and as often as there are such cores.
    """
    alike: dict[tuple[int, bytes], list[InstructionTrace]] = {}
    for trace in traces.values():
        alike.setdefault((id(trace.names), trace.kinds.tobytes()), []).append(trace)
    total: Counter[tuple[str, ElementType]] = Counter()
    for same in alike.values():
        for key, count in _of_core(same[0]).items():
            total[key] += count * len(same)
    return total


def _of_core(trace: InstructionTrace) -> Counter[tuple[str, ElementType]]:
    found: Counter[tuple[str, ElementType]] = Counter()
    registers, templates = Registers(), trace.templates
    counted: dict[tuple[int, Registers], tuple[Registers, _Work | None]] = {}
    for kind in trace.kinds:
        # The mask registers decide how many lanes count, so that the trace is followed by
        # registers; each pair of template and registers is worked out once.
        key = kind, registers
        if (known := counted.get(key)) is None:
            template = templates[kind]
            known = counted[key] = template.apply(registers), _work(template.resolved(registers))
        registers, work = known
        if work is not None:
            found[work[0]] += work[1]
    return found


_Work = tuple[tuple[str, ElementType], int]
"""A unit with an element type, and operations."""


def _work(template: Instruction) -> _Work | None:
    if isinstance(template, CubeProduct):
        (left,) = (operand for operand in template.declared if operand.name == "a")
        return (CUBE, template.element(left)), 2 * template.m * template.n * template.k
    if template.pipe is not Pipe.V or not isinstance(template, Repeated):
        return None
    lanes = template.repeats * template.width
    if (through := template.active("dst")) is not None:
        lanes = int(through.sum())
    return (VECTOR, template.widest), lanes
