"""What a rule is said to read is all that it depends on."""

import random
from dataclasses import replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.citations import EDITIONS
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.repair.field_domains import base_columns, domain, wanted_values
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.field_dependencies import GIVEN_FIELDS, readers
from cubecore.tiling.rules.model import READINGS, RuleCase
from tiling.cases import B3, problem, tiling
from tiling.pairs import PAIRS as PLAIN
from tiling.pairs_formats import PAIRS as FORMATS
from tiling.pairs_kernel import PAIRS as CUT
from tiling.pairs_mx import PAIRS as SCALED
from tiling.pairs_places import PAIRS as PLACES

PAIRS = (*PLAIN, *FORMATS, *SCALED, *PLACES, *CUT)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.how}")
@pytest.mark.thinned(4)
def test_fields_that_a_rule_does_not_read_make_no_difference(pair):
    rng = random.Random(pair.rule)
    p = problem(**(pair.problem if pair.wrong_problem is None else pair.wrong_problem))
    for changes in (pair.right, pair.wrong):
        case = RuleCase(tiling(p, **changes), p, chip(pair.soc), **pair.how)
        for reader in readers(case):
            other = sorted(set(FIELDS) - reader.reads - GIVEN_FIELDS)
            said = bool(reader.rule.measure(case).holds())
            for _ in range(3):
                moved = {name: rng.randint(-5, 4000) for name in rng.sample(other, 12)}
                again = reader.rule.measure(case.with_tiling(moved))
                assert bool(again.holds()) == said, (reader.id, moved)


def test_a_rule_without_a_reader_has_nothing_to_say():
    for edition in EDITIONS:
        for reading in READINGS:
            case = RuleCase(tiling(), problem(), B3, edition, reading)
            named = {reader.id for reader in readers(case)}
            assert named == {r.id for r in rules() if r.measure(case) is not None}


def test_what_the_capacities_read():
    found = {r.id: set(r.reads) for r in readers(RuleCase(tiling(), problem(), B3))}
    assert found["L0A-CAPACITY"] == {"baseM", "baseK", "dbL0A"}
    assert found["L0C-CAPACITY"] == {"baseM", "baseN", "dbL0C"}
    assert found["DEPTH-A1"] == {"depthA1", "stepM", "stepKa"}
    assert found["SINGLE-CORE-K"] == {"singleCoreK"}


def test_a_rule_that_says_what_a_field_must_be_gives_its_values():
    t = tiling(stepM=2, stepKa=3)
    case = RuleCase(t, problem(), B3)
    found = {r.id: r for r in readers(case)}
    columns = base_columns(t) | {"stepM": np.array([1, 2, 5])}
    choices = wanted_values(found["DEPTH-A1"], "depthA1", columns, case)
    assert [x.tolist() for x in choices] == [[3, 6, 15], [6, 12, 30]]
    assert wanted_values(found["DEPTH-A1"], "stepKa", columns, case) is None
    assert wanted_values(found["L0A-CAPACITY"], "baseM", columns, case) is None
    # MDL-STEP-M asks for 1 only where a step does not hold all of K.
    columns = base_columns(t) | {"stepKa": np.array([4, 15])}
    (choice,) = wanted_values(found["MDL-STEP-M"], "stepM", columns, case)
    assert np.broadcast_to(choice, 2).tolist() == [1, 1]
    columns["stepKa"] = np.array([4, 16])
    assert wanted_values(found["MDL-STEP-M"], "stepM", columns, case) is None


def legal_alone(about, case, name, value):
    """Whether the rules about one field alone allow a value, one by one."""
    return all(r.rule.measure(case.with_tiling({name: value})).holds() for r in about)


@pytest.mark.parametrize("reading", READINGS)
def test_domains_are_what_the_rules_about_one_field_allow(reading):
    p = problem(m=75, n=130, k=90, a="int8", bias="int32", cores=3)
    soc = replace(B3, l0a_bytes=4096, l0b_bytes=4096, l0c_bytes=8192, l1_bytes=16384)
    case = RuleCase(tiling(p), p, soc, reading=reading)
    for name in ("baseM", "baseK", "usedCoreNum", "singleCoreM", "isBias", "dbL0C", "singleCoreK"):
        alone = tuple(r for r in readers(case) if r.reads == {name})
        values = domain(name, case, alone).values.tolist()
        assert all(legal_alone(alone, case, name, value) for value in values)
        if name == "singleCoreM" and reading == "documented":
            assert values == [d for d in range(1, 76) if (75 * 130) % d == 0]
            continue
        most = {"baseM": 256, "baseK": 256}.get(name, 600)
        assert values == [v for v in range(-2, most + 1) if legal_alone(alone, case, name, v)]


@pytest.mark.parametrize("extent", [5000, 70001])
def test_shares_of_a_long_axis_stand_for_all_of_them(extent):
    """Every number of shares is there, with every number of blocks that it can be cut into."""
    p = problem(m=extent, n=extent, k=extent, split_k=True)
    case = RuleCase(tiling(p), p, B3)
    alone = tuple(r for r in readers(case) if r.reads == {"singleCoreK"})
    values = domain("singleCoreK", case, alone).values
    rng = random.Random(extent)
    for _ in range(200):
        count = rng.randint(1, B3.aic_count)
        low, high = -(-extent // count), (extent - 1) // max(count - 1, 1)
        share = rng.randint(low, high) if count > 1 else extent
        block = 16 * rng.randint(1, 64)
        kinds = set(zip(-(-extent // values), -(-values // block), strict=True))
        assert (-(-extent // share), -(-share // block)) in kinds
