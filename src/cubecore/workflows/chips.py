"""chips: what the catalogue knows, and from where."""

from collections.abc import Mapping

from cubecore.answers.chips import ChipList, ChipSheet
from cubecore.chips import chip, chip_names


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
