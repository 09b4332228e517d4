"""sweep: one product timed over values of its shape, its options, its tiling or its chip."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Unpack

from cubecore.aliases import Json, JsonMapping
from cubecore.chips.model import FACT_FIELDS, number_type
from cubecore.dtypes import type_name
from cubecore.errors import CubecoreError, DeadlockError, did_you_mean, refuse, unable
from cubecore.kernels.runnable import require_timed
from cubecore.lazy_dataclass import dataclass
from cubecore.presented import Presented
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.model.problem import COUNTS, FLAGS, OPTIONAL_COUNTS, Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.executors import in_order, require_executor
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.plan import legal_or_planned
from cubecore.workflows.request import as_tiling, make_request
from cubecore.workflows.time import Timed, time

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST_POINTS = 1000
"""Points of one sweep."""
MOST_AXES = 2
_RANGE = re.compile(r"([^.,]+(?:\.\d+)?)\.\.([^/x]+)(?:(/|x)(.+))?")
_COUNTS = (*COUNTS, *OPTIONAL_COUNTS, "seed")
_FLAGS = (*FLAGS, "unit_flag")
_NOT_VARIED = ("epilogue", "fix", "budget")
_KEYS = tuple(f.name for f in fields(Problem) if f.name not in _NOT_VARIED)
Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Axis:
    """A varied quantity: a key of the ``problem``, a field of the ``chip`` or the ``tiling``."""

    name: str
    of: str
    values: tuple[Value, ...]

    @property
    def is_number(self) -> bool:
        """True if the values have distances."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @classmethod
    def from_text(cls, text: str) -> "Axis":
        """Return the axis of ``NAME=VALUES``, as on the command line.

        VALUES are ``64,128,512``, ``512..4096/512`` (every 512), ``1..8`` (every whole number) or
        ``1024..65536x2`` (each twice the one before); names of types, formats and chips go with
        commas.

        Raises
        ------
        RequestError
            If there is no such name, or it does not take the values.
        """
        name, sign, values = (part.strip() for part in text.partition("="))
        if not sign or not name or not values:
            raise refuse("a sweep", "be given as NAME=VALUES", repr(text))
        return cls.of_values(name, list(_spelled(name, values)))

    @classmethod
    def of_values(cls, name: str, values: Sequence[object]) -> "Axis":
        """Return the axis over values of a name; ``-`` in a key is as good as ``_``.

        Raises
        ------
        RequestError
            If there is no such name, or it does not take the values.
        """
        key = name.replace("-", "_")
        if key in _KEYS:
            taken, of, name = [_of_key(key, value) for value in values], "problem", key
        elif name in PLANNED_FIELDS:
            taken, of = [_whole(name, value) for value in values], "tiling"
        elif name in FACT_FIELDS:
            taken, of = [_of_chip(name, value) for value in values], "chip"
        else:
            near = did_you_mean(name, [*_KEYS, *PLANNED_FIELDS, *FACT_FIELDS])
            need = "be over a key of the problem, or a field of the tiling or the chip"
            raise refuse("a sweep", need, repr(name), near)
        if not taken:
            raise refuse(name, "have values", "none")
        if len(set(taken)) < len(taken):
            raise refuse(name, "take each value once", ", ".join(map(str, taken)))
        return cls(name, of, tuple(taken))


def _spelled(name: str, text: str) -> Iterator[str | int | float]:
    """Yield the values that a text spells."""
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            yield part.strip()
            continue
        low, high = (_number(name, end) for end in match.group(1, 2))
        step = _number(name, match[4]) if match[4] else 1
        times = match[3] == "x"
        if not low <= high or step <= (1 if times else 0) or (times and low <= 0):
            need = "have a range that rises, as 512..4096/512 or 1024..65536x2"
            raise refuse(name, need, repr(part.strip()))
        yield from _steps(name, low, high, step, times=times)


def _steps(
    name: str, low: float, high: float, step: float, *, times: bool
) -> Iterator[int | float]:
    count = math.log(high / low, step) if times else (high - low) / step
    if count > MOST_POINTS:
        raise refuse(name, f"have at most {MOST_POINTS} values", f"{count:,.0f}")
    for number in range(int(count + 1e-9) + 1):
        yield low * step**number if times else low + step * number


def _number(name: str, text: str) -> int | float:
    try:
        value = float(text)
    except ValueError:
        raise refuse(name, "have a range of numbers", repr(text)) from None
    if not math.isfinite(value):
        raise refuse(name, "have a range of numbers", repr(text))
    return int(value) if value.is_integer() else value


def _whole(name: str, value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise refuse(name, "take whole numbers", repr(value)) from None
    if isinstance(value, bool) or not number.is_integer():
        raise refuse(name, "take whole numbers", repr(value))
    return int(number)


def _of_key(key: str, value: object) -> Value:
    if key in _COUNTS:
        return _whole(key, value)
    if key in _FLAGS:
        words = {"true": True, "false": False, "True": True, "False": False}
        if str(value) not in words:
            raise refuse(key, "be true or false", repr(value))
        return words[str(value)]
    return str(type_name(value))


def _of_chip(name: str, value: Any) -> Value:
    kind = number_type(name)
    if kind is Mapping:
        raise refuse(name, "be a field with one number to be varied", "a table by name")
    if kind is int:
        return _whole(name, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise refuse(name, "take numbers", repr(value)) from None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of a sweep: its values by axis, and its timing or the `error` in its place."""

    values: Mapping[str, Value]
    timed: Timed | None
    error: str | None = None

    def to_json(self) -> Json:
        """Return the point as JSON; the figures are null where there is an error."""
        line = None if self.timed is None else self.timed.timeline
        return {
            "values": dict(self.values),
            "us": None if line is None else line.us,
            "interval": None if self.timed is None else self.timed.interval.to_json(),
            "cycles": None if line is None else line.cycles,
            "tflops": None if line is None else line.tflops,
            "utilisation": None if line is None else line.utilisation,
            "limited_by": None if line is None else line.limited_by,
            "tiling": None if self.timed is None else self.timed.tiling.to_json(),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Series(Presented):
    """A sweep's axes and points; the first axis is the slowest to change.

    `fixed` has the problem's keys that all points share.
    """

    axes: tuple[Axis, ...]
    fixed: JsonMapping
    answers: tuple[SweepPoint, ...]

    @property
    def complete(self) -> bool:
        """True if every point has a time."""
        return all(answer.timed is not None for answer in self.answers)

    def to_json(self) -> Json:
        """Return axes and points as JSON."""
        return {
            "axes": [
                {"name": axis.name, "of": axis.of, "values": list(axis.values)}
                for axis in self.axes
            ],
            "problem": dict(self.fixed),
            "points": [answer.to_json() for answer in self.answers],
        }


@takes_problem
def sweep(
    axes: Mapping[str, Sequence[object]] | Sequence[Axis],
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
    axes : mapping or sequence of Axis
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


def _fixed(given: JsonMapping, axes: Sequence[Axis]) -> Json:
    """Return the keys of a problem that no axis varies."""
    return {key: given[key] for key in given if key not in {axis.name for axis in axes}}


def _answers(
    axes: Sequence[Axis],
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


def _axes(axes: Mapping[str, Sequence[object]] | Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axes of a sweep, one or two of different names."""
    if isinstance(axes, Mapping):
        axes = [Axis.of_values(name, list(values)) for name, values in axes.items()]
    _require_axes(axes)
    return tuple(axes)


def _require_axes(axes: Sequence[Axis]) -> None:
    if not 1 <= len(axes) <= MOST_AXES:
        raise refuse("a sweep", "vary one or two names", len(axes))
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise refuse("a sweep", "vary two different names", " and ".join(names))
    points = math.prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        raise refuse("a sweep", f"have at most {MOST_POINTS} points", points)


def _answer(
    axes: Sequence[Axis],
    point: Mapping[str, Value],
    given: JsonMapping,
    settings: Mapping[str, str],
    tiling: TCubeTiling | JsonMapping | None,
    step: str | None,
) -> SweepPoint:
    keys, fix, settings = dict(given), dict(given.get("fix") or {}), dict(settings)
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
