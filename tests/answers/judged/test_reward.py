"""The default reward of a verdict: its parts, what makes it 0, and its interval."""

import pytest

import cubecore
from cubecore.answers.judged.reward import Reward, default_reward

RATE = cubecore.chip("Ascend910B3").hbm_bytes_per_second


def verdict(**other):
    """A right verdict whose bytes take 10 us of a predicted 20 us."""
    told = {
        "chip": "Ascend910B3",
        "task": {"sizes": {"policy": "reduced", "full": {"bytes": RATE / 100_000}}},
        "compiled": True,
        "correct": True,
        "findings": [],
        "cheating": [],
        "cases": [{"name": "aligned", "outcome": "right"}, {"name": "late", "outcome": "late"}],
        "time": {"us": 20.0, "low_us": 5.0, "high_us": 40.0, "case": "aligned"},
    }
    return {**told, **other}


def rounded(reward):
    return [round(each, 6) for each in (reward.value, reward.low, reward.high)]


def test_a_right_verdict_has_all_parts_and_the_interval_of_its_time():
    assert rounded(default_reward(verdict())) == [0.85, 0.775, 1.0]


@pytest.mark.parametrize(
    ("other", "value"),
    [
        ({"cheating": [{"certainty": "certain"}]}, 0.0),
        ({"cheating": [{"certainty": "suspect"}]}, 0.85),
        ({"correct": None}, 0.0),
        ({"findings": [{"certainty": "certain"}]}, 0.75),
        ({"findings": [{"certainty": "note"}]}, 0.85),
        ({"correct": False, "compiled": False, "cases": []}, 0.0),
        ({"correct": False, "cases": [{"outcome": "right"}, {"outcome": "wrong"}]}, 0.45),
        ({"time": None}, 0.7),
        ({"time": {"reason": "no model"}}, 0.7),
    ],
)
def test_each_part_counts_alone(other, value):
    assert round(default_reward(verdict(**other)).value, 6) == value


def test_bytes_are_those_of_the_timed_case_where_no_size_was_changed():
    cases = [{"name": "case 0", "outcome": "right", "shapes": [[1024]], "dtypes": ["float32"]}]
    time = {"us": 1e6 * 4096 / RATE, "low_us": None, "high_us": None, "case": "case 0"}
    own = verdict(task={"sizes": {"policy": "full"}}, cases=cases, time=time)
    assert rounded(default_reward(own)) == [1.0, 0.7, 1.0]
    assert isinstance(default_reward(own), Reward)
