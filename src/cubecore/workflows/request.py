"""From what a user asks to a problem on a chip."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import chip
from cubecore.errors import CubecoreError, Violation, unable
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.capabilities import validate
from cubecore.tiling.rules.checker import RuleFinding


class IllegalTilingError(CubecoreError):
    """A tiling that breaks rules cannot be run or timed (exit code 1)."""

    def __init__(self, findings: tuple[RuleFinding, ...]) -> None:
        self.findings = findings
        super().__init__(
            Violation("the tiling", "be legal", finding.message) for finding in findings
        )

    def __str__(self) -> str:
        """Return one line for each broken rule, as `check` prints them."""
        return "\n".join(finding.message for finding in self.findings)

    def to_json(self) -> Json:
        """Return the findings beside the message."""
        return super().to_json() | {"findings": [finding.to_json() for finding in self.findings]}


class Planned(Protocol):
    """An answer that holds a problem and a tiling of it, as `plan` gives."""

    @property
    def request(self) -> TilingRequest:
        """The problem on its chip."""

    @property
    def tiling(self) -> TCubeTiling:
        """The tiling."""


def make_request(
    problem: object,
    settings: Mapping[str, str] | None,
    keys: JsonMapping,
    tiling: object = None,
) -> TilingRequest:
    """Return the request for a problem given as a record, a JSON object, keys, or the last two.

    A plan stands for its problem and its settings. Extents that are not given are those of the
    given tiling, if there is one.

    Raises
    ------
    RequestError
        If the problem or the chip is malformed, or the chip does not support the problem.
    """
    asked, _, settings = of_plan(problem, None, settings)
    if isinstance(asked, Problem):
        parsed = Problem.from_json({**asked.to_json(), **keys}) if keys else asked
    elif asked is None or isinstance(asked, Mapping):
        parsed = Problem.from_json(_with_extents({**(asked or {}), **keys}, tiling))
    else:
        parsed = Problem.from_json(asked)
    request = request_of(parsed, settings)
    validate(parsed, request.chip)
    return request


def _with_extents(asked: JsonMapping, tiling: object) -> JsonMapping:
    """Return the keys of a problem with the sizes that only the tiling has."""
    if tiling is None or None not in {asked.get(name) for name in ("m", "n", "k")}:
        return asked
    given = as_tiling(tiling)
    extents = {"m": given.M, "n": given.N, "k": given.Ka}
    if given.Kb != given.Ka and asked.get("k") is None:
        extents["kb"] = given.Kb
    return {**extents, **{name: value for name, value in asked.items() if value is not None}}


def request_of(problem: Problem, settings: Mapping[str, str] | None) -> TilingRequest:
    """Return the request for a problem that its chip is known to support."""
    record = problem.budget.applied(chip(problem.chip).what_if(settings or {}))
    return TilingRequest(problem, record, MappingProxyType(dict(settings or {})))


def of_plan(
    problem: object, tiling: object, settings: Mapping[str, str] | None
) -> tuple[Any, Any, Mapping[str, str] | None]:
    """Return the problem, the tiling and the settings; those of a plan in place of a problem."""
    asked = getattr(problem, "request", None)
    if not isinstance(asked, TilingRequest):
        return problem, tiling, settings
    attached = getattr(problem, "tiling", None)
    given = tiling if tiling is not None else attached
    return asked.problem, given, {**asked.settings, **(settings or {})}


def is_plan(given: object) -> bool:
    """True if something is an answer of `plan`, or of another verb about a problem."""
    return isinstance(getattr(given, "request", None), TilingRequest)


def as_tiling(tiling: object) -> TCubeTiling:
    """Return a tiling that is given as a record, as a JSON object, or by its plan."""
    attached: Any = getattr(tiling, "tiling", None) if is_plan(tiling) else tiling
    return attached if isinstance(attached, TCubeTiling) else TCubeTiling.from_json(attached)


def given_tiling(tiling: object, problem: Problem) -> TCubeTiling:
    """Return a tiling that is given for a problem.

    Raises
    ------
    RequestError
        If it is malformed, its sizes are not the problem's, or its fields are not as `fix` asks.
    """
    given = as_tiling(tiling)
    given.require_match(*problem.extents)
    for name, limits in problem.fix.broken(given):
        assignment = f"{name} = {getattr(given, name)}"
        raise unable("fix", f"fix asks for {name} {limits}, but the given tiling has {assignment}")
    return given
