"""Instructions that differ by a line of a table."""

from functools import cache
from inspect import getdoc
from typing import Any

from cubecore.isa.declare.instruction import Pipe, instruction

HALF_AND_FLOAT = ("float16", "float32")


@cache
def _doc_of(base: type[object]) -> str | None:
    """Return the docstring of a base: it has many members."""
    return getdoc(base)


def member(
    base: type[Any],
    name: str,
    pipe: Pipe,
    *,
    doc: str,
    more: str = "",
    body: dict[str, Any],
    fields: dict[str, tuple[Any, Any]] | None = None,
    **declared: Any,
) -> Any:
    """Declare the instruction `name` as a subclass of `base`; `declared` goes to `instruction`.

    `doc` says in a sentence what it does; what the base says of all of them follows, and `more`.
    `body` are class attributes, among them `__module__`; `fields` are parameters, each with its
    type.
    """
    added, shared = fields or {}, _doc_of(*base.__mro__[:1])
    attributes = {
        **body,
        "__doc__": "\n\n".join(text for text in (f"{doc}.", shared, more) if text),
        "__annotations__": {field: kind for field, (kind, _) in added.items()},
        **{field: parameter for field, (_, parameter) in added.items()},
    }
    class_name = "".join(part.capitalize() for part in name.split("_"))
    return instruction(name, pipe, **declared)(type(class_name, (base,), attributes))
