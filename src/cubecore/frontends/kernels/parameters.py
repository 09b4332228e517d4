"""The parameters of a kernel behind its core: their names, their marks, and their arguments."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, isfunction, signature
from typing import Any

from cubecore.aliases import Json
from cubecore.errors import refuse, unable

MARKS = ("outputs", "scratch")
"""The marks that parameters of a kernel may have."""


def parameters_of(body: object) -> list[str]:
    """Return the names of a kernel's parameters behind the core.

    Raises
    ------
    RequestError
        If it is no function of a core and plain parameters.
    """
    if not isfunction(body):
        raise refuse("a kernel", "be a function", repr(body))
    whole = signature(body)
    plain = [n for n, p in whole.parameters.items() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if not plain or len(plain) < len(whole.parameters):
        got = str(whole.replace(return_annotation=Signature.empty))
        raise refuse(body.__name__, "take the core and then named parameters", got)
    return plain[1:]


def names_in(given: Any) -> tuple[str, ...]:
    """Return the names of parameters that are given as one or as several.

    Raises
    ------
    RequestError
        If they are no texts.
    """
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise refuse("outputs and scratch", "name parameters", repr(name))
    return names


def require_one_mark(outputs: Iterable[str], scratch: Iterable[str]) -> None:
    """Require that no parameter is an output and scratch.

    Raises
    ------
    RequestError
        If one is both.
    """
    if both := sorted({*outputs} & {*scratch}):
        raise refuse(both[0], "be an output or scratch", "both")


def bound_arguments(
    name: str, function: Callable[..., None], arguments: tuple[object, ...], words: Json
) -> Json:
    """Return the arguments of a launch by the names of a kernel's parameters.

    Raises
    ------
    RequestError
        If the kernel, called `name`, does not take them.
    """
    whole = signature(function)
    behind_core = list(whole.parameters.values())[1:]
    plain = [p for p in behind_core if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    try:
        bound = whole.replace(parameters=plain).bind(*arguments, **words)
    except TypeError as error:
        names = ", ".join(p.name for p in plain) or "nothing"
        raise unable(name, f"{name} takes {names}: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)
