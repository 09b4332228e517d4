"""Tokens of C++ and its brackets, for what reads a text before the compiler does."""

import re
from collections.abc import Iterator, Sequence

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
