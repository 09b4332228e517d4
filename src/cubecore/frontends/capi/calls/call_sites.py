"""Places in a kernel that call an instruction: what calls there issued, to be had again.

A loop calls from the same place with other pointers, and so do other cores and later launches. If
memories, types and numbers are those of an earlier call, so is what it issues.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from cubecore.chips.model import Chip
from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.frontends.capi.calls.call_paths import CallPaths
from cubecore.frontends.capi.modes import SETTERS, Said, Stale
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.source_locations import is_outside
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.machine.execute.array_bounds import (
    ArrayPlan,
    ArraySpans,
    ArrayState,
    ArrayWatch,
    NoArrays,
)
from cubecore.machine.group.known_launches import KnownLaunches

_MOST_NUMBERS = 256
"""Calls with other numbers that are remembered of one location."""
_NOWHERE = -(2**62)
_MOST_CHIPS = 4
"""Chips that a kernel's calls are kept for."""
_MOST_PLACES = 4096
"""Calls, and states of the registers, that are kept from one launch to the next."""


@dataclass(eq=False, slots=True)
class Site:
    """A call: location, types of its arguments, pointers first, and the numbers behind them.

    `typed` says that equal numbers may be of other types. `quick` is what it issues if that needs
    nothing but the pointers' addresses, else None. `notice` is what is to be said of it, once in a
    launch.
    """

    code: CodeType
    where: Location
    pointers: int
    kinds: list[tuple[Any, Any]]
    numbers: tuple[Any, ...]
    types: tuple[type, ...]
    typed: bool
    bound: BoundCall
    quick: "QuickCall | None"
    notice: Said | None

    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether a call with equal numbers is the same: types and memories are, too."""
        if self.types != tuple(map(type, arguments[self.pointers :])):
            return False
        given = arguments[: self.pointers]
        alike = all(isinstance(p, Pointer) for p in given)
        return alike and [(p.mem, p.dtype) for p in given] == self.kinds


@dataclass(eq=False, slots=True)
class QuickCall:
    """The instructions of a call at its pointers' addresses, if none answers or switches a mode on.

    `indices` are the pointers by operand, of all templates in a row, None if they are the operands;
    `stores` those that global memory is written at: the operand, the bytes, the instruction.
    `sets_mask` says that a mask is left, or a `count` instead of it; `leaves` that there is one of
    the two.
    """

    templates: tuple[Instruction, ...]
    indices: tuple[int | None, ...] | None
    masked: bool
    sets_mask: bool
    count: int | None
    stores: tuple[tuple[int, int, int, str], ...]
    leaves: bool
    by_state: "dict[int, PreparedCall]" = field(default_factory=dict)

    def prepared(self, site: Site, arrays: ArrayWatch | NoArrays, names: Names) -> "PreparedCall":
        """Return the call as the core's state is."""
        # The checks of arrays and what follows depend on the registers' state, so that a call has
        # one preparation per state. Loops come back to the same state, thus to the same one.
        before = arrays.state
        known = self.by_state.get(id(before))
        if known is None:
            plan = arrays.plan(self.templates)
            kinds = array("I", [names.kind(template) for template in self.templates])
            wheres = array("I", [names.location_number(site.where)] * len(kinds))
            known = PreparedCall(self, site, before, plan, kinds, wheres)
            self.by_state[id(before)] = known
        return known


class PreparedCall:
    """A call in one state of the core, and the numbers of what it records.

    `pointers` are memories, types and the bytes that are touched from there on. `fixed` are the
    addresses of the operands if there are no pointers, else None. `stale` says which count the call
    leaves in place of a mask, once it has. `before` is held so that its `id` stays its own.
    """

    __slots__ = (
        *("after", "before", "call", "fixed", "indices", "kinds", "pointers", "size", "stale"),
        *("where", "wheres"),
    )

    def __init__(
        self,
        call: QuickCall,
        site: Site,
        before: ArrayState,
        plan: ArrayPlan,
        kinds: "array[int]",
        wheres: "array[int]",
    ) -> None:
        self.call, self.where = call, site.where
        self.indices, self.size = call.indices, len(call.templates)
        self.before, self.after = before, plan.after
        self.pointers = [
            (mem, kind, *_reach(call, plan, number))
            for number, (mem, kind) in enumerate(site.kinds)
        ]
        self.fixed = None if site.pointers else [0] * len(call.indices or ())
        self.kinds, self.wheres = kinds, wheres
        self.stale: Stale | None = None


def _reach(call: QuickCall, plan: ArrayPlan, pointer: int) -> tuple[int, int]:
    """Return the bytes that a call touches from a pointer on; nowhere if it touches none."""
    touched = [
        (low, high)
        for operand, low, high in plan.checks
        if (operand if call.indices is None else call.indices[operand]) == pointer
    ]
    return min((low for low, _ in touched), default=-_NOWHERE), max(
        (high for _, high in touched), default=_NOWHERE
    )


class Sites:
    """The places of a kernel that make one call, by the code that they stand in.

    With `paths` those that other calls led to are places of their own.
    """

    def __init__(self, paths: CallPaths | None) -> None:
        self.paths = paths
        self.by_code: dict[tuple[int, int], tuple[int, dict[object, Site]]] = {}

    def __len__(self) -> int:
        return sum(len(sites) for _, sites in self.by_code.values())

    def place(self, frame: FrameType) -> int:
        """Return the place of a call in its frame's code."""
        return frame.f_lasti + (0 if self.paths is None else self.paths.path_of(frame))

    def near(self, frame: FrameType, arguments: tuple[Any, ...]) -> Site | None:
        """Return the site of an earlier call at this location with equal numbers."""
        site = self.by_code.get((id(frame.f_code), self.place(frame)))
        if site is None:
            return None
        try:
            return site[1].get(arguments[site[0] :])
        except TypeError:  # a struct of parameters
            return None

    def keep(
        self,
        frame: FrameType,
        where: Location,
        arguments: tuple[Any, ...],
        bound: BoundCall,
        notice: Said | None,
    ) -> Site | None:
        """Remember a call, if its location is the author's and its arguments are plain."""
        # A site is found by the code and the byte offset in it (`f_lasti`), then by the numbers
        # behind the pointers. Only plain arguments can be keys: a float of 0.0 or -0.0 is excluded
        # by `_is_signed`.
        count = [type(argument) for argument in arguments].count(Pointer)
        numbers = arguments[count:]
        plain = all(isinstance(n, (int, str)) or _is_signed(n) for n in numbers)
        plain = plain and all(isinstance(p, Pointer) for p in arguments[:count])
        if not (plain and bound.reusable and is_outside(frame.f_code)):
            return None
        kinds = [(p.mem, p.dtype) for p in arguments[:count]]
        types = tuple(map(type, numbers))
        code = frame.f_code
        quick = _quick(bound, count) if notice is None else None
        typed = any(kind is not str for kind in types)
        site = Site(code, where, count, kinds, numbers, types, typed, bound, quick, notice)
        key = id(code), self.place(frame)
        sites = self.by_code.get(key)
        if sites is None or sites[0] != count or len(sites[1]) >= _MOST_NUMBERS:
            sites = self.by_code[key] = count, {}
        sites[1][numbers] = site
        return site


def _quick(bound: BoundCall, pointers: int) -> QuickCall | None:
    """Return what a call issues, if it answers nothing, cleans no cache and leaves a mask at most.

    It is made in normal mode, and has to leave that on.
    """
    templates = tuple(template for template, _ in bound.steps)
    after, stores, indices = Registers(), [], list[int | None]()
    for template, given in bound.steps:
        masks = isinstance(template, (SetVectorMask, SetMaskCount, SetMaskNorm))
        sets = isinstance(template, SETTERS) and not masks
        if isinstance(template, Dcci) or template.to_partner or sets:
            return None
        after = template.apply(after) if masks else after
        for number, operand in enumerate(template.operands()):
            if operand.mem is Mem.GM and operand.access.writes:
                span = span_bytes(template, operand, 0)
                if span is not None:
                    stores.append((len(indices) + number, *span, template.name))
        indices += given
    if after.mask_counts or type(templates[0]).result is not Instruction.result:
        return None
    mask = next((t for t in templates if isinstance(t, SetVectorMask)), None)
    return QuickCall(
        templates=templates,
        indices=None if indices == list(range(pointers)) else tuple(indices),
        masked=bound.masked,
        sets_mask=mask is not None,
        count=mask.mask_low if mask is not None and bound.counted else None,
        stores=tuple(stores),
        leaves=mask is not None or bool(stores),
    )


def _is_signed(number: object) -> bool:
    """True if a number is a float that equals none of another sign."""
    return isinstance(number, float) and number != 0


class KnownCalls:
    """The places that a kernel calls from, and what its templates touch, on one chip.

    Places are told apart by the calls that led there if they are `traced`, for its time by line.
    """

    def __init__(self, chip: Chip, *, traced: bool) -> None:
        self.paths = CallPaths() if traced else None
        self.sites: dict[str, Sites] = {}
        self.loads: dict[tuple[int, Mem, str], tuple[LoadScalar, str]] = {}
        self.spans = ArraySpans(chip)
        self.launches = KnownLaunches()

    def __len__(self) -> int:
        places = sum(map(len, self.sites.values())) + len(self.loads)
        return places + len(self.spans) + len(self.launches.names.templates)


_ByChip = dict[tuple[Chip, bool], KnownCalls]
_KNOWN: WeakKeyDictionary[Callable[..., Any], _ByChip] = WeakKeyDictionary()


def known_calls(function: Callable[..., Any], chip: Chip, *, traced: bool = False) -> KnownCalls:
    """Return what launches of a kernel's function on a chip have met, those alone that trace."""
    by_chip = _KNOWN.setdefault(function, {})
    known = by_chip.get((chip, traced))
    if known is None or len(known) > _MOST_PLACES:
        if known is None and len(by_chip) >= _MOST_CHIPS:
            by_chip.clear()
        known = by_chip[chip, traced] = KnownCalls(chip, traced=traced)
    return known
