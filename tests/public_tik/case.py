"""What a public operator is run on, and what its result is held to.

An oracle is NumPy written from what the operator's name and documentation say that it computes.
A case says in `note` what its run leaves open, and in `changed` what of its oracle was changed
after a first result; the page of public operators repeats both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, Any]
Drawn = list[Array]

F16, F32, I32 = "float16", "float32", "int32"
VENDOR = "dengguojie/vue-element-admin"
BUILT_IN = "ops/built-in/tbe"
CONTRIB = "ops/contrib/tbe/impl"
TENSORFLOW = "tools/custom_operator_sample/TIK/Tensorflow/tbe/impl"
PYTORCH = "tools/custom_operator_sample/TIK/PyTorch/tbe/impl"
GEKOWA = "gekowa/ascend-opp"
AI_CORE = "op_impl/built-in/ai_core/tbe"
SAMPLES = "Ascend/samples"
SAMPLES_FOLDER = "cplusplus/level1_single_api/4_op_dev/1_custom_op/tbe/impl"
INDEX = "Ascend/IndexSDK"
INDEX_FOLDER = "feature_retrieval/src/ascendfaiss/ops/tbe"


def as_drawn(*drawn: Array) -> Drawn:
    """Feed an operator what was drawn."""
    return list(drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of an operator and its oracle.

    `folder` is what Python imports `module` from, inside the checkout of `repository`. `feed`
    lays what was drawn out as the operator takes it, while the oracle takes it as drawn; an
    output whose expectation is None is not looked at, nor is an element whose expectation is NaN.
    `covers` are the listed files that the case verifies; without any it is the operator's own.
    """

    module: str
    function: str
    category: str
    arguments: tuple[Any, ...]
    draw: Callable[[np.random.Generator], Drawn]
    oracle: Callable[..., Any]
    repository: str = VENDOR
    folder: str = BUILT_IN
    soc: str = "Ascend910A"
    tolerance: float = 0.0
    feed: Callable[..., Drawn] = as_drawn
    outputs: tuple[tuple[int, ...], ...] = ()
    in_place: Mapping[int, int] = field(default_factory=dict)
    chip: str | None = None
    covers: tuple[str, ...] = ()
    generator: tuple[str, ...] | None = None
    note: str = ""
    changed: str = ""

    @property
    def path(self) -> str:
        """The operator's file in its repository."""
        return f"{self.folder}/{self.module.replace('.', '/')}.py"

    @property
    def files(self) -> tuple[str, ...]:
        """The listed files that this case verifies."""
        return self.covers or (self.path,)

    @property
    def name(self) -> str:
        """What a report calls the case."""
        return f"{self.repository}:{self.path}:{self.function}:{_plain(self.arguments)}"

    def inputs(self) -> Drawn:
        """Draw the inputs: the same ones whenever the case is the same."""
        return self.draw(np.random.default_rng(crc32(self.name.encode())))

    def wanted(self, drawn: Drawn) -> list[Array | None]:
        """Return what each output must hold."""
        found = self.oracle(*drawn)
        return list(found) if isinstance(found, (list, tuple)) else [found]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "x".join(map(str, value["shape"])) + f":{value['dtype']}:{value['format']}"
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(map(_plain, value)) + ")"
    return str(value)


def tensor(
    shape: tuple[int, ...], dtype: str = F16, layout: str = "ND", **more: Any
) -> dict[str, Any]:
    """Return the dictionary by which an operator is told of a tensor."""
    known = {"shape": shape, "ori_shape": shape, "dtype": dtype}
    return known | {"format": layout, "ori_format": layout} | more


def ints(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str = F16, low: int = -8, high: int = 9
) -> Array:
    """Draw whole numbers that every type holds."""
    return rng.integers(low, high, shape).astype(dtype)


def whole(
    *shapes: tuple[int, ...], dtype: str = F16, low: int = -8, high: int = 9
) -> Callable[[np.random.Generator], Drawn]:
    """Return a draw of whole numbers in arrays of these shapes."""
    return lambda rng: [ints(rng, shape, dtype, low, high) for shape in shapes]


def orders(rows: int, columns: int, dtype: str = F16) -> Callable[[np.random.Generator], Drawn]:
    """Return a draw of rows that each hold 0, 1, 2... in another order."""
    return lambda rng: [np.stack([rng.permutation(columns) for _ in range(rows)]).astype(dtype)]
