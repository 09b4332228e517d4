"""Division and the logic of bits, against loops over lanes; test_vector has the other five."""

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import (
    CTRL,
    IEEE,
    INF,
    NAN,
    Mask,
    Operand,
    Run,
    fill,
    pack_float,
    pack_integer,
)

BINARY = {"vdiv": ("float16", "float32"), "vand": ("int16", "uint16"), "vor": ("int16", "uint16")}


def quotient(x: float, y: float) -> float:
    if y == 0:
        negative = str(x).startswith("-") != str(y).startswith("-")
        return NAN if x == 0 or x != x else -INF if negative else INF  # noqa: PLR0124 - NaN
    return x / y  # of two infinities NaN, as in the documents


def lane(name: str, dtype: str, ctrl: int):
    if name == "vdiv":
        return lambda v: pack_float(quotient(v["src0"], v["src1"]), dtype, ctrl)
    combine = int.__and__ if name == "vand" else int.__or__
    return lambda v: pack_integer(combine(v["src0"], v["src1"]), dtype, False)


@pytest.mark.parametrize("ctrl", CTRL)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in BINARY.items() for d in ds])
def test_every_function(name, dtype, ctrl):
    bench = Bench(1, seed=31)
    fill(bench, dtype)
    operands = {
        "dst": Operand(0, dtype, 1, 9),
        "src0": Operand(65536, dtype, 2, 16),
        "src1": Operand(131072 + 64, dtype, 1, 4),
    }
    strides = {f"{n}_block_stride": o.block for n, o in operands.items()}
    strides |= {f"{n}_repeat_stride": o.repeat for n, o in operands.items()}
    template = instruction_named(name)(dtype=element_type(dtype), repeat=3, **strides)
    mask = Mask(low=0x8000_0000_FFFF_0003, ctrl=CTRL[ctrl])
    Run(template, operands, lane(name, dtype, CTRL[ctrl]), mask).check(bench)


def test_a_source_that_meets_itself_within_a_repeat_is_read_before_dst_is_written():
    """All lanes of a repeat are read first: dst one block above src0 does not feed it."""
    bench = Bench(1, seed=32)
    fill(bench, "float32")
    operands = {
        "dst": Operand(4096 + 32, "float32"),
        "src0": Operand(4096, "float32"),
        "src1": Operand(65536, "float32"),
    }
    template = instruction_named("vdiv")(dtype=element_type("float32"), repeat=2)
    expected = Run(template, operands, lane("vdiv", "float32", IEEE)).by_hand(bench.image(Mem.UB))
    Mask().set(bench)
    bench.do(template, *(o.at for o in operands.values()))
    assert bench.messages == [
        "overlap: vdiv.dst must coincide with src0, or keep apart from it, within a repeat, "
        "got repeat 0"
    ]
    got = bench.image(Mem.UB)
    assert got.get(4128, 512) == expected.get(4128, 512)
