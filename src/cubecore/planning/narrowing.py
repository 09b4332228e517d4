"""Requests without a legal tiling: what their chip, problem and limits exclude."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cubecore.chips import Chip, chip
from cubecore.errors import RequestError
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.repair.infeasibility import Constraint, Narrowing

if TYPE_CHECKING:
    from cubecore.aliases import Json

NARROWING_KEYS = ("cores",)
"""Keys of a problem that leave fewer tilings; null asks for no such thing."""


def narrowing(
    problem: Problem,
    settings: Mapping[str, str] | None,
) -> Narrowing:
    """Return what `problem` and a what-if chip narrow, each to be left out on its own.

    Settings that only make a chip together count as one. `problem.fix` is not part of it.
    """
    given = dict(settings or {})
    groups = _groups(problem.chip, given)
    sizes = problem.budget.sizes
    keys = [name for name in NARROWING_KEYS if getattr(problem, name) is not None]

    def narrowed(names: Collection[str]) -> tuple[Problem, Chip]:
        """Return the problem and the chip with some of the narrowing only."""
        kept = {k: v for group in groups if ", ".join(group) in names for k, v in group.items()}
        free: Json = {key: None for key in keys if key not in names}
        budget = problem.budget.of([name for name in sizes if _of_budget(name) in names])
        record = budget.applied(chip(problem.chip).what_if(kept))
        return replace(problem, **free, budget=budget), record

    constraints = []
    for group in groups:
        text = " and ".join(f"{name} = {value}" for name, value in group.items())
        constraints.append(Constraint("setting", ", ".join(group), text))
    constraints += [Constraint("request", k, f"{k} = {getattr(problem, k)}") for k in keys]
    constraints += [
        Constraint("request", _of_budget(name), f"{_of_budget(name)} = {size} B")
        for name, size in sizes.items()
    ]
    return Narrowing(tuple(constraints), narrowed)


def _of_budget(name: str) -> str:
    return f"budget.{name}"


def _groups(name: str, settings: dict[str, str]) -> list[dict[str, str]]:
    # Each setting is a constraint of its own if the chip is one without it; a setting that another
    # one needs cannot be left out alone, so then all of them are one constraint.
    record = chip(name)
    try:
        for left_out in settings:
            record.what_if({k: v for k, v in settings.items() if k != left_out})
    except RequestError:
        return [settings]
    return [{k: v} for k, v in settings.items()]
