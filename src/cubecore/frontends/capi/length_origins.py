"""Lengths of arrays that a kernel learns while it runs, where they have become plain integers.

`int(k)`, `round(k)` and `math.ceil(k / 16)` of an integer that only the chip knows are integers
like those of the source. The call that declares an array says of which names its length is made:
what they are made of in turn, in the functions that led there, is looked at for such an integer.
"""

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from cubecore.frontends.capi.pointer import Pointer, RuntimeInt

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
_COMPREHENSIONS = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
_MOST_FRAMES = 16


@dataclass(frozen=True, slots=True)
class LengthUses:
    """The names that a length is made of, and the calls and elements: (object, member)."""

    names: frozenset[str]
    calls: frozenset[tuple[str, str]]
    elements: frozenset[str]


_NOTHING = LengthUses(frozenset(), frozenset(), frozenset())
_known: dict[tuple[int, int], tuple[CodeType, LengthUses]] = {}
"""By the identity of a code, which is kept, and the instruction of the call."""


def learned_length(frame: FrameType) -> str | None:
    """Return what the length of the array that a frame declares comes from, if from a run.

    None says that it is constant, as far as the source tells.
    """
    code = frame.f_code
    key = id(code), frame.f_lasti
    known = _known.get(key)
    if known is None:
        call = _call_at(code, frame.f_lasti)
        uses = _NOTHING if call is None else _uses(_arguments(call))
        known = _known[key] = code, uses
    return None if known[1] is _NOTHING else _origin(frame, known[1], _MOST_FRAMES)


def _origin(frame: FrameType, uses: LengthUses, most: int) -> str | None:
    """Return the first origin of what is used in a frame; look at its callers for parameters."""
    # Three ways in which a number comes from a run: a variable is still one that remembers its
    # origin; an element of an array in memory was read; a method of the core that says something of
    # the launch was called. The first that is found is named.
    values = _values(frame)
    for name in sorted(uses.names):
        value = values.get(name)
        if isinstance(value, RuntimeInt):
            return value.origin
    for name in sorted(uses.elements):
        if isinstance(values.get(name), Pointer):
            return f"{name}[...]"
    for name, member in sorted(uses.calls):
        if hasattr(type(values.get(name)), "load") and _is_learned(member):
            return member.removeprefix("asc_")
    caller = frame.f_back
    if caller is None or not most:
        return None
    # A comprehension has a frame of its own before Python 3.12, and the names around it are its
    # caller's.
    if frame.f_code.co_name in _COMPREHENSIONS:
        return _origin(caller, uses, most - 1)
    return _given(caller, frame.f_code, uses, most - 1)


def _given(caller: FrameType, code: CodeType, uses: LengthUses, most: int) -> str | None:
    """Return the origin of what a caller gives for the parameters that are used."""
    # What a parameter holds was decided by the caller: its call is found in its source, the
    # expressions given for the parameters that are used are looked at as the length was before.
    count = code.co_argcount + code.co_kwonlyargcount
    used = uses.names.intersection(code.co_varnames[:count])
    call = _call_at(caller.f_code, caller.f_lasti) if used else None
    if call is None:
        return None
    values = _values(caller)
    # Behind ** stands a mapping whose values are there; no expression has to be read.
    whole = [values.get(w.value.id) for w in call.keywords if _is_whole(w)]  # type: ignore[attr-defined]
    for name in sorted(used):
        for given in whole:
            value = given.get(name) if isinstance(given, Mapping) else None
            if isinstance(value, RuntimeInt):
                return value.origin
    if str(caller.f_globals.get("__name__")).startswith("cubecore."):
        return None  # the launch itself
    expressions: list[ast.expr] = [w.value for w in call.keywords if w.arg in used]
    # An instance is no argument of the call that binds it, so that the numbers are those behind it.
    names = code.co_varnames[: code.co_argcount]
    if isinstance(call.func, ast.Attribute) and names[:1] in {("self",), ("cls",)}:
        names = names[1:]
    for number, given in enumerate(call.args):
        if isinstance(given, ast.Starred) or number >= len(names) or names[number] in used:
            expressions.append(given)
    if not expressions:
        return None
    return _origin(caller, _uses(expressions), most)


def _is_whole(word: ast.keyword) -> bool:
    return word.arg is None and isinstance(word.value, ast.Name)


def _is_learned(member: str) -> bool:
    """True of what a core says of a launch."""
    return member.startswith("asc_get_") or member in {"block_idx", "block_num"}


def _values(frame: FrameType) -> dict[str, Any]:
    """Return the variables that a frame sees but those of modules; its functions' come last."""
    values: dict[str, Any] = {}
    at: FrameType | None = frame
    for _ in range(_MOST_FRAMES):
        if at is None or at.f_globals is not frame.f_globals:
            break
        if at is frame or _encloses(at.f_code, frame.f_code):
            values = {**at.f_locals, **values}
        at = at.f_back
    return values


def _encloses(outer: CodeType, inner: CodeType) -> bool:
    """True if a function is defined inside another."""
    return any(
        each is inner or _encloses(each, inner)
        for each in outer.co_consts
        if isinstance(each, CodeType)
    )


# --- the source


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module:
    """Return the tree of a file; each node knows the one that it is in."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.within = node  # type: ignore[attr-defined]
    return tree


def _tree(code: CodeType) -> ast.Module | None:
    try:
        return _parsed("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _call_at(code: CodeType, instruction: int) -> ast.Call | None:
    """Return the call that an instruction makes."""
    # Python keeps for each instruction where in the source its expression begins and ends. A call
    # ends where its parenthesis closes, which no other call does; its start may be another's, as in
    # f(x)(y).
    tree = _tree(code)
    positions = list(code.co_positions())[instruction // 2]
    if tree is None or None in positions:
        return None
    _, line, _, column = positions
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (node.end_lineno, node.end_col_offset) == (line, column):
            return node
    return None


def _arguments(call: ast.Call) -> list[ast.expr]:
    """Return what a declaration takes: all but the type, which may be an object of a struct."""
    return [*call.args, *(word.value for word in call.keywords)]


def _uses(expressions: Iterable[ast.expr]) -> LengthUses:
    """Return what expressions use, and what that is made of in the functions around them."""
    waiting: list[ast.AST] = list(expressions)
    if not waiting:
        return _NOTHING
    # All expressions are of one call, and see the same functions around them.
    made = _made(waiting[0])
    names: set[str] = set()
    calls: set[tuple[str, str]] = set()
    elements: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id not in names:
                names.add(node.id)
                waiting += made.get(node.id, ())
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                elements.add(node.value.id)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                calls.add((node.value.id, node.attr))
    # Names of the module are constants to the kernel, and imports; what no function makes is
    # constant.
    own = names.intersection(made)
    if not own:
        return _NOTHING
    return LengthUses(frozenset(own), frozenset(calls), frozenset(elements))


def _made(expression: ast.AST) -> dict[str, list[ast.AST]]:
    """Return what variables are made of in the functions around an expression."""
    found: dict[str, list[ast.AST]] = {}
    node: ast.AST | None = expression
    while node is not None:
        node = getattr(node, "within", None)
        if isinstance(node, _FUNCTIONS):
            own: dict[str, list[ast.AST]] = {each.arg: [] for each in _parameters(node)}
            # A name may be bound in several places; any of them may be the one that ran.
            for name, value in _bindings(node):
                own.setdefault(name, []).append(value)
            found = own | found  # a name is the innermost function's that has it
    return found


def _parameters(function: _Function) -> Iterator[ast.arg]:
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)


def _bindings(function: _Function) -> Iterator[tuple[str, ast.AST]]:
    """Yield each variable of a function with what it is made of."""
    body = function.body if isinstance(function.body, list) else [function.body]
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            yield from ((node.name, statement) for statement in node.body)
        elif not isinstance(node, _FUNCTIONS):
            yield from _bound_by(node)
            waiting += ast.iter_child_nodes(node)


def _bound_by(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(target, node.value)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _bound(node.target, node.value)
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from _bound(node.target, node.iter)


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names of a target; parts of a tuple have the values at their places."""
    several = (ast.Tuple, ast.List)
    if isinstance(target, several) and isinstance(value, several):
        starred = any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
        if len(target.elts) == len(value.elts) and not starred:
            for part, own in zip(target.elts, value.elts, strict=True):
                yield from _bound(part, own)
            return
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id, value
        # sizes[0] = n, or shape.rows = n: the whole object counts as made of it.
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
            yield node.value.id, value
