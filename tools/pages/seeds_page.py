"""The page of the seeds: every clause with its carriers and its mutant."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tools.pages.markdown import escaped

if TYPE_CHECKING:
    from seeds.ledger import Entry, Ledger, Section

_HEAD = """\
# Coverage of the seeds

Each row is one clause of the five seed documents, with its carriers (a tiling rule, a piece of
advice, an instruction, a test) and its mutant: a small change of the source that breaks the clause.
`make ledger` makes each mutant and holds that a test of the row fails. A row without one says why
nothing can break it, or which issue brings it. Generated from `tests/seeds/*.toml` by
`python -m tools.pages.docs`; tests hold it against the seeds and the code.
"""
_STATES = ("mutant", "untestable", "pending")


def page(books: "Iterable[Ledger]", issues: dict[int, str]) -> str:
    """Return the page: a table of counts, then one line for each row of each seed."""
    books = tuple(books)
    return "\n".join((*_counts(books), *_rows(books, issues))) + "\n"


def _counts(books: "Iterable[Ledger]") -> Iterator[str]:
    yield _HEAD
    yield "| seed | rows | " + " | ".join(_STATES) + " |"
    yield "|---|" + "---|" * (1 + len(_STATES))
    total: Counter[str] = Counter()
    for book in books:
        counts = Counter(entry.state for entry in book.entries)
        total += counts
        yield _count_line(f"{book.seed} {book.title}", counts)
    yield _count_line("all", total)


def _count_line(name: str, counts: "Counter[str]") -> str:
    cells = [counts.total(), *(counts[state] for state in _STATES)]
    return f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |"


def _rows(books: "Iterable[Ledger]", issues: dict[int, str]) -> Iterator[str]:
    for book in books:
        yield f"\n## Seed {book.seed}: {book.title}"
        for section in book.sections:
            yield from _section_rows(book, section, issues)


def _section_rows(book: "Ledger", section: "Section", issues: dict[int, str]) -> Iterator[str]:
    entries = book.of_section(section.name)
    if entries:
        yield f"\n### {book.seed}/{section.name}: {section.title}\n"
        for entry in entries:
            yield f"- `{entry.id}` {escaped(entry.text)} {_carried(entry, issues)}"
            yield from (f"  - mutant: `{mutant}`" for mutant in entry.mutant_names)


def _carried(entry: "Entry", issues: dict[int, str]) -> str:
    if entry.pending is not None:
        return f"`pending: {issues[entry.pending]}`"
    carriers = ", ".join(f"`{claim}`" for claim in entry.claims)
    return f"{carriers} Untestable: {entry.untestable}" if entry.untestable else carriers
