"""C++ kernels beside their Python twins, and their compilation beside an empty program's.

Prints one JSON object. `compile`: CPU of compiling a kernel's file with the precompiled header over
that of an empty program with <vector> and <string>, compiled and linked. `unchanged`: CPU of
`cubecore run` of a compiled file over that of a Python script that launches the twin. `issues` and
`transport`: instructions a CPU second over those of the twin, with the usual checks, and recorded
alone; `mix` and `flash_attention` likewise of the mix examples, on 20 AI Cores. `examples`: CPU of
a launch over that of the twin. Medians of pairs that take turns.
"""

import json
import os
import resource
import runpy
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from figures import against, arguments

import cubecore
from cubecore.frontends.cpp.compile.build import macros_of, precompiled, unit_command
from cubecore.frontends.cpp.compile.cache import folder
from cubecore.frontends.cpp.compile.compiler import compiler
from cubecore.frontends.cpp.compile.source import overlay, source_of
from cubecore.machine.lockstep import kernels

ROOT = Path(__file__).resolve().parents[1]
CPP, PYTHON = ROOT / "examples" / "cpp", ROOT / "examples" / "kernels"
TARGETS = {
    "compile": 3.0,
    "unchanged": 1.1,
    "issues": 3.0,
    "transport": 8.0,
    "mix": 1.0,
    "flash_attention": 2.0,
}
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


def mix() -> dict[str, tuple[Any, Any, tuple[Any, ...], int]]:
    """Return the mix examples likewise, on 20 AI Cores."""
    cores = 20
    relu, flash = (
        runpy.run_path(str(PYTHON / f"{name}.py"))
        for name in ("matmul_leaky_relu", "flash_attention")
    )
    a, b, bias = relu["inputs"](cores * 128, 512, 512)
    space = np.zeros(cores * 2 * 128 * 128, np.float32)
    multiplied = (a, b, bias, np.zeros((cores * 128, 512), np.float16), space, len(a), 512, 512)
    q, k, v = flash["inputs"](4096)
    q = np.ascontiguousarray(q[: cores * flash["ROWS"]])
    shapes = ((256, np.float32), (256, np.float16), (128, np.float32))
    spaces = [np.zeros((cores, 2, 64, width), kind) for width, kind in shapes]
    attended = (q, k, v, np.zeros_like(q), *spaces, len(k))
    found = {}
    for name, python, given in (
        ("matmul_leaky_relu", relu, multiplied),
        ("flash_attention", flash, attended),
    ):
        found[name] = cubecore.load(CPP / f"{name}.cpp")[name], python[name], given, cores
    return found


def twins() -> dict[str, tuple[Any, Any, tuple[Any, ...], int]]:
    """Return by example its two kernels, the arguments and the blocks; adds have small tiles."""
    python = {}
    for name in ("vector_add", "softmax", "layernorm"):
        text = (PYTHON / f"{name}.py").read_text().replace(TILE, SMALL)
        python[name] = {"__name__": name}
        exec(compile(text, name, "exec"), python[name])  # noqa: S102 - our own example
    x, y = python["vector_add"]["inputs"](40 * 1024 * 16)
    added = (x, y, np.zeros_like(x), 1024 * 16)
    (rows,) = python["softmax"]["inputs"](40 * 8 * 16)
    normal = python["layernorm"]["inputs"](40 * 8 * 16)
    made = np.zeros_like(rows)
    cases = (
        ("add_queued", "vector_add", "vector_add", "add_doubled", added),
        ("add_static", "vector_add", "vector_add", "add_doubled", added),
        ("add_joined", "vector_add_capi", "vector_add", "add_joined", added),
        ("add_doubled", "vector_add_capi", "vector_add", "add_doubled", added),
        ("softmax", "softmax", "softmax", "softmax", (rows, made, 128)),
        ("layernorm", "layernorm", "layernorm", "layernorm", (*normal, made, 128)),
    )
    found = {}
    for name, file, module, twin, given in cases:
        source = cubecore.load(CPP / f"{file}.cpp")
        if given is added:
            source = cubecore.inline((CPP / f"{file}.cpp").read_text().replace(TILE, SMALL))
        found[name] = source[name], python[module][twin], given, 40
    return found | mix()


def launches(repeats: int, names: tuple[str, ...] = ()) -> dict[str, float]:
    """Return by example the CPU of a launch over that of its twin, both launched before."""
    found = {}
    for name, (made, twin, given, blocks) in twins().items():
        if names and name not in names:
            continue
        works = [
            lambda kernel=kernel, given=given, blocks=blocks: kernel[blocks](*given)
            for kernel in (made, twin)
        ]
        for work in works:
            work()
        found[name] = ratio(repeats, *works)
    return found


def main() -> None:
    repeats = arguments(__doc__ or "", repeats=5).parse_args().repeats
    os.environ["CUBECORE_CACHE"] = str(folder().parent)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        figures = {"compile": compilation(repeats, work), "unchanged": start(repeats, work)}
    checked = launches(repeats)
    figures["issues"] = 1 / checked["add_static"]
    figures["mix"] = 1 / checked["matmul_leaky_relu"]
    figures["flash_attention"] = 1 / checked["flash_attention"]
    with mock.patch.object(kernels._Launch, "_execute", return_value=[]):  # noqa: SLF001
        figures["transport"] = 1 / launches(repeats, ("add_static",))["add_static"]
    least = set(TARGETS) - {"compile", "unchanged"}
    shown = {
        name: against(value, TARGETS[name], least=name in least) for name, value in figures.items()
    }
    print(json.dumps(shown | {"examples": checked}, indent=1))


if __name__ == "__main__":
    main()
