"""sweep: one matmul timed over values of its shape, its options, its tiling or its chip."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.sweep import MOST_POINTS, Series, SweepPoint, SweptAxis
from cubecore.errors import CubecoreError, DeadlockError, refuse, unable
from cubecore.kernels.runnable import require_timed
from cubecore.presented.text import Value
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.executors import in_order, require_executor
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.plan import legal_or_planned
from cubecore.workflows.request import as_tiling, make_request
from cubecore.workflows.time import time

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST_AXES = 2


@takes_problem
def sweep(
    axes: Mapping[str, Sequence[object]] | Sequence[SweptAxis],
    problem: Problem | JsonMapping | None = None,
    *,
    tiling: TCubeTiling | JsonMapping | None = None,
    settings: Mapping[str, str] | None = None,
    step: str | None = None,
    keep_tiling: bool = False,
    progress: Callable[[int], None] = lambda _: None,
    executor: "Executor | None" = None,
    **keys: Unpack[ProblemKeys],
) -> Series:
    """Return the timing at every combination of the values of one or two axes.

    Parameters
    ----------
    axes : mapping or sequence of SweptAxis
        At most two names (keys of a problem, fields of TCubeTiling or the chip) with values.
    problem : Problem or mapping or None
        The product: a record or a JSON object; keywords replace its keys.
    tiling : TCubeTiling or mapping or None
        The tiling of every point, with the values of its axes; each point's plan unless given.
    settings : mapping or None
        Fields of a what-if chip, as texts.
    step : str or None
        As for `time`.
    keep_tiling : bool
        Plan once, for the problem as it stands (for axes of the chip or the tiling).
    progress : callable
        Told how many points are done.
    executor : Executor or None
        As for `plan_many`.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Series
        Every point, with its timing or why there is none.

    Raises
    ------
    RequestError
        If an axis does not exist, there are too many points, or none has a well-formed problem.

    Examples
    --------
    >>> len(cubecore.sweep({"m": [64, 128]}, n=64, k=64).answers)
    2
    """
    chosen = _axes(axes)
    given = {**(problem.to_json() if isinstance(problem, Problem) else problem or {}), **keys}
    kept = _planned(given, settings) if keep_tiling and tiling is None else tiling
    answers: list[SweepPoint] = []
    for answer in _answers(chosen, given, dict(settings or {}), kept, step, executor):
        answers.append(answer)
        progress(len(answers))
    if not any(answer.timed for answer in answers):
        raise unable("a sweep", f"no point of the sweep can be timed: {answers[0].error}")
    return Series(chosen, _fixed(given, chosen), tuple(answers))


def _fixed(given: JsonMapping, axes: Sequence[SweptAxis]) -> Json:
    """Return the keys of a problem that no axis varies."""
    return {key: given[key] for key in given if key not in {axis.name for axis in axes}}


def _answers(
    axes: Sequence[SweptAxis],
    given: JsonMapping,
    settings: dict[str, str],
    tiling: TCubeTiling | JsonMapping | None,
    step: str | None,
    executor: "Executor | None",
) -> Iterator[SweepPoint]:
    """Time one point after the other: the last axis varies fastest."""
    names = [axis.name for axis in axes]
    points = itertools.product(*(axis.values for axis in axes))
    tasks = (
        (axes, dict(zip(names, values, strict=True)), given, settings, tiling, step)
        for values in points
    )
    if executor is None:
        yield from itertools.starmap(_answer, tasks)
    else:
        require_executor(executor)
        yield from in_order(executor, _answer, tasks)


def _planned(keys: JsonMapping, settings: Mapping[str, str] | None) -> TCubeTiling:
    """Return the plan's tiling of the problem as it stands."""
    request = make_request(keys, settings, {})
    require_timed(request.chip)
    return legal_or_planned(None, request)


def _axes(axes: Mapping[str, Sequence[object]] | Sequence[SweptAxis]) -> tuple[SweptAxis, ...]:
    """Return the axes of a sweep, one or two of different names."""
    if isinstance(axes, Mapping):
        axes = [SweptAxis.of_values(name, list(values)) for name, values in axes.items()]
    _require_axes(axes)
    return tuple(axes)


def _require_axes(axes: Sequence[SweptAxis]) -> None:
    if not 1 <= len(axes) <= MOST_AXES:
        raise refuse("a sweep", "vary one or two names", len(axes))
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise refuse("a sweep", "vary two different names", " and ".join(names))
    points = math.prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        raise refuse("a sweep", f"have at most {MOST_POINTS} points", points)


def _answer(
    axes: Sequence[SweptAxis],
    point: Mapping[str, Value],
    given: JsonMapping,
    settings: Mapping[str, str],
    tiling: TCubeTiling | JsonMapping | None,
    step: str | None,
) -> SweepPoint:
    keys, fix, settings = dict(given), dict(given.get("fix") or {}), dict(settings)
    # A value goes where its axis belongs. One of the tiling is asked of the planner (`fix`), which
    # plans each point anew; of a tiling that is given it replaces the field.
    for axis in axes:
        value = point[axis.name]
        if axis.of == "problem":
            keys[axis.name] = value
        elif axis.of == "tiling":
            fix[axis.name] = value
        else:
            settings[axis.name] = str(value)
    if fix:
        keys["fix"] = fix
    try:
        if tiling is not None:
            fields_varied = {axis.name: point[axis.name] for axis in axes if axis.of == "tiling"}
            tiling = TCubeTiling.from_json({**as_tiling(tiling).to_json(), **fields_varied})
        return SweepPoint(point, time(keys, tiling=tiling, settings=settings, step=step))
    except (CubecoreError, DeadlockError) as error:
        return SweepPoint(point, None, str(error).replace("\n", "; "))
