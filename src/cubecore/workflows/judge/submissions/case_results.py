"""Records of a case that a submission ran: its error, its launches with findings, its results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.errors import COMPILER, CubecoreError, DeadlockError
from cubecore.frontends.cpp.toolchain.diagnostics import SHOWS_ALL
from cubecore.frontends.kernels.session import KernelRun, ScriptSession
from cubecore.frontends.source_locations import InstructionLimitError
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.workflows.judge.blame import is_ours, raised_by
from cubecore.workflows.judge.tasks.comparison import REFUSED
from cubecore.workflows.judge.tasks.sample_projects import ProgramFiles
from cubecore.workflows.judge.values import loaded

_HOST_FUNCTIONS = (
    "the op_host",
    "the tiling function",
    "the shape inference",
    "the type inference",
)


def described(error: CubecoreError, stage: str) -> Json:
    """Return an error's sentences with the line that the first begins with, if it has one."""
    message = str(error).removesuffix(f"; {SHOWS_ALL}")
    return {"stage": stage, "message": message, "detail": error.detail}


def late(error: InstructionLimitError) -> Json:
    """Return what a submission leaves that passed its budget: also what most instructions were."""
    answer = described(error, "run")
    total = sum(error.issued.values())
    if total:
        pipe, count = next(iter(error.issued.items()))
        answer["message"] += (
            f"; bound by {pipe}: {100 * count // total} % of {total:,} instructions"
        )
    return answer


def refused(error: CubecoreError, stage: str) -> Json:
    """Return what a submission that is refused leaves."""
    findings = [_finding(each) for each in error.findings]
    case: Json = {"outcome": REFUSED, "error": described(error, stage), "findings": findings}
    return case | ({"stage": stage} if error.origin == COMPILER else {})


def raised(error: Exception) -> Json:
    """Return what a submission raised; an error of cubecore's own is raised on."""
    if is_ours(error):
        raise error
    message = raised_by("the submission", error)
    return {"outcome": REFUSED, "error": {"stage": "run", "message": message, "detail": ""}}


def launches(session: ScriptSession) -> Json:
    """Return the launches with their findings, and the bytes of outputs that they wrote."""
    runs = session.runs
    findings = [_finding(each) | {"kernel": run.kernel} for run in runs for each in run.findings]
    # What a binding returns counts where there is one: its operators' outputs are parts of that.
    masks = session.returned or [
        run.written(name) for run in runs for name in run.unwritten if _is_known(run, name)
    ]
    return {
        "findings": findings,
        "issued": sum(run.counted for run in runs),
        "launches": [{"kernel": run.kernel, "blocks": run.blocks} for run in runs],
        "bytes_written": sum(int(np.count_nonzero(mask)) for mask in masks),
        "bytes_expected": sum(mask.size for mask in masks),
    }


def _is_known(run: KernelRun, name: str) -> bool:
    return any(host.name == name for host, _ in run.tensors)


def _finding(finding: SanitizerFinding) -> Json:
    where = finding.location
    plain_json = finding.to_json()
    return {
        "id": finding.id,
        "certainty": plain_json["certainty"],
        "file": where.file,
        "line": where.line,
        "function": where.function,
        "message": finding.text or finding.message,
        "fix": plain_json["fix"],
        "core": finding.core,
        "count": finding.count,
        "follows": finding.cause is not None,
    }


def predicted(runs: Sequence[KernelRun]) -> Json:
    """Return the predicted time of launches, or why there is none."""
    from cubecore.workflows.scripts.script import time_kernel

    try:
        timed = [time_kernel(run) for run in runs]
    except CubecoreError as error:
        if isinstance(error, DeadlockError) and any(run.cut for run in runs):
            return {"reason": "cores wait for what others issue behind the part that is recorded"}
        return {"reason": str(error)}
    ends = [each.interval for each in timed]
    pipes: dict[str, int] = {}
    for each in timed:
        for pipe, busy in each.timeline.pipes.items():
            pipes[pipe] = pipes.get(pipe, 0) + busy
    whole = sum(each.timeline.us for each in timed)
    longest = max(timed, key=lambda each: each.timeline.us)
    return {
        "us": whole,
        "low_us": None if None in ends else sum(e.low_us for e in ends if e is not None),
        "high_us": None if None in ends else sum(e.high_us for e in ends if e is not None),
        "limited_by": longest.timeline.limited_by,
        "pipes": pipes,
        "launches": [
            {"kernel": each.run.kernel, "blocks": each.run.blocks, "us": each.timeline.us}
            for each in timed
        ],
    }


def results_of(folder: Path, case: Json) -> Any:
    """Return the results that a case left: by name if all have one, else in order."""
    pairs = loaded(folder / "results", case["results"])
    if "program" in case:
        return ProgramFiles.of(dict(pairs), case["program"])
    names = [name for name, _ in pairs]
    if names and all(names):
        return dict(pairs)
    return [leaf for _, leaf in pairs]


def stage_of(error: CubecoreError) -> str:
    """Return the stage of a case that an error ended."""
    if error.origin == COMPILER:
        return "kernel"
    first = error.violations[0] if error.violations else None
    is_host = first is not None and first.subject.startswith(_HOST_FUNCTIONS)
    return "host" if is_host else "run"
