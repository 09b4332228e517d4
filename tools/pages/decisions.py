"""The index of design decisions: each by its number, with the page of its area."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
_TITLE = re.compile(r"^# Decisions: (.+)\n\n(.+?)\. ", re.MULTILINE)
_ENTRY = re.compile(r"^### (\d+)\. (.+)$", re.MULTILINE)

_INTRODUCTION = """\
# Decisions

Numbered records of design decisions: context, decision, consequence. A page of `docs/decisions` has
those of an area; a new one takes the next number, and `make docs` refreshes this index. D1 to D14
are the decisions of the original design, cited by number.
"""


@dataclass(frozen=True)
class Decision:
    """A decision's number and title, and the page and area that it is on."""

    number: int
    title: str
    page: str
    area: str

    @property
    def anchor(self) -> str:
        """The heading's id, as Python-Markdown makes it."""
        text = f"{self.number}. {self.title}".replace("`", "")
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def areas() -> dict[str, tuple[str, str]]:
    """Return each page's area and the line that says what it holds, by the page's file name."""
    found = {}
    for path in sorted(FOLDER.glob("*.md")):
        title = _TITLE.match(path.read_text(encoding="utf-8"))
        assert title is not None, f"{path.name} must begin with '# Decisions: AREA' and a sentence"
        found[path.name] = (title[1], title[2])
    return found


def decisions() -> list[Decision]:
    """Return every decision, by its number."""
    found = [
        Decision(int(number), title, page, area)
        for page, (area, _) in areas().items()
        for number, title in _ENTRY.findall((FOLDER / page).read_text(encoding="utf-8"))
    ]
    return sorted(found, key=lambda one: one.number)


def page() -> str:
    """Return the page: areas, then every decision by its number."""
    lines = [_INTRODUCTION, "| area | |", "|---|---|"]
    lines += [f"| [{area}](decisions/{name}) | {what} |" for name, (area, what) in areas().items()]
    lines += ["", "## By number", "", "| | decision | area |", "|---|---|---|"]
    lines += [
        f"| {one.number} | [{one.title}](decisions/{one.page}#{one.anchor}) | {one.area} |"
        for one in decisions()
    ]
    return "\n".join(lines) + "\n"
