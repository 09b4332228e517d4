"""The numbered steps of docstrings are walked: each named function is entered, in that order."""

import inspect
import re
import sys
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.frontends.cpp.launch import kernels as cpp_kernels
from cubecore.machine import engines
from cubecore.machine.group import kernels as group_kernels
from cubecore.timing import launch as timing_launch
from cubecore.workflows import plan as planning

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_STEP = re.compile(r"\d+\. ")
_NAME = re.compile(r"`([a-z_0-9]+(?:\.\w+)+)`")


def steps(function):
    """Return the names in a function's numbered steps, in their order, and those beside them."""
    notes = inspect.getdoc(function).partition("Notes\n-----\n")[2]
    numbered, _, rest = notes.partition("\n\n")
    return _NAME.findall(numbered), _NAME.findall(rest)


def code_of(name):
    """Return the code of a function or method that is named from the package on."""
    module, parts = "cubecore", name.split(".")
    while parts:
        try:
            import_module(f"{module}.{parts[0]}")
        except ModuleNotFoundError:
            break
        module = f"{module}.{parts.pop(0)}"
    thing = sys.modules[module]
    for part in parts:
        thing = getattr(thing, part)
    return inspect.unwrap(thing).__code__


def entered(request):
    """Return the codes that a request enters, each with when it was first."""
    order = {}

    def enter(frame, event, _):
        if event == "call":
            order.setdefault(frame.f_code, len(order))

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        request()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return order


def added():
    """Give a launch of the C++ example."""
    kernel = cubecore.load(EXAMPLES / "cpp" / "vector_add.cpp").add_queued
    x = np.ones(2048, np.float32)
    return lambda: kernel[2](x, x, np.zeros_like(x), 1024)


def with_tiling(verb):
    """Give a request for a product in a tiling."""
    tiling = cubecore.plan(m=256, n=512, k=512, search="quick").tiling
    return lambda: verb(m=256, n=512, k=512, tiling=tiling)


WALKS = {
    planning.plan_request: lambda: lambda: cubecore.plan(m=1024, n=1536, k=2048),
    timing_launch.time_launch: lambda: with_tiling(cubecore.time),
    engines.run_launch: lambda: with_tiling(cubecore.run),
    group_kernels.run_together: added,
    cpp_kernels.CppKernel: added,
}


@pytest.mark.parametrize("function", WALKS, ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_the_steps_of_a_docstring_are_those_that_are_taken(function):
    names, beside = steps(function)
    assert len(names) >= 3
    assert all(code_of(name) for name in beside)
    order = entered(WALKS[function]())
    taken = [name for name in names if code_of(name) in order]
    assert taken == names
    # A step's first name says when it begins; others in it are parts, which may come at any time.
    first = [each[0] for each in map(_NAME.findall, _STEP.split(numbered(function))) if each]
    times = [order[code_of(name)] for name in first]
    assert times == sorted(times), dict(zip(first, times, strict=True))


def numbered(function):
    """Return the text of the steps."""
    notes = inspect.getdoc(function).partition("Notes\n-----\n")[2]
    return notes.partition("\n\n")[0]
