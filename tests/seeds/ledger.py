"""The coverage ledger (design decision D14): what the five seeds demand, and what carries each row.

One file per seed, `000.toml` to `004.toml`. A `[sections.NAME]` says what part of the document it
is, how many `entries` the ledger has for it (so that losing one is noticed), what the `rows` of a
table are called, and which fragments are `narration`, text that demands nothing. An `[[entry]]`:

    id       seed/section/slug; fields keep the vendor's spelling
    text     the demand, one sentence of ours
    anchors  short fragments of the seed (a formula, a name, a number) that lie in what it is about
    row      the row of the section's table; a tiling rule names it as seed/section/row
    claim    what carries it: rule:ID, advice:ID, instruction:NAME, test:PATH::FUNCTION
    mutant   a change that breaks the clause, or several (seeds/mutants.py); a test of the row fails
             with each (seeds/trial.py); or
    untestable  one sentence, why nothing can break it; or
    pending  the number in the title of the issue that will carry it
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeds.mutants import Mutant, name_of

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]

ISSUES = {
    13: "13. C and C++ kernels",
    14: "14. Cube and mix kernels in C++",
    16: "16. The Matmul object and operator projects",
}
"""The issues that a row can wait for, by the number in their titles."""

CLAIM_KINDS = ("rule", "advice", "instruction", "test")
ANCHOR_CHARACTERS = 100

_ID = re.compile(r"(\d{3})/([A-Za-z0-9]+)/([A-Za-z0-9_-]+)")
_ENTRY_KEYS = {"id", "text", "anchors", "row", "claim", "mutant", "untestable", "pending"}
_SECTION_KEYS = {"title", "entries", "rows", "narration"}


class LedgerError(ValueError):
    """A ledger that cannot be believed; `problems` holds every reason, in file order."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Claim:
    """A thing that carries a row: its kind and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One demand of a seed; either `claims` is not empty or `pending` is an issue."""

    id: str
    text: str
    anchors: tuple[str, ...]
    row: str | None
    claims: tuple[Claim, ...]
    pending: int | None
    mutants: tuple[Mutant, ...] = ()
    untestable: str | None = None

    @property
    def state(self) -> str:
        """``mutant``, ``untestable`` or ``pending``."""
        if self.mutants:
            return "mutant"
        return "pending" if self.untestable is None else "untestable"

    @property
    def mutant_names(self) -> tuple[str, ...]:
        """Its mutants, a line each."""
        return tuple(name_of(mutant) for mutant in self.mutants)

    @property
    def section(self) -> str:
        return self.id.split("/")[1]

    @property
    def address(self) -> str:
        """The table row, as a rule names it: seed/section/row."""
        return f"{self.id.rsplit('/', 1)[0]}/{self.row}"

    @property
    def words(self) -> frozenset[str]:
        """The parts of the slug between dashes: the vendor's names among them."""
        return frozenset(self.id.split("/")[2].split("-"))


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a seed: a table, or what lies under a heading."""

    name: str
    title: str
    entries: int
    rows: tuple[str, ...]
    narration: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """One seed's sections and entries in reading order."""

    seed: str
    title: str
    sections: tuple[Section, ...]
    entries: tuple[Entry, ...]

    def section(self, name: str) -> Section:
        """Return the section called `name`."""
        return next(section for section in self.sections if section.name == name)

    def of_section(self, name: str) -> tuple[Entry, ...]:
        """Return the entries of a section."""
        return tuple(entry for entry in self.entries if entry.section == name)


def load(path: Path) -> Ledger:
    """Read one ledger file.

    Raises
    ------
    LedgerError
        The file breaks a rule of the format; all breaches are listed.
    """
    return parse(tomllib.loads(path.read_text(encoding="utf-8")), path.stem)


def load_all() -> tuple[Ledger, ...]:
    """Read every ledger, in the order of the seeds."""
    return tuple(load(path) for path in sorted(FOLDER.glob("0*.toml")))


def parse(data: Mapping[str, Any], seed: str) -> Ledger:
    """Turn a decoded file into records; raises `LedgerError` as `load` does."""
    problems = list(_problems(data, seed))
    if problems:
        raise LedgerError(problems)
    sections = tuple(
        Section(
            name=name,
            title=table["title"],
            entries=table["entries"],
            rows=tuple(table.get("rows", ())),
            narration=tuple(table.get("narration", ())),
        )
        for name, table in data["sections"].items()
    )
    return Ledger(seed, data["title"], sections, tuple(_entry(e) for e in data["entry"]))


def _entry(table: Mapping[str, Any]) -> Entry:
    claims = tuple(Claim(*name.split(":", 1)) for name in table.get("claim", ()))
    return Entry(
        id=table["id"],
        text=table["text"],
        anchors=tuple(table["anchors"]),
        row=table.get("row"),
        claims=claims,
        pending=table.get("pending"),
        mutants=_mutants(table.get("mutant", [])),
        untestable=table.get("untestable"),
    )


def _mutants(given: Any) -> tuple[Mutant, ...]:
    return (given,) if isinstance(given, dict) else tuple(given)


def _problems(data: Mapping[str, Any], seed: str) -> Iterable[str]:
    if data.get("seed") != seed:
        yield f"{seed}: seed must be {seed!r}, got {data.get('seed')!r}"
    entries, sections = data.get("entry", []), data.get("sections", {})
    for entry in entries:
        yield from _entry_problems(entry, seed, sections)
    for name, times in Counter(entry.get("id") for entry in entries).items():
        if times > 1:
            yield f"{name}: id must be unique, got {times} entries"
    for name, section in sections.items():
        yield from _section_problems(f"{seed}/{name}", section, entries)


def _entry_problems(
    entry: Mapping[str, Any], seed: str, sections: Mapping[str, Any]
) -> Iterable[str]:
    name = entry.get("id", "entry without id")
    match = _ID.fullmatch(name)
    section = sections.get(match[2]) if match and match[1] == seed else None
    if section is None:
        yield f"{name}: id must be {seed}/<section>/<slug> with a declared section"
        section = {}
    if unknown := entry.keys() - _ENTRY_KEYS:
        yield f"{name}: keys must be among {_listed(_ENTRY_KEYS)}, got {_listed(unknown)}"
    if not entry.get("text", "").endswith("."):
        yield f"{name}: text must be a sentence that ends with a full stop"
    anchors = entry.get("anchors", [])
    if not anchors or not all(0 < len(anchor) <= ANCHOR_CHARACTERS for anchor in anchors):
        yield f"{name}: anchors must be fragments of 1 to {ANCHOR_CHARACTERS} characters"
    rows = section.get("rows", [])
    if rows and entry.get("row") not in rows:
        yield f"{name}: row must be one of {', '.join(rows)}, got {entry.get('row')}"
    if not rows and "row" in entry:
        yield f"{name}: row must be absent where the section has no rows, got {entry['row']}"
    yield from _carrier_problems(name, entry)


def _carrier_problems(name: str, entry: Mapping[str, Any]) -> Iterable[str]:
    if ("claim" in entry) == ("pending" in entry):
        have = "both" if "claim" in entry else "neither"
        yield f"{name}: exactly one of claim and pending must be given, got {have}"
    if "pending" in entry and entry["pending"] not in ISSUES:
        known = ", ".join(map(str, ISSUES))
        yield f"{name}: pending must be one of {known}, got {entry['pending']}"
    if not entry.get("untestable", ".").endswith("."):
        yield f"{name}: untestable must be a sentence that ends with a full stop"
    if len(states := {"mutant", "untestable", "pending"} & entry.keys()) != 1:
        got = "several" if states else "none"
        yield f"{name}: one of mutant, untestable and pending must be given, got {got}"
    if "claim" in entry and not entry["claim"]:
        yield f"{name}: claim must name at least one carrier"
    for claim in entry.get("claim", ()):
        kind, _, carrier = claim.partition(":")
        kinds = ", ".join(CLAIM_KINDS)
        if kind not in CLAIM_KINDS or not carrier:
            yield f"{name}: a claim must be KIND:NAME ({kinds}), got {claim!r}"


def _section_problems(
    name: str, section: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    if unknown := section.keys() - _SECTION_KEYS:
        yield f"{name}: keys must be among {_listed(_SECTION_KEYS)}, got {_listed(unknown)}"
    own = [entry for entry in entries if entry.get("id", "").startswith(f"{name}/")]
    stated = section.get("entries")
    if len(own) != stated:
        yield f"{name}: entries must be the number of its entries, {len(own)}, got {stated}"
    named = {entry.get("row") for entry in own}
    for row in section.get("rows", ()):
        if row not in named:
            yield f"{name}: row {row} must be named by an entry"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
