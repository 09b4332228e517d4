"""The answer of `compare` about two results that were saved with --json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.presented import Presented
from cubecore.presented.text import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.aliases import Json
    from cubecore.presented import Figures


@dataclass(frozen=True, slots=True)
class SavedComparison(Presented):
    """Two saved results of a kind side by side.

    `subjects` says what each is of, `sentence` how they differ; `rows` are figures of both with the
    difference. `ratio` is the second's time over the first's, None where a result has no time;
    `of_tilings` tells if both hold a tiling, which can be timed again.
    """

    kind: str
    names: Sequence[str]
    subjects: Sequence[str]
    sentence: str
    rows: Sequence[Sequence[str]]
    ratio: float | None
    of_tilings: bool = False

    def to_json(self) -> Json:
        """Return the names, the sentence and the rows."""
        keys = ("figure", "first", "second", "difference")
        return {
            "kind": self.kind,
            "files": list(self.names),
            "subjects": list(self.subjects),
            "ratio": self.ratio,
            "difference": self.sentence,
            "figures": [dict(zip(keys, row, strict=True)) for row in self.rows],
        }

    @property
    def text(self) -> str:
        """The sentence, and the figures of both."""
        heads = [("", *self.names, "difference"), ("of", *self.subjects, "")]
        return "\n".join([f"{self.sentence}.", "", *table([*heads, *self.rows])]) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each figure."""
        figures: list[Json] = self.to_json()["figures"]
        return figures

    def _figures(self) -> Figures:
        return self.sentence, [(row[0], f"{row[1]} against {row[2]}") for row in self.rows]
