"""Symbolic integers: affine in variables wherever possible, with the operations that are not.

An `Expr` is const + sum of coefficient * atom. An atom is a variable (a loop index, a scalar, or a
slot that each core fills in) or an operation on expressions that is not affine. Expressions are
values: equal when their normal forms are, hashable, and cheap to evaluate as Python source.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Union

from cubecore.isa.program.arithmetic import FUNCTIONS

Int = Union["Expr", int]


class Spelling(Protocol):
    """The spelling of variables and numbers in generated Python."""

    def variable(self, var: "Var") -> str:
        """Return a variable's name."""
        ...

    def number(self, number: int) -> str:
        """Return a number, or what stands for it."""
        ...


@dataclass(frozen=True, slots=True)
class Var:
    """A named integer that a loop, an assignment or a core gives its value.

    `number` makes it unique within a program; variables of one program never share one.
    """

    name: str
    number: int

    def __hash__(self) -> int:
        return self.number

    def source(self, spelling: Spelling | None = None) -> str:
        """Return its name in generated Python."""
        return f"v{self.number}" if spelling is None else spelling.variable(self)


_OPERATIONS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "floordiv": ("({0})//({1})", lambda a, b: a // b),
    "mod": ("({0})%({1})", lambda a, b: a % b),
    "mul": ("({0})*({1})", lambda a, b: a * b),
    "min": ("min({0},{1})", min),
    "max": ("max({0},{1})", max),
    **{name: (name + "({0},{1})", function) for name, function in FUNCTIONS.items()},
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A non-affine operation on two expressions."""

    kind: str
    left: "Expr"
    right: "Expr"

    def source(self, spelling: Spelling | None = None) -> str:
        """Return it as Python."""
        left, right = self.left.source(spelling), self.right.source(spelling)
        return _OPERATIONS[self.kind][0].format(left, right)


Atom = Var | Operation


@dataclass(frozen=True, slots=True)
class Expr:
    """const + sum of coefficient * atom; `terms` has no zero, no atom twice, and one order."""

    const: int
    terms: tuple[tuple[Atom, int], ...] = ()

    @staticmethod
    def of(value: "Int | Var") -> "Expr":
        """Return `value` as an expression."""
        if isinstance(value, Expr):
            return value
        return Expr(0, ((value, 1),)) if isinstance(value, Var) else Expr(int(value))

    @property
    def constant(self) -> int | None:
        """The value if it depends on nothing, else None."""
        return None if self.terms else self.const

    def __add__(self, other: Int) -> "Expr":
        # The normal form: terms sorted by their text, none with factor 0. So equal values of affine
        # expressions are equal records, and serve as keys of caches.
        other = Expr.of(other)
        if not other.terms or not self.terms:
            return Expr(self.const + other.const, self.terms or other.terms)
        merged = dict(self.terms)
        for atom, factor in other.terms:
            merged[atom] = merged.get(atom, 0) + factor
        kept = ((a, f) for a, f in merged.items() if f)
        return Expr(self.const + other.const, tuple(sorted(kept, key=lambda t: t[0].source())))

    __radd__ = __add__

    def __neg__(self) -> "Expr":
        return self * -1

    def __sub__(self, other: Int) -> "Expr":
        return self + -Expr.of(other)

    def __rsub__(self, other: Int) -> "Expr":
        return -self + other

    def __mul__(self, other: Int) -> "Expr":
        # A product with a constant stays affine; any other becomes an operation, opaque to the
        # rest.
        factor = other if type(other) is int else Expr.of(other).constant
        if factor is None:
            if self.terms:
                return _operation("mul", self, Expr.of(other))
            return Expr.of(other) * self.const
        if not factor:
            return Expr(0)
        return Expr(self.const * factor, tuple((a, f * factor) for a, f in self.terms))

    __rmul__ = __mul__

    def __floordiv__(self, other: Int) -> "Expr":
        return self if other == 1 else _operation("floordiv", self, Expr.of(other))

    def __mod__(self, other: Int) -> "Expr":
        return Expr(0) if other == 1 else _operation("mod", self, Expr.of(other))

    def minimum(self, other: Int) -> "Expr":
        """Return the smaller of two."""
        return _operation("min", self, Expr.of(other))

    def maximum(self, other: Int) -> "Expr":
        """Return the larger of two."""
        return _operation("max", self, Expr.of(other))

    def applied(self, function: str, other: Int = 0) -> "Expr":
        """Return what `function`, a name of `arithmetic.FUNCTIONS`, makes of this and `other`."""
        return _operation(function, self, Expr.of(other))

    def variables(self) -> Iterator[Var]:
        """Yield every variable that the value depends on."""
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                yield atom
            else:
                yield from atom.left.variables()
                yield from atom.right.variables()

    def bent_variables(self) -> Iterator[Var]:
        """Yield the variables that the value does not depend on in a straight line."""
        for atom, _ in self.terms:
            if isinstance(atom, Operation):
                yield from atom.left.variables()
                yield from atom.right.variables()

    def at(self, values: Mapping[Var, int]) -> int:
        """Return the value for the given variables."""
        return self.const + sum(factor * _atom_at(atom, values) for atom, factor in self.terms)

    def source(self, spelling: Spelling | None = None) -> str:
        """Return it as Python, by plain names and numbers or as they are spelled."""
        number = str if spelling is None else spelling.number
        parts = []
        for atom, factor in self.terms:
            text = atom.source(spelling)
            parts.append(text if factor == 1 else f"{number(factor)}*({text})")
        if self.const or not parts:
            parts.append(number(self.const))
        return "+".join(parts)


def _atom_at(atom: Atom, values: Mapping[Var, int]) -> int:
    if isinstance(atom, Var):
        return values[atom]
    return _OPERATIONS[atom.kind][1](atom.left.at(values), atom.right.at(values))


def _operation(kind: str, left: Expr, right: Expr) -> Expr:
    if left.constant is not None and right.constant is not None:
        return Expr(_OPERATIONS[kind][1](left.constant, right.constant))
    return Expr(0, ((Operation(kind, left, right), 1),))


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of two expressions."""

    left: Expr
    comparison: str
    right: Expr

    @staticmethod
    def of(left: Int, comparison: str, right: Int) -> "Condition":
        """Return ``left comparison right``; `comparison` is Python's sign for it."""
        if comparison not in _COMPARISONS:
            raise ValueError(f"comparison must be one of {', '.join(_COMPARISONS)}")
        return Condition(Expr.of(left), comparison, Expr.of(right))

    @property
    def constant(self) -> bool | None:
        """The truth if it depends on nothing, else None."""
        if self.left.constant is None or self.right.constant is None:
            return None
        return _COMPARISONS[self.comparison](self.left.constant, self.right.constant)

    def at(self, values: Mapping[Var, int]) -> bool:
        """Return the truth for the given variables."""
        return _COMPARISONS[self.comparison](self.left.at(values), self.right.at(values))

    def source(self, spelling: Spelling | None = None) -> str:
        """Return it as Python."""
        left, right = self.left.source(spelling), self.right.source(spelling)
        return f"({left}){self.comparison}({right})"
