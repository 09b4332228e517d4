"""The manual of register instructions: names, types, cycles and what is uncertain."""

import pytest

import cubecore
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.workflows.manual.register_manual import registers_page
from workflows.command import cli

MULS = """\
Muls: register instruction

Multiply by the scalar.

  operands              dst, src, scalar, mask
  types                 int16, uint16, int32, uint32, int64, uint64, float16, float32
  cycles a register     2 of int16, uint16, int32, uint32, int64, uint64; 1 of float16, float32
  latency, cycles       8
  issued                beside another instruction

Names: cpp Reg::Muls, MicroAPI::Muls
Names: c_api asc_mul_scalar
Uncertain: half results may be infinite unless a kernel sets CTRL[60] and leaves CTRL[48] clear
Uncertain: CTRL[53] saturates integers of 8 to 32 bits
Uncertain: the cycles of 64-bit types, which take several instructions, are not published
From: asc-devkit, Reg vector compute
"""


@pytest.mark.parametrize("name", ["Reg::Muls", "MicroAPI::Muls", "AscendC::Reg::Muls"])
def test_a_register_instruction_is_explained(name):
    assert cubecore.explain(name).text == MULS
    assert cubecore.explain(name).kind == "register instruction"


def test_a_name_of_two_instructions_explains_both():
    text = cubecore.explain("Reg::Duplicate").text
    assert text.startswith("Duplicate: register instruction\n\nFill with the scalar.\n")
    assert "\nDuplicate (DuplicateLane): register instruction\n\nFill with lane 0.\n" in text


def test_an_instruction_on_memory_says_that_there_is_one_on_registers():
    text = cubecore.explain("Muls").text
    assert text.endswith(
        "In a vector function of 3510 Muls works on registers: explain Reg::Muls.\n"
    )


def test_an_unknown_register_instruction_is_refused():
    assert "NAME must be" in cli("explain", "Reg::Nothing").err


def test_the_page_has_every_instruction_and_what_is_uncertain():
    page = registers_page()
    for operation in operations().values():
        assert f"\n{operation.doc}.\n" in page
        for text in operation.uncertain:
            assert f"\nUncertain: {text}\n" in page


def test_types_between_which_an_instruction_works_are_told_by_mode():
    text = cubecore.explain("ReduceDataBlock").text
    assert (
        "  types                 SUM: int32; uint32; float16; float32; int16 to int32; "
        "uint16 to uint32; MAX: int16; uint16; int32; uint32; float16; float32; MIN: int16; "
        "uint16; int32; uint32; float16; float32\n"
    ) in text
