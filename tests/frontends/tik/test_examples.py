"""Every TIK example runs as it is, verifies itself against NumPy, has no finding, and is timed."""

from pathlib import Path

import pytest

from cubecore.frontends.tik.host.program import main
from cubecore.workflows.scripts.script import time_script

FOLDER = Path(__file__).parents[3] / "examples" / "tik"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(4)
def test_an_example(name, capsys):
    assert main([str(FOLDER / f"{name}.py")]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == "verified\n"


def test_there_are_thirty():
    assert len(list(FOLDER.glob("*.py"))) >= 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(4)
def test_an_example_is_timed_and_says_if_that_is_rough(name):
    (launch, *_) = time_script(str(FOLDER / f"{name}.py"), quiet=True).launches
    busy = {pipe for pipe, use in launch.timeline.to_json()["pipes"].items() if use["busy_cycles"]}
    assert {"S", "MTE3"} <= busy
    assert (launch.rough is not None) == (launch.run.chip.arch != "2201")
