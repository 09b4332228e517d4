"""Inputs of operators, and what NumPy makes of them in float64."""

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from cubecore.arrays import Array
from cubecore.kernels.operators.functions import FUNCTIONS, softmax
from cubecore.kernels.operators.named import ATTENTION, NamedOperator

_TOLERANCE = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-15}
"""Of a result, beside as much of 1: conversions round once, and float32 a few dozen times."""


def operator_inputs(problem: NamedOperator, seed: int) -> dict[str, Array]:
    """Return random inputs: arrays around 0, positive where the function asks for it."""
    rng = np.random.default_rng(seed)
    named: dict[str, Array] = {}
    for name, extents in problem.inputs.items():
        if name in _OTHER_INPUTS.get(problem.op, {}):
            low, high, kind = _OTHER_INPUTS[problem.op][name]
            named[name] = rng.uniform(low, high, extents).astype(kind)
            continue
        of_row = name.startswith("v") and problem.op in FUNCTIONS
        values = rng.normal(1, 0.2, extents) if of_row else rng.normal(0, 2, extents)
        if problem.op in {"ln", "sqrt"}:
            values = np.abs(values) + 0.1
        named[name] = values.astype(problem.dtype.numpy)
    return named


_CODES = (-128, 127, np.int8)
_SCALES = (0.001, 0.1)
_OTHER_INPUTS: Mapping[str, Mapping[str, tuple[float, float, type]]] = {
    "dequant_swiglu_quant": {
        "x0": (-3000, 3000, np.int32),
        "v0": (*_SCALES, np.float32),
        "s0": (*_SCALES, np.float32),
    },
    "moe_unpermute": {"weights": (0, 1, np.float32)},
    "quant_matmul": {
        "a": _CODES,
        "b": _CODES,
        "scale": (*_SCALES, np.float32),
        "token_scale": (*_SCALES, np.float32),
    },
    "weight_quant_matmul": {"w": _CODES, "scale": (*_SCALES, np.float16)},
}
"""Inputs of other types than the operator's: from, to, type."""


def operator_reference(problem: NamedOperator, inputs: Mapping[str, Array]) -> Array:
    """Return the operator's result by NumPy in float64; of dynamic_quant what it stands for."""
    wide = [one.astype(np.float64) for one in inputs.values()]
    with np.errstate(over="ignore"):
        return np.asarray(REFERENCES[problem.op](*wide, *_counts(problem)))


def _counts(problem: NamedOperator) -> tuple[int, ...]:
    """Return what the reference takes beside arrays: of a permutation experts and chosen."""
    if problem.op == ATTENTION:
        return (int(problem.options.causal),)
    return problem.extents[1:3] if problem.op.startswith("moe_") else ()


def _attention(q: Array, k: Array, v: Array, causal: int) -> Array:
    """Return attention; the last row sees all keys, and each one before it a key less if causal."""
    group = len(q) // len(k)
    scores = q @ np.repeat(k, group, axis=0).transpose(0, 2, 1) / np.sqrt(q.shape[2])
    if causal:
        hidden = np.arange(k.shape[1]) > np.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
        scores = np.where(hidden, -np.inf, scores)
    return np.asarray(softmax(scores) @ np.repeat(v, group, axis=0))


_GROUP, _OF_6, _OF_1 = 32, 2, 127


def _mx_quantised(x: Array) -> Array:
    """Return what codes of float4_e2m1 with a scale for 32 rows of a column stand for."""
    groups = x.reshape(-1, _GROUP, x.shape[1])
    largest = np.abs(groups).max(axis=1, keepdims=True)
    power = np.frexp(np.where(largest == 0, 1, largest))[1] - 1 - _OF_6
    scale = 2.0 ** np.where(largest == 0, -_OF_1, np.maximum(power, -_OF_1))
    codes = np.clip(groups / scale, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64)
    return np.asarray((codes * scale).reshape(x.shape))


def _rotary(x: Array, cos: Array, sin: Array) -> Array:
    first, second = np.split(x, 2, axis=2)
    cos, sin = cos[:, None], sin[:, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=2)


def _taken(tokens: int, experts: int, chosen: int) -> Array:
    """Return the order of pairs of a token and one of its experts: by expert, then by token."""
    pairs = np.arange(tokens * chosen)
    return np.lexsort((pairs, pairs % experts))


def _permuted(x: Array, experts: int, chosen: int) -> Array:
    return np.asarray(x[_taken(len(x), experts, chosen) // chosen])


def _brought_back(x: Array, weights: Array, experts: int, chosen: int) -> Array:
    restored = np.empty_like(x)
    restored[_taken(len(weights), experts, chosen)] = x
    rows = restored.reshape(len(weights), chosen, -1)
    return np.asarray((rows * weights[:, :, None]).sum(axis=1))


REFERENCES: dict[str, Callable[..., Array]] = {
    **{name: function.exact for name, function in FUNCTIONS.items()},
    "attention": _attention,
    "grouped_matmul": np.matmul,
    "moe_permute": _permuted,
    "moe_unpermute": _brought_back,
    "mx_quant": _mx_quantised,
    "quant_matmul": lambda a, b, scale, token: (a @ b) * scale * token[:, None],
    "rotary": _rotary,
    "softmax_axis": lambda x: np.swapaxes(softmax(np.swapaxes(x, 1, 2)), 1, 2),
    "weight_quant_matmul": lambda a, w, scale: a @ (w * scale),
}


def _sizes_of_attention(problem: NamedOperator, wide: Mapping[str, Array]) -> Array:
    return _attention(wide["q"], wide["k"], np.abs(wide["v"]), *_counts(problem))


def _sizes_back(problem: NamedOperator, wide: Mapping[str, Array]) -> Array:
    return _brought_back(np.abs(wide["x"]), wide["weights"], *_counts(problem))


def _sizes_of_sums(problem: NamedOperator, wide: Mapping[str, Array]) -> Array:
    del problem
    return np.asarray(np.abs(wide["x0"].sum(axis=1)) + np.abs(wide["x0"]).sum(axis=1) * 2.0**-6)


def _sizes_of_rotary(problem: NamedOperator, wide: Mapping[str, Array]) -> Array:
    del problem
    first, second = np.split(np.abs(wide["x"]), 2, axis=2)
    cos, sin = np.abs(wide["cos"])[:, None], np.abs(wide["sin"])[:, None]
    return np.concatenate([first * cos + second * sin, second * cos + first * sin], axis=2)


_SUMS: Mapping[str, Callable[[NamedOperator, Mapping[str, Array]], Array]] = {
    "attention": _sizes_of_attention,
    "grouped_matmul": lambda _, wide: np.abs(wide["a"]) @ np.abs(wide["b"]),
    "moe_unpermute": _sizes_back,
    "reduce_sum": _sizes_of_sums,
    "rotary": _sizes_of_rotary,
    "weight_quant_matmul": lambda _, wide: np.abs(wide["a"]) @ np.abs(wide["w"] * wide["scale"]),
}
"""Operators whose sums may cancel: the sums of absolute terms, which errors are measured by."""


def worst_error(
    problem: NamedOperator, inputs: Mapping[str, Array], computed: Mapping[str, Array]
) -> float:
    """Return the worst error of the result over what it may be."""
    right = operator_reference(problem, inputs)
    # Codes are judged by what they stand for with the stored scale: a wrong scale shows, and codes
    # of another scale that stand for the same numbers pass.
    if problem.op == "mx_quant":
        codes, power = (
            computed["y"].view(np.uint8),
            computed["scale"].view(np.uint8).astype(np.int64),
        )
        pairs = np.stack([codes & 15, codes >> 4], axis=-1).reshape(right.shape)
        scale = np.repeat(2.0 ** (power.reshape(-1, right.shape[1]) - _OF_1), _GROUP, axis=0)
        found = pairs.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * scale
        return float(np.max(np.abs(found - right) / (scale * 2.0**-8)))
    # int8 may be off by one rounding, half a scale; a sum beside it is held to its own type.
    if "scale" in computed:
        scale = computed["scale"].view(np.float32).astype(np.float64)[:, None]
        codes, *sums = right if "sum" in computed else [right]
        found = computed["y"].view(np.int8).reshape(codes.shape) * scale
        worst = float(np.max(np.abs(found - codes) / (scale * 0.51)))
        return max(
            [worst, *(_error(problem, computed["sum"], each, np.abs(each)) for each in sums)]
        )
    parts = [computed[name] for name in (problem.result, "sum") if name in computed]
    size = np.abs(right)
    if problem.op in _SUMS:
        wide = {name: one.astype(np.float64) for name, one in inputs.items()}
        size = _SUMS[problem.op](problem, wide)
    return _error(problem, np.concatenate(parts), right, size)


def _error(problem: NamedOperator, computed: Array, right: Array, size: Array) -> float:
    """Return the worst error of stored bytes over what it may be, beside `size`."""
    found = computed.view(problem.dtype.numpy).astype(np.float64).reshape(right.shape)
    error = np.abs(found - right) / (_TOLERANCE[problem.dtype.name] * (size + 2.0**-4))
    return float(np.max(np.where(np.isfinite(error), error, np.inf)))
