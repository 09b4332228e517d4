"""Requests that may or may not make sense: an answer or a refusal, never a traceback."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.cli.commands import main
from workflows.command import BAD_REQUEST, DONE, FOUND

WORDS = st.sampled_from(
    [
        "0",
        "-1",
        "1",
        "17",
        "1e3",
        "nan",
        "inf",
        "ND",
        "NZ",
        "GM",
        "VECIN",
        "NORM",
        "IBSHARE",
        "DEQF16",
        "VREQ8",
        "QF322B8_PRE",
        "int4",
        "float4_e2m1fn",
        "all",
        "none",
        "MDL",
        "mix",
        "cube",
        "float16",
        "half",
        "int8",
        "bfloat16",
        "float32",
        "int32",
        "A2",
        "910B",
        "Ascend910B3",
        "Ascend310P3",
        "Ascend950PR_9589",
        "None",
        "[]",
        "{}",
        "0x10",
        "é",
    ]
)
COUNTS = st.one_of(st.integers(1, 70), st.integers(1, 70), st.integers(-2, 2**31 + 1)).map(str)
SMALL_COUNTS = st.one_of(st.integers(1, 70), st.integers(-2, 70)).map(str)
OPTIONS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "bias",
        "chip",
        "launch",
        "cores",
        "format-a",
        "format-b",
        "format-c",
        "quant",
        "scale",
        "offset",
        "scale-a",
        "scale-file",
        "checks",
        "engine",
        "store",
        "queries",
        "pos-c",
        "batch",
        "template",
        "set",
        "kb",
        "edition",
        "reading",
        "step",
        "alternatives",
        "tiling",
        "a-file",
    ]
)
FLAGS = st.sampled_from(
    ["trans-a", "trans-b", "split-k", "hf32", "relu", "unit-flag", "json", "repair"]
)


@st.composite
def requests(draw):
    """Return the arguments of a request that may or may not make sense."""
    command = draw(st.sampled_from(["plan", "check", "run", "time", "chips", "explain"]))
    arguments = [command]
    if command in {"check", "chips", "explain"}:
        arguments.append(draw(WORDS))
    if command in {"plan", "check", "run", "time"}:
        counts = COUNTS if command in {"plan", "check"} else SMALL_COUNTS
        for name in ("--m", "--n", "--k"):
            arguments += [name, draw(counts)]
    for name, value in draw(st.lists(st.tuples(OPTIONS, WORDS), max_size=3)):
        arguments += [f"--{name}", value]
    return arguments + [f"--{name}" for name in draw(st.lists(FLAGS, max_size=2))]


def assert_no_traceback(arguments):
    answer = CliRunner().invoke(main, arguments)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), arguments
    assert answer.exit_code in {DONE, FOUND, BAD_REQUEST}
    if "--json" in arguments:
        assert isinstance(json.loads(answer.stdout), dict)


@given(requests())
@settings(max_examples=150)
def test_no_request_ends_in_a_traceback(arguments):
    assert_no_traceback(arguments)


@pytest.mark.sweep
@given(requests())
@settings(max_examples=5000)
def test_no_request_of_many_ends_in_a_traceback(arguments):
    assert_no_traceback(arguments)
