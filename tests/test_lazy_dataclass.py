"""A lazy data class answers as the standard decorator's class of the same declaration does."""

import copy
import dataclasses
import inspect
import operator
import pickle
import sys

import pytest

from cubecore.lazy_dataclass import dataclass as lazy

FLAGS = [
    {"frozen": frozen, "eq": eq, "slots": slots} | more
    for frozen in (False, True)
    for eq in (False, True)
    for slots in (False, True)
    for more in ({}, {"kw_only": True}, {"unsafe_hash": True}, {"order": True})
    if eq or more != {"order": True}
]
IDS = [" ".join(name for name, on in flags.items() if on) or "none" for flags in FLAGS]
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def declared(decorate, flags):
    """Return one declaration's classes, by name."""

    @decorate(**flags)
    class Base:
        """A base."""

        a: int
        b: tuple[int, ...] = dataclasses.field(default_factory=tuple)
        c: object = dataclasses.field(default=2.5, repr=False)
        d: str = dataclasses.field(default="x", compare=False)

    @decorate(**flags)
    class Derived(Base):
        """A class with more fields."""

        e: int = dataclasses.field(default=7, hash=False)
        f: int = dataclasses.field(default=8, kw_only=True)
        g: int = dataclasses.field(init=False, compare=False, repr=False)
        h: int = dataclasses.field(init=False, default=6)
        i: tuple[int, ...] = dataclasses.field(init=False, default_factory=tuple)

        def __post_init__(self):
            if self.e < 0:
                raise ValueError(f"{self.a} and {self.e}")
            object.__setattr__(self, "g", self.a + self.e)

    class Plain(Base):
        """No data class itself."""

    @decorate(**flags)
    class Empty:
        """No field."""

    @decorate(**{**flags, "order": False, "unsafe_hash": False})
    class Own:
        """A class with methods of its own."""

        a: int

        def __init__(self, a):
            object.__setattr__(self, "a", a + 1)

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return type(other) is type(self) and self.a == other.a

        def __hash__(self):
            return 5

    return {kind.__name__: kind for kind in (Base, Derived, Plain, Empty, Own)}


def outcome(call):
    """Return what a call returns, or how it is refused."""
    try:
        return call()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


def values(kinds):
    """Return instances of the classes: equal ones, and ones that differ in one field."""
    base, derived, plain = kinds["Base"], kinds["Derived"], kinds["Plain"]
    return [
        *(base(a=1), base(a=1, b=(3,)), base(a=2, d="y"), base(a=2, d="z"), base(a=2, c=1)),
        *(derived(a=1), derived(a=1, f=3), derived(a=1, e=9, f=3), derived(a=1, b=(4,), e=9)),
        *(plain(a=2), plain(a=2, c=1), kinds["Empty"](), kinds["Empty"]()),
        *(kinds["Own"](1), kinds["Own"](1), kinds["Own"](2)),
    ]


@pytest.fixture(params=FLAGS, ids=IDS)
def both(request):
    return declared(dataclasses.dataclass, request.param), declared(lazy, request.param)


def test_a_class_is_described_alike(both):
    for standard, made in zip(*(kinds.values() for kinds in both), strict=True):
        assert str(inspect.signature(made)) == str(inspect.signature(standard))
        assert made.__init__.__qualname__ == standard.__init__.__qualname__
        for name in ("__doc__", "__match_args__", "__module__", "__slots__"):
            assert getattr(made, name, None) == getattr(standard, name, None)
        described = [
            [(f.name, f.type, f.default, f.init, f.repr, f.kw_only) for f in dataclasses.fields(c)]
            for c in (standard, made)
        ]
        assert described[0] == described[1]
        assert (made.__hash__ is None) == (standard.__hash__ is None)


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 2, 3, 4, 5, 6, 7), {}),
        ((), {"a": 1}),
        ((), {"a": 1, "unknown": 2}),
        ((1,), {"a": 1}),
        ((1, (2,), 3, "4"), {}),
        ((), {"a": 1, "b": (2,), "c": None, "d": ""}),
        ((), {"a": 3, "e": -1}),
    ],
    ids=str,
)
def test_an_instance_is_made_alike(both, args, keys):
    for standard, made in zip(*(kinds.values() for kinds in both), strict=True):
        shown = [
            value if isinstance(value, tuple) else {n: getattr(value, n) for n in fields}
            for value, fields in (
                (outcome(lambda c=c: c(*args, **keys)), [f.name for f in dataclasses.fields(c)])
                for c in (standard, made)
            )
        ]
        assert shown[0] == shown[1]


def test_instances_are_shown_compared_and_hashed_alike(both):
    standard, made = map(values, both)
    for left, mine in zip(standard, made, strict=True):
        if type(left).__repr__ is not object.__repr__:
            assert repr(mine) == repr(left)
        hashed = outcome(lambda value=left: hash(value))
        if type(left).__hash__ is not object.__hash__:
            assert outcome(lambda value=mine: hash(value)) == hashed
        for right, its in zip(standard, made, strict=True):
            for compare in COMPARISONS:
                expected = outcome(lambda a=left, b=right, sign=compare: sign(a, b))
                assert outcome(lambda a=mine, b=its, sign=compare: sign(a, b)) == expected


def test_a_field_is_changed_or_refused_alike(both):
    for standard, made in zip(*map(values, both), strict=True):
        names = ["a", "f", "unknown"]
        if hasattr(standard, "__slots__"):  # Python 3.11 refuses other names than fields by a bug
            names = [field.name for field in dataclasses.fields(standard)]
        for name in names:
            set_ = [outcome(lambda v=v, n=name: setattr(v, n, 11)) for v in (standard, made)]
            assert set_[0] == set_[1]
            kept = [outcome(lambda v=v, n=name: getattr(v, n)) for v in (standard, made)]
            assert kept[0] == kept[1]
            deleted = [outcome(lambda v=v, n=name: delattr(v, n)) for v in (standard, made)]
            assert deleted[0] == deleted[1]


def test_copies_are_equal(both, monkeypatch):
    _, kinds = both
    for name, kind in kinds.items():
        kind.__qualname__ = name
        monkeypatch.setattr(sys.modules[__name__], name, kind, raising=False)
    for value in values(kinds):
        names = [field.name for field in dataclasses.fields(value)]
        taken = {n: getattr(value, n) for n in names}
        for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert type(twin) is type(value)
            assert {n: getattr(twin, n) for n in names} == taken
        if not isinstance(value, kinds["Own"]) and names:
            assert dataclasses.replace(value, a=12).a == 12


def test_a_record_that_holds_itself_is_shown_alike(both):
    shown = []
    for kinds in both:
        box = []
        value = kinds["Base"](a=box)
        box.append(value)
        shown.append(repr(value))
    assert shown[0] == shown[1]


def test_an_undocumented_class_is_named_in_its_documentation():
    @lazy
    class Point:
        x: int

    assert (Point.__doc__, Point(1)) == ("Point", Point(x=1))


def test_a_method_is_compiled_at_its_first_use():
    @lazy(frozen=True, slots=True)
    class Point:
        x: int

    waiting = {
        name
        for name in ("__init__", "__eq__", "__hash__")
        if not inspect.isfunction(vars(Point)[name])
    }
    assert waiting == {"__init__", "__eq__", "__hash__"}
    assert hash(Point(1)) == hash((1,))
    assert inspect.isfunction(vars(Point)["__init__"])
    assert inspect.isfunction(vars(Point)["__hash__"])
    assert not inspect.isfunction(vars(Point)["__eq__"])
