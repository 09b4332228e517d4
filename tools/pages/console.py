"""Console blocks of the documents: run what they show, and keep what it answers.

In a fenced block marked ``console`` a line that starts with ``$ cubecore`` is a command, and the
lines up to the next command are what it prints. `rendered` runs the commands in this process and
returns the text with their present output; `same` disregards what varies from run to run or from
machine to machine. A line that starts with the debugger's prompt is typed at it, and a block
with a title is a file that the commands find.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
from tools.pages import chinese

from cubecore.cli.commands import main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    *("README.md", "docs/cpp.md", "docs/debugging.md", "docs/index.md", "docs/judging.md"),
    *("docs/kernels.md", "docs/models.md", "docs/planning.md", "docs/zh/index.md"),
)
"""Documents whose console blocks are run."""

_BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(
    r'^```(?:cpp|json|python|toml) title="(\S+)"[^\n]*\n(.*?)^```$', re.MULTILINE | re.DOTALL
)
_PROMPT = "(cubecore) "
_NUMBER = r"\d[\d.]*(e-?\d+)?"
_VARYING = re.compile(
    rf"\b{_NUMBER} s\b|(?<=largest error ){_NUMBER}|(?<=worst element at ){_NUMBER}"
    r"|(?<=errors  of )[\d,]+|(?<=settles the other )[\d,]+"
)
"""What a clock measured, and rounding errors: BLAS sums in another order on another machine.

So do the elements that the product in float32 settles.
"""


def rendered(text: str) -> str:
    """Return `text` with every console block's output as it is now.

    Commands find x.npy and y.npy of 8192 float32 elements, and doubled.npy of twice those of x,
    which documents do not print.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", np.arange(8192, dtype=np.float32))
        np.save(f"{folder}/doubled.npy", 2 * np.arange(8192, dtype=np.float32))
        np.save(f"{folder}/y.npy", np.ones(8192, np.float32))
        for name, code in _FILE.findall(text):
            (Path(folder) / name).write_text(code, encoding="utf-8")
        return _BLOCK.sub(lambda match: _run_block(match[0], Path(folder)), text)


def same(before: str, after: str) -> bool:
    """Whether two texts agree but for measured times and rounding errors."""
    return _VARYING.sub("#", before) == _VARYING.sub("#", after)


def _run_block(block: str, folder: Path) -> str:
    typed: dict[str, list[str]] = {}
    command = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            command = line[2:]
            typed[command] = []
        elif line.startswith(_PROMPT):
            typed[command].append(line.removeprefix(_PROMPT) + "\n")
    return "".join(f"$ {c}\n{_output(c, folder, ''.join(t))}" for c, t in typed.items())


def _output(command: str, folder: Path, typed: str) -> str:
    words = shlex.split(command)
    assert words[0] == "cubecore", f"a console block may only run cubecore, got {words[0]}"
    out, error, stdin, here = io.StringIO(), io.StringIO(), sys.stdin, Path.cwd()
    sys.stdin = io.StringIO(typed)
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
            contextlib.suppress(SystemExit),  # no document shows the exit code
        ):
            main(words[1:])
    finally:
        os.chdir(here)
        sys.stdin = stdin
    return out.getvalue() + error.getvalue()


def refresh() -> None:
    """Rewrite every document whose output changed, and the Chinese pages after the English."""
    for name in DOCUMENTS:
        path = ROOT / name
        if path.is_file():
            before = path.read_text(encoding="utf-8")
            after = rendered(before)
            if not same(before, after):
                path.write_text(after, encoding="utf-8")
    chinese.follow()


if __name__ == "__main__":
    refresh()
