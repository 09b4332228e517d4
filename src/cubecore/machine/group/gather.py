"""Gathers by cores in lockstep whose offsets are their own: one look-up for all cores.

What any core reads is judged as if each read it: in local memories, which are alike, an access
races if it does on one core.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.layouts import Offsets
from cubecore.machine.group.batching import PICKED, picks
from cubecore.machine.group.group_operations import Group, Operation, read_inside
from cubecore.machine.group.sanitize.divergence import DivergenceError
from cubecore.machine.memory.elements import Use, use
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.memory.places import Place
from cubecore.machine.sanitize.flags import INDEX
from cubecore.machine.sanitize.racecheck import touches
from cubecore.machine.sanitize.shadow_memory import Touched

_MOST_PICKED = 64
"""Sets of values that are remembered."""


@dataclass(frozen=True, eq=False, slots=True)
class _Picked:
    """The elements that each core reads, [cores, *shape], and the bytes of all of them."""

    offsets: Offsets
    touched: Footprint


def picking(group: Group, template: Instruction) -> Operation:
    """Return the act of a resolved template that picks by values, each core's own.

    At exceptions (a wrong value, uninitialised bytes, operands that may overlap, a check of
    readers) the cores part.
    """
    uses = {operand.name: use(template, operand) for operand in template.operands()}
    numbers, (steers,) = list(uses), template.steering
    steering, source = uses[steers], uses[PICKED]
    offsets_by = picks(type(template))
    assert offsets_by is not None
    (target,) = (used for used in uses.values() if used.writes)
    pipe, registers = INDEX[template.pipe.value], group.registers
    plans = BoundedCache[int, tuple[list[Touched], Location]]()
    picked_by_indices = BoundedCache[bytes, _Picked | None](_MOST_PICKED)
    active = template.active(PICKED)

    def pick(values: Array) -> _Picked | None:
        key = values.tobytes()
        if key not in picked_by_indices:
            offsets = offsets_by(template, values)
            through = offsets if offsets is None or active is None else offsets[:, active]
            if offsets is None or through is None or not through.size:
                picked_by_indices[key] = None
            else:
                picked_by_indices[key] = _Picked(
                    offsets, Footprint.of_elements(through, source.element.bits)
                )
        return picked_by_indices[key]

    def act(addresses: tuple[int, ...], where: Location) -> None:
        at = dict(zip(numbers, template.operand_addresses(addresses), strict=True))
        indices, there = (_placed(group, used, at[used.name]) for used in (steering, target))
        # Anything unusual ends lockstep for this instruction; each core then has its own findings.
        picked = (
            None if group.watch.tells_cores_apart or not indices.written() else pick(indices.read())
        )
        if picked is None:
            raise DivergenceError(f"{template.name} picks out of the ordinary")
        _require_well(group, steering, source, target, picked.touched, at)
        plan = plans.get(id(where))
        if plan is None:
            touched_by_one = touches(template, range(len(uses)), where, registers)
            plan = plans[id(where)] = touched_by_one, where
        touched_by_all = [
            (picked.touched if touch.operand == PICKED else touched, at[numbers[n]], touch)
            for touched, n, touch in plan[0]
        ]
        group.watch.enter(pipe, touched_by_all, where)
        values = _gathered(group, source, at[PICKED], picked.offsets)
        there.write(template.compute({PICKED: values}, registers)[target.name])

    return act


def _placed(group: Group, used: Use, address: int) -> Place:
    """Return an operand that lies where it may, and is some elements."""
    usable = memory_bytes(group.chip, used.operand.mem)[1]
    if used.elements.span is None or address % used.unit or address + used.high > usable:
        raise DivergenceError(f"{used.name} is not where it may be")
    return read_inside(group, used, address)


def _require_well(
    group: Group, steering: Use, source: Use, target: Use, touched: Footprint, at: Mapping[str, int]
) -> None:
    """Require all that is read to be written, inside its memory, and apart from what is written."""
    mem, address = source.operand.mem, at[source.name]
    stack, low, high = group.memory(mem), address + touched.low, address + touched.high
    ends = memory_bytes(group.chip, mem)[1]
    (first, last), (start, end) = (
        (at[used.name] + used.low, at[used.name] + used.high) for used in (steering, target)
    )
    if (
        stack is None
        or address % source.unit
        or high > ends
        or (start < high and low < end)
        or (start < last and first < end)
        or not stack.valid[low:high].all()
    ):
        raise DivergenceError("what is picked is not where it may be")


def _gathered(group: Group, source: Use, at: int, offsets: Offsets) -> Array:
    """Return the elements at each core's offsets, [cores, *shape]."""
    stack, element = group.memory(source.operand.mem), source.element
    assert stack is not None
    end = at + (stack.size_bytes - at) // element.size_bytes * element.size_bytes
    # One fancy index for all cores: `rows` is [cores, 1, ...] and broadcasts against the offsets,
    # so that core i reads only from its own row of the stack.
    window = stack.data[:, at:end].view(element.numpy)
    rows = np.arange(len(window)).reshape(-1, *[1] * (offsets.ndim - 1))
    elements: Array = window[rows, offsets]
    return elements
