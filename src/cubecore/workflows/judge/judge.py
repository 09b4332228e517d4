"""`judge`: a submission run on a task's cases in processes of their own, and its verdict."""

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cubecore.aliases import Json
from cubecore.answers.verdict import (
    DONE,
    FAULT,
    REQUEST,
    STOPPED,
    JudgedCase,
    JudgedError,
    JudgedFinding,
    Verdict,
    deciding,
)
from cubecore.chips import default_chip
from cubecore.errors import CubecoreError, Violation, unable
from cubecore.sandbox.words import NONE
from cubecore.workflows.judge.cheating.kinds import CERTAIN
from cubecore.workflows.judge.limits import JudgeOptions, options_of
from cubecore.workflows.judge.starts import NewInterpreter, Start
from cubecore.workflows.judge.submissions.kinds import SAMPLE, Submission, submission_of
from cubecore.workflows.judge.submissions.time_at_full_shape import is_timed, time_at_full_shape
from cubecore.workflows.judge.tasks.comparison import LATE, REFUSED, RIGHT, WRONG
from cubecore.workflows.judge.tasks.kinds import JudgeTask, task_of
from cubecore.workflows.judge.tasks.reduction import FULL, ODD
from cubecore.workflows.judge.values import arrays_in

_PREFIX, _LOCK = "cubecore-judge-", "lock"
"""The beginning of the names of judgements' folders, and the file in one that its user locks."""
_LOCATION = re.compile(r"(?:^|: )(?P<file>[^:\s]+):(?P<line>\d+)(?=[: ])")
_CERTAINTIES = ("certain", "open", "note")
_OF_CASE = {"outcome", "written_at", "cheating", "stays"}
"""Fields of a comparison that are no part of its figures."""
_COMPILES = ("host", "kernel", "binding")
"""Stages at which something of the submission did not compile."""


class JudgeFaultError(CubecoreError):
    """A judgement that failed by a fault of cubecore's own; nothing is said of the submission."""


def judge(
    submission: str | Path,
    task: str | Path | None = None,
    *,
    chip: str | None = None,
    on_stage: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Verdict:
    """Judge a submission: run it on a task's cases, compare, check and time it.

    Outcomes follow from the budget of instructions alone. Limits of time end a judgement without a
    verdict, and so does a shape that is too large to run where smaller ones are refused: its stage
    is ``stopped``.

    Parameters
    ----------
    submission : str or Path
        An operator project, a file with its strings, a sample project, a file of C++ kernels, or a
        Python file with a kernel.
    task : str or Path or None
        A .npz file (x, y, ..., expected_z), a Python file with ``reference`` and ``inputs``, or a
        folder of a suite. None for a sample, whose own scripts are its task.
    chip : str or None
        Full SoC name; the default chip unless given.
    on_stage : callable
        Takes the name of each stage as it begins.
    **options : object
        Fields of `JudgeOptions`: entry, blocks, cases, cap_bytes, seed, instructions, cpu_s,
        wall_s, sandbox, includes, settings.

    Returns
    -------
    Verdict
        The outcome, the cases, the findings and the predicted time.

    Raises
    ------
    RequestError
        If the submission has no kernel, the task no reference, or the request does not fit them.
    JudgeFaultError
        If cubecore itself fails.

    Examples
    --------
    >>> cubecore.judge("add_custom", "task.py").correct  # doctest: +SKIP
    """
    return judge_started(NewInterpreter(), submission, task, chip, on_stage, options)


def judge_started(
    start: Start,
    submission: str | Path,
    task: str | Path | None,
    chip: str | None,
    on_stage: Callable[[str], None],
    options: Json,
) -> Verdict:
    """Judge as `judge` does, in a process that is started in some way."""
    asked = options_of(default_chip() if chip is None else chip, options)
    read = submission_of(submission)
    known = task_of(_own_task(read) if task is None else task)
    with _folder_of_judgement() as folder:
        request = {"options": asdict(asked), "task": str(known.path)}
        request |= {"submission": str(read.path)}
        Path(folder, "request.json").write_text(json.dumps(request), "utf-8")
        judged = _judged(start, Path(folder), on_stage)
    command = _command(str(submission), None if task is None else str(task), asked)
    return _verdict(judged, read, known, asked, command)


def _own_task(submission: Submission) -> Path:
    """Return the task of a submission that brings its own.

    Raises
    ------
    RequestError
        If it is of another kind.
    """
    if submission.kind != SAMPLE:
        name = submission.path.name
        raise unable(name, f"{name} needs --task", "only a sample project brings data of its own")
    return submission.path


@contextmanager
def _folder_of_judgement() -> Iterator[str]:
    """Yield a folder that goes again, with a lock by which others tell that it is in use."""
    import fcntl

    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX) as folder,
        Path(folder, _LOCK).open("wb") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder


def remove_left_folders() -> None:
    """Remove the folders of judgements whose processes were killed; those in use are locked."""
    import fcntl

    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        # One that just goes, or is another user's, cannot be opened.
        with suppress(OSError), lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def _judged(start: Start, folder: Path, on_stage: Callable[[str], None]) -> Json:
    """Run the process of a judgement, and return what it left.

    Raises
    ------
    RequestError
        If the request does not fit the submission and the task.
    JudgeFaultError
        If it left nothing, or failed.
    """
    with (folder / "process.log").open("wb") as log, start.started(folder, log) as said:
        for line in said:
            on_stage(_stage(line))
    try:
        judged: Json = json.loads((folder / "judged.json").read_text("utf-8"))
    except (OSError, ValueError):
        end = (folder / "process.log").read_text("utf-8", "replace")[-2000:]
        raise _fault(f"the judgement ended without an answer: {end}") from None
    if judged.get("failed") == REQUEST:
        raise unable("judge", judged["message"])
    if judged.get("failed") == FAULT:
        raise _fault(judged["message"])
    return judged


def _stage(line: str) -> str:
    with suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict):
            return str(message.get("stage", "judging"))
    return "judging"


def _fault(sentence: str) -> JudgeFaultError:
    return JudgeFaultError([Violation("judge", "", "", "", sentence.strip())])


def _command(submission: str, task: str | None, options: JudgeOptions) -> str:
    """Return the command that judges again."""
    plain, words = JudgeOptions(options.chip), ["cubecore", "judge", submission]
    words += [*(["--task", task] if task is not None else []), "--chip", options.chip]
    names = {"cap_bytes": "--cap-bytes", "cpu_s": "--cpu", "wall_s": "--wall"}
    for name, value in asdict(options).items():
        if name == "settings":
            words += [
                word for field, text in value.items() for word in ("--set", f"{field}={text}")
            ]
        elif name == "includes":
            words += [word for folder in value for word in ("-I", folder)]
        elif name != "chip" and value != getattr(plain, name):
            words += [
                names.get(name, f"--{name}"),
                f"{value:g}" if name[-2:] == "_s" else str(value),
            ]
    return shlex.join(words)


def _verdict(
    judged: Json, submission: Submission, task: JudgeTask, options: JudgeOptions, command: str
) -> Verdict:
    results: list[Json] = judged.get("cases", [])
    records: list[Json] = judged.get("records", [])
    cases = tuple(_cases(records, results, judged.get("compared", [])))
    errors = tuple(_errors(judged, results))
    stopped = judged.get("failed") == STOPPED
    stage = STOPPED if stopped else _ended(judged, cases, errors)
    time, timed = _time(records, results, judged)
    return Verdict(
        chip=options.chip,
        submission={
            "kind": submission.kind,
            "sha256": submission.sha256,
            "operators": judged.get("operators", []),
        },
        task={
            "name": task.name,
            "source": task.kind,
            "cases": len(records),
            "sizes": _sizes(records, judged.get("full", {})) if records else {},
        },
        stage=stage,
        compiled=stage not in _COMPILES and not stopped,
        correct=None if stopped else _correct(cases),
        errors=errors,
        cases=cases,
        findings=tuple(_findings(records, results)),
        time={**time, "case": timed} if time else {},
        coverage={
            "bytes_written": sum(case.get("bytes_written", 0) for case in results),
            "bytes_expected": sum(case.get("bytes_expected", 0) for case in results),
            "launches": sum(len(case.get("launches", ())) for case in results),
        },
        seconds=judged.get("seconds", {}),
        cheating=tuple(_cheating(judged, results)),
        sandbox=judged.get("sandbox", NONE),
        limits=options.limits | judged.get("box_limits", {}),
        reproducible=command,
    )


def _time(records: Sequence[Json], results: Sequence[Json], judged: Json) -> tuple[Json, str]:
    """Return the predicted time and the case that it is of: that of the full shape, if it is."""
    number, full = judged.get("timed", -1), judged.get("full", {})
    tiled: Json = judged.get("tiled", {}).get("time", {})
    if is_timed(tiled):
        return {"at": "full", **tiled}, FULL
    if not 0 <= number < len(results):
        return {}, ""
    pairs = zip(records, results, strict=False)
    known = [(case["time"], record) for record, case in pairs if is_timed(case.get("time", {}))]
    whole = [(time, record) for time, record in known if record["sizes"].get("variant") == FULL]
    if whole or not full:
        time, record = whole[0] if whole else (results[number].get("time", {}), records[number])
        return ({**time, "at": "full"} if is_timed(time) else time), record["name"]
    if not known:
        return results[number].get("time", {}), records[number]["name"]
    points = [(time, record["sizes"]) for time, record in known]
    time = time_at_full_shape(points, full)
    return time | ({"why": tiled["reason"]} if tiled else {}), known[-1][1]["name"]


def _sizes(records: Sequence[Json], full: Json) -> Json:
    """Return the policy of sizes: which shapes were run, and those of the task itself."""
    if not full:
        return {"policy": FULL}
    run = [record["sizes"] for record in records]
    whole = [each for each in run if each.get("variant") == FULL]
    if whole:
        return {"policy": "full, sampled blocks" if whole[0]["sampled"] else FULL, "full": full}
    return {"policy": "reduced", "full": full}


def _correct(cases: Sequence[JudgedCase]) -> bool:
    outcomes = {case.outcome for case in deciding(cases)}
    return RIGHT in outcomes and not outcomes & {WRONG, REFUSED}


def _ended(judged: Json, cases: Sequence[JudgedCase], errors: Sequence[JudgedError]) -> str:
    """Return the stage that a judgement ended at: a wrong case decides before a refused one."""
    if "stage" in judged:
        return str(judged["stage"])
    outcomes = {case.outcome for case in deciding(cases)}
    if WRONG in outcomes:
        return "compare"
    if outcomes & {REFUSED, LATE}:
        return errors[0].stage if errors else "run"
    return DONE


def _cases(
    records: Sequence[Json], results: Sequence[Json], compared: Sequence[Json]
) -> Iterator[JudgedCase]:
    for number, record in enumerate(records):
        case: Json = results[number] if number < len(results) else {"outcome": "not run"}
        result: Json = compared[number] if number < len(compared) else {}
        arrays = arrays_in(record["inputs"])
        error: Json = case.get("error", {})
        written_at = result.get("written_at", {})
        yield JudgedCase(
            name=record["name"],
            outcome=case["outcome"] or result.get("outcome", "not run"),
            shapes=tuple(tuple(each["shape"]) for each in arrays),
            dtypes=tuple(each["dtype"] for each in arrays),
            compared={k: v for k, v in result.items() if k not in _OF_CASE},
            written_at=written_at,
            reason=error.get("message", "") or result.get("reason", ""),
            sizes=record["sizes"],
            instructions=case.get("issued", 0),
            seconds=case.get("seconds", 0.0),
        )


def _errors(judged: Json, results: Sequence[Json]) -> Iterator[JudgedError]:
    """Yield the errors of a submission, each once."""
    if judged.get("failed") == STOPPED:
        yield JudgedError(STOPPED, str(judged["message"]))
        return
    found: list[Any] = [judged["error"]] if "error" in judged else []
    found += [case["error"] for case in results if "error" in case]
    seen: set[str] = set()
    for each in found:
        if each["message"] in seen:
            continue
        seen.add(each["message"])
        match = _LOCATION.search(each["message"])
        yield JudgedError(
            each["stage"],
            each["message"],
            match["file"] if match else None,
            int(match["line"]) if match else None,
            each.get("detail", ""),
        )


def _cheating(judged: Json, results: Sequence[Json]) -> list[Json]:
    """Return the marks of cheating, certain ones first, each kind once with how often it is."""
    compared: list[Json] = judged.get("compared", [])
    # Sizes that the task does not ask for, and that a submission fails, are no proof of a cheat.
    skipped = {
        number
        for number, (record, result) in enumerate(
            zip(judged.get("records", []), compared, strict=False)
        )
        if record["sizes"].get("variant") == ODD and result.get("outcome") != RIGHT
    }
    found = [
        mark
        for cases in (results, compared)
        for number, case in enumerate(cases)
        if number not in skipped
        for mark in case.get("cheating", ())
    ]
    found += judged.get("of_sources", [])
    first: dict[str, Json] = {}
    for mark in found:
        first.setdefault(mark["id"], {**mark, "count": 0})["count"] += 1
    return sorted(first.values(), key=lambda mark: mark["certainty"] != CERTAIN)


def _findings(records: Sequence[Json], results: Sequence[Json]) -> list[JudgedFinding]:
    """Return the findings of all cases, each once, by certainty; those that follow come last."""
    first: dict[tuple[str, str, int], tuple[tuple[int, bool], JudgedFinding]] = {}
    for record, case in zip(records, results, strict=False):
        for each in case.get("findings", ()):
            key = each["id"], each["file"], each["line"]
            if key in first:
                continue
            names = ("id", "certainty", "file", "line", "function", "message", "fix", "core")
            plain = {name: each[name] for name in (*names, "count")}
            finding = JudgedFinding(**plain, case=record["name"])
            rank = _CERTAINTIES.index(finding.certainty), bool(each["follows"])
            first[key] = rank, finding
    return [finding for _, finding in sorted(first.values(), key=lambda each: each[0])]
