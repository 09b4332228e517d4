"""A case drawn again with other inputs: whose results change with them, and whose do not.

Results that stay as they were, where the expected ones change, come from no computation. Where the
expected ones stay, as those of an operator that makes an identity matrix, nobody need read inputs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.workflows.judge.cheating.kinds import GIVEN_ALONE, INDEPENDENT
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.case_results import results_of
from cubecore.workflows.judge.tasks.cases import Reference, ReferenceCase
from cubecore.workflows.judge.tasks.comparison import RIGHT, WRONG, leaves, plain
from cubecore.workflows.judge.values import ArrayFolder, loaded

_EXPECTED = "redrawn.json"


def redrawn(known: Reference, options: JudgeOptions, first: ReferenceCase) -> ReferenceCase | None:
    """Return a case with other inputs of the same shapes; None if the task has none."""
    for case in known.cases(replace(options, seed=options.seed + 1)):
        if case.name != first.name:
            continue
        if case.outcome or not _alike(case.inputs, first.inputs):
            return None
        return None if _equal(case.inputs, first.inputs) else case
    return None


def stored(case: ReferenceCase, first: ReferenceCase, record: Json, reference: Path) -> Json:
    """Return what the steps need of a case that was drawn again; `record` is its own."""
    kept = ArrayFolder(reference).stored(case.expected)
    (reference / _EXPECTED).write_text(json.dumps(kept), "utf-8")
    return {"record": record, "depends": not _equal(case.expected, first.expected)}


def marks_of(
    known: Reference, reference: Path, folder: Path, again: Json, again_case: Json, first: Json
) -> Iterator[Json]:
    """Yield the mark of a submission whose case is right, and wrong with other inputs.

    `again_case` is what the submission's step returns of the case that was drawn again, `first` of
    the case itself.
    """
    if again_case["outcome"]:
        return
    record = again["record"]
    expected = loaded(reference, json.loads((reference / _EXPECTED).read_text("utf-8")))
    case = ReferenceCase(record["name"], loaded(folder, record["inputs"]), expected)
    got = results_of(folder, again_case)
    if known.compared(case, got).outcome != WRONG:
        return
    # Wrong now, right before: the same bytes were computed of no input; other bytes may come from
    # a fault that the first inputs did not meet.
    if _equal(got, results_of(folder, first)):
        yield INDEPENDENT.found("the same results for other inputs", case.name)
    else:
        yield GIVEN_ALONE.found("wrong results for other inputs of its shapes", case.name)


def stays(folder: Path, case: Json, first: Json) -> bool:
    """Return whether results are the same for other inputs, to the bit."""
    return not case["outcome"] and _equal(results_of(folder, case), results_of(folder, first))


def without_independence(marks: Sequence[Json]) -> list[Json]:
    """Return the marks that hold where the task's results do not depend on its inputs."""
    return [each for each in marks if each["id"] != INDEPENDENT.id]


def is_asked(again: Json | None, compared: Sequence[Json]) -> bool:
    """Return whether the case that was drawn again tells anything: the case itself is right."""
    return again is not None and compared[again["of"]].get("outcome") == RIGHT


def _arrays(value: Any) -> list[Any]:
    return [plain(leaf) for _, leaf in leaves(value)]


def _alike(one: Any, other: Any) -> bool:
    a, b = _arrays(one), _arrays(other)
    return [(x.shape, x.dtype) for x in a] == [(y.shape, y.dtype) for y in b]


def _equal(one: Any, other: Any) -> bool:
    pairs = zip(_arrays(one), _arrays(other), strict=True)
    return _alike(one, other) and all(_raw(a) == _raw(b) for a, b in pairs)


def _raw(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()
