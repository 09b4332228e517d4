"""Definitions that C++ refuses and the vendor's compiler takes.

Explicit specialisations inside a class (CWG issue 727): a member function's becomes an overload
with a condition, and the template that it specialises gets the opposite one; a member class's
becomes a partial specialisation by one more parameter.

A host function beside a device function of the same name and parameters: where a header for host
code and one for kernels define them alike, but for the words that say where they run and names of
numbers, the first one that the compiler reads stands for both.

A call with a constant of its class template as the last template argument (``Sort<half, false,
CONFIG>(to, from)``), which g++ resolves with other arguments: its first argument is passed through
a function that takes ``this`` beside it, so that the call waits for the template's arguments.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from cubecore.frontends.cpp.rewriting.tokens import Token, closing, closing_angle, tokens

_CLASS_KEYS = frozenset({"class", "struct", "union"})
_TYPE_WORDS = frozenset(
    (
        *("auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"),
        *("const", "typename", "class"),
    )
)
_BEFORE_MEMBER = frozenset({".", "->", "::"})
_WITH_BRACKETS = frozenset({"alignas", "decltype", "noexcept", "explicit", "requires"})
_ADDED = "CubecoreSpecialised"

Edit = tuple[int, int, str]


class _Tokens(NamedTuple):
    """A stretch of the code: its first and last token. Of brackets these are the two brackets."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A template's parameter: its text up to a default, its default, its name, its kind."""

    declared: str
    default: str
    name: str
    is_type: bool

    @property
    def text(self) -> str:
        """The parameter as its template declares it."""
        return self.declared + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True, slots=True)
class _Member:
    """A template that a class declares: tokens of its head and of the arguments after its name."""

    name: str
    is_class: bool
    head: _Tokens
    arguments: _Tokens | None
    arity: int
    scope: int
    is_static: bool = False


def specialisations(text: str, code: Sequence[Token]) -> Iterator[Edit]:
    """Yield the edits for the explicit specialisations that lie in a class.

    Those whose template is not found, or whose parameters are packs or templates, are left to the
    compiler, which names them.
    """
    if re.search(r"\btemplate\s*<\s*>", text) is None:
        return
    members = list(_members(code))
    # All of one template are rewritten together: each excludes the others' arguments, and the
    # template all of them.
    pairs = [(each, _template_of(each, members, code)) for each in members if _is_full(each)]
    for primary in dict.fromkeys(general for _, general in pairs if general is not None):
        parameters = _parameters(text, code, primary.head)
        own = [each for each, general in pairs if general is primary]
        if parameters is None:
            continue
        make = _of_class if primary.is_class else _of_function
        yield from make(text, code, parameters, primary, own)


def _is_full(member: _Member) -> bool:
    return member.head.last == member.head.first + 1 and member.arguments is not None


def _template_of(
    member: _Member, members: Sequence[_Member], code: Sequence[Token]
) -> _Member | None:
    """Return the one template of the class that a specialisation can be of."""
    assert member.arguments is not None
    count = len(_split(code, *member.arguments))
    fitting = [
        each
        for each in members
        if (each.scope, each.name, each.is_class) == (member.scope, member.name, member.is_class)
        and each.arguments is None
        and (each.is_class or each.arity == member.arity)
        and len(_split(code, *each.head)) == count
    ]
    return fitting[0] if len(fitting) == 1 else None


def _specialised(
    text: str, code: Sequence[Token], members: Sequence[_Member]
) -> Iterator[tuple[_Member, _Tokens, list[str]]]:
    """Give each specialisation, where its arguments are, and these."""
    for member in members:
        assert member.arguments is not None
        values = [_plain(text, code, *each) for each in _split(code, *member.arguments)]
        yield member, member.arguments, values


def _of_function(
    text: str,
    code: Sequence[Token],
    parameters: Sequence[_Parameter],
    primary: _Member,
    own: Sequence[_Member],
) -> Iterator[Edit]:
    conditions = []
    for member, (first, last), values in _specialised(text, code, own):
        pairs = list(zip(parameters, values, strict=True))
        condition = " && ".join(_equals(one, value) for one, value in pairs)
        conditions.append(condition)
        declared = [f"{one.declared} = {one.default or value}" for one, value in pairs]
        start, end, head = _head_edit(code, member.head, [*declared, _enabled(condition)])
        static = " static" if primary.is_static and not member.is_static else ""  # inherited
        yield start, end, f"{head}{static}"
        yield code[first].start, code[last].end, ""
    declared = [each.text for each in parameters]
    others = " && ".join(f"!({condition})" for condition in conditions)
    yield _head_edit(code, primary.head, [*declared, _enabled(others)])


def _of_class(
    text: str,
    code: Sequence[Token],
    parameters: Sequence[_Parameter],
    primary: _Member,
    own: Sequence[_Member],
) -> Iterator[Edit]:
    for member, (first, last), values in _specialised(text, code, own):
        yield _head_edit(code, member.head, [f"typename {_ADDED}"])
        yield code[first].start, code[last].end, f"<{', '.join([*values, _ADDED])}>"
    declared = [each.text for each in parameters]
    yield _head_edit(code, primary.head, [*declared, f"typename {_ADDED} = void"])


def _equals(parameter: _Parameter, value: str) -> str:
    if parameter.is_type:
        return f"::std::is_same_v<{parameter.name}, {value}>"
    return f"({parameter.name} == ({value}))"


def _enabled(condition: str) -> str:
    return f"::std::enable_if_t<({condition}), int> = 0"


def _head_edit(code: Sequence[Token], head: _Tokens, declared: Sequence[str]) -> Edit:
    return code[head.first].start, code[head.last].end, f"<{', '.join(declared)}>"


def _members(code: Sequence[Token]) -> Iterator[_Member]:
    """Yield the templates that classes declare, each with a number for its class."""
    scopes: list[tuple[int, bool]] = []
    begin = 0
    for number, token in enumerate(code):
        if token.text == "{":
            scopes.append((number, _is_class(code, begin, number)))
        elif token.text == "}" and scopes:
            scopes.pop()
        elif token.text == "template" and scopes and scopes[-1][1]:
            member = _member(code, number, scopes[-1][0])
            if member is not None:
                yield member
        if token.text in {"{", "}", ";"}:
            begin = number + 1


def _is_class(code: Sequence[Token], begin: int, end: int) -> bool:
    """Return whether the brace at `end` opens a class: its declaration begins at `begin`."""
    seen, at = False, begin
    while at < end:
        word = code[at].text
        if word in {"(", "=", "enum"}:
            return False
        if word == "<":
            at = _angle(code, at)
        seen |= word in _CLASS_KEYS
        at += 1
    return seen


def _member(code: Sequence[Token], at: int, scope: int) -> _Member | None:
    """Return the template that is declared at the word `template`; None if it is no such."""
    if code[at - 1].text in _BEFORE_MEMBER or at + 1 >= len(code) or code[at + 1].text != "<":
        return None
    head = _Tokens(at + 1, _angle(code, at + 1))
    number = head.last + 1
    while number + 1 < len(code) and code[number].text not in {";", "{", "=", "template", "using"}:
        token, following = code[number], code[number + 1]
        if token.text in _CLASS_KEYS:
            named = number + 2 < len(code) and following.kind == "word"
            has_arguments = named and code[number + 2].text == "<"
            arguments = _Tokens(number + 2, _angle(code, number + 2)) if has_arguments else None
            return _Member(following.text, True, head, arguments, 0, scope) if named else None
        if token.text == "operator" and following.text == "(":
            return _function(code, "operator()", number + 3, head, scope)
        # Attributes and `noexcept(...)` have brackets as a function's parameters do.
        has_brackets = token.text.startswith("__") or token.text in _WITH_BRACKETS
        if token.kind == "word" and following.text == "(" and has_brackets:
            number = closing(code, number + 1)
        elif token.kind == "word" and following.text in {"(", "<"}:
            found = _function(code, token.text, number + 1, head, scope)
            if found is not None:
                return found
            number = _angle(code, number + 1)
        number += 1
    return None


def _function(
    code: Sequence[Token], name: str, at: int, head: _Tokens, scope: int
) -> _Member | None:
    """Return a function of a name, whose arguments or parameters begin at an index."""
    arguments = None
    is_static = any(code[number].text == "static" for number in range(head.last, at))
    if at < len(code) and code[at].text == "<":
        arguments = _Tokens(at, _angle(code, at))
        at = arguments.last + 1
    if at >= len(code) or code[at].text != "(":
        return None
    arity = len(_split(code, at, closing(code, at)))
    return _Member(name, False, head, arguments, arity, scope, is_static)


def _angle(code: Sequence[Token], at: int) -> int:
    """Return the index of the angle that closes the one at `at`; `at` if none does."""
    depth, number = 0, at
    while number < len(code):
        word = code[number].text
        if word in {"(", "[", "{"}:
            number = closing(code, number)
        elif word == ";":
            break
        depth += {"<": 1, ">": -1, ">>>": -3}.get(word, 0)
        if depth <= 0:
            return number
        number += 1
    return at


def _split(code: Sequence[Token], open_: int, close: int) -> list[_Tokens]:
    """Return the first and last token of each piece between commas inside two brackets."""
    pieces, first, number = list[_Tokens](), open_ + 1, open_ + 1
    while number < close:
        word = code[number].text
        if word in {"(", "[", "{"}:
            number = closing(code, number)
        elif word == "<":
            number = _angle(code, number)
        elif word == ",":
            pieces.append(_Tokens(first, number - 1))
            first = number + 1
        number += 1
    return [*pieces, _Tokens(first, close - 1)] if close > open_ + 1 else []


def _parameters(text: str, code: Sequence[Token], head: _Tokens) -> list[_Parameter] | None:
    """Return a template's parameters; None where one is a pack or a template."""
    found = []
    for number, (first, last) in enumerate(_split(code, *head)):
        words = [code[at].text for at in range(first, last + 1)]
        if "template" in words or "..." in "".join(words):
            return None
        equal = next((at for at in range(first, last + 1) if code[at].text == "="), last + 1)
        default = _plain(text, code, equal + 1, last) if equal < last else ""
        end = equal - 1
        declared = _plain(text, code, first, end)
        is_named = end > first and code[end].kind == "word" and code[end - 1].text != "::"
        name = code[end].text
        if not is_named or name in _TYPE_WORDS:
            name = f"CubecoreParameter{number}"
            declared = f"{declared} {name}"
        is_type = code[first].text in {"typename", "class"} and len(declared.split()) == 2
        found.append(_Parameter(declared, default, name, is_type))
    return found


def _plain(text: str, code: Sequence[Token], first: int, last: int) -> str:
    """Return the text from one token to another in one line, without comments."""
    if first > last:
        return ""
    inside = tokens(text[code[first].start : code[last].end])
    return "".join(" " if t.kind in {"space", "comment"} else t.text for t in inside)


# --- functions of the host and of the device

_DEVICE = frozenset({"__aicore__", "__host_aicore__", "__simd_callee__"})
_HINTS = frozenset({"inline", "static", "constexpr", "__forceinline__"})
_NUMBER = re.compile(r"\bconst(?:expr)?\b[\w\s:]*\b(?P<name>\w+)\s*=\s*(?P<number>\w+)\s*;")
"""A constant that is a number; each file of a pair may have its own name for it."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function that a namespace defines: its text's place, line and digest."""

    start: int
    end: int
    line: int
    digest: str
    is_device: bool


def defined_alike(text: str, other: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the lines of functions that two texts define alike, one of them for the device."""
    pairs = [
        (own, its)
        for own in _definitions(text)
        for its in _definitions(other)
        if own.digest == its.digest and own.is_device != its.is_device
    ]
    return frozenset(own.line for own, _ in pairs), frozenset(its.line for _, its in pairs)


def defined_once(text: str, lines: Container[int]) -> str:
    """Return a text whose functions that begin on some lines are left out where they stand."""
    pieces, at = list[str](), 0
    for one in _definitions(text):
        if one.line not in lines:
            continue
        name = f"CUBECORE_ONCE_{one.digest}"
        last = one.line + text.count("\n", one.start, one.end)
        pieces += [text[at : one.start], f"\n#ifndef {name}\n#define {name}\n#line {one.line}\n"]
        pieces += [text[one.start : one.end], f"\n#endif\n#line {last}\n"]
        at = one.end
    return "".join([*pieces, text[at:]])


def with_dependent_calls(text: str, lines: Container[int]) -> str:
    """Return a text whose calls by a constant of their class on some lines depend on its template.

    Lines stay where they are.
    """
    pieces, at = list[str](), 0
    for line, argument in _calls_by_constants(text):
        if line not in lines or argument[0] < at:
            continue
        start, end = argument
        pieces += [text[at:start], f"::cubecore::in_template(this, {text[start:end]})"]
        at = end
    return "".join([*pieces, text[at:]])


def lines_of_calls_by_constants(text: str) -> frozenset[int]:
    """Return the lines of calls whose last template argument is a constant of the file."""
    return frozenset(line for line, _ in _calls_by_constants(text))


def _calls_by_constants(text: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the line of each such call, and where its first argument begins and ends."""
    code = [t for t in _outside_directives(text) if t.kind not in {"space", "comment"}]
    names = {*_constants_of_classes(code)}
    for number, token in enumerate(code[:-1]):
        if token.kind != "word" or code[number + 1].text != "<":
            continue
        close = closing_angle(code, number + 1)
        by, opening = code[close - 1], close + 1
        if by.text not in names or code[close - 2].text not in {",", "<"}:
            continue
        if opening + 1 >= len(code) or code[opening].text != "(":
            continue
        end, stop = opening + 1, closing(code, opening)
        while end < stop and code[end].text != ",":
            end = closing(code, end) + 1 if code[end].text in {"(", "[", "{"} else end + 1
        if end > opening + 1:
            line = text.count("\n", 0, token.start) + 1
            yield line, (code[opening + 1].start, code[end - 1].end)


_SECTIONS = (["public"], ["private"], ["protected"])


def _constants_of_classes(code: Sequence[Token]) -> Iterator[str]:
    """Yield the names of constants that classes have, or their functions."""
    begin, inside = 0, [False]  # of the statement; whether the brackets around it are a class's
    for number, token in enumerate(code):
        if token.text not in {"=", "{", "}", ";", ":"}:
            continue
        words = [each.text for each in code[begin:number]]
        if inside[-1] and token.text in {"=", "{"} and {"static", "constexpr"} <= {*words}:
            yield words[-1]
        if token.text == "{":
            name = words[: words.index("(")][-2:] if "(" in words else words
            inside.append(inside[-1] or "::" in name[:1] or not _CLASS_KEYS.isdisjoint(words))
        elif token.text == "}" and len(inside) > 1:
            inside.pop()
        if token.text in {"{", "}", ";"} or words in _SECTIONS:
            begin = number + 1


def _definitions(text: str) -> Iterator[_Definition]:
    code = [t for t in _outside_directives(text) if t.kind not in {"space", "comment"}]
    numbers = {m["name"]: m["number"] for m in _NUMBER.finditer(text) if m["number"][0].isdigit()}
    yield from _in_namespace(text, code, range(len(code)), (), numbers)


def _outside_directives(text: str) -> Iterator[Token]:
    """Yield the tokens that are in no line of the preprocessor."""
    at_start, inside = True, False
    for token in tokens(text):
        ends = "\n" in token.text and token.text != "\\\n" and token.kind in {"space", "comment"}
        # A line goes on behind a backslash; a comment over several lines ends a directive as well.
        if ends:
            at_start, inside = True, False
        elif token.text == "#" and at_start:
            inside = True
        if not inside:
            yield token
        if token.kind not in {"space", "comment"}:
            at_start = False


def _in_namespace(
    text: str,
    code: Sequence[Token],
    inside: range,
    names: tuple[str, ...],
    numbers: Mapping[str, str],
) -> Iterator[_Definition]:
    """Yield the functions among some tokens, which lie in namespaces of these names."""
    first = at = inside.start
    while at < inside.stop:
        word = code[at].text
        if word == "<" and code[at - 1].text == "template":
            at = closing_angle(code, at)
        elif word in {"(", "["}:
            at = closing(code, at)
        elif word == "{":
            end = closing(code, at)
            before = [t.text for t in code[first:at]]
            if before[:1] == ["namespace"] or before[:2] == ["inline", "namespace"]:
                yield from _in_namespace(text, code, range(at + 1, end), (*names, *before), numbers)
            elif ")" in before and not {"class", "struct", "union", "enum", "="} & {*before[-3:]}:
                yield _definition(text, code[first : end + 1], names, numbers)
            at, first = end, end + 1
        elif word in {";", "}"}:
            first = at + 1
        at += 1


def _definition(
    text: str, code: Sequence[Token], names: tuple[str, ...], numbers: Mapping[str, str]
) -> _Definition:
    words = [t.text for t in code]
    is_device = not _DEVICE.isdisjoint(words) or "aicore" in words
    # Words that say where a function runs, or how it is linked, do not make it another one.
    plain = (numbers.get(word, word) for word in words if word not in _DEVICE | _HINTS)
    digest = sha256("\0".join((*names, "", *plain)).encode()).hexdigest()[:16]
    start, end = code[0].start, code[-1].end
    return _Definition(start, end, text.count("\n", 0, start) + 1, digest, is_device)
