"""Every row of the seeds is claimed or waits for an issue, and every claim holds."""

import ast
import copy
import importlib
import tomllib
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from seeds import ledger
from seeds.extract import Unit, hashed, table_1_words, table_rows, units
from seeds.ledger import FOLDER, ROOT, Claim, Entry, Ledger, LedgerError

LEDGERS = {book.seed: book for book in ledger.load_all()}
ENTRIES = [entry for book in LEDGERS.values() for entry in book.entries]
every_seed = pytest.mark.parametrize("seed", sorted(LEDGERS))


def claims(kind: str) -> list[tuple[str, str]]:
    """Return (entry id, carrier) for every claim of a kind."""
    return [(e.id, c.name) for e in ENTRIES for c in e.claims if c.kind == kind]


def declared_rows() -> dict[Claim, tuple[str, ...]]:
    """Return the table rows (seed/section/row) that every tiling rule and piece of advice names."""
    rules = importlib.import_module("cubecore.tiling.rules.checker").rules()
    advice = importlib.import_module("cubecore.tiling.rules.advice").ROWS
    found = {Claim("rule", rule.id): rule.rows for rule in rules}
    return found | {Claim("advice", name): rows for name, rows in advice.items()}


def declared_instructions() -> Iterable[str]:
    """Return the names of the declared instructions."""
    return importlib.import_module("cubecore.isa.catalogue").instructions()


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the functions that a test file defines; none where there is no file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def row_of(book: Ledger, unit: Unit) -> str | None:
    """Return the name of the table row that a unit lies in; None where the markup does not say."""
    return book.section(unit.section).rows[unit.row - 1] if unit.row else None


def in_reach(book: Ledger, entry: Entry, unit: Unit) -> bool:
    """Return whether a unit lies where the entry's anchors are looked for."""
    return entry.section == unit.section and row_of(book, unit) in (None, entry.row)


def uncovered(book: Ledger, pieces: Iterable[Unit]) -> list[Unit]:
    """Return the units that no entry of their section names and that are no narration."""
    return [
        unit
        for unit in pieces
        if not any(unit.holds(text) for text in book.section(unit.section).narration)
        and not any(
            in_reach(book, entry, unit) and any(unit.holds(anchor) for anchor in entry.anchors)
            for entry in book.entries
        )
    ]


def test_the_five_seeds_have_ledgers():
    assert list(LEDGERS) == ["000", "001", "002", "003", "004"]


def test_ids_are_unique_over_all_seeds():
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES)


def test_claimed_rules_and_advice_are_declared():
    known = declared_rows()
    tiling = [(e.id, c) for e in ENTRIES for c in e.claims if c.kind in ("rule", "advice")]
    assert [claim for claim in tiling if claim[1] not in known] == []


def test_rules_and_advice_name_existing_rows():
    known = {entry.address for entry in ENTRIES}
    named = [(claim, row) for claim, rows in declared_rows().items() for row in rows]
    assert [pair for pair in named if pair[1] not in known] == []


def test_rules_and_table_rows_name_each_other():
    tiling = ("rule", "advice")
    claimed = {(str(c), e.address) for e in ENTRIES for c in e.claims if c.kind in tiling}
    declared = {(str(claim), row) for claim, rows in declared_rows().items() for row in rows}
    assert sorted(declared - claimed) == []
    assert sorted(claimed - declared) == []


def test_rows_that_no_rule_checks_are_claimed_by_none():
    unchecked = importlib.import_module("cubecore.tiling.rules.checker").NOT_CHECKED
    assert sorted(set(unchecked) - {entry.address for entry in ENTRIES}) == []
    kinds = {c.kind for e in ENTRIES if e.address in unchecked for c in e.claims}
    assert "rule" not in kinds


def test_claimed_instructions_are_declared():
    known = set(declared_instructions())
    assert [claim for claim in claims("instruction") if claim[1] not in known] == []


def test_claimed_tests_exist():
    missing = []
    for row, name in claims("test"):
        path, _, function = name.partition("::")
        if function not in functions_of(path):
            missing.append((row, name))
    assert missing == []


def test_few_rows_are_untestable():
    assert sum(entry.state == "untestable" for entry in ENTRIES) <= 30


@every_seed
def test_deleting_any_entry_is_noticed(seed):
    data = tomllib.loads((FOLDER / f"{seed}.toml").read_text(encoding="utf-8"))
    for number, entry in enumerate(LEDGERS[seed].entries):
        rest = data["entry"][:number] + data["entry"][number + 1 :]
        with pytest.raises(LedgerError) as refused:
            ledger.parse(data | {"entry": rest}, seed)
        assert any(f"{seed}/{entry.section}: " in line for line in refused.value.problems)


@every_seed
def test_every_unit_of_the_seed_is_named(seed):
    assert uncovered(LEDGERS[seed], units(seed)) == []


@every_seed
def test_every_anchor_occurs_where_the_entry_points(seed):
    book, pieces = LEDGERS[seed], units(seed)
    stale = [
        (entry.id, anchor)
        for entry in book.entries
        for anchor in entry.anchors
        if not any(in_reach(book, entry, unit) and unit.holds(anchor) for unit in pieces)
    ]
    assert stale == []


@every_seed
def test_every_narration_occurs(seed):
    pieces = units(seed)
    stale = [
        (section.name, text)
        for section in LEDGERS[seed].sections
        for text in section.narration
        if not any(unit.section == section.name and unit.holds(text) for unit in pieces)
    ]
    assert stale == []


@every_seed
def test_tables_have_as_many_rows_as_the_ledger_says(seed):
    rows = {section.name: len(section.rows) for section in LEDGERS[seed].sections if section.rows}
    counted = table_rows(units(seed))
    assert {name: rows[name] for name in counted} == counted


def test_the_unmarked_table_1_has_as_many_fields_as_the_ledger_says():
    types = [u for u in units("001") if (u.section, u.text_hash) == ("t1", hashed("int"))]
    assert len(types) == len(LEDGERS["001"].section("t1").rows)


@every_seed
def test_without_a_sections_entries_the_seed_is_uncovered(seed):
    book, pieces = LEDGERS[seed], units(seed)
    for section in book.sections:
        rest = tuple(entry for entry in book.entries if entry.section != section.name)
        if len(rest) < len(book.entries):
            bare = Ledger(book.seed, book.title, book.sections, rest)
            assert section.name in {unit.section for unit in uncovered(bare, pieces)}


@every_seed
def test_without_a_rows_entries_the_seed_is_uncovered(seed):
    book, pieces = LEDGERS[seed], units(seed)
    marked = table_rows(pieces)
    for address in {entry.address for entry in book.entries if entry.section in marked}:
        rest = tuple(entry for entry in book.entries if entry.address != address)
        bare = Ledger(book.seed, book.title, book.sections, rest)
        left = {f"{seed}/{unit.section}/{row_of(book, unit)}" for unit in uncovered(bare, pieces)}
        assert address in left


TABLE_1_FIELDS = (
    *("usedCoreNum", "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK"),
    *("baseM", "baseN", "baseK", "depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb"),
    *("isBias", "transLength", "iterateOrder", "dbL0A", "dbL0B", "dbL0C"),
    *("shareMode", "shareL1Size", "shareL0CSize", "shareUbSize"),
    *("batchM", "batchN", "singleBatchM", "singleBatchN"),
)
FIELDS_OF = {"000": (*TABLE_1_FIELDS, "mxTypePara"), "001": TABLE_1_FIELDS}


@pytest.mark.parametrize("seed", FIELDS_OF)
def test_every_tiling_field_of_table_1_is_in_an_id(seed):
    words = {word for entry in LEDGERS[seed].of_section("t1") for word in entry.words}
    assert [field for field in FIELDS_OF[seed] if field not in words] == []


@pytest.mark.parametrize("seed", FIELDS_OF)
def test_table_1_fields_are_the_seeds(seed):
    assert [f for f in FIELDS_OF[seed] if hashed(f) not in table_1_words(seed)] == []


GOOD: dict[str, Any] = {
    "seed": "999",
    "title": "an example",
    "sections": {"t1": {"title": "table 1", "entries": 1, "rows": ["x"]}},
    "entry": [
        {
            "id": "999/t1/x",
            "row": "x",
            "anchors": ["x"],
            "text": "x is 1.",
            "claim": ["rule:X"],
            "mutant": {"object": "x", "value": "2"},
        }
    ],
}

BROKEN = {
    "neither": (
        {"claim": None},
        "999/t1/x: exactly one of claim and pending must be given, got neither",
    ),
    "both": (
        {"pending": 13},
        "999/t1/x: exactly one of claim and pending must be given, got both",
    ),
    "issue": (
        {"claim": None, "pending": 8},
        "999/t1/x: pending must be one of 13, 14, 16, got 8",
    ),
    "open": (
        {"mutant": None},
        "999/t1/x: one of mutant, untestable and pending must be given, got none",
    ),
    "two states": (
        {"untestable": "It is advice."},
        "999/t1/x: one of mutant, untestable and pending must be given, got several",
    ),
    "no claim": ({"claim": []}, "999/t1/x: claim must name at least one carrier"),
    "kind": (
        {"claim": ["hope:X"]},
        "999/t1/x: a claim must be KIND:NAME (rule, advice, instruction, test), got 'hope:X'",
    ),
    "sentence": (
        {"text": "x is 1"},
        "999/t1/x: text must be a sentence that ends with a full stop",
    ),
    "anchors": (
        {"anchors": []},
        "999/t1/x: anchors must be fragments of 1 to 100 characters",
    ),
    "row": ({"row": "y"}, "999/t1/x: row must be one of x, got y"),
    "key": (
        {"txet": "x"},
        "999/t1/x: keys must be among anchors, claim, id, mutant, pending, row, text, untestable, "
        "got txet",
    ),
}


def test_a_good_entry_is_read():
    book = ledger.parse(GOOD, "999")
    claims, mutants = (Claim("rule", "X"),), ({"object": "x", "value": "2"},)
    assert book.entries == (Entry("999/t1/x", "x is 1.", ("x",), "x", claims, None, mutants),)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_entry_is_refused(case):
    change, message = BROKEN[case]
    data = copy.deepcopy(GOOD)
    entry = data["entry"][0] | change
    data["entry"] = [{key: value for key, value in entry.items() if value is not None}]
    with pytest.raises(LedgerError) as refused:
        ledger.parse(data, "999")
    assert message in refused.value.problems


def test_two_entries_of_one_id_are_refused():
    data = copy.deepcopy(GOOD)
    data["entry"] *= 2
    with pytest.raises(LedgerError) as refused:
        ledger.parse(data, "999")
    assert refused.value.problems == (
        "999/t1/x: id must be unique, got 2 entries",
        "999/t1: entries must be the number of its entries, 2, got 1",
    )


def test_a_lost_entry_is_refused_with_its_row():
    data = copy.deepcopy(GOOD)
    data["entry"] = []
    with pytest.raises(LedgerError) as refused:
        ledger.parse(data, "999")
    assert refused.value.problems == (
        "999/t1: entries must be the number of its entries, 0, got 1",
        "999/t1: row x must be named by an entry",
    )
