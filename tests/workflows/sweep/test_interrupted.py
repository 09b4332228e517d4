"""A sweep that is interrupted says how far it came; the same command goes on there."""

import json

import pytest
from click.testing import CliRunner

from cubecore.cli.commands import main
from cubecore.workflows.sweep import plan_many

QUERIES = "".join(json.dumps({"m": 16 * (n + 1), "n": 16, "k": 16}) + "\n" for n in range(4))


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """Return a call of the command that is interrupted behind two answers."""
    (tmp_path / "queries.jsonl").write_text(QUERIES)
    sweep = plan_many.sweep

    def struck(*arguments):
        for number, answer in enumerate(sweep(*arguments)):
            if number == 2:
                raise KeyboardInterrupt
            yield answer

    def run(*options, strike=True):
        typed = ["plan", "--queries", str(tmp_path / "queries.jsonl"), "--processes", "1", *options]
        with monkeypatch.context() as patched:
            if strike:
                patched.setattr(plan_many, "sweep", struck)
            return CliRunner().invoke(main, typed)

    return run


def test_what_is_done_is_kept_in_the_file(interrupted, tmp_path):
    out = tmp_path / "answers.jsonl"
    struck = interrupted("--out", str(out))
    line = "interrupted: 2 of 4 queries answered; the same command goes on there"
    assert (struck.exit_code, struck.stdout, struck.stderr.strip()) == (130, "", line)
    assert not out.exists()
    done = interrupted("--out", str(out), strike=False)
    assert done.exit_code == 0
    assert "2" in done.stdout
    answered = [json.loads(text)["problem"]["m"] for text in out.read_text().splitlines()]
    assert answered == [16, 32, 48, 64]


def test_without_a_file_nothing_is_kept(interrupted):
    struck = interrupted()
    keeps = "--out or --store keeps the answers of a sweep that is interrupted"
    assert struck.exit_code == 130
    assert struck.stderr.strip() == f"interrupted: 2 of 4 queries answered; {keeps}"
    assert len(struck.stdout.splitlines()) == 2
