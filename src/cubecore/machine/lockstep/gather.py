"""Gathers by cores in lockstep whose offsets are their own: one look-up for all cores.

What any core reads is judged as if each read it: in local memories, which are alike, an access
races if it does on one core.
"""

import numpy as np

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.layouts import Offsets
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.lockstep.batching import PICKED, picks
from cubecore.machine.lockstep.operands import (
    Act,
    Cores,
    LockstepOperand,
    limits_of,
    require_inside,
    side,
)
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.memory.places import Place
from cubecore.machine.sanitizer.happens_before import INDEX
from cubecore.machine.sanitizer.racecheck import touches
from cubecore.machine.sanitizer.shadow_memory import Touched

_MOST_PICKED = 64
"""Sets of values that are remembered."""


@dataclass(frozen=True, eq=False, slots=True)
class _Picked:
    """The elements that each core reads, [cores, *shape], and the bytes of all of them."""

    offsets: Offsets
    touched: Footprint


def picking(cores: Cores, template: Instruction, one_by_one: Act) -> Act:
    """Return the act of a resolved template that picks by values, each core's own.

    Exceptions (a wrong value, uninitialised bytes, operands that may overlap, a check of readers)
    are left to `one_by_one`.
    """
    sides = {one.operand.name: one for one in _sides(cores, template)}
    (steering,) = (sides[name] for name in template.steering)
    source, offsets_by = sides[PICKED], picks(type(template))
    assert offsets_by is not None
    (target,) = (one for one in sides.values() if one.operand.access.writes)
    usable = memory_bytes(cores.chip, source.operand.mem)[1]
    limits = [limit for limit in limits_of(cores.chip, template) if limit.number != source.number]
    pipe = INDEX[template.pipe.value]
    plans = BoundedCache[int, tuple[list[Touched], Location]]()
    picked_by_indices = BoundedCache[bytes, _Picked | None](_MOST_PICKED)
    active = template.active(source.operand.name)

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
        all_addresses = template.operand_addresses(addresses)
        values = _read(steering, all_addresses)
        picked = None if values is None or cores.watch.uses else pick(values)
        if picked is None or not _lies_well(
            usable, source, (steering, target), picked.touched, all_addresses
        ):
            one_by_one(addresses, where)
            return
        require_inside(template, limits, all_addresses)
        plan = plans.get(id(where))
        if plan is None:
            touched_by_one = touches(template, range(len(sides)), where, cores.registers)
            plan = plans[id(where)] = touched_by_one, where
        touched_by_all = [
            (
                picked.touched if touch.operand == source.operand.name else touched,
                all_addresses[n],
                touch,
            )
            for touched, n, touch in plan[0]
        ]
        cores.watch.enter(pipe, touched_by_all, where)
        values = _gathered(source, all_addresses[source.number], picked.offsets)
        results = template.compute({source.operand.name: values}, cores.registers)
        _operand_at(target, all_addresses).write(results[target.operand.name])

    return act


def _sides(cores: Cores, template: Instruction) -> list[LockstepOperand]:
    return [side(cores, template, number) for number in range(len(template.operands()))]


def _read(steering: LockstepOperand, addresses: tuple[int, ...]) -> Array | None:
    """Return the values that steer, [cores, *shape]; None where not all were written."""
    stack, at, span = steering.stack, addresses[steering.number], steering.elements.span
    assert stack is not None
    if span is None or at + span[0] < 0 or at + span[1] > stack.size_bytes:
        return None
    operand = _operand_at(steering, addresses)
    return operand.read() if operand.written() else None


def _operand_at(one: LockstepOperand, addresses: tuple[int, ...]) -> Place:
    assert one.stack is not None
    return Place(one.stack.spot(addresses[one.number]), one.elements, one.element)


def _lies_well(
    ends: int,
    source: LockstepOperand,
    others: tuple[LockstepOperand, LockstepOperand],
    touched: Footprint,
    addresses: tuple[int, ...],
) -> bool:
    """True if all that is read was written, before `ends`, and apart from what is written."""
    at, stack, (steering, target) = addresses[source.number], source.stack, others
    low, high = at + touched.low, at + touched.high
    if stack is None or at % source.operand.alignment or high > ends:
        return False
    start, end = _hull(target, addresses)
    first, last = _hull(steering, addresses)
    if (start < high and low < end) or (start < last and first < end):
        return False
    return bool(stack.valid[low:high].all())


def _hull(one: LockstepOperand, addresses: tuple[int, ...]) -> tuple[int, int]:
    low, high = one.elements.span or (0, 0)
    return addresses[one.number] + low, addresses[one.number] + high


def _gathered(source: LockstepOperand, at: int, offsets: Offsets) -> Array:
    """Return the elements at each core's offsets, [cores, *shape]."""
    stack, element = source.stack, source.element
    assert stack is not None
    end = at + (stack.size_bytes - at) // element.size_bytes * element.size_bytes
    window = stack.data[:, at:end].view(element.numpy)
    rows = np.arange(len(window)).reshape(-1, *[1] * (offsets.ndim - 1))
    elements: Array = window[rows, offsets]
    return elements
