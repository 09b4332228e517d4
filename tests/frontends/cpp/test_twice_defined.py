"""Functions that one header defines for the host and another one, alike, for kernels."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import needs_compiler, write_files

pytestmark = needs_compiler
HEADER = """#pragma once
static const int HALF_OF_{name} = {half};
#define UNRELATED(x) inline int twice(int a) {{ \\
  return x; }}
namespace tools {{
namespace inner {{
template <typename T>
{word} inline T
ceil_of(T a, T b)
{{
  if (b == 0) {{ return a; }}  // {word}
  return (a + b - 1) / b;
}}
}}
{word} int half_of(int a) {{ return a / HALF_OF_{name}; }}
struct Own{name} {{ {word} int twice(int a) {{ return 2 * a; }} }};
inline int line_of_{name}() {{ return __LINE__; }}
}}
"""
KERNEL = """#include "kernel_operator.h"
{includes}
namespace tools {{ inline int both() {{ return inner::ceil_of(9, 4); }} }}
extern "C" __global__ __aicore__ void k(GM_ADDR z) {{
  AscendC::GlobalTensor<int32_t> to;
  to.SetGlobalBuffer((__gm__ int32_t*)z, 8);
  to.SetValue(0, tools::both());
  to.SetValue(1, tools::inner::ceil_of(int16_t(9), int16_t(2)));
  to.SetValue(2, tools::half_of(14));
  to.SetValue(3, tools::line_of_host());
  to.SetValue(4, tools::line_of_device());
}}
"""
INCLUDES = ['#include "host.h"', '#include "device.h"']


def written(folder, includes, half):
    """Write a kernel whose headers define the same functions; return its path."""
    files = {
        "host.h": HEADER.format(word="", name="host", half=2),
        "device.h": HEADER.format(word="__aicore__", name="device", half=half),
        "k.cpp": KERNEL.format(includes="\n".join(includes)),
    }
    write_files(folder, files)
    return folder / "k.cpp"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("includes", [INCLUDES, INCLUDES[::-1]], ids=["host first", "device first"])
def test_functions_that_are_alike_stand_once(tmp_path, includes):
    z = np.zeros(5, np.int32)
    path = written(tmp_path, includes, 2)
    assert cubecore.load(path).k.changed(outputs=("z",))[1](z).findings == ()
    line = HEADER.splitlines().index("inline int line_of_{name}() {{ return __LINE__; }}") + 1
    assert z.tolist() == [3, 5, 7, line, line]


def test_functions_that_differ_are_refused_at_the_second(tmp_path):
    path = written(tmp_path, INCLUDES, 4)
    line = next(n for n, text in enumerate(HEADER.splitlines(), 1) if "half_of" in text)
    with pytest.raises(RequestError) as caught:
        cubecore.load(path).k[1](np.zeros(5, np.int32))
    again = "redefinition of 'int tools::half_of(int)'"
    assert str(caught.value).startswith(f"{path.parent}/device.h:{line} does not compile: {again}")
