"""time: where the cycles of a kernel go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from cubecore.answers.time import Timed
from cubecore.errors import refuse
from cubecore.kernels.matmul.launch import require_supported
from cubecore.kernels.runnable import require_timed
from cubecore.planning.timed_product import TimedProduct
from cubecore.units import ceil_div
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.plan import legal_or_planned
from cubecore.workflows.request import make_request, of_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cubecore.advice.timed_changes import TimedChanges
    from cubecore.aliases import JsonMapping
    from cubecore.answers.plan import TilingPlan
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.request import TilingRequest
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.timing.records import Timeline

_MOST_STEPS = 50_000_000
"""Base-K steps of one core that are walked one by one: some ten minutes."""


@takes_problem
def time(
    problem: Problem | JsonMapping | TilingPlan | None = None,
    *,
    tiling: TCubeTiling | JsonMapping | None = None,
    step: str | None = None,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    full: bool = False,
    advise: bool = False,
    **keys: Unpack[ProblemKeys],
) -> Timed:
    """Return the event-driven timing of a product, and where its cycles go.

    Parameters
    ----------
    problem : Problem or mapping or TilingPlan or None
        The product: a record or a JSON object, or a plan with its tiling. Keys of it can also be
        given as keywords, and replace those of `problem`.
    tiling : TCubeTiling or mapping or None
        The plan's unless given.
    step : str or None
        The kind of kernel that pays the scalar unit's cost of a base-K step: MDL or NORM (the
        template's unless given), CONSTANT (tiling known to the compiler) or BASIC (written by
        hand).
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments, for a report or a trace.
    full : bool
        Walk every instruction instead of skipping what recurs: the same cycles, slowly.
    advise : bool
        Time the product again with each change that may help.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Timed
        The timeline, and the changes with `advise`.

    Raises
    ------
    RequestError
        If the problem or an option is malformed, or no model times the request.
    IllegalTilingError
        If the tiling breaks a rule.

    Examples
    --------
    >>> cubecore.time(m=64, n=64, k=64).timeline.limited_by
    'start-up'
    """
    product, tiling, settings = of_plan(problem, tiling, settings)
    request = _timed_request(product, settings, keys, tiling)
    chosen = legal_or_planned(tiling, request)
    _require_walkable(chosen, full=full)
    product = TimedProduct(request.problem, chosen, request.chip, step)
    line = product.timed(record=record, full=full)
    changes = _changes(product, line) if advise else None
    return Timed(request, chosen, line, changes, step)


def _timed_request(
    problem: Problem | JsonMapping | None,
    settings: Mapping[str, str] | None,
    keys: ProblemKeys,
    tiling: TCubeTiling | JsonMapping | None,
) -> TilingRequest:
    """Return the request; `require_timed` and `require_supported` refuse what no model times."""
    request = make_request(problem, settings, keys, tiling)
    require_timed(request.chip)
    require_supported(request.problem)
    return request


def _changes(product: TimedProduct, line: Timeline) -> TimedChanges:
    from cubecore.advice.timed_changes import product_changes

    return product_changes(product, line)


def _require_walkable(tiling: TCubeTiling, *, full: bool) -> None:
    """Refuse a full walk that would not end today."""
    m, n = min(tiling.singleCoreM, tiling.M), min(tiling.singleCoreN, tiling.N)
    tiles = ceil_div(m, tiling.baseM) * ceil_div(n, tiling.baseN)
    steps = tiles * ceil_div(tiling.singleCoreK, tiling.baseK)
    if full and steps > _MOST_STEPS:
        raise refuse(
            "a core",
            f"take at most {_MOST_STEPS:,} base-K steps to be timed one by one",
            f"{steps:,}",
            "without --full what recurs is skipped",
        )
