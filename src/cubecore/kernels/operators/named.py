"""Operators by name: the extents that each takes, its tensors and its launch."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import did_you_mean, refuse
from cubecore.isa.program.launch import Launch
from cubecore.kernels.operators.attention import attention_launch
from cubecore.kernels.operators.attention_shape import AttentionShape
from cubecore.kernels.operators.functions import FUNCTIONS
from cubecore.kernels.operators.launch import TYPES, OperatorProblem, operator_launch
from cubecore.kernels.operators.moe import MoeShape, moe_launch
from cubecore.kernels.operators.products import (
    WeightQuantShape,
    product_launch,
    weight_quant_launch,
)
from cubecore.kernels.operators.rotary import RotaryShape, rotary_launch
from cubecore.lazy_dataclass import dataclass

_NARROW = ("float16", "bfloat16")
EXTENTS: Mapping[str, Sequence[str]] = {
    "attention": ("heads", "queries", "keys", "head size"),
    "grouped_matmul": ("groups", "M", "N", "K"),
    "moe_permute": ("tokens", "experts", "experts of a token", "width"),
    "moe_unpermute": ("tokens", "experts", "experts of a token", "width"),
    "rotary": ("tokens", "heads", "head size"),
    "weight_quant_matmul": ("M", "N", "K"),
}
"""Operators that are no functions of elements or rows: what the numbers of their shape count."""


@dataclass(frozen=True, slots=True)
class NamedOperator:
    """An operator on extents.

    `inputs` has the extents of each input; `elements` what a run has to compute; `rows` is True
    where a result depends on a row, or on more. `cores` is ``vector`` or ``mix``, `result` the
    tensor that is compared.
    """

    op: str
    extents: tuple[int, ...]
    dtype: ElementType
    text: str
    inputs: Mapping[str, tuple[int, ...]]
    elements: int
    rows: bool
    made: Callable[..., Launch]
    cores: str = "vector"
    result: str = "y"

    def launch(self, chip: Chip, *, fused: bool = False) -> Launch:
        """Return the launch on all cores of a chip; `fused` as `operator_launch` has it."""
        if not chip.aiv_count or chip.joins_vector:
            raise refuse("chip", "have vector cores of its own to run an operator", chip.name)
        return self.made(chip, fused=fused)


def operator_of(op: str, extents: Sequence[int], dtype: str) -> NamedOperator:
    """Return an operator by its name, the numbers of its shape, and the type of its inputs.

    Raises
    ------
    RequestError
        If there is no such operator, or it does not take such extents or such a type.
    """
    names = operator_names()
    if op not in names:
        raise refuse("--op", f"be {', '.join(names)}", repr(op), did_you_mean(op, names))
    if dtype not in TYPES:
        raise refuse("--a", f"be {', '.join(TYPES)} of an operator", repr(dtype))
    kind = element_type(dtype)
    if op in FUNCTIONS:
        return _function(op, extents, kind)
    counts = EXTENTS[op]
    if len(extents) != len(counts):
        said = "x".join(map(str, extents))
        raise refuse("--shape", f"be {' x '.join(counts)} of {op}", repr(said))
    return _OTHERS[op](tuple(extents), kind)


def operator_names() -> tuple[str, ...]:
    """Return the names of all operators."""
    return tuple(sorted([*FUNCTIONS, *EXTENTS]))


def _function(op: str, extents: Sequence[int], dtype: ElementType) -> NamedOperator:
    problem = OperatorProblem(op, prod(extents[:-1]), extents[-1], dtype)
    function = problem.function
    whole = (problem.rows, problem.columns)
    inputs: dict[str, tuple[int, ...]] = {f"x{i}": whole for i in range(function.arrays)}
    inputs |= {f"v{i}": whole[1:] for i in range(function.vectors)}

    def made(chip: Chip, *, fused: bool) -> Launch:
        return operator_launch(problem, chip, fused=fused)

    about = (function.text, inputs, problem.operations, function.by_rows)
    return NamedOperator(op, whole, dtype, *about, made)


def _attention(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    if dtype.name not in _NARROW:
        raise refuse("--a", f"be {' or '.join(_NARROW)} of attention", repr(dtype.name))
    heads, queries, keys, width = extents
    shape = AttentionShape(heads, queries, keys, width, dtype)
    inputs = {"q": (heads, queries, width)} | dict.fromkeys("kv", (heads, keys, width))

    def made(chip: Chip, *, fused: bool) -> Launch:
        del fused  # there is no code of registers for it
        return attention_launch(shape, chip)

    text, work = "softmax(Q K^T / sqrt(D)) V, by heads, without a mask", heads * queries * keys
    return NamedOperator("attention", extents, dtype, text, inputs, work, True, made, cores="mix")


def _rotary(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    tokens, heads, width = extents
    shape = RotaryShape(tokens, heads, width, dtype)
    inputs = {"x": extents} | dict.fromkeys(("cos", "sin"), (shape.tokens, shape.half))

    def made(chip: Chip, *, fused: bool) -> Launch:
        return rotary_launch(shape, chip, fused=fused)

    text = "halves of heads turned by the angles of their token"
    return NamedOperator("rotary", extents, dtype, text, inputs, prod(extents), True, made)


def _moe(extents: tuple[int, ...], dtype: ElementType, *, back: bool) -> NamedOperator:
    tokens, experts, chosen, width = extents
    shape = MoeShape(tokens, experts, chosen, width, dtype)
    op = "moe_unpermute" if back else "moe_permute"
    inputs = {"x": (shape.rows if back else shape.tokens, shape.width)}
    text = "tokens to the rows of their experts, evenly spread"
    if back:
        inputs["weights"] = (shape.tokens, shape.chosen)
        text = "the weighed sum of each token's rows, evenly spread"

    def made(chip: Chip, *, fused: bool) -> Launch:
        del fused  # a copy, and few instructions
        return moe_launch(shape, chip, back=back)

    return NamedOperator(op, extents, dtype, text, inputs, shape.rows * shape.width, True, made)


def _grouped(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    groups, m, n, k = extents
    inputs = {"a": (groups, m, k), "b": (groups, k, n)}

    def made(chip: Chip, *, fused: bool) -> Launch:
        del fused  # no vector core takes part
        return product_launch(chip, (m, n, k), dtype, groups)

    about = ("C = A B of each group, groups of equal rows", inputs, prod(extents), True, made)
    return NamedOperator("grouped_matmul", extents, dtype, *about, cores="mix", result="c")


def _weight_quant(extents: tuple[int, ...], dtype: ElementType) -> NamedOperator:
    if dtype.name != "float16":
        raise refuse("--a", "be float16 of weight_quant_matmul", repr(dtype.name))
    m, n, k = extents
    shape = WeightQuantShape(m, n, k)
    inputs = {"a": (m, k), "w": (k, n), "scale": (n,)}

    def made(chip: Chip, *, fused: bool) -> Launch:
        del fused  # there is no code of registers for it
        return weight_quant_launch(shape, chip)

    text = "C = A (B scale), B of int8 converted before by vector cores"
    about = (text, inputs, prod(extents), True, made)
    return NamedOperator("weight_quant_matmul", extents, dtype, *about, cores="mix", result="c")


_OTHERS: Mapping[str, Callable[[tuple[int, ...], ElementType], NamedOperator]] = {
    "attention": _attention,
    "grouped_matmul": _grouped,
    "moe_permute": partial(_moe, back=False),
    "moe_unpermute": partial(_moe, back=True),
    "rotary": _rotary,
    "weight_quant_matmul": _weight_quant,
}
