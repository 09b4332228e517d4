"""chips: what the catalogue knows, and from where."""

from collections.abc import Mapping

from cubecore.aliases import Json
from cubecore.chips import Chip, chip, chip_names
from cubecore.chips.model import FACT_FIELDS
from cubecore.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ChipSheet:
    """One chip with every fact, its meaning and its source."""

    chip: Chip

    def to_json(self) -> Json:
        """Return the chip as JSON: unknown facts are null."""
        facts = {}
        for name, meaning in FACT_FIELDS.items():
            fact = self.chip.sources.get(name)
            value = getattr(self.chip, name)
            facts[name] = {
                "value": dict(value) if isinstance(value, Mapping) else value,
                "meaning": meaning,
                "source": fact.source if fact else None,
                "reliability": fact.reliability if fact else None,
                "note": fact.note if fact else "",
            }
        return {
            "name": self.chip.name,
            "arch": self.chip.arch,
            "products": list(self.chip.products),
            "facts": facts,
        }


@dataclass(frozen=True, slots=True)
class ChipList:
    """The chips of the catalogue, each as a sheet."""

    sheets: tuple[ChipSheet, ...]

    def to_json(self) -> Json:
        """Return every sheet as JSON."""
        return {"chips": [sheet.to_json() for sheet in self.sheets]}


def chip_sheet(name: str, settings: Mapping[str, str] | None = None) -> ChipSheet:
    """Return the sheet of a chip, fields replaced as asked.

    Raises
    ------
    RequestError
        If the name is not a SoC's; the message lists the names that it may stand for.
    """
    return ChipSheet(chip(name).what_if(settings or {}))


def chip_list() -> ChipList:
    """Return every chip of the catalogue."""
    return ChipList(tuple(ChipSheet(chip(name)) for name in chip_names()))
