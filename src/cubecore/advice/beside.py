"""Beside a plan's space: split K, another template or padded rows, where they are much faster.

Each is a plan of its own, of the quick search; one that the hardware's bound leaves no chance is
not made.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from shlex import quote

from cubecore.advice.reasons import padded_extents
from cubecore.aliases import Json, JsonMapping
from cubecore.errors import CubecoreError
from cubecore.kernels.matmul.launch_time import is_known
from cubecore.planning.event_ranking import can_be_timed, plan_of
from cubecore.planning.planner import plan_tilings
from cubecore.planning.timed_product import TimedProduct
from cubecore.tiling.cost.closed_form import lower_bound
from cubecore.tiling.model.choices import TEMPLATES
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.capabilities import validate

LEAST_SAVED = 0.1
"""Share of the time from which another kernel or layout is told."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A plan for the same matmul by another kernel or layout, much faster than the one asked for.

    `what` differs, in words; `command` plans it.
    """

    what: str
    problem: Problem
    us: float | None
    cycles: int
    saves: float
    command: str

    def to_json(self) -> Json:
        """Return the figures and the command."""
        names = ("what", "us", "cycles", "saves", "command")
        return {name: getattr(self, name) for name in names}


def beside(request: TilingRequest, tiling: TCubeTiling, cycles: int) -> tuple[Beside, ...]:
    """Return what is over 10 % faster than a plan's tiling of known cycles, the fastest first."""
    others = (_faster(request, what, changes, cycles) for what, changes in _others(request, tiling))
    return tuple(sorted(filter(None, others), key=lambda one: one.cycles))


def _others(request: TilingRequest, tiling: TCubeTiling) -> Iterator[tuple[str, JsonMapping]]:
    """Yield what else could be asked for: in words, and as keys of the problem."""
    problem = request.problem
    if not problem.split_k:
        yield "split K over cores", {"split_k": True}
    for template in TEMPLATES:
        if template != problem.template:
            yield f"template {template}", {"template": template}
    off = padded_extents(TimedProduct(problem, tiling, request.chip))
    if off is not None:
        extents: Mapping[str, int] = off[1]
        yield " and ".join(f"{x.upper()} padded to {n:,}" for x, n in extents.items()), extents


def _faster(request: TilingRequest, what: str, changes: JsonMapping, cycles: int) -> Beside | None:
    """Return the plan of a problem with other keys if it is much faster than `cycles`, else None.

    None as well where the keys do not go with the rest.
    """
    limit, chip = (1 - LEAST_SAVED) * cycles, request.chip
    try:
        problem = replace(request.problem, **changes)
        other = replace(request, problem=problem)
        validate(problem, chip)
        if not can_be_timed(problem, chip) or lower_bound(problem, chip) >= limit:
            return None
        # Trees take long to walk: only where the closed form leaves a chance.
        if not is_known(problem, chip):
            likely = plan_tilings(problem, chip, 0)
            if likely.best.predicted.cycles >= limit:
                return None
        solution, _ = plan_of(other, 0, "quick")
    except CubecoreError:
        return None
    took = solution.best.predicted.cycles
    if took >= limit:
        return None
    words = command(problem, request.settings)
    return Beside(what, problem, chip.microseconds(took), took, 1 - took / cycles, words)


def command(problem: Problem, settings: Mapping[str, str]) -> str:
    """Return the command line that plans a problem."""
    least = {name: getattr(problem, name) for name in ("m", "n", "k", "a")}
    plain = Problem(**least).to_json()
    words = ["cubecore", "plan", *(f"--{axis} {least[axis]}" for axis in "mnk")]
    for name, value in problem.to_json().items():
        if name == "a" and value != "float16":
            words.append(f"--a {value}")
        elif name in {"epilogue", "fix", "budget"}:
            words += _grouped(name, value)
        elif value != plain[name]:
            words.append(_option(name, value))
    words += [f"--set {quote(f'{field}={value}')}" for field, value in settings.items()]
    return " ".join(words)


def _option(name: str, value: object) -> str:
    """Return a key of a problem as an option."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return option if value else f"--no-{option[2:]}"
    return f"{option} {quote(str(value))}"


def _grouped(name: str, values: JsonMapping) -> Iterator[str]:
    """Yield the options of what a problem's key holds several of."""
    for key, value in values.items():
        if name == "epilogue":
            if isinstance(value, list | tuple):
                yield "--scale-file FILE"
            elif value:
                yield _option(key, value)
        elif value is not None:
            yield f"--{name} {key}={_limits(value) if isinstance(value, Mapping) else value}"


def _limits(value: JsonMapping) -> str:
    """Return limits of a field as they are typed: ``16..512/16``."""
    low, high, multiple = (value.get(name, "") for name in ("min", "max", "multiple"))
    return f"{low}..{high}" + (f"/{multiple}" if multiple not in {"", 1} else "")
