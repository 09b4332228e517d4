"""compare: two tilings of one problem, or two saved results, side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from cubecore.answers.compare.saved_json import COMPARED, Saved
from cubecore.answers.compare.saved_pairs import compared
from cubecore.answers.compare.tilings import ComparedTiling, Comparison
from cubecore.answers.time import time_legal
from cubecore.errors import unable
from cubecore.kernels.runnable import require_timed
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import given_tiling, make_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cubecore.aliases import JsonMapping
    from cubecore.answers.compare.saved import SavedComparison
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling

_MOST_BYTES = 1 << 28
"""Longer files are no saved results and are not read."""


@takes_problem
def compare(
    first: TCubeTiling | JsonMapping,
    second: TCubeTiling | JsonMapping,
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    names: Sequence[str] = ("first", "second"),
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
    names : sequence of str
        What the two are called in the answer.
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
    one, other = sides
    return Comparison(request, one, other, names)


def saved_comparison(first: str, second: str) -> SavedComparison | None:
    """Return two results that commands printed with --json side by side, as they were saved.

    None where both files hold tilings, which `compare` takes: plans, checks, tilings alone. The
    files are called by their names.

    Raises
    ------
    RequestError
        If the two are of different kinds, or a value is not what such a result has.
    """
    pair = [_saved(path) for path in (first, second)]
    kinds = [None if saved is None else saved.kind for saved in pair]
    known = [saved for saved in pair if saved is not None]
    have_tilings = [saved.has_tiling for saved in known]
    kind = kinds[0] or ""
    if kind in COMPARED and kind == kinds[1]:
        return replace(compared(kind, (first, second), known), of_tilings=all(have_tilings))
    distinct = len(COMPARED & {*kinds}) > 1
    if not distinct and all(saved.has_tiling or saved.kind is None for saved in known):
        return None
    words = [f"a {kind}" if kind else "a tiling" for kind in kinds]
    held = f"{first} holds {words[0]} and {second} {words[1]}"
    needs = "compare takes two tilings, two times, two runs or two steps of models"
    raise unable("compare", f"{held}; {needs}")


def _saved(path: str) -> Saved | None:
    """Return the JSON object of a file; None of all else, which the reader of tilings judges."""
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        fields = json.loads(data.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return Saved(fields, path) if isinstance(fields, dict) else None
