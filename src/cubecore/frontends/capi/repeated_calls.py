"""Calls that a place has made before: recorded at once, by numbers and addresses.

A kernel's loop comes here for nearly every call that it makes, on every core.
"""

from collections.abc import Callable
from types import FrameType
from typing import Any

from cubecore.frontends.capi.call_sites import QuickCall, Sites
from cubecore.frontends.capi.issues import Issues
from cubecore.frontends.capi.modes import Modes
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.program.tree import Location
from cubecore.machine.lockstep.recorder import Recorder
from cubecore.machine.reference.array_bounds import ArrayPlan, ArrayState, ArrayWatch, InArray

Again = Callable[[FrameType, tuple[Any, ...]], bool]
"""Records a frame's call, pointers first, then numbers; False if there is more to do or say."""


class RepeatedCalls:
    """Records on one core what its kernel calls again."""

    def __init__(
        self, core: Recorder, issues: Issues, modes: Modes, arrays: ArrayWatch | None
    ) -> None:
        self._core, self._issues, self._modes, self._arrays = core, issues, modes, arrays

    def of(self, name: str, sites: Sites) -> Again:
        """Return what records a call of this name from a place that made it before.

        So it is where the numbers are equal to an earlier call's, and types and memories are.
        """
        core, issues, modes, arrays, places = (
            *(self._core, self._issues, self._modes, self._arrays),
            sites.by_code,
        )
        record, names = core.recording(), core.trace.names
        plan_of, leave = self._plan_of, self._leave

        def again(frame: FrameType, arguments: tuple[Any, ...]) -> bool:
            place = places.get((id(frame.f_code), frame.f_lasti))
            if place is None:
                return False
            pointers, by_numbers = place
            given = arguments[pointers:]
            try:
                site = by_numbers.get(given)
            except TypeError:  # a struct of parameters
                return False
            if site is None or modes.counts or modes.dirty:
                return False
            call = site.quick
            if call is None or core.real is not None or (call.masked and modes.stale is not None):
                return False
            addresses: list[int] = []
            if pointers:
                for pointer, (mem, kind) in zip(arguments, site.kinds):  # noqa: B905 - cheaper so
                    if pointer.__class__ is not Pointer or pointer.mem is not mem:
                        return False
                    if pointer.dtype is not kind and pointer.dtype != kind:
                        return False
                    addresses.append(pointer.address)
            if site.typed and site.types != tuple(map(type, given)):
                return False
            if not call.plain:
                addresses = [0 if at is None else addresses[at] for at in call.operand_indices]
            count = issues.count + call.size
            if count > issues.most:
                return False
            if arrays is not None:
                state = arrays.state
                plan = call.planned if call.planned_for is state else plan_of(call, state)
                for operand, low, high in plan.checks:
                    at = addresses[operand]
                    if at.__class__ is InArray and (at + low < at.low or at + high > at.high):
                        return False
                arrays.state = plan.after
            issues.count = count
            if call.leaves:
                leave(name, call, addresses, site.where)
            numbers = call.numbers
            if numbers is None or numbers[0] is not names:
                numbers = call.number(names, site.where)
            record(numbers[1], numbers[2], addresses)
            return True

        return again

    def _plan_of(self, call: QuickCall, state: ArrayState) -> ArrayPlan:
        """Return what a call touches in a state of the core, and the state behind it."""
        plan = call.plans.get(id(state))
        if plan is None:
            assert self._arrays is not None
            plan = call.plans[id(state)] = self._arrays.plan(call.templates)
        call.planned_for, call.planned = state, plan
        return plan

    def _leave(self, name: str, call: QuickCall, addresses: list[int], where: Location) -> None:
        """Take what a call stores to global memory, and the mask that it sets."""
        modes = self._modes
        for operand, low, high, instruction in call.stores:
            at = addresses[operand]
            modes.stored(at + low, at + high, (instruction, where))
        if call.sets_mask:
            modes.jump(call.templates)
            modes.stale = None if call.count is None else (name, call.count, where)
