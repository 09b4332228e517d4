"""Element types that register instructions take, and the refusal of others."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries

WHERE = Location("kernel.cpp", 7, "body")
B8, B16, B32, B64 = "int8 uint8", "int16 uint16", "int32 uint32", "int64 uint64"
EVERY = f"{B8} {B16} {B32} {B64} float16 bfloat16 float32"
FLOATS = "float16 float32"
PAGES = {
    **dict.fromkeys(("Add", "Sub", "Adds", "Max", "Min", "Maxs", "Mins"), EVERY),
    **dict.fromkeys(("Compare", "Compares", "Select", "Move", "Interleave", "DeInterleave"), EVERY),
    **dict.fromkeys(("Mul", "MulAddDst"), f"{B16} {B32} {B64} float16 bfloat16 float32"),
    **dict.fromkeys(("Muls", "Div"), f"{B16} {B32} {B64} {FLOATS}"),
    **dict.fromkeys(("Abs", "Neg"), f"int8 int16 int32 int64 {FLOATS}"),
    "Relu": f"int32 int64 {FLOATS}",
    **dict.fromkeys(("Exp", "Ln", "Log2", "Log10", "Sqrt", "Prelu", "LeakyRelu"), FLOATS),
    "AbsSub": f"int64 {FLOATS}",
    "Axpy": f"{B64} {FLOATS}",
    **dict.fromkeys(("MulDstAdd", "Truncate"), "float16 bfloat16 float32"),
    "PairReduceElem": FLOATS,
    **dict.fromkeys(("AddC", "SubC", "AddCarry", "SubCarry", "Mull"), B32),
    **dict.fromkeys(("And", "Or", "Xor"), f"{B8} {B16} {B32} {B64}"),
    **dict.fromkeys(
        ("ShiftLeft", "ShiftRight", "ShiftLefts", "ShiftRights"), f"{B8} {B16} {B32} {B64}"
    ),
    "Not": f"{B8} {B16} {B32} {B64} {FLOATS}",
    "Squeeze": f"{B8} {B16} {B32} {FLOATS}",
    "Unsqueeze": f"{B8} {B16} {B32}",
    "Arange": f"int8 int16 int32 int64 {FLOATS}",
}
BYTES_AND_LESS = "int4 float4_e2m1fn float4_e1m2 hifloat8 float8_e4m3fn float8_e5m2 float8_e8m0fnu "
MOVED = BYTES_AND_LESS + EVERY
PAGES |= dict.fromkeys(("LoadAlign", "StoreAlign"), MOVED)
PAGES |= dict.fromkeys(("LoadBlock", "StoreBlock"), MOVED.replace(B64, ""))
ALIKE = "int16>int16 uint16>uint16 float16>float16 float32>float32 int32>int32 uint32>uint32"
SUMS = "int16>int32 uint16>uint32 float16>float16 float32>float32 int32>int32 uint32>uint32"
LONG = " int64>int64 uint64>uint64"
PAIRS = {
    ("Reduce", "SUM"): SUMS + LONG,
    ("Reduce", "MAX"): ALIKE + LONG,
    ("ReduceDataBlock", "SUM"): SUMS,
    ("ReduceDataBlock", "MIN"): ALIKE,
    ("ExpSub", "ZERO"): "float16>float32 float32>float32",
    ("Pack", "LOWEST"): (
        "int16>uint8 uint16>uint8 int32>uint16 uint32>uint16 int64>uint32 uint64>uint32"
    ),
    ("UnPack", "LOWEST"): (
        "int8>int16 uint8>uint16 int16>int32 uint16>uint32 int32>int64 uint32>uint64"
    ),
}
CASTS = """
int4>int16,float16,bfloat16 int8>int16,float16,int32 uint8>uint16,float16,uint32
float4_e2m1fn>bfloat16 float4_e1m2>bfloat16 hifloat8>float16,float32 float8_e8m0fnu>bfloat16
float8_e5m2>float32 float8_e4m3fn>float32 int16>int4,uint8,float16,int32,uint32,float32
uint16>uint8,uint32 float16>int4,int8,uint8,hifloat8,int16,bfloat16,int32,float32
bfloat16>float4_e2m1fn,float4_e1m2,float8_e8m0fnu,float16,int32,float32
int32>uint8,int16,uint16,float32,int64 uint32>uint8,int16,uint16
float32>hifloat8,float8_e5m2,float8_e4m3fn,int16,float16,bfloat16,int32,int64 int64>int32,float32
"""
KINDS = [
    *("int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "hifloat8", "float8_e4m3fn", "float8_e5m2"),
    *("float8_e8m0fnu", "float4_e2m1fn", "float4_e1m2"),
]


def call(name, target, source=None, mode=""):
    return Call(operations()[name], element_type(target), element_type(source or target), mode)


def program(*calls):
    """Return a program of calls, one a line from 11 on."""
    count = len(calls)
    nothing = np.zeros(count, np.uint32)
    return RegisterProgram(
        Entries(
            calls,
            tuple(Location("kernel.cpp", 11 + n, "body") for n in range(count)),
            np.arange(count),
            np.arange(count),
            np.stack([np.arange(1, count + 1, dtype=np.uint32), nothing], -1),
            np.zeros((count, 3), np.uint32),
            nothing,
            nothing,
            np.zeros(count, np.int64),
            np.zeros(count, np.uint64),
        ),
        WHERE,
    )


@pytest.mark.parametrize("name", PAGES)
def test_the_types_are_those_of_the_page(name):
    taken = {kind for kind in KINDS if operations()[name].takes(call(name, kind))}
    assert taken == set(PAGES[name].split())


@pytest.mark.parametrize(("name", "mode"), PAIRS)
def test_the_pairs_of_types_are_those_of_the_page(name, mode):
    operation = operations()[name]
    taken = {
        f"{source}>{target}"
        for source in KINDS
        for target in KINDS
        if operation.takes(call(name, target, source, mode))
    }
    assert taken == set(PAIRS[name, mode].split())


def test_the_conversions_are_those_of_the_page():
    listed = {
        (row.split(">")[0], target)
        for row in CASTS.split()
        for target in row.split(">")[1].split(",")
    }
    mode = "ZERO.SAT.CAST_RINT"
    taken = {
        (source, target)
        for source in KINDS
        for target in KINDS
        if operations()["Cast"].takes(call("Cast", target, source, mode))
    }
    assert taken == listed


def test_a_program_of_listed_types_is_taken():
    assert len(program(call("Add", "float32"), call("Muls", "float16"))) == 2


def test_a_type_that_the_page_lacks_is_refused_with_its_line():
    with pytest.raises(RequestError) as caught:
        program(call("Add", "float32"), call("Muls", "bfloat16"))
    assert str(caught.value) == (
        "kernel.cpp:12 (body): Muls must take one of int16, uint16, int32, uint32, int64, uint64, "
        "float16, float32, got bfloat16"
    )


def test_a_pair_of_types_that_the_page_lacks_is_refused_with_its_line():
    with pytest.raises(RequestError) as caught:
        program(call("Pack", "uint8", "int32", "LOWEST"))
    assert str(caught.value) == ("kernel.cpp:11 (body): Pack must give uint16 of int32, got uint8")


def test_a_conversion_that_the_page_lacks_is_left_to_the_checks():
    assert len(program(call("Cast", "int8", "float32", "ZERO.SAT.CAST_RINT"))) == 1


def test_every_refused_call_is_told():
    with pytest.raises(RequestError) as caught:
        program(call("Reduce", "int16", "int16", "SUM"), call("Exp", "int32"))
    assert [str(each) for each in caught.value.violations] == [
        "kernel.cpp:11 (body): Reduce must give int32 of int16, got int16",
        "kernel.cpp:12 (body): Exp must take one of float16, float32, got int32",
    ]
