"""Loop guards: conditions under which the next iterations of a loop take the same branches.

The conditions are written once for a program, by the index of each variable (`Guards`), and
evaluated often, for many ranges.
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


class CounterPath(NamedTuple):
    """The range of a counter: between `low` and `high` in the known part of the walk and the next.

    It changes by `change` in each, and is `ahead` in the next of where it was in the known one.
    With every one more that follows it gets `onward` further.
    """

    low: int
    high: int
    change: int
    ahead: int
    onward: int

    @staticmethod
    def recurring(began: int, now: int) -> "CounterPath | None":
        """Return the path of a counter in periods, of which one ends now; None if it stands."""
        by = now - began
        return CounterPath(min(began, now), max(began, now), by, by, by) if by else None

    @staticmethod
    def once(began: int, ended: int, now: int) -> "CounterPath | None":
        """Return the path where what began and ended there happens once from here on.

        None where it began here too: then it has the same values.
        """
        if began == now:
            return None
        low, high, change = min(began, now), max(began, now), ended - began
        return CounterPath(low + min(change, 0), high + max(change, 0), change, now - began, 0)


@dataclass(eq=False, slots=True)
class _Paths:
    """A part of a walk: the paths of the counters, and which of them have one, as bits.

    Within a part a counter moves one way only, so it stays between where it began and ended.
    """

    paths: Sequence[CounterPath | None]
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

    def periods(self, paths: Sequence[CounterPath | None], given: Sequence[int], most: int) -> int:
        """Return the periods, at most `most`, in which every node does the same.

        `paths` has None for counters with the same values as in the known part.
        """
        # A bit mask of the counters that have moved: nodes that depend on none of them are passed
        # at once, which is the usual case.
        moved = 0
        for i, path in enumerate(paths):
            if path is not None:
                moved |= 1 << i
        return _through(self._nodes, _Paths(paths, given, moved), most)


@dataclass(frozen=True, slots=True)
class _Names:
    """The sources of variables: a counter by its index, a given value by its index."""

    counters: dict[Var, int]
    moving: frozenset[Var]
    given: tuple[Var, ...]

    def bits(self, *expressions: Expr) -> int:
        """Return the counters that expressions depend on."""
        bits = 0
        for expr in expressions:
            for var in expr.variables():
                if var in self.counters:
                    bits |= 1 << self.counters[var]
        return bits


# --- expressions


@dataclass(frozen=True, slots=True)
class _Modulus:
    """A remainder: unchanged where its counters are ahead by whole multiples of the divisor."""

    terms: tuple[tuple[int, int], ...]
    divisor: int
    rest: "_Unchanged"


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """The condition that values equal those of the period before, one by one.

    `fixed` are the counters that must not have moved for that, `bits` all that count.
    """

    bits: int
    fixed: int
    moduli: tuple[_Modulus, ...]

    @staticmethod
    def of(names: _Names, *expressions: Expr) -> "_Unchanged":
        """Return the question about all of some expressions."""
        fixed, moduli = 0, list[_Modulus]()
        for expr in expressions:
            for atom, _ in expr.terms:
                if isinstance(atom, Var):
                    fixed |= names.bits(Expr.of(atom))
                elif atom.kind == "mod" and (divisor := atom.right.constant):
                    moduli.append(_modulus(names, atom.left, divisor))
                else:
                    inner = _Unchanged.of(names, atom.left, atom.right)
                    fixed |= inner.fixed
                    moduli += inner.moduli
        return _Unchanged(names.bits(*expressions), fixed, tuple(moduli))

    def holds(self, walked: _Paths) -> bool:
        """True if the values are the same along these paths."""
        if not self.bits & walked.moved:
            return True
        # A counter that enters as it is gives another value as soon as it has moved; in a remainder
        # only what is no multiple of the divisor does.
        if self.fixed & walked.moved:
            return False
        for modulus in self.moduli:
            ahead = 0
            for counter, factor in modulus.terms:
                path = walked.paths[counter]
                if path is not None:
                    ahead += factor * path.ahead
            if ahead % modulus.divisor or not modulus.rest.holds(walked):
                return False
        return True


def _modulus(names: _Names, expr: Expr, divisor: int) -> _Modulus:
    terms = {a: f for a, f in expr.terms if isinstance(a, Var) and a in names.counters}
    rest = tuple((a, f) for a, f in expr.terms if a not in terms)
    factors = tuple((names.counters[var], factor) for var, factor in terms.items())
    return _Modulus(factors, divisor, _Unchanged.of(names, Expr(0, rest)))


class _Value:
    """The range of an expression's values."""

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

    def value_range(self, walked: _Paths) -> "ValueRange | None":
        """Return where the values lie along these paths; None where that is not known."""
        # Interval arithmetic over a linear expression: the range in the periods seen so far, and
        # the speed at which each end moves in every period more (`down` <= 0 <= `up`).
        low = high = self._const
        down = up = 0
        most = _FOR_EVER
        for atom, factor in self._terms:
            span = self._value_range(atom, walked)
            if span is None:
                return None
            one, other = (span.low, span.down), (span.high, span.up)
            if factor < 0:
                one, other = other, one
            low, down = low + factor * one[0], down + factor * one[1]
            high, up = high + factor * other[0], up + factor * other[1]
            most = min(most, span.most)
        return ValueRange(low, high, down, up, most)

    def _value_range(
        self, atom: "int | Var | _Remainder | Expr | None", walked: _Paths
    ) -> "ValueRange | None":
        if isinstance(atom, int):
            path = walked.paths[atom]
            if path is None:
                return None
            return ValueRange(path.low, path.high, min(path.onward, 0), max(path.onward, 0))
        if isinstance(atom, _Remainder):
            inner = atom.value.value_range(walked)
            return None if inner is None else inner.within(atom.divisor)
        if atom is None:
            return None
        value = Expr.of(atom).at(dict(zip(self._names.given, walked.given, strict=True)))
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
        """Return the outcome of ``d comparison 0`` in the range, and for how many periods it holds.

        The d lie between `low` and `high`, which move by `down` and `up` in every period more.
        """
        equality, more, negated = self
        # Every comparison is one of `== 0` or `< 0`, shifted or negated: so it holds all over the
        # range if one end is on the right side, until an end has moved across.
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
    def check(self, walked: _Paths, most: int) -> int:
        """Return the periods, at most `most`, in which the node does the same."""


def _written(body: Sequence[Node], names: _Names) -> tuple[_Guard, ...]:
    return tuple(guard for node in body for guard in _guard(node, names) if guard.bits)


def _through(guards: Sequence[_Guard], walked: _Paths, most: int) -> int:
    for guard in guards:
        if guard.bits & walked.moved:
            most = guard.check(walked, most)
            if not most:
                break
    return most


def _guard(node: Node, names: _Names) -> Iterator[_Guard]:
    if isinstance(node, Branch):
        difference = node.condition.left - node.condition.right
        sides = _written(node.then, names), _written(node.otherwise, names)
        same, value = _Unchanged.of(names, difference), _Value(names, difference)
        bits, test = same.bits | _all_bits(*sides), _Test.of(node.condition.comparison)
        if (counter := value.counter) is not None:
            yield _CounterFork(bits, test, *sides, counter, difference.const)
        else:
            yield _Fork(bits, test, *sides, same, value)
    elif isinstance(node, Loop):
        inside = _written(node.body, names)
        same = _Unchanged.of(names, node.trips)
        yield _TripGuard(same.bits | _all_bits(inside), same, inside)
    elif isinstance(node, Assign):
        target = names.bits(Expr.of(node.target))
        same = _Unchanged.of(names, node.value)
        yield _Count(same.bits | target, target, same, increment(node))
    elif isinstance(node, Issue):
        same = _Unchanged.of(names, *deciding(node))
        yield _Decided(same.bits, same)


def _all_bits(*sides: Sequence[_Guard]) -> int:
    bits = 0
    for side in sides:
        for guard in side:
            bits |= guard.bits
    return bits


@dataclass(frozen=True, eq=False)
class _Decided(_Guard):
    same: _Unchanged

    def check(self, walked: _Paths, most: int) -> int:
        return most if self.same.holds(walked) else 0


@dataclass(frozen=True, eq=False)
class _TripGuard(_Guard):
    same: _Unchanged
    inside: tuple[_Guard, ...]

    def check(self, walked: _Paths, most: int) -> int:
        return _through(self.inside, walked, most) if self.same.holds(walked) else 0


@dataclass(frozen=True, eq=False)
class _Count(_Guard):
    """An assignment, to the counter `target` if that is one."""

    target: int
    same: _Unchanged
    step: int | None

    def check(self, walked: _Paths, most: int) -> int:
        if not self.target & walked.moved:
            return most if self.same.holds(walked) else 0
        path = walked.paths[self.target.bit_length() - 1]
        if self.step is None or path is None:
            return 0
        # What is only counted one way, and is where it was, was not counted at all.
        direction = path.change or walked.directions.setdefault(self.target, self.step)
        return most if self.step * direction > 0 else 0


@dataclass(frozen=True, eq=False)
class _Branching(_Guard):
    test: _Test
    then: tuple[_Guard, ...]
    otherwise: tuple[_Guard, ...]

    def _both(self, walked: _Paths, most: int) -> int:
        most = _through(self.then, walked, most)
        return _through(self.otherwise, walked, most) if most else 0


@dataclass(frozen=True, eq=False)
class _CounterFork(_Branching):
    """A branch on the counter at a place plus a constant."""

    counter: int
    const: int

    def check(self, walked: _Paths, most: int) -> int:
        path = walked.paths[self.counter]
        if path is None:
            return self._both(walked, most)
        low, high, onward = path.low + self.const, path.high + self.const, path.onward
        down, up = (onward, 0) if onward < 0 else (0, onward)
        taken, most = self.test.outcome(low, high, down, up, most)
        return _through(self.then if taken else self.otherwise, walked, most) if most else 0


@dataclass(frozen=True, eq=False)
class _Fork(_Branching):
    same: _Unchanged
    value: _Value

    def check(self, walked: _Paths, most: int) -> int:
        if self.same.holds(walked):
            return self._both(walked, most)
        span = self.value.value_range(walked)
        if span is None:
            return 0
        low, high, down, up, longest = span
        taken, most = self.test.outcome(low, high, down, up, min(most, longest))
        return _through(self.then if taken else self.otherwise, walked, most) if most else 0


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
        # [low, high] must lie within one multiple of the divisor; then the remainder is the value
        # minus `start`, and holds until an end crosses into the next or the previous multiple.
        start = self.low // divisor * divisor
        room = start + divisor - 1 - self.high
        if room < 0:
            return None
        above = room // self.up if self.up else self.most
        below = (self.low - start) // -self.down if self.down else self.most
        most = min(self.most, above, below)
        return ValueRange(self.low - start, self.high - start, self.down, self.up, most)
