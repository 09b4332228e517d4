"""Functions of threads (SIMT): their bounds, and what they declare in UB.

Threads have real memory behind pointers. A declaration in UB becomes a reference to memory of the
block, the same for all of its threads; vector code keeps arrays of addresses (`scanner`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cubecore.frontends.cpp.rewriting.tokens import Token, closing, closing_angle

THREAD_WORDS = frozenset(
    (
        *("__simt_vf__", "__simt_callee__", "__launch_bounds__", "LAUNCH_BOUND", "Simt"),
        *("threadIdx", "blockDim", "asc_simt", "simt_api", "dim3"),
    )
)
"""Words of files that have code of threads."""
THREAD_VARIABLES = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"))
"""Variables that each thread has."""
_OF_CORES = frozenset(("__aicore__", "aicore", "__vector__", "__cube__", "__mix__"))
"""Words of functions that cores run, not threads."""
_BOUNDS = frozenset(("__launch_bounds__", "LAUNCH_BOUND", "launch_bounds"))
_REGISTERS = frozenset(("__maxnreg__",))
_STOPS = frozenset(";[{(),*&=")
Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class ThreadDefinition:
    """A function that threads run: tokens of its head, from `head` on, and of its braces."""

    head: int
    opening: int
    closing: int
    starts: bool
    """True of one that a launch or a call starts; the others are called by threads."""


def thread_functions(code: Sequence[Token]) -> Iterator[ThreadDefinition]:
    """Yield the functions of threads that a file defines."""
    for number, token in enumerate(code if has_thread_words(code) else ()):
        starts = token.text in {"__simt_vf__", "__global__"}
        if not starts and token.text != "__simt_callee__":
            continue
        opening = _body(code, number)
        head = _head(code, number)
        words = {each.text for each in code[head:opening]}
        if opening < 0 or (token.text == "__global__" and words & _OF_CORES):
            continue
        yield ThreadDefinition(head, opening, closing(code, opening), starts)


def is_of_threads(code: Sequence[Token], number: int) -> bool:
    """Return whether the entry whose `__global__` stands at an index is a kernel of threads."""
    opening = _body(code, number)
    words = {each.text for each in code[_head(code, number) : opening]}
    return opening >= 0 and not words & _OF_CORES and has_thread_words(code)


def has_thread_words(code: Sequence[Token]) -> bool:
    """Return whether a file has code of threads."""
    return any(token.text in THREAD_WORDS for token in code)


def _head(code: Sequence[Token], number: int) -> int:
    """Return the index of the first token of the declaration that an attribute stands in."""
    while number > 0 and code[number - 1].text not in {";", "}", "{"}:
        number -= 1
    return number


def _body(code: Sequence[Token], number: int) -> int:
    """Return the index of the brace that opens the body behind an attribute; -1: there is none."""
    at = number
    while at < len(code) and code[at].text not in {"{", ";"}:
        at = closing(code, at) + 1 if code[at].text == "(" else at + 1
    return at if at < len(code) and code[at].text == "{" else -1


def thread_edits(text: str, code: Sequence[Token]) -> Iterator[Edit]:
    """Yield the edits of functions of threads."""
    functions = list(thread_functions(code))
    yield from _dynamic_edits(text, code, functions)
    for function in functions:
        if function.starts:
            end = code[function.opening].end
            yield end, end, _bounds(text, code, function)
        for number in range(function.opening, function.closing):
            if code[number].text == "__ubuf__":
                yield from _declared(text, code, number)


def _dynamic_edits(
    text: str, code: Sequence[Token], functions: Sequence[ThreadDefinition]
) -> Iterator[Edit]:
    """Yield the edits of dynamic memory that a file declares outside of functions.

    It has no address while the file is loaded: where a function uses it, it is asked for.
    """
    kinds: dict[str, str] = {}
    opened = 0
    for number, token in enumerate(code if has_thread_words(code) else ()):
        # Braces behind parentheses are functions' and what lies in them; others are namespaces'.
        if token.text == "{" and (opened or code[number - 1].text == ")"):
            opened += 1
        elif token.text == "}" and opened:
            opened -= 1
        elif token.text == "__ubuf__" and not opened and code[number - 1].text == "extern":
            end = number + 1
            while end < len(code) and code[end].text not in _STOPS:
                end = closing_angle(code, end) + 1 if code[end].text == "<" else end + 1
            if end + 1 < len(code) and [each.text for each in code[end : end + 2]] == ["[", "]"]:
                name = code[end - 1]
                kinds[name.text] = text[code[number + 1].start : name.start].strip()
                yield code[number - 1].start, code[end + 1].end, ""
        elif opened and token.text in kinds and code[number - 1].text not in {".", "->", "::"}:
            kind = kinds[token.text]
            in_threads = any(each.opening < number < each.closing for each in functions)
            of_cores = f"::cubecore::dynamic_array<::cubecore::Mem::UB, {kind}>()"
            of_threads = f"::cubecore::simt::dynamic<{kind}>()"
            yield token.start, token.end, of_threads if in_threads else of_cores


def _bounds(text: str, code: Sequence[Token], function: ThreadDefinition) -> str:
    """Return what says a function's bounds when the first thread of a call begins."""
    # 0 stands for what the function does not say: the runtime knows the default.
    threads, registers = "0", "0"
    for number in range(function.head, function.opening - 1):
        if code[number + 1].text != "(":
            continue
        given = text[code[number + 1].end : code[closing(code, number + 1)].start].strip()
        if code[number].text in _BOUNDS:
            threads = given.partition(",")[0]
        elif code[number].text in _REGISTERS:
            registers = given
    return f" if (cubecore_first_thread) cubecore_simt_bounds(({threads}), ({registers}));"


def _declared(text: str, code: Sequence[Token], number: int) -> Iterator[Edit]:
    """Yield the edit of a declaration in UB; none of a pointer into it.

    `__ubuf__ float tile[32][33];` becomes
    `static const char cubecore_tile = 0; auto& tile = fixed<float[32][33]>(&cubecore_tile);`.
    """
    # The name stands before the first bracket or semicolon; a pointer's star comes earlier and ends
    # the search, as its memory is not the declaration's.
    end = number + 1
    while end < len(code) and code[end].text not in _STOPS:
        end = closing_angle(code, end) + 1 if code[end].text == "<" else end + 1
    if end >= len(code) or code[end].text not in {"[", ";"} or end - number < 3:
        return
    # `extern` goes, too: it says that the memory is dynamic, which the empty brackets say as well.
    begin = number
    while begin > 0 and code[begin - 1].text in {"extern", "static"}:
        begin -= 1
    kind = text[code[number + 1].start : code[end - 1].start].strip()
    name, extents, last = code[end - 1].text, "", end - 1
    while code[last + 1].text == "[":
        last, open_ = closing(code, last + 1), last + 1
        extents += text[code[open_].start : code[last].end]
    if "[]" in extents.replace(" ", ""):
        declaration = f"{kind}* {name} = ::cubecore::simt::dynamic<{kind}>()"
    else:
        site = f"cubecore_{name}"
        declaration = (
            f"static const char {site} = 0; auto& {name} ="
            f" ::cubecore::simt::fixed<{kind}{extents}>(&{site})"
        )
    yield code[begin].start, code[last].end, declaration


@dataclass(frozen=True, slots=True)
class RefusedFunction:
    """A function that threads cannot run: where it stands in the text, its name, and why not."""

    start: int
    name: str
    reason: str


def refused_function(code: Sequence[Token]) -> RefusedFunction | None:
    """Return the first function of threads that is virtual or recursive; None: there is none."""
    functions = list(thread_functions(code))
    names = [code[_name(code, function)] for function in functions]
    for function, name in zip(functions, names, strict=True):
        if any(token.text == "virtual" for token in code[function.head : function.opening]):
            return RefusedFunction(name.start, name.text, "is virtual")
    # A name with several definitions says nothing: one may call another.
    defined = Counter(name.text for name in names)
    calls = {
        name.text: _calls(code, function, defined)
        for function, name in zip(functions, names, strict=True)
        if defined[name.text] == 1
    }
    for caller in calls:
        way = _way_back(calls, caller, caller, frozenset())
        if len(way) == 1:
            return RefusedFunction(way[0].start, caller, "calls itself")
        if way:
            by = " and ".join(call.text for call in way[:-1])
            return RefusedFunction(way[0].start, caller, f"calls itself through {by}")
    return None


def _calls(
    code: Sequence[Token], function: ThreadDefinition, defined: Mapping[str, int]
) -> tuple[Token, ...]:
    """Return the calls of functions of threads in one: the tokens of their names."""
    # A call with template arguments may be that of another function, which ends the recursion.
    return tuple(
        token
        for number, token in enumerate(code[function.opening : function.closing], function.opening)
        if defined.get(token.text) == 1
        and code[number + 1].text == "("
        and code[number - 1].text not in {".", "->", "::"}
    )


def _way_back(
    calls: Mapping[str, Sequence[Token]], name: str, to: str, behind: frozenset[str]
) -> tuple[Token, ...]:
    """Return the calls that lead from one function to another; none if no call does."""
    for call in calls[name]:
        if call.text == to:
            return (call,)
        if call.text not in behind:
            way = _way_back(calls, call.text, to, behind | {call.text})
            if way:
                return (call, *way)
    return ()


def _name(code: Sequence[Token], function: ThreadDefinition) -> int:
    """Return the index of a function's name: that before its parameters."""
    number = function.head
    while number < function.opening:
        if code[number].text == "(":
            if not code[number - 1].text.startswith("__") and code[number - 1].text not in _BOUNDS:
                return number - 1
            number = closing(code, number)
        number += 1
    return function.head
