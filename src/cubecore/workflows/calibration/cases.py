"""A case: what a point measured, as something that can be timed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cubecore.chips import Chip, chip
from cubecore.chips.catalog import chip_names
from cubecore.errors import CubecoreError
from cubecore.isa.program.launch import Launch
from cubecore.workflows.calibration.measured_points import Point


class Unmapped(Exception):  # noqa: N818 - says why a point is left out, which is no error
    """Why a point cannot be timed."""


@dataclass(frozen=True, slots=True)
class CalibrationCase:
    """A point's launch on a chip.

    `group` is what the case is reported with. `assumed` says what the point leaves open and how it
    was filled in; `tiling_known` whether the tiling is the point's own; `without_launch` that the
    time measured is the cores' alone.
    """

    chip: Chip
    launch: Callable[[], Launch]
    group: str
    tiling_known: bool = False
    without_launch: bool = False
    assumed: tuple[str, ...] = ()


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


def without_launch(point: Point, notes: Notes) -> bool:
    """True if a publication gives the time of the cores as a kernel's time."""
    if point.origin == "cannbench":
        notes.add("a kernel's time, without its launch")
        return True
    return False


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
"""What a name that is no SoC's stands for, by cores: the part that the publications measure."""
_STATED_CORES = (20, 28, 36)


def chip_of(point: Point, notes: Notes) -> Chip:
    """Return the SoC of a point.

    Raises:
        Unmapped: a name that no SoC or family has.
    """
    if point.chip in chip_names():
        return chip(point.chip)
    if point.id.startswith("catlass_tune"):
        notes.add("of the two parts that it may be, Ascend910B4: its device memory fits")
        return chip("Ascend910B4")
    text = point.chip.lower()
    stated = (n for n in _STATED_CORES if f"{n}-core" in text or f"{n} aic" in text)
    cores = next(stated, point.cores)
    for word, socs in _FAMILIES:
        if word in text:
            name = socs.get(cores) or socs[None]
            notes.add(f"{point.chip} is {name}")
            return chip(name)
    raise Unmapped(f"chip must be a SoC or a family of the catalogue, got {point.chip!r}")


def because(error: CubecoreError) -> Unmapped:
    """Return a refusal as the reason of a skip."""
    return Unmapped(str(error).replace("\n", "; "))
