"""Tokens of C++ and its brackets, for what reads a text before the compiler does."""

import operator
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    # Each open conditional is a list of what is known of its branches so far: True, False or None
    # (not known). A branch that is surely not taken is left out of the text. Behind one that is
    # surely taken all others are not; behind an unknown one no later branch is certain.
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

    # Only three shapes are decided: `defined(X)`, a comparison of a macro with a number, and a
    # macro alone. Anything else is None: all branches stay, which can only find more than is
    # compiled.
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


# --- conditional expressions


def with_common_types(text: str, lines: Container[int]) -> str:
    """Return a text in which operands of conditionals on some lines are given a common type.

    `a ? b : c` of a half and a float is a float, which C++ does not find for a class: each operand
    is passed to `cubecore::chosen`, with the other's type. Lines stay where they are.
    """
    code = [token for token in tokens(text) if token.kind not in {"space", "comment"}]

    def spelled(low: int, high: int) -> str:
        """Return tokens on one line."""
        parts = [code[low].text]
        for before, token in zip(code[low : high - 1], code[low + 1 : high], strict=True):
            parts.append(("" if before.end == token.start else " ") + token.text)
        return "".join(parts)

    def is_marked(number: int, end: int) -> bool:
        """Return whether a conditional, from the token before it on, has one of the lines."""
        places = code[max(number - 1, 0)].start, code[end - 1].start
        first, last = (text.count("\n", 0, place) + 1 for place in places)
        return any(line in lines for line in range(first, last + 1))

    def rewritten(low: int, high: int, *, inside: bool, flat: bool) -> str:
        """Return tokens with all conditionals changed, or, not `inside`, those of the lines."""
        parts, at, number = list[str](), low, low

        def up_to(stop: int) -> None:
            if flat and at < stop:
                parts.append(f"{spelled(at, stop)} ")
            elif not flat:
                end = code[stop].start if stop < high else code[high - 1].end
                parts.append(text[code[at].start if at < high else end : end])

        # Each conditional found is replaced by its operands, each as
        # ``::cubecore::chosen<decltype((other))>(operand)``; `at` is the first token not yet
        # written. In the decltype the other operand must stand on one line (`flat`), so that lines
        # do not move.
        while number < high:
            ends = _ends_of_conditional(code, number, high) if code[number].text == "?" else None
            if ends is None or not (inside or is_marked(number, ends[1])):
                number += 1
                continue
            colon, end = ends
            spans = (number + 1, colon), (colon + 1, end)
            others = [rewritten(*span, inside=True, flat=True) for span in reversed(spans)]
            for (first, stop), other in zip(spans, others, strict=True):
                up_to(first)
                operand = rewritten(first, stop, inside=True, flat=flat)
                parts.append(f"::cubecore::chosen<decltype(({other}))>({operand})")
                if not flat and stop < high:
                    parts.append(text[code[stop - 1].end : code[stop].start])
                at = stop
            number = end
        if at < high:
            up_to(high)
        return "".join(parts)

    if not code:
        return text
    whole = rewritten(0, len(code), inside=False, flat=False)
    return text[: code[0].start] + whole + text[code[-1].end :]


def _ends_of_conditional(code: Sequence[Token], at: int, high: int) -> tuple[int, int] | None:
    """Return where the colon of a conditional is, and the end of its last operand."""
    colon = _until(code, at + 1, high, {":"})
    if colon is None or colon == at + 1 or code[colon].text != ":":
        return None
    end = _until(code, colon + 1, high, {",", ";", ":"})
    end = high if end is None else end
    return (colon, end) if end > colon + 1 else None


def _until(code: Sequence[Token], at: int, high: int, stops: Container[str]) -> int | None:
    """Return the first of some signs outside of brackets and conditionals, or a bracket's end."""
    # ``a ? b ? c : d : e``: each further question mark owns the next colon. Brackets, and angles
    # that look like template arguments, are jumped over.
    nested = 0
    while at < high:
        text = code[at].text
        if text in _OPEN.values() or (text in stops and not (text == ":" and nested)):
            return at
        nested += (text == "?") - (text == ":")
        if text in _OPEN:
            at = closing(code, at)
        elif text == "<" and code[at - 1].kind == "word":
            end = closing_angle(code, at)
            if end + 1 < len(code) and code[end + 1].text in {"(", "{", "::"}:
                at = end
        at += 1
    return None
