"""Tokens of C++ and its brackets, for what reads a text before the compiler does."""

import operator
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from cubecore.lazy_dataclass import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|\\\n)
    |(?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?(?:\*/|\Z))
    |(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<launch><<<|>>>)
    |(?P<sign>::|->|<<|.)""",
    re.DOTALL | re.VERBOSE,
)
_OPEN = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token and where it lies in the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text."""
    for match in _TOKEN.finditer(text):
        kind = "raw" if match.lastgroup == "mark" else match.lastgroup or "sign"
        yield Token(kind, match.group(), match.start(), match.end())


def closing(code: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at `at`, or the last token's."""
    stack = []
    for number in range(at, len(code)):
        text = code[number].text
        if text in _OPEN:
            stack.append(_OPEN[text])
        elif stack and text == stack[-1]:
            stack.pop()
            if not stack:
                return number
    return len(code) - 1


def closing_angle(code: Sequence[Token], at: int) -> int:
    """Return the index of the angle that closes the one at `at`; `at` if none does."""
    depth = 0
    for number in range(at, len(code)):
        depth += (code[number].text == "<") - (code[number].text == ">")
        if depth == 0:
            return number
        if code[number].text in {";", "{"}:
            break
    return at


_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|elif|else|endif)\b"
    r"(?P<condition>[^\n\\]*(?:\\[\s\S][^\n\\]*)*)",
    re.MULTILINE,
)
_DEFINES = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
_CONDITION = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:(?P<sign>==|!=|<=|>=|<|>)(?P<number>\d+))?")
_DEFINED = re.compile(r"(?P<not>!?)defined\(?(?P<name>\w+)\)?")
_COMPARISONS = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le,
    ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


Span = tuple[int, int]


def defined_macros(text: str) -> set[str]:
    """Return the names of macros that a text defines, or takes back."""
    return set(_DEFINES.findall(text))


def conditions(
    code: Sequence[Token],
    text: str,
    macros: Mapping[str, str],
    defined: Container[str] | None = None,
) -> tuple[list[Span], list[Span]]:
    """Return where a text's conditions of the preprocessor are, and what they leave out.

    A condition counts that compares one of these macros with a number, or asks if there is one, and
    that the file does not define itself; and one that asks for a macro that is not among those that
    any file defines, where they are known. Of other conditions all branches stay.
    """
    own = defined_macros(text)
    known = {name: value for name, value in macros.items() if name not in own}
    starts = {token.start for token in code if token.text == "#"}
    found, left_out = list[Span](), list[Span]()
    open_: list[tuple[list[bool | None], int]] = []  # what each branch so far is, the last's start
    for match in _DIRECTIVE.finditer(text):
        if match.start() + match[0].index("#") not in starts:
            continue
        found.append(match.span())
        word = match["word"]
        if word.startswith("if"):
            open_.append(([_holds(word, match["condition"], known, defined)], match.end()))
            continue
        if not open_:
            break
        branches, start = open_.pop()
        if branches[-1] is False:
            left_out.append((start, match.start()))
        if word != "endif":
            holds = True if word == "else" else _holds("if", match["condition"], known, defined)
            if True in branches:
                holds = False
            elif holds and None in branches:
                holds = None
            open_.append(([*branches, holds], match.end()))
    return found, left_out


def outside(code: Sequence[Token], spans: Sequence[Span]) -> Iterator[Token]:
    """Yield the tokens that lie in none of some parts of a text."""
    waiting, end = sorted(spans, reverse=True), 0
    for token in code:
        while waiting and waiting[-1][0] <= token.start:
            end = max(end, waiting.pop()[1])
        if token.start >= end:
            yield token


def _holds(
    word: str, condition: str, known: Mapping[str, str], defined: Container[str] | None
) -> bool | None:
    """Return whether a condition of macros holds; None if these do not decide it.

    Names with an underscore in front are the compiler's.
    """

    def absent(name: str) -> bool:
        return defined is not None and name not in defined and not name.startswith("_")

    plain = "".join(re.sub(r"//.*|/\*.*?\*/|\\\n", "", condition).split())
    asked = _DEFINED.fullmatch(plain)
    if word in {"ifdef", "ifndef"} or asked is not None:
        name = plain if asked is None else asked["name"]
        positive = word != "ifndef" if asked is None else not asked["not"]
        if name in known:
            return positive
        return not positive if absent(name) else None
    compared = _CONDITION.fullmatch(plain)
    if compared is None:
        return None
    value = known.get(compared["name"], "0" if absent(compared["name"]) else "")
    if not value.isdigit():
        return None
    if compared["sign"] is None:
        return int(value) != 0
    return bool(_COMPARISONS[compared["sign"]](int(value), int(compared["number"])))
