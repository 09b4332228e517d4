"""Machine-written operators: a sample of them run, each with a verdict and a limit.

`python -m tools.evidence.suites.packages CHECKOUT [--count N] [--again all|failed]` takes the files
of a checkout that hold an operator project as Python strings (`host_operator_src`,
`host_tiling_src`, `kernel_src`), N of them in the order of a hash of their names, and writes what
each came to to `suites.jsonl`.
"""

import argparse
import ast
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.evidence.cpp_programs import obstacle
from tools.evidence.suites.isolated import run_alone
from tools.evidence.suites.results import kept, rows, stands

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

_ROOT = Path(__file__).parents[3]
_WALL_S = 150.0
CPU_S = 60.0
_PARTS = ("host_operator_src", "host_tiling_src", "kernel_src")


def packages(checkout: Path) -> list[Path]:
    """Return the files that hold an operator project, in the order of a hash of their names."""
    found = [path for path in checkout.rglob("*.txt") if "host_operator_src" in _text(path)]
    return sorted(found, key=lambda path: _digest(str(path.relative_to(checkout))))


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def strings(text: str) -> dict[str, str]:
    """Return the strings that a file assigns to names; a fence of Markdown around it is left out.

    Raises
    ------
    ValueError
        If the file is no Python.
    """
    lines = [line for line in text.splitlines() if not line.startswith("```")]
    try:
        module = ast.parse("\n".join(lines))
    except SyntaxError as error:
        raise ValueError(f"the file is no Python: {error.msg}") from None
    return {
        target.id: each.value.value
        for each in module.body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for target in each.targets
        if isinstance(target, ast.Name) and isinstance(each.value.value, str)
    }


def written(parts: dict[str, str], folder: Path) -> None:
    """Write an operator project into a folder.

    Raises
    ------
    ValueError
        If a part or the operator's name is missing.
    """
    missing = [name for name in _PARTS if name not in parts]
    host = parts.get("host_operator_src", "")
    header = re.search(r'#include\s+"(\w+?)_tiling\.h"', host)
    entry = re.search(r"__global__\s+__aicore__\s+void\s+(\w+)", parts.get("kernel_src", ""))
    named = header or entry
    if missing or named is None:
        raise ValueError(f"the package lacks {', '.join(missing) or 'the name of its operator'}")
    name = named[1]
    for path, text in (
        (f"op_host/{name}.cpp", host),
        (f"op_host/{name}_tiling.h", parts["host_tiling_src"]),
        (f"op_kernel/{name}.cpp", parts["kernel_src"]),
    ):
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, "utf-8")


def package_outcome(path: Path) -> dict[str, Any]:
    """Return what a package came to."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            written(strings(_text(path)), folder)
        except ValueError as error:
            return {"outcome": "no package", "why": str(error), "cpu_s": 0.0}
        command = [sys.executable, "-m", "tools.evidence.suites.package_task", str(folder)]
        left = run_alone(command, _ROOT, _WALL_S)
    told: dict[str, Any] = {"cpu_s": round(left.cpu_s, 1), "left_over": left.left_over}
    lines = [line for line in left.out.splitlines() if line.startswith('{"outcome"')]
    if left.late or not lines:
        outcome = "late" if left.late else "crash of ours"
        return told | {"outcome": outcome, "why": left.error.strip()[-300:]}
    row = told | json.loads(lines[-1])
    if "why" in row:
        row["why"] = obstacle(row["why"])
    return row


def surveyed(checkout: Path, count: int, again: str) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each package of the sample that was not run before."""
    suite, made = f"{checkout.parent.name}/{checkout.name}", headers()
    good = ("clean", "findings")
    known = {row["task"] for row in rows(suite) if stands(row, made, again, good)}
    for path in packages(checkout)[:count]:
        name = str(path.relative_to(checkout))
        if name not in known:
            yield {"suite": suite, "task": name, "headers": made} | package_outcome(path)


def main() -> None:
    """Run a sample of a checkout's packages, and write what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--again", choices=("all", "failed"), default="")
    asked = parser.parse_args()
    for row in surveyed(asked.checkout.resolve(), asked.count, asked.again):
        print(row["outcome"], row["cpu_s"], row["task"], row.get("why", ""), flush=True)
        kept(row)


if __name__ == "__main__":
    main()
