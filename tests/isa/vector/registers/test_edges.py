"""Edge values of register instructions against the vendor's published tables."""

import math
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call, Form
from cubecore.isa.vector.registers.operations.catalogue import operations

LINES = [
    line
    for line in (Path(__file__).parent / "edges.txt").read_text().splitlines()
    if not line.startswith("#")
]
ROWS = [line for line in LINES if not line.startswith("!")]
DEFECTS = [line for line in LINES if line.startswith("!")]
IEEE, FINITE, SATURATE = 1 << 60 | 1 << 48 | 1 << 59, 1 << 60, 1 << 53
OLDER = {"Log": "Ln"}
INTEGERS = {
    "int4": (-8, 7),
    **{f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (0, 2**n - 1) for n in (8, 16, 32, 64)},
}
LARGEST = {
    "float16": 65504.0,
    "bfloat16": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
    "float32": float(np.finfo(np.float32).max),
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float4_e2m1fn": 6.0,
    "float4_e1m2": 1.75,
}
SMALLEST = {"float8_e8m0fnu": 2.0**-127}
CODES = {"int4": "b", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i"}
CODES |= {"uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f"}
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def number(text, kind):
    """Return a value by its text."""
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return {"MAX": high, "MIN": low}.get(text) if text in {"MAX", "MIN"} else int(float(text))
    named = {"MAX": LARGEST[kind], "MIN": SMALLEST.get(kind, -LARGEST[kind])}
    return named[text] if text in named else float(text.removeprefix("~"))


def lane(value, kind):
    """Return the bytes of a lane; of 4 bits those of two lanes."""
    if kind == "int4":
        return bytes([(value & 15) * 17])
    if kind.startswith("float4"):
        values = E2M1 if "e2m1" in kind else [n / 4 for n in range(8)]
        return bytes([(values.index(abs(value)) | (8 if value < 0 else 0)) * 17])
    if kind in CODES:
        return struct.pack("<" + CODES[kind], value)
    return np.array(value).astype(getattr(ml_dtypes, kind)).tobytes()


def read(register, kind):
    """Return the lanes of a register as numbers."""
    data = register.reshape(-1).tobytes()
    if kind == "int4":
        return [n - 16 if n > 7 else n for byte in data for n in (byte & 15, byte >> 4)]
    if kind.startswith("float4"):
        values = E2M1 if "e2m1" in kind else [n / 4 for n in range(8)]
        nibbles = [n for byte in data for n in (byte & 15, byte >> 4)]
        return [math.copysign(values[n & 7], -1 if n & 8 else 1) for n in nibbles]
    if kind in CODES:
        code = CODES[kind]
        return list(struct.unpack(f"<{256 // struct.calcsize(code)}{code}", data))
    return [float(v) for v in np.frombuffer(data, getattr(ml_dtypes, kind))]


def register(value, kind):
    """Return a register full of one value."""
    one = lane(value, kind)
    return np.frombuffer(one * (256 // len(one)), np.uint8)[None]


def run(name, kinds, operands, ctrl):
    """Return the results of an instruction on registers full of its operands."""
    name, _, mode = name.partition(".")
    operation = operations()[OLDER.get(name, name)]
    source, target = kinds
    mode = {
        "Cast": "ZERO.NO_SAT.CAST_RINT",
        "Truncate": "CAST_RINT",
        "ExpSub": "ZERO",
        "MulsCast": "ZERO",
    }.get(name, mode)
    if name == "Arange":
        mode = "INCREASE_ORDER"
    call = Call(operation, element_type(target), element_type(source), mode, ctrl)
    scalar, registers = np.zeros(1, np.uint64), [register(v, source) for v in operands]
    of_scalar = {Form.SCALAR, Form.COMPARE_SCALAR, Form.AXPY, Form.INDEX}
    if operation.form in of_scalar or name == "MulsCast":
        at = 0 if operation.form is Form.INDEX else 1
        bits = lane(operands[at], source)
        scalar = np.array([int.from_bytes(bits, "little")], np.uint64)
        del registers[at]
    if operation.form is Form.CARRIED:
        carries = name == "SubC" or source == "uint32"  # so the rows of AddC say
        registers.append(np.full((1, 256), carries))
        return operation.compute(call, registers, None, scalar)[1:]
    return operation.compute(call, registers, None, scalar)


def same(got, wanted, text):
    """Return whether a value is that of a table, to the sign of a zero."""
    if isinstance(wanted, int):
        return got == wanted
    if math.isnan(wanted):
        return math.isnan(got)
    if text.startswith("~"):
        return math.isclose(got, wanted, rel_tol=1e-3)
    return got == wanted and math.copysign(1, got) == math.copysign(1, wanted)


def expected(text, count):
    """Return the lanes that a table tells, as texts."""
    lanes = []
    for part in text.split():
        if ".." in part:
            first, last = (int(n) for n in part.split(".."))
            lanes += [str(n) for n in range(first, last + 1)]
        elif "*" in part:
            times, value = part.split("*")
            lanes += int(times) * [value]
        else:
            lanes.append(part)
    return lanes * (count if len(lanes) == 1 else 1)


def cases(row):
    """Yield instruction, types, operands, and the texts of both results."""
    left, _, right = row.partition(" = ")
    plain, _, clamped = right.partition(" | ")
    (name, kinds, *operands) = left.split()
    cut = operands.index(":") if ":" in operands else len(operands)
    first, second = operands[:cut], operands[cut + 1 :] or [""]
    for kind in ("float16", "float32") if kinds == "floats" else (kinds,):
        source, _, target = kind.partition(">")
        target = target or source
        for x in first:
            if name.startswith("Compare"):
                for y, bit in zip(second, plain.split(), strict=True):
                    yield name, (source, target), [x, y], bit, bit
                continue
            for y in second:
                texts = [*x.split(","), *([y] if y else [])]
                anything = ["MIN", "-0", "0", "MAX", "inf", "-inf", "nan"] if "?" in texts else [""]
                for value in anything:
                    operands = [value if text == "?" else text for text in texts]
                    yield name, (source, target), operands, plain, clamped or plain


def check(case):
    """Return what is wrong with a case, "" if nothing."""
    name, kinds, texts, plain, clamped = case
    values = [number(text, kinds[0]) for text in texts]
    whole = kinds[1] in INTEGERS
    if name == "Mull":
        low, high = (read(each, kinds[1])[0] for each in run(name, kinds, values, 0))
        wanted = number(plain, kinds[1]), number(clamped, kinds[1])
        return "" if (low, high) == wanted else f"{case}: {low}, {high}"
    modes = [(IEEE, plain)]
    cast = name == "Cast"
    modes += [
        (SATURATE if whole and not cast else FINITE, plain if kinds[1] == "float32" else clamped)
    ]
    for ctrl, text in modes:
        if text == "blank":
            continue
        result = run(name, kinds, values, 0 if ctrl == IEEE and not cast else ctrl)[0]
        if name.startswith("Compare"):
            got, wanted = [int(result[0, 0])], [text]
        elif name.startswith(("Reduce", "Pair")):
            got, wanted = read(result, kinds[1])[:1], [text]
        elif name == "Arange":
            got = read(result, kinds[1])
            wanted = expected(text, len(got))
        else:
            got, wanted = read(result, kinds[1])[:1], [text]
        kind = "int32" if name.startswith("Compare") else kinds[1]
        if not all(same(g, number(w, kind), w) for g, w in zip(got, wanted, strict=True)):
            return f"{case}: {got[:3]} under {ctrl >> 48:x}"
    return ""


def failures(rows):
    """Return what is wrong with rows of declared instructions."""
    found = []
    for row in rows:
        name = OLDER.get(row.split()[0].partition(".")[0], row.split()[0].partition(".")[0])
        if name in operations():
            found += filter(None, map(check, cases(row)))
    return found


NAMES = sorted({row.split()[0] for row in ROWS})


def test_every_row_was_read():
    values = sum(1 for line in LINES for _ in cases(line.removeprefix("!").partition(" # ")[0]))
    assert (len(LINES), len(DEFECTS), values) == (717, 29, 4184)


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_edges(name):
    assert failures(row for row in ROWS if row.split()[0] == name) == []


@pytest.mark.parametrize("line", DEFECTS)
def test_a_defect_of_the_page_has_a_reason_and_differs(line):
    row, _, reason = line.removeprefix("!").partition(" # ")
    assert reason
    assert len(failures([row])) >= 1
