"""Constructors that are written from a struct's fields: their text, and that nothing is left."""

import pytest

from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.toolchain.generated import constructors
from cubecore.frontends.cpp.toolchain.generated.constructors import (
    has_constructors,
    with_constructors,
)

DECLARED = """struct CopyParams {
  uint16_t count = 1;
  int64_t stride = 0;
  bool pads = false;
  CUBECORE_TAKES(count, uint32_t stride, [pads])
};
"""
WRITTEN = """struct CopyParams {
  uint16_t count = 1;
  int64_t stride = 0;
  bool pads = false;
  CopyParams() = default;
  CopyParams(uint16_t countIn, uint32_t strideIn, bool padsIn = false)
      : count(countIn), stride(strideIn), pads(padsIn) {}
};
"""


def test_the_example_of_the_docstring_is_what_is_written():
    assert with_constructors(DECLARED) == WRITTEN
    for line in (DECLARED + WRITTEN).splitlines():
        assert line in constructors.__doc__


LISTS = """struct Lists {
  uint16_t lengths[4] = {0, 0};
  Tensor<T> first;
  constexpr CUBECORE_TAKES(lengths, first)
  CUBECORE_TAKES(lengths)
};
"""
WRITTEN_LISTS = """struct Lists {
  uint16_t lengths[4] = {0, 0};
  Tensor<T> first;
  Lists() = default;
  constexpr Lists(const uint16_t lengthsIn[4], const Tensor<T>& firstIn)
      : first(firstIn) {
    for (uint32_t n = 0; n < 4; ++n) lengths[n] = lengthsIn[n];
  }
  Lists(const uint16_t lengthsIn[4]) {
    for (uint32_t n = 0; n < 4; ++n) lengths[n] = lengthsIn[n];
  }
};
"""


def test_an_array_is_copied_in_the_body_and_a_struct_of_a_template_is_taken_by_reference():
    assert with_constructors(LISTS) == WRITTEN_LISTS


def test_without_needed_arguments_there_is_no_other_default_constructor():
    declared = "struct Trait {\n  bool on = true;\n  CUBECORE_TAKES([on])\n};\n"
    assert "default;" not in with_constructors(declared)
    assert "Trait(bool onIn = true)" in with_constructors(declared)


def test_a_name_that_is_no_field_is_an_error():
    with pytest.raises(KeyError, match="later"):
        with_constructors("struct A {\n  int first = 0;\n  CUBECORE_TAKES(later)\n};\n")


def test_no_header_keeps_a_declaration_that_was_not_understood():
    texts = [path.read_text("utf-8") for path in INCLUDE.rglob("*.h")]
    declared = [text for text in texts if has_constructors(text)]
    assert len(declared) > 3
    assert [text for text in texts if "CUBECORE_TAKES(" in text] == declared
    assert not any("CUBECORE_TAKES" in with_constructors(text) for text in declared)
    assert all(len(row) <= 100 for text in declared for row in with_constructors(text).splitlines())
