"""plan --exact: what is found is timed event by event, and the fastest comes first."""

import pytest

import cubecore
from cubecore.chips import chip
from cubecore.reports.text.answers import number
from cubecore.tiling.model.core_grid import problem_blocks
from workflows.command import assert_refused, cli

CHIP = chip("Ascend910B3")
SHAPES = [(1000, 512, 2048), (2048, 512, 512), (2048, 512, 2048), (1000, 3000, 512)]


def test_the_fastest_by_events_comes_first():
    moved = 0
    for m, n, k in SHAPES:
        problem = {"m": m, "n": n, "k": k, "launch": "mix"}
        plain = cubecore.plan(problem, alternatives=3)
        exact = cubecore.plan(problem, alternatives=3, exact=True)
        assert plain.timed_us == ()
        tilings = [exact.tiling, *(ranked.tiling for ranked in exact.alternatives)]
        before = [plain.tiling, *(ranked.tiling for ranked in plain.alternatives)]
        assert set(tilings) == set(before)
        assert list(exact.timed_us) == sorted(exact.timed_us)
        assert list(exact.timed_us) == [
            cubecore.time(problem, tiling=t).timeline.us for t in tilings
        ]
        if exact.tiling != plain.tiling:
            moved += 1
            assert not exact.proven
            assert [(b.m0, b.n0) for b in exact.blocks] == [
                (b.m0, b.n0) for b in problem_blocks(exact.problem, CHIP, exact.tiling)
            ]
    assert moved, "the closed form has another order for some"


def test_times_stand_in_json_and_text():
    answer = cli("plan", "--m", "256", "--n", "256", "--k", "256", "--exact", "--json")
    times = [answer.json["timed_us"], *(a["timed_us"] for a in answer.json["alternatives"])]
    assert times == sorted(times)
    assert len(times) == 6
    text = cli("plan", "--m", "256", "--n", "256", "--k", "256", "--exact").out
    assert f"Timed event by event: {number(times[0])} us, the fastest of 6\n" in text
    alone = cli("plan", "--m", "256", "--n", "256", "--k", "256", "--exact", "--alternatives", "0")
    assert "Timed event by event: " in alone.out
    assert "the fastest of" not in alone.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--m", "64", "--n", "64", "--k", "64", "--chip", "Ascend310P3"],
            "run and time support architectures 2201 and 3510; Ascend310P3 is 2002 (plan and "
            "check support it)",
        ),
        (["--queries", "none.jsonl"], "--exact and --queries exclude each other"),
    ],
)
def test_what_cannot_be_timed_is_refused(arguments, message):
    assert_refused(cli("plan", "--exact", *arguments), message)
