"""Which of the C API's 302 names answer; those that do not are listed with the reason."""

import tomllib
from pathlib import Path

import pytest

from cubecore.frontends.handle import CoreHandle
from cubecore.isa.spec import spelled
from isa import inventory

LISTED = tomllib.loads((Path(__file__).parent / "inventory.toml").read_text(encoding="utf-8"))
PENDING: dict[str, str] = LISTED["pending"]
NOT_MODELLED: dict[str, str] = LISTED["not_modelled"]
LIMIT = 15
"""Names that may stay out of the model for good."""


def answers(name: str) -> bool:
    """Whether an instruction, or a method of a kernel's core, has the name."""
    return bool(spelled(name)) or hasattr(CoreHandle, name)


@pytest.fixture(scope="module")
def names() -> dict[str, str]:
    if not inventory.SHARED.exists():
        pytest.skip("the inventory is not beside this checkout")
    return inventory.names()


def test_the_inventory_has_302_names(names):
    assert len(names) == 302


def test_every_name_answers_or_is_listed(names):
    assert {n for n in names if not answers(n)} == {*PENDING, *NOT_MODELLED}


def test_no_listed_name_answers():
    """A name that has come to answer leaves the list."""
    assert [n for n in (*PENDING, *NOT_MODELLED) if answers(n)] == []


def test_every_listed_name_has_a_reason():
    assert all((PENDING | NOT_MODELLED).values())
    assert not PENDING.keys() & NOT_MODELLED.keys()
    assert len(NOT_MODELLED) <= LIMIT
