"""Edge values of vector instructions against the vendor's published tables."""

import math
import struct
from pathlib import Path

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.numerics.conversion import bits_of
from isa.bench import Bench
from isa.lanes import CODES, IEEE, INF, LARGEST, NAN, SATURATE, Mask, size_of

ROWS = [
    line
    for line in (Path(__file__).parent / "edges.txt").read_text().splitlines()
    if not line.startswith("#")
]
SCALAR = ("vadds", "vmuls", "vmaxs", "vmins", "vlrelu")


def number(text: str, dtype: str) -> float | int:
    if dtype.startswith("int"):
        most = 2 ** (8 * size_of(dtype) - 1)
        return {"MAX": most - 1, "MIN": -most}.get(text) or int(float(text))
    named = {"MAX": LARGEST[dtype], "MIN": -LARGEST[dtype], "inf": INF, "-inf": -INF, "nan": NAN}
    return named.get(text) or float(text.removeprefix("~"))


def one(name: str, dtype: str, sources: tuple[float | int, ...], ctrl: int) -> float | int:
    """What the machine makes of one lane."""
    bench, code = Bench(1), "<" + CODES[dtype]
    kind, parameters = instruction_named(name), {}
    values = sources
    if name in SCALAR:
        values, parameters = sources[:1], {"value": bits_of(sources[1], element_type(dtype))}
    for place, value in enumerate(values):
        bench.poke(Mem.UB, 32 + 32 * place, struct.pack(code, value))
    Mask(low=1, high=0, ctrl=ctrl).set(bench)
    template = kind(dtype=element_type(dtype), **parameters)
    bench.do(template, *range(0, 32 * len(template.operands()), 32))
    assert bench.messages == []
    return struct.unpack(code, bench.image(Mem.UB).get(0, size_of(dtype)))[0]


def same(got: float, wanted: float, text: str) -> bool:
    if isinstance(wanted, int):
        return got == wanted
    if math.isnan(wanted):
        return math.isnan(got)
    if text.startswith("~"):
        return math.isclose(got, wanted, rel_tol=2e-2 if "e-05" in text else 1e-3)
    return got == wanted and math.copysign(1, got) == math.copysign(1, wanted)


def test_every_row_was_read():
    assert len(ROWS) == 337


@pytest.mark.thinned(3)
@pytest.mark.parametrize("row", ROWS)
def test_a_documented_edge(row):
    (name, kinds, *operands), results = row.split(" = ")[0].split(), row.split(" = ")[1]
    cut = operands.index(":") if ":" in operands else len(operands)
    first, second = operands[:cut], operands[cut + 1 :] or [""]
    plain, _, clamped = results.partition(" | ")
    for dtype in ("float16", "float32") if kinds == "floats" else (kinds,):
        loose, tight = (IEEE, 0) if dtype.startswith("float") else (0, SATURATE)
        for x in first:
            for y in second:
                sources = (number(x, dtype), *([number(y, dtype)] if y else []))
                text = plain
                assert same(one(name, dtype, sources, loose), number(text, dtype), text), (x, y)
                if dtype != "float32":
                    text = clamped or plain
                assert same(one(name, dtype, sources, tight), number(text, dtype), text), (x, y)
