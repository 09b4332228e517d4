"""What `plan` says of a time is what `time` says: for the answer and for every alternative."""

import random
from dataclasses import replace

import pytest

import cubecore
from cubecore.chips import chip, chip_names
from cubecore.errors import RequestError
from cubecore.planning.event_ranking import can_be_timed, solved
from cubecore.tiling.cost.closed_form import lower_bound
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.workflows.request import make_request
from parts import strided
from workflows.command import assert_refused, cli

TIMED = [name for name in chip_names() if can_be_timed(Problem(m=1, n=16, k=16), chip(name))]
"""Every chip that `time` takes."""
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


LAYERS = [
    *[(4096, 4096), (28672, 4096), (4096, 14336), (8192, 28672), (128256, 4096), (6144, 4096)],
    *[(3584, 3584), (37888, 3584), (3584, 18944), (27648, 5120), (152064, 3584), (1536, 8960)],
    *[(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)],
    *[(4608, 4096), (27392, 4096), (4096, 13696), (151552, 4096), (21760, 4096)],
]
"""(n, k) of layers of Llama, Qwen, DeepSeek and GLM."""


def layer(source):
    """Return the keys of a layer of a language model, with a few rows and some option."""
    kind = source.choice(TYPES)
    n, k = source.choice(LAYERS)
    keys = {"m": source.randint(1, 128), "n": n, "k": k, "a": kind, "b": kind}
    keys |= {"trans_b": source.random() < 0.6, "chip": source.choice(TIMED)}
    option = source.choice(["", "", "", "launch", "batch", "NZ", "bias", "split_k", "unit_flag"])
    match option:
        case "launch":
            keys["launch"] = "mix"
        case "batch":
            keys |= {"batch": source.choice([2, 8, 30]), "n": n // 8, "k": min(k, 2048)}
        case "NZ":
            keys["format_b"] = "NZ"
        case "bias":
            keys["bias"] = "int32" if kind == "int8" else "float32"
        case "split_k":
            keys["split_k"] = True
        case "unit_flag":
            keys["unit_flag"] = True
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
@pytest.mark.thinned(6)
def test_predictions_are_event_timings(seed):
    keys = drawn(random.Random(seed))
    assert_one_number(cubecore.plan(**keys, alternatives=2), keys)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 2100))
def test_predictions_are_event_timings_of_many(seed):
    keys = drawn(random.Random(seed))
    assert_one_number(cubecore.plan(**keys), keys)


@pytest.mark.parametrize("seed", strided(range(300), every=100))
@pytest.mark.thinned(6)
def test_predictions_of_layers_are_event_timings(seed):
    keys = layer(random.Random(f"layer {seed}"))
    assert_one_number(cubecore.plan(**keys), keys)


def assert_queries_are_one_number(asked, store):
    """Plan queries twice, the second time from the store, and time every answer."""
    for _ in range(2):
        answers = list(cubecore.plan_many(asked, alternatives=1, store=store, processes=1))
        for keys, answer in zip(asked, answers, strict=True):
            assert answer.planned, answer
            told = answer.to_json()
            for each in (told, *told["alternatives"]):
                line = cubecore.time(**keys, tiling=each["tiling"]).timeline
                shown = each["predicted"]["cycles"], each["predicted"]["us"]
                assert shown == (line.cycles, line.us)


def test_queries_and_stores_have_event_timings(tmp_path):
    asked = [drawn(random.Random(seed)) for seed in range(2)]
    assert_queries_are_one_number(asked, str(tmp_path / "s.sqlite"))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(50))
def test_queries_and_stores_have_event_timings_of_many(seed, tmp_path):
    source = random.Random(f"queries {seed}")
    asked = [draw(source) for draw in (drawn, layer) for _ in range(5)]
    assert_queries_are_one_number(asked, str(tmp_path / "s.sqlite"))


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


def test_a_product_with_one_tiling_is_planned():
    fix = {"depthA1": 1, "depthB1": 1, "baseK": 16, "iterateOrder": 0}
    fix |= {"dbL0A": 2, "dbL0B": 2, "dbL0C": 1}
    plan = cubecore.plan(m=16, n=16, k=16, cores=1, fix=fix)
    assert (plan.timed, plan.alternatives) == (1, ())


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
    timed = cubecore.plan(m=256, n=256, k=256).timed
    assert timed > 5
    answer = cli("plan", "--m", "256", "--n", "256", "--k", "256")
    assert f"Timed event by event, the fastest of {timed} tilings; not proven\n" in answer.out


def test_exact_is_gone():
    answer = cli("plan", "--m", "64", "--n", "64", "--k", "64", "--exact")
    assert_refused(answer, "--exact is gone: every plan is timed event by event")


def test_exact_is_gone_from_python_too():
    with pytest.raises(RequestError) as caught:
        cubecore.plan(m=64, n=64, k=64, exact=True)
    assert str(caught.value) == "exact is gone: every plan is timed event by event"


def test_a_fix_against_a_given_tiling_is_refused():
    keys = {"m": 64, "n": 64, "k": 64}
    tiling = cubecore.plan(keys, fix={"baseM": 32}).tiling
    line = "fix asks for baseM = 16, but the given tiling has baseM = 32"
    for verb in (
        lambda fix: cubecore.time(keys, tiling=tiling, fix=fix),
        lambda fix: cubecore.check(tiling, keys, fix=fix),
        lambda fix: cubecore.compare(tiling, tiling, keys, fix=fix),
        lambda fix: cubecore.run(keys, tiling=tiling, fix=fix),
    ):
        verb({"baseM": "16..32"})
        with pytest.raises(RequestError) as caught:
            verb({"baseM": 16})
        assert str(caught.value) == line


def neighbours(keys):
    """Yield the event timing of plans for other numbers of rows, cut to those of the request."""
    request = make_request(None, None, keys)
    for rows in (16, 32, 48, 64, 96, 128):
        if rows > keys["m"]:
            other = cubecore.plan({**keys, "m": rows}, alternatives=0).tiling
            single = min(other.singleCoreM, keys["m"])
            tiling = replace(other, M=keys["m"], singleCoreM=single)
            if not check_tiling(tiling, request.problem, request.chip).findings:
                yield cubecore.time(keys, tiling=tiling).timeline.cycles


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_as_fast_as_that_of_more_rows(seed):
    source = random.Random(seed)
    n, k = source.choice([(1536, 2048), (4096, 1024), (2048, 4096), (5120, 512), (576, 7168)])
    keys = {"m": source.randint(1, 100), "n": n, "k": k, "trans_b": True}
    keys["chip"] = source.choice(CHIPS)
    plan = cubecore.plan(keys)
    assert all(plan.predicted.cycles <= 1.01 * cycles for cycles in neighbours(keys))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_fewer_alternatives_are_the_first_of_more(seed):
    keys = layer(random.Random(seed))
    more = cubecore.plan(**keys)
    for count in (0, 1, 3):
        fewer = cubecore.plan(**keys, alternatives=count)
        told = (fewer.tiling, fewer.predicted, fewer.alternatives, fewer.timed)
        assert told == (more.tiling, more.predicted, more.alternatives[:count], more.timed)


def test_a_plan_is_searched_once():
    """By a request of equal keys, whatever asks; another what-if chip is another search."""
    asked = {"m": 77, "n": 55, "k": 33, "cores": 3}
    first, before = cubecore.plan(asked), solved.cache_info()
    assert cubecore.plan(**asked) == first
    assert solved.cache_info().hits == before.hits + 1
    cubecore.plan(asked, settings={"l0a_bytes": "32768"})
    assert solved.cache_info().misses == before.misses + 1
