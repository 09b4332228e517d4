"""Views: matrices in layouts, against loops over fractals; what is unwritten; what is refused."""

import itertools

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.topology import CoreId
from cubecore.machine.debug.matrix_view import view
from cubecore.machine.execute.core import Core
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.finding_log import FindingLog
from harness import A2


def core_of(sub=0):
    return Core(CoreId(0, sub), A2, GlobalMemory(), FindingLog(), None, None, None)


def written(matrix, layout, high, wide):
    """Return the elements as they lie: fractal by fractal, each element by element."""
    rows, cols = (-(-n // f) * f for n, f in zip(matrix.shape, (high, wide), strict=True))
    padded = np.full((rows, cols), 99, matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    blocks = list(itertools.product(range(rows // high), range(cols // wide)))
    if layout == "NZ":
        blocks.sort(key=lambda b: (b[1], b[0]))
    flat = []
    for i, j in blocks:
        block = padded[i * high : (i + 1) * high, j * wide : (j + 1) * wide]
        flat.extend((block.T if layout == "ZN" else block).reshape(-1))
    return np.array(flat, matrix.dtype)


@pytest.mark.parametrize(
    ("mem", "layout", "dtype", "fractal"),
    [
        (Mem.L0A, "ZZ", "float16", (16, 16)),
        (Mem.L0A, "ZZ", "int8", (16, 32)),
        (Mem.L0B, "ZN", "float16", (16, 16)),
        (Mem.L0B, "ZN", "int8", (32, 16)),
        (Mem.L0C, "NZ", "float32", (16, 16)),
        (Mem.L0C, "NZ", "int32", (16, 16)),
        (Mem.L1, "NZ", "float32", (16, 8)),
    ],
)
@pytest.mark.parametrize("shape", [(16, 32), (35, 41), (1, 1)])
def test_layouts(mem, layout, dtype, fractal, shape):
    core, kind = core_of(), element_type(dtype)
    matrix = np.arange(shape[0] * shape[1]).reshape(shape).astype(kind.numpy) % 100
    raw = written(matrix, layout, *fractal).view(np.uint8)
    core.memory(mem).data[512 : 512 + raw.size] = raw
    core.memory(mem).valid[512 : 512 + raw.size] = 1
    found = view(core, mem, 512, kind, shape, layout)
    assert (found.values == matrix).all()
    assert found.written.all()
    assert found.layout == layout
    if mem is not Mem.L1:
        assert (view(core, mem, 512, kind, shape).values == matrix).all()


def test_the_text_of_a_view():
    core = core_of(sub=1)
    buffer = core.memory(Mem.UB)
    buffer.data[:12], buffer.valid[:12] = np.array([0, 1, 2], np.int32).view(np.uint8), 1
    found = view(core, Mem.UB, 0, element_type("int32"), (2, 2))
    assert str(found).splitlines() == [
        "2 x 2 int32 in ND, UB [0, 16), 1 never written (?)",
        "  0 | 0 1",
        "  1 | 2 ?",
    ]
    assert (found.shape, found.unwritten) == ((2, 2), 1)


def test_a_large_view_shows_its_ends():
    core = core_of(sub=1)
    buffer = core.memory(Mem.UB)
    buffer.data[:400], buffer.valid[:400] = np.arange(100, dtype=np.float32).view(np.uint8), 1
    lines = str(view(core, Mem.UB, 0, element_type("float"), (25, 4))).splitlines()
    assert lines[5:7] == ["  ... | ... ... ... ...", "   21 |  84  85  86  87"]
    assert len(lines) == 10
    wide = str(view(core, Mem.UB, 0, element_type("float"), (100,))).splitlines()
    assert wide[1:] == ["  0 |   0   1   2   3 ...  96  97  98  99"]


def test_types_that_no_library_has_and_halves_of_bytes():
    core = core_of(sub=1)
    buffer = core.memory(Mem.UB)
    buffer.data[:2], buffer.valid[:2] = (0x21, 0xF3), 1
    found = view(core, Mem.UB, 0, element_type("int4"), (5,))
    assert found.values[:4].astype(int).tolist() == [1, 2, 3, -1]
    assert found.written.tolist() == [True] * 4 + [False]
    found = view(core, Mem.UB, 0, element_type("hifloat8"), (2,)).values
    assert found.tolist() == [1.125 * 2**2, -(2.0**-9) * 1.5]


def test_global_memory():
    core = core_of()
    tensor = core.gm.allocate_from("a", np.arange(8, dtype=np.int16))
    found = view(core, Mem.GM, tensor.address + 4, element_type("int16"), (3,))
    assert (found.values.tolist(), found.memory, found.start) == ([2, 3, 4], "a", 4)
    with pytest.raises(RequestError) as error:
        view(core, Mem.GM, tensor.address + 4, element_type("int16"), (7,))
    assert str(error.value) == "the view must stay inside a (0 to 16 B), got bytes [4, 18)"
    with pytest.raises(RequestError) as error:
        view(core, Mem.GM, 3, element_type("int16"), (7,))
    assert str(error.value) == "the view must lie in a tensor, got address 3"


@pytest.mark.parametrize(
    ("mem", "shape", "layout", "line"),
    [
        (Mem.UB, (4,), "XY", "layout must be ND, NZ, ZZ or ZN, got 'XY'"),
        (Mem.UB, (4, 0), "ND", "shape must hold whole numbers above 0, got (4, 0)"),
        (Mem.UB, (4,), "NZ", "a shape in NZ must have two dimensions, got 4"),
        (Mem.L1, (4,), "ND", "the view must lie in a memory of the AIV, got L1"),
        (
            Mem.UB,
            (50_000,),
            "ND",
            "the view must stay inside UB (0 to 196608 B), got bytes [0, 200000)",
        ),
    ],
)
def test_views_that_are_refused(mem, shape, layout, line):
    with pytest.raises(RequestError) as error:
        view(core_of(sub=1), mem, 0, element_type("float"), shape, layout)
    assert str(error.value) == line
