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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

from cubecore.cache import MOST_PROGRAMS, BoundedCache
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic, Instruction, InstructionCost, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Condition, Expr, Operation, Var
from cubecore.isa.program.launch import CoreGroup
from cubecore.isa.program.tree import Assign, Branch, Issue, LoadScalar, Loop, Node, Program
from cubecore.lazy_dataclass import dataclass
from cubecore.timing.memory.row_alignment import off_cycles

STEPS = 64
"""Survival is counted in 64ths, so that equal states are equal on every machine."""
_FRESH = Registers()


@lru_cache(maxsize=65536)
def cost_of(template: Instruction, chip: Chip) -> InstructionCost:
    """Return what a template costs on a chip; each is worked out once."""
    return template.cost(chip)


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


@dataclass(frozen=True, slots=True)
class Level:
    """A loop of a nest: its index, its trips, and whether the address follows it."""

    position: Expr
    trips: int
    moves: bool


@dataclass(eq=False)
class GlobalAccess:
    """An access of global memory in a tree: where it stands, and how often it happens."""

    issue: Issue
    traffic: GlobalTraffic
    nest: tuple[Level, ...]
    loops: tuple[Loop, ...]
    sides: Mapping[Branch, bool]
    weight: float
    blocks: Fraction = Fraction(1)
    before: float | None = None
    past_l2: bool = False
    last: float = 1.0
    """The share of what is stored that no later store takes the place of."""

    @property
    def key(self) -> object:
        """Copies of a walking load are one, whatever their indices' names; others are their own."""
        walk = self.issue.walk
        if walk is None:
            return self.issue
        names = {level.position.terms: number for number, level in enumerate(self.nest)}
        steps = tuple((names.get(((atom, 1),), atom), f) for atom, f in self.address.terms)
        levels = tuple((names[position.terms], position.const, trips) for position, trips in walk)
        return self.issue.template, self.address.const, frozenset(steps), levels

    @cached_property
    def address(self) -> Expr:
        """Return the address in global memory, bytes."""
        memories = [operand.mem for operand in self.issue.template.operands()]
        return self.issue.addresses[memories.index(Mem.GM)]

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """The loops of the nest, by number, that ask for the same blocks again."""
        return tuple(i for i, level in enumerate(self.nest) if not level.moves)

    @cached_property
    def count(self) -> float:
        """Return the number of accesses by one core; a program's part is one turn of its nest."""
        turns = [1 if x.position.constant is not None else x.trips for x in self.nest]
        return self.weight * math.prod(turns)

    @cached_property
    def classes(self) -> tuple[tuple[float, float | None], ...]:
        """For each `ReuseMark` level (accesses of a core, share of the launch since the last)."""
        result: list[tuple[float, float | None]] = []
        rest = self.count
        for number in reversed(self.carriers):
            turns = math.prod(level.trips for level in self.nest[: number + 1])
            first = rest / self.nest[number].trips
            since = 1 / turns if self.before is None else min(1 / turns, self.before)
            result.append((rest - first, since))
            rest = first
        result.append((rest, self.before))
        return tuple(reversed(result))

    def gone(self, touched: Callable[[float], float], chip: Chip) -> tuple[float, ...]:
        """Return what L2 no longer holds, by `ReuseMark` level.

        `touched` gives the bytes that all cores touch in a share of the launch.
        """
        if self.past_l2:
            return (1.0,) * len(self.classes)
        return tuple(
            1.0 if since is None else costs.l2_gone(chip, touched(since))
            for _, since in self.classes
        )

    def missing_bytes(self, gone: Sequence[float]) -> float:
        """Return the bytes that a core of its group brings in, shared misses in part."""
        asked = sum(count * g for (count, _), g in zip(self.classes, gone, strict=True))
        return asked * self.traffic.size_bytes


@dataclass(frozen=True, eq=False)
class Accesses:
    """A program, and its accesses of global memory in program order."""

    program: Program
    leaves: tuple[GlobalAccess, ...]

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """For each access the number of the first one that is the same (`GlobalAccess.key`)."""
        first: dict[object, int] = {}
        return tuple(first.setdefault(leaf.key, i) for i, leaf in enumerate(self.leaves))

    @property
    def loads(self) -> tuple[tuple[GlobalTraffic, Expr], ...]:
        """Return what each load asks for, and where."""
        return tuple((x.traffic, x.address) for x in self.leaves if not x.traffic.writes)


_ACCESSES = BoundedCache[tuple[Program, Chip], Accesses](MOST_PROGRAMS)


def accesses(program: Program, chip: Chip) -> Accesses:
    """Return what a program accesses; that of the latest programs is kept."""
    cached = _ACCESSES.get((program, chip))
    if cached is None:
        cached = Accesses(program, tuple(_leaves(program.body, _TreePosition(), chip)))
        _ACCESSES[program, chip] = cached
    return cached


@dataclass(frozen=True, slots=True)
class _TreePosition:
    """The position in the tree: the enclosing loops and sides of branches."""

    loops: tuple[Loop, ...] = ()
    sides: tuple[tuple[Branch, bool], ...] = ()


def _leaves(body: Sequence[Node], position: _TreePosition, chip: Chip) -> Iterator[GlobalAccess]:
    for node in body:
        if isinstance(node, Loop):
            yield from _leaves(
                node.body, _TreePosition((*position.loops, node), position.sides), chip
            )
        elif isinstance(node, Branch):
            for side, taken in ((node.then, True), (node.otherwise, False)):
                inside = _TreePosition(position.loops, (*position.sides, (node, taken)))
                yield from _leaves(side, inside, chip)
        elif isinstance(node, Issue) and is_access(node):
            yield _leaf(node, position, chip)


def is_access(issue: Issue) -> bool:
    """True if a leaf reads or writes global memory."""
    return any(operand.mem is Mem.GM for operand in issue.template.operands())


def _leaf(issue: Issue, position: _TreePosition, chip: Chip) -> GlobalAccess:
    template = issue.template.resolved(_FRESH)
    traffic = cost_of(template, chip).traffic or GlobalTraffic(0, 1, writes=False)
    memories = [operand.mem for operand in issue.template.operands()]
    followed = set(issue.addresses[memories.index(Mem.GM)].variables())
    if issue.walk is not None:
        nest = tuple(
            Level(p, t, p.constant is not None or not followed.isdisjoint(p.variables()))
            for p, t in issue.walk
        )
    else:
        nest = tuple(
            Level(
                Expr.of(loop.index),
                loop.trips.constant or 1,
                not followed.isdisjoint({loop.index, *_assigned(loop.body)}),
            )
            for loop in position.loops
        )
    weight = math.prod(_likelihood(b.condition, nest, taken) for b, taken in position.sides)
    return GlobalAccess(issue, traffic, nest, position.loops, dict(position.sides), weight)


def _assigned(body: Sequence[Node]) -> Iterator[Var]:
    for node in body:
        if isinstance(node, (Assign, LoadScalar)):
            yield node.target
        elif isinstance(node, Loop):
            yield from _assigned(node.body)
        elif isinstance(node, Branch):
            yield from _assigned((*node.then, *node.otherwise))


def _likelihood(condition: Condition, nest: Sequence[Level], taken: bool) -> float:
    """Return the share of a nest's trips that pass a branch; 1 where it cannot be told."""
    if condition.comparison not in {"==", "!="}:
        return 1.0
    atoms = (condition.left - condition.right).terms
    if len(atoms) != 1:
        return 1.0
    atom, size = atoms[0][0], 0
    for level in nest:
        if level.position.terms != ((atom, 1),):
            inner = atom.left if isinstance(atom, Operation) and atom.kind == "mod" else None
            if inner is None or not set(inner.variables()) & set(level.position.variables()):
                continue
            assert isinstance(atom, Operation)
            size = min(atom.right.constant or 0, level.trips)
        else:
            size = level.trips
    if not size:
        return 1.0
    return 1 / size if taken == (condition.comparison == "==") else 1 - 1 / size


# --- a launch


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
                kind: replace(leaf)
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
        askers: dict[int, set[tuple[int, int]]] = {}
        starts: dict[GlobalAccess, list[int | None]] = {}
        for number, (group, leaves) in enumerate(zip(self.groups, self._leaves, strict=True)):
            starts_of: dict[Expr, list[int | None]] = {}
            for leaf in leaves.values():
                if leaf.address not in starts_of:
                    starts_of[leaf.address] = _starts(leaf.address, group)
                    for core, start in enumerate(starts_of[leaf.address]):
                        if start is not None:
                            askers.setdefault(start, set()).add((number, core))
                starts[leaf] = starts_of[leaf.address]
        for leaf, addresses in starts.items():
            if leaf.traffic.writes:
                leaf.blocks = Fraction(len(addresses))
            else:
                among = Counter(1 if a is None else len(askers[a]) for a in addresses)
                parts = (Fraction(count, cores) for cores, count in among.items())
                leaf.blocks = sum(parts, Fraction())

    def _find_earlier(self, group: CoreGroup, leaves: list[GlobalAccess]) -> None:
        """Find loads of what another leaf of the same core touched before."""
        weights = [leaf.count * leaf.traffic.size_bytes for leaf in leaves]
        total, passed, last = sum(weights), 0.0, dict[object, list[tuple[GlobalAccess, float]]]()
        for leaf, weight in zip(leaves, weights, strict=True):
            start = _start(leaf.address, group.slots[0])
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
                share = math.inf if since is None else since
                bytes_after[share] = bytes_after.get(share, 0.0) + count * size
        shares = sorted(bytes_after)
        sums = list(accumulate(bytes_after[share] for share in reversed(shares)))
        return shares, sums[::-1]

    @cached_property
    def brought_bytes(self) -> float:
        """Bytes that the launch brings into L2: what it misses and what it writes."""
        return self._written_bytes + sum(
            float(x.blocks) * x.missing_bytes(x.gone(self.touched_bytes, self.chip))
            for x in self._loads
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
            gone = leaf.gone(self.touched_bytes, self.chip)
            parts = tuple(STEPS - int(STEPS * (1 - g) + 0.5) for g in gone)
            off = off_cycles(leaf.traffic, leaf.address, self.groups[number].slots[0], self.chip)
            back = self._written_back(leaf)
            shares[kind] = MemoryShare(cores, leaf.blocks, parts, off, back)
        of_group = self.accesses[number]
        return {
            leaf.issue: shares[k] for k, leaf in zip(of_group.kinds, of_group.leaves, strict=True)
        }

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
                missing += size * leaf.missing_bytes(leaf.gone(self.touched_bytes, self.chip))
        return missing


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
