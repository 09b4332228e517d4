"""compare: two tilings of one problem, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from cubecore.answers.compare import ComparedTiling, Comparison
from cubecore.answers.time import time_legal
from cubecore.kernels.runnable import require_timed
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import given_tiling, make_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cubecore.aliases import JsonMapping
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling


@takes_problem
def compare(
    first: TCubeTiling | JsonMapping,
    second: TCubeTiling | JsonMapping,
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    **keys: Unpack[ProblemKeys],
) -> Comparison:
    """Return two tilings of one problem side by side: checked and, where legal, timed.

    Parameters
    ----------
    first : TCubeTiling or mapping
        One tiling.
    second : TCubeTiling or mapping
        The other.
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments, for a report or a trace.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Comparison
        Both, the fields that differ, and the ratio of their times.

    Raises
    ------
    RequestError
        If the request cannot be timed, or the extents differ.

    Examples
    --------
    >>> tiling = cubecore.plan(m=64, n=64, k=64).tiling
    >>> cubecore.compare(tiling, tiling, m=64, n=64, k=64).ratio
    1.0
    """
    request = make_request(problem, settings, keys, first)
    require_timed(request.chip)
    sides = []
    for tiling in (given_tiling(x, request.problem) for x in (first, second)):
        findings = check_case(RuleCase(tiling, request.problem, request.chip))
        timed = time_legal(request, tiling, record) if findings.legal else None
        sides.append(ComparedTiling(tiling, findings, timed))
    return Comparison(request, *sides)
