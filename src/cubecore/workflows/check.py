"""check: every rule that a tiling breaks."""

from collections.abc import Mapping
from typing import Any

from cubecore.tiling.problem import Problem
from cubecore.tiling.rules import Findings, check_tiling
from cubecore.tiling.struct import TCubeTiling
from cubecore.workflows.request import as_tiling, make_request


def check(
    tiling: TCubeTiling | Mapping[str, Any],
    problem: Problem | Mapping[str, Any] | None = None,
    *,
    edition: str = "000",
    reading: str = "effective",
    settings: Mapping[str, str] | None = None,
    **keys: Any,
) -> Findings:
    """Return every violated rule with values and remedy, and advice.

    Raises:
        RequestError: a malformed tiling or problem, or extents that do not agree.
    """
    request = make_request(problem, settings, keys)
    given = as_tiling(tiling)
    given.require_match(request.problem)
    return check_tiling(given, request.problem, request.chip, edition, reading)
