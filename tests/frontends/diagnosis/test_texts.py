"""The text of every kind of finding in each dialect that can have it, as a whole line."""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile
from cubecore.frontends.tik.trace.run_options import TikOptions, run_with
from cubecore.isa.vector.registers.c_api.names import c_names
from cubecore.isa.vector.registers.operation import MERGING
from cubecore.isa.vector.registers.operations.convert import CASTS, LAYOUTS
from cubecore.machine.finding_kinds import KINDS
from cubecore.machine.sanitize.findings import SanitizerFinding
from frontends.cpp.cpp_kernels import FUNCTION, HEAD, needs_compiler
from frontends.cpp.register_faults import CHIP, PARAMETERS
from frontends.diagnosis.faulty_kernels import (
    C_FRAME,
    CALLS,
    CLASSES,
    MORE_CLASSES,
    MUTEX,
    OBJECTS,
    OF_C,
    OF_PYTHON,
    REGISTERS_IN_C,
    TIK,
    VF_TOO_EARLY,
    c_kernel,
    python_kernel,
    register_kernels,
)
from frontends.kernels.test_register_faults import FAULTS
from frontends.kernels.test_register_faults import launched as launched_register

GOLDENS = Path(__file__).with_name("texts.toml")
TEXTS: dict[str, dict[str, str]] = tomllib.loads(GOLDENS.read_text())
"""The text of each kind by dialect: cpp, c, python, tik; registers and objects are of cpp, too."""
ARRAYS = ("GM_ADDR x, GM_ADDR z", np.ones(256, np.float32))

Findings = tuple[SanitizerFinding, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory, by which files are named."""
    before, path = Path.cwd(), tmp_path_factory.mktemp("texts")
    os.chdir(path)
    yield path
    os.chdir(before)


_API_NAMES = re.compile(
    r"\b(?:asc_\w+|vec_\w+|[A-Z][a-z]+[A-Z]\w+|MTE\d|UB|GM|L1|L0[ABC]|AIV|AIC|PIPE_\w+)\b"
)


@pytest.mark.parametrize("dialect", TEXTS)
def test_each_name_that_a_text_prints_is_explained(dialect: str) -> None:
    for kind, text in TEXTS[dialect].items():
        for name in (kind, *_API_NAMES.findall(text)):
            assert cubecore.explain(name).text, name


def name_of(kind: str) -> str:
    return kind.replace("-", "_")


def launched(kernels: Any, kinds: Mapping[str, object]) -> dict[str, Findings]:
    found = {}
    for kind in kinds:
        x, z = np.ones(256, np.float32), np.ones(256, np.float32)
        kernel = getattr(kernels, name_of(kind))
        try:
            found[kind] = kernel[1](x, z).findings
        except cubecore.CubecoreError as error:
            found[kind] = error.findings
    return found


def classes(folder: Path) -> dict[str, Findings]:
    bodies = CLASSES | MORE_CLASSES
    text = HEAD.format(before="") + "".join(
        FUNCTION.format(name=name_of(kind), parameters=ARRAYS[0], body=body)
        for kind, body in bodies.items()
    )
    (folder / "classes.cpp").write_text(text)
    kernels = cubecore.load("classes.cpp", auto_sync=False, checks="all")
    return launched(kernels, bodies)


def c_calls(folder: Path) -> dict[str, Findings]:
    bodies = CALLS | OF_C
    text = '#include "c_api/asc_simd.h"\n'
    text += "".join(c_kernel(name_of(kind), lines) for kind, lines in bodies.items())
    (folder / "calls.cpp").write_text(text)
    return launched(cubecore.load("calls.cpp", auto_sync=False, checks="all"), bodies)


def python_calls(folder: Path) -> dict[str, Findings]:
    bodies = CALLS | OF_PYTHON
    text = "".join(python_kernel(name_of(kind), lines) for kind, lines in bodies.items())
    (folder / "calls.py").write_text(text)
    functions: dict[str, Any] = {}
    exec(compile(text, "calls.py", "exec"), functions)

    class Kernels:
        def __getattr__(self, name: str) -> Any:
            return cubecore.kernel(functions[name], checks="all")

    return launched(Kernels(), bodies)


def tik_calls(folder: Path) -> dict[str, Findings]:
    found = {}
    for kind, text in TIK.items():
        (folder / "program.py").write_text(text)
        t = Tik(Dprofile("v200", "aic"))
        exec(compile(text, "program.py", "exec"), {"t": t})
        with run_with(TikOptions(checks="all")):
            found[kind] = t.launch({"x": np.ones(256, np.float16)}).findings
    return found


def registers(folder: Path) -> dict[str, Findings]:
    bodies = register_kernels()
    text = HEAD.format(before="") + "".join(
        FUNCTION.format(name=name_of(kind), parameters=PARAMETERS, body=body)
        for kind, body in bodies.items()
    )
    text += FUNCTION.format(name="mutex_unpaired", parameters=PARAMETERS, body=MUTEX)
    (folder / "registers.cpp").write_text(text)
    kernels = cubecore.load("registers.cpp", chip=CHIP, auto_sync=False, checks="all")
    found = {}
    for kind in (*bodies, "mutex-unpaired"):
        x, y, z = (np.ones(1024, np.float32) for _ in range(3))
        found[kind] = getattr(kernels, name_of(kind))[1](x, y, z, 512).findings
    return found


def c_registers(folder: Path) -> dict[str, Findings]:
    text = '#include "c_api/asc_simd.h"\n' + "".join(
        C_FRAME.format(name=name_of(kind), body=body) for kind, body in REGISTERS_IN_C.items()
    )
    (folder / "vectors.cpp").write_text(text + VF_TOO_EARLY)
    kernels = cubecore.load("vectors.cpp", chip=CHIP, auto_sync=False, checks="all")
    found = {}
    for kind in (*REGISTERS_IN_C, "race-raw"):
        x, y, z = (np.ones(512, np.float32) for _ in range(3))
        found[kind] = getattr(kernels, name_of(kind))[1](x, y, z, 512).findings
    return found


def python_registers(_: Path) -> dict[str, Findings]:
    """The faults of Python's vector functions, and two more in their frame."""
    found: dict[str, Findings] = {}
    for name, (kind, _, _, wrong) in FAULTS.items():
        if kind is not None and kind not in found and kind in REGISTERS_IN_C:
            found[kind] = launched_register(name, wrong).findings
    return found


def objects(folder: Path) -> dict[str, Findings]:
    (folder / "objects.cpp").write_text(OBJECTS)
    kernels = cubecore.load("objects.cpp", checks="all")
    x, z = np.ones(256, np.uint32), np.ones(256, np.float32)
    return {
        kind: getattr(kernels, name_of(kind))[1](x, z).findings
        for kind in ("call-order", "other-sign")
    }


DIALECTS: dict[str, Callable[[Path], dict[str, Findings]]] = {
    "cpp": classes,
    "c": c_calls,
    "python": python_calls,
    "tik": tik_calls,
    "registers": registers,
    "registers in c": c_registers,
    "registers in python": python_registers,
    "objects": objects,
}


@pytest.fixture(scope="module")
def found(folder: Path, request: pytest.FixtureRequest) -> dict[str, dict[str, str]]:
    """The first text of each kind that its kernel leaves, by dialect."""
    texts: dict[str, dict[str, str]] = {}
    for dialect, run in DIALECTS.items():
        for kind, findings in run(folder).items():
            told = [finding.text for finding in findings if finding.id == kind]
            texts.setdefault(dialect, {})[kind] = told[0] if told else ""
    if request.config.getoption("--refresh-goldens"):
        lines = []
        for dialect, by_kind in texts.items():
            lines += ["", f'["{dialect}"]' if " " in dialect else f"[{dialect}]"]
            lines += [f"{kind} = '''{text}'''" for kind, text in by_kind.items()]
        GOLDENS.write_text("\n".join(lines).lstrip() + "\n")
    return texts


@pytest.mark.thinned(4)
@needs_compiler
@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_text_is_as_it_is_written(found: dict[str, dict[str, str]], dialect: str) -> None:
    assert found[dialect] == TEXTS[dialect]
    assert "" not in TEXTS[dialect].values()


ALONE = {
    "cpp": (
        *("array-overwritten", "events-used-up", "queue-empty", "queue-full", "queue-order"),
        *("tensor-freed", "long-tensor", "checked-access", "call-order", "mutex-unpaired"),
        *("other-sign", "unlisted-type", "atomic-type", "no-repeat", "rows-overlap"),
    ),
    "cpp python": ("stale-cache",),  # pointers of C store to global memory as the host does
    "cpp c": ("vf-loop",),  # Python's loops are unrolled
    "c python": ("stale-count", "mixed-allocation"),  # repeats under a count, arrays by themselves
}
"""Kinds that some dialects alone can have; the others are of the class API, C and Python."""
OF_TIK = ("uninitialised", "out-of-bounds", "overlap", "race-waw", "mode-left", "unread")
"""TIK sets its flags itself, and refuses what a program's trace can tell."""
OF_MODES = ("mask-merge", "cast-form")
"""Kinds about a call's template arguments. A name of the C API says its form: each has one that is.

`test_each_name_of_the_c_api_has_a_form_that_exists` tries them all.
"""


_TOLD = frozenset(kind for kind in KINDS if not kind.startswith("simt-"))
"""The kinds but those of SIMT functions, whose texts `frontends.cpp.simt` has."""


def test_every_kind_has_a_text_in_each_dialect_that_can_have_it() -> None:
    alone = {kind: dialects.split() for dialects, kinds in ALONE.items() for kind in kinds}
    alone |= {kind: ["cpp"] for kind in OF_MODES}
    should = {
        (dialect, kind) for kind in _TOLD for dialect in alone.get(kind, ["cpp", "c", "python"])
    }
    should |= {("tik", kind) for kind in OF_TIK}
    parts = {"registers": "cpp", "objects": "cpp"}
    has = {
        (parts.get(dialect, dialect.removeprefix("registers in ")), kind)
        for dialect, by_kind in TEXTS.items()
        for kind, text in by_kind.items()
        if text
    }
    assert should == has


def test_each_name_of_the_c_api_has_a_form_that_exists() -> None:
    rows = [row for named in c_names().values() for row in named]
    assert not any(MERGING in row.mode for row in rows)
    for row in rows:
        if row.operation == "Cast":
            layout, _, rounding = row.mode.split(".")
            types = element_type(row.source), element_type(row.result)
            ratio = max(each.bits for each in types) // min(each.bits for each in types)
            assert LAYOUTS.index(layout) < ratio
            assert rounding in CASTS[row.source, row.result]


def test_every_kind_has_a_text() -> None:
    told = {kind for by_kind in TEXTS.values() for kind in by_kind}
    assert told == _TOLD


def test_a_kind_of_the_c_api_has_a_text_in_c_and_python() -> None:
    assert TEXTS["c"].keys() == CALLS.keys() | OF_C.keys()
    assert TEXTS["python"].keys() == CALLS.keys() | OF_PYTHON.keys()
