"""NaN and infinities of `mad`, against the documented boundary values (asc-devkit, appendix)."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from harness import lay_out
from isa.bench import Bench
from isa.cube.test_mad_starts import mad

INF, NAN = float("inf"), float("nan")
PRODUCTS = [
    *((INF, b, INF) for b in (2.0, INF)),
    *((INF, b, -INF) for b in (-2.0, -INF)),
    *((-INF, b, -INF) for b in (2.0, INF)),
    *((-INF, b, INF) for b in (-2.0, -INF)),
    *((a, 0.0, NAN) for a in (INF, -INF)),
    (2.0, INF, INF),
    (2.0, -INF, -INF),
    (-2.0, INF, -INF),
    (-2.0, -INF, INF),
    *((0.0, b, NAN) for b in (INF, -INF)),
    *((NAN, b, NAN) for b in (0.0, 2.0, INF, NAN)),
    *((a, NAN, NAN) for a in (0.0, -2.0, -INF)),
]
SUMS = [
    *((INF, -INF, NAN), (-INF, INF, NAN)),
    *((INF, b, INF) for b in (INF, 2.0, -2.0, 0.0)),
    *((-INF, b, -INF) for b in (-INF, 2.0, -2.0, 0.0)),
    *((NAN, b, NAN) for b in (0.0, INF, NAN)),
    *((a, NAN, NAN) for a in (2.0, -INF)),
]
TYPES = ["float16", "bfloat16", "float32"]
kinds = pytest.mark.parametrize("kind", TYPES)
ctrls = pytest.mark.parametrize("ctrl", [0, 1 << 48], ids=["saturating", "ieee"])


def multiplied(kind, a, b, ctrl=0, start=None):
    """Return C[0, 0] of [2, k] x [k, 16], k as many as there are values."""
    from cubecore.isa.catalogue import instruction_named

    element = element_type(kind)
    c0 = 32 // element.size_bytes
    left, right = (np.resize(np.array(x, np.float32), (len(x), 1)) for x in (a, b))
    bench = Bench(0)
    both = np.repeat(left.T, 2, axis=0).astype(element.numpy)
    bench.poke(Mem.L0A, 0, lay_out(both, "ZZ", (16, c0)).tobytes())
    wide = np.repeat(right, 16, axis=1).astype(element.numpy)
    bench.poke(Mem.L0B, 0, lay_out(wide, "ZN", (c0, 16)).tobytes())
    if start is not None:
        bench.poke(Mem.L0C, 0, np.full(256, start, np.float32).tobytes())
    bench.do(instruction_named("set_ctrl")(value=ctrl))
    template = mad((kind, "float32"), 2, len(a), 16, c_matrix_init_val=start is None)
    bench.do(template, 0, 0, 0)
    assert bench.messages == []
    return np.frombuffer(bench.image(Mem.L0C).get(0, 4), np.float32)[0]


@kinds
@ctrls
@pytest.mark.parametrize(("a", "b", "wanted"), PRODUCTS)
def test_products(kind, ctrl, a, b, wanted):
    assert np.array_equal(multiplied(kind, [a], [b], ctrl), wanted, equal_nan=True)


@kinds
@ctrls
@pytest.mark.parametrize(("first", "second", "wanted"), SUMS)
def test_sums(kind, ctrl, first, second, wanted):
    """Within one mad, and onto what L0C holds."""
    within = multiplied(kind, [first, second], [1.0, 1.0], ctrl)
    assert np.array_equal(within, wanted, equal_nan=True)
    onto = multiplied(kind, [second], [1.0], ctrl, start=first)
    assert np.array_equal(onto, wanted, equal_nan=True)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_float_is_infinite(sign):
    assert multiplied("float32", [3e38, 3e38], [1.0 * sign, 1.0 * sign]) == sign * INF
    assert multiplied("bfloat16", [3e38], [3.0 * sign]) == sign * INF


def test_what_the_page_settles_is_not_marked():
    from cubecore.isa.cube.mad import Mad

    assert not any("NaN" in text for text in Mad.uncertain)
    assert "boundary values of Mmad" in Mad.source
    assert chip("Ascend910B3").arch in Mad.archs
