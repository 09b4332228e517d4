"""Public functions show every keyword that they take, with its type and its default."""

import doctest
from dataclasses import fields
from inspect import Parameter, signature

import pytest

import cubecore
from cubecore.tiling.model.problem import Problem
from cubecore.workflows.keywords import ProblemKeys

TAKE_A_PROBLEM = ["plan", "check", "run", "time", "compare", "sweep"]
FUNCTIONS = [*TAKE_A_PROBLEM, "plan_many", "validate", "explain", "load_tiling", "chip"]


def test_the_keys_are_the_fields_of_a_problem_in_their_order():
    assert list(ProblemKeys.__annotations__) == [f.name for f in fields(Problem)]


@pytest.mark.parametrize("field", fields(Problem), ids=lambda field: field.name)
def test_a_key_takes_what_the_field_holds_or_none(field):
    wanted = ProblemKeys.__annotations__[field.name]
    if field.name in {"epilogue", "fix", "budget"}:
        assert type(None) in wanted.__args__
    else:
        assert wanted == field.type | None


@pytest.mark.parametrize("name", TAKE_A_PROBLEM)
def test_a_signature_ends_in_the_keys_of_a_problem(name):
    shown = signature(getattr(cubecore, name)).parameters
    keys = [f.name for f in fields(Problem)]
    assert list(shown)[-len(keys) :] == keys
    assert all(shown[key].kind is Parameter.KEYWORD_ONLY for key in keys)
    assert (shown["m"].default, shown["chip"].default) == (None, "Ascend910B3")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_parameter_is_left_open_or_without_a_type(name):
    for parameter in signature(getattr(cubecore, name)).parameters.values():
        assert parameter.kind not in {Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL}
        assert parameter.annotation is not Parameter.empty


@pytest.mark.parametrize("name", TAKE_A_PROBLEM[:1])
def test_the_defaults_that_are_shown_are_those_that_hold(name):
    shown = signature(getattr(cubecore, name)).parameters
    defaults = {f.name: shown[f.name].default for f in fields(Problem)}
    given = {"m": 32, "n": 48, "k": 64}
    assert Problem.from_json(defaults | given) == Problem(**given)


def test_the_package_shows_its_public_names_alone():
    assert dir(cubecore) == sorted(cubecore.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_it_takes_returns_and_raises(name):
    lines = [line.strip() for line in getattr(cubecore, name).__doc__.splitlines()]
    gives = "Yields" if name == "plan_many" else "Returns"
    for section in ("Parameters", gives, "Raises", "Examples"):
        at = lines.index(section)
        assert lines[at + 1] == "-" * len(section)
    for parameter in signature(getattr(cubecore, name)).parameters:
        if parameter not in {f.name for f in fields(Problem)} or name == "chip":
            assert any(line.split(" : ")[0] == parameter for line in lines), parameter


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned(3)
def test_the_examples_of_a_public_function_hold(name):
    found = doctest.DocTestFinder().find(
        getattr(cubecore, name), name, globs={"cubecore": cubecore}, module=False
    )
    runner = doctest.DocTestRunner()
    assert sum(runner.run(example).failed for example in found) == 0
    assert sum(len(example.examples) for example in found)
