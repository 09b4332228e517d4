"""Rows of a profiler's table that are no matmul: which operator each is, by its type and shapes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from cubecore.aliases import Json
from cubecore.units import ceil_div
from cubecore.workflows.calibration.columns import ELEMENTWISE

Shape = Sequence[int]

_FUNCTIONS: Mapping[str, str] = {
    **{name: name for name in ("abs", "add", "exp", "mish", "mul", "relu", "sigmoid", "sqrt")},
    "tanh": "tanh",
    **dict.fromkeys(("gelu", "geluv2", "fastgelu", "fastgeluv2"), "gelu"),
    **dict.fromkeys(("swish", "silu"), "swish"),
    "log": "ln",
}
"""Functions of elements that operators have, by type."""
_ROWS: Mapping[str, str] = {
    **dict.fromkeys(("softmax", "softmaxv2"), "softmax"),
    **dict.fromkeys(("layernorm", "layernormv3", "layernormv4"), "layer_norm"),
    "rmsnorm": "rms_norm",
    "addrmsnorm": "add_rms_norm",
    "addrmsnormdynamicquant": "add_rms_norm_dynamic_quant",
    "dynamicquant": "dynamic_quant",
    "dequantswigluquant": "dequant_swiglu_quant",
    "swiglu": "swiglu",
}
"""Functions of rows along the last axis."""
_INSTRUCTIONS: Mapping[str, int] = {
    **dict.fromkeys(("identity", "tensormove", "viewcopy", "reshape"), 0),
    **dict.fromkeys(("sub", "realdiv", "div", "maximum", "minimum", "adds", "muls", "cast"), 1),
    **dict.fromkeys(("neg", "square", "reciprocal", "fill", "zeroslike"), 1),
    **dict.fromkeys(("rsqrt", "select", "selectv2", "less", "greater", "equal", "notequal"), 2),
    **dict.fromkeys(("lessequal", "greaterequal", "clipbyvalue", "leakyrelu", "relu6"), 2),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp", "axpy"), 3),
    "hardswish": 4,
}
"""Vector instructions of other operators on elements, roughly."""
_REDUCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("reducesum", "reducesumd"), "reduce_sum"),
    **dict.fromkeys(("reducemax", "reducemaxd"), "reduce_max"),
}
"""Reductions, which have a function where they are along the last axis."""
_MOVES = (
    *("concat", "concatd", "concatv2", "concatv2d", "pack", "tile", "broadcastto", "expand"),
    *("split", "splitd", "splitv", "splitvd", "slice", "stridedslice", "stridedsliced"),
    *("gatherv2", "gatherv3", "gatherelements", "embedding", "indexselect"),
)
"""Operators that write what they read, each element once, in pieces as long as a row."""
_ROTARY = ("rotarymul", "rotarypositionembedding", "applyrotaryposemb", "interleaverope")
_ROUTING = ("moegatingtopksoftmax", "moegatingtopksoftmaxv2", "moegatingtopk")
_PERMUTES = ("moeinitrouting", "moeinitroutingv2", "moeinitroutingv3", "moetokenpermute")
_BACK = ("moefinalizerouting", "moefinalizeroutingv2", "moetokenunpermute")
_ATTENTION = (
    *("fusedinferattentionscore", "promptflashattention", "increflashattention"),
    *("flashattentionscore", "flashattentionscoregrad"),
)
_QUANTISED: Mapping[str, str] = {
    **dict.fromkeys(("quantbatchmatmulv3", "quantbatchmatmulv4"), "quant_matmul"),
    **dict.fromkeys(("weightquantbatchmatmulv2",), "weight_quant_matmul"),
}
"""Matmuls with scales, of two matrices."""
_NO_CORE = ("AI_CPU", "HCCL", "COMMUNICATION", "WAIT", "EVENT")
"""Beginnings of task types that run on no AI Core."""


class UnnamedOperator(Exception):  # noqa: N818 - says why a row is not timed
    """The reason for which no operator stands for a row."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An operator as its row has it: its type, where it ran, the shapes of its arrays."""

    kind: str
    task: str
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]


@dataclass(frozen=True, slots=True)
class RowOperator:
    """An operator for a row: its name, the sizes of its point, what was assumed."""

    op: str
    m: int | None
    n: int | None
    tiling: Json
    assumed: tuple[str, ...] = ()


def operator_of(row: ProfileRow) -> RowOperator:
    """Return the operator that a row ran.

    Raises
    ------
    UnnamedOperator
        If none does what the type says, or the shapes do not tell its sizes.
    """
    if row.task.upper().startswith(_NO_CORE):
        raise UnnamedOperator(f"task type {row.task} runs on no AI Core")
    name = row.kind.lower().replace("_", "")
    if name in _FUNCTIONS:
        return RowOperator(_FUNCTIONS[name], *_rows(row, row.outputs), {})
    if name in _ROWS:
        return RowOperator(_ROWS[name], *_rows(row, row.inputs), {})
    if name in _INSTRUCTIONS:
        return _elementwise(row, _INSTRUCTIONS[name])
    if name in _ATTENTION:
        raise UnnamedOperator("a profile does not tell the axes of attention's operands")
    if name in _REDUCTIONS:
        return _reduction(row, _REDUCTIONS[name])
    if name in _QUANTISED:
        return _quantised(row, _QUANTISED[name])
    for names, shaped in _SHAPED.items():
        if name in names:
            return shaped(row)
    raise UnnamedOperator(f"no operator of `cubecore time --op` does what {row.kind} does")


def _rows(row: ProfileRow, shapes: Sequence[Shape]) -> tuple[int, int]:
    """Return the first shape as rows and the last axis."""
    if not shapes or not shapes[0] or not all(shapes[0]):
        raise UnnamedOperator(f"the shapes of {row.kind} are empty")
    return prod(shapes[0][:-1]), shapes[0][-1]


def _elementwise(row: ProfileRow, work: int) -> RowOperator:
    """Return an operator on elements, which reads each input of the result's size."""
    m, n = _rows(row, row.outputs)
    # Inputs of the result's size are streams; smaller ones are broadcast, and stay in UB. A larger
    # one means that the operator is none on elements, whatever its name.
    sizes = [prod(shape) for shape in row.inputs]
    if any(size > m * n for size in sizes):
        raise UnnamedOperator(f"{row.kind} reads more elements than it writes")
    reads = sum(size == m * n for size in sizes)
    assumed = [f"{row.kind} is {work} instructions on each element"]
    if reads < len(sizes):
        assumed.append("inputs of fewer elements are left out")
    tiling = {"reads": reads, "writes": len(row.outputs), "instructions": work}
    return RowOperator(ELEMENTWISE, m, n, tiling, tuple(assumed))


def _grouped(row: ProfileRow) -> RowOperator:
    """Return groups of equal rows: how rows are dealt out is in an operand's values."""
    a, b = (*row.inputs, (), ())[:2]
    if len(a) != 2 or len(b) != 3 or not all(b) or a[1] not in b[1:] or a[0] < b[0]:
        raise UnnamedOperator(f"the shapes of {row.kind} are not of A [M, K] and B [groups, K, N]")
    n = b[2] if b[1] == a[1] else b[1]
    shape = {"shape": [b[0], ceil_div(a[0], b[0]), n, a[1]]}
    return RowOperator("grouped_matmul", None, None, shape, ("groups have equal rows",))


def _quantised(row: ProfileRow, op: str) -> RowOperator:
    """Return a matmul with scales by the shapes of A and C, as B may lie in fractals."""
    a, c = (*row.inputs, ())[0], (*row.outputs, ())[0]
    if len(a) != 2 or len(c) != 2 or not all((*a, *c)) or c[0] not in a:
        raise UnnamedOperator(f"the shapes of {row.kind} are not of A [M, K] and C [M, N]")
    k = a[1] if a[0] == c[0] else a[0]
    return RowOperator(op, None, None, {"shape": [*c, k]})


def _moved(row: ProfileRow) -> RowOperator:
    """Return a copy of what an operator writes, all of its results as one."""
    m, n = _rows(row, row.outputs)
    elements = sum(prod(shape) for shape in row.outputs)
    assumed = (f"{row.kind} moves its result once",)
    tiling = {"reads": 1, "writes": 1, "instructions": 0}
    return RowOperator(ELEMENTWISE, max(elements // n, m), n, tiling, assumed)


def _rotary(row: ProfileRow) -> RowOperator:
    """Return the turning of all operands that have as many axes and as long heads as the first."""
    first = (*row.inputs, ())[0]
    if len(first) not in {3, 4} or not all(first):
        raise UnnamedOperator(f"the shapes of {row.kind} are not of tokens, heads and their size")
    turned = [shape for shape in row.outputs if len(shape) == len(first) and shape[-1] == first[-1]]
    tokens = prod(first[:-2])
    heads = sum(prod(shape[:-1]) for shape in turned) // tokens
    if not heads:
        raise UnnamedOperator(f"the shapes of {row.kind} are not of tokens, heads and their size")
    shape = {"shape": [tokens, heads, first[-1]]}
    return RowOperator("rotary", None, None, shape, ("heads are the axis before the last",))


def _routing(row: ProfileRow) -> RowOperator:
    m, n = _rows(row, row.inputs)
    return RowOperator("softmax", m, n, {}, ("the choice of experts costs nothing beside it",))


def _permuted(row: ProfileRow, *, back: bool) -> RowOperator:
    """Return tokens to their experts' rows, or `back`: the longer of two matrices has the rows."""
    one, other = (*row.inputs, ())[0], (*row.outputs, ())[0]
    rows, tokens = (one, other) if back else (other, one)
    if len(rows) != 2 or len(tokens) != 2 or not all((*rows, *tokens)) or rows[0] % tokens[0]:
        raise UnnamedOperator(f"the shapes of {row.kind} are not of tokens and their experts' rows")
    chosen = rows[0] // tokens[0]
    shape = {"shape": [tokens[0], chosen, chosen, tokens[1]]}
    op = "moe_unpermute" if back else "moe_permute"
    return RowOperator(op, None, None, shape, ("a token's experts are all there are",))


_SHAPED: Mapping[Sequence[str], Callable[[ProfileRow], RowOperator]] = {
    ("groupedmatmul",): _grouped,
    _MOVES: _moved,
    _ROTARY: _rotary,
    _ROUTING: _routing,
    _PERMUTES: partial(_permuted, back=False),
    _BACK: partial(_permuted, back=True),
}
"""Operators whose sizes are read off their shapes in a way of their own."""


def _reduction(row: ProfileRow, op: str) -> RowOperator:
    m, n = _rows(row, row.inputs)
    if not row.outputs or prod(row.outputs[0]) != m:
        raise UnnamedOperator(f"{row.kind} does not reduce the last axis alone")
    return RowOperator(op, m, n, {})
