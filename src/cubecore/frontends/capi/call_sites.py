"""Places in a kernel that call an instruction: what calls there issued, to be had again.

A loop calls from the same place with other pointers. If memories, types and numbers are those of
an earlier call, so is what it issues.
"""

from types import CodeType, FrameType
from typing import Any

from cubecore.frontends.capi.binding import BoundCall
from cubecore.frontends.capi.modes import SETTERS, stores_globally
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.source_locations import is_outside
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.lazy_dataclass import dataclass

_MOST_NUMBERS = 256
"""Calls with other numbers that are remembered of one place."""


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A call: the place, the types of its arguments, pointers first, and the numbers behind them.

    `template` is the one instruction that it issues at the pointers' addresses, in their order, and
    that changes and answers nothing here; None where there is more to do.
    """

    code: CodeType
    where: Location
    types: tuple[type, ...]
    pointers: int
    kinds: list[tuple[Any, Any]]
    numbers: tuple[Any, ...]
    bound: BoundCall
    template: Instruction | None


class Sites:
    """The places of a launch that make one call, by the code that they stand in."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, dict[object, Site]]] = {}

    def find(self, frame: FrameType, arguments: tuple[Any, ...]) -> Site | None:
        """Return the site of a call, if there was one like it at its place."""
        found = self._known.get((id(frame.f_code), frame.f_lasti))
        if found is None:
            return None
        count, sites = found
        try:
            site = sites.get(arguments[count:])
        except TypeError:  # a struct of parameters
            return None
        if site is None or site.types != tuple(map(type, arguments)):
            return None
        if count and [(p.mem, p.dtype) for p in arguments[:count]] != site.kinds:
            return None
        return site

    def keep(
        self, frame: FrameType, where: Location, arguments: tuple[Any, ...], bound: BoundCall
    ) -> None:
        """Remember a call, if its place is the author's and its arguments are plain."""
        types = tuple(map(type, arguments))
        count = types.count(Pointer)
        numbers = arguments[count:]
        plain = all(isinstance(n, (int, str)) or _is_signed(n) for n in numbers)
        plain = plain and all(isinstance(p, Pointer) for p in arguments[:count])
        if not (plain and bound.reusable and is_outside(frame.f_code)):
            return
        kinds = [(p.mem, p.dtype) for p in arguments[:count]]
        template, places = bound.steps[0]
        alone = len(bound.steps) == 1 and places == tuple(range(count))
        followed = isinstance(template, (*SETTERS, Dcci)) or stores_globally(template)
        silent = type(template).result is Instruction.result and not followed
        code, only = frame.f_code, template if alone and silent else None
        site = Site(code, where, types, count, kinds, numbers, bound, only)
        known = self._known.get((id(code), frame.f_lasti))
        if known is None or known[0] != count or len(known[1]) >= _MOST_NUMBERS:
            known = self._known[id(code), frame.f_lasti] = count, {}
        known[1][numbers] = site


def _is_signed(number: object) -> bool:
    """True if a number is a float that equals none of another sign."""
    return isinstance(number, float) and number != 0
