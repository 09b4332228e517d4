"""What random programs and examples leave, as hashes: bytes and maps, findings, counts, times.

``python -m machine.execute.answers`` in the folder of the tests writes tests/data/executor.json
anew, after a change that is meant: of what is found, or of times.
"""

import hashlib
import json
import re
import runpy
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cubecore.errors import CubecoreError
from cubecore.frontends.kernels.kernel import private_memory, ready_launch
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.isa.program.launch import TensorSpec
from cubecore.kernels.build.recorded_launch import RecordedTensor, Recording, recorded_launch
from cubecore.machine.finding_kinds import USUAL
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.timing.launch import time_launch
from cubecore.workflows.scripts.script import run_script
from machine.execute.programs import launchable

PROGRAMS = 2000
TIMED = 10
"""Every so many programs the time is kept as well."""
KEPT = Path(__file__).resolve().parents[2] / "data" / "executor.json"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
EXACT = {"vector_add", "reduction", "transpose", "top_k", "int8_matmul"}
"""Examples whose results no library's exp, and no order of a sum in BLAS, decides."""
_PLACE = re.compile(r"[^\s\"(]*\.py:\d+ \((\w+)\)")
"""A place in a program: its function says it, as each kind of step has one of its own."""


def short(*parts: bytes) -> str:
    """Return a hash of six hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()[:6]


def said(findings: Sequence[SanitizerFinding]) -> bytes:
    """Return findings as text, without order, sentences, pages, notes and names of calls.

    Of accesses those of races and of uninitialised bytes.
    """
    found = [finding.to_json() for finding in findings]
    for one in found:
        one["message"] = ""
        one["accesses"] = [] if one["id"] == "out-of-bounds" else one["accesses"]
        for part in (one, *one["accesses"]):
            part.pop("call", None), part.pop("callers", None)
        del one["manual"], one["page"]
        for name in ("note", "text", "block", "caused_by", "certainty", "fix"):
            one.pop(name, None)
    texts = [json.dumps(one, sort_keys=True) for one in found]
    return "\n".join(sorted(_PLACE.sub(r"\1", text) for text in texts)).encode()


def answer(number: int, engine: str, order: str = "program") -> tuple[str, str, int]:
    """Return hashes of bytes with maps and of findings, and the count; -1 for a deadlock."""
    kernel, blocks, arguments = launchable(number)
    given = kernel.using(engine=engine, order=order)
    ready, gm = ready_launch(given, blocks, arguments, {}, private_memory)
    try:
        outcome, _ = ready.run(gm, USUAL)
    except CubecoreError as error:
        return type(error).__name__, short(said(error.findings)), -1
    left = []
    for _, tensor in ready.tensors.values():
        valid = tensor.buffer.valid
        left += [np.where(valid, tensor.buffer.data, 0).tobytes(), valid.tobytes()]
    return short(*left), short(said(outcome.findings)), outcome.issued


def cycles(number: int) -> int:
    """Return when a program's launch ends; -1 for a deadlock."""
    kernel, blocks, arguments = launchable(number)
    try:
        run = kernel.using(trace=True)[blocks](*arguments)
        tensors = {tensor.name: tensor for _, tensor in run.tensors}
        placed = [
            RecordedTensor(TensorSpec(name, tensor.buffer.size_bytes), tensor.address)
            for name, tensor in tensors.items()
        ]
        traces = [Recording(core.core, core.sub, trace) for core, trace in run.traces.items()]
        return time_launch(recorded_launch(run.kernel, placed, traces), run.chip).cycles
    except CubecoreError:
        return -1


def orders(number: int) -> tuple[str, ...]:
    """Return the orders that a program is run in."""
    return "late", "early", f"random:{number}"


def program(number: int, engine: str) -> str:
    """Return what a program leaves in every order, in one line."""
    words = [*answer(number, engine)]
    for order in orders(number):
        bytes_, findings, _ = answer(number, engine, order)
        words += [bytes_, findings]
    if number % TIMED == 0:
        words.append(cycles(number))
    return " ".join(map(str, words))


def example(name: str, engine: str) -> str:
    """Return what an example of a Python kernel leaves on small inputs, in one line."""
    module = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "kernels" / f"{name}.py")))
    session = ScriptSession({"engine": engine})
    with session.collecting():
        got = module.launch(*module.small())
    arrays = got if isinstance(got, tuple) else (got,)
    words = [short(*(array.tobytes() for array in arrays))] if name in EXACT else []
    for run in session.runs:
        words += [short(said(run.findings)), str(run.issued)]
    return " ".join(words)


def tik_example(name: str) -> str:
    """Return what an example of TIK leaves, in one line."""
    done = run_script(str(EXAMPLES / "tik" / f"{name}.py"), quiet=True)
    return " ".join(f"{short(said(run.findings))} {run.issued}" for run in done.launches)


def names(folder: str) -> list[str]:
    """Return the examples of a folder."""
    return sorted(path.stem for path in (EXAMPLES / folder).glob("*.py"))


def programs(numbers: Sequence[int]) -> dict[str, str]:
    """Return what several programs leave on the reference engine."""
    return {str(number): program(number, "reference") for number in numbers}


def main() -> None:
    """Write what is kept."""
    kept: dict[str, Any] = {"programs": {}}
    with ProcessPoolExecutor(int(sys.argv[1]) if len(sys.argv) > 1 else 2) as pool:
        for part in pool.map(programs, [range(n, n + 50) for n in range(0, PROGRAMS, 50)]):
            kept["programs"].update(part)
    kept["examples"] = {name: example(name, "reference") for name in names("kernels")}
    kept["tik"] = {name: tik_example(name) for name in names("tik")}
    KEPT.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
