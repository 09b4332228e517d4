"""Data classes whose methods are compiled at their first use.

The standard decorator compiles four to seven methods of each class when its module is imported.
That is most of what a command costs before its work, and most of these methods are never called.
"""

import dataclasses
import reprlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from types import FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_ORDERINGS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


class _Factory:
    """Stands in a signature for a default that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


class _Method:
    """Stands for a method of a class until it is looked up; then the method takes its place."""

    __slots__ = ("compiled", "home", "name")

    def __init__(self, home: type, name: str, compiled: Callable[[type], FunctionType]) -> None:
        self.home, self.name, self.compiled = home, name, compiled

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = self.compiled(self.home)
        method.__qualname__ = f"{self.home.__qualname__}.{self.name}"
        setattr(self.home, self.name, method)
        return method.__get__(instance, owner)


def _compiled(
    home: type, name: str, parameters: Sequence[str], body: Sequence[str], **values: object
) -> FunctionType:
    """Return a method of a class from its text, in which the names of `values` stand for values."""
    lines = "\n  ".join(body)
    text = f" def {name}({', '.join(parameters)}):\n  {lines}\n return {name}"
    defined: dict[str, Any] = {}
    home_module = sys.modules.get(home.__module__)
    module = vars(home_module) if home_module is not None else {}
    exec(f"def make({', '.join(values)}):\n{text}", module, defined)  # noqa: S102 - of names of fields
    method: FunctionType = defined["make"](**values)
    return method


def _init(home: type, *, frozen: bool) -> FunctionType:
    """Return the method that takes and sets the fields."""
    values: dict[str, object] = {"_set": object.__setattr__, "_factory": _Factory()}
    parameters, keywords, body = ["self"], ["*"], []
    for field in dataclasses.fields(home):
        name = value = parameter = field.name
        default = f"_default_{name}"
        if field.default_factory is not MISSING:
            values[default] = field.default_factory
            parameter, built = f"{name}=_factory", f"{default}()"
            value = f"{built} if {name} is _factory else {name}" if field.init else built
        elif field.default is not MISSING:
            values[default] = field.default
            parameter = f"{name}={default}"
            value = name if field.init else default
        elif not field.init:
            continue
        if field.init:
            (keywords if field.kw_only else parameters).append(parameter)
        if not frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot := vars(home).get(name), MemberDescriptorType):
            values[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(home, "__post_init__"):
        body.append("self.__post_init__()")
    taken = [*parameters, *(keywords if len(keywords) > 1 else [])]
    method = _compiled(home, "__init__", taken, body or ["pass"], **values)
    types = {field.name: field.type for field in dataclasses.fields(home) if field.init}
    method.__annotations__ = types | {"return": None}
    return method


def _values(fields: Sequence[Field[Any]], owner: str) -> str:
    """Return the text of a tuple of the values of fields."""
    return f"({''.join(f'{owner}.{field.name}, ' for field in fields)})"


def _comparison(home: type, *, name: str, sign: str) -> FunctionType:
    """Return a method that compares two instances of one class by their fields."""
    fields = [field for field in dataclasses.fields(home) if field.compare]
    body = [
        "if other.__class__ is self.__class__:",
        f" return {_values(fields, 'self')} {sign} {_values(fields, 'other')}",
        "return NotImplemented",
    ]
    return _compiled(home, name, ["self", "other"], body)


def _hash(home: type) -> FunctionType:
    """Return the method that hashes an instance by its fields."""
    fields = [f for f in dataclasses.fields(home) if (f.compare if f.hash is None else f.hash)]
    return _compiled(home, "__hash__", ["self"], [f"return hash({_values(fields, 'self')})"])


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _require_free(instance: Any, name: str, change: str) -> None:
    """Refuse to change a field; a plain class derived of a frozen one may have more attributes."""
    kind = type(instance)
    if "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {change} field {name!r}")


def _setattr(self: Any, name: str, value: object) -> None:
    _require_free(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    _require_free(self, name, "delete")
    object.__delattr__(self, name)


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN = {"__setattr__": _setattr, "__delattr__": _delattr}
_FROZEN_SLOTS = {"__getstate__": _getstate, "__setstate__": _setstate}


def _methods(cls: type, *, frozen: bool, eq: bool, order: bool, unsafe_hash: bool) -> Any:
    """Return the methods to compile, by name, for a class that may have some of them."""
    defined = vars(cls)
    methods: dict[str, Callable[[type], FunctionType] | None] = {}
    if "__init__" not in defined:
        methods["__init__"] = partial(_init, frozen=frozen)
    if eq and "__eq__" not in defined:
        methods["__eq__"] = partial(_comparison, name="__eq__", sign="==")
    if order:
        methods |= {n: partial(_comparison, name=n, sign=sign) for n, sign in _ORDERINGS.items()}
    hashes = "__hash__" in defined and not (defined["__hash__"] is None and "__eq__" in defined)
    if (eq or unsafe_hash) and not hashes:
        methods["__hash__"] = _hash if frozen or unsafe_hash else None
    return methods


def _data_class(cls: type, *, frozen: bool, slots: bool, kw_only: bool, **compared: bool) -> type:
    """Return the data class; the standard decorator collects its fields and makes its slots."""
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # else the standard decorator makes it of the signature
    methods = _methods(cls, frozen=frozen, **compared)
    shown = "__repr__" in vars(cls)
    standard = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    data_class: type = standard(cls)
    for name, compiled in methods.items():
        setattr(data_class, name, _Method(data_class, name, compiled) if compiled else None)
    overrides = {**({} if shown else {"__repr__": _repr}), **(_FROZEN if frozen else {})}
    for name, method in {**overrides, **(_FROZEN_SLOTS if frozen and slots else {})}.items():
        setattr(data_class, name, method)
    return data_class


def _lazy(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    unsafe_hash: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """Return a data class, or a decorator that makes one, as the standard decorator does."""
    decorator = partial(
        _data_class,
        frozen=frozen,
        slots=slots,
        kw_only=kw_only,
        eq=eq,
        order=order,
        unsafe_hash=unsafe_hash,
    )
    return decorator(cls) if cls is not None else decorator


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _lazy
