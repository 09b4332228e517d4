"""The process of a judgement: `python -m cubecore.workflows.judge.process FOLDER`.

The folder has the request; what the steps leave lies beside it. The reference's files lie in a
folder of their own, so that the submission's step can be kept from them.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from cubecore.aliases import Json
from cubecore.answers.verdict import REQUEST, STOPPED
from cubecore.errors import CubecoreError, RequestError, unable
from cubecore.frontends.cpp.files import SUFFIXES
from cubecore.frontends.cpp.toolchain.cache import folder as folder_of_cache
from cubecore.sandbox.box import Sandbox, opened
from cubecore.sandbox.kernel_calls import end_with_parent
from cubecore.sandbox.words import NONE
from cubecore.workflows.judge.blame import is_ours, raised_by
from cubecore.workflows.judge.boxed import (
    RESULT_BYTES,
    SubmissionBoxes,
    data_box,
    own_files,
    submission_boxes,
)
from cubecore.workflows.judge.cheating.kinds import OUTSIDE
from cubecore.workflows.judge.cheating.source_marks import source_marks
from cubecore.workflows.judge.compilation import Compilations
from cubecore.workflows.judge.limits import CpuBudget, JudgeOptions
from cubecore.workflows.judge.steps import Service, StepOutcome, forked
from cubecore.workflows.judge.submissions.full_shape import (
    SAMPLED_BLOCKS,
    full_options,
    is_refused,
    is_right,
)
from cubecore.workflows.judge.submissions.full_shape import is_asked as is_full_asked
from cubecore.workflows.judge.submissions.full_tiling import unfit
from cubecore.workflows.judge.submissions.given_cases import (
    RESULTS,
    GivenCases,
    compared_cases,
    made_cases,
    sized_record,
)
from cubecore.workflows.judge.submissions.kinds import (
    PACKAGE,
    PYTHON,
    SAMPLE,
    Submission,
    submission_of,
    written_binding,
)
from cubecore.workflows.judge.submissions.redrawn import (
    without_independence,
)
from cubecore.workflows.judge.submissions.runner import CaseRunner
from cubecore.workflows.judge.submissions.time_at_full_shape import is_timed
from cubecore.workflows.judge.tasks.comparison import (
    REFUSED,
    RIGHT,
    TOO_LARGE,
    WRONG,
)
from cubecore.workflows.judge.tasks.kinds import SAMPLE_DATA, JudgeTask, task_of
from cubecore.workflows.judge.tasks.model_costs import UNCOUNTED
from cubecore.workflows.judge.tasks.reduction import FULL, ODD
from cubecore.workflows.judge.values import arrays_in

_WORKSPACE = "submission"
_SOURCES = {*SUFFIXES, ".h", ".hpp", ".py"}
_LEAST_SIZE = 16
"""Sizes up to it are common numbers of a program."""


def judge_folder(folder: Path) -> None:
    """Judge as the folder's request says; print the stages, and leave ``judged.json``."""
    try:
        _judge(folder)
    except RequestError as error:
        answer = {
            "failed": REQUEST,
            "at": "request",
            "message": str(error),
            "seconds": {"cpu": 0.0},
        }
        Path(folder, "judged.json").write_text(json.dumps(answer), "utf-8")


def _judge(folder: Path) -> None:
    end_with_parent()  # who is ended by a signal ends this too
    request = json.loads((folder / "request.json").read_text("utf-8"))
    task, submission = task_of(request["task"]), submission_of(request["submission"])
    options = JudgeOptions(**request["options"])
    includes = (*options.includes, *map(str, task.includes))
    options = replace(options, includes=includes)
    if submission.kind == PACKAGE and not options.entry:
        options = replace(options, entry=task.name)  # the suite's name of the operator
    reference, workspace = folder / "reference", folder / _WORKSPACE
    for each in (reference, workspace, workspace / RESULTS):
        each.mkdir()
    place = submission.written(folder_of_cache().parent.absolute() / "judged")
    # Torch is loaded once, before the first fork: each step has it for nothing. A step that writes
    # what it should not does so in memory of its own; only files pass from one to the next.
    _load_shared(task, model=bool(submission.model))
    judged = _Judgement(folder, options, task)
    make = partial(made_cases, task, options, reference, workspace)
    # The scripts of a submission that brings its own data are as hostile as itself.
    sandbox = options.sandbox if task.path == submission.path else NONE
    with opened(sandbox, data_box(task, (reference, workspace), ())) as box:
        step = judged.step("reference", partial(of_task, task, make), box=box)
        if step is None:
            return
        if box is not None:
            box.copied_out(reference, reference, RESULT_BYTES)
            box.copied_out(workspace, workspace, RESULT_BYTES)
    records, model = step.output["cases"], step.output["model"]
    full = step.output["full"]
    if all(each["outcome"] == TOO_LARGE for each in records):
        if full:
            judged.write({"failed": STOPPED, "message": _too_large(task, records[-1]["sizes"])})
            return
        sentence = f"no case of {task.name} has arrays of at most {options.cap_bytes} B each"
        raise unable(task.name, sentence, "raise --cap-bytes")
    files = _files_in_box(submission, place, options, model)
    budget = judged.budget
    with submission_boxes(submission, place, files, task, workspace, options, budget) as boxes:
        runner = CaseRunner(submission, place, options)
        cases = GivenCases(workspace, records, model, step.output["again"])
        results = _run(judged, runner, boxes, cases)
        if results is None:
            return
        if "cases" in results:
            compare = partial(compared_cases, task, reference, cases, results)
            with opened(sandbox, data_box(task, (), (reference, workspace))) as box:
                compared = judged.step("comparison", partial(of_task, task, compare), box=box)
            if compared is None:
                return
            results["compared"] = compared.output["cases"]
            if not _depends(submission, task, cases.again, results["compared"]):
                for case in results["cases"]:
                    case["cheating"] = without_independence(case.get("cheating", ()))
            _find_writer(judged, runner, boxes, cases, results["compared"])
            _FullShape(judged, task, cases, results, runner, boxes).judge(full)
        results |= boxes.to_json()
        judged.count("compilation", boxes.service)
    results["of_sources"] = marks_of_sources(submission, place, records)
    judged.write({"records": records, "full": full, **results})


def _files_in_box(
    submission: Submission, place: Path, options: JudgeOptions, model: Json | None
) -> list[Path]:
    """Return what a submission's box shows: its files, folders of headers, a task's binding."""
    files = [*own_files(submission, place), *map(Path, options.includes)]
    if model is not None and model["binding"]:
        files.append(written_binding(model["binding"]))
    return files


def _too_large(task: JudgeTask, sizes: Json) -> str:
    """Return the sentence on a task whose model runs at no smaller sizes than these."""
    costs = f"{sizes['bytes']:,} B of arrays, {sizes['operations']:.2g} operations of products"
    if sizes["operations"] >= UNCOUNTED:
        costs = "thousands of calls of PyTorch at each"
    return (
        f"{task.name} runs at no sizes that are small enough ({costs}); --sizes full runs its own"
    )


def _depends(
    submission: Submission, task: JudgeTask, again: Json | None, compared: list[Json]
) -> bool:
    """Return whether launches that read no input are told: where results depend on inputs.

    A kernel in C++ may read by pointers, which nothing records: its results must have stayed as
    they were for other inputs. A sample that has the same inputs each time says nothing of it.
    """
    if again is None:
        return submission.kind == PYTHON and task.kind != SAMPLE_DATA
    if not again["depends"]:
        return False
    return submission.kind == PYTHON or compared[again["of"]].get("stays", False)


def _run(
    judged: "_Judgement",
    runner: CaseRunner,
    boxes: SubmissionBoxes,
    cases: "GivenCases",
    name: str = "submission",
) -> Json | None:
    """Run the submission's cases in a box, and copy its results out; None if that fails."""
    needed = name == "submission"
    # Files of an earlier run have the same names, and a box's do not take the place of any.
    # A folder there is a submission's that has no box: its results are not read from it.
    for earlier in (cases.folder / RESULTS).iterdir():
        if not earlier.is_dir():
            earlier.unlink()
    with boxes.opened() as box:
        run = partial(runner.run, cases.folder, cases.records, cases.model, cases.again)
        ran = judged.step(name, run, needed=needed, box=box, service=boxes.service)
        if ran is not None and box is not None:
            results = cases.folder / RESULTS
            box.copied_out(results, results, RESULT_BYTES)
    return None if ran is None or ran.failed is not None else ran.output


@dataclass(frozen=True)
class _FullShape:
    """A submission at its task's own shape, behind the smaller `cases` with their `results`.

    Cases that are added here stand behind the others in both.
    """

    judged: "_Judgement"
    task: JudgeTask
    cases: GivenCases
    results: Json
    runner: CaseRunner
    boxes: SubmissionBoxes

    def judge(self, full: Json) -> None:
        """Run a submission that is not right at a smaller shape; time one that is right."""
        records, results = self.cases.records, self.results
        if is_full_asked(records, results["compared"], full, self.runner.options.cap_bytes):
            # What is refused with the same words by its sizes alone is refused for any: the
            # reference of the full shape, which may take most of a judgement's time, is spared.
            error = results["cases"][-1].get("error")
            if error is None or error["message"] != self._refusal():
                self._execute()
        elif full and is_refused(records, results["compared"]):
            self._leave_open(full)
        ran = records[-1]["sizes"].get("variant") == FULL
        timed = ran and "time" in results["cases"][-1]
        if full and is_right(records, results["compared"]) and not timed:
            self._tile()

    def _execute(self) -> None:
        """Run it, and add that case to the others.

        Some blocks first; all where these are not right, or were late or stopped.
        """
        # The inputs lie beside those of the other cases, which the submission's box shows; expected
        # results have a folder of their own, as the names of their files are the same.
        judged, task, cases = self.judged, self.task, self.cases
        options = full_options(self.runner.options)
        reference = cases.folder.parent / "reference_full"
        make = partial(made_cases, task, options, reference, cases.folder, draws_again=False)
        prepared = judged.step("reference, full", partial(of_task, task, make), needed=False)
        if prepared is None or prepared.failed is not None:
            return
        record = {**prepared.output["cases"][0], "name": FULL}
        if record["outcome"]:
            return
        full_case = replace(cases, records=[record], again=None)
        for sampled in (SAMPLED_BLOCKS, 0):
            name = "submission, full" if not sampled else "submission, full, some blocks"
            ran = _run(judged, self.runner.at(options, sampled), self.boxes, full_case, name)
            if ran is None or not ran.get("cases"):
                continue
            compare = partial(compared_cases, task, reference, full_case, ran)
            name = "comparison, full"
            compared = judged.step(name, partial(of_task, task, compare), needed=False)
            if compared is None or compared.failed is not None:
                continue
            (result,) = compared.output["cases"]
            if result["outcome"] in {RIGHT, WRONG, REFUSED} and (
                not sampled or result["outcome"] == RIGHT
            ):
                record["sizes"] = {"variant": FULL, "sampled": sampled}
                cases.records.append(record)
                self.results["cases"].append(ran["cases"][0])
                self.results["compared"].append(result)
                return

    def _leave_open(self, full: Json) -> None:
        """Give no verdict where a smaller shape alone is refused, and the own is too large."""
        tiled, error = self._tiled, self.results["cases"][-1].get("error")
        if error is None or tiled is None or unfit(tiled[1]) or not is_timed(tiled[1]["time"]):
            return
        sentence = f"a smaller shape alone is refused ({error['message']}), and that of the task, "
        self.results["failed"] = STOPPED
        self.results["message"] = f"{sentence}{full['bytes']:,} B of arrays, is too large to be run"

    def _refusal(self) -> str:
        """Return the words that it is refused with by its sizes alone; empty for none."""
        tiled = self._tiled
        return "" if tiled is None else str(tiled[1].get("error", {}).get("message", ""))

    @cached_property
    def _tiled(self) -> tuple[Json, Json] | None:
        """The case, called without values, and what it returned; None where it cannot be made."""
        judged, task, cases = self.judged, self.task, self.cases
        make = partial(of_task, task, partial(sized_record, task, cases.folder))
        prepared = judged.step("reference, sizes", make, needed=False)
        if prepared is None or prepared.failed is not None:
            return None
        record = prepared.output["case"]
        with self.boxes.opened() as box:
            run = partial(self.runner.tiled, cases.folder, record, cases.model)
            service = self.boxes.service
            ran = judged.step("tiling, full", run, needed=False, box=box, service=service)
        if ran is None or ran.failed is not None:
            reason = "a limit ended it" if ran is None or ran.failed is None else ran.failed[1]
            return record, {"time": {"reason": reason}}
        return record, ran.output

    def _tile(self) -> None:
        """Time it by its own tiling, without values.

        Where that shape alone is refused, or overflows a local memory, it is added as a case.
        """
        records, results, tiled = self.cases.records, self.results, self._tiled
        if tiled is None:
            results["tiled"] = {
                "time": {"reason": "its inputs cannot be made by their sizes alone"}
            }
            return
        record, results["tiled"] = tiled
        error = unfit(results["tiled"])
        if error is not None and records[-1]["sizes"].get("variant") != FULL:
            records.append({**record, "sizes": {"variant": FULL, "sampled": 0}})
            findings = results["tiled"].get("findings", [])
            results["cases"].append({"outcome": REFUSED, "error": error, "findings": findings})
            results["compared"].append({"outcome": REFUSED})


def _find_writer(
    judged: "_Judgement",
    runner: CaseRunner,
    boxes: SubmissionBoxes,
    cases: "GivenCases",
    compared: list[Json],
) -> None:
    """Tell of the first wrong case which line wrote its first wrong element."""
    wrong = _first_wrong(cases.records, compared)
    if wrong is None:
        return
    record = cases.records[wrong]
    look = partial(runner.writer, cases.folder, record, compared[wrong], cases.model)
    name = "writer of the first wrong element"
    # Another box: nothing that the first run has started is there.
    with boxes.opened() as box:
        writer = judged.step(name, look, needed=False, box=box, service=boxes.service)
    if writer is not None and writer.failed is None:
        compared[wrong]["written_at"] = writer.output


def marks_of_sources(submission: Submission, place: Path, records: list[Json]) -> list[Json]:
    """Return the marks of cheating in the files of a submission."""
    files = [f for each in own_files(submission, place) for f in (each, *each.rglob("*"))]
    if submission.kind in {SAMPLE, PACKAGE}:  # scripts of its data, or of its build
        files = [file for file in files if file.suffix != ".py"]
    texts = {f: f.read_text("utf-8", "replace") for f in files if f.suffix in _SOURCES}
    python = [text for file, text in texts.items() if file.suffix == ".py"]
    python += [submission.model] if submission.model else []
    cpp = [text for file, text in texts.items() if file.suffix != ".py"]
    shapes = [each["shape"] for one in records for each in arrays_in(one["inputs"])]
    sizes = {size for shape in shapes for size in (*shape, math.prod(shape)) if size > _LEAST_SIZE}
    found = [*source_marks(list(dict.fromkeys(python)), cpp, sizes)]
    if submission.kind == SAMPLE:  # its program reads and writes files as it is meant to
        found = [mark for mark in found if mark["id"] != OUTSIDE.id]
    return list({(each["id"], each["evidence"]): each for each in found}.values())


def _load_shared(task: JudgeTask, *, model: bool) -> None:
    """Load what several steps need before they are forked."""
    if task.needs_torch or model:
        from cubecore.workflows.judge.tasks.torch_modules import require_torch

        require_torch()


def _first_wrong(records: list[Json], compared: list[Json]) -> int | None:
    """Return the first wrong case; odd sizes beside a right case cost a second run for little."""
    right = any(each.get("outcome") == RIGHT for each in compared)
    for number, (record, each) in enumerate(zip(records, compared, strict=False)):
        skipped = right and record["sizes"].get("variant") == ODD
        if each.get("outcome") == WRONG and not each.get("reason") and not skipped:
            return number
    return None


class _Judgement:
    """The steps of a judgement, with the seconds that they took."""

    def __init__(self, folder: Path, options: JudgeOptions, task: JudgeTask) -> None:
        self._folder, self._options, self._task = folder, options, task
        self._seconds: dict[str, float] = {}
        self.budget = CpuBudget(options.cpu_s)

    def step(
        self,
        name: str,
        work: Callable[[], Json],
        *,
        needed: bool = True,
        box: Sandbox | None = None,
        service: Service | None = None,
    ) -> StepOutcome | None:
        """Run a step; None, with the reason written, if it fails and is needed."""
        sys.stdout.write(f"{json.dumps({'stage': name})}\n")
        sys.stdout.flush()
        step = forked(name, work, self.budget, self._options.wall_s, box, service)
        self._seconds[name] = step.wall_s
        if step.failed is not None and needed:
            kind, sentence = step.failed
            self.write({"failed": kind, "at": name, "message": sentence})
            return None
        return step

    def count(self, name: str, work: Compilations | None) -> None:
        """Count the seconds of what was done for steps beside them."""
        if work is not None and work.wall_s:
            self._seconds[name] = work.wall_s

    def write(self, answer: Json) -> None:
        """Write what was judged, for the process that reads it."""
        answer |= {"seconds": {"cpu": self.budget.used_s, **self._seconds}}
        (self._folder / "judged.json").write_text(json.dumps(answer), "utf-8")


def of_task(task: JudgeTask, work: Callable[[], Json]) -> Json:
    """Do what runs a task's own code; what that raises is the request's fault.

    Raises
    ------
    RequestError
        If the task's code raises, or imports a package that is not installed.
    """
    try:
        return work()
    except CubecoreError:
        raise
    except ModuleNotFoundError as error:
        if is_ours(error):
            raise
        package = (error.name or "").partition(".")[0]
        sentence = f"{task.name} needs the package {package}, which is not installed"
        raise unable(task.name, sentence, f"pip install {package}") from error
    except Exception as error:
        if is_ours(error):
            raise
        raise unable(task.name, raised_by("the task", error)) from error


if __name__ == "__main__":
    judge_folder(Path(sys.argv[1]))
