"""Operators by name: the sizes that each takes, its tensors and its launch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TypeVar

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import did_you_mean, refuse, unable
from cubecore.isa.program.launch import Launch
from cubecore.kernels.operators.attention.options import AttentionOptions, require_room
from cubecore.kernels.operators.attention.products import attention_launch
from cubecore.kernels.operators.attention.rows import ub_bytes
from cubecore.kernels.operators.attention.shape import AttentionShape
from cubecore.kernels.operators.axis_softmax import AxisShape, axis_launch
from cubecore.kernels.operators.functions import FUNCTIONS, TYPES, OperatorProblem
from cubecore.kernels.operators.launch import operator_launch
from cubecore.kernels.operators.moe import MoeShape, moe_launch
from cubecore.kernels.operators.products.scaled import QuantShape, quant_launch
from cubecore.kernels.operators.products.weights import (
    WeightQuantShape,
    product_launch,
    weight_quant_launch,
)
from cubecore.kernels.operators.registers.attention import register_attention
from cubecore.kernels.operators.registers.attention_rows import AttentionBuffers
from cubecore.kernels.operators.registers.axis_softmax import RegisterAxis
from cubecore.kernels.operators.registers.copies import with_copies_of_3510
from cubecore.kernels.operators.registers.launch import register_launch
from cubecore.kernels.operators.registers.moe import RegisterMoe
from cubecore.kernels.operators.registers.mx_quant import MxQuantShape, mx_quant_launch
from cubecore.kernels.operators.registers.products import RegisterConversion, RegisterScaling
from cubecore.kernels.operators.registers.rotary import RegisterRotary
from cubecore.kernels.operators.rotary import RotaryShape, rotary_launch
from cubecore.timing.launch import time_launch
from cubecore.timing.records import Timeline

A2, ASCEND_950 = "2201", "3510"
ATTENTION = "attention"
T = TypeVar("T")
_NARROW = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class NamedOperator:
    """An operator on sizes.

    `inputs` has the sizes of each input; `elements` what a run has to compute; `rows` is True
    where a result depends on a row, or on more. `cores` is ``vector`` or ``mix``, `result` the
    tensor that is compared. `options` are attention's, and `products` the multiplications and
    additions of its matmuls.
    """

    op: str
    extents: tuple[int, ...]
    dtype: ElementType
    inputs: Mapping[str, tuple[int, ...]]
    elements: int
    rows: bool
    build: Callable[..., Launch]
    cores: str = "vector"
    result: str = "y"
    options: AttentionOptions = AttentionOptions()
    products: int = 0

    @property
    def text(self) -> str:
        """The operator, in a line."""
        return meaning_of(self.op)

    def launch(self, chip: Chip) -> Launch:
        """Return the launch on all cores of a chip, to be executed.

        Raises
        ------
        RequestError
            If no kernel of the operator is for the chip.
        """
        if chip.arch not in (A2, ASCEND_950):
            need = f"be of architecture {A2} or {ASCEND_950} to execute {self.op}"
            raise refuse("chip", need, f"{chip.name} of {chip.arch}")
        return self.timed_launch(chip)

    def timed_launch(self, chip: Chip) -> Launch:
        """Return the launch on all cores of a chip whose time is the operator's."""
        if not chip.aiv_count or chip.joins_vector:
            raise refuse("chip", "have vector cores of its own to run an operator", chip.name)
        launch = self.build(chip)
        return with_copies_of_3510(launch) if chip.arch == ASCEND_950 else launch

    def timed(self, chip: Chip, *, record: int = 0, full: bool = False) -> Timeline:
        """Return its timing on all cores of a chip."""
        launch = self.timed_launch(chip)
        return time_launch(
            launch,
            chip,
            operations=self.products,
            record=record,
            full=full,
            stand_in=chip.arch != A2,
        )


def operator_of(
    op: str, extents: Sequence[int], dtype: str, options: AttentionOptions | None = None
) -> NamedOperator:
    """Return an operator by its name, the numbers of its shape, and the type of its inputs.

    Raises
    ------
    RequestError
        If there is no such operator, or it does not take such sizes, such a type or options.
    """
    names = operator_names()
    if op not in names:
        raise refuse("--op", f"be {', '.join(names)}", repr(op), did_you_mean(op, names))
    takes = FUNCTIONS[op].takes if op in FUNCTIONS else TYPES
    if dtype not in takes:
        subject = "an operator" if takes == TYPES else op
        raise refuse("--a", f"be {', '.join(takes)} of {subject}", repr(dtype))
    kind = element_type(dtype)
    if op != ATTENTION and options is not None and (given := options.to_json()):
        name = next(iter(given)).replace("_", "-")
        raise unable(f"--{name}", f"--{name} applies to --op {ATTENTION}, not to {op}")
    if op in FUNCTIONS:
        return _function(op, extents, kind)
    counts = counts_of(op)
    if len(extents) != len(counts):
        said = "x".join(map(str, extents))
        raise refuse("--shape", f"be {' x '.join(counts)} of {op}", repr(said))
    if op == ATTENTION:
        return _attention(tuple(extents), kind, options or AttentionOptions())
    return _OTHERS[op].make(tuple(extents), kind)


def operator_names() -> tuple[str, ...]:
    """Return the names of all operators."""
    return tuple(sorted([*FUNCTIONS, *_OTHERS]))


def meaning_of(op: str) -> str:
    """Return what an operator computes, in a line."""
    return FUNCTIONS[op].text if op in FUNCTIONS else _OTHERS[op].text


def counts_of(op: str) -> Sequence[str]:
    """Return what the numbers of an operator's shape count."""
    if op in FUNCTIONS:
        function = FUNCTIONS[op]
        return ("rows", "columns") if function.by_rows or function.halves else ("elements",)
    return _OTHERS[op].counts


def function_launch(problem: OperatorProblem, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of a function as a chip's vector cores compute it: in UB, or in registers.

    Raises
    ------
    RequestError
        If no row fits in the Unified Buffer.
    """
    launch = register_launch if chip.arch == ASCEND_950 else operator_launch
    return launch(problem, chip, cores)


def _function(op: str, extents: Sequence[int], dtype: ElementType) -> NamedOperator:
    problem = OperatorProblem(op, prod(extents[:-1]), extents[-1], dtype)
    function = problem.function
    whole = (problem.rows, problem.columns)
    inputs = {n: each if n[0] == "x" else each[1:] for n, each in problem.stored.items()}

    def build(chip: Chip) -> Launch:
        return function_launch(problem, chip)

    about = (inputs, problem.operations, function.by_rows)
    return NamedOperator(op, whole, dtype, *about, build)


def _of(chip: Chip, in_registers: type[T]) -> type[T] | None:
    """Return the tree of a chip's vector cores: that in registers on Ascend 950."""
    return in_registers if chip.arch == ASCEND_950 else None


def attention_on(shape: AttentionShape, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of attention as a chip's cores hand over: in memory, or within AI Cores.

    Raises
    ------
    RequestError
        If L1 or UB is too small for the rows and keys that a core holds.
    """
    if chip.arch == ASCEND_950:
        require_room(shape, chip, AttentionBuffers(shape).size_bytes)
        return register_attention(shape, chip, cores)
    require_room(shape, chip, ub_bytes(shape))
    return attention_launch(shape, chip, cores)


def _attention(
    extents: tuple[int, ...], dtype: ElementType, options: AttentionOptions
) -> NamedOperator:
    if dtype.name not in _NARROW:
        raise refuse("--a", f"be {' or '.join(_NARROW)} of attention", repr(dtype.name))
    heads, queries, keys, width = extents
    shape = options.shape(extents, dtype)
    of_keys = (heads // options.group(heads), keys, width)
    inputs = {"q": (heads, queries, width)} | dict.fromkeys("kv", of_keys)

    def build(chip: Chip) -> Launch:
        return attention_on(shape, chip)

    about = (inputs, heads * queries * keys, True, build)
    named = NamedOperator(ATTENTION, extents, dtype, *about, cores="mix")
    return replace(named, options=options, products=shape.operations)


def _axis_softmax(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    outer, length, inner = extents
    shape = AxisShape(outer, length, inner, dtype)

    def build(chip: Chip) -> Launch:
        return axis_launch(shape, chip, _of(chip, RegisterAxis))

    return NamedOperator("softmax_axis", extents, dtype, {"x": extents}, prod(extents), True, build)


def _rotary(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    tokens, heads, width = extents
    shape = RotaryShape(tokens, heads, width, dtype)
    inputs = {"x": extents} | dict.fromkeys(("cos", "sin"), (shape.tokens, shape.half))

    def build(chip: Chip) -> Launch:
        return rotary_launch(shape, chip, tree_of=_of(chip, RegisterRotary))

    return NamedOperator("rotary", extents, dtype, inputs, prod(extents), True, build)


def _moe(extents: tuple[int, ...], dtype: ElementType, *, back: bool) -> NamedOperator:
    tokens, experts, chosen, width = extents
    shape = MoeShape(tokens, experts, chosen, width, dtype)
    op = "moe_unpermute" if back else "moe_permute"
    inputs = {"x": (shape.rows if back else shape.tokens, shape.width)}
    if back:
        inputs["weights"] = (shape.tokens, shape.chosen)

    def build(chip: Chip) -> Launch:
        return moe_launch(shape, chip, tree_of=_of(chip, RegisterMoe), back=back)

    return NamedOperator(op, extents, dtype, inputs, shape.rows * shape.width, True, build)


def _grouped(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    groups, m, n, k = extents
    inputs = {"a": (groups, m, k), "b": (groups, k, n)}

    def build(chip: Chip) -> Launch:
        return product_launch(chip, dtype, m=m, n=n, k=k, groups=groups)

    about = (inputs, prod(extents), True, build)
    return NamedOperator("grouped_matmul", extents, dtype, *about, cores="mix", result="c")


def _weight_quant(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    if dtype.name != "float16":
        raise refuse("--a", "be float16 of weight_quant_matmul", repr(dtype.name))
    m, n, k = extents
    shape = WeightQuantShape(m, n, k)
    inputs = {"a": (m, k), "w": (k, n), "scale": (n,)}

    def build(chip: Chip) -> Launch:
        return weight_quant_launch(shape, chip, _of(chip, RegisterConversion))

    about = (inputs, prod(extents), True, build)
    return NamedOperator("weight_quant_matmul", extents, dtype, *about, cores="mix", result="c")


def _quant(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    if dtype.name not in _NARROW:
        need = f"be {' or '.join(_NARROW)} of quant_matmul, which is the type of its result"
        raise refuse("--a", need, repr(dtype.name))
    m, n, k = extents
    shape = QuantShape(m, n, k, dtype)
    inputs = {"a": (m, k), "b": (k, n), "scale": (n,), "token_scale": (m,)}

    def build(chip: Chip) -> Launch:
        return quant_launch(shape, chip, _of(chip, RegisterScaling))

    about = (inputs, prod(extents), True, build)
    return NamedOperator("quant_matmul", extents, dtype, *about, cores="mix", result="c")


@dataclass(frozen=True, slots=True)
class _Other:
    """An operator that is no function of elements or rows.

    `counts` are what the numbers of its shape count, `text` what it computes.
    """

    counts: Sequence[str]
    text: str
    make: Callable[[tuple[int, ...], ElementType], NamedOperator]


def _mx_quant(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    if dtype.name != "bfloat16":
        raise refuse("--a", "be bfloat16 of mx_quant", repr(dtype.name))
    shape = MxQuantShape(*extents)

    def build(chip: Chip) -> Launch:
        if chip.arch != ASCEND_950:
            need = f"be of architecture {ASCEND_950}, which converts to float4, to run mx_quant"
            raise refuse("chip", need, f"{chip.name} of {chip.arch}")
        return mx_quant_launch(shape, chip)

    return NamedOperator("mx_quant", extents, dtype, {"x": extents}, prod(extents), True, build)


_TOKENS = ("tokens", "experts", "experts of a token", "width")
_OTHERS: Mapping[str, _Other] = {
    ATTENTION: _Other(
        ("heads", "queries", "keys", "head size"),
        "softmax(Q K^T / sqrt(D)) V, by heads",
        lambda extents, dtype: _attention(extents, dtype, AttentionOptions()),
    ),
    "grouped_matmul": _Other(
        ("groups", "M", "N", "K"), "C = A B of each group, groups of equal rows", _grouped
    ),
    "moe_permute": _Other(
        _TOKENS, "tokens to the rows of their experts, evenly spread", partial(_moe, back=False)
    ),
    "moe_unpermute": _Other(
        _TOKENS, "the weighed sum of each token's rows, evenly spread", partial(_moe, back=True)
    ),
    "mx_quant": _Other(
        ("rows", "columns"),
        "float4_e2m1 of x over a scale of float8_e8m0 for 32 rows of a column",
        _mx_quant,
    ),
    "quant_matmul": _Other(
        ("M", "N", "K"),
        "C = (A B) scale token_scale, A and B of int8, sums scaled after by vector cores",
        _quant,
    ),
    "rotary": _Other(
        ("tokens", "heads", "head size"),
        "halves of heads turned by the angles of their token",
        _rotary,
    ),
    "softmax_axis": _Other(
        ("blocks", "length", "columns"),
        "exp(x) over its sum along the middle axis, for each column of a block",
        _axis_softmax,
    ),
    "weight_quant_matmul": _Other(
        ("M", "N", "K"),
        "C = A (B scale), B of int8 converted before by vector cores",
        _weight_quant,
    ),
}
