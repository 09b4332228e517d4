"""The program of a vector function: its calls as loops, with data flow and the bytes they touch.

The body runs on the host once for each block, so a program is what was issued: no branch is left in
it. Registers are values, numbered as they are made; a loop's body reads a value of its own trip, of
the trip before, or of before the loop. What a call reads is told by leaves: `Source`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cubecore.cache import BoundedCache
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.folding import Indices, Leaf, Loop, Node, folded
from cubecore.isa.vector.registers.operation import (
    LOADS_MEMORY,
    REGISTER_BYTES,
    STORES_MEMORY,
    Call,
    Form,
)
from cubecore.isa.vector.registers.operations.masks import lanes_of
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES
from cubecore.isa.vector.registers.types_taken import require_types
from cubecore.lazy_dataclass import dataclass

NONE = -1
"""Stands for a leaf where a register was never written."""
_FARTHEST = 1 << 21
"""Bytes that no UB has: a program that reaches as far is wrong, and its bytes are not counted."""
_MOST_MARKED = 16
_MOST_PAIRS = 1 << 22
"""Pairs of trips that are looked at for a conflict; loops with more run trip by trip."""


@dataclass(frozen=True, eq=False, slots=True)
class Entries:
    """The calls of a body in their order, as columns.

    `calls` are the numbers of distinct calls in `table`, and `places` those of their lines;
    `results` and `sources` the numbers of values, 0 for none, `masks` the values that are masks;
    `variables` are the registers' variables of loads and stores. `addresses` count from the
    program's base.
    """

    table: tuple[Call, ...]
    locations: tuple[Location, ...]
    calls: Indices
    places: Indices
    results: NDArray[np.uint32]
    sources: NDArray[np.uint32]
    masks: NDArray[np.uint32]
    variables: NDArray[np.uint32]
    addresses: NDArray[np.int64]
    scalars: NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The origin of a value that a call takes: the leaf that made it, and one of its results.

    With a `level`, on the first trip of that loop it is `initial` instead; a leaf of NONE was
    never made.
    """

    leaf: int
    result: int
    level: int = NONE
    initial: "Source | None" = None


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A call in the program: what it is, where it stands, what it takes.

    `levels` are the numbers of the loops around it, the outermost first; `addresses` and `scalars`
    have an axis for each, and so have `extents`, the bytes of UB that an access touches from its
    address on. Stores that are not `exact` may leave some of theirs: a mask of values decides.
    """

    call: Call
    location: Location
    number: int
    levels: tuple[int, ...]
    sources: tuple[Source, ...]
    mask: Source | None
    addresses: NDArray[np.int64]
    scalars: NDArray[np.uint64]
    entries: Indices
    extents: NDArray[np.int64]
    exact: bool

    @property
    def stores(self) -> bool:
        """True if it writes to UB."""
        return self.call.operation.form in STORES_MEMORY

    @property
    def loads(self) -> bool:
        """True if it reads UB."""
        return self.call.operation.form in LOADS_MEMORY

    @property
    def span(self) -> int:
        """Bytes of UB of an access whose lanes are all active."""
        return span_of(self.call)


def span_of(call: Call) -> int:
    """Return the bytes of UB that a call touches where all lanes are active; 0 of most calls."""
    form = call.operation.form
    if form in STORES_MEMORY:
        return STORES[call.mode].span
    return LOADS[call.mode].span if form in LOADS_MEMORY else 0


def block_of(call: Call) -> int | None:
    """Return which block of a register a call of a strided move is for; None of other calls."""
    number = call.mode.removeprefix("BLOCK")
    return int(number) if number.isdecimal() and number != call.mode else None


Marked = tuple[Mapping[str, NDArray[np.bool_]], tuple[Remark, ...]]
"""Stored bytes that are known, by operand, and what is said of loaded ones that are not."""


class RegisterProgram:
    """A vector function's body, equal to another one by being the same."""

    def __init__(self, entries: Entries, location: Location) -> None:
        self.entries, self.location = entries, location
        require_types(entries.table, entries.locations, entries.calls, entries.places)
        # One number for call and line: only entries equal in both are trips of one loop.
        kinds = entries.calls * (len(entries.locations) + 1) + entries.places
        self.nodes = folded(kinds.astype(np.int64))
        try:
            self.steps = _Flow(entries, self.nodes).steps()
        except UnfoldableError:
            self.nodes = tuple(Leaf(np.asarray(n, np.intp), n) for n in range(kinds.size))
            self.steps = _Flow(entries, self.nodes).steps()

    def __len__(self) -> int:
        return self.entries.calls.size

    @cached_property
    def marked(self) -> BoundedCache[tuple[object, ...], Marked]:
        """The outcomes of runs on marks of bytes that were never written, by those bytes."""
        return BoundedCache(_MOST_MARKED)

    @cached_property
    def together(self) -> frozenset[int]:
        """The loops whose trips may run at once: nothing passes from one to another."""
        return frozenset(_independent(self.nodes, self.steps))

    @cached_property
    def reach(self) -> int:
        """The bytes from the base to the end of the last access, whatever its mask lets through."""
        memory = [step for step in self.steps.values() if step.loads or step.stores]
        return max((int(step.addresses.max()) + step.span for step in memory), default=0)

    @cached_property
    def rewrites(self) -> bool:
        """True if it stores to bytes that it loads: what was loaded is a copy then."""
        if self.reach > _FARTHEST:
            return False
        loaded = _touched([step for step in self.steps.values() if step.loads])
        stored = _touched([step for step in self.steps.values() if step.stores])
        both = min(loaded.size, stored.size)
        return bool((loaded[:both] & stored[:both]).any())

    @cached_property
    def loaded(self) -> "Cover":
        """The bytes that are loaded before the program has stored there."""
        return Cover.of(self, loads=True)

    @cached_property
    def exact(self) -> bool:
        """True if every byte of `stored` is written, whatever the values are."""
        return all(step.exact for step in self.steps.values())

    @cached_property
    def stored(self) -> "Cover":
        """The bytes that are stored, or may be."""
        return Cover.of(self, loads=False)


class _Flow:
    """The origins of the values that each leaf takes."""

    def __init__(self, entries: Entries, nodes: Sequence[Node]) -> None:
        self._entries = entries
        self._leaves = [*_leaves(nodes, ())]
        count = entries.calls.size
        self._leaf_of, self._order = np.zeros(count, np.intp), dict[int, Indices]()
        for leaf, _ in self._leaves:
            # `_leaf_of` leads from an entry to the leaf that stands for it, `_made` from a value to
            # the entry and the slot that made it, `_order` from a leaf to its entries as they were
            # issued.
            flat = leaf.entries.reshape(-1)
            self._leaf_of[flat], self._order[leaf.number] = leaf.number, flat
        most = int(max(entries.results.max(), entries.sources.max(), entries.masks.max()))
        self._made = np.full((most + 1, 2), NONE, np.intp)
        for slot in range(entries.results.shape[1]):
            made = np.flatnonzero(entries.results[:, slot])
            self._made[entries.results[made, slot]] = np.stack([made, np.full_like(made, slot)], -1)

    def steps(self) -> Mapping[int, Step]:
        """Return the calls of the program by their leaves' numbers."""
        return {leaf.number: self._step(leaf, levels) for leaf, levels in self._leaves}

    def _step(self, leaf: Leaf, levels: tuple[int, ...]) -> Step:
        entries, at = self._entries, leaf.entries
        first = int(at.reshape(-1)[0])
        call = entries.table[entries.calls[first]]
        width = int(np.count_nonzero(entries.sources[first]))
        sources = [self._source(leaf, levels, entries.sources[at, n]) for n in range(width)]
        mask = entries.masks[at]
        extents, exact = self._extents(call, mask)
        return Step(
            call=call,
            location=entries.locations[entries.places[first]],
            number=leaf.number,
            levels=levels,
            sources=tuple(sources),
            mask=self._source(leaf, levels, mask) if mask.any() else None,
            addresses=entries.addresses[at],
            scalars=entries.scalars[at],
            entries=at,
            extents=extents,
            exact=exact,
        )

    def _extents(self, call: Call, masks: NDArray[np.uint32]) -> tuple[NDArray[np.int64], bool]:
        """Return the bytes that accesses touch, and whether they touch all of them.

        A mask that lets the first lanes through, as those of counts do, cuts a store's bytes off.
        """
        span, form = span_of(call), call.operation.form
        full, block = np.full(masks.shape, span, np.int64), block_of(call)
        masked = form in STORES_MEMORY and STORES[call.mode].masked is not None
        if not (masked or block is not None) or not masks.any():
            return full, True
        makers, numbers = np.unique(self._made[masks, 0], return_inverse=True)
        counts = [self._first_lanes(int(maker)) for maker in makers]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return full, False
        lanes = np.array(known, np.int64)[numbers.reshape(masks.shape)]  # bytes of a register
        if block is None:
            return lanes * span // REGISTER_BYTES, True
        inside = np.clip(lanes - block * span, 0, span)
        return (inside if form in STORES_MEMORY else np.where(inside > 0, span, 0)), True

    def _first_lanes(self, entry: int) -> int | None:
        """Return how many bytes of a register a mask lets through from its first on.

        None where it is no such mask.
        """
        if entry < 0:
            return None
        call = self._entries.table[self._entries.calls[entry]]
        if call.operation.form is Form.COUNT:
            counted: int = self._entries.scalars[entry].item() * call.width
            return min(counted, REGISTER_BYTES)
        if call.operation.form is not Form.PATTERN:
            return None
        lane = lanes_of(call.mode, REGISTER_BYTES // call.width)
        count = int(np.count_nonzero(lane))
        first: int | None = count * call.width if lane[:count].all() else None
        return first

    def _source(self, leaf: Leaf, levels: tuple[int, ...], values: NDArray[np.uint32]) -> Source:
        """Return where values come from, which are those of one operand on all trips."""
        made, slots = self._made[values, 0], self._made[values, 1]
        makers = np.where(made < 0, NONE, self._leaf_of[made])
        known = np.unique(makers)
        if known.size == 1:
            self._require_latest(leaf.entries, made)
            return Source(int(known[0]), int(slots.reshape(-1)[0]))
        # Two makers: one before a loop, and the loop's own body, which makes the value that its
        # next trip reads. On the first trip of that loop, and on no other, the former is read.
        for axis, level in enumerate(levels):
            of_trips = np.moveaxis(makers, axis, 0)
            begin, rest = np.unique(of_trips[0]), np.unique(of_trips[1:])
            if begin.size == 1 and rest.size == 1:
                behind, uses = np.moveaxis(slots, axis, 0), np.moveaxis(leaf.entries, axis, 0)
                values_made = np.moveaxis(made, axis, 0)
                self._require_latest(uses[0], values_made[0])
                self._require_latest(uses[1:], values_made[1:])
                initial = Source(int(begin[0]), int(behind[0].reshape(-1)[0]))
                return Source(int(rest[0]), int(behind[1].reshape(-1)[0]), level, initial)
        raise UnfoldableError

    def _require_latest(self, uses: Indices, made: Indices) -> None:
        """Refuse a value that its maker has made anew since: the executor keeps the latest."""
        if made.reshape(-1)[0] < 0:
            return
        order = self._order[int(self._leaf_of[made.reshape(-1)[0]])]
        latest = order[np.searchsorted(order, uses.reshape(-1)) - 1]
        if not np.array_equal(latest, made.reshape(-1)):
            raise UnfoldableError


class UnfoldableError(Exception):
    """A body whose values pass between trips as no loop of the unit does."""


def _leaves(
    nodes: Sequence[Node], levels: tuple[int, ...]
) -> Iterator[tuple[Leaf, tuple[int, ...]]]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node, levels
        else:
            yield from _leaves(node.body, (*levels, node.number))


# --- which trips may run at once


def _independent(nodes: Sequence[Node], steps: Mapping[int, Step]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, Loop):
            yield from _independent(node.body, steps)
            inside = [steps[leaf.number] for leaf, _ in _leaves(node.body, ())]
            if not _passes_values(node.number, inside) and not _conflicts(node.number, inside):
                yield node.number


def _passes_values(level: int, inside: Sequence[Step]) -> bool:
    """Return whether a trip reads what an earlier one made."""
    position = {step.number: n for n, step in enumerate(inside)}
    for n, step in enumerate(inside):
        within = step.levels[step.levels.index(level) + 1 :]
        for source in (*step.sources, *filter(None, [step.mask])):
            taken: Source | None = source
            while taken is not None:
                if taken.level == level:
                    return True
                # What an inner loop hands on to its next trip stays within this trip.
                if taken.level not in within and position.get(taken.leaf, -1) >= n:
                    return True
                taken = taken.initial
    return False


def _conflicts(level: int, inside: Sequence[Step]) -> bool:
    """Return whether one trip stores to bytes that another one touches."""
    memory = [step for step in inside if step.loads or step.stores]
    stores = [step for step in memory if step.stores]
    return any(_overlap(level, store, other) for store in stores for other in memory)


def _overlap(level: int, store: Step, other: Step) -> bool:
    # [trips outside, trips, trips]: do trips i and j of the loop touch a common byte? The diagonal
    # is a trip with itself, whose own order is kept.
    low, high = _reach(level, store)
    other_low, other_high = _reach(level, other)
    if low.shape[1] ** 2 * low.shape[0] > _MOST_PAIRS:
        return True
    touch = (low[:, :, None] < other_high[:, None, :]) & (other_low[:, None, :] < high[:, :, None])
    touch &= ~np.eye(low.shape[1], dtype=bool)
    return bool(touch.any())


def _reach(level: int, step: Step) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes between which a step touches UB, shaped [trips outside, trips]."""
    axis = step.levels.index(level)
    shape = step.addresses.shape
    outside = int(np.prod(shape[:axis], dtype=int))
    low = step.addresses.reshape(outside, shape[axis], -1)
    high = low + step.extents.reshape(low.shape)
    return low.min(axis=-1), high.max(axis=-1)


# --- which bytes are touched


@dataclass(frozen=True, eq=False, slots=True)
class Cover:
    """Bytes of UB from the program's base on: runs that follow each other without a gap."""

    runs: tuple[tuple[int, int], ...]

    @staticmethod
    def of(program: RegisterProgram, *, loads: bool) -> "Cover":
        """Return the bytes that a program loads before it stores there, or those that it stores."""
        steps = program.steps.values()
        concerned = [step for step in steps if (step.loads if loads else step.stores)]
        if program.reach > _FARTHEST:  # it leaves UB, and is not executed
            ends = [(int(s.addresses.min()), int(s.addresses.max()) + s.span) for s in concerned]
            return Cover(((min(a for a, _ in ends), max(b for _, b in ends)),) if ends else ())
        touched = _touched(concerned)
        if loads and program.rewrites:
            touched &= _first_loads(program)[: touched.size]
        return Cover(tuple(_parted(_runs(touched), _starts(concerned))))


def _touched(steps: Sequence[Step]) -> NDArray[np.bool_]:
    """Return which bytes some steps touch."""
    # A difference array: +1 where an access begins, -1 where it ends; a byte is touched where the
    # running sum is above 0.
    size = max((int((step.addresses + step.extents).max()) for step in steps), default=0)
    edges = np.zeros(size + 1, np.int64)
    for step in steps:
        np.add.at(edges, step.addresses.reshape(-1), 1)
        np.subtract.at(edges, (step.addresses + step.extents).reshape(-1), 1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def _first_loads(program: RegisterProgram) -> NDArray[np.bool_]:
    """Return which bytes are loaded before they are stored, call by call in their order."""
    memory = [s for s in program.steps.values() if s.loads or s.stores]
    columns = ((s.entries, s.addresses, s.addresses + s.extents) for s in memory)
    kinds = np.concatenate([np.full(s.entries.size, s.loads) for s in memory])
    entry, low, high = (
        np.concatenate([column.reshape(-1) for column in of_kind])
        for of_kind in zip(*columns, strict=True)
    )
    first = np.zeros(int(high.max()), np.int8)
    for n in np.argsort(-entry):  # the first access to a byte is the last one that is noted
        first[low[n] : high[n]] = 1 if kinds[n] else -1
    return np.asarray(first > 0)


def _starts(steps: Sequence[Step]) -> list[int]:
    """Return where calls' bytes begin behind all those of others: of another array, most often."""
    ends = sorted((int(s.addresses.min()), int((s.addresses + s.extents).max())) for s in steps)
    starts, stop = [], 0
    for low, high in ends:
        if low >= stop:
            starts.append(low)
        stop = max(stop, high)
    return starts


def _parted(runs: Sequence[tuple[int, int]], starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    for low, high in runs:
        yield from pairwise([low, *(start for start in starts if low < start < high), high])


def _runs(touched: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], touched, [False]]).astype(np.int8)))
    return tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))
