"""Calls that headers have of whole families of instructions: their text, and by which names."""

import re

from cubecore.frontends.cpp.toolchain.api_names import provided
from cubecore.frontends.cpp.toolchain.generated.class_calls import with_calls
from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts
from cubecore.isa.vector.elementwise import binary, fused, unary


def test_a_use_is_written_for_each_instruction_of_a_family_in_order():
    text = with_calls('CUBECORE_EACH(Unary, CUBECORE_UNARY(cpp, "c_api"))\n')
    assert text.startswith('CUBECORE_UNARY(Abs, "asc_abs")\nCUBECORE_UNARY(Exp, "asc_exp")\n')
    assert text.count("\n") == len(unary._UNARY)


def test_a_call_that_the_header_has_by_hand_is_left_out():
    declared = "CUBECORE_EACH(Shift, SHIFT(cpp))\ninline void ShiftRight(int) {}\n"
    assert with_calls(declared) == "SHIFT(ShiftLeft)\ninline void ShiftRight(int) {}\n"


def test_an_instruction_without_the_name_is_left_out():
    assert with_calls("CUBECORE_EACH(MultiplyConvert, X(cpp, c_api))\n") == ""
    assert with_calls("CUBECORE_EACH(MultiplyConvert, X(cpp, name))\n") == "X(MulCast, vmulconv)\n"


def test_headers_have_a_call_for_every_name_of_the_class_api_in_these_families():
    names = provided()
    tables = {"unary": (unary._UNARY, unary._SCALAR, unary._SHIFTS), "binary": (binary._TABLE,)}
    for header, families in tables.items():
        declared = {member.cpp for family in families for member in family}
        assert declared <= {*names[f"cubecore/basic/{header}.h"]}
    fused_calls = {member.cpp for _, member in fused._TABLE} - {"Axpy"}
    assert fused_calls <= {*names["cubecore/basic/binary.h"]}


def test_no_header_keeps_a_family_that_was_not_understood():
    assert not [name for name, text in compiled_texts().items() if "CUBECORE_EACH" in text]


def test_built_in_calls_of_these_families_are_written_as_well():
    text = compiled_texts()["cubecore/intrinsics/common.h"]
    written = re.findall(r'^CUBECORE_BINARY\((\w+), "(\w+)"\)$', text, re.MULTILINE)
    assert written == [(member.name, member.c_api) for member in binary._TABLE]
