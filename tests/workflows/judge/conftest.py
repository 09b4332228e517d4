"""Judgements of the tests run in a box where the machine has one."""

import pytest

from cubecore.workflows.judge import judge
from sandbox.machine import missing


@pytest.fixture(autouse=True)
def box(monkeypatch):
    """Judge without a box where the machine has none; `judge` itself refuses there."""
    if missing("auto"):
        plain = judge.options_of
        monkeypatch.setattr(
            judge, "options_of", lambda chip, given: plain(chip, {**given, "sandbox": "none"})
        )
