"""Half under atomic stores, against the documented boundary values (asc-devkit, appendix).

A line of `TABLES` is a row: first operand, second ones, the result with infinities and NaN, and
the result that saturates. Operands may be exchanged.
"""

import numpy as np
import pytest

from cubecore.dtypes import FLOAT16, FLOAT32, element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.mte.copies import CopyUbufToGm
from isa.bench import Bench

TABLES = {
    "add": """
        MIN  MIN -inf       -inf  MIN
        MIN  MAX            0     0
        MIN  0 -0           MIN   MIN
        MIN  nan            nan   0
        MIN  inf            inf   MAX
        MAX  MAX inf        inf   MAX
        MAX  0 -0           MAX   MAX
        MAX  nan            nan   0
        MAX  -inf           -inf  MIN
        0    0 -0           0     0
        0    nan            nan   0
        0    inf            inf   MAX
        0    -inf           -inf  MIN
        -0   -0             -0    -0
        -0   nan            nan   0
        -0   inf            inf   MAX
        -0   -inf           -inf  MIN
        nan  nan inf -inf   nan   0
        inf  inf            inf   MAX
        inf  -inf           nan   0
        -inf -inf           -inf  MIN
    """,
    "max": """
        MIN  MIN -inf         MIN  MIN
        MIN  MAX              MAX  MAX
        MIN  0                0    0
        MIN  -0               -0   -0
        MIN  nan              nan  0
        MIN  inf              inf  MAX
        MAX  MAX 0 -0 -inf    MAX  MAX
        MAX  nan              nan  0
        MAX  inf              inf  MAX
        0    0 -0 -inf        0    0
        0    nan              nan  0
        0    inf              inf  MAX
        -0   -0 -inf          -0   -0
        -0   nan              nan  0
        -0   inf              inf  MAX
        nan  nan inf -inf     nan  0
        inf  inf -inf         inf  MAX
        -inf -inf             -inf MIN
    """,
    "min": """
        MIN  MIN MAX 0 -0 inf  MIN  MIN
        MIN  nan               nan  0
        MIN  -inf              -inf MIN
        MAX  MAX inf           MAX  MAX
        MAX  0                 0    0
        MAX  -0                -0   -0
        MAX  nan               nan  0
        MAX  -inf              -inf MIN
        0    0 inf             0    0
        0    -0                -0   -0
        0    nan               nan  0
        0    -inf              -inf MIN
        -0   -0 inf            -0   -0
        -0   nan               nan  0
        -0   -inf              -inf MIN
        nan  nan inf -inf      nan  0
        inf  inf               inf  MAX
        inf  -inf              -inf MIN
        -inf -inf              -inf MIN
    """,
}
WORDS = {"MIN": -65504.0, "MAX": 65504.0}
HALF_MODES = {"ieee": 1 << 48, "saturating": 0}


def number(word):
    return np.float16(WORDS.get(word, word))


def pairs(operation):
    """Return (first, second, result with infinities, result that saturates) for every pair."""
    found = []
    for line in TABLES[operation].strip().splitlines():
        first, *others, ieee, finite = line.split()
        found += [(first, other, ieee, finite) for other in others]
    return found


PAIRS = [(op, *pair) for op in TABLES for pair in pairs(op)]


def test_every_pair_of_boundary_values_is_there():
    values = ("MIN", "MAX", "0", "-0", "nan", "inf", "-inf")
    wanted = {frozenset((a, b)) for a in values for b in values}
    for operation in TABLES:
        assert {frozenset(pair[:2]) for pair in pairs(operation)} == wanted
        assert len(pairs(operation)) == 28


def same(found, wanted):
    """True for equal bits, and for any two NaN."""
    both = np.isnan(found) & np.isnan(wanted)
    return bool((both | (found.view(np.uint16) == wanted.view(np.uint16))).all())


def stored(operation, old, new, ctrl):
    """Return what a copy of UB leaves in global memory: 16 times `new` onto `old`."""
    bench = Bench(1, gm_bytes=32)
    bench.poke(Mem.UB, 0, np.full(16, new, np.float16).tobytes())
    bench.poke(Mem.GM, 0, np.full(16, old, np.float16).tobytes())
    bench.do(instruction_named("set_ctrl")(value=ctrl))
    bench.do(SetAtomic(operation=operation, dtype=FLOAT16))
    bench.do(CopyUbufToGm(n_burst=1, len_burst=1), bench.base, 0)
    assert bench.messages == []
    return np.frombuffer(bench.image(Mem.GM).get(0, 32), np.float16)


@pytest.mark.parametrize(("operation", "first", "second", "ieee", "finite"), PAIRS)
def test_a_copy_of_half(operation, first, second, ieee, finite):
    for mode, wanted in (("ieee", ieee), ("saturating", finite)):
        for old, new in ((first, second), (second, first)):
            found = stored(operation, number(old), number(new), HALF_MODES[mode])
            assert same(found, np.full(16, number(wanted))), (mode, old, new, found[0])


def clamped(word):
    """Return the word of what fixpipe makes of a float32 in half where it saturates."""
    return {"inf": "MAX", "-inf": "MIN", "nan": "0"}.get(word, word)


@pytest.mark.parametrize("operation", TABLES)
def test_fixpipe_to_half(operation):
    """Converted first: what saturates there is no infinity any more."""
    results = {}
    for first, second, ieee, finite in pairs(operation):
        results[first, second] = results[second, first] = ieee, finite
    words = ("MIN", "MAX", "0", "-0", "nan", "inf", "-inf")
    store = CopyMatrixCcToGm(
        src_type=FLOAT32, n_size=16, m_size=1, dst_stride=16, src_stride=16, nz2nd_en=True,
        quant_pre="F322F16",
    )  # fmt: skip
    for mode, ctrl in HALF_MODES.items():
        for old in words:
            for new in words:
                bench = Bench(0, gm_bytes=32)
                tile = np.full(16, number(new).astype(np.float32), np.float32)
                bench.poke(Mem.L0C, 0, tile.tobytes())
                bench.poke(Mem.GM, 0, np.full(16, number(old)).tobytes())
                bench.do(instruction_named("set_ctrl")(value=ctrl))
                bench.do(SetAtomic(operation=operation, dtype=FLOAT16))
                bench.do(store, bench.base, 0)
                assert bench.messages == []
                found = np.frombuffer(bench.image(Mem.GM).get(0, 32), np.float16)
                kept = new if mode == "ieee" else clamped(new)
                wanted = results[old, kept][mode != "ieee"]
                assert same(found, np.full(16, number(wanted))), (mode, old, new, found[0])


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_other_floats_keep_infinities_in_both_modes(name):
    kind = element_type(name)
    for ctrl in HALF_MODES.values():
        bench = Bench(1, gm_bytes=32)
        count = 32 // kind.size_bytes
        bench.poke(Mem.UB, 0, np.full(count, np.inf).astype(kind.numpy).tobytes())
        bench.poke(Mem.GM, 0, np.ones(count).astype(kind.numpy).tobytes())
        bench.do(instruction_named("set_ctrl")(value=ctrl))
        bench.do(SetAtomic(operation="add", dtype=kind))
        bench.do(CopyUbufToGm(n_burst=1, len_burst=1), bench.base, 0)
        found = np.frombuffer(bench.image(Mem.GM).get(0, 32), kind.numpy)
        assert np.isinf(found.astype(np.float32)).all()
