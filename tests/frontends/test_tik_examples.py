"""Every TIK example runs as it is, verifies itself against NumPy, and has no finding."""

from pathlib import Path

import pytest

from cubecore.frontends.tik.program import main

FOLDER = Path(__file__).parents[2] / "examples" / "tik"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_an_example(name, capsys):
    assert main([str(FOLDER / f"{name}.py")]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == "verified\n"
