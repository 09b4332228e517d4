"""Every TIK example runs as it is, verifies itself against NumPy, and has no finding."""

from pathlib import Path

import pytest

from cubecore.frontends.tik.program import main
from cubecore.workflows.script import run_script, time_script

FOLDER = Path(__file__).parents[2] / "examples" / "tik"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_an_example(name, capsys):
    assert main([str(FOLDER / f"{name}.py")]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == "verified\n"


def test_there_are_thirty():
    assert len(list(FOLDER.glob("*.py"))) >= 30


@pytest.mark.parametrize("name", ["newton", "top_k"])
def test_an_example_for_a_chip_with_costs_is_timed(name):
    path = str(FOLDER / f"{name}.py")
    assert run_script(path, quiet=True).verified
    (launch,) = time_script(path, quiet=True).launches
    busy = {pipe for pipe, use in launch.timeline.to_json()["pipes"].items() if use["busy_cycles"]}
    assert {"MTE2", "V", "MTE3"} <= busy
