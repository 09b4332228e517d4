"""C++ kernels beside their Python twins, and their compilation beside an empty program's.

Prints one JSON object. `compile`: CPU of compiling a kernel's file with the precompiled header over
that of an empty program with <vector> and <string>, compiled and linked. `unchanged`: CPU of
`cubecore run` of a compiled file over that of a Python script that launches the twin. `issues` and
`transport`: instructions a CPU second over those of the twin, with the usual checks, and recorded
alone; `mix` and `flash_attention` likewise of the mix examples. `examples`: CPU of a launch over
that of the twin, of each example that tests run beside its twin, on all cores of a chip;
`slowest_example` is the largest of them. Medians of pairs that take turns.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from targets import against, arguments

import cubecore
from cubecore.frontends.cpp.rewriting.source import overlay, source_of
from cubecore.frontends.cpp.toolchain.build import macros_of, precompiled, unit_command
from cubecore.frontends.cpp.toolchain.cache import folder
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.machine.group import kernels

ROOT = Path(__file__).resolve().parents[1]
CPP, PYTHON = ROOT / "examples" / "cpp", ROOT / "examples" / "kernels"
TARGETS = {
    "compile": 3.0,
    "unchanged": 1.1,
    "issues": 3.0,
    "transport": 8.0,
    "mix": 1.0,
    "flash_attention": 2.0,
    "slowest_example": 1.0,
}
AMOUNT = 8
"""Times the work that a block of a test's case has."""
TILE, SMALL = "TILE = 4096", "TILE = 16"
EMPTY = "#include <vector>\n#include <string>\nint main() {}\n"


def spent() -> float:
    """Return the CPU of this process and of those that have ended."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in own)


def ratio(repeats: int, first: Callable[[], Any], second: Callable[[], Any]) -> float:
    """Return the median of first's CPU over second's, in turns."""
    found = []
    for _ in range(repeats):
        marks = [spent()]
        for work in (first, second):
            work()
            marks.append(spent())
        found.append((marks[1] - marks[0]) / (marks[2] - marks[1]))
    return statistics.median(found)


def compilation(repeats: int, work: Path) -> float:
    """Return the compilation of the example with most instructions over an empty program's."""
    (work / "empty.cpp").write_text(EMPTY)
    source = source_of(CPP / "layernorm.cpp")
    macros = macros_of("2201", "vector")
    precompiled(macros)
    code = overlay(source, work)
    made = compiler()
    unit = [*made.command, *made.flags(), *(f"-D{macro}" for macro in macros)]
    unit += unit_command(source, code, ("layernorm",), macros, work)
    unit += ["-shared", "-o", str(work / "unit.so")]
    empty = [*made.command, "-std=c++17", "-O1", str(work / "empty.cpp"), "-o", str(work / "empty")]
    return ratio(
        repeats,
        lambda: subprocess.run(unit, check=True),
        lambda: subprocess.run(empty, check=True),
    )


SCRIPT = """import runpy
import numpy as np
twin = runpy.run_path({path!r})
x = np.load("x.npy")
twin["add_doubled"][8](x, x, np.zeros_like(x), x.size // 8)
"""


def start(repeats: int, work: Path) -> float:
    """Return a command with an unchanged file over one with its twin."""
    np.save(work / "x.npy", np.zeros(8 * 4096, np.float32))
    (work / "twin.py").write_text(SCRIPT.format(path=str(PYTHON / "vector_add.py")))
    run = [sys.executable, "-m", "cubecore", "run"]
    cpp = [*run, str(CPP / "vector_add.cpp"), "--entry", "add_static", "--blocks", "8"]
    for given in ("x=x.npy", "y=x.npy", "z=x.npy", "share=4096"):
        cpp += ["--arg", given]
    told: dict[str, Any] = {"cwd": work, "capture_output": True}
    subprocess.run(cpp, check=True, **told)
    return ratio(
        repeats,
        lambda: subprocess.run(cpp, check=True, **told),
        lambda: subprocess.run([*run, "twin.py"], check=True, **told),
    )


Launched = tuple[Any, Any, tuple[Any, ...], int]
"""A kernel, its twin, the arguments of both, and the blocks."""


def examples() -> dict[str, Launched]:
    """Return every example that tests run beside its twin, by its name."""
    sys.path.insert(0, str(ROOT / "tests"))
    from frontends.cpp.example_cases import CASES

    found = {}
    for (file, name), case in CASES.items():
        kernel = cubecore.load(CPP / f"{file}.cpp")[name]
        blocks = 40 if kernel.kind == "vector" else 20
        made = case(blocks, AMOUNT)
        found[name] = kernel, made.twin, made.arguments, blocks
    return found


def issuing() -> Launched:
    """Return the vector add with tiles so small that its instructions are all it costs."""
    python: dict[str, Any] = {"__name__": "vector_add"}
    text = (PYTHON / "vector_add.py").read_text().replace(TILE, SMALL)
    exec(compile(text, "vector_add", "exec"), python)  # noqa: S102 - our own example
    x, y = python["inputs"](40 * 1024 * 16)
    source = cubecore.inline((CPP / "vector_add.cpp").read_text().replace(TILE, SMALL))
    return source["add_static"], python["add_doubled"], (x, y, np.zeros_like(x), 1024 * 16), 40


def launches(repeats: int, launched: Launched) -> float:
    """Return the CPU of a launch over that of its twin, both launched before."""
    made, twin, given, blocks = launched
    works = [lambda kernel=kernel: kernel[blocks](*given) for kernel in (made, twin)]
    for work in works:
        work()
    return ratio(repeats, *works)


def main() -> None:
    repeats = arguments(__doc__ or "", repeats=5).parse_args().repeats
    os.environ["CUBECORE_CACHE"] = str(folder().parent)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        figures = {"compile": compilation(repeats, work), "unchanged": start(repeats, work)}
    checked = {name: launches(repeats, each) for name, each in examples().items()}
    figures["issues"] = 1 / launches(repeats, issuing())
    figures["mix"] = 1 / checked["matmul_leaky_relu"]
    figures["flash_attention"] = 1 / checked["flash_attention"]
    figures["slowest_example"] = max(checked.values())
    with mock.patch.object(kernels._Launch, "_execute", return_value=[]):  # noqa: SLF001
        figures["transport"] = 1 / launches(repeats, issuing())
    least = set(TARGETS) - {"compile", "unchanged", "slowest_example"}
    shown = {
        name: against(value, TARGETS[name], least=name in least) for name, value in figures.items()
    }
    print(json.dumps(shown | {"examples": checked}, indent=1))


if __name__ == "__main__":
    main()
