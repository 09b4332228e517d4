"""Words that C++ does not know: a scanner that rewrites them, and finds the entries of a file.

It knows comments, strings, raw strings and balanced brackets. Lines keep their numbers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from cubecore.frontends.cpp.rewriting.definitions import specialisations
from cubecore.frontends.cpp.rewriting.threads import (
    has_thread_words,
    is_of_threads,
    thread_edits,
)
from cubecore.frontends.cpp.rewriting.tokens import (
    Token,
    closing,
    closing_angle,
    conditions,
    outside,
    tokens,
)
from cubecore.frontends.cpp.rewriting.vector_loops import software_loops

_LOCAL = {
    "__ubuf__": "UB",
    "__local_mem__": "UB",
    "__cbuf__": "L1",
    "__ca__": "L0A",
    "__cb__": "L0B",
    "__cc__": "L0C",
    "__biasbuf__": "BT",
    "__fbuf__": "FB",
}
"""Address spaces of local memories, and the memory of each."""
_BEGIN_VECTOR_FUNCTION = (
    " ::cubecore::VectorFunction cubecore_vector_function{::cubecore::Where{__builtin_FILE(),"
    " __builtin_FUNCTION(), __builtin_LINE()}@};"
)
"""Stands first in a function with `__simd_vf__`, which kernels may call like any other."""
_UNLESS_KNOWN = " if (cubecore_vector_function.is_known()) return;"
"""Follows it where the function hangs on nothing but its arguments."""
_ATTRIBUTES = frozenset({"aicore", "host", "aicpu"})
_COMMA = Token("sign", ",", 0, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel's entry: its name, its parameters' names, the words before it, its declaration.

    `tasks` are the types that its body sets, and the tiling key of each, "" for all keys; `threads`
    is true of a kernel of threads (SIMT).
    """

    name: str
    parameters: tuple[str, ...]
    words: tuple[str, ...]
    templated: bool
    line: int
    declaration: str = ""
    tasks: tuple[tuple[str, str], ...] = ()
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """A file: its text as C++, whether that differs, its entries, what it includes in quotes."""

    text: str
    rewritten: bool
    entries: tuple[Entry, ...]
    includes: tuple[str, ...]
    words: frozenset[str]


def scanned(
    text: str,
    defines: tuple[str, ...] = (),
    defined: frozenset[str] | None = None,
    *,
    launches: bool = True,
) -> Scan:
    """Return what a file holds; without `launches` the functions that launch kernels are empty.

    Its entries and words are those that these definitions of macros leave in. `defined` are the
    macros that any file of the program defines, where they are known.
    """
    # 1. Edits are collected as (start, end, new text), each by a function of its own, and applied
    # at the end: they never see each other's texts. 2. Conditions of the preprocessor whose outcome
    # is known leave tokens out; entries and words are taken from what is left.
    code = [t for t in tokens(text) if t.kind not in {"space", "comment"}]
    # What threads declare in UB is first: of two edits at one place the first one is taken.
    arrays = [*_arrays(text, code)]
    edits = [*thread_edits(text, code), *_attributes(code), *_launches(text, code), *arrays]
    edits += _addresses(text, code, arrays)
    if not launches:
        edits += _launchers(code)
    edits += [*_shared_buffer(code), *_late_registrations(code)]
    edits += [*specialisations(text, code), *_vector_functions(text, code), *_counters(code)]
    includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', text, re.MULTILINE)
    edited = _edited(text, edits)
    named = (each.partition("=") for each in defines)
    macros = {name: value if sign else "1" for name, sign, value in named}
    lines, left_out = conditions(code, text, macros, defined)
    words = frozenset(t.text for t in outside(code, left_out) if t.kind == "word")
    code = [*outside(code, [*lines, *left_out])]
    return Scan(edited, bool(edits), tuple(_entries(text, code)), tuple(includes), words)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return the text with pieces replaced; a piece keeps its newlines."""
    pieces, at = [], 0
    for start, end, new in sorted(edits, key=itemgetter(0)):
        # Within what an earlier edit replaced: the outer edit wins.
        if start < at:
            continue
        lost = text.count("\n", start, end) - new.count("\n")
        pieces += [text[at:start], new, "\n" * max(lost, 0)]
        at = end
    return "".join([*pieces, text[at:]])


def _opening(code: list[Token], at: int, sign: str, other: str) -> int:
    """Return the index of the `other` that opens the `sign` at `at`, going back; -1 if none."""
    depth = 0
    for number in range(at, -1, -1):
        text = code[number].text
        depth += (text == sign) - (text == other)
        if depth == 0:
            return number
        if text in {";", "{", "}"}:
            return -1
    return -1


def _shared_buffer(code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits of casts to pointers into the buffer of an AI Core's parts."""
    for number, token in enumerate(code[:-3]):
        if token.text == "reinterpret_cast" and code[number + 1].text == "<":
            behind = {each.text for each in code[number + 2 : number + 4]}
            if "__ssbuf__" in behind:
                yield token.start, token.end, "::cubecore::ssbuffer_cast"


def _late_registrations(code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits of tiling data that is taken before its struct is registered in the block."""
    taking = (n for n, token in enumerate(code) if token.text == "GET_TILING_DATA")
    for number in taking:
        at = number + 1
        while at < len(code) and code[at].text not in {"}", "REGISTER_TILING_DEFAULT"}:
            at = closing(code, at) + 1 if code[at].text in {"(", "{"} else at + 1
        if at + 1 < len(code) and code[at + 1].text == "(":
            words = "".join(token.text for token in code[at : closing(code, at + 1) + 1])
            yield code[number].start, code[number].start, f"{words}; "


def _attributes(code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that take ``[aicore]``, ``[host, aicore]`` and their like away."""
    for number, first in enumerate(code):
        if first.text != "[" or number + 1 >= len(code) or code[number + 1].text not in _ATTRIBUTES:
            continue
        last = closing(code, number)
        if {t.text for t in code[number + 1 : last]} <= _ATTRIBUTES | {","}:
            yield first.start, code[last].end, ""


def _launches(text: str, code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that make calls of launches: ``name<args><<<b, l, s>>>(...)``."""
    for number, token in enumerate(code):
        if token.text != "<<<" or number == 0:
            continue
        close = next((n for n in range(number, len(code)) if code[n].text == ">>>"), -1)
        if close < 0 or close + 1 >= len(code) or code[close + 1].text != "(":
            continue
        # Back from `<<<` over template arguments and qualifying names to the callee's start:
        #   ns::kernel<T><<<8, nullptr, stream>>>(x, y)
        #   CUBECORE_LAUNCH((ns::kernel<T>), (8, nullptr, stream), (x, y))
        begin = number - 1
        if code[begin].text == ">":
            begin = _opening(code, begin, ">", "<") - 1
        if begin < 0:
            continue
        while begin >= 2 and code[begin - 1].text == "::" and code[begin - 2].kind == "word":
            begin -= 2
        end = closing(code, close + 1)
        name = text[code[begin].start : code[number - 1].end]
        config = text[token.end : code[close].start]
        arguments = text[code[close + 1].end : code[end].start]
        macro = f"CUBECORE_LAUNCH(({name}), ({config}), ({arguments}))"
        yield code[begin].start, code[end].end, macro


def _launchers(code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that empty the bodies of functions in which ``<<<`` stands."""
    open_: list[int] = []
    for number, token in enumerate(code):
        if token.text == "{":
            open_.append(number)
        elif token.text == "}" and open_:
            open_.pop()
        elif token.text == "<<<":
            body = next((n for n in open_ if n and code[n - 1].text == ")"), None)
            if body is not None:
                yield code[body].end, code[closing(code, body)].start, ""


_ENDS = frozenset({";", "[", "{", "(", ")", ",", "*", "&", "="})


def _vector_functions(text: str, code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that begin a vector function in the body of each with `__simd_vf__`.

    There, and in blocks behind `__VEC_SCOPE__`, stand notes of loops that the unit does not run.
    """
    for number, token in enumerate(code):
        if token.text not in {"__simd_vf__", "__VEC_SCOPE__"}:
            continue
        opening = next((n for n in range(number, len(code)) if code[n].text in "{;"), None)
        if opening is not None and code[opening].text == "{":
            end, close = code[opening].end, closing(code, opening)
            begin = _begun(code, number, opening) if token.text == "__simd_vf__" else ""
            loops = software_loops(code, opening + 1, close)
            notes = (_software_loop(text, code[loop.token].start, loop.reason) for loop in loops)
            yield end, end, "".join(notes) + begin


def _begun(code: list[Token], number: int, opening: int) -> str:
    """Return what begins a vector function, by the index of `__simd_vf__` and of its body."""
    # A call with arguments that were met before is issued without its body, where that hangs on
    # values of its parameters alone: no member of a class, no reference.
    names = _argument_names(code, number, opening)
    if names is None:
        return _BEGIN_VECTOR_FUNCTION.replace("@", "")
    given = "".join(f", {name}" for name in ("&cubecore_body", *names))
    begin = _BEGIN_VECTOR_FUNCTION.replace("@", given)
    return f" static const char cubecore_body = 0;{begin}{_UNLESS_KNOWN}"


def _argument_names(code: list[Token], number: int, opening: int) -> list[str] | None:
    """Return the parameters of a function that hangs on their values alone; None of others."""
    open_ = next((n for n in range(number, opening) if code[n].text == "("), opening)
    while open_ < opening and code[open_ - 1].text.startswith("__"):  # of an attribute
        close = closing(code, open_)
        open_ = next((n for n in range(close, opening) if code[n].text == "("), opening)
    if open_ == opening or code[closing(code, open_) + 1].text != "{":
        return None
    words = {token.text for token in code[number:open_]}
    parameters = code[open_ + 1 : closing(code, open_)]
    names = [*_parameters(parameters)]
    is_plain = "void" in words and "::" not in words and _is_free(code, number, words)
    if not is_plain or {"&", "&&", "...", "[", "("} & {token.text for token in parameters}:
        return None
    return None if any(name.startswith("unnamed") for name in names) else names


def _is_free(code: list[Token], number: int, words: set[str]) -> bool:
    """Return whether a function is no member that reads an object's state."""
    if "static" in words or "static" in {token.text for token in code[max(number - 3, 0) : number]}:
        return True
    at = number
    while (at := _around(code, at)) >= 0:
        begin = at
        while begin > 0 and code[begin - 1].text not in {";", "{", "}"}:
            begin -= 1
        if not {"namespace", "extern"} & {token.text for token in code[begin:at]}:
            return False
    return True


def _around(code: list[Token], at: int) -> int:
    """Return the index of the brace that is open at an index, -1 if none is."""
    depth = 0
    for number in range(at - 1, -1, -1):
        depth += (code[number].text == "}") - (code[number].text == "{")
        if depth < 0:
            return number
    return -1


def _software_loop(text: str, start: int, reason: str) -> str:
    """Return the call that notes a loop which the unit does not run, at its line."""
    line = text.count("\n", 0, start) + 1
    said = reason.replace("\\", "").replace('"', "'")
    return (
        f' ::cubecore::software_loop("{said}", ::cubecore::Where{{__builtin_FILE(),'
        f" __builtin_FUNCTION(), {line}}});"
    )


def _statement_end(code: list[Token], at: int) -> int:
    """Return the index of the last token of the statement that begins at an index."""
    while at + 1 < len(code) and code[at].text in {"for", "if", "while"}:
        at = closing(code, at + 1) + 1
    if at < len(code) and code[at].text == "{":
        return closing(code, at)
    return next((number for number in range(at, len(code)) if code[number].text == ";"), at)


_OF_COUNTERS = re.compile(r"asc_(?:update_addr|create_iter)_reg_b(?:8|16|32)")
"""Functions that make an address of the counters of the loops around them."""


def _counters(code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that give each loop around such a function its counter as an object.

    ``for (uint16_t i = 0; ...) {`` becomes ``for (...) if (LoopCounter ...{i}; true) {``.
    """
    uses = [number for number, token in enumerate(code) if _OF_COUNTERS.fullmatch(token.text)]
    for number, token in enumerate(code if uses else []):
        if token.text != "for" or number + 1 >= len(code) or code[number + 1].text != "(":
            continue
        close = closing(code, number + 1)
        last = _statement_end(code, close + 1)
        equals = next((n for n in range(number, close) if code[n].text == "="), close)
        if equals < close and any(close < use <= last for use in uses):
            counter = (
                f" if (::cubecore::LoopCounter cubecore_counter{{{code[equals - 1].text}}}; true)"
            )
            yield code[close].end, code[close].end, counter


def _arrays(text: str, code: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits of what is declared in a local memory: ``__ubuf__ T x[n], y[m];``."""
    for number, token in enumerate(code):
        if token.text not in _LOCAL:
            continue
        end = number + 1
        while end < len(code) and code[end].text not in _ENDS:
            end = closing_angle(code, end) + 1 if code[end].text == "<" else end + 1
        if end >= len(code) or code[end].text not in {"[", "{", ";"} or end - number < 3:
            continue
        if code[end - 1].kind != "word":
            continue
        # `__ubuf__ half x[256];` becomes
        #   ::cubecore::ArrayOf<::cubecore::Mem::UB, half> x =
        #       ::cubecore::local_array<::cubecore::Mem::UB, half, (256)>();
        # A struct becomes a reference to one in that memory, a lone name an object whose
        # constructor does not run.
        kind = text[code[number + 1].start : code[end - 1].start].strip()
        memory = f"::cubecore::Mem::{_LOCAL[token.text]}"
        if code[end].text == ";":
            declaration, last = (
                f"::cubecore::Unconstructed<{kind}>::type {code[end - 1].text}",
                end - 1,
            )
        elif code[end].text == "{":
            declaration, last = _struct(kind, code[end - 1].text, memory), closing(code, end)
        else:
            declaration, last = _array_list(text, code, end, kind, memory)
        is_extern = number > 0 and code[number - 1].text == "extern"
        yield code[number - is_extern].start, code[last].end, declaration


_ARRAY_NAME = re.compile(r"ArrayOf<[^;]*?> (\w+) = ")


def _addresses(
    text: str, code: list[Token], arrays: list[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that take an array's plain pointer where it, or one behind it, is cast."""
    names = {name for _, _, declaration in arrays for name in _ARRAY_NAME.findall(declaration)}
    for number, token in enumerate(code):
        if token.text != "reinterpret_cast" or number + 1 >= len(code):
            continue
        close = closing_angle(code, number + 1)
        if close + 3 >= len(code) or code[close + 1].text != "(":
            continue
        kind, name = text[code[number + 1].end : code[close].start], code[close + 2]
        alone = code[close + 3].text in {")", "+"}
        if alone and name.text in names and kind.strip().endswith(("int64_t", "intptr_t", "*")):
            yield name.start, name.end, f"::cubecore::plain_pointer({name.text})"


def _struct(kind: str, name: str, memory: str) -> str:
    return f"{kind}& {name} = ::cubecore::local_struct<{kind}>({memory})"


def _array_list(
    text: str, code: list[Token], open_: int, kind: str, memory: str
) -> tuple[str, int]:
    """Return the declarations of arrays with commas between them, and the last one's bracket."""
    declarations = list[str]()
    while True:
        name, last = code[open_ - 1].text, closing(code, open_)
        lengths = [text[code[open_].end : code[last].start]]
        while last + 1 < len(code) and code[last + 1].text == "[":
            open_, last = last + 1, closing(code, last + 1)
            lengths.append(text[code[open_].end : code[last].start])
        if not lengths[0].strip():
            declaration = f"::cubecore::dynamic_array<{memory}, {kind}>()"
            declarations.append(f"::cubecore::ArrayOf<{memory}, {kind}> {name} = {declaration}")
        elif len(lengths) > 1 and has_thread_words(code):
            # Rows of rows: a pointer to the first one, which is used as the array is.
            rows = "".join(f"[{length}]" for length in lengths[1:])
            count = " * ".join(f"({length})" for length in lengths)
            array = f"::cubecore::local_array<{memory}, {kind}, {count}>()"
            cast = f"reinterpret_cast<{kind} (*){rows}>(::cubecore::plain_pointer({array}))"
            declarations.append(f"{kind} (*{name}){rows} = {cast}")
        elif len(lengths) > 1:
            got = "".join(f"[{length}]" for length in lengths).replace('"', "'")
            declarations.append(f'static_assert(false, "an array must have one length, got {got}")')
        else:
            array = f"::cubecore::local_array<{memory}, {kind}, ({lengths[0]})>()"
            declarations.append(f"::cubecore::ArrayOf<{memory}, {kind}> {name} = {array}")
        following = [token.text for token in code[last + 1 : last + 4]]
        if len(following) < 3 or following[0] != "," or following[2] != "[":
            return "; ".join(declarations), last
        open_ = last + 3


def _entries(text: str, code: list[Token]) -> Iterator[Entry]:
    for number, token in enumerate(code):
        if token.text != "__global__":
            continue
        # From ``__global__`` forward to the parameter list, past attributes with arguments;
        # backward to the start of the declaration, for the words (template, extern "C", __cube__,
        # ...) before it.
        open_ = next((n for n in range(number, len(code)) if code[n].text in {"(", ";", "{"}), -1)
        while (
            0 < open_ < len(code)
            and code[open_].text == "("
            and code[open_ - 1].text.startswith("__")
        ):
            open_ = closing(code, open_) + 1  # an attribute with arguments
            while open_ < len(code) and code[open_].text not in {"(", ";", "{"}:
                open_ += 1
        if open_ < 1 or open_ >= len(code) or code[open_].text != "(":
            continue
        name = code[open_ - 1]
        end = closing(code, open_)
        if name.kind != "word" or end + 1 >= len(code) or code[end + 1].text != "{":
            continue
        start = number
        while start > 0 and code[start - 1].text not in {";", "}", "{"}:
            start -= 1
        kinds = {"word", "string", "number"}
        words = tuple(t.text for t in code[start : open_ - 1] if t.kind in kinds)
        parameters = tuple(_parameters(code[open_ + 1 : end]))
        line = text.count("\n", 0, name.start) + 1
        declaration = text[code[open_].end : code[end].start]
        tasks = tuple(_tasks(code[end + 1 : closing(code, end + 1)]))
        templated = "template" in words
        threads = is_of_threads(code, number)
        yield Entry(name.text, parameters, words, templated, line, declaration, tasks, threads)


def _tasks(body: list[Token]) -> Iterator[tuple[str, str]]:
    """Yield the tiling key, "" for all, and the type of each call that sets a kernel's type."""
    for number, token in enumerate(body):
        given = [t.text for t in body[number + 2 : number + 5]]
        if token.text == "KERNEL_TASK_TYPE_DEFAULT" and given:
            yield "", given[0]
        elif token.text == "KERNEL_TASK_TYPE" and given[1:2] == [","]:
            yield given[0], given[-1]


def _parameters(code: list[Token]) -> Iterator[str]:
    """Yield the names of a parameter list; one without a name is called by its place."""
    depth, place, own = 0, 0, list[str]()
    for token in [*code, _COMMA]:
        if token.text in {"(", "[", "{", "<"}:
            depth += 1
        elif token.text in {")", "]", "}", ">"}:
            depth -= 1
        elif token.text == "," and depth == 0:
            named = len(own) > 1 and own[-1] not in {"*", "&"}
            if code:
                yield own[-1] if named else f"unnamed{place}"
            place, own = place + 1, []
        elif depth == 0 and (token.kind == "word" or token.text in {"*", "&"}):
            own.append(token.text)
