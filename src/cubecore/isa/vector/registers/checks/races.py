"""Races inside a vector function: accesses of a common byte that nothing orders."""

from collections.abc import Iterator, Sequence

import numpy as np

from cubecore.isa.declare.remark import Remark, RemarkedAccess
from cubecore.isa.vector.registers.checks.accesses import ORDERED_BYTES, Access, AccessOrder
from cubecore.isa.vector.registers.folding import Indices
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep

_MOST_PAIRS = 1 << 16
"""Pairs of entries of two calls that are looked at; of more, those of the first trips."""
_MOST_TRIPS = 256
_MOST_CHAINS = 128
"""Stores of a call that are looked at for loads that their data hang on."""
_RACE = "vf-race"
_STORES = "vf-store-order"
"""The kind of two stores: a public sample that is right on chips relies on their order."""
_IN_C = {"VEC_STORE": "VST", "VEC_LOAD": "VLD"}


def races(program: RegisterProgram) -> Iterator[Remark]:
    """Yield a finding for each two calls whose accesses race, the later one's line first."""
    if not _may_meet(program):
        return
    order = AccessOrder(program)
    found = []
    for first, second in _candidates(order.accesses):
        if not first.variables & second.variables:
            pair = _race(order, first, second)
            if pair is not None:
                found.append((pair, first, second))
    for (one, other), first, second in sorted(found, key=lambda each: (each[0][1], each[0][0])):
        yield _remark(first, one, second, other)


def _may_meet(program: RegisterProgram) -> bool:
    """Return whether a store's bytes, from the first to the last, are near those of another call.

    Most programs have none, and are not looked at more closely.
    """
    touching = (step for step in program.steps.values() if step.loads or step.stores)
    memory = [step for step in touching if step.pieces.low.size]
    if not any(step.stores for step in memory):
        return False
    low = np.array([step.pieces.low.min() for step in memory])
    high = np.array([_end(step) for step in memory])
    # Whole units: what is near without touching may still be ordered, and is looked at.
    low, high = low // ORDERED_BYTES, -(-high // ORDERED_BYTES)
    meets = (low[:, None] < high) & (low < high[:, None])
    np.fill_diagonal(meets, val=False)
    stores = np.array([step.stores for step in memory])
    return bool((meets & stores).any())


def _end(step: RegisterStep) -> int:
    """Return the end of a step's last access, whatever a mask leaves out."""
    if step.landed is not None:
        return int(step.pieces.high.max())
    return int(step.addresses.max()) + step.span


def _candidates(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Yield calls, one of which stores, whose bytes may meet, the later one second."""
    low = np.array([access.low.min() for access in accesses])
    high = np.array([access.high.max() for access in accesses])
    begin = np.array([access.entries[0] for access in accesses])
    end = np.array([access.entries[-1] for access in accesses])
    stores = np.array([access.stores for access in accesses])
    exact = np.array([access.exact for access in accesses])
    for number, first in enumerate(accesses):
        # Three things must hold of a pair: the spans of bytes meet, one of them stores, and one is
        # known to the byte (of two that are not, meeting proves nothing). The later one is second.
        meets = (low < high[number]) & (low[number] < high) & (begin[number] < end)
        meets &= (stores | first.stores) & (exact | first.exact)
        for other in np.flatnonzero(meets).tolist():
            yield first, accesses[other]


def _race(order: AccessOrder, first: Access, second: Access) -> tuple[int, int] | None:
    """Return the places of the first two accesses that race, of a first call and a later one."""
    one, other = _meeting(first, second)
    behind = order.is_behind_barrier(first, second, first.entries[one], second.entries[other])
    one, other = one[~behind], other[~behind]
    if one.size and second.stores and not first.stores:
        one, other = _independent(order, first, second, one, other)
    if not one.size:
        return None
    at = np.lexsort((first.entries[one], second.entries[other]))[0]
    return int(one[at]), int(other[at])


def _meeting(first: Access, second: Access) -> tuple[Indices, Indices]:
    """Return the places of accesses of two calls that touch a common byte, the former's first."""
    rows = np.arange(second.low.size)
    # A window of the accesses sorted by their start holds all that can reach one of `second`: those
    # that start before its end, and no earlier than the longest of them before its start. The
    # second trip of the loop is for calls with too many pairs, of which only the first trips are
    # paired.
    by_low = np.argsort(first.low, kind="stable")
    for _ in range(2):
        sorted_low = first.low[by_low]
        longest = int((first.high - first.low).max())
        start = np.searchsorted(sorted_low, second.low[rows] - longest, "right")
        stop = np.searchsorted(sorted_low, second.high[rows], "left")
        counts = np.maximum(stop - start, 0)
        if counts.sum() <= _MOST_PAIRS:
            break
        rows, by_low = rows[:_MOST_TRIPS], by_low[by_low < _MOST_TRIPS]
    # The windows, written one behind the other: `other` is the row of each pair, `within` its place
    # in the row's window.
    other = np.repeat(rows, counts)
    within = np.arange(other.size) - np.repeat(np.cumsum(counts) - counts, counts)
    one = by_low[np.repeat(start, counts) + within]
    touch = (first.low[one] < second.high[other]) & (second.low[other] < first.high[one])
    touch &= (first.high[one] > first.low[one]) & (second.high[other] > second.low[other])
    # Each pair is looked at once, in the order in which its two accesses are issued.
    touch &= first.entries[one] < second.entries[other]
    return one[touch], other[touch]


def _independent(
    order: AccessOrder, load: Access, store: Access, one: Indices, other: Indices
) -> tuple[Indices, Indices]:
    """Return the pairs of a load and a store whose data do not hang on it."""
    kept = np.ones(one.size, bool)
    # The data of a store may come from the very load that it would race with (x[i] = f(x[i])). Such
    # a store waits for its load; the pairs are taken store by store, as one walk back along its
    # data answers for all of its loads.
    by_store = np.argsort(other, kind="stable")
    places, starts = np.unique(other[by_store], return_index=True)
    stops = [*starts[1:].tolist(), one.size]
    for n, place in enumerate(places.tolist()):
        pairs = by_store[starts[n] : stops[n]]
        if n >= _MOST_CHAINS:  # the trips before tell
            kept[pairs] = False
            continue
        loads = load.entries[one[pairs]]
        hung = order.hangs_on(int(store.entries[place]), loads.tolist())
        kept[pairs] = [int(entry) not in hung for entry in loads]
    return one[kept], other[kept]


def _remark(first: Access, one: int, second: Access, other: int) -> Remark:
    verb = "store" if second.stores else "load"
    before = "stores" if first.stores else "loads"
    place = f"{first.location.file}:{first.location.line}"
    kind = _STORES if first.stores and second.stores else _RACE
    word = f"{_IN_C[first.kind]}_{_IN_C[second.kind]}"
    message = (
        f"{second.name} must {verb} bytes of UB behind {first.name} ({place}), which {before} them,"
        f" got no order between the two in one vector function; call LocalMemBar<MemType::"
        f"{first.kind}, MemType::{second.kind}>() or asc_mem_bar({word}) between them"
    )
    accesses = tuple(
        RemarkedAccess(
            "write" if access.stores else "read",
            access.name,
            int(access.low[at]),
            int(access.high[at]),
            access.location,
        )
        for access, at in ((first, one), (second, other))
    )
    return Remark(kind, message, f"{first.name} {place}", second.location, accesses)
