"""Whether a program takes the same way again while its counters run on.

What decides the way is written once for a program, by the places of the variables (`Guards`); it is
asked often, of ever other ranges.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from cubecore.isa.program.expr import Atom, Expr, Var
from cubecore.isa.program.tree import Assign, Branch, Issue, Loop, Node
from cubecore.timing.pipes.queues import deciding

_FOR_EVER = 2**62


@lru_cache(maxsize=4096)
def increment(node: Assign) -> int | None:
    """Return what an assignment adds to its own target; None where it does something else."""
    return (node.value - Expr.of(node.target)).constant


class Course(NamedTuple):
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
        if began == now:
            return None
        low, high, change = min(began, now), max(began, now), ended - began
        return Course(low + min(change, 0), high + max(change, 0), change, now - began, 0)


@dataclass(eq=False, slots=True)
class _Way:
    """A part of a walk: the courses of the counters, and which of them have one, as bits.

    Within a part a counter moves one way only, so it stays between where it began and ended.
    """

    courses: Sequence[Course | None]
    given: Sequence[int]
    moved: int
    directions: dict[int, int] = field(default_factory=dict)


class Guards:
    """The nodes of a body that its counters can reach, by the counters' places.

    `moving` are variables that change in the body, `given` those whose values are told.
    """

    def __init__(
        self,
        body: Sequence[Node],
        counters: Sequence[Var],
        moving: frozenset[Var],
        given: Sequence[Var],
    ) -> None:
        self._names = _Names({var: i for i, var in enumerate(counters)}, moving, tuple(given))
        self._nodes = _written(body, self._names)

    def periods(self, courses: Sequence[Course | None], given: Sequence[int], most: int) -> int:
        """Return the periods, at most `most`, in which every node does the same.

        `courses` has None for counters with the same values as in the known part.
        """
        moved = 0
        for i, course in enumerate(courses):
            if course is not None:
                moved |= 1 << i
        return _through(self._nodes, _Way(courses, given, moved), most)


@dataclass(frozen=True, slots=True)
class _Names:
    """Where a variable is found: a counter by its place, or a given one by its."""

    counters: dict[Var, int]
    moving: frozenset[Var]
    given: tuple[Var, ...]

    def bits(self, *expressions: Expr) -> int:
        """Return the counters that expressions depend on."""
        found = 0
        for expr in expressions:
            for var in expr.variables():
                if var in self.counters:
                    found |= 1 << self.counters[var]
        return found


# --- expressions


@dataclass(frozen=True, slots=True)
class _Wheel:
    """A remainder: the same where what it is of is ahead by full turns, the rest being the same."""

    terms: tuple[tuple[int, int], ...]
    divisor: int
    rest: "_Same"


@dataclass(frozen=True, slots=True)
class _Same:
    """Whether values are those of the period before, one by one.

    `fixed` are the counters that must not have moved for that, `bits` all that count.
    """

    bits: int
    fixed: int
    wheels: tuple[_Wheel, ...]

    @staticmethod
    def of(names: _Names, *expressions: Expr) -> "_Same":
        """Return the question about all of some expressions."""
        fixed, wheels = 0, list[_Wheel]()
        for expr in expressions:
            for atom, _ in expr.terms:
                if isinstance(atom, Var):
                    fixed |= names.bits(Expr.of(atom))
                elif atom.kind == "mod" and (divisor := atom.right.constant):
                    wheels.append(_wheel(names, atom.left, divisor))
                else:
                    inner = _Same.of(names, atom.left, atom.right)
                    fixed |= inner.fixed
                    wheels += inner.wheels
        return _Same(names.bits(*expressions), fixed, tuple(wheels))

    def holds(self, way: _Way) -> bool:
        """Whether the values are the same on a way."""
        if not self.bits & way.moved:
            return True
        if self.fixed & way.moved:
            return False
        for wheel in self.wheels:
            ahead = 0
            for place, factor in wheel.terms:
                course = way.courses[place]
                if course is not None:
                    ahead += factor * course.ahead
            if ahead % wheel.divisor or not wheel.rest.holds(way):
                return False
        return True


def _wheel(names: _Names, expr: Expr, divisor: int) -> _Wheel:
    terms = {a: f for a, f in expr.terms if isinstance(a, Var) and a in names.counters}
    rest = tuple((a, f) for a, f in expr.terms if a not in terms)
    found = tuple((names.counters[var], factor) for var, factor in terms.items())
    return _Wheel(found, divisor, _Same.of(names, Expr(0, rest)))


class _Value:
    """Where an expression's values lie."""

    def __init__(self, names: _Names, expr: Expr) -> None:
        self._names, self._const = names, expr.const
        self._terms = [(self._atom(atom), factor) for atom, factor in expr.terms]

    @property
    def counter(self) -> int | None:
        """The place of the counter that it is, a constant left out; None where it is not."""
        (atom, factor), *more = self._terms or [(None, 0)]
        return atom if isinstance(atom, int) and factor == 1 and not more else None

    def _atom(self, atom: Atom) -> "int | Var | _Remainder | Expr | None":
        """Return a counter's place, what is given, or None where nothing is known of it."""
        names = self._names
        if isinstance(atom, Var):
            if atom in names.counters:
                return names.counters[atom]
            return None if atom in names.moving else atom
        used = {*atom.left.variables(), *atom.right.variables()}
        if used.isdisjoint(names.moving):
            return Expr(0, ((atom, 1),))
        divisor = atom.right.constant
        if atom.kind != "mod" or not divisor or divisor < 0:
            return None
        return _Remainder(_Value(names, atom.left), divisor)

    def reach(self, way: _Way) -> "ValueRange | None":
        """Return where the values lie on a way; None where that is not known."""
        low = high = self._const
        down = up = 0
        most = _FOR_EVER
        for atom, factor in self._terms:
            reach = self._reach(atom, way)
            if reach is None:
                return None
            one, other = (reach.low, reach.down), (reach.high, reach.up)
            if factor < 0:
                one, other = other, one
            low, down = low + factor * one[0], down + factor * one[1]
            high, up = high + factor * other[0], up + factor * other[1]
            most = min(most, reach.most)
        return ValueRange(low, high, down, up, most)

    def _reach(
        self, atom: "int | Var | _Remainder | Expr | None", way: _Way
    ) -> "ValueRange | None":
        if isinstance(atom, int):
            course = way.courses[atom]
            if course is None:
                return None
            return ValueRange(course.low, course.high, min(course.onward, 0), max(course.onward, 0))
        if isinstance(atom, _Remainder):
            inner = atom.value.reach(way)
            return None if inner is None else inner.within(atom.divisor)
        if atom is None:
            return None
        value = Expr.of(atom).at(dict(zip(self._names.given, way.given, strict=True)))
        return ValueRange(value, value)


@dataclass(frozen=True, slots=True)
class _Remainder:
    value: _Value
    divisor: int


class _Test(NamedTuple):
    """A comparison with 0: whether it is of ``== 0`` or ``< 0``, of how much more, or not of it."""

    equality: bool
    more: int
    negated: bool

    @staticmethod
    def of(comparison: str) -> "_Test":
        """Return what a comparison asks."""
        negated = comparison in {">=", ">", "!="}
        return _Test(comparison in {"==", "!="}, -(comparison in {"<=", ">"}), negated)

    def outcome(self, low: int, high: int, down: int, up: int, most: int) -> tuple[bool, int]:
        """Return how ``d comparison 0`` comes out for every d in reach, and for how many periods.

        The d lie between `low` and `high`, which move by `down` and `up` in every period more.
        """
        equality, more, negated = self
        high += more
        if high < 0:
            if up:
                most = min(most, (-1 - high) // up)
            return equality == negated, most
        above = low + more - equality
        if above >= 0:
            if down:
                most = min(most, above // -down)
            return negated, most
        return False, 0


# --- nodes


@dataclass(frozen=True, eq=False)
class _Guard(ABC):
    """A node that a counter can reach: `bits` are those that it depends on or changes."""

    bits: int

    @abstractmethod
    def check(self, way: _Way, most: int) -> int:
        """Return the periods, at most `most`, in which the node does the same."""


def _written(body: Sequence[Node], names: _Names) -> tuple[_Guard, ...]:
    return tuple(guard for node in body for guard in _guard(node, names) if guard.bits)


def _through(guards: Sequence[_Guard], way: _Way, most: int) -> int:
    for guard in guards:
        if guard.bits & way.moved:
            most = guard.check(way, most)
            if not most:
                break
    return most


def _guard(node: Node, names: _Names) -> Iterator[_Guard]:
    if isinstance(node, Branch):
        difference = node.condition.left - node.condition.right
        sides = _written(node.then, names), _written(node.otherwise, names)
        same, value = _Same.of(names, difference), _Value(names, difference)
        bits, test = same.bits | _all_bits(*sides), _Test.of(node.condition.comparison)
        if (place := value.counter) is not None:
            yield _CounterFork(bits, test, *sides, place, difference.const)
        else:
            yield _Fork(bits, test, *sides, same, value)
    elif isinstance(node, Loop):
        inside = _written(node.body, names)
        same = _Same.of(names, node.trips)
        yield _Turns(same.bits | _all_bits(inside), same, inside)
    elif isinstance(node, Assign):
        target = names.bits(Expr.of(node.target))
        same = _Same.of(names, node.value)
        yield _Count(same.bits | target, target, same, increment(node))
    elif isinstance(node, Issue):
        same = _Same.of(names, *deciding(node))
        yield _Decided(same.bits, same)


def _all_bits(*sides: Sequence[_Guard]) -> int:
    found = 0
    for side in sides:
        for guard in side:
            found |= guard.bits
    return found


@dataclass(frozen=True, eq=False)
class _Decided(_Guard):
    same: _Same

    def check(self, way: _Way, most: int) -> int:
        return most if self.same.holds(way) else 0


@dataclass(frozen=True, eq=False)
class _Turns(_Guard):
    same: _Same
    inside: tuple[_Guard, ...]

    def check(self, way: _Way, most: int) -> int:
        return _through(self.inside, way, most) if self.same.holds(way) else 0


@dataclass(frozen=True, eq=False)
class _Count(_Guard):
    """An assignment, to the counter `target` if that is one."""

    target: int
    same: _Same
    step: int | None

    def check(self, way: _Way, most: int) -> int:
        if not self.target & way.moved:
            return most if self.same.holds(way) else 0
        course = way.courses[self.target.bit_length() - 1]
        if self.step is None or course is None:
            return 0
        # What is only counted one way, and is where it was, was not counted at all.
        way_on = course.change or way.directions.setdefault(self.target, self.step)
        return most if self.step * way_on > 0 else 0


@dataclass(frozen=True, eq=False)
class _Branching(_Guard):
    test: _Test
    then: tuple[_Guard, ...]
    otherwise: tuple[_Guard, ...]

    def _both(self, way: _Way, most: int) -> int:
        most = _through(self.then, way, most)
        return _through(self.otherwise, way, most) if most else 0


@dataclass(frozen=True, eq=False)
class _CounterFork(_Branching):
    """A branch on the counter at a place plus a constant."""

    place: int
    const: int

    def check(self, way: _Way, most: int) -> int:
        course = way.courses[self.place]
        if course is None:
            return self._both(way, most)
        low, high, onward = course.low + self.const, course.high + self.const, course.onward
        down, up = (onward, 0) if onward < 0 else (0, onward)
        taken, most = self.test.outcome(low, high, down, up, most)
        return _through(self.then if taken else self.otherwise, way, most) if most else 0


@dataclass(frozen=True, eq=False)
class _Fork(_Branching):
    same: _Same
    value: _Value

    def check(self, way: _Way, most: int) -> int:
        if self.same.holds(way):
            return self._both(way, most)
        reach = self.value.reach(way)
        if reach is None:
            return 0
        low, high, down, up, longest = reach
        taken, most = self.test.outcome(low, high, down, up, min(most, longest))
        return _through(self.then if taken else self.otherwise, way, most) if most else 0


class ValueRange(NamedTuple):
    """Values lie between `low` and `high`; in every period more, these move by `down` and `up`.

    That holds for `most` periods.
    """

    low: int
    high: int
    down: int = 0
    up: int = 0
    most: int = _FOR_EVER

    def within(self, divisor: int) -> "ValueRange | None":
        """Return where remainders lie while none wraps around; None where one does at once."""
        start = self.low // divisor * divisor
        room = start + divisor - 1 - self.high
        if room < 0:
            return None
        above = room // self.up if self.up else self.most
        below = (self.low - start) // -self.down if self.down else self.most
        most = min(self.most, above, below)
        return ValueRange(self.low - start, self.high - start, self.down, self.up, most)
