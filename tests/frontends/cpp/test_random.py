"""Random kernels in C++ and in Python: the same bytes, findings, counts and times."""

import re

import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import needs_compiler
from frontends.cpp.random_kernels import arrays, cpp_text, drawn, python_kernels

pytestmark = needs_compiler
KERNELS, IN_A_FILE = 500, 25
FILES = [
    pytest.param(first, IN_A_FILE, marks=pytest.mark.sweep)
    for first in range(0, KERNELS, IN_A_FILE)
]
"""First kernel and number of each file; an ordinary run has a small one of its own."""
ORDERS = ("program", "program", "late", "early")


def plain(text):
    """Return a text without the language of the file that it names."""
    return re.sub(r"inline\.(?:cpp|py)", "the file", text)


def answer(kernel, text, order):
    """Return all that a launch leaves: bytes, findings, instructions, cycles, or its error."""
    given = arrays(text)
    try:
        run = kernel.using(trace=True, order=order)[text.blocks](*given)
    except CubecoreError as error:
        return plain(str(error)), [], 0, 0, b""
    findings = [
        (f.id, plain(f.message), f.core, f.count, plain(str(f.location))) for f in run.findings
    ]
    cycles = times_of(run.kernel, (run,), 0).longest.timeline.cycles
    return "", findings, run.issued, cycles, given[2].tobytes()


@pytest.mark.sweep
@pytest.mark.parametrize(("first", "count"), [*FILES, (KERNELS, 5)])
def test_random_kernels_are_their_twins(first, count):
    texts = drawn(first, count)
    module = cubecore.inline(cpp_text(texts), auto_sync=False)
    python = python_kernels(texts, "inline.py")
    for text in texts:
        order = ORDERS[int(text.name[1:]) % 4]
        got = answer(module[text.name], text, order)
        assert got == answer(python[text.name], text, order), "\n".join((*text.cpp, *text.python))
