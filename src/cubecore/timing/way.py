"""Whether a program takes the same way again while its counters run on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cubecore.isa.expr import Atom, Expr, Var
from cubecore.isa.program import Assign, Branch, Issue, Loop, Node
from cubecore.timing.queues import deciding

_FOR_EVER = 2**62


@lru_cache(maxsize=4096)
def increment(node: Assign) -> int | None:
    """Return what an assignment adds to its own target; None where it does something else."""
    return (node.value - Expr.of(node.target)).constant


@lru_cache(maxsize=4096)
def _difference(node: Branch) -> Expr:
    """Return what a branch compares with 0."""
    return node.condition.left - node.condition.right


@lru_cache(maxsize=4096)
def _variables(node: Node) -> frozenset[Var]:
    """Return the variables that a node depends on or changes."""
    if isinstance(node, Branch):
        inside = [_variables(inner) for inner in (*node.then, *node.otherwise)]
        return frozenset(_difference(node).variables()).union(*inside)
    if isinstance(node, Loop):
        inside = [_variables(inner) for inner in node.body]
        return frozenset(node.trips.variables()).union(*inside)
    if isinstance(node, Assign):
        return frozenset((node.target, *node.value.variables()))
    if isinstance(node, Issue):
        return frozenset(var for value in deciding(node) for var in value.variables())
    return frozenset()


@dataclass(frozen=True, slots=True)
class Course:
    """How a counter moves: between `low` and `high` in the known part of the walk and in the next.

    It changes by `change` in each, and is `ahead` in the next of where it was in the known one.
    With every one more that follows it gets `onward` further.
    """

    low: int
    high: int
    change: int
    ahead: int
    onward: int

    @staticmethod
    def recurring(began: int, now: int) -> "Course | None":
        """Return the course of a counter in periods, of which one ends now; None if it stands."""
        by = now - began
        return Course(min(began, now), max(began, now), by, by, by) if by else None

    @staticmethod
    def once(began: int, ended: int, now: int) -> "Course | None":
        """Return the course where what began and ended there happens once from here on.

        None where it began here too: then it has the same values.
        """
        places = (began, ended, now, now + ended - began)
        if began == now:
            return None
        return Course(min(places), max(places), ended - began, now - began, 0)


@dataclass(eq=False, slots=True)
class Way:
    """Whether a program takes the same way as in a part of its walk while its counters run on.

    `ranges` gives each counter that does not have the same values. Within a part it moves one way
    only, so it stays between where it began and ended.
    """

    ranges: Mapping[Var, Course]
    moving: frozenset[Var]
    given: Mapping[Var, int]
    _names: frozenset[Var] = field(init=False)
    _directions: dict[Var, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = frozenset(self.ranges)

    def periods(self, body: Sequence[Node], most: int) -> int:
        """Return the periods, at most `most`, in which every node of `body` does the same."""
        for node in body:
            if not most:
                return 0
            if not self._names.isdisjoint(_variables(node)):
                most = self._node(node, most)
        return most

    def _node(self, node: Node, most: int) -> int:
        if isinstance(node, Branch):
            return self._branch(node, most)
        if isinstance(node, Loop):
            return self.periods(node.body, most) if self._same(node.trips) else 0
        if isinstance(node, Assign):
            return most if self._counts_on(node) else 0
        if isinstance(node, Issue):
            return most if all(self._same(value) for value in deciding(node)) else 0
        return 0

    def _counts_on(self, node: Assign) -> bool:
        found = self.ranges.get(node.target)
        if found is None:
            return self._same(node.value)
        step = increment(node)
        if step is None:
            return False
        if found.change:
            return step * found.change > 0
        # What is only counted one way, and is where it was, was not counted at all.
        return self._directions.setdefault(node.target, step) * step > 0

    def _same(self, expr: Expr) -> bool:
        """Whether an expression's values are those of the period before, one by one."""
        return all(self._same_atom(atom) for atom, _ in expr.terms)

    def _same_atom(self, atom: Atom) -> bool:
        if isinstance(atom, Var):
            return atom not in self.ranges
        if atom.kind == "mod" and (divisor := atom.right.constant):
            ahead = self._ahead(atom.left)
            return ahead is not None and ahead % divisor == 0
        return self._same(atom.left) and self._same(atom.right)

    def _ahead(self, expr: Expr) -> int | None:
        """Return how far an expression is ahead, the same at every place; or None."""
        ahead = 0
        for atom, factor in expr.terms:
            if isinstance(atom, Var) and atom in self.ranges:
                ahead += factor * self.ranges[atom].ahead
            elif not self._same_atom(atom):
                return None
        return ahead

    def _branch(self, node: Branch, most: int) -> int:
        if self._same(_difference(node)):
            return self.periods(node.otherwise, self.periods(node.then, most))
        taken, most = self._outcome(node, most)
        return self.periods(node.then if taken else node.otherwise, most)

    def _outcome(self, node: Branch, most: int) -> tuple[bool, int]:
        """Return how a branch's condition comes out, and for how many periods it must."""
        reach = self._reach(_difference(node))
        if reach is None:
            return False, 0
        return _constant_for(node.condition.comparison, reach, min(most, reach.most))

    def _reach(self, expr: Expr) -> "Reach | None":
        """Return where an expression's values lie; None where that is not known."""
        low = high = expr.const
        down = up = 0
        most = _FOR_EVER
        for atom, factor in expr.terms:
            reach = self._reach_of(atom)
            if reach is None:
                return None
            one, other = (reach.low, reach.down), (reach.high, reach.up)
            if factor < 0:
                one, other = other, one
            low, down = low + factor * one[0], down + factor * one[1]
            high, up = high + factor * other[0], up + factor * other[1]
            most = min(most, reach.most)
        return Reach(low, high, down, up, most)

    def _reach_of(self, atom: Atom) -> "Reach | None":
        if isinstance(atom, Var):
            if atom in self.ranges:
                course = self.ranges[atom]
                down, up = min(course.onward, 0), max(course.onward, 0)
                return Reach(course.low, course.high, down, up)
            return None if atom in self.moving else Reach(self.given[atom], self.given[atom])
        used = {*atom.left.variables(), *atom.right.variables()}
        if used.isdisjoint(self.ranges) and used.isdisjoint(self.moving):
            value = Expr(0, ((atom, 1),)).at(self.given)
            return Reach(value, value)
        inner, divisor = self._reach(atom.left), atom.right.constant
        if atom.kind != "mod" or inner is None or not divisor or divisor < 0:
            return None
        return inner.within(divisor)


@dataclass(frozen=True, slots=True)
class Reach:
    """Values lie between `low` and `high`; in every period more, these move by `down` and `up`.

    That holds for `most` periods.
    """

    low: int
    high: int
    down: int = 0
    up: int = 0
    most: int = _FOR_EVER

    def within(self, divisor: int) -> "Reach | None":
        """Return where remainders lie while none wraps around; None where one does at once."""
        start = self.low // divisor * divisor
        room = start + divisor - 1 - self.high
        if room < 0:
            return None
        above = room // self.up if self.up else self.most
        below = (self.low - start) // -self.down if self.down else self.most
        most = min(self.most, above, below)
        return Reach(self.low - start, self.high - start, self.down, self.up, most)


def _constant_for(comparison: str, reach: Reach, most: int) -> tuple[bool, int]:
    """Return how ``d comparison 0`` comes out for every d in reach, and for how many periods."""
    low, high = reach.low, reach.high
    negated = comparison in {">=", ">", "!="}
    equality = comparison in {"==", "!="}
    if comparison in {"<=", ">"}:
        low, high = low - 1, high - 1
    if high < 0:
        periods = (-1 - high) // reach.up if reach.up else most
        return equality == negated, min(most, periods)
    above = low - 1 if equality else low
    if above >= 0:
        periods = above // -reach.down if reach.down else most
        return negated, min(most, periods)
    return False, 0
