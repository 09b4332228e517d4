"""A sentence about an option names it as it is typed; the API's names the keyword."""

import pytest
from click.testing import CliRunner

import cubecore
from cubecore.cli.commands import main

SHAPE = ("--m", "64", "--n", "64", "--k", "64")
LINE = "pos-a TSCM can be planned but not executed or timed; use GM"


@pytest.mark.parametrize("verb", ["run", "time"])
def test_the_command_line_names_the_option(verb):
    left = CliRunner().invoke(main, [verb, *SHAPE, "--pos-a", "TSCM"])
    assert (left.exit_code, left.stderr) == (2, f"--{LINE}\n")


def test_the_api_names_the_keyword():
    with pytest.raises(cubecore.RequestError) as refused:
        cubecore.time(m=64, n=64, k=64, pos_a="TSCM")
    assert str(refused.value) == LINE.replace("pos-a", "pos_a")
