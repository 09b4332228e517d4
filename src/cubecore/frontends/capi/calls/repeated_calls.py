"""Calls that a place has made before: recorded at once, by numbers and addresses.

A kernel's loop comes here for nearly every call that it makes, on every core. Cores of a kind most
often issue the same: of each the calls are expected that the first one made, in this launch or the
last, and its trace takes the numbers of many calls at a time.
"""

import sys
from collections.abc import Callable
from operator import is_
from types import FrameType
from typing import Any

from cubecore.frontends.capi.calls.call_paths import CallPaths
from cubecore.frontends.capi.calls.call_sites import ExpectedCall, Sites, Track
from cubecore.frontends.capi.calls.issues import Issues
from cubecore.frontends.capi.modes import Modes
from cubecore.frontends.capi.pointer import Pointer
from cubecore.machine.execute.array_bounds import ArrayWatch, InArray, NoArrays
from cubecore.machine.group.recorder import Recorder

Slow = Callable[[FrameType, tuple[Any, ...], dict[str, Any]], Any]
"""Makes a frame's call that has more to do or say."""
_MOST_STEPS = 8192
"""Calls of the first cores that are expected of those behind them."""
_MOST_STEADY = 3
"""Pointers of a call that are remembered."""
_MOST_LEFT_OUT = 64
"""Calls in a row that a core may leave out, for the next ones to be expected of it."""


class RepeatedCalls:
    """Records on one core what its kernel calls again.

    `at` is the call of the track that is expected next. Those before `limit` need no look-up; the
    core's trace lacks the numbers of those from `_behind` on.
    """

    def __init__(
        self, core: Recorder, issues: Issues, modes: Modes, arrays: ArrayWatch | None
    ) -> None:
        self._core, self._issues, self._modes = core, issues, modes
        self._arrays: ArrayWatch | NoArrays = arrays or NoArrays()
        kind = core.id.is_aic
        self._track: Track = issues.calls.tracks.setdefault(kind, Track())
        self._leads = kind not in issues.led
        issues.led.add(kind)
        self.at = self.limit = self._behind = 0
        self._on_track = True
        self._given: dict[ExpectedCall, tuple[Any, Any, Any, list[int]]] = {}
        """The last pointers of steady calls, and their addresses."""
        self._led: dict[ExpectedCall, tuple[Any, ...]] = {}
        """The last pointers of calls that may be steady, where this core leads."""
        core.catch_up = self._catch_up

    def of(self, name: str, sites: Sites, slow: Slow) -> Callable[..., Any]:
        """Return the call of this name; `slow` makes those that have more to do or say.

        The others have the numbers, the types and the memories of an earlier call at their place.
        """
        issues, modes, arrays, steps = self._issues, self._modes, self._arrays, self._track.steps
        addresses_of, this_frame = self._addresses, sys._getframe  # noqa: SLF001
        take_addresses, paths = self._core.trace.addresses.extend, sites.paths

        def call(*arguments: Any, **keywords: Any) -> Any:
            frame, at, expected = this_frame(1), self.at, False  # the caller's line, nothing else
            # The expected call: the next one of the track. All that could make it another call is
            # compared: where it stands, the number of arguments, which function it is, the state of
            # the registers, the mask, and the numbers with their types. Pointers are compared in
            # `_addresses`.
            if at < self.limit:
                step = steps[at]
                place, given = step.place, arguments[step.width :]
                try:
                    expected = (
                        (place == frame.f_lasti or _is_of_path(place, frame, paths))
                        and step.length == len(arguments)
                        and step.code is frame.f_code
                        and step.sites is sites
                        and step.before is arrays.state
                        and not (keywords or (step.masked and modes.stale is not None))
                        and given == step.given
                        and (step.types is None or step.types == tuple(map(type, given)))
                    )
                except (TypeError, ValueError):  # an array, a struct of parameters
                    expected = False
            if not expected:
                found = None if keywords else self._look_up(sites, frame, arguments)
                if found is None:
                    return slow(frame, arguments, keywords)
                step = found
            addresses = step.fixed
            if addresses is None:
                addresses = addresses_of(step, arguments)
                if addresses is None:
                    return slow(frame, arguments, keywords)
            count = issues.count + step.size
            if count > issues.most:
                return slow(frame, arguments, keywords)
            # From here on the call is certain. An expected one only moves `at` on: its kinds and
            # lines reach the trace many calls at a time, in `_catch_up`. One that was looked up is
            # recorded at once.
            arrays.state, issues.count = step.after, count
            if step.call.leaves:
                self._leave(name, step, addresses)
            if addresses:
                take_addresses(addresses)
            if expected:
                self.at = at + 1
            else:
                self._take(step, arguments)
            return None

        call.__name__ = name
        return call

    def _look_up(
        self, sites: Sites, frame: FrameType, arguments: tuple[Any, ...]
    ) -> ExpectedCall | None:
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
        return call.step(site, sites, sites.place(frame), self._arrays, core.trace.names)

    def _addresses(self, step: ExpectedCall, arguments: tuple[Any, ...]) -> list[int] | None:
        """Return the addresses of the operands; None if a pointer is not as it was, or leaves."""
        # A steady call has had identical pointer objects (by `is`): its addresses need no
        # computation.
        width = step.steady
        if width:
            known = self._given.get(step)
            if (
                known is not None
                and arguments[0] is known[0]
                and (width == 1 or arguments[1] is known[1])
                and (width < _MOST_STEADY or arguments[2] is known[2])
            ):
                return known[3]
        addresses: list[int] = []
        for pointer, (mem, kind, low, high) in zip(arguments, step.pointers):  # noqa: B905
            if pointer.__class__ is not Pointer or pointer.mem is not mem:
                return None
            if pointer.dtype is not kind and pointer.dtype != kind:
                return None
            to = pointer.address
            if to.__class__ is InArray and (to + low < to.low or to + high > to.high):
                return None
            addresses.append(to)
        if step.indices is not None:
            addresses = [0 if n is None else addresses[n] for n in step.indices]
        if width:
            first, second, third = (*arguments, None, None)[:_MOST_STEADY]
            self._given[step] = first, second, third, addresses
        return addresses

    def _take(self, step: ExpectedCall, arguments: tuple[Any, ...]) -> None:
        """Record the numbers of a call that was looked up, and see where on the track it is."""
        self._catch_up()
        if self._leads and step.width <= _MOST_STEADY:
            self._learn(step, arguments[: step.width])
        # Where the core stands on the track: at the expected call; or it leads, and the track is
        # cut there and grows by this call; or it has left some out, and goes on behind them. Else
        # it is off the track, and calls are looked up until one is met.
        track, at, core = self._track, self.at, self._core
        if at < len(track.steps) and track.steps[at] is step:
            at, self._on_track = at + 1, True
        elif self._leads:
            track.cut(at)
            if at < _MOST_STEPS:
                track.grow(step)
                at += 1
        elif self._on_track:
            ahead = track.steps[at : at + _MOST_LEFT_OUT]
            self._on_track = step in ahead
            at += ahead.index(step) + 1 if self._on_track else 0
        self.at = self._behind = at
        core.take_numbers(step.kinds, step.wheres)
        if core.room <= 0:
            core.pause()
        # As many calls as the recorder surely has room for: within them no check for a pause is
        # needed.
        self.limit = min(len(track.steps), self.at + (core.room - 1) // track.most)

    def _learn(self, step: ExpectedCall, pointers: tuple[Any, ...]) -> None:
        """See whether a call has the pointers of the last time."""
        before = self._led.get(step)
        if before is not None:
            same = all(map(is_, before, pointers))
            step.steady = step.width if same else 0
        self._led[step] = pointers

    def release(self) -> None:
        """Drop the pointers, which refer back to the core's handle."""
        self._given.clear()
        self._led.clear()

    def _catch_up(self) -> None:
        """Give the trace the numbers that it lacks; the next call is looked up."""
        track, first, end = self._track, self._behind, self.at
        if first < end:
            first, end = track.starts[first], track.starts[end]
            self._core.take_numbers(track.kinds[first:end], track.wheres[first:end])
            self._behind = self.at
        self.limit = 0

    def _leave(self, name: str, step: ExpectedCall, addresses: list[int]) -> None:
        """Take what a call stores to global memory, and the mask that it sets."""
        modes, call = self._modes, step.call
        if call.stores:
            for operand, low, high, instruction in call.stores:
                at = addresses[operand]
                modes.lines.write(at + low, at + high, (instruction, step.where))
        if call.sets_mask and (step.stale is None or modes.stale is not step.stale):
            modes.jump(call.templates)
            if call.count is None:
                modes.stale = None
                return
            if step.stale is None:
                step.stale = name, call.count, step.where
            modes.stale = step.stale


def _is_of_path(place: int, frame: FrameType, paths: CallPaths | None) -> bool:
    """True if a place is a frame's, reached by the same calls, where calls are told apart."""
    if paths is None:
        return False
    path = paths.path if frame is paths.frame else paths.path_of(frame)
    return place == frame.f_lasti + path
