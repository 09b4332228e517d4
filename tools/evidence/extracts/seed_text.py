"""What a seed document says, cut into units: one clause, short table row or code paragraph each.

No sentence of a seed is stored in this repository. The extract has, for each unit, where it lies,
the hash of its text, and the hashes of the ledger's fragments that it holds.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from seeds import ledger
from seeds.extract import hashed

SHORT_ROW_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a seed that demands at most one thing; `row` counts the body rows of a table."""

    section: str
    text: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """How one document is laid out.

    `sections` are (first characters of a line, section) in reading order; `tables` name the marked
    up tables in reading order, as sections of their own; `ignored` are whole lines that demand
    nothing, such as column heads of tables that lost their markup.
    """

    sections: tuple[tuple[str, str], ...]
    tables: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()


SHAPES = {
    "000": Shape(
        sections=(("TCubeTiling", "intro"), ("多数", "use"), ("-   性能", "rec")),
        tables=("t1", "t2", "t3"),
    ),
    "001": Shape(
        sections=(
            ("TCubeTiling", "intro"),
            ("表1", "t1"),
            ("用户", "use"),
            ("    表2", "t2"),
            ("    表3", "t3"),
            ("  • 性能", "rec"),
        ),
        ignored=frozenset(("下载", "中文", "注册", "参数名称", "数据类型", "说明", "约束条件")),
    ),
    "002": Shape(
        sections=(
            ("## 功能", "function"),
            ("## 函数", "prototype"),
            ("## 约束", "constraints"),
            ("## 调用", "samples"),
        ),
        tables=("support", "layout4x4", "t1", "t2", "t3", "t4", "t5", "t6", "t7"),
    ),
    "003": Shape(
        sections=(
            ("## 通用地址对齐", "alignment"),
            ("## 通用地址重叠", "overlap"),
            ("## 如何", "highdim"),
            ("### dataBlockStride", "dataBlockStride"),
            ("### repeatStride", "repeatStride"),
            ("## 掩码", "mask"),
            ("## 以数组", "array"),
        ),
        tables=("t1",),
    ),
    "004": Shape(
        sections=(
            ("Description", "description"),
            ("Prototype", "prototype"),
            ("Parameters", "t1"),
            ("Table 2 ", "t2"),
            ("Applicability", "applicability"),
            ("Restrictions", "restrictions"),
            ("Returns", "returns"),
            ("Example", "example"),
        ),
        ignored=frozenset(
            ("Parameter", "Input/Output", "Description", "a.dtype", "b.dtype", "dst.dtype")
        ),
    ),
}

_TABLE = re.compile(r"<table>.*?</table>|(?:^\|[^\n]*\n)+", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_MARKER = re.compile(r"^(?:>\s*)?(?:[-•]\s+)?")
_WORD = re.compile(r"[A-Za-z0-9_]")
_CLAUSE = re.compile(r"[。；;]|(?<=[A-Za-z\])0-9])\.(?:\s|$)")
_HEADING_CHARACTERS = 30
_NO_DEMAND = re.compile(r"^(?:!\[|\*\*[表图]|\[!NOTE|表\d|Table \d|<a name|</?table|~)")


def extract(shared: Path) -> dict[str, Any]:
    """Return the units of every seed, and the words of its first table, as places and hashes."""
    found = {}
    for path in sorted((shared / "spec" / "seeds").glob("0*.txt")):
        if (number := path.name[:3]) in SHAPES:
            book = ledger.load(ledger.FOLDER / f"{number}.toml")
            fragments = {text for section in book.sections for text in section.narration}
            fragments |= {anchor for entry in book.entries for anchor in entry.anchors}
            read = units(number, path.read_text(encoding="utf-8"))
            words = (re.split(r"[^A-Za-z0-9]+", u.text) for u in read if u.section == "t1")
            found[number] = {
                "units": [_hashed(unit, fragments) for unit in read],
                "words": sorted({hashed(word) for row in words for word in row if word}),
            }
    return found


def _hashed(unit: Unit, fragments: Iterable[str]) -> list[Any]:
    held = sorted(hashed(text) for text in fragments if holds(unit.text, text))
    return [unit.section, unit.row, hashed(unit.text), *held]


def units(number: str, text: str) -> tuple[Unit, ...]:
    """Return the units of seed `number` in reading order, headings and lead-ins left out."""
    reader = _Reader(SHAPES[number])
    end, tables = 0, iter(SHAPES[number].tables)
    for table in _TABLE.finditer(text):
        reader.prose(text[end : table.start()])
        reader.found += _table(next(tables), table.group())
        end = table.end()
    reader.prose(text[end:])
    return tuple(reader.found)


def holds(text: str, fragment: str) -> bool:
    """Return whether `fragment` occurs in `text` and cuts no ASCII word in two."""
    return _whole(fragment).search(text) is not None


@cache
def _whole(fragment: str) -> re.Pattern[str]:
    before = r"(?<![A-Za-z0-9_])" if _WORD.match(fragment[0]) else ""
    after = r"(?![A-Za-z0-9_])" if _WORD.match(fragment[-1]) else ""
    return re.compile(before + re.escape(fragment) + after)


class _Reader:
    """Reads text outside tables line by line and remembers the section."""

    def __init__(self, shape: Shape) -> None:
        self.found: list[Unit] = []
        self._shape = shape
        self._section = "intro"
        self._ahead = list(shape.sections)

    def prose(self, text: str) -> None:
        """Append the units of a stretch of text."""
        code: list[str] | None = None
        for line in text.splitlines():
            if _FENCE.match(line):
                self.found += _code(self._section, code or [])
                code = [] if code is None else None
            elif code is not None:
                code.append(line)
            elif not (self._opens_section(line) and len(line) <= _HEADING_CHARACTERS):
                self.found += [Unit(self._section, clause) for clause in self._clauses(line)]

    def _opens_section(self, line: str) -> bool:
        if self._ahead and line.startswith(self._ahead[0][0]):
            self._section = self._ahead.pop(0)[1]
            return True
        return False

    def _clauses(self, line: str) -> list[str]:
        if line.startswith("#") or line.strip() in self._shape.ignored:
            return []
        return _clauses(line)


def _code(section: str, lines: list[str]) -> list[Unit]:
    """Return one unit for each paragraph of a code block."""
    paragraphs = "\n".join(lines).split("\n\n")
    return [Unit(section, " ".join(p.split())) for p in paragraphs if p.strip()]


def _clauses(line: str) -> list[str]:
    """Cut a line of prose; drop markup, headings and what only introduces the next line."""
    plain = _MARKER.sub("", line.strip())
    if not plain or _NO_DEMAND.match(plain):
        return []
    plain = re.sub(r"\[([^\]]*)\]\((?:[^()]|\([^)]*\))*\)", r"\1", plain)
    plain = re.sub(r"<br>|<a [^>]*>|</a>|\*\*|\\(?=\W|_)", "", plain)
    pieces = [" ".join(piece.split()) for piece in _CLAUSE.split(plain)]
    return [piece for piece in pieces if _says_something(piece)]


def _says_something(piece: str) -> bool:
    return any(c.isalnum() or c == "√" for c in piece) and not piece.endswith(("：", ":"))


def _table(section: str, text: str) -> list[Unit]:
    rows = _pipe_rows(text) if text.startswith("|") else _html_rows(text)
    found: list[Unit] = []
    for number, cells in enumerate(rows, 1):
        pieces = [[c for block in cell for c in _clauses(block)] for cell in cells]
        joined = " | ".join(piece for cell in pieces for piece in cell)
        if len(joined) <= SHORT_ROW_CHARACTERS and all(len(cell) <= 1 for cell in pieces):
            found.append(Unit(section, joined, number))
        else:
            found += [Unit(section, piece, number) for cell in pieces for piece in cell]
    return found


def _pipe_rows(text: str) -> list[list[list[str]]]:
    body = text.splitlines()[2:]
    return [[[cell] for cell in line.strip("|").split("|")] for line in body]


def _html_rows(text: str) -> list[list[list[str]]]:
    reader = _Rows()
    reader.feed(text)
    return reader.rows


class _Rows(HTMLParser):
    """Collects body rows as cells, and cells as blocks of text."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append([""])
        elif tag in ("p", "li", "div") and self.rows and self.rows[-1]:
            self.rows[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "li", "div", "ul") and self.rows and self.rows[-1]:
            self.rows[-1][-1].append("")
        elif tag == "thead":
            self.rows.clear()

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1][-1] += data
