"""Buffer budgets: what a tiling may use of L1, L0C, UB and BiasTable, where that is not all."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from cubecore.chips import Chip
from cubecore.errors import RequestError, Violation, did_you_mean, shown
from cubecore.units import INT32_MAX

if TYPE_CHECKING:
    from cubecore.aliases import Json

SIZES: dict[str, tuple[str, ...]] = {
    "l1": ("l1_bytes", "l1_user_bytes"),
    "l0c": ("l0c_bytes",),
    "ub": ("ub_bytes", "ub_user_bytes"),
    "bt": ("bt_bytes",),
}
"""The buffers that can be bounded, and the chip's fields that a budget bounds."""


@dataclass(frozen=True, slots=True)
class BufferBudget:
    """Bytes that a tiling may use of each buffer; None is all that the chip has.

    Raises
    ------
    RequestError
        One violation for each size that is not an integer of at least 1.
    """

    l1: int | None = None
    l0c: int | None = None
    ub: int | None = None
    bt: int | None = None

    def __post_init__(self) -> None:
        wrong = []
        for name, size in self.sizes.items():
            if not isinstance(size, Integral) or isinstance(size, bool):
                wrong.append(Violation(f"budget.{name}", "be an integer, in bytes", shown(size)))
            elif not 1 <= size <= INT32_MAX:
                need = f"be from 1 to {INT32_MAX} B"
                wrong.append(Violation(f"budget.{name}", need, f"{size} B"))
        if wrong:
            raise RequestError(wrong)

    @classmethod
    def from_json(cls, value: Any) -> "BufferBudget":
        """Return the budget of a JSON object, ``{"l1": 262144}``; names in either case.

        Raises
        ------
        RequestError
            If the value is not an object, names a buffer without a budget, or has a malformed size.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            need = "be a JSON object of sizes in bytes"
            raise RequestError([Violation("budget", need, shown(value))])
        names = tuple(SIZES)
        wrong = [
            Violation(
                "budget", f"name {', '.join(names)}", repr(name), did_you_mean(str(name), names)
            )
            for name in value
            if str(name).lower() not in names
        ]
        if wrong:
            raise RequestError(wrong)
        return cls(**{str(name).lower(): size for name, size in value.items()})

    @property
    def sizes(self) -> dict[str, int]:
        """The budgets that there are, by buffer."""
        sizes = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: size for name, size in sizes.items() if size is not None}

    def to_json(self) -> dict[str, int]:
        """Return the budgets that there are, by buffer."""
        return {name: int(size) for name, size in self.sizes.items()}

    def of(self, names: Collection[str]) -> "BufferBudget":
        """Return some of the budgets only."""
        return BufferBudget(**{name: size for name, size in self.sizes.items() if name in names})

    def applied(self, chip: Chip, subject: str = "budget.{}") -> Chip:
        """Return `chip` with its buffers cut to the budget; `subject` says what {} was set by.

        Raises
        ------
        RequestError
            One violation for each budget above the chip's buffer.
        """
        changes: Json = {}
        wrong = []
        for name, size in self.sizes.items():
            available = getattr(chip, SIZES[name][-1])
            if available is None or size > available:
                have = "no such buffer" if available is None else f"{available} B"
                need = f"be at most what {chip.name} has, {have}"
                wrong.append(Violation(subject.format(name), need, f"{size} B"))
            changes |= dict.fromkeys(SIZES[name], size)
        if wrong:
            raise RequestError(wrong)
        return replace(chip, **changes) if changes else chip
