"""Kernels in C++ that tests write: a frame around a few lines."""

from pathlib import Path
from typing import Any

import pytest

import cubecore
from cubecore.frontends.cpp.compile.compiler import has_compiler

EXAMPLES = Path(__file__).parents[3] / "examples" / "cpp"

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler is here")

FRAME = """#include "kernel_operator.h"
using namespace AscendC;
{before}
extern "C" __global__ __aicore__ void k({parameters}) {{
{body}
}}
"""


def kernel(body: str, parameters: str = "GM_ADDR x", before: str = "", **options: Any) -> Any:
    """Return a kernel `k` whose body begins at line 5 of inline.cpp."""
    text = FRAME.format(body=body, parameters=parameters, before=before)
    return cubecore.inline(text, **options).k
