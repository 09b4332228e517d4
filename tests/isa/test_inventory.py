"""Which of the C API's 302 names answer; those that do not are listed with the reason."""

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.capi.calls.binding import bind, forms
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.isa.catalogue import spelled, spellings
from cubecore.isa.declare.not_modelled import NOT_MODELLED, NOT_MODELLED_3510
from data_files import data

LIMIT = 15
"""Names that may stay out of the model for good."""


def answers(name: str) -> bool:
    """Whether an instruction, or a method of a kernel's core, has the name."""
    return bool(spelled(name)) or hasattr(CoreHandle, name)


def names(arch: str = "2201") -> list[str]:
    """Return every name that the inventory has for an architecture."""
    return data("c_api_names")[arch]["names"]


def test_the_inventory_has_302_names():
    assert len(set(names())) == len(names()) == 302


def test_every_name_answers_or_is_listed():
    assert {n for n in names() if not answers(n)} == set(NOT_MODELLED)


@pytest.mark.parametrize("arch", ["2201", "3510"])
def test_every_synchronous_form_follows_from_the_declaration(arch):
    """No declaration names one; the 202 of 2201 answer, or are refused as their names are."""
    listed = data("c_api_names")[arch]["synchronous"]
    assert len(listed) == {"2201": 202, "3510": 32}[arch]
    out = set(NOT_MODELLED) | set(NOT_MODELLED_3510)
    assert [n for n in listed if not (forms(f"{n}_sync") or forms(n)) and n not in out] == []
    assert [n for n in spellings() if n.startswith("asc_") and n.endswith("_sync")] == ["asc_sync"]


def test_no_listed_name_answers():
    """A name that has come to answer leaves the list."""
    assert [n for n in NOT_MODELLED if answers(n)] == []


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_every_listed_name_says_why(name):
    assert len(NOT_MODELLED) <= LIMIT
    for call in (name, f"{name}_sync"):
        with pytest.raises(RequestError) as error:
            bind(call, (), {})
        assert str(error.value) == f"{call} is not modelled; {NOT_MODELLED[name]}"
    assert NOT_MODELLED[name] in cubecore.explain(name).text


SCALAR_3510 = {f"asc_float2int32_{way}" for way in ("rn", "rna", "rd", "ru")}
"""Functions of 3510's scalar unit with the names of 2201's conversions of vectors."""


def test_every_name_of_3510_answers_there_or_is_listed():
    """Apart from register code, whose sections the inventory keeps apart."""
    silent = {
        name
        for name in names("3510")
        if not hasattr(CoreHandle, name)
        and not any("3510" in kind.archs and not kind.carried for kind, _ in spelled(name))
    }
    assert (
        silent
        == (set(NOT_MODELLED) - {"asc_load_image_to_cbuf"}) | set(NOT_MODELLED_3510) | SCALAR_3510
    )


@pytest.mark.parametrize("name", NOT_MODELLED_3510)
def test_every_listed_name_of_3510_says_why(name):
    assert not answers(name)
    with pytest.raises(RequestError) as error:
        bind(name, (), {}, "3510")
    assert str(error.value) == f"{name} is not modelled; {NOT_MODELLED_3510[name]}"
    assert NOT_MODELLED_3510[name] in cubecore.explain(name).text
