"""The cases of a judgement between its steps: made by the reference, run, and compared."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cubecore.aliases import Json
from cubecore.workflows.judge.cheating.result_marks import result_marks
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.case_results import results_of
from cubecore.workflows.judge.submissions.full_shape import filled
from cubecore.workflows.judge.submissions.redrawn import (
    is_asked,
    marks_of,
    redrawn,
    stays,
    stored,
)
from cubecore.workflows.judge.tasks.cases import Reference, ReferenceCase
from cubecore.workflows.judge.tasks.comparison import (
    RIGHT,
    TOO_LARGE,
    UNCOMPARABLE,
    WRONG,
    leaves,
    plain,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask
from cubecore.workflows.judge.tasks.references import reference_of
from cubecore.workflows.judge.values import ArrayFolder, array_of, is_tensor, loaded

RESULTS = "results"
"""The folder of a submission's results, below that of its inputs."""


@dataclass(frozen=True, eq=False, slots=True)
class GivenCases:
    """The cases that a submission is given, and their folder; `model` tells of a ModelNew.

    `again` is one of them with other inputs, and says if the expected results depend on them.
    """

    folder: Path
    records: list[Json]
    model: Json | None
    again: Json | None


def made_cases(
    task: JudgeTask,
    options: JudgeOptions,
    reference: Path,
    folder: Path,
    *,
    draws_again: bool = True,
) -> Json:
    """Make the cases of a task: inputs for the submission, expected results for the reference."""
    known = reference_of(task)
    theirs, ours = ArrayFolder(folder), ArrayFolder(reference)
    records: list[Json] = []
    kept, again = [], None
    for case in known.cases(options):
        outcome = case.outcome or _size_outcome(case, options)
        if not outcome and known.compared(case, case.expected).outcome != RIGHT:
            outcome = UNCOMPARABLE
        plain_case = outcome in {"", UNCOMPARABLE}
        if not outcome and again is None and draws_again:
            other = redrawn(known, options, case)
            again = {} if other is None else stored(other, case, _record(other, theirs), reference)
            again |= {"of": len(records)}
        records.append(_record(case, theirs, outcome, is_plain=plain_case))
        kept.append(ours.stored(case.expected) if plain_case else None)
    (reference / "expected.json").write_text(json.dumps(kept), "utf-8")
    again = again if again and "record" in again else None
    full = getattr(known, "full", {})
    return {"cases": records, "model": _model_of(known), "again": again, "full": full}


def sized_record(task: JudgeTask, folder: Path) -> Json:
    """Return the task's own sizes as a case whose tensors have shapes and types alone."""
    known: Any = reference_of(task)
    return {"case": _record(known.sized(), ArrayFolder(folder))}


def _record(
    case: ReferenceCase, folder: ArrayFolder, outcome: str = "", *, is_plain: bool = True
) -> Json:
    """Return a case as a submission's step reads it."""
    return {
        "name": case.name,
        "outcome": outcome,
        "inputs": folder.stored(case.inputs) if is_plain else None,
        "made_with": folder.stored(case.made_with) if is_plain else None,
        "outputs": _outputs(case.expected) if is_plain and case.expected is not None else [],
        "keeps_inputs": case.keeps_inputs,
        "sizes": case.sizes,
    }


def _model_of(known: Reference) -> Json | None:
    """Return what the submission's side needs of a task whose cases call a ModelNew."""
    model: Any = getattr(known, "model", None)
    return None if model is None else asdict(model)


def _size_outcome(case: ReferenceCase, options: JudgeOptions) -> str:
    arrays = [leaf for _, leaf in (*leaves(case.inputs), *leaves(case.expected))]
    sizes = [plain(leaf).nbytes for leaf in arrays if not isinstance(leaf, str)]
    return TOO_LARGE if max(sizes, default=0) > options.cap_bytes else ""


def _outputs(expected: Any) -> list[Json]:
    """Return the name, shape and type of each expected result."""
    found = []
    for name, leaf in leaves(expected):
        array = array_of(leaf) if is_tensor(leaf) else plain(leaf)
        found.append({"name": name, "shape": list(array.shape), "dtype": str(array.dtype)})
    return found


def compared_cases(task: JudgeTask, reference: Path, cases: GivenCases, ran: Json) -> Json:
    """Compare what the submission returned with the expected results."""
    known, folder, case_results = reference_of(task), cases.folder, ran["cases"]
    kept = json.loads((reference / "expected.json").read_text("utf-8"))
    compared: list[Json] = []
    for record, expected, case in zip(cases.records, kept, case_results, strict=False):
        if case["outcome"]:
            compared.append({"outcome": case["outcome"]})
            continue
        whole = ReferenceCase(
            record["name"], loaded(folder, record["inputs"]), loaded(reference, expected)
        )
        try:
            results = results_of(folder, case)
            if "written" in case:
                masks = loaded(folder / RESULTS, case["written"])
                results = filled(results, whole.expected, [mask for _, mask in masks])
        except (OSError, ValueError, KeyError, TypeError, MemoryError):
            # A submission that has written something else than its results.
            compared.append({"outcome": WRONG, "reason": "its results cannot be read"})
            continue
        result = known.compared(whole, results)
        told_of = result.to_json()
        if result.outcome == RIGHT:
            told_of["cheating"] = [*result_marks(result, whole.expected, results, whole.name)]
        compared.append(told_of)
    again = cases.again
    if again is not None and "again" in ran and is_asked(again, compared):
        with suppress(OSError, ValueError, KeyError, TypeError, MemoryError):  # as above
            first = case_results[again["of"]]
            compared[again["of"]]["stays"] = stays(folder, ran["again"], first)
            marks = [*marks_of(known, reference, folder, again, ran["again"], first)]
            compared[again["of"]]["cheating"] += marks
    return {"cases": compared}
