"""One query of a sweep: from what was asked to one line of JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import chip_key, is_chip_file
from cubecore.errors import CubecoreError, NoLegalTilingError, RequestError
from cubecore.package_data import ROOT, files_below, packaged
from cubecore.planning.local_search import STANDARD
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.repair.infeasibility import ConflictError
from cubecore.version import __version__
from cubecore.workflows.plan import plan_request
from cubecore.workflows.request import make_request, request_of

_DECIDES = (
    *("dtypes.py", "units.py", "chips", "isa", "tiling", "timing", "kernels", "planning"),
    *("answers/plan.py", "workflows/plan.py"),
)
"""The files of the package that a plan depends on."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The settings common to every query of a sweep."""

    settings: Mapping[str, str]
    alternatives: int
    search: str = STANDARD

    def to_json(self) -> Json:
        """Return the options; the search where it is not the standard one."""
        settings = dict(sorted(self.settings.items()))
        other = {} if self.search == STANDARD else {"search": self.search}
        return {"settings": settings, "alternatives": self.alternatives, **other}


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """An answer as one line of JSON, and whether it is a plan."""

    planned: bool
    text: str


def plan_line(problem: JsonMapping, options: SweepOptions) -> AnswerLine:
    """Return a problem's plan, or why there is none: ``{problem, error {rule, message}}``.

    `problem` is what `checked` returned; it is repeated as it is. A plan's line has no reasons:
    they take about as long as the plan.
    """
    try:
        request = request_of(Problem.from_json(problem), options.settings)
        plan = plan_request(request, options.alternatives, options.search)
    except CubecoreError as error:
        return AnswerLine(False, json.dumps({"problem": dict(problem), "error": error_of(error)}))
    return AnswerLine(True, json.dumps(plan.to_json(reasons=False)))


def error_of(error: CubecoreError) -> Json:
    """Return ``{rule, message}``; `rule` is None for a request that cannot be carried out."""
    rule = error.rule if isinstance(error, ConflictError) else None
    if rule is None and isinstance(error, NoLegalTilingError):
        rule = ""
    return {"rule": rule, "message": str(error)}


def checked(problem: Problem | JsonMapping, options: SweepOptions) -> Json:
    """Return a problem with every key, once it is known to make sense on its chip.

    Raises
    ------
    RequestError
        If the query is malformed.
    """
    return make_request(problem, options.settings, {}).problem.to_json()


def key_of(problem: JsonMapping, options: SweepOptions) -> str:
    """Return what stands for a question: the same for the same problem, chip and options.

    A chip that is a file stands for what the file says now.
    """
    asked = {"problem": problem, **options.to_json()}
    if is_chip_file(problem["chip"]):
        asked["chip"] = chip_key(problem["chip"])
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def model_version() -> str:
    """Return the version of what decides plans: cubecore's, and a digest of its code and chips.

    Two versions may give different plans for one problem; the same version does not.
    """
    digest = hashlib.blake2b(digest_size=4)
    for name in _DECIDES:
        path = packaged(*name.split("/"), root=ROOT)
        parts = [("", path)] if path.is_file() else files_below(path, ".py", ".toml")
        for part, file in parts:
            digest.update(f"{name}/{part}".rstrip("/").encode() + b"\0" + file.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"


def broken_line(number: int, asked: object, error: RequestError) -> AnswerLine:
    """Return the answer to a query that makes no sense, with its line number."""
    return AnswerLine(
        False, json.dumps({"line": number, "problem": asked, "error": error_of(error)})
    )
