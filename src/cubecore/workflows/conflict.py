"""Why a request has no legal tiling: what its chip, its problem and its wishes narrow."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from cubecore.chips import Chip, chip
from cubecore.errors import NoLegalTilingError, RequestError, Violation
from cubecore.tiling.conflict import Conflict, Constraint, Narrowing, find_conflict
from cubecore.tiling.problem import Problem
from cubecore.tiling.repair import smallest
from cubecore.tiling.rule_model import Case
from cubecore.tiling.struct import FIELDS, TCubeTiling
from cubecore.workflows.request import Request

NARROWING_KEYS = ("cores",)
"""Keys of a problem that leave fewer tilings; null asks for no such thing."""


class ConflictError(NoLegalTilingError):
    """No tiling is legal, and `conflict` says which constraints see to that (exit code 1)."""

    def __init__(self, request: Request, conflict: Conflict) -> None:
        self.conflict = conflict
        p = request.problem
        listed = " and ".join(constraint.text for constraint in conflict.constraints)
        many = len(conflict.constraints) > 1
        verb = "conflict" if many else "excludes them all"
        remedy = "leave out any one of them" if many and conflict.minimal else ""
        subject = f"{p.m} x {p.n} x {p.k} on {request.chip.name}"
        need = "have a tiling that satisfies every rule"
        super().__init__([Violation(subject, need, f"none: {listed} {verb}", remedy)])

    @property
    def rule(self) -> str:
        """The id of the first rule that takes part."""
        return next((c.name for c in self.conflict.constraints if c.kind == "rule"), "")

    def to_json(self) -> dict[str, Any]:
        """Return the conflict beside the message."""
        return super().to_json() | {"rule": self.rule, "conflict": self.conflict.to_json()}


def narrowing(
    problem: Problem,
    settings: Mapping[str, str] | None,
    as_planned: Callable[[Chip], Chip] = lambda record: record,
) -> Narrowing:
    """Return what `problem` and a what-if chip narrow, each to be left out on its own.

    Settings that only make a chip together count as one.
    """
    given = dict(settings or {})
    groups = _groups(problem.chip, given)
    keys = [name for name in NARROWING_KEYS if getattr(problem, name) is not None]

    def narrowed(names: Collection[str]) -> tuple[Problem, Chip]:
        """Return the problem and the chip with some of the narrowing only."""
        kept = {k: v for group in groups if ", ".join(group) in names for k, v in group.items()}
        free: dict[str, Any] = {key: None for key in keys if key not in names}
        return replace(problem, **free), as_planned(chip(problem.chip).what_if(kept))

    constraints = []
    for group in groups:
        text = " and ".join(f"{name} = {value}" for name, value in group.items())
        constraints.append(Constraint("setting", ", ".join(group), text))
    constraints += [Constraint("request", k, f"{k} = {getattr(problem, k)}") for k in keys]
    return Narrowing(tuple(constraints), narrowed)


def _groups(name: str, settings: dict[str, str]) -> list[dict[str, str]]:
    record = chip(name)
    try:
        for left_out in settings:
            record.what_if({k: v for k, v in settings.items() if k != left_out})
    except RequestError:
        return [settings]
    return [{k: v} for k, v in settings.items()]


def why_no_plan(
    request: Request, settings: Mapping[str, str] | None, as_planned: Callable[[Chip], Chip]
) -> Conflict | None:
    """Return the constraints that leave a request without a plan; None if none are found.

    `as_planned` makes of a chip the one that the planner plans for.
    """
    p = request.problem
    empty = dict.fromkeys(FIELDS, 0) | {"M": p.m, "N": p.n, "Ka": p.k, "Kb": p.kb or p.k}
    case = Case(TCubeTiling(**empty), p, as_planned(request.chip))
    return find_conflict(
        replace(case, tiling=smallest(case)), (), narrowing(p, settings, as_planned)
    )
