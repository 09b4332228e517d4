"""Accesses of global memory in a program's tree: where each stands, and how often it happens."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from cubecore.cache import MOST_PROGRAMS, BoundedCache
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
    InnerCall,
    Instruction,
    InstructionCost,
    Mem,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Condition, Expr, Operation, Var
from cubecore.isa.program.tree import Assign, Branch, Issue, LoadScalar, Loop, Node, Program

_FRESH = Registers()


@lru_cache(maxsize=65536)
def cost_of(template: Instruction, chip: Chip) -> InstructionCost:
    """Return what a template costs on a chip; each is worked out once."""
    return template.cost(chip)


@lru_cache(maxsize=64)
def inner_calls(template: Instruction, chip: Chip) -> tuple[InnerCall, ...]:
    """Return what happens inside of a template on a chip; each is worked out once."""
    return template.calls_inside(chip)


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

    def in_launch(self) -> "GlobalAccess":
        """Return a copy for one launch, in which it is shared and comes behind others."""
        copied = GlobalAccess.__new__(GlobalAccess)
        copied.__dict__.update(self.__dict__)
        return copied

    @property
    def key(self) -> object:
        """Copies of a walking load are one, whatever their indices' names; others are their own."""
        walk = self.issue.walk
        if walk is None:
            return self.issue
        # Copies of a load (of an unrolled loop, or of two branches) have indices of their own;
        # replaced by the loop's number in the nest they compare equal.
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
        # From the innermost repeating loop outwards: of `rest` accesses all but the first trip's
        # ask again for what the trip before brought, one turn of that loop ago. What is left goes
        # to the next loop further out; the last ones were never asked for by this leaf.
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
    # A loop asks for the same blocks in each trip if the address uses neither its index nor
    # anything that its body assigns.
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
    # `index == c` or `index % size == c`: one trip in `size` passes, or all but one.
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
