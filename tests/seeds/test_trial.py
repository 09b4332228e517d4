"""The trial of the ledger: what counts as caught, and what does not."""

import os
import signal

import pytest

from seeds import trial
from seeds.ledger import Claim, Entry

TEST = "tests/a.py::test_x"
ROW = Entry("999/t1/x", "x is 1.", ("x",), None, (Claim("test", TEST),), None)
RIGHT = {"ran": [TEST], "failed": []}
CAUGHT = {"ran": [TEST], "failed": [TEST]}
OTHER = {"ran": [TEST, "tests/a.py::test_xy"], "failed": ["tests/a.py::test_xy"]}

VERDICTS = {
    "caught": (CAUGHT, RIGHT, ""),
    "a case of the test": ({"ran": [f"{TEST}[1]"], "failed": [f"{TEST}[1]"]}, RIGHT, ""),
    "too long": ({"timeout": []}, RIGHT, ""),
    "none failed": (RIGHT, RIGHT, f"survived: {TEST}"),
    "another row's failed": (OTHER, RIGHT, f"survived: {TEST}"),
    "stale": ({"error": ["no such text"]}, RIGHT, "not tried: no such text"),
    "red": (CAUGHT, CAUGHT, f"red without the mutant: {TEST}"),
    "no such test": (RIGHT, {"ran": [], "failed": []}, f"no test: {TEST}"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_row_holds_where_a_test_of_its_own_fails_with_the_mutant_alone(case):
    found, right, said = VERDICTS[case]
    assert trial.verdict(ROW, found, right) == said


@pytest.mark.parametrize(
    ("end", "found"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGALRM), {"timeout": []}),
        (lambda: os._exit(1), {"error": ["the trial ended without an answer"]}),
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            {"error": ["the trial ended without an answer"]},
        ),
    ],
    ids=["alarm", "exit", "killed"],
)
def test_a_trial_that_dies_catches_nothing(end, found):
    child = os.fork()
    if not child:
        end()
    _, status = os.waitpid(child, 0)
    assert trial._answered(b"", status) == found
    assert trial._answered(b'{"ran": []}', status) == {"ran": []}
