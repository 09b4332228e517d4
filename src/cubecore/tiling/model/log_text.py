"""Tilings in any text of names and numbers: logs, printf lines, assignments, tables, cut JSON."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cubecore.errors import unable
from cubecore.tiling.model.tcubetiling import DEFAULTS, FIELDS, TCubeTiling
from cubecore.units import first_few

OPTIONAL = {"transLength": 0, "iterateOrder": 0, **DEFAULTS}
"""Fields that a text may leave out, with their values; logs of public operators seldom have them.

Ka and Kb stand for each other, and K for both.
"""
REQUIRED = tuple(name for name in FIELDS if name not in OPTIONAL)
_TOKEN = re.compile(
    r"(?P<word>[A-Za-z_]\w*)|(?P<number>(?<![\w.])-?(?:0[xX][0-9a-fA-F]+|\d+)(?![.\w]\d))(?:[uUlL]*\b)"
    r"|(?P<sign>->|::|[^\s\w])"
)
_BETWEEN = frozenset([*",/|;\"'()[]{}.*", "->", "::"])
"""Signs that may stand between the names or the numbers of a list."""
_GIVES = frozenset({"=", ":", "(", "[", "{"})
"""Signs that give a name its number; single letters need one of them."""
_ACCESSORS = ("set_", "get_")
_FOLDED = {name.lower(): name for name in FIELDS if len(name) > 1}
_LETTERS = {"M": ("M",), "N": ("N",), "K": ("Ka", "Kb")}


@dataclass(frozen=True)
class LoggedTiling:
    """A tiling that a text holds: its first line, and the fields that the text leaves out."""

    tiling: TCubeTiling
    line: int
    absent: tuple[str, ...]


def tiling_of_text(text: str, subject: str, number: int | None = None) -> LoggedTiling | None:
    """Return the tiling in a text of names and numbers; None if no field of TCubeTiling has one.

    Names may have prefixes (``tiling->baseM``, ``set_baseM(128)``), other case (``base_m``), and
    come in lists (``baseM, baseN = 128, 256``) or as the head of a table. A text that repeats one
    tiling holds one. `number` chooses among several, from 1 on.

    Raises
    ------
    RequestError
        If the text holds several tilings and `number` names none of them, or lacks fields.
    """
    groups = _groups(text)
    if not groups:
        return None
    whole = [group for group in groups if not _missing(group[1])]
    if not whole:
        line, fullest = max(groups, key=lambda group: len(group[1]))
        names = first_few(_missing(fullest))
        raise unable(subject, f"{subject}: the tiling at line {line} lacks {names}")
    # Equal ones are one, named by their first line: the list is walked backwards so that it stays.
    several = list({tuple(sorted(group[1].items())): group for group in reversed(whole)}.values())
    several.sort(key=lambda group: group[0])
    if number is None and len(several) > 1:
        lines = ", ".join(str(line) for line, _ in several)
        choices = " or ".join(f"{subject}#{i + 1}" for i in range(min(2, len(several))))
        count = len(several)
        raise unable(
            subject, f"{subject} holds {count} tilings, at lines {lines}; name one as {choices}"
        )
    chosen = 1 if number is None else number
    if not 1 <= chosen <= len(several):
        held = "one tiling" if len(several) == 1 else f"{len(several)} tilings"
        raise unable(subject, f"{subject} holds {held}, not {number}")
    line, given = several[chosen - 1]
    values = {**OPTIONAL, **given}
    absent = tuple(name for name in FIELDS if name not in given)
    return LoggedTiling(TCubeTiling(**values), line, absent)


def _missing(given: dict[str, int]) -> list[str]:
    return [name for name in REQUIRED if name not in given]


def _groups(text: str) -> list[tuple[int, dict[str, int]]]:
    """Return the fields of each tiling with its first line.

    A tiling ends where a field comes again: with another value, or once all required ones are
    there.
    """
    groups: list[tuple[int, dict[str, int]]] = []
    current: dict[str, int] = {}
    for line, name, value in _pairs(text):
        # Logs print a tiling field by field, and some print fields twice on the way: the same value
        # once more does not begin another tiling while the first one is not yet whole.
        again = name in current
        if not current or (again and (current[name] != value or not _missing(_both(current)))):
            current = {}
            groups.append((line, current))
        current[name] = value
    return [(line, _both(fields)) for line, fields in groups]


def _both(given: dict[str, int]) -> dict[str, int]:
    """Return the fields, of Ka and Kb the one that is missing taken from the other."""
    ka, kb = given.get("Ka", given.get("Kb")), given.get("Kb", given.get("Ka"))
    return given if ka is None or kb is None else {**given, "Ka": ka, "Kb": kb}


def _pairs(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield (the line, a field, its number) for each pair in a text, in its order."""
    # Names in a row and the numbers in a row behind them make up a list: of
    #     baseM, baseN = 128, 256; depthA1: 4
    # first two names meet two numbers, then `depthA1` begins anew. Only signs may stand in between;
    # any other word ends the list, with or without numbers.
    names: list[tuple[int, tuple[str, ...]]] = []
    numbers: list[int] = []
    given = False
    for line, token in _tokens(text):
        if isinstance(token, int):
            if names:
                numbers.append(token)
            continue
        fields = _fields(token)
        if fields is None and token in _GIVES | _BETWEEN:
            given = given or token in _GIVES
            continue
        if numbers or fields is None:
            yield from _matched(names, numbers, given=given)
            names, numbers, given = [], [], False
        if fields is not None:
            names.append((line, fields))
    yield from _matched(names, numbers, given=given)


def _tokens(text: str) -> Iterator[tuple[int, str | int]]:
    for number, row in enumerate(text.splitlines(), 1):
        for match in _TOKEN.finditer(row):
            digits = match["number"]
            base = 16 if digits is not None and "x" in digits.lower() else 10
            yield number, match[0] if digits is None else int(digits, base)


def _fields(word: str) -> tuple[str, ...] | None:
    """Return the fields that a word names (K names two); None if it names none."""
    for accessor in _ACCESSORS:
        word = word.removeprefix(accessor)
    if word in _LETTERS:
        return _LETTERS[word]
    field = _FOLDED.get(word.replace("_", "").lower())
    return None if field is None else (field,)


def _matched(
    names: Sequence[tuple[int, tuple[str, ...]]], numbers: Sequence[int], *, given: bool
) -> Iterator[tuple[int, str, int]]:
    """Yield the pairs of names in a row and the numbers behind them."""
    if not names or not numbers:
        return
    # Prose, or a table that is cut: the name nearest to the first number is the one that it is of.
    if len(names) != len(numbers):
        names, numbers = names[-1:], numbers[:1]
    # "M 5" may be anything; "M = 5" is meant.
    if len(names) == 1 and names[0][1][0] in {"M", "N"} and not given:
        return
    for (line, fields), value in zip(names, numbers, strict=True):
        for field in fields:
            yield line, field, value
