"""Kernels in C++ that tests write: a frame around a few lines; the command line in this process."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import sleep
from typing import Any
from unittest import mock

import pytest

import cubecore
from cubecore.cli import program as entry
from cubecore.cli.commands import main
from cubecore.frontends.cpp.toolchain.compiler import has_compiler

EXAMPLES = Path(__file__).parents[3] / "examples" / "cpp"

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler is here")

SQUARED = """\
    LocalTensor<half> a1(TPosition::A1, 0, COUNT), a2(TPosition::A2, 0, COUNT);
    LocalTensor<half> b2(TPosition::B2, 0, COUNT);
    LocalTensor<float> co(TPosition::CO1, 0, COUNT);
    DataCopy(a1, ag, Nd2NzParams(1, EDGE, EDGE, 0, EDGE, EDGE, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    for (uint32_t row = 0; row < 2; ++row)
      LoadData(a2[row * 512], a1[row * 256], LoadData2DParams(0, 2, 2, 0, 0, false, 0));
    LoadData(b2, a1, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
    Mmad(co, a2, b2, MmadParams(EDGE, EDGE, EDGE));
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
"""
"""Lines of an AIC that bring EDGE x EDGE halves at `ag` to L0 and leave their square in `co`."""
HEAD = """#include "kernel_operator.h"
using namespace AscendC;
{before}
"""
FUNCTION = """extern "C" __global__ __aicore__ void {name}({parameters}) {{
{body}
}}
"""


def kernel(body: str, parameters: str = "GM_ADDR x", before: str = "", **options: Any) -> Any:
    """Return a kernel `k` whose body begins at line 5 of inline.cpp."""
    return kernels({"k": body}, parameters, before, **options).k


def kernels(
    bodies: Mapping[str, str], parameters: str = "GM_ADDR x", before: str = "", **options: Any
) -> Any:
    """Return a file's kernels, compiled together."""
    text = HEAD.format(before=before) + "".join(
        FUNCTION.format(name=name, parameters=parameters, body=body)
        for name, body in bodies.items()
    )
    return cubecore.inline(text, **options)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts into files of a folder, by their paths in it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def has_ended(process: int) -> bool:
    """Return whether a process is soon gone, or waits only for its parent's look."""
    # A process that was killed is there until the kernel has come to it.
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        sleep(0.05)
    return False


def cli(folder: Path, *words: Any) -> tuple[int, str, str]:
    """Return the code, the output and the errors of a command that runs in a folder."""
    return _answer(folder, lambda: main([str(word) for word in words]))


def demo(
    folder: Path, *words: str, program: str = "demo", **variables: str
) -> tuple[int, str, str]:
    """Return what `./demo` leaves, without the start of another interpreter."""
    with (
        mock.patch.object(sys, "argv", ["program", program, *words]),
        mock.patch.dict(os.environ, variables),
    ):
        return _answer(folder, entry.main)


def _answer(folder: Path, work: Callable[[], int | None]) -> tuple[int, str, str]:
    """Run what may write to the streams and, from C, to their files."""
    texts = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with contextlib.chdir(folder), _redirected(1, out.fileno()), _redirected(2, err.fileno()):
            try:
                code = work() or 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return code, texts[0], texts[1]


@contextlib.contextmanager
def _redirected(number: int, to: int) -> Any:
    name = {1: "stdout", 2: "stderr"}[number]
    kept, stream = os.dup(number), getattr(sys, name)
    os.dup2(to, number)
    own = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    setattr(sys, name, own)
    try:
        yield
    finally:
        own.flush()
        setattr(sys, name, stream)
        os.dup2(kept, number)
        os.close(kept)
