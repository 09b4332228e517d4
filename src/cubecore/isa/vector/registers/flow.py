"""The data flow of a program: where the values that each step takes come from."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.vector.registers.folding import FoldedCall, Indices, Node
from cubecore.isa.vector.registers.operation import (
    BY_VALUES,
    MERGING,
    REGISTER_BYTES,
    STORES_MEMORY,
    Call,
    Form,
)
from cubecore.isa.vector.registers.operations.masks import lanes_of
from cubecore.isa.vector.registers.operations.moves import STORES
from cubecore.isa.vector.registers.steps import (
    NONE,
    Entries,
    RegisterStep,
    ValueSource,
    block_of,
    span_of,
    strides_of,
)

_UNMASKED = frozenset({Form.SELECT, Form.MOVE, Form.TERNARY, Form.AXPY, Form.FROM_MASK})
"""Forms of which lanes that the mask keeps out may reach the result, too."""
WHOLE = frozenset({"NORM", "UNALIGNED"})
"""Distributions of loads that bring each byte to the place that it has in UB."""


class Flow:
    """The origins of the values that each leaf takes."""

    def __init__(self, entries: Entries, nodes: Sequence[Node]) -> None:
        self._entries = entries
        self._leaves = [*leaves_of(nodes, ())]
        count = entries.calls.size
        # `_leaf_of` leads from an entry to the leaf that stands for it, `_made` from a value to the
        # entry and the slot that made it, `_order` from a leaf to its entries as they were issued.
        self._leaf_of, self._order = np.zeros(count, np.intp), dict[int, Indices]()
        for leaf, _ in self._leaves:
            flat = leaf.entries.reshape(-1)
            self._leaf_of[flat], self._order[leaf.number] = leaf.number, flat
        most = int(max(entries.results.max(), entries.sources.max(), entries.masks.max()))
        self._made = np.full((most + 1, 2), NONE, np.intp)
        for slot in range(entries.results.shape[1]):
            rows = np.flatnonzero(entries.results[:, slot])
            self._made[entries.results[rows, slot]] = np.stack([rows, np.full_like(rows, slot)], -1)

    def steps(self) -> Mapping[int, RegisterStep]:
        """Return the calls of the program by their leaves' numbers."""
        return {leaf.number: self._step(leaf, levels) for leaf, levels in self._leaves}

    def _step(self, leaf: FoldedCall, levels: tuple[int, ...]) -> RegisterStep:
        entries, at = self._entries, leaf.entries
        first = int(at.reshape(-1)[0])
        call = entries.table[entries.calls[first]]
        width = int(np.count_nonzero(entries.sources[first]))
        sources = [self._source(leaf, levels, entries.sources[at, n]) for n in range(width)]
        mask = entries.masks[at]
        extents, exact = self._extents(call, mask)
        if call.operation.form is Form.LOAD and call.mode in WHOLE:
            extents = np.minimum(extents, self._needed[at])
        return RegisterStep(
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
            strides=strides_of(entries.addresses[at]),
        )

    @cached_property
    def _needed(self) -> NDArray[np.int64]:
        """The bytes of each entry's result that are taken, counted from its first on.

        Lanes behind them are loaded, but every call that takes them masks them out.
        """
        entries, made_by = self._entries, self._made[:, 0]
        needed = np.zeros(entries.calls.size, np.int64)
        let_through, used = self._first_bytes(), np.zeros(needed.size, bool)
        # For each value the most that any reader looks at; a value that nobody reads counts as
        # whole.
        for column in entries.sources.T:
            producers = made_by[column]
            taken = np.flatnonzero(producers >= 0)
            np.maximum.at(needed, producers[taken], let_through[taken])
            used[producers[taken]] = True
        return np.where(used, needed, REGISTER_BYTES)

    def _first_bytes(self) -> NDArray[np.int64]:
        """Return how many bytes of its sources each entry looks at, from their first on."""
        entries = self._entries
        counts = np.full(entries.calls.size, REGISTER_BYTES, np.int64)
        for number, call in enumerate(entries.table):
            rows = np.flatnonzero(entries.calls == number)
            if call.operation.form is Form.COUNT:
                active = entries.scalars[rows].astype(np.int64) * call.width
                counts[rows] = np.minimum(active, REGISTER_BYTES)
            elif call.operation.form is Form.PATTERN:
                first = self._first_lanes(int(rows[0]))
                counts[rows] = REGISTER_BYTES if first is None else first
        masked = self._made[entries.masks, 0]
        looked_at = np.where(masked >= 0, counts[masked], REGISTER_BYTES)
        for number, call in enumerate(entries.table):
            form = call.operation.form
            lanes = call.operation.by_lane or form in {Form.CAST, Form.REDUCE}
            if not lanes or form in _UNMASKED or call.mode == MERGING:
                looked_at[entries.calls == number] = REGISTER_BYTES
        return np.asarray(looked_at)

    def _extents(self, call: Call, masks: NDArray[np.uint32]) -> tuple[NDArray[np.int64], bool]:
        """Return the bytes that accesses touch, and whether they touch all of them.

        A mask that lets the first lanes through, as those of counts do, cuts a store's bytes off.
        """
        span, form = span_of(call), call.operation.form
        full, block = np.full(masks.shape, span, np.int64), block_of(call)
        masked = form in STORES_MEMORY - BY_VALUES and STORES[call.mode].masked is not None
        if form in BY_VALUES:
            return full, False
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

    def _source(
        self, leaf: FoldedCall, levels: tuple[int, ...], values: NDArray[np.uint32]
    ) -> ValueSource:
        """Return where values come from, which are those of one operand on all trips."""
        producers, slots = self._made[values, 0], self._made[values, 1]
        makers = np.where(producers < 0, NONE, self._leaf_of[producers])
        known = np.unique(makers)
        if known.size == 1:
            self._require_latest(leaf.entries, producers)
            return ValueSource(int(known[0]), _one_slot(slots))
        # Two makers: one before a loop, and the loop's own body, which makes the value that its
        # next trip reads. On the first trip of that loop, and on no other, the former is read.
        for axis, level in enumerate(levels):
            of_trips = np.moveaxis(makers, axis, 0)
            begin, rest = np.unique(of_trips[0]), np.unique(of_trips[1:])
            if begin.size == 1 and rest.size == 1:
                behind, uses = np.moveaxis(slots, axis, 0), np.moveaxis(leaf.entries, axis, 0)
                values_made = np.moveaxis(producers, axis, 0)
                self._require_latest(uses[0], values_made[0])
                self._require_latest(uses[1:], values_made[1:])
                initial = ValueSource(int(begin[0]), _one_slot(behind[0]))
                return ValueSource(int(rest[0]), _one_slot(behind[1:]), level, initial)
        raise UnfoldableError

    def _require_latest(self, uses: Indices, producers: Indices) -> None:
        """Refuse a value that its maker has made anew since: the executor keeps the latest."""
        if producers.reshape(-1)[0] < 0:
            return
        order = self._order[int(self._leaf_of[producers.reshape(-1)[0]])]
        latest = order[np.searchsorted(order, uses.reshape(-1)) - 1]
        if not np.array_equal(latest, producers.reshape(-1)):
            raise UnfoldableError


def _one_slot(slots: Indices) -> int:
    """Return which result of its maker a value is on all trips."""
    # Stores of both results of one call on one line look like two trips of a loop.
    first = int(slots.reshape(-1)[0])
    if (slots != first).any():
        raise UnfoldableError
    return first


class UnfoldableError(Exception):
    """A body whose values pass between trips as no loop of the unit does."""


def leaves_of(
    nodes: Sequence[Node], levels: tuple[int, ...]
) -> Iterator[tuple[FoldedCall, tuple[int, ...]]]:
    """Yield the leaves in their order, each with the numbers of the loops around it."""
    for node in nodes:
        if isinstance(node, FoldedCall):
            yield node, levels
        else:
            yield from leaves_of(node.body, (*levels, node.number))
