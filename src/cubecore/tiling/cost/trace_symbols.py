"""Trace symbols: stand-ins for columns and numbers that record the operations on them.

A function of candidates that is run on them leaves its operations behind, in order, each once.
`cubecore.tiling.cost.tracing` compiles them.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cubecore.aliases import Column

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "right_shift": ">>",
}
_CALLED = ("minimum", "maximum", "floor", "ceil", "exp", "logical_and", "logical_or", "logical_not")
_ON_ARRAYS = (
    *("add", "subtract", "multiply", "divide", "minimum", "maximum"),
    *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "where"),
)
"""Operations of real columns that are quicker with a number as an array."""
_OF_TRUTH = (*(name for name in _INFIX if name[0] in "lgen"), *_CALLED[-3:])


def _floor(value: Column) -> float:
    return float(math.floor(value))


def _ceil(value: Column) -> float:
    return float(math.ceil(value))


_OF_NUMBERS: dict[str, Callable[..., Column]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "right_shift": operator.rshift,
    "negative": operator.neg,
    "invert": operator.not_,
    "minimum": min,
    "maximum": max,
    "floor": _floor,
    "ceil": _ceil,
    "exp": math.exp,
    "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b),
    "logical_not": operator.not_,
    "where": lambda c, a, b: a if c else b,
    "take": lambda table, index: float(table[int(index)]),
}
_OF_COLUMNS = {name: getattr(np, name) for name in (*_CALLED, "where")}
NAMES = {f"n_{name}": function for name, function in _OF_NUMBERS.items()}
NAMES |= _OF_COLUMNS | {"inf": math.inf, "array": np.array, "float": float}
"""The names in the text of a line; functions of numbers alone begin with n_."""


class Symbol:
    """A value of a trace: a column, or a number whose `value` in this case is known."""

    __hash__ = object.__hash__

    def __init__(
        self, trace: "OperationTrace", index: int, kind: str, level: int, value: Column
    ) -> None:
        self.trace, self.index, self.kind, self.level, self.value = trace, index, kind, level, value

    @property
    def dtype(self) -> "np.dtype[Any]":
        """A column's type: whole and real numbers divide in two ways."""
        if not self.kind:
            raise AttributeError("a number has no dtype")
        return np.dtype({"b": bool, "i": np.int64, "f": float}[self.kind])

    def __bool__(self) -> bool:
        """Return what a number decides, and note it."""
        return self.trace.decide(self)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *values: Column, **options: object
    ) -> Column:
        """Note an operation."""
        if method != "__call__" or options:
            return NotImplemented
        name = {"true_divide": "divide"}.get(ufunc.__name__, ufunc.__name__)
        return self.trace.operation(name, *values)

    def __array_function__(
        self, function: object, _: object, values: Sequence[Column], options: Mapping[str, object]
    ) -> Column:
        """Note a choice, a lookup by index, or the two operations of clip."""
        if function is np.interp and len(values) == 3 and not options:
            index, indexes, table = values
            # Interpolation in a table with an entry for each whole number is a lookup; any other is
            # refused.
            if not np.array_equal(indexes, np.arange(len(table))):
                return NotImplemented
            return self.trace.operation("take", self.trace.table(table), index)
        if function is np.where and len(values) == 3 and not options:
            return self.trace.operation("where", *values)
        if function is np.clip and len(values) == 3 and not options:
            value, least, most = values
            raised = self.trace.operation("maximum", value, least)
            return self.trace.operation("minimum", raised, most)
        return NotImplemented


def _note_operators() -> None:
    """Let operators between symbols, and between symbols and numbers, be noted."""

    def operator_of(name: str, *, turned: bool) -> Callable[[Symbol, Column], Column]:
        if turned:
            return lambda symbol, other: symbol.trace.operation(name, other, symbol)
        return lambda symbol, other: symbol.trace.operation(name, symbol, other)

    for name, (method, turned) in _METHODS.items():
        setattr(Symbol, f"__{method}__", operator_of(name, turned=False))
        if turned:
            setattr(Symbol, f"__r{method}__", operator_of(name, turned=True))
    for name, method in (("negative", "__neg__"), ("invert", "__invert__")):
        setattr(Symbol, method, lambda symbol, name=name: symbol.trace.operation(name, symbol))


_METHODS = {
    "add": ("add", True),
    "subtract": ("sub", True),
    "multiply": ("mul", True),
    "divide": ("truediv", True),
    "floor_divide": ("floordiv", True),
    "remainder": ("mod", True),
    "power": ("pow", True),
    "bitwise_and": ("and", True),
    "bitwise_or": ("or", True),
    "right_shift": ("rshift", True),
    "less": ("lt", False),
    "less_equal": ("le", False),
    "greater": ("gt", False),
    "greater_equal": ("ge", False),
    "equal": ("eq", False),
    "not_equal": ("ne", False),
}
"""Python's method for each operator, and whether it has one for the other side."""
_note_operators()


class OperationTrace:
    """The operations of a function, as they are noted.

    Structs are levels: a column belongs to the rows of one, `parents` says which rows belong to
    rows of another, and `top` is their join. `out` is the level of the results. An operation is
    noted for the least level that has rows for all of its columns.
    """

    def __init__(self, parents: tuple[int | None, ...], out: int) -> None:
        self.parents, self.top, self.out = parents, len(parents), out
        self.texts: list[str | None] = []
        self.needs: list[tuple[Symbol, ...]] = []
        self.inputs: dict[int, tuple[int, str, str]] = {}
        self.symbols: dict[object, Symbol] = {}
        self.decisions: dict[int, tuple[Symbol, bool]] = {}
        self.constants: dict[str, Column] = {}

    def input(self, struct: int, name: str, value: Column) -> Column:
        """Return the symbol of a struct's field."""
        key = ("input", struct, name)
        if key not in self.symbols:
            column = isinstance(value, np.ndarray) and value.ndim == 1
            kind = value.dtype.kind if column else ""
            level = struct if column else -1
            symbol = self._symbol(None, (), kind, level, None if column else value)
            self.inputs[symbol.index] = (struct, name, kind)
            self.symbols[key] = symbol
        return self.symbols[key]

    def operation(self, name: str, *values: Column) -> Column:
        """Note an operation on symbols and numbers."""
        values = tuple([_plain(value) for value in values])
        folded = _folded(name, values)
        if folded is not None:
            return folded
        key = (name, *(_key(value) for value in values))
        if key not in self.symbols:
            self.symbols[key] = self._operation(name, values)
        return self.symbols[key]

    def table(self, values: Column) -> Symbol:
        """Return the symbol of a constant table of real numbers."""
        key = ("table", values.tobytes())
        if key not in self.symbols:
            self.symbols[key] = symbol = self._symbol(None, (), "", -1, values)
            self.constants[spell(symbol)] = values
        return self.symbols[key]

    def decide(self, symbol: Symbol) -> bool:
        """Return what a number decides, and note it."""
        if symbol.kind:
            raise TypeError("a function of candidates must not decide on a column")
        outcome = bool(symbol.value)
        self.decisions[symbol.index] = (symbol, outcome)
        return outcome

    def forget(self) -> None:
        """Let go of every symbol, so that none waits for Python's collector of cycles."""
        for held in (self.symbols, self.needs, self.decisions):
            held.clear()

    def at(self, value: Column, level: int) -> Column:
        """Return a value for the rows of a level."""
        if not isinstance(value, Symbol) or not value.kind or value.level == level:
            return value
        key = ("take", value.index, level)
        if key not in self.symbols:
            index = f"rows{value.level}" if level == self.top else f"up{level}"
            text = f"{spell(value)}.take({index})"
            self.symbols[key] = self._symbol(text, (value,), value.kind, level, None)
        return self.symbols[key]

    def _operation(self, name: str, values: tuple[Column, ...]) -> Symbol:
        # Numbers alone stay Python's own: for one of them NumPy takes twenty times as long.
        columns = [v for v in values if isinstance(v, Symbol) and v.kind]
        if not columns:
            numbers = [v.value if isinstance(v, Symbol) else v for v in values]
            value = _OF_NUMBERS[name](*numbers)
            return self._symbol(_text(name, values, of_numbers=True), values, "", -1, value)
        # An operation belongs to the smallest set of rows that has all its columns: a base block's
        # is done once a block, not once for each pair of residencies over it.
        level = columns[0].level
        for column in columns[1:]:
            level = self._join(level, column.level)
        operands = tuple(self.at(v, level) for v in values)
        # A 0-dimensional float array spares NumPy the look at Python's number, which costs more
        # than a few thousand additions.
        if name in _ON_ARRAYS and any(column.kind == "f" for column in columns):
            operands = tuple(self._as_array(v) for v in operands)
        text = _text(name, operands, of_numbers=False)
        return self._symbol(text, operands, _kind(name, values), level, None)

    def _as_array(self, value: Column) -> Column:
        """Return a number as an array of it: NumPy takes half as long for a real column with one.

        The array is a number of the line for all else.
        """
        if _column(value) or _letter(value) == "b":
            return value
        key = ("array", _key(value))
        if key not in self.symbols:
            if isinstance(value, Symbol):
                symbol = self._symbol(
                    f"array({spell(value)}, float)", (value,), "", -1, value.value
                )
            else:
                symbol = self._symbol(None, (), "", -1, value)
                self.constants[spell(symbol)] = np.array(value, float)
            self.symbols[key] = symbol
        return self.symbols[key]

    def _join(self, one: int, other: int) -> int:
        """Return the level whose rows have one of each."""
        if one == other or (other < self.top and self.parents[other] == one):
            return other
        if one < self.top and self.parents[one] == other:
            return one
        return self.top

    def _symbol(
        self, text: str | None, values: tuple[Column, ...], kind: str, level: int, value: Column
    ) -> Symbol:
        self.texts.append(text)
        self.needs.append(tuple(v for v in values if isinstance(v, Symbol)))
        return Symbol(self, len(self.texts) - 1, kind, level, value)


def _plain(value: Column) -> Column:
    """Return a symbol, or a constant as Python's number."""
    if isinstance(value, Symbol | bool | int | float):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    raise TypeError(f"a function of candidates must use numbers and columns, got {type(value)}")


def _folded(name: str, values: tuple[Column, ...]) -> Column:
    """Return the result of an operation that a constant decides, or None."""
    if name == "where":
        return None if isinstance(values[0], Symbol) else values[1 if values[0] else 2]
    if name in _NEUTRAL:
        for one, other in (values, values[::-1]):
            if not isinstance(one, Symbol) and isinstance(other, Symbol):
                # `x + 0` of whole numbers may still change the type of the result, so only real
                # columns fold.
                real = other.kind in _NEUTRAL[name][1]
                if real and one == _NEUTRAL[name][0]:
                    return other
    return None


_NEUTRAL = {
    "add": (0, "f"),
    "multiply": (1, "f"),
    "bitwise_or": (False, "b"),
    "logical_or": (False, "b"),
    "logical_and": (True, "b"),
    "bitwise_and": (True, "b"),
}
"""The neutral value of an operation, and the kinds of its columns."""


def _key(value: Column) -> Column:
    return ("s", value.index) if isinstance(value, Symbol) else (type(value).__name__, repr(value))


def spell(value: Column) -> str:
    """Return a value as it stands in a line."""
    return f"v{value.index}" if isinstance(value, Symbol) else f"({_plain(value)!r})"


def _text(name: str, values: tuple[Column, ...], *, of_numbers: bool) -> str:
    spelled = [spell(value) for value in values]
    if name in _INFIX:
        return f" {_INFIX[name]} ".join(spelled)
    if name == "negative":
        return f"-{spelled[0]}"
    if name == "where" and (of_numbers or not (isinstance(values[0], Symbol) and values[0].kind)):
        return f"{spelled[1]} if {spelled[0]} else {spelled[2]}"
    if name == "invert" and not of_numbers:
        return f"~{spelled[0]}"
    if name == "take" and not of_numbers:
        whole = "" if _letter(values[1]) == "i" else ".astype(int)"
        return f"{spelled[0]}.take({spelled[1]}{whole})"
    return f"{'n_' * of_numbers}{name}({', '.join(spelled)})"


def _kind(name: str, values: tuple[Column, ...]) -> str:
    """Return the kind of a column that an operation makes."""
    if name in _OF_TRUTH:
        return "b"
    if name in {"divide", "exp", "take"}:
        return "f"
    rest = values[1:] if name == "where" else values
    kinds = {_letter(value) for value in rest}
    return next(kind for kind in "fib" if kind in kinds)


def _column(value: Column) -> bool:
    """True if a value has a row for each candidate."""
    return isinstance(value, Symbol) and value.kind != ""


def _letter(value: Column) -> str:
    """Return b, i or f."""
    if isinstance(value, Symbol):
        return value.kind or type(value.value).__name__[0]
    return type(value).__name__[0]
