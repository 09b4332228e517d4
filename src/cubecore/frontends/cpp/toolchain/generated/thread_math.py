"""The header of mathematics for threads (SIMT), of the table that Python has."""

import math

import numpy as np

from cubecore.dtypes import element_type
from cubecore.frontends.cpp.thread_functions import ThreadMath, thread_functions
from cubecore.numerics.codes import HIFLOAT8, numbers

THREAD_MATH_NAME = "cubecore_thread_math.h"
"""The name under which other headers include it."""
_SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "hifloat8")
_HEAD = """// Written from thread_functions.py, which has the table. Pages: mathematics of SIMT.
#pragma once

#include "cubecore/simt/rounding.h"

namespace cubecore::simt {

"""


def thread_math_header() -> str:
    """Return the header."""
    rows = [_row(each) for each in thread_functions() if each.body]
    names = dict.fromkeys(each.name for each in thread_functions() if each.body)
    values = "".join(map(_values, _SMALL_FLOATS))
    using = "".join(f"using cubecore::simt::{name};\n" for name in names)
    return f"{_HEAD}{values}{''.join(rows)}\n}}  // namespace cubecore::simt\n\n{using}"


def _row(function: ThreadMath) -> str:
    """Return a function of C++."""
    result = "" if function.result == "void" else "return "
    body = function.body
    if function.result == "float" and not body.startswith("::"):
        body = f"static_cast<float>({body})"
    return f"CUBECORE_SIMT {function.declaration} {{ {result}{body}; }}\n"


def _values(name: str) -> str:
    """Return the numbers of the codes without a sign of a type of 8 bits."""
    codes = np.arange(128, dtype=np.uint8)
    kind = element_type(name)
    values = numbers(codes, kind) if kind is HIFLOAT8 else codes.view(kind.numpy)
    texts = [_number(float(each)) for each in values.astype(np.float32)]
    return f"constexpr float {name}_values[] = {{{', '.join(texts)}}};\n"


def _number(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nanf("")'
    return "__builtin_inff()" if math.isinf(value) else f"{value.hex()}f"
