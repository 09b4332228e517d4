"""Names that programs of the kit's time take from Python and NumPy, and that both have dropped.

The kit was used with Python 3.7: `collections` still passed on what is in `collections.abc` (until
3.10), and NumPy had names for Python's own types (until 1.24).
"""

import collections
import collections.abc
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

_ABSTRACT = ("Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "Callable", "Sized")
_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "object": object}
_NAMES: tuple[tuple[ModuleType, dict[str, Any]], ...] = (
    (collections, {name: getattr(collections.abc, name) for name in _ABSTRACT}),
    (np, _TYPES),
)


@contextmanager
def older_names() -> Iterator[None]:
    """Give those names back until the block ends, where they are absent."""
    given = [
        (module, name, value)
        for module, names in _NAMES
        for name, value in names.items()
        if name not in vars(module)
    ]
    for module, name, value in given:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, _ in given:
            delattr(module, name)
