"""C++ examples beside their Python twins: what both are launched with, and the exact results.

Tests launch small cases, the benchmark large ones; a case's size is its blocks and how much each
block has to do.
"""

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frontends.cpp import twins
from frontends.cpp.cpp_kernels import EXAMPLES

PYTHON = EXAMPLES.parent / "kernels"
BLOCKS = 2


@dataclass(frozen=True)
class Case:
    """A launch of a C++ example and its twin.

    `exact` returns the exact result, which the last array has, or the one that `result` says.
    """

    twin: Any
    arguments: tuple[Any, ...]
    exact: Callable[[], Any]
    result: int = -1


@cache
def twin(name: str) -> dict[str, Any]:
    """Return the names of an example in Python."""
    return runpy.run_path(str(PYTHON / f"{name}.py"))


def _added(name: str, blocks: int, amount: int) -> Case:
    share = 2 * amount * 4096 + 64
    x, y = twin("vector_add")["inputs"](blocks * share)
    return Case(twin("vector_add")[name], (x, y, np.zeros_like(x), share), lambda: x + y)


def _rows(name: str, blocks: int, amount: int) -> Case:
    made, rows = twin(name), 48 * amount
    given = made["inputs"](blocks * rows)
    arguments = (*given, np.zeros_like(given[0]), rows)
    return Case(made[name], arguments, lambda: made["reference"](*given))


def _reduction(blocks: int, amount: int) -> Case:
    share = 3 * amount * twins.TILE
    (x,) = twin("reduction")["inputs"](blocks * share)
    partial, total = np.zeros(8 * blocks, np.float32), np.zeros(8, np.float32)
    arguments = (x, partial, total, share)
    return Case(twins.add_up_together, arguments, lambda: x.sum(dtype=np.float64))


def _histogram(blocks: int, amount: int) -> Case:
    share = 16 * amount
    x = twins.numbers(blocks * share)
    counted = x[(x >= 0) & (x < twins.BINS)]
    arguments = (x, np.zeros((twins.BINS, 8), np.int32), share)
    return Case(
        twins.histogram, arguments, lambda: np.bincount(counted, minlength=twins.BINS)[:, None]
    )


def _product(*given: NDArray[Any]) -> NDArray[Any]:
    a, b = (one.astype(np.float64) for one in given)
    return a @ b


def _matmul(blocks: int, amount: int) -> Case:
    m, n, k = 75 * blocks, 201, 333 * amount
    a, b, bias = twins.halves(m, k), twins.halves(k, n), twins.halves(n).astype(np.float32)
    arguments = (a, b, bias, np.zeros((m, n), np.float32), m, n, k)
    return Case(twins.matmul, arguments, lambda: _product(a, b) + bias)


def _split_k(blocks: int, amount: int) -> Case:
    k = blocks * 512 * amount
    a, b = twins.halves(128, k), twins.halves(k, 128)
    arguments = (a, b, np.zeros((128, 128), np.float32), 128, k, blocks)
    return Case(twins.split_k, arguments, lambda: _product(a, b))


def _int8_matmul(blocks: int, amount: int) -> Case:
    made, n, k = twin("int8_matmul"), blocks * 128, 1024 * amount
    x, w, bias, scales = given = made["inputs"](128, n, k)
    arguments = (x, w, bias, made["words"](scales), np.zeros((128, n), np.int8), 128, n, k)
    return Case(made["layer"], arguments, lambda: np.rint(made["reference"](*given)))


def _matmul_leaky_relu(blocks: int, amount: int) -> Case:
    made, m, n, k = twin("matmul_leaky_relu"), 128 * blocks, 256, 256 * amount
    a, b, bias = given = made["inputs"](m, n, k)
    workspace = np.zeros(blocks * 2 * 128 * 128, np.float32)
    arguments = (a, b, bias, np.zeros((m, n), np.float16), workspace, m, n, k)
    return Case(made["matmul_leaky_relu"], arguments, lambda: made["reference"](*given), 3)


def _flash_attention(blocks: int, amount: int) -> Case:
    made = twin("flash_attention")
    rows, keys = blocks * made["ROWS"], 3 * made["KEYS"] * amount
    q, k, v = made["inputs"](max(rows, keys))
    q, k, v = given = np.ascontiguousarray(q[:rows]), k[:keys].copy(), v[:keys].copy()
    shapes = ((256, np.float32), (256, np.float16), (128, np.float32))
    spaces = [np.zeros((blocks, 2, 64, width), kind) for width, kind in shapes]
    arguments = (q, k, v, np.zeros_like(q), *spaces, keys)
    return Case(made["flash_attention"], arguments, lambda: made["reference"](*given), 3)


def _top_k(blocks: int, amount: int) -> Case:
    made, rows = twin("top_k"), 3 * amount * blocks
    (x,) = made["inputs"](rows)
    scores, picks = (np.zeros((rows, made["K"]), kind) for kind in (np.float32, np.uint32))
    arguments = (x, np.arange(made["COLUMNS"], dtype=np.uint32), scores, picks, rows)
    return Case(made["top_k"], arguments, lambda: made["reference"](x)[1])


CASES: dict[tuple[str, str], Callable[[int, int], Case]] = {
    ("vector_add", "add_queued"): partial(_added, "add_doubled"),
    ("vector_add", "add_static"): partial(_added, "add_doubled"),
    ("vector_add_capi", "add_joined"): partial(_added, "add_joined"),
    ("vector_add_capi", "add_flagged"): partial(_added, "add_flagged"),
    ("vector_add_capi", "add_doubled"): partial(_added, "add_doubled"),
    ("softmax", "softmax"): partial(_rows, "softmax"),
    ("layernorm", "layernorm"): partial(_rows, "layernorm"),
    ("reduction", "add_up_together"): _reduction,
    ("histogram", "histogram"): _histogram,
    ("matmul", "matmul"): _matmul,
    ("split_k", "split_k"): _split_k,
    ("int8_matmul", "layer"): _int8_matmul,
    ("matmul_leaky_relu", "matmul_leaky_relu"): _matmul_leaky_relu,
    ("flash_attention", "flash_attention"): _flash_attention,
    ("top_k", "top_k"): _top_k,
}
"""By file and kernel: a case of some blocks, each with an amount of work; 1 is the least."""


def small(file: str, name: str) -> Case:
    """Return a case of two blocks that is quick to try."""
    return CASES[file, name](BLOCKS, 1)
