"""A case: what a point measured, as something that can be timed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from cubecore.chips import Chip, chip
from cubecore.chips.catalog import is_chip
from cubecore.errors import CubecoreError
from cubecore.isa.program.launch import Launch
from cubecore.workflows.calibration.measured_points import Point


class Unmapped(Exception):  # noqa: N818 - says why a point is left out, which is no error
    """The reason for which a point cannot be timed."""


@dataclass(frozen=True, slots=True)
class CalibrationCase:
    """A point's launch on a chip.

    `group` is what the case is reported with. `assumed` says what the point leaves open and how it
    was filled in; `tiling_known` whether the tiling is the point's own. `planned_on` makes the case
    with our planner's tiling for a chip of other constants, where the tiling is our planner's.
    `others` are the cases of more kernels in the point's time, one launch each.
    """

    chip: Chip
    launch: Callable[[], Launch]
    group: str
    tiling_known: bool = False
    assumed: tuple[str, ...] = ()
    planned_on: Callable[[Chip], "CalibrationCase"] | None = None
    others: tuple["CalibrationCase", ...] = ()


@dataclass(slots=True)
class Notes:
    """Collects what is assumed, each once."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Note an assumption."""
        if text not in self.texts:
            self.texts.append(text)

    def done(self) -> tuple[str, ...]:
        """Return them."""
        return tuple(self.texts)


_B1, _B3, _PR = "Ascend910B1", "Ascend910B3", "Ascend950PR_9589"
_FAMILIES: tuple[tuple[str, Mapping[int | None, str]], ...] = (
    ("910b1", {None: _B1}),
    ("2201", {None: _B1}),
    ("9579", {None: "Ascend950PR_9579"}),
    ("950", {None: _PR, 28: "Ascend950PR_9579", 36: "Ascend950PR_9599"}),
    ("3510", {None: _PR}),
    ("910b4", {None: "Ascend910B4"}),
    ("a2", {None: _B1, 20: _B3, 40: _B3}),
    ("a3", {None: "Ascend910_9392"}),
    ("910b", {None: _B1, 20: _B3, 40: _B3}),
)
"""The SoC that another name stands for, by cores: the part that the publications measure."""


def chip_of(point: Point, notes: Notes) -> Chip:
    """Return the SoC of a point.

    Raises
    ------
    Unmapped
        If no SoC or family has that name.
    """
    name = point.soc or point.chip
    if is_chip(name):
        return chip(name)
    if point.soc:
        raise Unmapped(f"soc must be a SoC of the catalogue, got {point.soc!r}")
    text = point.chip.lower()
    for word, socs in _FAMILIES:
        if word in text:
            name = socs.get(point.cores) or socs[None]
            notes.add(f"{point.chip} is {name}")
            return chip(name)
    raise Unmapped(f"chip must be a SoC or a family of the catalogue, got {point.chip!r}")


def require_cores(point: Point, chip: Chip, limit: int | None, unit: str) -> None:
    """Refuse more cores than the chip has.

    Raises
    ------
    Unmapped
        If the chip has fewer cores; with the reason.
    """
    if limit is not None and (point.cores or 0) > limit:
        have = f"{limit} {unit} cores of {chip.name}"
        raise Unmapped(f"cores must be at most the {have}, got {point.cores}; state another soc")


def as_measured(point: Point, launch: Callable[[], Launch], notes: Notes) -> Callable[[], Launch]:
    """Return the launch with L2 as it was measured; notes what stands for missing columns."""
    if not point.cache:
        notes.add("L2 is cold: cache is not stated")
    if not point.launch and point.wall_us is not None:
        notes.add("the launch is counted: launch is not stated")
    if point.cache == "warm":
        notes.add("L2 holds what fits from the run before")
        return lambda: replace(launch(), warm=True)
    return launch


def has_automatic_flags(point: Point, notes: Notes) -> bool:
    """True if a compiler set the kernel's flags, at heads of loops, where pipes drain."""
    if point.tiling.get("sync") != "automatic":
        return False
    notes.add("automatic flags: pipes drain where a loop begins again")
    return True


def because(error: CubecoreError) -> Unmapped:
    """Return a refusal as the reason of a skip."""
    return Unmapped(str(error).replace("\n", "; "))
