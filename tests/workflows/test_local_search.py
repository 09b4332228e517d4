"""Plans that no small change of theirs beats, each change built here, by the rules and `time`."""

import random
from dataclasses import replace
from itertools import product

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.tiling.rules.checker import check_tiling
from cubecore.units import ceil_div
from workflows.command import BAD_REQUEST, DONE, cli

SLACK = 0.005
"""Share of the time by which a change may be faster."""
FREE = {
    "even": {"m": 1024, "n": 1024, "k": 1024},
    "ragged": {"m": 321, "n": 2105, "k": 512},
    "int8": {"m": 640, "n": 768, "k": 2048, "a": "int8"},
    "mix": {"m": 512, "n": 1024, "k": 512, "launch": "mix"},
    "950": {"m": 300, "n": 900, "k": 700, "chip": "Ascend950PR_9589"},
}
FIXED = {
    "shares": ({"m": 512, "n": 4096, "k": 4096}, {"singleCoreM": 128, "singleCoreN": 896}),
    "depth": ({"m": 256, "n": 512, "k": 1024}, {"depthA1": 6}),
    "base": ({"m": 640, "n": 768, "k": 512}, {"baseK": 96, "stepKa": 2}),
}
_VALUES = {
    **{f"base{x}": range(16, 273, 16) for x in "MNK"},
    **dict.fromkeys(("stepKa", "stepKb", "depthA1", "depthB1"), (1, 2, 3, 4, 6, 8, 12, 16)),
    **dict.fromkeys(("stepM", "stepN", "dbL0A", "dbL0B", "dbL0C"), (1, 2)),
    "iterateOrder": (0, 1),
}


def some_changes(plan, count=150):
    """Return legal tilings that differ from the plan's in one or two fields, drawn."""
    t, p = plan.tiling, plan.problem
    values = dict(_VALUES)
    for axis, extent in (("M", p.m), ("N", p.n)):
        shares = {ceil_div(extent, cores) for cores in range(1, p.core_count(plan.request.chip))}
        values[f"singleCore{axis}"] = sorted(shares)
    singles = [{name: x} for name, some in values.items() for x in some]
    pairs = [one | two for one, two in product(singles, singles) if one.keys() != two.keys()]
    random.Random(7).shuffle(pairs)
    chip = plan.request.chip
    changes = []
    for change in (*singles, *pairs[: 20 * count]):
        new = replace(t, **change)
        blocks = ceil_div(p.m, new.singleCoreM) * ceil_div(p.n, new.singleCoreN)
        new = replace(new, usedCoreNum=blocks * ceil_div(p.k, new.singleCoreK))
        if new == t or next(p.fix.broken(new), None) is not None:
            continue
        if not check_tiling(new, p, chip).findings:
            changes.append(new)
        if len(changes) == count:
            break
    return changes


def assert_none_faster(plan):
    chip, limit = plan.request.chip, (1 - SLACK) * plan.predicted.cycles
    others = some_changes(plan)
    assert len(others) > 10
    for other in others:
        time = launch_time(plan.problem, other, chip, int(limit))
        assert time is None or time.cycles >= int(limit), other


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", FREE)
def test_no_small_change_of_a_plan_is_faster(name):
    assert_none_faster(cubecore.plan(FREE[name]))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", FIXED)
def test_no_small_change_within_fixed_fields_is_faster(name):
    shape, fix = FIXED[name]
    assert_none_faster(cubecore.plan(shape, fix=fix))


WRONGLY_WALKED = {
    "chunks of another length, whose walks are equal": (
        {"m": 85, "n": 512, "k": 1024, "chip": "Ascend950PR_9589"},
        {},
        {"depthB1": 8, "stepKb": 4},
    ),
    "a longer first row of tiles, by both shares": (
        {"m": 2141, "n": 4096, "k": 3829, "a": "int8", "chip": "Ascend910B1"},
        {"depthA1": 2, "dbL0C": 1},
        {"singleCoreM": 714, "singleCoreN": 512},
    ),
    "a longer first row of tiles, by the base block": (
        {"m": 2972, "n": 2688, "k": 3328, "a": "int8", "chip": "Ascend910_9392"},
        {"singleCoreM": 743, "stepN": 1, "dbL0C": 2},
        {"baseM": 96, "baseN": 128},
    ),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", WRONGLY_WALKED)
def test_a_change_that_a_short_walk_misjudges_is_timed(kind):
    shape, fix, change = WRONGLY_WALKED[kind]
    plan = cubecore.plan(shape, fix=fix)
    other = replace(plan.tiling, **change)
    chip, own = plan.request.chip, plan.predicted.cycles
    assert launch_time(plan.problem, other, chip).cycles >= (1 - SLACK) * own


EXACT_TIES = {"even": (512, 512, 512), "short": (100, 700, 300), "ragged": (333, 1000, 777)}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", EXACT_TIES)
def test_base_blocks_are_no_longer_than_shares_need(name):
    plan = cubecore.plan(**dict(zip("mnk", EXACT_TIES[name], strict=True)))
    for base, share in (("baseM", "singleCoreM"), ("baseN", "singleCoreN")):
        assert getattr(plan.tiling, base) < getattr(plan.tiling, share) + 16
    assert plan.predicted.cycles == cubecore.time(plan.problem, tiling=plan.tiling).timeline.cycles


def test_a_base_block_that_is_asked_for_stays():
    plan = cubecore.plan(m=512, n=512, k=512, fix={"baseM": 144})
    assert plan.tiling.baseM == 144


def test_a_restricted_space_is_searched_for_its_best():
    shape, fix = FIXED["shares"]
    quick = cubecore.plan(shape, fix=fix, search="quick")
    plan = cubecore.plan(shape, fix=fix)
    assert plan.predicted.us < 0.84 * quick.predicted.us
    assert plan.timed > quick.timed
    assert plan.predicted.cycles == cubecore.time(shape, tiling=plan.tiling).timeline.cycles


def test_a_plan_fills_l1_where_that_is_faster_and_says_so():
    shape, _ = FIXED["shares"]
    fix = FIXED["shares"][1] | {"baseM": 128, "baseN": 256, "baseK": 64}
    plan = cubecore.plan(shape, fix=fix)
    a, b = (
        getattr(plan.tiling, f"depth{x}1") * 64 * size * 2 for x, size in (("A", 128), ("B", 256))
    )
    assert a + b == plan.request.chip.l1_bytes
    (told,) = plan.advice
    assert told.id == "L1-RESERVED"
    less = cubecore.plan(shape, fix=fix, budget={"l1": plan.request.chip.l1_user_bytes})
    assert not less.advice
    assert less.predicted.cycles > plan.predicted.cycles


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", FREE)
def test_a_longer_search_is_no_slower(name):
    quick, plan, thorough = (
        cubecore.plan(FREE[name], search=word) for word in ("quick", "standard", "thorough")
    )
    assert quick.predicted.cycles >= plan.predicted.cycles >= thorough.predicted.cycles
    assert quick.timed < plan.timed <= thorough.timed


def test_another_word_for_a_search_is_refused():
    with pytest.raises(RequestError) as caught:
        cubecore.plan(m=64, n=64, k=64, search="fast")
    assert str(caught.value) == "search must be quick, standard or thorough, got 'fast'"


def test_the_command_takes_a_search():
    shape = ("--m", "512", "--n", "512", "--k", "512")
    result = cli("plan", *shape, "--search", "quick", "--json")
    assert result.code == DONE


def test_a_store_keeps_answers_of_one_search(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"m": 64, "n": 64, "k": 64}\n')
    asked = "--queries", str(tmp_path / "q.jsonl"), "--store", str(tmp_path / "s.sqlite")
    result = cli("plan", *asked, "--search", "thorough")
    assert result.code == BAD_REQUEST
    assert result.err == ("a store keeps answers of the standard search, not of thorough\n")


def test_queries_answer_as_a_plan_of_the_same_search():
    shape, fix = FIXED["shares"]
    for word in ("quick", "standard"):
        (answer,) = cubecore.plan_many([shape | {"fix": fix}], processes=1, search=word)
        plan = cubecore.plan(shape, fix=fix, search=word)
        assert answer.to_json()["tiling"] == plan.tiling.to_json()
