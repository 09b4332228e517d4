"""The program of a vector function: its calls as loops, with data flow and the bytes they touch.

The body runs on the host once for each block, so a program is what was issued: no branch is left in
it. Registers are values, numbered as they are made; a loop's body reads a value of its own trip, of
the trip before, or of before the loop. What a call reads is told by leaves: `Source`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cubecore.cache import BoundedCache
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.coverage import CoveredBytes, reach, rewrites
from cubecore.isa.vector.registers.flow import Flow, UnfoldableError
from cubecore.isa.vector.registers.folding import FoldedCall, Node, folded
from cubecore.isa.vector.registers.independence import independent_loops
from cubecore.isa.vector.registers.operation import Bits
from cubecore.isa.vector.registers.steps import Entries, Landed, PlannedStep, RegisterStep
from cubecore.isa.vector.registers.types_taken import require_types

_MOST_MARKED = 16
_MOST_LEAST = 4
"""The longest of the shortest bodies that loops are looked for with."""
KnownMask = tuple[Bits, bool]
"""A mask, and whether it lets all lanes through."""
Marked = tuple[Mapping[str, NDArray[np.bool_]], tuple[Remark, ...]]
"""Stored bytes that are known, by operand, and what is said of loaded ones that are not."""


class RegisterProgram:
    """A vector function's body, equal to another one by being the same.

    Its `origin` is the body before values of registers decided where some calls access UB.
    """

    origin: "RegisterProgram"

    def __init__(self, entries: Entries, location: Location) -> None:
        self.entries, self.location, self.origin = entries, location, self
        require_types(entries.table, entries.locations, entries.calls, entries.places)
        # One number for call and line: only entries equal in both are trips of one loop.
        kinds = entries.calls * (len(entries.locations) + 1) + entries.places
        self.nodes, self.steps = _loops(entries, kinds.astype(np.int64))

    def __len__(self) -> int:
        return self.entries.calls.size

    @cached_property
    def marked(self) -> BoundedCache[tuple[object, ...], Marked]:
        """The outcomes of runs on marks of bytes that were never written, by those bytes."""
        return BoundedCache(_MOST_MARKED)

    @cached_property
    def known_masks(self) -> dict[int, KnownMask]:
        """The masks of patterns and counts that a run has made, by step: the same in every run."""
        return {}

    @cached_property
    def plans(self) -> dict[tuple[object, ...], tuple[PlannedStep, ...]]:
        """The plain steps of a run by how the parts of UB lie, none where there are others."""
        return {}

    @cached_property
    def together(self) -> frozenset[int]:
        """The loops whose trips may run at once: nothing passes from one to another."""
        return frozenset(independent_loops(self.nodes, self.steps))

    @cached_property
    def reach(self) -> int:
        """The bytes from the base to the end of the last access, whatever its mask lets through."""
        return reach(self.steps.values())

    @cached_property
    def rewrites(self) -> bool:
        """True if it stores to bytes that it loads: what was loaded is a copy then."""
        return rewrites(self.steps.values())

    @cached_property
    def stores_once(self) -> bool:
        """True if one of its steps stores."""
        return sum(step.stores for step in self.steps.values()) == 1

    @cached_property
    def loaded(self) -> CoveredBytes:
        """The bytes that are loaded before the program has stored there."""
        return CoveredBytes.of([*self.steps.values()], loads=True)

    @cached_property
    def idle(self) -> CoveredBytes:
        """The bytes that are loaded for no call: every one that takes them masks them out."""
        return CoveredBytes.idle([*self.steps.values()])

    @cached_property
    def exact(self) -> bool:
        """True if every byte of `stored` is written, whatever the values are."""
        return all(step.exact for step in self.steps.values())

    @cached_property
    def stored(self) -> CoveredBytes:
        """The bytes that are stored, or may be."""
        return CoveredBytes.of([*self.steps.values()], loads=False)

    def landing(self, landed: Mapping[int, Landed]) -> Self:
        """Return it with what values of registers have decided, by the numbers of steps."""
        other = type(self).__new__(type(self))
        other.entries, other.location, other.nodes = self.entries, self.location, self.nodes
        other.origin = self.origin
        found = {
            number: replace(self.steps[number], landed=each, exact=True)
            for number, each in landed.items()
        }
        other.steps = {**self.steps, **found}
        return other


def _loops(
    entries: Entries, kinds: NDArray[np.int64]
) -> tuple[tuple[Node, ...], Mapping[int, RegisterStep]]:
    """Return the loops of a body, and its steps; single calls where no loops hand values on."""
    # Equal calls that follow each other on a line (two loads, say) look like a loop of their own,
    # and their results go different ways then: bodies of more calls are looked for.
    for least in range(1, _MOST_LEAST + 1):
        try:
            nodes = folded(kinds, least)
            return nodes, Flow(entries, nodes).steps()
        except UnfoldableError:
            continue
    nodes = tuple(FoldedCall(np.asarray(n, np.intp), n) for n in range(kinds.size))
    return nodes, Flow(entries, nodes).steps()
