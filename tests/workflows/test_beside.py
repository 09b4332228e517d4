"""What lies beside a plan's space: commands that plan what they say, and none for little."""

import json
import shlex

import pytest

import cubecore
from workflows.command import DONE, cli

SHORT_ROWS = {"m": 1000, "n": 3000, "k": 2000}
ASKED = {
    "plain": {},
    "types": {"a": "bfloat16", "trans_b": True},
    "fix": {"fix": {"dbL0C": 1, "baseM": {"min": 16, "max": 256, "multiple": 16}}},
    "chip": {"chip": "Ascend910B1", "epilogue": {"relu": True}},
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", ASKED)
def test_each_command_plans_what_it_says(name):
    plan = cubecore.plan(SHORT_ROWS | ASKED[name])
    assert plan.beside
    for one in plan.beside:
        program, *words = shlex.split(one.command)
        result = cli(*words, "--search", "quick", "--alternatives", "0", "--json")
        assert (program, result.code) == ("cubecore", DONE)
        answer = json.loads(result.out)
        assert answer["predicted"]["cycles"] == one.cycles
        assert one.saves == pytest.approx(1 - one.cycles / plan.predicted.cycles)
        assert one.saves > 0.1


def test_split_k_is_named_first_for_short_rows():
    first, *_ = cubecore.plan(SHORT_ROWS).beside
    assert (first.what, first.command) == (
        "split K over cores",
        "cubecore plan --m 1000 --n 3000 --k 2000 --split-k",
    )
    assert first.us < 73


def test_what_gains_little_is_not_named():
    plan = cubecore.plan(m=4096, n=4096, k=4096)
    assert plan.beside == ()
    assert "Faster beside" not in cli("plan", "--m", "4096", "--n", "4096", "--k", "4096").out


def test_what_is_asked_for_already_is_not_named():
    plan = cubecore.plan(SHORT_ROWS, split_k=True)
    assert all("split K" not in one.what for one in plan.beside)


def test_the_text_and_json_name_the_command():
    shape = [word for axis, x in SHORT_ROWS.items() for word in (f"--{axis}", str(x))]
    text = cli("plan", *shape).out
    answer = json.loads(cli("plan", *shape, "--json").out)
    assert [one["what"] for one in answer["beside"]] == [
        "split K over cores",
        "K padded to 2,048 and N padded to 3,072",
    ]
    for one in answer["beside"]:
        assert f"    {one['command']}\n" in text
