"""Functions on whole tensors of architecture 3510, against NumPy element by element."""

import math
import operator

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import Registers
from isa import functions_rows as rows
from isa.bench import Bench

CHIP = chip("Ascend950PR_9589")


def truth(x):
    return bool(float(x) != 0.0)


ORACLES = {
    "bitwise_and": lambda a, b: int(a) & int(b),
    "bitwise_or": lambda a, b: int(a) | int(b),
    "bitwise_xor": lambda a, b: int(a) ^ int(b),
    "bitwise_not": lambda a: ~int(a),
    "logical_and": lambda a, b: truth(a) and truth(b),
    "logical_ands": lambda a, b: truth(a) and truth(b),
    "logical_or": lambda a, b: truth(a) or truth(b),
    "logical_ors": lambda a, b: truth(a) or truth(b),
    "logical_xor": lambda a, b: truth(a) != truth(b),
    "logical_not": lambda a: not truth(a),
    "duplicate_first": lambda a: a,
    "fma": lambda a, b, c: float(a) * float(b) + float(c),
}
for _name, _relation in (
    ("eq", operator.eq),
    ("ne", lambda a, b: not (a == b or np.isnan(a) or np.isnan(b))),
    ("lt", operator.lt),
    ("le", operator.le),
    ("gt", operator.gt),
    ("ge", operator.ge),
):
    for _form in ("", "s", "_element"):
        ORACLES[f"compare_{_name}{_form}"] = _relation
for _form in ("", "_number", "_number_first", "_element", "_element_first"):
    ORACLES[f"select_bits{_form}"] = lambda x, y, bit: x if bit else y
for _name in ("clamp", "clamp_high", "clamp_low", "clamp_both"):
    ORACLES[_name] = lambda x, lo, hi: x if np.isnan(x) else min(max(x, lo), hi)
for _name in ("where", "where_second", "where_first", "where_both"):
    ORACLES[_name] = lambda x, y, condition: x if condition else y
for _what, _test in (("finite", math.isfinite), ("inf", math.isinf), ("nan", math.isnan)):
    for _to in ("", "_truth"):
        ORACLES[f"is_{_what}{_to}"] = lambda x, test=_test: float(test(float(x)))


def drawn(rng, kind, count):
    if kind.kind != "float":
        info = np.iinfo(kind.numpy)
        return rng.integers(info.min, info.max, count, kind.numpy, endpoint=True)
    values = rng.standard_normal(count).astype(np.float32) * 4
    values[::5] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], values[::5].size)
    return values.astype(kind.numpy)


def run(template, given):
    """Return what one instruction stores."""
    bench, places = Bench(sub=1, on=CHIP), {}
    for place, operand in enumerate(template.operands()):
        places[operand.name] = 4096 * place
        bench.poke(Mem.UB, 4096 * place, bytes(4096))
        if operand.name in given:
            bench.poke(Mem.UB, 4096 * place, given[operand.name].tobytes())
    bench.do(template, *places.values())
    assert bench.messages == []
    kind = template.compute(given, Registers())["dst"].dtype
    raw = bench.image(Mem.UB).get(places["dst"], kind.itemsize * template.offsets("dst").size)
    made = np.frombuffer(raw, kind)
    if template.name.startswith("compare"):
        made, rest = np.split(np.unpackbits(made, bitorder="little"), [template.count])
        assert not rest.any()
    return made


@pytest.mark.parametrize("name", rows.TENSORS)
def test_functions(name):
    rng = np.random.default_rng(len(name))
    for dtype in map(element_type, rows.TYPES[name, "dtype"]):
        count, tensors = 37, rows.TENSORS[name][1:]
        given, numbers = {}, {}
        for operand in tensors:
            given[operand] = drawn(rng, dtype, count)
        if "condition" in given:
            given["condition"] = rng.integers(0, 2, count).astype(np.uint8)
        if "bits" in given:
            given["bits"] = rng.integers(0, 256, -(-count // 8)).astype(np.uint8)
        for number in rows.NUMBERS.get(name, ()):
            numbers[number] = drawn(rng, dtype, 2)[1:]
        bits = {n: int(v.view(f"u{dtype.size_bytes}")[0]) for n, v in numbers.items()}
        template = instruction_named(name)(dtype=dtype, count=count, **bits)
        assert template.violations(CHIP) == []
        made = run(template, given)
        every = given | {n: np.repeat(v, count) for n, v in numbers.items()}
        if name in rows.FIRSTS:
            every[rows.FIRSTS[name]] = np.repeat(given[rows.FIRSTS[name]][:1], count)
        if "bits" in given:
            every["bits"] = np.unpackbits(given["bits"], bitorder="little")
        order = type(template).inputs
        with np.errstate(all="ignore"):
            wanted = [ORACLES[name](*(every[n][i] for n in order)) for i in range(count)]
        if made.dtype.kind in "iu":
            bits = 8 * made.itemsize
            assert [int(v) % 2**bits for v in made] == [int(v) % 2**bits for v in wanted], dtype
        else:
            wide = np.array(list(map(float, wanted))).astype(made.dtype).astype(np.float32)
            np.testing.assert_array_equal(made.astype(np.float32), wide, err_msg=f"{dtype}")


def test_a_duplicate_reads_its_first_element_alone():
    template = instruction_named("duplicate_first")(dtype=element_type("float32"), count=5)
    assert template.offsets("src").tolist() == [0] * 5
    assert template.offsets("dst").tolist() == [0, 1, 2, 3, 4]


def test_no_elements_cost_nothing():
    template = instruction_named("fma")(dtype=element_type("float16"), count=0)
    assert template.cost(CHIP).busy == 0
