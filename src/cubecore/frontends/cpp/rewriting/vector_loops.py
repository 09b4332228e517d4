"""Loops of vector functions that run as software loops, with the reason (*Reg*, loops of a VF).

The unit runs a loop by itself where a counter of uint16_t goes from 0 in steps of 1 and no jump
stands in the body, four of them within each other at most. Others are legal, and slower.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cubecore.frontends.cpp.rewriting.tokens import Token, closing

_COUNTER = "uint16_t"
_MOST_NESTED = 4
_JUMPS = frozenset({"continue", "break", "goto"})


@dataclass(frozen=True, slots=True)
class SoftwareLoop:
    """A loop by the index of its first token, and why the unit does not run it."""

    token: int
    reason: str


def software_loops(
    code: list[Token], begin: int, end: int, depth: int = 0
) -> Iterator[SoftwareLoop]:
    """Yield the loops among tokens [begin, end) of a vector function that the unit does not run."""
    at = begin
    while at < end:
        word = code[at].text
        if word not in {"for", "while", "do"} or at + 1 >= end:
            at += 1
            continue
        close = closing(code, at + 1) if word != "do" else at
        last = _body_end(code, close + 1, end)
        reason = f"a {word}" if word != "for" else _of_counter(code, at + 2, close)
        if not reason and depth >= _MOST_NESTED:
            reason = f"{depth} loops around it"
        reason = reason or _jump(code, close + 1, last)
        if reason:
            yield SoftwareLoop(at, reason)
        yield from software_loops(code, close + 1, last, depth + 1)
        at = last
        if word == "do" and at + 1 < end and code[at].text == "while":
            at = closing(code, at + 1) + 1


def _body_end(code: list[Token], at: int, end: int) -> int:
    """Return the index behind the statement that begins at an index."""
    while at + 1 < end and code[at].text in {"for", "if", "while"}:
        at = closing(code, at + (2 if code[at + 1].text == "constexpr" else 1)) + 1
    if at < end and code[at].text == "{":
        return closing(code, at) + 1
    return next((number + 1 for number in range(at, end) if code[number].text == ";"), end)


def _of_counter(code: list[Token], begin: int, end: int) -> str:
    """Return what is unusual of a loop's counter, "" for none."""
    parts: list[list[str]] = [[]]
    for token in code[begin:end]:
        if token.text == ";":
            parts.append([])
        else:
            parts[-1].append(token.text)
    if len(parts) != 3 or "=" not in parts[0]:
        return "no counter that is set in it"
    equals = parts[0].index("=")
    kind, name, start = parts[0][: equals - 1], parts[0][equals - 1], parts[0][equals + 1 :]
    if [word for word in kind if word not in {"std", ":", "::"}] != [_COUNTER]:
        return f"a counter of {' '.join(kind)}" if kind else f"the counter {name} from outside"
    if start != ["0"]:
        return f"a counter from {' '.join(start)}"
    if "".join(parts[2]) not in {f"++{name}", f"{name}++", f"{name}+=1"}:
        return f"the step {''.join(parts[2])}"
    return ""


def _jump(code: list[Token], begin: int, end: int) -> str:
    """Return a jump of a loop's own body, "" for none; inner loops have theirs."""
    at = begin
    while at < end:
        word = code[at].text
        if word in {"for", "while"} and at + 1 < end:
            at = _body_end(code, closing(code, at + 1) + 1, end)
            continue
        if word in _JUMPS or (word == "if" and code[at + 1].text != "constexpr"):
            return f"{'an' if word == 'if' else 'a'} {word} in its body"
        at += 1
    return ""
