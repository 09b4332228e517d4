"""Calls of the C API that a kernel makes again: recorded from what their place made before.

The body of `RepeatedCalls.of` runs for nearly every call that a kernel makes, on every core.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from cubecore.frontends.capi.calls.call_sites import PreparedCall, Sites
from cubecore.frontends.capi.calls.issues import Issues
from cubecore.frontends.capi.modes import Modes
from cubecore.frontends.capi.pointer import Pointer
from cubecore.machine.execute.array_bounds import ArrayWatch, InArray, NoArrays
from cubecore.machine.group.recorder import Recorder

Slow = Callable[[FrameType, tuple[Any, ...], dict[str, Any]], Any]
"""Makes a frame's call that has more to do or say."""


class RepeatedCalls:
    """Records on one core what its kernel calls again."""

    def __init__(
        self, core: Recorder, issues: Issues, modes: Modes, arrays: ArrayWatch | None
    ) -> None:
        self._core, self._issues, self._modes = core, issues, modes
        self._arrays: ArrayWatch | NoArrays = arrays or NoArrays()

    def of(self, name: str, sites: Sites, slow: Slow) -> Callable[..., Any]:
        """Return the call of this name; `slow` makes those that have more to do or say.

        The others have the numbers, the types and the memories of an earlier call at their place.
        """
        core, issues, arrays = self._core, self._issues, self._arrays
        look_up, this_frame = self._look_up, sys._getframe  # noqa: SLF001
        take_addresses, take_numbers = core.trace.addresses.extend, core.take_numbers

        def call(*arguments: Any, **keywords: Any) -> Any:
            # All that could make it another call is compared on the way: where it stands, which
            # function it is, the state of the registers, the mask, numbers with their types, and
            # what pointers point into. Anything else is bound anew, which costs tens of times more.
            frame = this_frame(1)  # the caller's line, nothing else
            known = None if keywords else look_up(sites, frame, arguments)
            if known is None:
                return slow(frame, arguments, keywords)
            addresses = known.fixed
            if addresses is None:
                addresses = _addresses(known, arguments)
                if addresses is None:
                    return slow(frame, arguments, keywords)
            count = issues.count + known.size
            if count > issues.most:
                return slow(frame, arguments, keywords)
            # From here on the call is certain.
            arrays.state, issues.count = known.after, count
            if known.call.leaves:
                self._leave(name, known, addresses)
            take_addresses(addresses)
            take_numbers(known.kinds, known.wheres)
            return None

        call.__name__ = name
        return call

    def _look_up(
        self, sites: Sites, frame: FrameType, arguments: tuple[Any, ...]
    ) -> PreparedCall | None:
        """Return the call that is made, if its place made it before and nothing is to be said."""
        core, modes = self._core, self._modes
        site = sites.near(frame, arguments)
        if site is None or modes.counts or modes.lines.changed:
            return None
        if len(arguments) < site.pointers:
            return None
        call = site.quick
        if call is None or (call.masked and modes.stale is not None):
            return None
        if site.typed and site.types != tuple(map(type, arguments[site.pointers :])):
            return None
        return call.prepared(site, self._arrays, core.trace.names)

    def _leave(self, name: str, known: PreparedCall, addresses: list[int]) -> None:
        """Take what a call stores to global memory, and the mask that it sets."""
        modes, call = self._modes, known.call
        if call.stores:
            for operand, low, high, instruction in call.stores:
                at = addresses[operand]
                modes.lines.write(at + low, at + high, (instruction, known.where))
        if call.sets_mask and (known.stale is None or modes.stale is not known.stale):
            modes.jump(call.templates)
            if call.count is None:
                modes.stale = None
                return
            if known.stale is None:
                known.stale = name, call.count, known.where
            modes.stale = known.stale


def _addresses(known: PreparedCall, arguments: tuple[Any, ...]) -> list[int] | None:
    """Return the addresses of the operands; None if a pointer is not as it was, or leaves."""
    addresses: list[int] = []
    for pointer, (mem, kind, low, high) in zip(arguments, known.pointers):  # noqa: B905
        if pointer.__class__ is not Pointer or pointer.mem is not mem:
            return None
        if pointer.dtype is not kind and pointer.dtype != kind:
            return None
        to = pointer.address
        if to.__class__ is InArray and (to + low < to.low or to + high > to.high):
            return None
        addresses.append(to)
    if known.indices is not None:
        addresses = [0 if n is None else addresses[n] for n in known.indices]
    return addresses
