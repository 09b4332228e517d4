"""Titles of the specification's pages, and how rules and messages cite them."""

from collections.abc import Iterable

TITLES = {
    "000": "TCubeTiling structure, newer edition",
    "001": "TCubeTiling structure, older edition",
    "002": "Mmad",
    "003": "C API general notes",
    "004": "TIK matmul",
}
"""The title of each page, by the number that rows of declarations and ledgers carry."""
SECTIONS = {"t1": "table 1", "t2": "table 2", "t3": "table 3", "rec": "recommended values"}
EDITIONS = {"newer": "000", "older": "001"}
"""The page of each edition of the TCubeTiling structure."""


def cite(page: str, section: str) -> str:
    """Return a citation for users: ``Mmad, table 4`` of page 002 and ``table 4``."""
    return f"{TITLES[page]}, {section}"


def cite_row(row: str) -> str:
    """Return the citation of a declared row, as ``000/t2/l0a-capacity``."""
    page, section, _ = row.split("/")
    return cite(page, SECTIONS[section])


def cite_rows(rows: Iterable[str]) -> str:
    """Return the citations of declared rows with the rows' names, as ``Mmad, table 3 (m)``."""
    return "; ".join(f"{cite_row(row)} ({row.split('/')[2]})" for row in rows)


def edition_of(name: str) -> str:
    """Return ``newer`` or ``older`` for an edition or its page; another name as it is."""
    return next((edition for edition, page in EDITIONS.items() if name == page), name)
