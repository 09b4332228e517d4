"""The answer of `model`: a step with its looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.answers.model.planned import PlannedStep
from cubecore.answers.model.text import serving_lines, step_text
from cubecore.models.products import BOTH
from cubecore.presented import Presented
from cubecore.presented.text import duration

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.presented import Figures


@dataclass(frozen=True, slots=True)
class ModelStep(PlannedStep, Presented):
    """The matmuls of one step on one card with their plans and sums, and its other `terms`."""

    @property
    def text(self) -> str:
        """The figures of serving, the matmuls by layer, and the step by part."""
        return step_text(self)

    def to_rows(self) -> list[Json]:
        """Return a row for each product."""
        rows = []
        for row in (row.to_json() for row in self.rows):
            row.pop("problem")
            tiling, variants = row.pop("tiling") or {}, " ".join(row.pop("variants"))
            rows.append({**row, "variants": variants, **tiling})
        return rows

    def _figures(self) -> Figures:
        figures = [*((name, self._time(name)) for name in BOTH), ("step", self.subtitle)]
        return self.title, [*figures, ("not counted", ", ".join(self.not_counted))]

    def _time(self, variant: str) -> str:
        us = self.whole_us(variant)
        counted = duration(self.counted_us(variant))
        return duration(us) if us is not None else f"no total, {counted} counted"

    def _remarks(self) -> list[str]:
        return serving_lines(self)

    def _picture(self) -> str:
        """Return the parts of a fused step as bars."""
        from cubecore.presented.card import bars

        counted = self.counted_us(BOTH[0])
        parts = {part.name: part.us / counted for part in self.parts(BOTH[0]) if part.us}
        return bars(parts, label_width=100)

    def _page(self) -> str:
        return self.page()

    def page(self) -> str:
        """Return the page: the verdict, every part of the step, matmuls, terms and tilings."""
        from cubecore.answers.model.page import step_page

        return step_page(self)
