"""Requests that may or may not make sense: an answer or a refusal, never a traceback."""

import contextlib
import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.cli.commands import main
from fuzz.words import FLAGS, OPTIONS, SHAPED, WORDS
from parts import examples
from workflows.command import BAD_REQUEST, DONE, FOUND

COUNTS = st.one_of(st.integers(1, 70), st.integers(1, 70), st.integers(-2, 2**31 + 1)).map(str)
SMALL_COUNTS = st.one_of(st.integers(1, 70), st.integers(-2, 70)).map(str)


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Let commands write where nothing of ours is."""
    with contextlib.chdir(tmp_path_factory.mktemp("requests")):
        yield


@st.composite
def requests(draw):
    """Return the arguments of a request that may or may not make sense."""
    words = st.sampled_from(WORDS)
    command = draw(st.sampled_from([*SHAPED, "chips", "explain"]))
    arguments = [command]
    if command in {"check", "chips", "explain"}:
        arguments.append(draw(words))
    if command in SHAPED:
        counts = COUNTS if command in {"plan", "check"} else SMALL_COUNTS
        for name in ("--m", "--n", "--k"):
            arguments += [name, draw(counts)]
    options = st.sampled_from(OPTIONS[command])
    for name, value in draw(st.lists(st.tuples(options, words), max_size=3)):
        arguments += [name, value]
    return arguments + draw(st.lists(st.sampled_from(FLAGS[command]), max_size=2))


def assert_no_traceback(arguments):
    answer = CliRunner().invoke(main, arguments)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), arguments
    assert answer.exit_code in {DONE, FOUND, BAD_REQUEST}
    if "--json" in arguments:
        assert isinstance(json.loads(answer.stdout), dict)


@given(requests())
@examples(150)
def test_no_request_ends_in_a_traceback(arguments):
    assert_no_traceback(arguments)


@pytest.mark.sweep
@given(requests())
@settings(max_examples=5000)
def test_no_request_of_many_ends_in_a_traceback(arguments):
    assert_no_traceback(arguments)
