"""Every rule at its boundary: check names it on one side only, and its remedy leads back."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from cubecore.chips import chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling, rule_named, rules
from cubecore.tiling.rules.model import RuleCase, satisfied
from tiling.boundaries import BOUNDARIES as PLAIN
from tiling.boundaries import Case
from tiling.boundaries_mx import BOUNDARIES as SCALED
from tiling.cases import tiling

BOUNDARIES = (*PLAIN, *SCALED)
DRAWS, ENOUGH = 200, 6


def drawn_problem(rng, boundary):
    dtype = rng.choice(boundary.dtypes)
    bias = {"int8": "int32", "float16": "float32", "bfloat16": "float32"}.get(dtype)
    keys = {"trans_a": rng.random() < 0.5, "trans_b": rng.random() < 0.5}
    keys |= {key: 16 * rng.randint(4, 20) for key in "mnk"} | {"a": dtype, "chip": boundary.soc}
    keys["bias"] = rng.choice([None, bias]) if "scale_a" not in boundary.keys else None
    return keys | boundary.keys


def drawn_fields(rng, boundary):
    steps = {name: rng.randint(1, 4) for name in ("stepM", "stepN", "stepKa", "stepKb")}
    single = {name: 16 * rng.randint(1, 12) for name in ("singleCoreM", "singleCoreN")}
    base = {name: 16 * rng.randint(1, 16) for name in ("baseM", "baseN")}
    buffers = {name: rng.randint(1, 2) for name in ("dbL0A", "dbL0B", "dbL0C")}
    found = steps | single | base | buffers | {"baseK": 64 * rng.randint(1, 4)}
    found["mxTypePara"] = 0x01010101
    found |= boundary.fields
    found["depthA1"] = rng.randint(1, 2) * found["stepM"] * found["stepKa"]
    found["depthB1"] = rng.randint(1, 2) * found["stepN"] * found["stepKb"]
    return found


def at(boundary, keys, fields, value):
    """Return the problem and the tiling with what moves at `value`."""
    if boundary.move in keys:
        p = Problem(**(keys | {boundary.move: value}))
        return p, tiling(p, **fields)
    p = Problem(**keys)
    return p, tiling(p, **(fields | {boundary.move: value}))


def flips(rng, boundary):
    """Return pairs of neighbouring cases, one of which is right and the other wrong.

    On the way the rule itself is held to be right in every case.
    """
    keys, fields = drawn_problem(rng, boundary), drawn_fields(rng, boundary)
    cases = [at(boundary, keys, fields, value) for value in boundary.values]
    right = [bool(boundary.holds(Case(t, p))) for p, t in cases]
    measured, soc = rule_named(boundary.rule).measure, chip(boundary.soc)
    given = [RuleCase(t, p, soc, boundary.edition) for p, t in cases]
    assert [satisfied(case, measured) for case in given] == right, (boundary.move, keys, fields)
    return [pair for pair, (a, b) in zip(pairwise(cases), pairwise(right), strict=True) if a != b]


def check_names(boundary, soc, p, t):
    found = {f.rule: f for f in check_tiling(t, p, soc, boundary.edition).findings}
    finding = found.get(boundary.rule)
    right = boundary.holds(Case(t, p))
    assert (finding is None) == right, (boundary.move, p, t)
    if finding is None or not finding.remedy:
        assert right or boundary.rule in {"A-INNER-EXTENT", "B-INNER-EXTENT"}
        return
    better, wanted = replace(t, **finding.tiling_changes), replace(p, **finding.problem_changes)
    assert boundary.holds(Case(better, wanted)), finding.message


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda b: f"{b.rule}-{b.move}-{b.soc}")
@pytest.mark.thinned(4)
def test_a_rule_at_its_boundary(boundary):
    soc = chip(boundary.soc)
    found = 0
    for draw in range(DRAWS):
        rng = random.Random(f"{boundary.rule} {boundary.move} {draw}")
        crossings = flips(rng, boundary)
        for pair in rng.sample(crossings, min(2, len(crossings))):
            found += 1
            for p, t in pair:
                check_names(boundary, soc, p, t)
        if found >= ENOUGH:
            break
    assert found >= ENOUGH


def test_every_rule_has_a_boundary():
    assert {b.rule for b in BOUNDARIES} == {r.id for r in rules()}
