"""The units of the seeds as tests/data has them: places and hashes, no text.

A unit is one clause, short table row or paragraph of code. `tools.evidence.extracts.seed_text` cuts
the documents into units and notes which of the ledgers' fragments each one holds.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

from data_files import data


def hashed(text: str) -> str:
    """Return the hash that stands for a text."""
    return blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a seed that demands at most one thing; `row` counts the body rows of a table."""

    section: str
    row: int | None
    text_hash: str
    held: frozenset[str]

    def holds(self, fragment: str) -> bool:
        """Whether the fragment occurs in the text and cuts no ASCII word in two."""
        return hashed(fragment) in self.held


@cache
def units(seed: str) -> tuple[Unit, ...]:
    """Return the units of a seed in reading order, headings and lead-ins left out."""
    found = data("seed_units")[seed]["units"]
    return tuple(Unit(section, row, text, frozenset(held)) for section, row, text, *held in found)


def table_1_words(seed: str) -> frozenset[str]:
    """Return the hashes of the words of a seed's first table."""
    return frozenset(data("seed_units")[seed]["words"])


def table_rows(found: tuple[Unit, ...]) -> dict[str, int]:
    """Return the number of body rows of every table among the units."""
    rows: dict[str, int] = {}
    for unit in found:
        if unit.row is not None:
            rows[unit.section] = max(rows.get(unit.section, 0), unit.row)
    return rows
