"""Saved results as `compare` reads them: their kind, and the figures that two are compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cubecore.answers.compare.figures import LaunchFigures
from cubecore.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME, RUN, MODEL = "time", "run", "model step"
COMPARED = frozenset({TIME, RUN, MODEL})
"""The kinds of results of which two are compared as they were saved."""
_KINDS = {
    TIME: ("us", "cycles", "pipes", "stalls", "links"),
    RUN: ("verified", "findings"),
    MODEL: ("whole", "step", "terms"),
}
"""The keys by which a result of a kind is known."""
_OTHERS = {
    "plan": ("predicted", "alternatives"),
    "check": ("legal", "findings"),
    "sweep": ("points",),
    "refusal": ("error",),
}
"""Further objects that commands print, by their keys."""


class Saved:
    """The JSON object of a file, whose values are read with a sentence for what is wrong."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self._fields, self.where = fields, where

    @property
    def kind(self) -> str | None:
        """The kind of result that the object holds; None if no command prints such with --json."""
        for kind, keys in (_KINDS | _OTHERS).items():
            if all(key in self._fields for key in keys):
                return kind
        return None

    @property
    def has_tiling(self) -> bool:
        """True if the object holds a tiling."""
        return isinstance(self._fields.get("tiling"), Mapping)

    def number(self, name: str) -> float:
        """Return a finite number from 0 on."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            raise self._wrong(name, "a number from 0 on", value)
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; `default` where it is not there."""
        value = self._fields.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text", value)
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        value = self._fields.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def has(self, name: str) -> bool:
        """Return True if the object gives a value, and not null."""
        return self._fields.get(name) is not None

    def inside(self, name: str) -> Saved:
        """Return an object within."""
        value = self._fields.get(name)
        if not isinstance(value, Mapping):
            raise self._wrong(name, "an object", value)
        return Saved(value, f"{self.where}: {name}")

    def objects(self, name: str) -> Iterator[Saved]:
        """Yield the objects of a list."""
        value = self._fields.get(name)
        if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
            raise self._wrong(name, "a list of objects", value)
        for number, each in enumerate(value):
            yield Saved(each, f"{self.where}: {name}[{number}]")

    def wholes(self, name: str) -> list[int]:
        """Return a list of whole numbers."""
        value = self._fields.get(name)
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            raise self._wrong(name, "a list of whole numbers", value)
        return value

    def named(self, name: str) -> dict[str, Saved]:
        """Return the objects of an object by their names."""
        inner = self.inside(name)
        return {key: inner.inside(key) for key in inner._fields}

    def whole(self, name: str) -> int:
        """Return a whole number from 0 on."""
        return int(self.number(name))

    def _wrong(self, name: str, need: str, value: object) -> Exception:
        spelled = "nothing" if value is None else json.dumps(value, default=repr)
        return refuse(f"{self.where}: {name}", f"be {need}", spelled)


@dataclass(frozen=True, slots=True)
class SavedTime:
    """A saved time: of what, its figures, and the launches of a script."""

    subject: str
    figures: LaunchFigures
    launches: int


def time_of(saved: Saved) -> SavedTime:
    """Return the figures of a saved time of a matmul, an operator or a kernel.

    Of several launches of a script they are those of the longest, as the object has them.
    """
    subject, chip = _subject(saved)
    pipes = {pipe: each.whole("busy_cycles") for pipe, each in saved.named("pipes").items()}
    stalls: dict[tuple[str, str], int] = {}
    for stall in saved.objects("stalls"):
        stalls[stall.text("pipe"), stall.text("reason")] = stall.whole("cycles")
    links = {link.text("link"): link.whole("bytes") for link in saved.objects("links")}
    cores = {core for group in saved.objects("cores") for core in group.wholes("cores")}
    times = saved.number("us"), saved.whole("cycles"), saved.text("limited_by")
    figures = LaunchFigures(chip, *times, saved.whole("issued"), pipes, stalls, links, len(cores))
    launches = len(list(saved.objects("launches"))) if saved.has("launches") else 1
    return SavedTime(subject, figures, launches)


def _subject(saved: Saved) -> tuple[str, str]:
    """Return what a time is of, and its chip."""
    if saved.has("problem"):
        problem = saved.inside("problem")
        extents = (f"{problem.whole(name)}" for name in ("m", "n", "k"))
        return " x ".join(extents), problem.text("chip")
    if saved.has("operator"):
        operator = saved.inside("operator")
        return operator.text("op"), saved.text("chip")
    return f"{saved.text('kernel')}[{saved.whole('blocks')}]", saved.text("chip")
