"""Templates behave as the frozen dataclasses of their fields would; these are the oracle."""

import copy
import inspect
import pickle
from dataclasses import MISSING, FrozenInstanceError, field, fields, make_dataclass, replace

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.template import Template, parameters
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag


@parameters
class Pair(Template):
    first: int
    second: int = 2


@parameters
class Other(Template):
    first: int
    second: int = 2


@parameters
class Nothing(Template):
    pass


def same_dataclass(cls):
    named = [
        (f.name, f.type, field() if f.default is MISSING else field(default=f.default))
        for f in fields(cls)
    ]
    return make_dataclass(cls.__qualname__, named, frozen=True, kw_only=True)


CALLS = [
    (),
    {"first": 1},
    {"first": 1, "second": 3},
    {"second": 3},
    {"third": 3},
    {"first": 1, "third": 3, "fourth": 4},
]


@pytest.mark.parametrize("cls", [Pair, Nothing, Mad, SetFlag, PipeBarrier])
@pytest.mark.parametrize("values", CALLS)
@pytest.mark.parametrize("args", [(), (1,), (1, 2)])
def test_a_call_gives_what_the_dataclass_gives(cls, values, args):
    def told(maker):
        try:
            made = maker(*args, **dict(values))
        except TypeError as error:
            return str(error)
        return repr(made), [getattr(made, f.name) for f in fields(made)]

    assert told(cls) == told(same_dataclass(cls))


def test_a_missing_keyword_is_named_as_python_names_it():
    with pytest.raises(TypeError) as caught:
        Pair(second=1)
    assert str(caught.value) == (
        "Pair.__init__() missing 1 required keyword-only argument: 'first'"
    )


def test_equal_templates_are_of_one_class_with_equal_parameters():
    assert Pair(first=1) == Pair(first=1, second=2)
    assert hash(Pair(first=1)) == hash(Pair(first=1, second=2))
    assert Pair(first=1) != Pair(first=2)
    assert Pair(first=1) != Other(first=1)
    assert Nothing() == Nothing()
    assert Nothing() != Pair(first=1)
    assert len({Pair(first=1), Pair(first=1, second=2), Pair(first=3)}) == 2


def test_what_a_template_keeps_beside_its_parameters_makes_no_difference():
    one, other = Pair(first=1), Pair(first=1)
    vars(one)["kept"] = "anything"
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)


def test_a_template_is_frozen():
    made = Pair(first=1)
    for name in ("first", "third"):
        with pytest.raises(FrozenInstanceError) as caught:
            setattr(made, name, 2)
        assert str(caught.value) == f"cannot assign to field {name!r}"
        with pytest.raises(FrozenInstanceError) as caught:
            delattr(made, name)
        assert str(caught.value) == f"cannot delete field {name!r}"
    assert made == Pair(first=1)


def test_a_template_survives_a_copy_and_a_pickle_without_its_hash():
    f16 = element_type("float16")
    made = Mad(m=16, k=16, n=16, a_type=f16, b_type=f16, c_type=element_type("float32"))
    hash(made)
    pair = Pair(first=1)
    hash(pair)
    assert pickle.loads(pickle.dumps(pair)) == pair
    for again in (pickle.loads(pickle.dumps(pair)), copy.copy(made), replace(made)):
        assert not hasattr(again, "_hash")
    assert copy.copy(made) == replace(made) == made
    assert replace(made, m=32) == Mad(**{**vars(made), "m": 32})


def test_the_signature_is_that_of_the_dataclass():
    assert inspect.signature(Pair).replace(return_annotation=None) == inspect.signature(
        same_dataclass(Pair)
    ).replace(return_annotation=None)
