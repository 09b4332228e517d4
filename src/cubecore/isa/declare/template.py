"""Templates as values: made from keywords, frozen, compared, hashed and shown by their parameters.

A dataclass compiles these methods for each class; of some 240 instructions that is most of what
importing them costs, so they are written here once and read the fields.
"""

from collections.abc import Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, make_dataclass
from inspect import Parameter, Signature
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, dataclass_transform


class _Signature:
    """The signature of a class of templates for `inspect.signature`, made from its fields."""

    def __get__(self, template: object, cls: type[Any]) -> Signature:
        """Return the keywords that make a template of `cls`."""
        return Signature(
            [
                Parameter(
                    f.name,
                    Parameter.KEYWORD_ONLY,
                    default=Parameter.empty if f.default is MISSING else f.default,
                    annotation=f.type,
                )
                for f in fields(cls)
            ]
        )


class Template:
    """Base of what `parameters` declares: a frozen record that keeps its hash."""

    __slots__ = ("__dict__", "_hash")
    _hash: int
    _blank: ClassVar[Mapping[str, Any]] = {}
    """The fields in their order, with their defaults where they have one."""
    _required: ClassVar[frozenset[str]] = frozenset()
    _values: ClassVar[Any] = staticmethod(lambda _: None)
    """Takes the attributes of a template and returns the values that tell it from others."""
    __signature__: ClassVar[Any] = _Signature()

    @classmethod
    def declare_fields(cls) -> None:
        """Keep what the methods below need to know of the fields."""
        declared = fields(cls)  # type: ignore[arg-type]
        cls._blank = {f.name: f.default for f in declared}
        cls._required = frozenset(f.name for f in declared if f.default is MISSING)
        if declared:
            cls._values = itemgetter(*cls._blank)

    def __init__(self, *args: object, **values: object) -> None:
        fields_of_template = {**self._blank, **values}
        if (
            args
            or len(fields_of_template) != len(self._blank)
            or not self._required <= values.keys()
        ):
            _refuse(type(self), args, values)
        self.__dict__.update(fields_of_template)

    def __eq__(self, other: object) -> bool:
        """True if the other is of the same class with the same parameters."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, its = self.__dict__, other.__dict__
        return mine == its or bool(self._values(mine) == self._values(its))  # one may keep more

    def __hash__(self) -> int:
        """Return a hash that is computed once: templates are the keys of every cache."""
        try:
            return self._hash
        except AttributeError:
            kept = hash(self._values(self.__dict__))
            object.__setattr__(self, "_hash", kept)
            return kept

    def __repr__(self) -> str:
        """Return the expression that makes it."""
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._blank)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: a template is frozen."""
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse: a template is frozen."""
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """Leave the hash behind: another process computes another one."""
        return self.__dict__


def _refuse(cls: type[Any], args: tuple[object, ...], values: Mapping[str, object]) -> None:
    """Raise what Python says of a call that does not fit the fields."""
    named = [(f.name, Any, field(default=f.default)) for f in fields(cls)]
    make_dataclass(cls.__qualname__, named, kw_only=True)(*args, **values)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def parameters(cls: type[Any]) -> Any:
    """Declare a class of templates, or a base of some: its annotations are keyword parameters."""
    data_class: Any = dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
    data_class.declare_fields()
    return data_class
