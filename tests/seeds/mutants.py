"""Mutants of the ledger: a small stated change of the source that breaks a clause.

A mutant is one of

    {in = "MODULE:NAME", old = "TEXT", new = "TEXT"}
        the text, which occurs once in the function (or method, property: CLASS.NAME), is replaced
        and the function compiled anew; everybody who holds the function sees the change.
    {in = "MODULE:NAME", argument = "NAME", value = "EXPRESSION"}
        the default of an argument of the function (of a field: CLASS.__init__) is replaced.
    {object = "EXPRESSION", value = "EXPRESSION"}
        a constant `MODULE.NAME` is replaced in each module that has it under this name.
    {object = "EXPRESSION", cell = "EXPRESSION", value = "EXPRESSION"}
        a cell of a table (a mapping or a list, read-only views too) is replaced, or added.
    {object = "EXPRESSION", field = "NAME", value = "EXPRESSION"}
        an attribute of an object is replaced, frozen or not.

Expressions are Python's, over the package's modules by their full names, such as
`cubecore.units.INT32_MAX`; in `value`, `old` is the value until now.
"""

import __future__

import ast
import functools
import gc
import importlib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any

Mutant = Mapping[str, str]
KINDS = (
    frozenset({"in", "old", "new"}),
    frozenset({"in", "argument", "value"}),
    frozenset({"object", "value"}),
    frozenset({"object", "cell", "value"}),
    frozenset({"object", "field", "value"}),
)


class MutantError(ValueError):
    """A mutant that cannot be made; the message says why in one sentence."""


def apply(mutant: Mutant) -> None:
    """Change the package in this process, for good.

    Raises
    ------
    MutantError
        The mutant is of no known kind, or what it changes is not there (any more).
    """
    changed(mutant)()


def changed(mutant: Mutant) -> Callable[[], object]:
    """Return the change, which has been looked up but not made; raises as `apply` does."""
    if frozenset(mutant) not in KINDS:
        raise MutantError(f"{name_of(mutant)}: keys must be a known set, got {sorted(mutant)}")
    if "in" in mutant:
        function = function_named(mutant["in"])
        if "argument" in mutant:
            return functools.partial(_set_default, function, mutant["argument"], mutant["value"])
        code = _compiled(function, mutant["old"], mutant["new"])
        return functools.partial(setattr, function, "__code__", code)
    target = evaluated(mutant["object"])
    if "cell" in mutant:
        return _cell_change(target, mutant)
    if "field" in mutant:
        return _field_change(target, mutant)
    return _constant_change(target, mutant)


def name_of(mutant: Mutant) -> str:
    """Return the mutant on one line, as messages and the ledger's page write it."""
    if "old" in mutant:
        return f"{mutant['in']}: {_line(mutant['old'])} -> {_line(mutant['new'])}"
    place = mutant.get("in") or mutant.get("object", "?")
    if "argument" in mutant:
        place = f"{place}({mutant['argument']})"
    elif "cell" in mutant:
        place = f"{place}[{mutant['cell']}]"
    elif "field" in mutant:
        place = f"{place}.{mutant['field']}"
    return f"{place} = {_line(mutant.get('value', '?'))}"


def evaluated(text: str, **known: object) -> Any:
    """Return the value of an expression, the package's modules by their full names."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Attribute):
            _imported(ast.unparse(node))
    try:
        return eval(text, {"cubecore": importlib.import_module("cubecore"), **known})
    except Exception as error:
        raise MutantError(f"{text}: {type(error).__name__}: {error}") from error


def function_named(place: str) -> types.FunctionType:
    """Return the plain function under MODULE:NAME, whatever wraps it."""
    module, _, path = place.partition(":")
    try:
        owner: Any = importlib.import_module(module)
        for part in path.split("."):
            owner = inspect.getattr_static(owner, part)
    except (ImportError, AttributeError) as error:
        raise MutantError(f"{place}: there is no such function") from error
    found = _unwrapped(owner)
    if found is None:
        raise MutantError(f"{place}: must be a function, got {type(owner).__name__}")
    return found


def _line(text: str) -> str:
    return " ".join(text.split())


def _imported(dotted: str) -> None:
    """Import the longest beginning of a dotted name that is a module."""
    if dotted.startswith("cubecore.") and dotted.replace(".", "").isidentifier():
        parts = dotted.split(".")
        for count in range(2, len(parts) + 1):
            try:
                importlib.import_module(".".join(parts[:count]))
            except ImportError:
                return


def _unwrapped(found: Any) -> types.FunctionType | None:
    for name in ("__func__", "fget", "func", "function", "__wrapped__"):
        while not isinstance(found, types.FunctionType) and hasattr(found, name):
            found = getattr(found, name)
    while isinstance(found, types.FunctionType) and hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found if isinstance(found, types.FunctionType) else None


def _compiled(function: types.FunctionType, old: str, new: str) -> types.CodeType:
    """Return the code of a function with a text in its source replaced."""
    place = f"{function.__module__}:{function.__qualname__}"
    source = textwrap.dedent(inspect.getsource(function))
    if (times := source.count(old)) != 1:
        raise MutantError(f"{place}: the text must occur once, got {times} times: {old}")
    try:
        tree = ast.parse(source.replace(old, new))
    except SyntaxError as error:
        raise MutantError(f"{place}: the changed text is no Python: {error}") from error
    made = tree.body[0]
    if not isinstance(made, ast.FunctionDef):
        raise MutantError(f"{place}: must be a function with a name")
    made.decorator_list = []
    free = function.__code__.co_freevars
    outer = ast.parse(f"def outer({', '.join(free)}):\n    global {made.name}")
    outer.body[0].body.append(made)  # type: ignore[attr-defined]
    ast.increment_lineno(made, function.__code__.co_firstlineno)
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    code = compile(outer, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    inner = _code_named(code, made.name)
    if inner.co_freevars != free:
        raise MutantError(f"{place}: the changed text must use {free}, got {inner.co_freevars}")
    return inner


def _code_named(code: types.CodeType, name: str) -> types.CodeType:
    within = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    for part in within:
        if part.co_name == name:
            return part
    return _code_named(within[0], name)


def _set_default(function: types.FunctionType, argument: str, value: str) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    if function.__kwdefaults__ and argument in function.__kwdefaults__:
        old = function.__kwdefaults__[argument]
        function.__kwdefaults__[argument] = evaluated(value, old=old)
        return
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    defaults = list(function.__defaults__ or ())
    place = names.index(argument) - (len(names) - len(defaults)) if argument in names else -1
    if place < 0:
        raise MutantError(f"{function.__qualname__}: {argument} must be an argument with a default")
    defaults[place] = evaluated(value, old=defaults[place])
    function.__defaults__ = tuple(defaults)


def _cell_change(table: Any, mutant: Mutant) -> Callable[[], object]:
    if isinstance(table, types.MappingProxyType):
        (table,) = (x for x in gc.get_referents(table) if isinstance(x, dict))
    key = evaluated(mutant["cell"])
    old = table.get(key) if isinstance(table, dict) else table[key]
    value = evaluated(mutant["value"], old=old)
    if value is old:
        raise MutantError(f"{name_of(mutant)}: the value must differ from the old one")
    return functools.partial(table.__setitem__, key, value)


def _field_change(target: Any, mutant: Mutant) -> Callable[[], object]:
    name = mutant["field"]
    if not hasattr(target, name):
        raise MutantError(f"{name_of(mutant)}: {mutant['object']} has no {name}")
    old = getattr(target, name)
    value = evaluated(mutant["value"], old=old)
    if value is old:
        raise MutantError(f"{name_of(mutant)}: the value must differ from the old one")
    if isinstance(target, type):
        return functools.partial(setattr, target, name, value)
    return functools.partial(object.__setattr__, target, name, value)


def _constant_change(old: object, mutant: Mutant) -> Callable[[], object]:
    name = mutant["object"].rpartition(".")[2]
    value = evaluated(mutant["value"], old=old)
    if value is old:
        raise MutantError(f"{name_of(mutant)}: the value must differ from the old one")

    def change() -> None:
        for module in list(sys.modules.values()):
            own = getattr(module, "__name__", "").startswith("cubecore")
            if own and name in vars(module) and vars(module)[name] == old:
                setattr(module, name, value)

    return change
