"""Other legal orders of a program: UB accesses change places where nothing orders them.

Data dependences hold, barriers hold what they name, and accesses of one register variable stay in
their order. A program whose accesses are ordered as they must be computes the same in each.
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cubecore.isa.vector.registers.checks.accesses import AccessOrder, covers
from cubecore.isa.vector.registers.folding import Indices
from cubecore.isa.vector.registers.operation import Form
from cubecore.isa.vector.registers.program import RegisterProgram

_MOST_ENTRIES = 1 << 14
"""Entries of the longest program that is reordered; longer ones run as they are."""
Edges = list[tuple[int, int]]


def reordered(program: RegisterProgram, choose: Callable[[int], int]) -> RegisterProgram:
    """Return the program in another order; `choose` says which of so many comes next.

    Those that may come next are numbered in the order of the program. Where nothing may change
    places it is the program itself.
    """
    count = len(program)
    if count > _MOST_ENTRIES or not any(step.stores for step in program.steps.values()):
        return program
    order = AccessOrder(program)
    followers, waits = _graph(order, count)
    memory = frozenset(entry for access in order.accesses for entry in access.entries.tolist())
    places = _sorted(followers, waits, memory, choose)
    if places == list(range(count)):
        return program
    return _permuted(program, np.array(places, np.intp))


def _graph(order: AccessOrder, count: int) -> tuple[list[list[int]], list[int]]:
    """Return the entries behind each one, and on how many each one waits."""
    # A topological sort of this graph is a legal order; `waits` counts unmet predecessors.
    edges = [*_dependences(order), *_barriers(order), *_variables(order)]
    followers: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for before, behind in dict.fromkeys(edges):
        followers[before].append(behind)
        waits[behind] += 1
    return followers, waits


def _dependences(order: AccessOrder) -> Edges:
    edges: Edges = []
    entries = order.entries
    for column in (*entries.sources.T, entries.masks):
        edges += [
            (producer, at)
            for at, value in enumerate(column.tolist())
            if value and (producer := order.made_by(value)) >= 0
        ]
    return edges


def _barriers(order: AccessOrder) -> Edges:
    """Return what barriers hold: each access by the next one of a kind, and the last before it."""
    edges: Edges = []
    for (before, behind), places in order.barriers.items():
        edges += list(pairwise(places.tolist()))
        for access in order.accesses:
            if covers(before, access.kind):
                following = np.searchsorted(places, access.entries)
                edges += _pairs(access.entries, places, following)
            if covers(behind, access.kind):
                last = np.searchsorted(places, access.entries) - 1
                edges += [(b, a) for a, b in _pairs(access.entries, places, last)]
    return edges


def _pairs(entries: Indices, places: Indices, numbers: Indices) -> Edges:
    held = (numbers >= 0) & (numbers < places.size)
    return list(zip(entries[held].tolist(), places[numbers[held]].tolist(), strict=True))


def _variables(order: AccessOrder) -> Edges:
    """Return the chains of accesses of each variable; of several ones, they are one chain."""
    chains: dict[int, list[int]] = {}
    for access in order.accesses:
        for variable in access.variables:
            chains.setdefault(variable, []).extend(access.entries.tolist())
    return [pair for chain in chains.values() for pair in pairwise(sorted(chain))]


def _sorted(
    followers: list[list[int]],
    waits: list[int],
    memory: frozenset[int],
    choose: Callable[[int], int],
) -> list[int]:
    """Return the entries in an order that `choose` makes of the accesses that wait on none.

    What touches no memory is done as soon as it can be.
    """
    # Kahn's algorithm with a choice among ready accesses only: calls on registers cannot be
    # observed.
    free = [entry for entry, count in enumerate(waits) if count == 0 and entry not in memory]
    ready = [entry for entry, count in enumerate(waits) if count == 0 and entry in memory]
    taken: list[int] = []
    while free or ready:
        entry = free.pop() if free else ready.pop(choose(len(ready)))
        taken.append(entry)
        for follower in followers[entry]:
            waits[follower] -= 1
            if waits[follower] == 0 and follower in memory:
                insort(ready, follower)
            elif waits[follower] == 0:
                free.append(follower)
    return taken


def _permuted(program: RegisterProgram, places: Indices) -> RegisterProgram:
    entries = program.entries
    forms = np.array([call.operation.form is Form.BARRIER for call in entries.table])
    places = places[~forms[entries.calls[places]]]
    moved = {
        name: getattr(entries, name)[places]
        for name in (
            *("calls", "places", "results", "sources", "masks", "variables", "addresses"),
            "scalars",
        )
    }
    return RegisterProgram(replace(entries, **moved), program.location)
