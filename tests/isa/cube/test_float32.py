"""float32 through L1 and L0: plain loads, and transposing loads that make fractals in pairs."""

import numpy as np
import pytest

from cubecore.dtypes import FLOAT32
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from harness import lay_out, read_out, run_core, whole_numbers

WIDE, SQUARE = (16, 8), 2 * 512
B_IN_L1 = 1 << 18


def up(value: int, unit: int) -> int:
    return -(-value // unit)


def load_a(builder, m, k, *, transposed):
    """A lies in L1 as [m, k] in NZ, or as [k, m] row of fractals by row of fractals."""
    if transposed:
        for i in range(up(m, 16)):
            load = LoadCbufToCaTranspose(
                dtype=FLOAT32, repeat=up(k, 16), src_stride=up(m, 16), dst_gap=1
            )
            builder.issue(load, i * up(k, 16) * SQUARE, i * SQUARE)
    else:
        for i in range(up(m, 16)):
            load = LoadCbufToCa(repeat=up(k, 8), src_stride=up(m, 16))
            builder.issue(load, i * up(k, 8) * 512, i * 512)


def load_b(builder, k, n, *, transposed):
    """B lies in L1 as [n, k] in NZ, or as [k, n] row of fractals by row of fractals."""
    if not transposed:
        builder.issue(LoadCbufToCb(repeat=up(k, 8) * up(n, 16)), 0, B_IN_L1)
        return
    for i in range(up(k, 16)):
        load = LoadCbufToCbTranspose(
            dtype=FLOAT32, repeat=up(n, 16), src_stride=1, dst_frac_gap=up(n, 16) - 1
        )
        builder.issue(load, i * up(n, 16) * SQUARE, B_IN_L1 + i * up(n, 16) * SQUARE)


def pairs(matrix):
    """Row of fractals by row of fractals, an even number of fractals in each."""
    columns = matrix.shape[1]
    return lay_out(np.pad(matrix, ((0, 0), (0, -columns % 16))), "ZZ", WIDE)


@pytest.mark.parametrize("shape", [(40, 70, 50), (17, 36, 33), (32, 44, 16), (2, 8, 1)], ids=str)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_products_through_plain_and_transposing_loads(shape, trans_a, trans_b):
    m, k, n = shape
    rng = np.random.default_rng(k)
    a, b = whole_numbers(rng, (m, k), "float32"), whole_numbers(rng, (k, n), "float32")
    in_l1 = {
        (Mem.L1, 0): pairs(a.T) if trans_a else lay_out(a, "NZ", WIDE),
        (Mem.L1, B_IN_L1): pairs(b) if trans_b else lay_out(b.T, "NZ", WIDE),
    }
    product = Mad(
        a_type=FLOAT32, b_type=FLOAT32, c_type=FLOAT32, m=m, k=k, n=n, k_direction_align=trans_a
    )

    def build(builder, _):
        load_a(builder, m, k, transposed=trans_a)
        load_b(builder, k, n, transposed=trans_b)
        builder.issue(product, 0, 0, 0)

    ran = run_core(build, local=in_l1)
    assert ran.findings == ()
    c = ran.at(Mem.L0C, "float32", up(m, 16) * up(n, 16) * 256)
    assert np.array_equal(read_out(c, "NZ", (m, n), (16, 16)), a @ b)


def test_without_the_alignment_the_rows_of_a_are_read_from_the_wrong_place():
    m, k, n = 32, 36, 16
    rng = np.random.default_rng(1)
    a, b = whole_numbers(rng, (m, k), "float32"), whole_numbers(rng, (k, n), "float32")
    results = []
    for aligned in (True, False):
        fields = {"m": m, "k": k, "n": n, "k_direction_align": aligned}
        product = Mad(a_type=FLOAT32, b_type=FLOAT32, c_type=FLOAT32, **fields)

        def build(builder, _, product=product):
            load_a(builder, m, k, transposed=True)
            load_b(builder, k, n, transposed=False)
            builder.issue(product, 0, 0, 0)

        local = {(Mem.L1, 0): pairs(a.T), (Mem.L1, B_IN_L1): lay_out(b.T, "NZ", WIDE)}
        c = run_core(build, local=local).at(Mem.L0C, "float32", 512)
        results.append(np.array_equal(read_out(c, "NZ", (m, n), (16, 16)), a @ b))
    assert results == [True, False]
