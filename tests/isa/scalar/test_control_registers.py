"""The Cube's small registers: read back, leaky ReLU's factor, the direction of products."""

import struct
from fractions import Fraction

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToCbuf, CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_registers import SetLreluAlpha
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetFpc
from cubecore.isa.scalar.control_registers import SetMmadDirection
from isa.bench import Bench

FLOAT = element_type("float32")
HALF = element_type("float16")


def ask(bench: Bench, what: str) -> int:
    (found,) = bench.core.scalars(instruction_named(f"asc_get_l0c2gm_{what}")())
    return found


def test_what_set_fpc_left_is_read_back():
    bench = Bench()
    words = ("prequant", "relu", "unitflag")
    assert [ask(bench, word) for word in words] == [0, 0, 0]
    bench.do(SetFpc(relu_at=256, scales_at=512, reset_unit_flags=True))
    assert [ask(bench, word) for word in words] == [512, 256, 1]
    bench.do(SetFpc(scales_at=128))
    assert [ask(bench, word) for word in words] == [128, 0, 0]
    assert bench.messages == []


def nearest_float(value: Fraction) -> float:
    """A real number to the nearest float32, ties to even: the two neighbours are compared."""
    guess = np.float32(float(value))
    around = {np.nextafter(guess, np.float32(way)) for way in (-np.inf, np.inf)} | {guess}
    return min(
        (x for x in around if np.isfinite(x)),
        key=lambda x: (abs(Fraction(float(x)) - value), int(np.float32(x).view(np.uint32)) & 1),
    )


ALPHAS = (0.0, 0.5, 0.01, -0.25, 1.0, 3.7)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("target", ["float32", "float16", "L1"])
def test_leaky_relu(alpha, target):
    """Negative values times the factor, the others as they are; then the conversion."""
    bits = struct.unpack("<I", struct.pack("<f", alpha))[0]
    factor = Fraction(struct.unpack("<f", struct.pack("<f", alpha))[0])
    bench = Bench(seed=7, gm_bytes=2048)
    bench.noise(Mem.GM, Mem.L1)
    values = (bench.rng.standard_normal(256) * 50).astype(np.float32)
    values[:4] = (0.0, -0.0, 1e-30, -1e-30)
    bench.poke(Mem.L0C, 0, values.tobytes())
    sink = Mem.L1 if target == "L1" else Mem.GM
    expected = bench.image(sink)
    size = 4 if target == "float32" else 2
    for number, value in enumerate(values):
        made = float(value)
        if value < 0:
            made = float(nearest_float(Fraction(made) * factor)) if factor else -0.0
        expected.put(number * size, struct.pack("<f" if size == 4 else "<e", made))
    bench.do(SetLreluAlpha(alpha=bits))
    p = {"src_type": FLOAT, "n_size": 16, "m_size": 16, "src_stride": 16, "relu_pre": 2}
    if target == "L1":
        bench.do(CopyMatrixCcToCbuf(dst_stride=16, quant_pre="F322F16", **p), 0, 0)
    else:
        mode = "NoQuant" if size == 4 else "F322F16"
        template = CopyMatrixCcToGm(dst_stride=16, nz2nd_en=True, quant_pre=mode, **p)
        bench.do(template, bench.base, 0)
    assert bench.messages == []
    bench.check(sink, expected)


@pytest.mark.parametrize(
    ("dtype", "need"),
    [("float32", "follow a set_lrelu_alpha"), ("int32", "be 0 or 1 unless src_type is float32")],
)
def test_leaky_relu_needs_its_factor_and_float32(dtype, need):
    bench = Bench(gm_bytes=2048)
    bench.noise(Mem.L0C, Mem.GM, written=True)
    before = bench.image(Mem.GM)
    p = {"n_size": 16, "m_size": 16, "src_stride": 16, "dst_stride": 32, "relu_pre": 2}
    bench.do(CopyMatrixCcToGm(src_type=element_type(dtype), **p), bench.base, 0)
    assert bench.messages == [f"parameter: copy_matrix_cc_to_gm.relu_pre must {need}, got 2"]
    bench.check(Mem.GM, before)


@pytest.mark.parametrize("bits", [0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x807FFFFF])
def test_a_factor_is_an_ordinary_number(bits):
    bench = Bench()
    bench.do(SetLreluAlpha(alpha=bits))
    assert bench.messages == [
        "parameter: set_lrelu_alpha.alpha must be no infinity, NaN or subnormal number, "
        f"got {bits:#010x}"
    ]


def test_the_direction_changes_no_value():
    """Two directions, one product: byte for byte the product without either."""
    made = []
    for direction in (None, "m", "n"):
        bench = Bench(seed=3)
        bench.noise(Mem.L0C)
        small = bench.rng.integers(-3, 4, (2, 40 * 48)).astype(np.float16)
        bench.poke(Mem.L0A, 0, small[0].tobytes())
        bench.poke(Mem.L0B, 0, small[1].tobytes())
        if direction:
            bench.do(SetMmadDirection(first=direction))
        bench.do(Mad(a_type=HALF, b_type=HALF, c_type=FLOAT, m=40, k=32, n=33), 0, 0, 0)
        assert bench.messages == []
        made.append(bench.image(Mem.L0C))
    assert made[0] == made[1] == made[2]
