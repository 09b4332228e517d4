"""The tool that holds plans against their changes: it finds what is faster, and plans hold."""

import random
from dataclasses import replace

import pytest
from tools.evidence.plan_changes import SLACK, answers, drawn_plan, held, legal_changes, other

import cubecore
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.tiling.rules.checker import check_tiling


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("kind", "number"), [("free", 1), ("fixed", 206), ("fixed", 208)])
def test_a_drawn_plan_is_no_slower_than_its_changes(kind, number):
    plan = drawn_plan(kind, 1, number)
    assert bool(plan.problem.fix.fields) == (kind == "fixed")
    beside = held(plan, random.Random(number))
    assert beside.timed > 20
    assert beside.share <= SLACK


def test_a_change_that_is_faster_is_told():
    """Base blocks of 16 rows, which one field puts back."""
    plan = cubecore.plan(m=1024, n=1024, k=1024)
    slower = replace(plan.tiling, baseM=16)
    cycles = launch_time(plan.problem, slower, plan.request.chip).cycles
    given = replace(plan, tiling=slower, predicted=replace(plan.predicted, cycles=cycles))
    beside = held(given, random.Random(1))
    assert beside.plan.predicted.cycles * (1 - beside.share) <= 1.05 * plan.predicted.cycles
    assert beside.change["baseM"][0] == 16
    assert beside.line(0)["faster"] > SLACK


def test_changes_are_legal_and_within_the_fixed_fields():
    plan = cubecore.plan(m=256, n=512, k=1024, fix={"depthA1": 6})
    _, changes, singles = legal_changes(plan)
    rng = random.Random(2)
    assert 0 < singles < len(changes)
    for row in rng.sample(range(len(changes)), 20):
        values = {n: int(x[row]) for n, x in changes.fields.items() if getattr(x, "ndim", 0)}
        changed = replace(plan.tiling, **values)
        assert changed.depthA1 == 6
        assert not check_tiling(changed, plan.problem, plan.request.chip).findings


def test_an_answer_for_other_extents_is_legal_and_the_same_again():
    known = answers()
    one, again = other(1, 0, known), other(1, 0, known)
    assert one == again
    assert (one.problem.m, one.problem.n) == (one.theirs.M, one.theirs.N)
    assert check_tiling(one.theirs, one.problem, one.chip).legal
