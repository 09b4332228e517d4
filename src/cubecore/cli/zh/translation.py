"""Texts for people in Chinese: English templates, as they are declared, each with its Chinese.

The files of `cli/zh` have the pairs. A template in braces stands for whatever is there, which is
translated in its turn; what no template matches stays English. JSON, ids and exit codes never come
here.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol
from unicodedata import category

from cubecore.package_data import packaged

if TYPE_CHECKING:
    import click

SECTIONS = ("help", "advice", "findings", "errors", "frame")
_SHARED = ("advice", "findings")
"""Sections whose whole sentences may stand in others."""
_PLACE = re.compile(r"\\{(\w+)\\}")
_FINDING = re.compile(r"( *)([a-z][a-z-]+): (.+) \((\d+) times?; (.+)\)")
_LAUNCH_FINDING = re.compile(r"( *)([a-z][a-z-]+): (.+)")
_FOLLOW = re.compile(r"( *)(\d+) findings? follows? from it \((.+)\)(.*)")
_ADVICE = re.compile(r"  \S+:\d+: [a-z-]+ saves ")
_CODE = "code"
"""The name of a place whose text is the user's code, and stays."""
_DEFAULT = "[default: "
_WIDE = 0x2E80
"""The first character that takes two columns."""
_TOKEN = re.compile(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+")


@cache
def catalogue(section: str) -> Mapping[str, str]:
    """Return the Chinese of each English text or template of a section."""
    text = packaged("cli", "zh", f"{section}.toml").read_text("utf-8")
    pairs: dict[str, str] = tomllib.loads(text)
    return pairs


@cache
def _templates(section: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (_pattern(english), chinese)
        for english, chinese in catalogue(section).items()
        if "{" in english
    )


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(_PLACE.sub(r"(?P<\1>.+?)", re.escape(english)))


def sentence(section: str, text: str) -> str:
    """Return a sentence in Chinese; what has no translation stays as it is."""
    for each in (section, *_SHARED):
        if (whole := catalogue(each).get(text)) is not None:
            return whole
    for pattern, chinese in _templates(section):
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            said = {n: p if n == _CODE else sentence(section, p) for n, p in parts.items()}
            return chinese.format(**said)
    return text


def _framed(english: str, **parts: str) -> str:
    """Return what stands around texts that are in Chinese already."""
    return catalogue("frame")[english].format(**parts)


def translated(text: str) -> str:
    """Return an answer's text with its findings, advice and headings in Chinese."""
    lines = [_line(line) for line in _unwrapped(text.split("\n"))]
    return "\n".join(lines)


def error_text(text: str) -> str:
    """Return an error's text in Chinese: its findings, and each sentence that has all its lines.

    A sentence of which a part has no line stays English as a whole.
    """
    return "\n".join(_error_line(line) for line in text.split("\n"))


def _error_line(line: str) -> str:
    found = _finding_line(line)
    return found if found != line else whole_sentence(line) or line


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]{1,}")
_NO_TERMS = frozenset(
    (
        *("a", "an", "and", "another", "any", "are", "both", "but", "for", "has", "have", "in"),
        *("is", "it", "its", "more", "must", "neither", "no", "none", "nor", "not", "nothing"),
        *("of", "on", "or", "that", "the", "to", "which", "with"),
    )
)
"""English words that no name or value consists of."""


def whole_sentence(text: str) -> str | None:
    """Return a sentence of an error in Chinese; None if a part of it has no line."""
    known = catalogue("errors").get(text)
    if known is not None:
        return known
    for pattern, chinese in _templates("errors"):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        said = {n: p if n == _CODE else whole_sentence(p) for n, p in match.groupdict().items()}
        if None not in said.values():
            return chinese.format(**said)
    return text if _is_term(text) else None


def _is_term(text: str) -> bool:
    """Return whether a part of a sentence is a name, a value or what the user wrote."""
    words = [word.strip(",;:()[]{}") for word in _QUOTED.sub(" 0 ", text).split()]
    plain = [_PLAIN.fullmatch(word) is not None for word in words]
    beside = any(one and other for one, other in pairwise(plain))
    return not beside and not any(word in _NO_TERMS for word in words)


def _line(line: str) -> str:
    found = _finding_line(line)
    if found != line:
        return found
    indent = line[: len(line) - len(line.lstrip())]
    return indent + sentence("advice", line.strip())


def _finding_line(line: str) -> str:
    if match := _FINDING.fullmatch(line):
        indent, kind, text, count, core = match.groups()
        said = sentence("findings", text)
        if said == text:
            return line
        framed = _framed("{text} ({count} times; {core})", text=said, count=count, core=core)
        return f"{indent}{kind}: {framed}"
    if (match := _LAUNCH_FINDING.fullmatch(line)) and _is_kind(match[2]):
        indent, kind, text = match.groups()
        return f"{indent}{kind}: {sentence('findings', text)}"
    if match := _FOLLOW.fullmatch(line):
        indent, count, kinds, hint = match.groups()
        english, hint = "{count} findings follow from it ({kinds}){hint}", sentence("frame", hint)
        return indent + _framed(english, count=count, kinds=kinds, hint=hint)
    return line


def _is_kind(word: str) -> bool:
    """Return whether a word is the id of a kind of finding."""
    from cubecore.machine.finding_kinds import KINDS  # only with findings

    return word in KINDS


def _unwrapped(lines: list[str]) -> Iterator[str]:
    """Yield the lines, those of a piece of advice on a kernel joined to its sentences."""
    joined: list[str] = []
    inside = False
    for line in lines:
        if inside and line.startswith("    "):
            joined.append(line.strip())
            continue
        if joined:
            yield from _sentences_of_advice(" ".join(joined))
            joined = []
        inside = _ADVICE.match(line) is not None
        yield line
    if joined:
        yield from _sentences_of_advice(" ".join(joined))


def _sentences_of_advice(text: str) -> Iterator[str]:
    """Yield the reason and the remedy of an advice, which ends with the remedy."""
    for english in catalogue("advice"):
        if english.endswith(".") and text.endswith(english):
            yield f"    {text.removesuffix(english).strip()}"
            yield f"    {english}"
            return
    yield f"    {text}"


# --- help


class Helped(Protocol):
    """A command whose help is written: its text, its options by group, its examples."""

    help: str | None
    examples: tuple[str, ...]

    def collect_usage_pieces(self, ctx: "click.Context", /) -> list[str]:
        """Return the arguments as the usage shows them."""
        ...

    def get_params(self, ctx: "click.Context", /) -> "list[click.Parameter]":
        """Return the arguments and options."""
        ...

    def option_groups(self, ctx: "click.Context", /) -> Iterable[tuple[str, list[tuple[str, str]]]]:
        """Return the title and the rows of each group of options."""
        ...


def help_page(command: Helped, ctx: "click.Context", width: int) -> str:
    """Return the help of a command."""
    usage = " ".join(command.collect_usage_pieces(ctx))
    usage = _framed("Usage: {command}", command=f"{ctx.command_path} {usage}")
    lines = [*filled(usage, width, "", "  "), ""]
    for paragraph in (command.help or "").split("\n\n"):
        text = sentence("help", " ".join(paragraph.split()))
        lines += [*filled(text, width, "  ", "  "), ""]
    helps = {_record_name(p, ctx): getattr(p, "help", None) or "" for p in command.get_params(ctx)}
    for title, rows in command.option_groups(ctx):
        shown = {name: _option_text(helps.get(name, ""), text) for name, text in rows}
        lines += [_titled(title), *_table(shown, width), ""]
    if command.examples:
        lines += [_titled("Examples"), *(f"  {line}" for line in command.examples)]
    return "\n".join(lines).rstrip()


def _titled(title: str) -> str:
    said = sentence("help", title)
    return _framed("{title}:", title=sentence("frame", said))


def _record_name(param: "click.Parameter", ctx: "click.Context") -> str:
    record = param.get_help_record(ctx)
    return record[0] if record else ""


def _option_text(own: str, whole: str) -> str:
    """Return an option's help; what Click puts behind it has its own words."""
    rest = whole.removeprefix(own) if own else whole
    return sentence("help", own) + rest.replace(_DEFAULT, catalogue("frame")[_DEFAULT])


def front_page_text(program: str, width: int) -> str:
    """Return the page of all commands."""
    from cubecore.cli.front_page import EXAMPLES, GROUPS, OPTIONS, PURPOSE, summaries

    texts = summaries()
    lines = [_framed("Usage: {command}", command=f"{program} [OPTIONS] COMMAND [ARGS]..."), ""]
    lines += filled(sentence("help", PURPOSE), width, "  ", "  ")
    groups = {title: {n: texts[n] for n in names.split()} for title, names in GROUPS.items()}
    for title, rows in {**groups, "Options": OPTIONS}.items():
        shown = {name: sentence("help", text) for name, text in rows.items()}
        lines += ["", _titled(title), *_table(shown, width)]
    lines += ["", _titled("Examples"), *(f"  {line}" for line in EXAMPLES)]
    return "\n".join(lines)


_MOST_NAME = 28
"""Columns of an option's name above which its text begins on the next line."""


def _table(rows: Mapping[str, str], width: int) -> list[str]:
    column = min(max(map(len, rows)), _MOST_NAME) + 4
    lines = []
    for name, text in rows.items():
        if len(name) + 4 > column:
            lines.append(f"  {name}")
            lines += filled(text, width, " " * column, " " * column)
        else:
            lines += filled(text, width, f"  {name:{column - 2}}", " " * column)
    return lines


def filled(text: str, width: int, first: str, rest: str) -> list[str]:
    """Return the lines of a text; a Chinese character takes two columns and ends a word."""
    lines, line = [], first
    for token in _TOKEN.findall(text):
        closes = ord(token[0]) >= _WIDE and category(token[0]) in {"Po", "Pe", "Pf"}
        fits = columns(line) + columns(token) <= width or closes
        if not fits and line.strip():
            lines.append(line.rstrip())
            line = rest
        if not (token.isspace() and line == rest):
            line += " " if token.isspace() else token
    return [*lines, line.rstrip()]


def columns(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    return sum(2 if ord(character) >= _WIDE else 1 for character in text)
