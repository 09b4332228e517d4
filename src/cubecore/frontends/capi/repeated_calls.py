"""Calls that a place has made before: recorded at once, by numbers and addresses."""

from typing import Any

from cubecore.frontends.capi.call_sites import Site
from cubecore.frontends.capi.issues import Issues
from cubecore.frontends.capi.modes import Modes
from cubecore.frontends.capi.pointer import Pointer
from cubecore.machine.lockstep.recorder import Recorder
from cubecore.machine.reference.array_bounds import ArrayWatch, InArray


class RepeatedCalls:
    """Records on one core what its kernel calls again."""

    def __init__(
        self, core: Recorder, issues: Issues, modes: Modes, arrays: ArrayWatch | None
    ) -> None:
        self._core, self._issues, self._modes, self._arrays = core, issues, modes, arrays

    def issue(self, name: str, site: Site, arguments: tuple[Any, ...]) -> bool:
        """Record a call; False if there is more to do, or something to say.

        Parameters
        ----------
        name : str
            The call.
        site : Site
            The place, where it was made before with numbers that are equal to these.
        arguments : tuple
            The pointers first, then the numbers.

        Returns
        -------
        bool
            True if it is recorded.
        """
        call, modes, issues = site.quick, self._modes, self._issues
        if call is None or modes.counts or modes.dirty or (call.masked and modes.stale is not None):
            return False
        count, core = issues.count + call.size, self._core
        given: list[int] = []
        if count > issues.most or core.real is not None:
            return False
        for pointer, (mem, kind) in zip(arguments, site.kinds, strict=False):
            if pointer.__class__ is not Pointer or pointer.mem is not mem:
                return False
            if pointer.dtype is not kind and pointer.dtype != kind:
                return False
            given.append(pointer.address)
        if site.types and site.types != tuple(map(type, arguments[site.pointers :])):
            return False
        addresses = given
        if not call.plain:
            addresses = [
                0 if operand is None else given[operand] for operand in call.operand_indices
            ]
        arrays = self._arrays
        if arrays is not None:
            state = arrays.state
            plan = call.plans.get(id(state))
            if plan is None:
                plan = call.plans[id(state)] = arrays.plan(call.templates)
            for operand, low, high in plan.checks:
                at = addresses[operand]
                if at.__class__ is InArray and (at + low < at.low or at + high > at.high):
                    return False
            arrays.state = plan.after
        issues.count = count
        for operand, low, high, instruction in call.stores:
            at = addresses[operand]
            modes.stored(at + low, at + high, (instruction, site.where))
        if call.sets_mask:
            modes.jump(call.templates)
            modes.stale = None if call.count is None else (name, call.count, site.where)
        numbers = call.numbers
        if numbers is None or numbers[0] is not core.trace.names:
            numbers = call.number(core.trace.names, site.where)
        core.record_known(numbers[1], numbers[2], addresses)
        return True
