"""The header of mathematics for threads (SIMT), of the table that Python has."""

from cubecore.frontends.cpp.thread_functions import ThreadMath, thread_functions

THREAD_MATH_NAME = "cubecore_thread_math.h"
"""The name under which other headers include it."""
_HEAD = """// Written from thread_functions.py, which has the table. Pages: mathematics of SIMT.
#pragma once

#include "cubecore/simt/rounding.h"

namespace cubecore::simt {

"""


def thread_math_header() -> str:
    """Return the header."""
    rows = [_row(each) for each in thread_functions() if each.body]
    names = dict.fromkeys(each.name for each in thread_functions() if each.body)
    using = "".join(f"using cubecore::simt::{name};\n" for name in names)
    return f"{_HEAD}{''.join(rows)}\n}}  // namespace cubecore::simt\n\n{using}"


def _row(function: ThreadMath) -> str:
    """Return a function of C++."""
    result = "" if function.result == "void" else "return "
    body = function.body
    if function.result == "float" and not body.startswith("::"):
        body = f"static_cast<float>({body})"
    return f"CUBECORE_SIMT {function.declaration} {{ {result}{body}; }}\n"
