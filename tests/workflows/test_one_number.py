"""What `plan` says of a time is what `time` says: for the answer and for every alternative."""

import random

import pytest

import cubecore
from cubecore.tiling.cost.closed_form import lower_bound
from workflows.command import assert_refused, cli

CHIPS = ["Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend910_9391", "Ascend950PR_9589"]
TYPES = ["float16", "bfloat16", "int8", "float32"]


def drawn(source):
    """Return the keys of a random product: small ones, whose trees are quickly walked."""
    kind = source.choice(TYPES)
    keys = {
        **{axis: source.choice([1, 8, 16, 31, 64, 100, 256, 300]) for axis in "mn"},
        "k": source.choice([16, 64, 100, 512, 1000]),
        "a": kind,
        "b": kind,
        "chip": source.choice(CHIPS),
        "trans_a": source.random() < 0.3,
        "trans_b": source.random() < 0.5,
        "launch": source.choice(["cube", "cube", "mix"]),
        "batch": source.choice([1, 1, 1, 3]),
    }
    if source.random() < 0.3:
        keys["bias"] = "int32" if kind == "int8" else "float32"
    if keys["batch"] == 1 and kind == "float16" and "bias" not in keys:
        keys["split_k"] = source.random() < 0.3
    return keys


def assert_one_number(plan, keys):
    floor = lower_bound(plan.problem, plan.request.chip)
    answers = [(plan.tiling, plan.predicted)]
    answers += [(ranked.tiling, ranked.predicted) for ranked in plan.alternatives]
    for tiling, predicted in answers:
        line = cubecore.time(**keys, tiling=tiling).timeline
        assert (predicted.cycles, predicted.us) == (line.cycles, line.us)
        assert line.utilisation is None or line.utilisation <= 1
        assert predicted.cycles >= floor
    told = [predicted.cycles for _, predicted in answers]
    assert told == sorted(told)


@pytest.mark.parametrize("seed", range(12))
def test_predictions_are_event_timings(seed):
    keys = drawn(random.Random(seed))
    assert_one_number(cubecore.plan(**keys, alternatives=2), keys)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 2100))
def test_predictions_are_event_timings_of_many(seed):
    keys = drawn(random.Random(seed))
    assert_one_number(cubecore.plan(**keys), keys)


def test_time_without_a_tiling_times_the_plan():
    keys = {"m": 24, "n": 1536, "k": 2048, "trans_b": True}
    plan = cubecore.plan(**keys)
    timed = cubecore.time(**keys)
    assert (timed.tiling, timed.timeline.cycles) == (plan.tiling, plan.predicted.cycles)


def test_more_alternatives_keep_the_answer():
    keys = {"m": 24, "n": 1536, "k": 2048, "trans_b": True}
    few, many = (cubecore.plan(**keys, alternatives=count) for count in (0, 8))
    assert few.tiling == many.tiling
    assert len(many.alternatives) == 8


def test_a_batch_dealt_to_clients_is_over_its_bound():
    keys = {"m": 256, "n": 256, "k": 256, "trans_b": True, "batch": 48, "launch": "mix"}
    plan = cubecore.plan(**keys, chip="Ascend910B1", alternatives=0)
    assert plan.gap >= 1
    assert plan.lower_bound_us <= plan.predicted.us


def test_a_chip_without_costs_keeps_the_closed_form():
    plan = cubecore.plan(m=64, n=64, k=64, chip="Ascend310P3")
    assert plan.timed == 0
    assert plan.predicted.not_modelled


def test_the_text_says_how_many_were_timed():
    answer = cli("plan", "--m", "256", "--n", "256", "--k", "256")
    assert "Timed event by event, the fastest of 7 tilings; not proven\n" in answer.out


def test_exact_is_gone():
    answer = cli("plan", "--m", "64", "--n", "64", "--k", "64", "--exact")
    assert_refused(answer, "--exact is gone: every plan is timed event by event")
