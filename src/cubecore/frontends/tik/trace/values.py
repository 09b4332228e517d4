"""Symbolic values of a trace: expressions, Scalars, and what Python may do with them.

An integer value's expression is the integer; a float value's is the bits of a float32 (of a
float16 only while it is a Scalar of that type, untouched).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol, Union, runtime_checkable

import numpy as np

from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.tik.trace.errors import refuse, unable
from cubecore.isa.program.arithmetic import ROUND_MODES, bits_of_float
from cubecore.isa.program.expr import Expr, Var
from cubecore.numerics.conversion import bits_of

INT64, FLOAT16, FLOAT32 = (element_type(name) for name in ("int64", "float16", "float32"))
SCALAR_TYPES = (
    *("int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"),
    *("int64", "uint64"),
)

TikValue = Union[int, float, "Value"]
"""An immediate number, or a Scalar or an expression that stands for one when the program runs."""


class Value:
    """A symbolic number: what TIK calls an Expr."""

    __slots__ = ("dtype_record", "expr")
    __hash__ = object.__hash__

    def __init__(self, expr: Expr, dtype: ElementType = INT64) -> None:
        self.expr = expr
        self.dtype_record = dtype

    @property
    def dtype(self) -> str:
        """The type's name."""
        return self.dtype_record.name

    @property
    def is_float(self) -> bool:
        """True if it is a float."""
        return self.dtype_record.kind == "float"

    def __bool__(self) -> NoReturn:
        raise unable(
            "a condition",
            "a Python if, and, or, not or chained comparison cannot test a value of the kernel",
            "use if_scope, tik.all, tik.any or tik.negate",
        )

    def __index__(self) -> NoReturn:
        raise unable("a Python integer", "a value of the kernel cannot be a Python integer")

    def __add__(self, other: TikValue) -> "Value":
        return _binary("add", self, other)

    def __radd__(self, other: TikValue) -> "Value":
        return _binary("add", other, self)

    def __sub__(self, other: TikValue) -> "Value":
        return _binary("sub", self, other)

    def __rsub__(self, other: TikValue) -> "Value":
        return _binary("sub", other, self)

    def __mul__(self, other: TikValue) -> "Value":
        return _binary("mul", self, other)

    def __rmul__(self, other: TikValue) -> "Value":
        return _binary("mul", other, self)

    def __truediv__(self, other: TikValue) -> "Value":
        return _binary("div", self, other)

    def __rtruediv__(self, other: TikValue) -> "Value":
        return _binary("div", other, self)

    def __floordiv__(self, other: TikValue) -> "Value":
        return _integers("floordiv", self, other)

    def __rfloordiv__(self, other: TikValue) -> "Value":
        return _integers("floordiv", other, self)

    def __mod__(self, other: TikValue) -> "Value":
        return _integers("mod", self, other)

    def __rmod__(self, other: TikValue) -> "Value":
        return _integers("mod", other, self)

    def __and__(self, other: TikValue) -> "Value":
        return _integers("bitand", self, other)

    __rand__ = __and__

    def __or__(self, other: TikValue) -> "Value":
        return _integers("bitor", self, other)

    __ror__ = __or__

    def __lshift__(self, other: TikValue) -> "Value":
        return _integers("shl", self, other)

    def __rshift__(self, other: TikValue) -> "Value":
        return _integers("shr", self, other)

    def __neg__(self) -> "Value":
        return _binary("sub", 0, self)

    def __eq__(self, other: object) -> "Value":  # type: ignore[override]
        return _compare("eq", self, other)

    def __ne__(self, other: object) -> "Value":  # type: ignore[override]
        return _compare("ne", self, other)

    def __lt__(self, other: TikValue) -> "Value":
        return _compare("lt", self, other)

    def __le__(self, other: TikValue) -> "Value":
        return _compare("le", self, other)

    def __gt__(self, other: TikValue) -> "Value":
        return _compare("gt", self, other)

    def __ge__(self, other: TikValue) -> "Value":
        return _compare("ge", self, other)


class Scalar(Value):
    """A typed variable of the scalar unit."""

    __slots__ = ("_assign", "name", "var")

    def __init__(
        self, var: Var, dtype: ElementType, name: str, assign: Callable[["Scalar", object], None]
    ) -> None:
        super().__init__(Expr.of(var), dtype)
        self.var, self.name, self._assign = var, name, assign

    def set_as(self, value: object) -> None:
        """Take the value of an immediate, a Scalar, an expression or one element of a tensor."""
        self._assign(self, value)


class InputScalar(Scalar):
    """A Scalar that the launch gives: the kernel reads it where it is declared."""

    __slots__ = ("tensor",)

    def __init__(
        self,
        var: Var,
        dtype: ElementType,
        name: str,
        assign: Callable[[Scalar, object], None],
        tensor: Any,
    ) -> None:
        super().__init__(var, dtype, name, assign)
        self.tensor = tensor


@runtime_checkable
class Readable(Protocol):
    """An element of a tensor, which stands for its value in an expression."""

    def loaded(self) -> Value:
        """Return the value that it has now."""


def as_value(value: TikValue, subject: str = "a value") -> Value:
    """Return an immediate or a symbolic value as a `Value`; an immediate float is float32."""
    if isinstance(value, Value):
        return value
    if isinstance(value, (bool, int, np.integer)):
        return Value(Expr(int(value)))
    if isinstance(value, (float, np.floating)):
        return Value(Expr(bits_of_float(float(value))), FLOAT32)
    if isinstance(value, Readable):
        return value.loaded()
    raise refuse(subject, "be a number, a Scalar or an expression", type(value).__name__)


def integer(value: TikValue, subject: str) -> Expr:
    """Return an integer operand's expression; a symbolic float is truncated.

    Raises
    ------
    RequestError
        If an immediate has a fraction, or is not a number.
    """
    if type(value) is int:
        return Expr(value)
    if isinstance(value, float) and value.is_integer():
        return Expr(int(value))
    # An integer is its own expression; a float's expression is its bits, so that it must be
    # converted by an operation (`f32toint`) when the program runs, never by Python.
    held = as_value(value, subject)
    if not held.is_float:
        return held.expr
    if held.expr.constant is not None:
        raise refuse(subject, "be an integer", f"{held.dtype} {value}")
    return as_float(held).applied("f32toint", ROUND_MODES.index("trunc"))


def converted(value: TikValue, target: ElementType, rounding: str = "trunc") -> Expr:
    """Return `value` in the element type `target`: an integer wrapped to it, or a float's bits."""
    if isinstance(value, (float, np.floating)) and target.kind == "float":
        return Expr(bits_of(float(value), target))
    held = as_value(value)
    if target.kind == "float":
        return _to_float(held, target)
    whole = held.expr
    if held.is_float:
        mode = ROUND_MODES.index(rounding)
        whole = as_float(held).applied("f32toint", mode)
    if held.dtype_record is target:
        return whole
    return whole.applied("wrap", target.bits if target.kind == "uint" else -target.bits)


def _to_float(value: Value, target: ElementType) -> Expr:
    if value.dtype_record is target:
        return value.expr
    if value.expr.constant is not None and not value.is_float:
        return Expr(bits_of(value.expr.constant, target))
    wide = as_float(value)
    return wide.applied("f32tof16") if target is FLOAT16 else wide


def as_float(value: Value) -> Expr:
    """Return a value as the bits of a float32."""
    if not value.is_float:
        return value.expr.applied("inttof32")
    return value.expr.applied("f16tof32") if value.dtype_record is FLOAT16 else value.expr


def _whole(value: TikValue, other: TikValue, name: str) -> TikValue:
    """Return an immediate float with an integral value as an integer beside an integer."""
    beside = isinstance(other, Value) and not other.is_float and name != "div"
    return int(value) if beside and isinstance(value, float) and value.is_integer() else value


def _binary(name: str, left: TikValue, right: TikValue) -> Value:
    left, right = _whole(left, right, name), _whole(right, left, name)
    # TIK promotes to float32 as soon as one side is a float; integer division rounds down.
    x, y = as_value(left), as_value(right)
    if x.is_float or y.is_float:
        return Value(as_float(x).applied(f"f32{name}", as_float(y)), FLOAT32)
    operations: dict[str, Callable[[Expr, Expr], Expr]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a // b,
    }
    return Value(operations[name](x.expr, y.expr))


def _integers(name: str, left: TikValue, right: TikValue) -> Value:
    x, y = integer(left, f"an operand of {name}"), integer(right, f"an operand of {name}")
    if name == "floordiv":
        return Value(x // y)
    if name == "mod":
        return Value(x % y)
    return Value(x.applied(name, y))


def _compare(name: str, left: TikValue, right: Any) -> Value:
    if right is None:
        raise refuse("a comparison", "have two values", "None", "write `is None`")
    x, y = as_value(left), as_value(right)
    if x.is_float or y.is_float:
        return Value(as_float(x).applied(f"f32{name}", as_float(y)))
    return Value(x.expr.applied(name, y.expr))


def truth(condition: TikValue) -> Expr:
    """Return a condition as 0 or not 0."""
    if isinstance(condition, Value) and condition.is_float:
        return as_float(condition).applied("f32ne", 0)
    return integer(condition, "a condition")


def all_of(*conditions: TikValue) -> Value:
    """Return whether every condition holds (``tik.all``)."""
    result = Expr(1)
    for condition in conditions:
        result = result.applied("bitand", truth(condition).applied("ne", 0))
    return Value(result)


def any_of(*conditions: TikValue) -> Value:
    """Return whether one of the conditions holds (``tik.any``)."""
    result = Expr(0)
    for condition in conditions:
        result = result.applied("bitor", truth(condition).applied("ne", 0))
    return Value(result)


def negate(condition: TikValue) -> Value:
    """Return whether a condition does not hold (``tik.negate``)."""
    return Value(truth(condition).applied("eq", 0))


class ScalarArray:
    """A list of Scalars, indexed by an immediate or by an expression.

    An expression chooses among all of them: reading is a sum with one term that counts, writing a
    branch for each. An index beyond the list reads 0 and writes nothing.
    """

    def __init__(
        self, scalars: Sequence[Scalar], branch: Callable[[Value], AbstractContextManager[None]]
    ) -> None:
        self._scalars, self._branch = scalars, branch

    def __len__(self) -> int:
        return len(self._scalars)

    def __getitem__(self, index: TikValue) -> Value:
        if isinstance(index, Value):
            return _Chosen(self._scalars, index, self._branch)
        count = len(self._scalars)
        if not isinstance(index, int) or not -count <= index < count:
            raise refuse("the index of a ScalarArray", f"be in [{-count}, {count})", index)
        return self._scalars[index]

    def __setitem__(self, index: TikValue, value: TikValue) -> None:
        self[index].set_as(value)  # type: ignore[attr-defined]


class _Chosen(Value):
    """One Scalar of a list, by an expression."""

    __slots__ = ("_branch", "_index", "_scalars")

    def __init__(
        self,
        scalars: Sequence[Scalar],
        index: Value,
        branch: Callable[[Value], AbstractContextManager[None]],
    ) -> None:
        # Expressions have no choice between values: sum over i of (index == i) * scalar_i, of which
        # at most one term is not 0.
        total = Expr(0)
        for index_of_scalar, scalar in enumerate(scalars):
            total = total + index.expr.applied("eq", index_of_scalar) * scalar.expr
        super().__init__(total, scalars[0].dtype_record)
        self._scalars, self._index, self._branch = scalars, index, branch

    def set_as(self, value: object) -> None:
        """Take a value, as `Scalar.set_as`."""
        for index, scalar in enumerate(self._scalars):
            with self._branch(self._index == index):
                scalar.set_as(value)
