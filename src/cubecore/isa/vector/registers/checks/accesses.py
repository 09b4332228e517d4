"""Accesses of UB by a program, and what orders two of them (*Reg*, LocalMemBar).

A then B, which touch a common byte and of which one stores, are ordered by a barrier of their
classes between them, by being of one register variable, or by B's data, which depend on A's load.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.folding import Indices
from cubecore.isa.vector.registers.operation import Form
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep

CLASSES = ("VEC_STORE", "VEC_LOAD", "SCALAR_STORE", "SCALAR_LOAD", "VEC_ALL", "SCALAR_ALL")
"""Classes of accesses that barriers name, in the order of MemType."""
ORDERED_BYTES = 32
"""Bytes that a load of one element reads, for the purpose of order."""
_PAIRS = frozenset({Form.LOAD_PAIR, Form.STORE_PAIR})


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """A load or a store of the program: its entries in their order, and bytes [low, high) of each.

    `variables` are the classes of its registers' variables. One that is not `exact` may leave some
    of its bytes, as values decide.
    """

    number: int
    name: str
    location: Location
    stores: bool
    exact: bool
    entries: Indices
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    variables: frozenset[int]

    @property
    def kind(self) -> str:
        """The class of accesses that it is one of."""
        return "VEC_STORE" if self.stores else "VEC_LOAD"


class AccessOrder:
    """The accesses of a program, its barriers, and the calls that a value hangs on."""

    def __init__(self, program: RegisterProgram) -> None:
        self.entries = entries = program.entries
        most = max(int(entries.results.max(initial=0)), int(entries.sources.max(initial=0)))
        self._made = np.full(max(most, int(entries.masks.max(initial=0))) + 1, -1, np.intp)
        for slot in range(entries.results.shape[1]):
            rows = np.flatnonzero(entries.results[:, slot])
            self._made[entries.results[rows, slot]] = rows
        self._made[0] = -1
        memory = (step for step in program.steps.values() if step.loads or step.stores)
        steps = [step for step in memory if step.pieces.low.size]
        self.steps: Mapping[int, RegisterStep] = program.steps
        classes = _classes_of_variables(steps, entries.variables)
        self.accesses = [self._access(step, classes) for step in steps]
        self.barriers = _barriers(program)

    def _access(self, step: RegisterStep, classes: Mapping[int, int]) -> Access:
        flat, low, high = step.pieces
        span = high - low
        if step.loads and step.call.mode.startswith("BRC_"):
            low = low // ORDERED_BYTES * ORDERED_BYTES
            span = np.full_like(low, ORDERED_BYTES)
        return Access(
            number=step.number,
            name=step.call.operation.name,
            location=step.location,
            stores=step.stores,
            exact=step.exact,
            entries=flat,
            low=low,
            high=low + span,
            variables=frozenset(classes[v] for v in variables_of(step, self.entries.variables)),
        )

    # --- order

    def is_behind_barrier(
        self, first: Access, second: Access, one: Indices, other: Indices
    ) -> NDArray[np.bool_]:
        """Return which pairs of entries a barrier of their classes stands between."""
        ordered = np.zeros(one.shape, bool)
        for (before, behind), places in self.barriers.items():
            if covers(before, first.kind) and covers(behind, second.kind):
                following = np.searchsorted(places, one)
                held = following < places.size
                ordered[held] |= places[following[held]] < other[held]
        return ordered

    def hangs_on(self, entry: int, on: Iterable[int]) -> set[int]:
        """Return which of some earlier entries an entry's data depend on."""
        wanted = set(on)
        first, open_, seen = min(wanted), [entry], {entry}
        # A search backwards along the data: from an entry to the entries that made its sources and
        # mask. Nothing before the first of the wanted ones need be followed.
        found = set[int]()
        while open_ and len(found) < len(wanted):
            at = open_.pop()
            for value in (*self.entries.sources[at], self.entries.masks[at]):
                producer = int(self._made[value])
                if producer >= first and producer not in seen:
                    seen.add(producer)
                    open_.append(producer)
                    if producer in wanted:
                        found.add(producer)
        return found

    def made_by(self, value: int) -> int:
        """Return the entry that made a value; -1 if none did."""
        return int(self._made[value])


def covers(word: str, kind: str) -> bool:
    """Return whether a class that a barrier names includes a class of accesses."""
    return word == kind or (
        word.endswith("_ALL") and word.split("_", maxsplit=1)[0] == kind.split("_", maxsplit=1)[0]
    )


def variables_of(step: RegisterStep, variables: NDArray[np.uint32]) -> list[int]:
    """Return the variables of the registers that a step loads or stores, on all its trips."""
    numbers = variables[step.entries.reshape(-1)]
    if step.call.operation.form in _PAIRS:
        seconds = step.scalars.reshape(-1)
        return [*np.unique(numbers).tolist(), *np.unique(seconds).tolist()]
    return [*np.unique(numbers).tolist()]


def _classes_of_variables(
    steps: Sequence[RegisterStep], variables: NDArray[np.uint32]
) -> Mapping[int, int]:
    """Return a number for each variable, one for those that a call has on its trips.

    A register that is declared in a loop's body is a new variable in the record of each trip.
    """
    # Union-find: variables that one call has on its different trips are one register of the text.
    parent: dict[int, int] = {}

    def root(number: int) -> int:
        while parent.setdefault(number, number) != number:
            number = parent[number]
        return number

    for step in steps:
        flat = step.entries.reshape(-1)
        columns = [variables[flat].astype(np.int64)]
        if step.call.operation.form in _PAIRS:
            columns.append(step.scalars.reshape(-1).astype(np.int64))
        for column in columns:
            first, *others = np.unique(column).tolist()
            for other in others:
                parent[root(other)] = root(first)
            root(first)
    return {number: root(number) for number in parent}


def _barriers(program: RegisterProgram) -> Mapping[tuple[str, str], Indices]:
    """Return the entries of barriers by the classes before and behind them."""
    found: dict[tuple[str, str], list[Indices]] = {}
    for step in program.steps.values():
        if step.call.operation.form is Form.BARRIER:
            behind = CLASSES[int(step.scalars.reshape(-1)[0])]
            key = step.call.mode, behind
            found.setdefault(key, []).append(step.entries.reshape(-1))
    return {key: np.sort(np.concatenate(parts)) for key, parts in found.items()}
