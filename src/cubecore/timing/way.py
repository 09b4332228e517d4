"""Whether a program takes the same way again while its counters run on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cubecore.isa.expr import Atom, Condition, Expr, Var
from cubecore.isa.program import Assign, Branch, Issue, Loop, Node
from cubecore.timing.queues import deciding


def increment(node: Assign) -> int | None:
    """Return what an assignment adds to its own target; None where it does something else."""
    return (node.value - Expr.of(node.target)).constant


@dataclass(frozen=True, eq=False, slots=True)
class Way:
    """Whether a program takes the same way while its counters run on.

    `ranges` gives each counter that moves: (where the period before began, where this one begins,
    its change in a period). Within a period it moves one way only, so it stays between two heads.
    """

    ranges: Mapping[Var, tuple[int, int, int]]
    moving: frozenset[Var]
    given: Mapping[Var, int]

    def periods(self, body: Sequence[Node], most: int) -> int:
        """Return the periods, at most `most`, in which every node of `body` does the same."""
        for node in body:
            if not most:
                return 0
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
        return step is not None and step * found[2] > 0

    def _same(self, expr: Expr) -> bool:
        """Whether an expression's values are those of the period before, one by one."""
        return all(self._same_atom(atom) for atom, _ in expr.terms)

    def _same_atom(self, atom: Atom) -> bool:
        if isinstance(atom, Var):
            return atom not in self.ranges
        if atom.kind == "mod" and (divisor := atom.right.constant):
            change = self._change(atom.left)
            return change is not None and change % divisor == 0
        return self._same(atom.left) and self._same(atom.right)

    def _change(self, expr: Expr) -> int | None:
        """Return what an expression changes by in a period, the same at every place; or None."""
        change = 0
        for atom, factor in expr.terms:
            if isinstance(atom, Var) and atom in self.ranges:
                change += factor * self.ranges[atom][2]
            elif not self._same_atom(atom):
                return None
        return change

    def _branch(self, node: Branch, most: int) -> int:
        condition = node.condition
        if self._same(condition.left) and self._same(condition.right):
            return self.periods(node.otherwise, self.periods(node.then, most))
        taken, most = self._outcome(condition, most)
        return self.periods(node.then if taken else node.otherwise, most)

    def _outcome(self, condition: Condition, most: int) -> tuple[bool, int]:
        """Return how a condition comes out, and for how many periods it must."""
        reach = self._reach(condition.left - condition.right)
        if reach is None:
            return False, 0
        return _constant_for(condition.comparison, reach, min(most, reach.most))

    def _reach(self, expr: Expr) -> "Reach | None":
        """Return where an expression's values lie; None where that is not known."""
        total = Reach(expr.const, expr.const)
        for atom, factor in expr.terms:
            reach = self._reach_of(atom)
            if reach is None:
                return None
            total = total.plus(reach.times(factor))
        return total

    def _reach_of(self, atom: Atom) -> "Reach | None":
        if isinstance(atom, Var):
            if atom in self.ranges:
                old, new, change = self.ranges[atom]
                return Reach(min(old, new), max(old, new), min(change, 0), max(change, 0))
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
    most: int = 2**62

    def plus(self, other: "Reach") -> "Reach":
        """Return where sums lie."""
        return Reach(
            self.low + other.low,
            self.high + other.high,
            self.down + other.down,
            self.up + other.up,
            min(self.most, other.most),
        )

    def times(self, factor: int) -> "Reach":
        """Return where multiples lie."""
        low, high = sorted((self.low * factor, self.high * factor))
        down, up = sorted((self.down * factor, self.up * factor))
        return Reach(low, high, down, up, self.most)

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
