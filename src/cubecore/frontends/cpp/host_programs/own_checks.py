"""Programs' own checks: whether the exit code of a main can depend on what its kernels computed.

The text is read as far as it shows that: from main and from the functions of its file that launch
kernels. A main that ends with 0 however its results are has compared nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from cubecore.frontends.cpp.rewriting.tokens import Token, closing, tokens

_LAUNCHES = frozenset({"<<<", "ACLRT_LAUNCH_KERNEL"})
_SUCCESS = frozenset({"0", "EXIT_SUCCESS", "ACL_SUCCESS"})
_ENDS = frozenset({"abort", "_Exit", "quick_exit"})
_STATUS = "ACL_"
"""The beginnings of names of the runtime's return codes: they say nothing of results."""
_LEFT_OUT = frozenset({"space", "comment", "string", "raw"})

_GOOD = re.compile(r"(?i)\b(?:pass(?:ed)?|succe\w*|ok|correct)\b")
_BAD = re.compile(r"(?i)fail|wrong|mismatch|error|incorrect")
_NEAR = 24
"""Tokens at most between two verdicts that one condition chooses, and of a condition."""

_Code = Sequence[Token]


def judges_results(text: str) -> bool:
    """Return whether a program may end with another code than 0 for what its kernels computed.

    It is one that exits, asserts or throws behind a launch, or whose main returns there what is not
    always 0. Checks of the runtime's own return codes count for nothing. What a function of another
    file returns is not known here, and may be a comparison.
    """
    code = [token for token in tokens(text) if token.kind not in _LEFT_OUT]
    bodies = dict(_functions(code))
    # A launch may stand in main or in a function that main calls, which another file's macro may
    # hide behind a name: functions that launch are found first, then those that call them.
    launching = {name for name, body in bodies.items() if _launch(body, set()) is not None}
    for _ in bodies:  # who calls one that launches, launches
        launching |= {n for n, body in bodies.items() if _launch(body, launching) is not None}
    # What stands behind the last launch can depend on its results; what stands before it, such as
    # a check of the arguments, cannot.
    for name in launching:
        begin = _launch(bodies[name], launching)
        rest = bodies[name][0 if begin is None else begin :]
        if _fails(rest, bodies) or (name == "main" and _returns_result(rest, bodies)):
            return True
    return "main" not in launching


def says_verdict(text: str, said: str) -> bool:
    """Return whether a program's output has the good one of two verdicts that its text chooses.

    They are texts of one conditional, or of an `if` and its `else`, one of success and one of
    failure. A choice by the runtime's own return codes counts for nothing.
    """
    code = [token for token in tokens(text) if token.kind not in _LEFT_OUT - {"string"}]
    places = [number for number, token in enumerate(code) if token.kind == "string"]
    for first, second in pairwise(places):
        between = {token.text for token in code[first:second]}
        before = [token.text for token in code[max(0, first - _NEAR) : first]]
        if second - first > _NEAR or not between & {"else", ":"}:
            continue
        if any(word.startswith(_STATUS) for word in before):
            continue
        verdicts = code[first].text, code[second].text
        good = [each for each in verdicts if _GOOD.search(each) and not _BAD.search(each)]
        bad = [each for each in verdicts if _BAD.search(each)]
        if len(good) == len(bad) == 1 and _is_printed(good[0][1:-1], said):
            return True
    return False


def _is_printed(literal: str, said: str) -> bool:
    """Return whether output has a literal's text up to its first number or escape."""
    words = re.split(r"[%\\]", literal)[0].strip()
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", said) is not None


def _functions(code: _Code) -> Iterator[tuple[str, _Code]]:
    """Yield the name and the body of each function that a file defines."""
    for number, token in enumerate(code):
        if token.text != "(" or number == 0 or code[number - 1].kind != "word":
            continue
        end = closing(code, number) + 1
        while end < len(code) and code[end].text in {"const", "noexcept", "override"}:
            end += 1
        if end < len(code) and code[end].text == "{":
            yield code[number - 1].text, code[end : closing(code, end) + 1]


def _launch(body: _Code, launching: set[str]) -> int | None:
    """Return the number of the last token of a body that launches, or calls what does."""
    found = None
    for number, token in enumerate(body[:-1]):
        of_call = token.text in launching and body[number + 1].text in {"(", "<"}
        if token.text in _LAUNCHES or of_call:
            found = number
    return found


def _fails(rest: _Code, bodies: Mapping[str, _Code], depth: int = 3) -> bool:
    """Return whether code, or what it calls, may end the program for another reason than status."""
    for number, token in enumerate(rest[:-1]):
        text, behind = token.text, rest[number + 1].text
        if text == "throw" or (text in _ENDS and behind == "("):
            return True
        # A check of a return code of the runtime names one of its constants in the condition, or
        # stands in the block of an `if` that does.
        if text in {"assert", "exit"} and behind == "(":
            given = [each.text for each in rest[number + 2 : closing(rest, number + 1)]]
            if text == "exit" and given not in [[word] for word in _SUCCESS]:
                return not _is_of_status(rest, number)
            if text == "assert" and not any(word.startswith(_STATUS) for word in given):
                return True
        if depth and behind == "(" and text in bodies and text != "main":
            return _fails(bodies[text], bodies, depth - 1) or _fails(
                rest[number + 1 :], bodies, depth
            )
    return False


def _returns_result(rest: _Code, bodies: Mapping[str, _Code], depth: int = 3) -> bool:
    """Return whether code returns what may be another value than 0, for another reason."""
    for number, token in enumerate(rest):
        if token.text != "return":
            continue
        end = next(n for n in range(number, len(rest)) if rest[n].text in {";", "}"})
        given = [each.text for each in rest[number + 1 : end]]
        if len(given) <= 1 and set(given) <= _SUCCESS:
            continue
        if _is_of_status(rest, number):
            continue
        called = next((word for word in given if word in bodies), None)
        if called is None or not depth or _returns_result(bodies[called], bodies, depth - 1):
            return True
    return False


def _is_of_status(code: _Code, number: int) -> bool:
    """Return whether a statement stands behind an `if` of a return code of the runtime."""
    # Back from the statement over its siblings to the brace that opens its block, or to the
    # parenthesis of an `if` without braces, whose condition is looked at.
    at, depth = number - 1, 0
    while at >= 0:
        text = code[at].text
        depth += (text == "}") - (text == "{")
        if depth < 0 or (depth == 0 and text == ")"):
            opening = _opening(code, at - 1 if text == "{" else at)
            if opening is None:
                return False
            condition = [each.text for each in code[opening:at]]
            return any(word.startswith(_STATUS) for word in condition)
        if depth == 0 and text == ";" and code[number - 1].text != "{":
            return False
        at -= 1
    return False


def _opening(code: _Code, at: int) -> int | None:
    """Return where the parenthesis opens that closes at a token; None if none closes there."""
    if at < 0 or code[at].text != ")":
        return None
    depth = 0
    for number in range(at, -1, -1):
        depth += (code[number].text == ")") - (code[number].text == "(")
        if depth == 0:
            return number
    return None
