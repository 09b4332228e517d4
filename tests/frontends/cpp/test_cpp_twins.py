"""C++ examples and their Python twins: the same bytes, findings and instructions, and times."""

import runpy
from functools import cache

import numpy as np
import pytest

import cubecore
from cubecore.workflows.scripts.script import times_of
from frontends.cpp import twins
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler

pytestmark = needs_compiler
PYTHON = EXAMPLES.parent / "kernels"
ROWS = 96
SHARE = 2 * 4096 + 64
BLOCKS = 2


@cache
def twin(name):
    return runpy.run_path(str(PYTHON / f"{name}.py"))


def added(twin_name):
    x, y = twin("vector_add")["inputs"](BLOCKS * SHARE)
    return twin("vector_add")[twin_name], (x, y, np.zeros_like(x), SHARE), x + y


def softmax():
    (x,) = twin("softmax")["inputs"](ROWS)
    exact = twin("softmax")["reference"](x)
    return twin("softmax")["softmax"], (x, np.zeros_like(x), ROWS // BLOCKS), exact


def layernorm():
    x, gamma, beta = twin("layernorm")["inputs"](ROWS)
    arguments = (x, gamma, beta, np.zeros_like(x), ROWS // BLOCKS)
    return twin("layernorm")["layernorm"], arguments, twin("layernorm")["reference"](x, gamma, beta)


def reduction():
    (x,) = twin("reduction")["inputs"](BLOCKS * 3 * 4096)
    partial, total = np.zeros(8 * BLOCKS, np.float32), np.zeros(8, np.float32)
    return twins.add_up_together, (x, partial, total, 3 * 4096), x.sum(dtype=np.float64)


def histogram():
    x = twins.numbers(BLOCKS * 128)
    exact = np.bincount(x[(x >= 0) & (x < twins.BINS)], minlength=twins.BINS)
    return twins.histogram, (x, np.zeros((twins.BINS, 8), np.int32), 128), exact[:, None]


def matmul():
    m, n, k = 150, 201, 333
    a, b, bias = twins.halves(m, k), twins.halves(k, n), twins.halves(n).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    return twins.matmul, (a, b, bias, np.zeros((m, n), np.float32), m, n, k), exact


def split_k():
    a, b = twins.halves(128, 1024), twins.halves(1024, 128)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return twins.split_k, (a, b, np.zeros((128, 128), np.float32), 128, 1024, BLOCKS), exact


def int8_matmul():
    x, w, bias, scales = given = twin("int8_matmul")["inputs"](128, 2 * 128, 2 * 512)
    y, words = np.zeros((128, 256), np.int8), twin("int8_matmul")["words"](scales)
    arguments = (x, w, bias, words, y, 128, 256, 1024)
    return (
        twin("int8_matmul")["layer"],
        arguments,
        np.rint(twin("int8_matmul")["reference"](*given)),
    )


def matmul_leaky_relu():
    made = twin("matmul_leaky_relu")
    a, b, bias = given = made["inputs"](256, 256, 256)
    workspace = np.zeros(BLOCKS * 2 * 128 * 128, np.float32)
    arguments = (a, b, bias, np.zeros((256, 256), np.float16), workspace, 256, 256, 256)
    return made["matmul_leaky_relu"], arguments, made["reference"](*given), 3


def flash_attention():
    made = twin("flash_attention")
    q, k, v = given = made["small"]()
    shapes = ((256, np.float32), (256, np.float16), (128, np.float32))
    workspaces = [np.zeros((BLOCKS, 2, 64, width), kind) for width, kind in shapes]
    arguments = (q, k, v, np.zeros_like(q), *workspaces, len(k))
    return made["flash_attention"], arguments, made["reference"](*given), 3


def top_k():
    made = twin("top_k")
    (x,) = made["small"]()
    scores, picks = (
        np.zeros((len(x), made["K"]), np.float32),
        np.zeros((len(x), made["K"]), np.uint32),
    )
    places = np.arange(made["COLUMNS"], dtype=np.uint32)
    return made["top_k"], (x, places, scores, picks, len(x)), made["reference"](x)[1]


CASES = {
    ("vector_add", "add_queued"): lambda: added("add_doubled"),
    ("vector_add", "add_static"): lambda: added("add_doubled"),
    ("vector_add_capi", "add_joined"): lambda: added("add_joined"),
    ("vector_add_capi", "add_flagged"): lambda: added("add_flagged"),
    ("vector_add_capi", "add_doubled"): lambda: added("add_doubled"),
    ("softmax", "softmax"): softmax,
    ("layernorm", "layernorm"): layernorm,
    ("reduction", "add_up_together"): reduction,
    ("histogram", "histogram"): histogram,
    ("matmul", "matmul"): matmul,
    ("split_k", "split_k"): split_k,
    ("int8_matmul", "layer"): int8_matmul,
    ("matmul_leaky_relu", "matmul_leaky_relu"): matmul_leaky_relu,
    ("flash_attention", "flash_attention"): flash_attention,
    ("top_k", "top_k"): top_k,
}
"""By file and kernel: the twin, the arguments, the exact result, which array has it (the last)."""


def arrays(arguments):
    return [a for a in arguments if isinstance(a, np.ndarray)]


def launched(made, arguments, **options):
    """Return a launch, the bytes of its arrays, and its cycles."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    run = made.using(trace=True, **options)[BLOCKS](*own)
    return (
        run,
        [a.tobytes() for a in arrays(own)],
        times_of(run.kernel, (run,), 0).longest.timeline.cycles,
        own,
    )


@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.thinned(4)
def test_an_example_is_its_twin(case):
    file, name = case
    python, arguments, exact, *which = CASES[case]()
    for options in ({}, {"order": "late"}):
        module = cubecore.load(EXAMPLES / f"{file}.cpp", auto_sync=False)
        run, got, cycles, own = launched(module[name], arguments, **options)
        other, wanted, expected, _ = launched(python, arguments, **options)
        assert (run.findings, other.findings) == ((), ())
        assert got == wanted
        assert abs(cycles / expected - 1) <= 0.02
    result = arrays(own)[which[0] if which else -1].astype(np.float64)
    assert np.allclose(
        result.flat[0] if np.ndim(exact) == 0 else result, exact, atol=2e-3, rtol=1e-3
    )
