"""The submission's side of a judgement: its cases run, with findings, coverage and time."""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.errors import TIME_LIMIT, CubecoreError, unable
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.frontends.result_comparison import arrays_of
from cubecore.frontends.result_writer import writer_of
from cubecore.frontends.source_locations import InstructionLimitError
from cubecore.workflows.judge.cheating.call_marks import FinishedCall, bytes_of, call_marks
from cubecore.workflows.judge.cheating.kinds import UNWRITTEN
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.calls import GivenCase, OpenSubmission, StageError, opened
from cubecore.workflows.judge.submissions.case_results import (
    described,
    late,
    launches,
    predicted,
    raised,
    refused,
    stage_of,
)
from cubecore.workflows.judge.submissions.full_shape import masks_of
from cubecore.workflows.judge.submissions.full_tiling import tiled
from cubecore.workflows.judge.submissions.kinds import PACKAGE, SAMPLE, Submission
from cubecore.workflows.judge.tasks.comparison import LATE, NOT_RUN, leaves, plain
from cubecore.workflows.judge.tasks.sample_projects import ProgramFiles
from cubecore.workflows.judge.values import ArrayFolder, arrays_in, loaded


class Stopped(Exception):  # noqa: N818 - no error of the submission
    """A limit of time ended a process of the submission: there is no verdict."""


class CaseRunner:
    """A submission with its cases, each run in a session of its own.

    With `sampled` so many blocks of each launch are run, and bytes that they wrote are told.
    """

    def __init__(
        self, submission: Submission, place: Path, options: JudgeOptions, *, sampled: int = 0
    ) -> None:
        self.options, self._left, self._sampled = options, options.instructions, sampled
        self._names: tuple[str, ...] = ()
        self._submission, self._place = submission, place

    def at(self, options: JudgeOptions, sampled: int) -> "CaseRunner":
        """Return a runner of the same submission with other options, and a budget of its own."""
        return CaseRunner(self._submission, self._place, options, sampled=sampled)

    def run(
        self, folder: Path, cases: Sequence[Json], model: Json | None, again: Json | None = None
    ) -> Json:
        """Run the cases that are to be run; return what became of each.

        `again` has one of them with other inputs, which is run, too, unless they have no say.

        Raises
        ------
        Stopped
            If a limit of time ended a process.
        """
        os.chdir(self._folder)
        try:
            opened_one = self._opened(folder, model)
        except StageError as error:
            _require_no_limit(error.error)
            return {"stage": error.stage, "error": described(error.error, error.stage)}
        # One case is traced, the largest: its time is predicted, and traces of all would not fit
        # in memory; cases of reduced sizes are small, and their times are those of a line. A case
        # of a wrong value is run again with a trace, by `writer`.
        wanted = [n for n, record in enumerate(cases) if not record["outcome"]]
        timed = max(wanted, key=lambda n: (_bytes_of(cases[n]), -n), default=-1)
        results: list[Json] = []
        for number, record in enumerate(cases):
            if record["outcome"]:
                results.append({"outcome": record["outcome"]})
            elif self._left <= 0:
                results.append({"outcome": NOT_RUN})
            else:
                traced = number == timed or bool(record["sizes"])
                results.append(self._case(folder, opened_one, record, traced=traced))
                if results[-1].get("stage") in {"host", "kernel", "binding", "load"}:
                    break
        output: Json = {"operators": list(opened_one.names), "cases": results, "timed": timed}
        if again is not None and again["depends"] and again["of"] < len(results):
            first = results[again["of"]]
            if not first["outcome"] and first["issued"] <= self._left:
                output["again"] = self._case(folder, opened_one, again["record"], traced=False)
        return output

    def tiled(self, folder: Path, record: Json, model: Json | None) -> Json:
        """Return the time of a case whose arrays have sizes alone, and what overflows there."""
        os.chdir(self._folder)
        return tiled(self._opened(folder, model), given_case(folder, record), self.options)

    def _opened(self, folder: Path, model: Json | None) -> OpenSubmission:
        if self._submission.kind == SAMPLE:
            from cubecore.workflows.judge.submissions.samples import opened_sample

            return opened_sample(self._place, folder, self.options)
        if self._submission.kind == PACKAGE:
            from cubecore.workflows.judge.submissions.packages import opened_package

            return opened_package(self._place, self.options)
        if model is None:
            return opened(self._submission, self._place, self.options)
        from cubecore.workflows.judge.submissions.models import opened_model

        return opened_model(self._submission, self._place, self.options, model)

    def _case(self, folder: Path, called: OpenSubmission, record: Json, *, traced: bool) -> Json:
        """Run one case; a submission that raises is refused with the sentence and the stage."""
        case = given_case(folder, record)
        session = ScriptSession(
            self._session_options(traced=traced),
            instructions=self._left,
            keeps_arrays=True,
            sampled=self._sampled,
        )
        begin = perf_counter()
        result: Json = {"outcome": ""}
        with session.collecting():
            try:
                before = bytes_of(case.inputs)
                got = called.call(case)
                result["results"] = _stored(folder / "results", got)
                result |= {"program": got.to_json()} if isinstance(got, ProgramFiles) else {}
            except InstructionLimitError as error:
                result |= {"outcome": LATE, "error": late(error)}
                self._left = 0
            except StageError as error:
                _require_no_limit(error.error)
                result |= refused(error.error, error.stage)
            except CubecoreError as error:
                _require_no_limit(error)
                result |= refused(error, stage_of(error))
            except Exception as error:  # noqa: BLE001 - of the submission, or raised on
                result |= raised(error)
        self._left -= sum(run.counted for run in session.runs)
        result |= {"seconds": perf_counter() - begin, **launches(session)}
        if result["outcome"]:
            return result
        if self._sampled:
            result["written"] = _stored(folder / "results", masks_of(session, got))
            result |= {"bytes_written": 0, "bytes_expected": 0}
        elif traced and session.runs:
            result["time"] = predicted(session.runs)
        changed = before != bytes_of(case.inputs)
        runs, values = tuple(session.runs), session.host_values
        call = FinishedCall(case.name, case.inputs, got, runs, changed, called.in_place, values)
        marks = call_marks(call, record, result.get("time", {}))
        # Blocks that did not run have written nothing.
        result["cheating"] = [m for m in marks if m["id"] != UNWRITTEN.id or not self._sampled]
        return result

    @property
    def _folder(self) -> Path:
        """The folder of the submission, which locations in its files are told from."""
        return self._place if self._place.is_dir() else self._place.parent

    def _session_options(self, *, traced: bool) -> Json:
        options = self.options
        return {**options.launch, "limit": options.instructions, "trace": traced}

    def writer(self, folder: Path, record: Json, compared: Json, model: Json | None) -> Json:
        """Return the line that wrote the first wrong element, found by running the case again."""
        os.chdir(self._folder)
        called = self._opened(folder, model)
        case = given_case(folder, record)
        options = self._session_options(traced=True)
        most = self.options.instructions
        session = ScriptSession(options, instructions=most, keeps_arrays=True)
        with session.collecting():
            got = [plain(leaf) for _, leaf in leaves(called.call(case))]
        array = got[compared["output"]]
        place = (
            int(np.ravel_multi_index(tuple(compared["where"]), array.shape)) if array.ndim else 0
        )
        byte, size = place * array.itemsize, array.itemsize
        # A submission may hand its results on through any of its own code; the launch that they
        # come from is the last one that left these very bytes in one of its outputs.
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for run in reversed(session.runs):
            for name, values in arrays_of(run).items():
                found = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
                if name in run.outputs and np.array_equal(found, raw):
                    writer = writer_of(run, name, byte, size)
                    if writer is not None:
                        where = writer.location
                        at = {"file": where.file, "line": where.line, "function": where.function}
                        return {**at, "call": where.call, "core": writer.core}
        return {}


def given_case(folder: Path, record: Json) -> GivenCase:
    """Return a case as its record and the files beside it tell."""
    inputs, made_with = loaded(folder, record["inputs"]), loaded(folder, record["made_with"])
    return GivenCase(record["name"], inputs, tuple(record["outputs"]), made_with)


def _bytes_of(record: Json) -> int:
    return sum(int(np.prod(each["shape"], dtype=np.int64)) for each in arrays_in(record["inputs"]))


def _stored(folder: Path, got: Any) -> Any:
    """Write results to a folder, which a submission may have filled with other things.

    Raises
    ------
    RequestError
        If they cannot be written.
    """
    try:
        return ArrayFolder(folder, sealed=True).stored(_plain_results(got))
    except OSError as error:
        raise unable("results", f"its results cannot be written: {error.strerror}") from None


def _plain_results(got: Any) -> Any:
    """Return results as a list of arrays, each with its name where it has one."""
    return [[name, plain(leaf)] for name, leaf in leaves(got)]


def _require_no_limit(error: CubecoreError) -> None:
    if error.origin == TIME_LIMIT:
        raise Stopped(str(error)) from error
