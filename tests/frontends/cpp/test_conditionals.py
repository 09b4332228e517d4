"""Conditionals of a half and a float, which have a float as they have on the chip."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.rewriting.tokens import with_common_types
from frontends.cpp.cpp_kernels import cli, kernel, needs_compiler, write_files

BEFORE = """
#define CHOSEN(c, a, b) ((c) ? (a) : \\
                         (b))
template <typename T> float larger(T a, float b) { return a > b ? a : b; }
template <typename A, typename B> struct Pair { static float first(A a, B) { return a; } };
"""
BODY = """
  half h = 1.0009765625; bfloat16_t b = 3.0f; float f = 1.0001f; int i = 7; double d = 0.1;
  volatile int zero = 0;
  bool no = zero != 0, yes = !no;
  float made[] = {
    yes ? f : h, no ? f : h,
    (no ? h : 2.0f) + 1, yes ? h : d > 0 ? f : h,
    no ? h : no ? b : f,
    CHOSEN(no, h, f), larger(h, 0.5f), larger(h, 4.0f),
    yes
        ? h  // a comment?
        : 'a' == 0 ? f : 0.25f,
    yes ? Pair<half, float>::first(h, f) : f, no ? f : b, yes ? b : h,
    float(no ? i : h), float((no ? h : i) / h),
  };
  static_assert(sizeof(yes ? f : h) == 4, "a float");
  static_assert(sizeof(yes ? i : h) == 2, "a half");
  half kept = 2; float other = 3;
  (no ? kept : h) = half(9);
  GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  for (int n = 0; n < 14; ++n) to.SetValue(n, made[n]);
  to.SetValue(14, h);
  DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(to);
"""


@needs_compiler
def test_a_half_and_a_float_are_a_float():
    x = np.zeros(16, np.float32)
    assert kernel(BODY, before=BEFORE)[1](x).findings == ()
    h, f = np.float32(1.0009765625), np.float32(1.0001)
    expected = [f, h, 3, h, f, f, h, 4, h, h, 3, 3, h, np.float16(7) / np.float16(h), 9]
    assert x[:15].tolist() == np.array(expected, np.float32).tolist()


@needs_compiler
def test_a_program_and_its_header_are_taken_likewise(tmp_path):
    files = {
        "chosen.h": "inline __aicore__ float chosen_of(half h, float f, bool c)\n"
        "{ return c ? h : f; }\n",
        "main.asc": """#include "acl/acl.h"
#include "kernel_operator.h"
#include "chosen.h"
#include <cstdio>
__global__ __vector__ void k(GM_ADDR x) {
  ((__gm__ float*)x)[0] = chosen_of(half(3), 1.0f, x != nullptr);
}
int main() {
  void* device; float host = 0;
  aclInit(nullptr);
  aclrtMalloc(&device, 4, ACL_MEM_MALLOC_HUGE_FIRST);
  k<<<1, nullptr, nullptr>>>((GM_ADDR)device);
  aclrtMemcpy(&host, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("made %g\\n", host);
}
""",
    }
    write_files(tmp_path, files)
    assert "made 3" in cli(tmp_path, "run", "main.asc")[1]
    assert cli(tmp_path, "c++", "main.asc", "-o", "demo")[0] == 0
    assert "made 3" in cli(tmp_path, "run", "demo")[1]


@needs_compiler
def test_operands_without_a_common_type_are_refused_at_their_line():
    with pytest.raises(CubecoreError) as refused:
        kernel("half h = 1;\nhalf* p = &h;\nauto r = x ? h : p;\n(void)r;")
    assert "inline.cpp:7 does not compile: operands to '?:' have" in str(refused.value)


def test_lines_and_other_texts_stay():
    text = '#define M(a) (a ? 1 : \\\n  2)  // x ? y : z\nint f() {\n  return a ? "?:" :\n b; }\n'
    assert with_common_types(text, {9}) == text
    made = with_common_types(text, {1, 4})
    assert made.count("\n") == text.count("\n")
    assert made.count("chosen") == 4
    assert "// x ? y : z" in made
    assert with_common_types("case a ? 1 : 2: x;", {1}).endswith(": x;")
