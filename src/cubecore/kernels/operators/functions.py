"""Functions of vector cores by name: the instructions that compute each on a tile of float32.

The steps of softmax, RmsNorm and LayerNorm are those of the vendor's pages of these names; element
functions follow their formulas, written so that no step leaves the range of float32.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type

TYPES = ("float16", "bfloat16", "float32")
EPSILON = 1e-6
_STEEP = -2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_MOST = 8.8
"""The hyperbolic tangent of more than this is 1 in float32."""
_LARGE = 20.0
"""The softplus of more than this is the number itself in float32."""
_LEAST_SCALE = 1e-12


@dataclass(frozen=True, slots=True)
class TileBuffers:
    """The buffers of a tile, bytes in UB.

    `wide` are tiles of float32, the first with x and in the end with the result; `partial` has 64
    floats a row, `one` a float a row, `spread` a block a row; `vectors` are what all rows share,
    `ones` 64 times 1, `numbers` inputs of a float a row.
    """

    wide: tuple[int, ...]
    vectors: tuple[int, ...]
    partial: int
    one: int
    spread: int
    ones: int
    numbers: tuple[int, ...] = ()


class FunctionTile(Protocol):
    """The tile that a function works on: in UB (`Tile`), or traced for registers."""

    @property
    def columns(self) -> int:
        """Elements of a row."""

    def each(self, name: str, into: int, *sources: int, value: float | None = None) -> None:
        """Apply an element-wise instruction to the buffers at `sources`."""

    def with_constant(self, name: str, into: int, lanes: int, source: int) -> None:
        """Apply a binary instruction to the same 64 numbers again and again, and the tile."""

    def by_row(self, name: str, into: int, source: int, spread: int) -> None:
        """Apply a binary instruction to each row and its own value, spread over a block."""

    def by_column(self, name: str, into: int, source: int, vector: int) -> None:
        """Apply a binary instruction to each row and a vector that all rows share."""

    def reduce(self, name: str, into: int, source: int, partial: int) -> None:
        """Reduce each row to one value: `name` is add or max."""

    def each_row_value(
        self, name: str, into: int, *sources: int, value: float | None = None
    ) -> None:
        """Apply an element-wise instruction to one value a row."""

    def spread(self, into: int, values: int) -> None:
        """Spread one value a row over a block each."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function: how many arrays, vectors and tiles it needs, and what it does to a tile.

    `arrays` are its inputs of the same sizes and of one of the types that it `takes`, `vectors`
    those of a row's length, `numbers` those of a float a row. `by_rows` says that a row depends on
    all of it, `halves` that its arrays and vectors are the halves of the rows of one.
    `gives` is what it leaves: a tile, a value a row (`rows`), or int8 with a scale a row
    (`quantised`); with `last` what the last tile holds, too. `exact` computes the same by NumPy
    from arrays and vectors in float64; of codes with a scale, what they stand for.
    """

    text: str
    work: Callable[[FunctionTile, TileBuffers], None]
    exact: Callable[..., Array]
    arrays: int = 1
    vectors: int = 0
    numbers: int = 0
    wide: int = 1
    by_rows: bool = False
    halves: bool = False
    gives: str = "tile"
    last: bool = False
    takes: tuple[str, ...] = TYPES


def _exp(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vexp", p.wide[0], p.wide[0])


def _ln(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vln", p.wide[0], p.wide[0])


def _sqrt(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vsqrt", p.wide[0], p.wide[0])


def _abs(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vabs", p.wide[0], p.wide[0])


def _relu(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vmaxs", p.wide[0], p.wide[0], value=0.0)


def _add(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vadd", p.wide[0], p.wide[0], p.wide[1])


def _mul(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vmul", p.wide[0], p.wide[0], p.wide[1])


def _denominator(t: FunctionTile, x: int, into: int) -> None:
    """Leave 1 + exp(-x)."""
    t.each("vmuls", into, x, value=-1.0)
    t.each("vexp", into, into)
    t.each("vadds", into, into, value=1.0)


def _sigmoid(t: FunctionTile, p: TileBuffers) -> None:
    x, y = p.wide
    _denominator(t, x, y)
    t.with_constant("vdiv", x, p.ones, y)


def _swish(t: FunctionTile, p: TileBuffers) -> None:
    x, y = p.wide
    _denominator(t, x, y)
    t.each("vdiv", x, x, y)


def _swiglu(t: FunctionTile, p: TileBuffers) -> None:
    x, up, y = p.wide
    _denominator(t, x, y)
    t.each("vdiv", x, x, y)
    t.each("vmul", x, x, up)


def _tanh(t: FunctionTile, p: TileBuffers) -> None:
    _tanh_of(t, *p.wide)


def _tanh_of(t: FunctionTile, x: int, y: int) -> None:
    """Leave the tangent of `x` there, by way of `y`."""
    t.each("vmins", x, x, value=_MOST)
    t.each("vmaxs", x, x, value=-_MOST)
    t.each("vmuls", x, x, value=2.0)
    t.each("vexp", x, x)
    t.each("vadds", y, x, value=1.0)
    t.each("vadds", x, x, value=-1.0)
    t.each("vdiv", x, x, y)


def _gelu(t: FunctionTile, p: TileBuffers) -> None:
    x, y = p.wide
    t.each("vmul", y, x, x)
    t.each("vmuls", y, y, value=_STEEP * _CUBIC)
    t.each("vadds", y, y, value=_STEEP)
    t.each("vmul", y, y, x)
    t.each("vexp", y, y)
    t.each("vadds", y, y, value=1.0)
    t.each("vdiv", x, x, y)


def _mish(t: FunctionTile, p: TileBuffers) -> None:
    x, y, z = p.wide
    t.each("vmins", y, x, value=_LARGE)
    t.each("vexp", y, y)
    t.each("vadds", y, y, value=1.0)
    t.each("vln", y, y)
    t.each("vmaxs", y, y, value=0.0)
    t.each("vmax", y, y, x)
    _tanh_of(t, y, z)
    t.each("vmul", x, x, y)


def _softmax(t: FunctionTile, p: TileBuffers) -> None:
    x = p.wide[0]
    t.reduce("max", p.one, x, p.partial)
    t.spread(p.spread, p.one)
    t.by_row("vsub", x, x, p.spread)
    t.each("vexp", x, x)
    t.reduce("add", p.one, x, p.partial)
    t.spread(p.spread, p.one)
    t.by_row("vdiv", x, x, p.spread)


def _by_deviation(t: FunctionTile, p: TileBuffers) -> None:
    """Divide each row by the root of its mean square."""
    x, y = p.wide
    t.each("vmul", y, x, x)
    t.reduce("add", p.one, y, p.partial)
    t.each_row_value("vmuls", p.one, p.one, value=1 / t.columns)
    t.each_row_value("vadds", p.one, p.one, value=EPSILON)
    t.each_row_value("vsqrt", p.one, p.one)
    t.spread(p.spread, p.one)
    t.by_row("vdiv", x, x, p.spread)


def _rms_norm(t: FunctionTile, p: TileBuffers) -> None:
    _by_deviation(t, p)
    t.by_column("vmul", p.wide[0], p.wide[0], p.vectors[0])


def _add_rms_norm(t: FunctionTile, p: TileBuffers) -> None:
    t.each("vadd", p.wide[0], p.wide[0], p.wide[1])
    t.each("vadds", p.wide[2], p.wide[0], value=0.0)
    _rms_norm(t, TileBuffers(p.wide[:2], p.vectors, p.partial, p.one, p.spread, p.ones))


def _layer_norm(t: FunctionTile, p: TileBuffers) -> None:
    x = p.wide[0]
    t.reduce("add", p.one, x, p.partial)
    t.each_row_value("vmuls", p.one, p.one, value=1 / t.columns)
    t.spread(p.spread, p.one)
    t.by_row("vsub", x, x, p.spread)
    _by_deviation(t, p)
    t.by_column("vmul", x, x, p.vectors[0])
    t.by_column("vadd", x, x, p.vectors[1])


def _dynamic_quant(t: FunctionTile, p: TileBuffers) -> None:
    x, y = p.wide
    t.each("vabs", y, x)
    t.reduce("max", p.one, y, p.partial)
    t.each_row_value("vmaxs", p.one, p.one, value=_LEAST_SCALE)
    t.each_row_value("vmuls", p.one, p.one, value=1 / 127)
    t.spread(p.spread, p.one)
    t.by_row("vdiv", x, x, p.spread)


def _add_rms_norm_dynamic_quant(t: FunctionTile, p: TileBuffers) -> None:
    _add_rms_norm(t, p)
    _dynamic_quant(t, TileBuffers(p.wide[:2], (), p.partial, p.one, p.spread, p.ones))


def _dequant_swiglu_quant(t: FunctionTile, p: TileBuffers) -> None:
    halves, y = p.wide[:2], p.wide[2]
    t.spread(p.spread, p.numbers[0])
    for half, scales in zip(halves, p.vectors, strict=True):
        t.by_column("vmul", half, half, scales)
        t.by_row("vmul", half, half, p.spread)
    _swiglu(t, p)
    _dynamic_quant(t, TileBuffers((halves[0], y), (), p.partial, p.one, p.spread, p.ones))


def _reduce_sum(t: FunctionTile, p: TileBuffers) -> None:
    t.reduce("add", p.one, p.wide[0], p.partial)


def _reduce_max(t: FunctionTile, p: TileBuffers) -> None:
    t.reduce("max", p.one, p.wide[0], p.partial)


def softmax(scores: Array) -> Array:
    """Return exp(x) over its sum along the last axis, in float64 by NumPy."""
    power = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


def _swiglu_of(x: Array) -> Array:
    gate, up = np.split(x, 2, axis=1)
    return np.asarray(gate / (1 + np.exp(-gate)) * up)


def _normed(x: Array) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON))


def _added_and_normed(x0: Array, x1: Array, gamma: Array) -> Array:
    return np.stack([_normed(x0 + x1) * gamma, x0 + x1])


FUNCTIONS: Mapping[str, Function] = {
    "abs": Function("|x|", _abs, np.abs),
    "add": Function("x0 + x1", _add, np.add, arrays=2, wide=2),
    "add_rms_norm": Function(
        "rms_norm of x0 + x1, and the sum",
        _add_rms_norm,
        _added_and_normed,
        arrays=2,
        vectors=1,
        wide=3,
        by_rows=True,
        last=True,
    ),
    "add_rms_norm_dynamic_quant": Function(
        "int8 of rms_norm of x0 + x1 over a scale a row, and the sum",
        _add_rms_norm_dynamic_quant,
        _added_and_normed,
        arrays=2,
        vectors=1,
        wide=3,
        by_rows=True,
        gives="quantised",
        last=True,
    ),
    "dequant_swiglu_quant": Function(
        "int8 of swiglu of x scale token_scale over a scale a row",
        _dequant_swiglu_quant,
        lambda x, scale, token_scale: _swiglu_of(x * scale * token_scale[:, None]),
        arrays=2,
        vectors=2,
        numbers=1,
        wide=3,
        by_rows=True,
        halves=True,
        gives="quantised",
        takes=("int32",),
    ),
    "dynamic_quant": Function(
        "int8 of x over a scale a row",
        _dynamic_quant,
        lambda x: x,
        wide=2,
        by_rows=True,
        gives="quantised",
    ),
    "exp": Function("exp(x)", _exp, np.exp),
    "gelu": Function(
        "x / (1 + exp(-1.596 (x + 0.0447 x^3)))",
        _gelu,
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        wide=2,
    ),
    "layer_norm": Function(
        "rows to mean 0 and deviation 1, then gamma and beta",
        _layer_norm,
        lambda x, gamma, beta: _normed(x - x.mean(axis=1, keepdims=True)) * gamma + beta,
        vectors=2,
        wide=2,
        by_rows=True,
    ),
    "ln": Function("ln(x)", _ln, np.log),
    "mish": Function(
        "x tanh(ln(1 + exp(x)))", _mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), wide=3
    ),
    "mul": Function("x0 x1", _mul, np.multiply, arrays=2, wide=2),
    "reduce_max": Function(
        "the largest of each row", _reduce_max, lambda x: x.max(axis=1), by_rows=True, gives="rows"
    ),
    "reduce_sum": Function(
        "the sum of each row", _reduce_sum, lambda x: x.sum(axis=1), by_rows=True, gives="rows"
    ),
    "relu": Function("max(x, 0)", _relu, lambda x: np.maximum(x, 0)),
    "rms_norm": Function(
        "rows over the root of their mean square, then gamma",
        _rms_norm,
        lambda x, gamma: _normed(x) * gamma,
        vectors=1,
        wide=2,
        by_rows=True,
    ),
    "sigmoid": Function("1 / (1 + exp(-x))", _sigmoid, lambda x: 1 / (1 + np.exp(-x)), wide=2),
    "softmax": Function("exp(x - max) over its sum, by rows", _softmax, softmax, by_rows=True),
    "sqrt": Function("sqrt(x)", _sqrt, np.sqrt),
    "swiglu": Function(
        "x0 / (1 + exp(-x0)) x1 of the halves x0 and x1 of a row",
        _swiglu,
        _swiglu_of,
        arrays=2,
        wide=3,
        halves=True,
    ),
    "swish": Function("x / (1 + exp(-x))", _swish, lambda x: x / (1 + np.exp(-x)), wide=2),
    "tanh": Function("tanh(x)", _tanh, np.tanh, wide=2),
}
"""The functions that `time --op` and `run --op` take."""


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """An operator on `rows` rows of `columns` elements of `dtype`."""

    op: str
    rows: int
    columns: int
    dtype: ElementType

    @property
    def function(self) -> Function:
        """The function that is computed."""
        return FUNCTIONS[self.op]

    @property
    def operations(self) -> int:
        """Elements of x."""
        return self.rows * self.columns

    @property
    def vector_type(self) -> ElementType:
        """The type of vectors: that of the arrays, unless these are integers."""
        return self.dtype if self.dtype.name in TYPES else element_type("float32")

    @property
    def stored(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of each input as it is stored."""
        function, rows, width = self.function, self.rows, self.columns
        arrays, vectors = function.arrays, function.vectors
        if function.halves:
            arrays, vectors, width = 1, min(vectors, 1), self.pitch
        stored = {f"x{n}": (rows, width) for n in range(arrays)}
        stored |= {f"v{n}": (1, width) for n in range(vectors)}
        return stored | {f"s{n}": (1, rows) for n in range(function.numbers)}

    @property
    def pitch(self) -> int:
        """Elements of an input from row to row; halves of a row lie side by side."""
        function = self.function
        return self.columns * (function.arrays if function.halves else 1)
