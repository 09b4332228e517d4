"""The answer of `check --repair`: what is broken, what would fix it, or why nothing can.

Without a repair it is `Findings`, of the checker itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.presented.text import duration, table
from cubecore.tiling.rules.checker import Findings
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cubecore.aliases import Json
    from cubecore.presented.answer import Figures
    from cubecore.tiling.repair.infeasibility import Conflict
    from cubecore.tiling.repair.repair import Repair


@dataclass(frozen=True)
class RepairedFindings(Findings):
    """The result of a check, and the nearest legal tiling.

    `repair` is None where none was found; `conflict` then says what no tiling satisfies together,
    or is None where the search ended without a proof.
    """

    repair: Repair | None
    conflict: Conflict | None

    def to_json(self) -> Json:
        """Return the public contract's object, with `repaired` and `changed`."""
        repaired: Json = {"repaired": None, "changed": [], "proven": None}
        return {
            **super().to_json(),
            **(repaired if self.repair is None else self.repair.to_json()),
            "conflict": None if self.conflict is None else self.conflict.to_json(),
        }

    def _figures(self) -> Figures:
        title, figures = super()._figures()
        if self.repair is None:
            return title, figures
        changes = ", ".join(f"{c.field} {c.before} -> {c.after}" for c in self.repair.changes)
        predicted = self.repair.predicted
        us = "" if predicted is None else f"; {duration(predicted.us)}"
        return title, [*figures, ("repaired", f"{changes}{us}")]

    def _outcome_lines(self) -> Iterator[str]:
        if self.legal:
            return
        yield ""
        if self.repair is not None:
            yield from _repair_lines(self.repair)
        elif self.conflict is not None:
            yield from _conflict_lines(self.conflict)
        else:
            yield "No legal tiling was found, and none is excluded: the search ended first"


def _repair_lines(repair: Repair) -> Iterator[str]:
    """Yield what a repair changes, why, and what is proven of it."""
    us = "" if repair.predicted is None else f", predicted {duration(repair.predicted.us)}"
    yield f"Repaired by {plural(len(repair.changes), 'change')}{us}"
    yield from table((c.field, c.before, "->", c.after, c.findings[0].rule) for c in repair.changes)
    if not repair.fewest:
        yield "  A repair with fewer changes may exist: the search ended first"
    elif not repair.fastest:
        yield "  No repair changes fewer fields; another of this size may be faster"
    else:
        yield "  No repair changes fewer fields, and none of this size is faster"


def _conflict_lines(conflict: Conflict) -> Iterator[str]:
    """Yield the constraints that no tiling satisfies together."""
    need = "; without any one of them there is one" if conflict.minimal else ""
    yield f"No tiling satisfies these together{need}"
    yield from (f"  {constraint.text}" for constraint in conflict.constraints)
