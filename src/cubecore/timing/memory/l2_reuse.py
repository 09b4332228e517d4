"""L2 reuse: the share of a block still in L2 when it is asked for again, from a launch's loops.

A load's *nest* is the loops that it walks, or those that it stands for (`Issue.walk`). A loop that
its address does not follow asks for the same blocks again in every trip; the innermost such loop
that has turned is where the last touch was, and one turn of it is how long ago that was. What all
cores touch during that share of the launch, each block once, decides what is left
(`costs.l2_gone`): a block that is asked for again moves up among those that stay, whether it was
there or not, so what is touched counts and not what is brought in.

Traffic is taken to be spread evenly over the launch, cores to march in step: those that ask for one
block in the same place of the program share its miss.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreGroup
from cubecore.isa.program.tree import Issue
from cubecore.timing.memory.global_accesses import (
    Accesses,
    GlobalAccess,
)
from cubecore.timing.memory.row_alignment import off_cycles

STEPS = 64
"""Survival is counted in 64ths, so that equal states are equal on every machine."""


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """A leaf's part in the shared memory.

    `cores` ask for `blocks` blocks of their own; a block that k cores of the launch ask for counts
    1/k for each. `gone` gives the 64ths that L2 no longer holds, by `ReuseMark` level. `off_cycles`
    are those that MTE2 takes more for where the rows start. `written_back` gives the 64ths of a
    store that go on to device memory, where they are not those of all stores.
    """

    cores: int
    blocks: Fraction
    gone: tuple[int, ...]
    off_cycles: int = 0
    written_back: int | None = None


@dataclass(eq=False)
class Traffic:
    """The demand of every group of a launch on the shared memory, and the L2 hits in it."""

    groups: Sequence[CoreGroup]
    accesses: Sequence[Accesses]
    chip: Chip
    warm: bool = False
    past_l2: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    _leaves: list[dict[int, GlobalAccess]] = field(init=False)

    def __post_init__(self) -> None:
        self._leaves = [
            {
                kind: leaf.in_launch()
                for kind, leaf in zip(of_group.kinds, of_group.leaves, strict=True)
            }
            for of_group in self.accesses
        ]
        self._share_blocks()
        written = self._written()
        for group, leaves in zip(self.groups, self._leaves, strict=True):
            self._find_earlier(group, list(leaves.values()))
            for leaf in leaves.values():
                tensors = _tensors(group, leaf.address)
                leaf.past_l2 = not self.past_l2.isdisjoint(tensors)
                # What the other kind of core writes is in L2 by the time it is read, if it was not
                # long ago.
                handed_over = tensors & written[not _on_aic(group)].keys()
                if leaf.before is None and (self.warm or handed_over):
                    turns = (self._turn(name, written[not _on_aic(group)]) for name in handed_over)
                    leaf.before = min(turns, default=1.0)
        self._find_rewritten(written)

    def _written(self) -> Mapping[bool, Counter[str]]:
        """Return the bytes that AIVs write, and AICs, by tensor.

        Each kind finds the other's in L2, a turn of the tensor ago at most: the share of the launch
        after which it is written anew. Which tile is handed over when, is not looked at.
        """
        written: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        for group, leaves in zip(self.groups, self._leaves, strict=True):
            for leaf in leaves.values():
                if leaf.traffic.writes:
                    size = round(leaf.count * leaf.traffic.size_bytes * float(leaf.blocks))
                    for name in _tensors(group, leaf.address):
                        written[_on_aic(group)][name] += size
        return written

    def _turn(self, name: str, written: Mapping[str, int]) -> float:
        """Return the share of the launch after which a tensor is written anew."""
        return min(1.0, self.sizes.get(name, written[name]) / max(written[name], 1))

    def _find_rewritten(self, written: Mapping[bool, Counter[str]]) -> None:
        """Find stores to what the other kind of core reads before it is written anew."""
        read: dict[bool, set[str]] = {False: set(), True: set()}
        of_groups = list(zip(self.groups, self._leaves, strict=True))
        for group, leaves in of_groups:
            for leaf in leaves.values():
                if not leaf.traffic.writes:
                    read[_on_aic(group)] |= _tensors(group, leaf.address)
        for group, leaves in of_groups:
            on_aic = _on_aic(group)
            for leaf in leaves.values():
                if leaf.traffic.writes:
                    over = _tensors(group, leaf.address) & read[not on_aic]
                    turns = (self._turn(name, written[on_aic]) for name in over)
                    leaf.last = min(turns, default=1.0)

    def _share_blocks(self) -> None:
        """Give each leaf its number of blocks: a block of k cores counts 1/k for each."""
        askers: dict[int, set[int]] = {}
        alike: list[tuple[list[int | None], list[GlobalAccess]]] = []
        first = 0
        for group, leaves in zip(self.groups, self._leaves, strict=True):
            of_address: dict[Expr, list[GlobalAccess]] = {}
            for leaf in leaves.values():
                of_address.setdefault(leaf.address, []).append(leaf)
            for address, same in of_address.items():
                starts = _starts(address, group)
                alike.append((starts, same))
                # Blocks that begin at one address are one block: k cores share its miss.
                for core, start in enumerate(starts, first):
                    if start is not None:
                        askers.setdefault(start, set()).add(core)
            first += len(group.slots)
        for starts, same in alike:
            among = Counter([1 if a is None else len(askers[a]) for a in starts])
            blocks = _blocks(tuple(among.items()))
            for leaf in same:
                leaf.blocks = Fraction(len(starts)) if leaf.traffic.writes else blocks

    def _find_earlier(self, group: CoreGroup, leaves: list[GlobalAccess]) -> None:
        """Find loads of what another leaf of the same core touched before."""
        weights = [leaf.count * leaf.traffic.size_bytes for leaf in leaves]
        total, passed, last = sum(weights), 0.0, dict[object, list[tuple[GlobalAccess, float]]]()
        for leaf, weight in zip(leaves, weights, strict=True):
            start = _start(leaf.address, group.slots[0])
            # The same start and the same loops that move: the same blocks.
            origin = start, tuple(level.trips for level in leaf.nest if level.moves)
            for earlier, at in reversed(last.get(origin, [])):
                if _follows(leaf, earlier):
                    together = _common_trips(leaf, earlier)
                    leaf.before = (passed - at) / total / together if total else 0.0
                    break
            if start is not None:
                last.setdefault(origin, []).append((leaf, passed))
            passed += weight

    def touched_bytes(self, since: float) -> float:
        """Return the bytes that all cores touch in a share of the launch, each block once.

        What was last asked for longer ago than that is touched for the first time in it.
        """
        shares, sums = self._asked
        return since * sums[bisect_left(shares, since)]

    @cached_property
    def _asked(self) -> tuple[list[float], list[float]]:
        """Return the shares of the launch after which blocks are asked for again, rising.

        Beside each the bytes for which it is so long or longer, all of the launch together; last
        those that are touched once.
        """
        bytes_after: dict[float, float] = {math.inf: self._written_bytes}
        for leaf in self._loads:
            size = float(leaf.blocks) * leaf.traffic.size_bytes
            for count, since in leaf.classes:
                # Blocks by how long ago they were asked for; what is touched in a share of the
                # launch is each of them once.
                share = math.inf if since is None else since
                bytes_after[share] = bytes_after.get(share, 0.0) + count * size
        shares = sorted(bytes_after)
        sums = list(accumulate(bytes_after[share] for share in reversed(shares)))
        return shares, sums[::-1]

    @cached_property
    def _gone(self) -> dict[GlobalAccess, tuple[float, ...]]:
        """Return what L2 no longer holds of each access, by `ReuseMark` level."""
        return {leaf: leaf.gone(self.touched_bytes, self.chip) for leaf in self._all}

    @cached_property
    def brought_bytes(self) -> float:
        """Bytes that the launch brings into L2: what it misses and what it writes."""
        return self._written_bytes + sum(
            float(x.blocks) * x.missing_bytes(self._gone[x]) for x in self._loads
        )

    @cached_property
    def _written_bytes(self) -> float:
        return sum(
            leaf.last * leaf.count * leaf.traffic.size_bytes * float(leaf.blocks)
            for leaf in self._all
            if leaf.traffic.writes
        )

    @cached_property
    def _loads(self) -> list[GlobalAccess]:
        """The loads that leave what they bring in L2."""
        return [leaf for leaf in self._all if not leaf.traffic.writes and not leaf.past_l2]

    @property
    def _all(self) -> Iterator[GlobalAccess]:
        for leaves in self._leaves:
            yield from leaves.values()

    @cached_property
    def written_back(self) -> int:
        """64ths of what is written that goes on to device memory."""
        return STEPS - int(STEPS * costs.l2_kept_dirty(self.chip, self.brought_bytes) + 0.5)

    def _written_back(self, leaf: GlobalAccess) -> int | None:
        """Return the 64ths of a store that go on; None where they are those of all stores."""
        if leaf.last == 1:
            return None
        gone = costs.l2_gone(self.chip, self.touched_bytes(leaf.last))
        return int(leaf.last * self.written_back + (1 - leaf.last) * gone * STEPS + 0.5)

    def shares(self, number: int) -> dict[Issue, MemoryShare]:
        """Return the part of each leaf of a group, by the leaf."""
        cores = len(self.groups[number].cores)
        shares: dict[int, MemoryShare] = {}
        for kind, leaf in self._leaves[number].items():
            parts = tuple(STEPS - int(STEPS * (1 - g) + 0.5) for g in self._gone[leaf])
            off = off_cycles(leaf.traffic, leaf.address, self.groups[number].slots[0], self.chip)
            back = self._written_back(leaf)
            shares[kind] = MemoryShare(cores, leaf.blocks, parts, off, back)
        of_group = self.accesses[number]
        return {
            leaf.issue: shares[k] for k, leaf in zip(of_group.kinds, of_group.leaves, strict=True)
        }

    def reads(self, number: int) -> Iterator[tuple[Issue, float, float]]:
        """Yield each load of a group: bytes that its cores read, and those that miss L2."""
        for leaf in self._leaves[number].values():
            if not leaf.traffic.writes:
                read = leaf.count * leaf.traffic.size_bytes * len(self.groups[number].cores)
                yield leaf.issue, read, float(leaf.blocks) * leaf.missing_bytes(self._gone[leaf])

    def demand(self, number: int) -> float:
        """Return what a group asks of device memory: bytes, by how long they take."""
        missing = 0.0
        for leaf in self._leaves[number].values():
            size = float(leaf.blocks) * hbm_weight(self.chip, leaf.traffic)
            if leaf.traffic.writes:
                back = self._written_back(leaf)
                part = (self.written_back if back is None else back) / STEPS
                missing += size * leaf.count * leaf.traffic.size_bytes * part
            else:
                missing += size * leaf.missing_bytes(self._gone[leaf])
        return missing


@lru_cache(maxsize=4096)
def _blocks(among: tuple[tuple[int, int], ...]) -> Fraction:
    """Return the blocks of (cores that share each, cores that ask for such)."""
    return sum((Fraction(count, cores) for cores, count in among), Fraction())


def hbm_weight(chip: Chip, traffic: GlobalTraffic) -> float:
    """Return how much longer a byte takes in device memory: short rows and writes take longer."""
    rows = 1 + costs.hbm_row_bytes(chip, of_ub=traffic.of_ub) / traffic.row_bytes
    return rows * ((chip.hbm_write_weight or 1.0) if traffic.writes else 1.0)


def _tensors(group: CoreGroup, address: Expr) -> set[str]:
    """Return the tensors that an address may lie in, by the slots that it has."""
    slots = group.cores[0].slots
    return {slots[var][0] for var in address.variables() if var in slots}


def _on_aic(group: CoreGroup) -> bool:
    return group.cores[0].sub == 0


def _starts(address: Expr, group: CoreGroup) -> list[int | None]:
    """Return where each core's access begins; None where that has no answer."""
    if not group.program.is_uniform:  # a slot may stand in what is no straight line
        return [_start(address, slots) for slots in group.slots]
    first = group.slots[0]
    slot_terms = [(var, f) for var, f in address.terms if isinstance(var, Var) and var in first]
    start = _start(address, first)
    if start is None:
        return [None] * len(group.slots)
    # Addresses are linear in the slots: cores differ by factor times slot, which is much cheaper
    # than evaluating each.
    if len(slot_terms) == 1:
        ((var, factor),) = slot_terms
        start -= factor * first[var]
        return [start + factor * slots[var] for slots in group.slots]
    return [start + sum(f * (slots[v] - first[v]) for v, f in slot_terms) for slots in group.slots]


def _start(address: Expr, slots: Mapping[Var, int]) -> int | None:
    """Return where an access begins before any loop has turned; None where that has no answer."""
    values = dict.fromkeys(address.variables(), 0) | dict(slots)
    try:
        return address.at(values)
    except ZeroDivisionError:
        return None


def _follows(leaf: GlobalAccess, earlier: GlobalAccess) -> bool:
    """True if both happen, in order: not the sides of a branch, and not one walk."""
    if leaf.issue.walk is not None and leaf.issue.walk == earlier.issue.walk:
        return False
    return all(leaf.sides.get(branch, side) == side for branch, side in earlier.sides.items())


def _common_trips(leaf: GlobalAccess, earlier: GlobalAccess) -> int:
    """Return the turns of the loops around both."""
    trips = 1
    for one, other in zip(leaf.loops, earlier.loops, strict=False):
        if one is not other or leaf.issue.walk is not None:
            break
        trips *= one.trips.constant or 1
    return trips
