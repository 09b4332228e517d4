"""Repairs against plain enumeration: legal, no smaller change is, none of as few is faster."""

import itertools
import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.citations import EDITIONS
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.repair.infeasibility import Narrowing, find_conflict
from cubecore.tiling.repair.repair import repair
from cubecore.tiling.rules.checker import check_tiling, rule_named, rules
from cubecore.tiling.rules.field_dependencies import readers
from cubecore.tiling.rules.model import READINGS, RuleCase
from cubecore.tiling.solver.candidates import TilingColumns
from cubecore.tiling.solver.solver import solve
from parts import part, strided
from tiling.cases import B3, problem, tiling
from tiling.pairs import PAIRS as PLAIN
from tiling.pairs_formats import PAIRS as FORMATS
from tiling.pairs_kernel import PAIRS as CUT
from tiling.pairs_mx import PAIRS as SCALED
from tiling.pairs_places import PAIRS as PLACES

PAIRS = (*PLAIN, *FORMATS, *SCALED, *PLACES, *CUT)
SMALL = B3.what_if(
    {
        "aic_count": "4",
        "l0a_bytes": "2048",
        "l0b_bytes": "2048",
        "l0c_bytes": "4096",
        "l1_user_bytes": "6144",
        "l1_bytes": "6144",
    }
)
"""A chip whose tilings can be enumerated."""
SINGLE = range(49)
BLOCK = range(0, 65, 8)
COUNT = range(13)
VALUES = {
    "usedCoreNum": range(6),
    **dict.fromkeys(("singleCoreM", "singleCoreN"), SINGLE),
    "singleCoreK": SINGLE,
    **dict.fromkeys(("baseM", "baseN", "baseK"), BLOCK),
    **dict.fromkeys(("stepM", "stepN", "stepKa", "stepKb", "depthA1", "depthB1"), COUNT),
    **dict.fromkeys(("isBias", "iterateOrder"), range(3)),
    **dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), range(4)),
}
"""Every value that a field can sensibly have in a product of extents up to 48 on `SMALL`."""


def legal(case, columns):
    """Return which rows are legal: every rule asked about every row that none before it refused."""
    kept = np.arange(len(columns))
    for rule in rules():
        left = replace(case, tiling=columns.take(kept))
        measure = rule.measure(left)
        if measure is not None:
            kept = kept[np.broadcast_to(measure.holds(), len(kept))]
        if not len(kept):
            break
    return kept


def changes_of_size(case, size, values=VALUES):
    """Yield, for every set of `size` fields, the legal tilings that change just those."""
    for sets in batches(itertools.combinations(values, size), values):
        tables = []
        for names in sets:
            grid = np.meshgrid(*(np.array(values[name]) for name in names), indexing="ij")
            rows = int(np.prod([len(values[name]) for name in names], dtype=int))
            table = {n: np.full(rows, getattr(case.tiling, n)) for n in FIELDS}
            tables.append(table | {n: g.reshape(-1) for n, g in zip(names, grid, strict=True)})
        columns = TilingColumns({n: np.concatenate([t[n] for t in tables]) for n in FIELDS})
        kept = legal(case, columns)
        of = np.repeat(np.arange(len(sets)), [len(table["M"]) for table in tables])
        for number, names in enumerate(sets):
            mine = kept[of[kept] == number]
            if len(mine):
                yield names, columns.take(mine)


def batches(sets, values, most=100_000):
    """Yield lists of sets of fields: as many as have about `most` values together."""
    held, rows = [], 0
    for names in sets:
        held.append(names)
        rows += int(np.prod([len(values[name]) for name in names], dtype=int))
        if rows >= most:
            yield held
            held, rows = [], 0
    if held:
        yield held


def perturbed(seed, most):
    """Return the case of a legal tiling of a small product, a few fields of it changed."""
    rng = random.Random(seed)
    p = problem(
        m=rng.randint(1, 48),
        n=rng.randint(1, 48),
        k=rng.randint(1, 48),
        a=rng.choice(["float16", "int8"]),
        trans_a=rng.random() < 0.5,
        trans_b=rng.random() < 0.5,
        cores=rng.choice([None, 1, 3]),
    )
    t = solve(p, SMALL).best.tiling
    names = rng.sample(sorted(VALUES), rng.randint(1, most))
    wrong = replace(t, **{name: rng.choice(VALUES[name]) for name in names})
    how = rng.choice([{}, {}, {"reading": "documented"}, {"edition": "001"}])
    return RuleCase(wrong, p, SMALL, **how)


def cycles(case, columns):
    total = cost(columns, case.problem, case.chip).total
    return float(np.ceil(np.min(total)))


@pytest.mark.parametrize("seed", strided(range(40)))
@pytest.mark.thinned(3)
def test_no_smaller_change_is_legal_and_none_of_as_few_is_faster(seed):
    case = perturbed(seed, most=3)
    found = repair(case)
    if found is None:
        pytest.skip("no tiling of this request is legal")  # test_conflict looks at these
    assert check_tiling(found.tiling, case.problem, SMALL, case.edition, case.reading).legal
    changed = {n for n in FIELDS if getattr(found.tiling, n) != getattr(case.tiling, n)}
    assert {change.field for change in found.changes} == changed
    assert found.fewest
    size = len(changed)
    for smaller in range(min(size, 3)):
        assert not list(changes_of_size(case, smaller))
    if size <= 2 and found.fastest:
        best = min(cycles(case, columns) for _, columns in changes_of_size(case, size))
        assert found.predicted.cycles == best


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(40, 240))
def test_no_smaller_change_is_legal_over_more_fields(seed):
    case = perturbed(seed, most=5)
    found = repair(case)
    if found is None or len(found.changes) > 4:
        pytest.skip("not small enough to enumerate")
    for smaller in range(len(found.changes)):
        assert not list(changes_of_size(case, smaller))


def test_the_enumeration_finds_what_there_is():
    """The oracle itself: it must see a repair, or its silence would prove nothing."""
    p = problem(m=48, n=48, k=48)
    t = solve(p, SMALL).best.tiling
    case = RuleCase(replace(t, dbL0C=3), p, SMALL)
    assert not list(changes_of_size(case, 0))
    assert [names for names, _ in changes_of_size(case, 1)] == [("dbL0C",)]


# --- every rule, near its boundary


READS_NO_FIELD = {
    *("A-INNER-EXTENT", "B-INNER-EXTENT", "A-4BIT-ROW", "B-4BIT-ROW"),
    *("A-NZ-M", "A-NZ-K", "B-NZ-K", "B-NZ-N"),
}
"""Rules about what the problem says alone: no tiling can mend them."""


BEYOND_A_MMAD = 4096
SECOND_FACTORS = tuple(1 << shift for shift in (0, 8, 16, 24))
"""What makes each factor of mxTypePara one more."""


def near(value):
    """Return values a little off, and what only few rules refuse."""
    moved = {value + d for d in (-16, -1, 1, 16, *SECOND_FACTORS)}
    return sorted(moved | {2 * value, 3 * value, 0, BEYOND_A_MMAD}, key=abs)


MX = {"a": "float8_e4m3fn", "scale_a": "float8_e8m0fnu"}
SITUATIONS = (
    ("Ascend910B3", {}),
    ("Ascend910B3", {"a": "int8", "bias": "int32"}),
    ("Ascend910B3", {"split_k": True}),
    ("Ascend910B3", {"trans_a": True}),
    ("Ascend910B3", {"format_a": "NZ", "format_b": "NZ", "format_c": "NZ"}),
    ("Ascend910B3", {"a": "int4", "trans_b": True}),
    ("Ascend910B3", {"pos_a": "TSCM", "pos_c": "VECIN"}),
    ("Ascend910B3", {"a": "int8", "c": "float16", "epilogue": Epilogue(quant="VDEQF16")}),
    ("Ascend910B3", {"template": "NORM"}),
    ("Ascend910B3", {"template": "IBSHARE"}),
    ("Ascend950PR_9589", MX),
    ("Ascend950PR_9589", MX | {"k": 8192}),
    ("Ascend950PR_9589", MX | {"pos_a": "TSCM", "pos_b": "TSCM", "m": 64, "n": 64}),
    ("Ascend950PR_9589", {"a": "hifloat8"}),
    ("Ascend310P3", {}),
)
"""Requests that together give every rule something to say."""
FEW_CASES = 8


@cache
def planned_cases():
    """Return a planned tiling of each situation, with the readers of its fields."""
    cases = (_planned(soc, changes) for soc, changes in SITUATIONS)
    return tuple((case, tuple(r for r in readers(case) if r.reads)) for case in cases)


def _planned(soc, changes):
    p = problem(**changes)
    if changes.get("epilogue"):
        p = replace(p, epilogue=replace(p.epilogue, scale=(1.0,) * p.n))
    p = replace(p, chip=soc)
    return RuleCase(solve(p, chip(soc)).best.tiling, p, chip(soc))


def legal_cases(rule_id):
    """Yield planned tilings of the situations in which a rule reads fields, with all readers."""
    for case, reading in planned_cases():
        for reader in reading:
            if reader.id == rule_id:
                yield case, reader, reading


def broken_by_one_field(rule_id):
    """Yield cases in which a legal tiling breaks `rule_id` after one field was moved a little."""
    for case, reader, _ in legal_cases(rule_id):
        yield from moved_once(case, reader)


def moved_once(case, reader):
    """Yield what breaks the reader's rule, for each field that it reads."""
    for name in sorted(reader.reads):
        for value in near(getattr(case.tiling, name)):
            moved = case.with_tiling({name: value})
            if not reader.rule.measure(moved).holds():
                yield moved
                break


def test_every_rule_that_reads_a_field_has_a_situation():
    lacking = {rule.id for rule in rules() if not any(True for _ in legal_cases(rule.id))}
    assert lacking == READS_NO_FIELD


@pytest.mark.parametrize("rule_id", [rule.id for rule in rules()])
@pytest.mark.thinned(4)
def test_a_rule_broken_near_its_boundary_is_named_and_mended(rule_id):
    cases = list(itertools.islice(broken_by_one_field(rule_id), part(FEW_CASES)))
    assert bool(cases) == (rule_id not in READS_NO_FIELD)
    for case in cases:
        named = {
            finding.rule: finding
            for finding in check_tiling(case.tiling, case.problem, case.chip).findings
        }
        assert rule_id in named
        finding = named[rule_id]
        if finding.remedy:
            better = case.with_tiling(finding.tiling_changes).with_problem(finding.problem_changes)
            measure = rule_named(rule_id).measure(better)
            assert measure is None or measure.holds()
        found = repair(case)
        assert check_tiling(found.tiling, case.problem, case.chip).legal
        assert found.fewest
        # One field was moved, so that moving it back is a repair.
        assert len(found.changes) == 1


WIDE = {
    **dict.fromkeys(("singleCoreM", "singleCoreN", "singleCoreK"), range(2100)),
    **dict.fromkeys(("baseM", "baseN", "baseK"), range(0, 4200, 8)),
    **dict.fromkeys(("stepM", "stepN", "stepKa", "stepKb", "depthA1", "depthB1"), range(600)),
    **dict.fromkeys(("isBias", "iterateOrder", "dbL0A", "dbL0B", "dbL0C"), range(4)),
    "usedCoreNum": range(70),
    "transLength": range(0, 2**18 + 1, 512),
    "mxTypePara": [
        sum(f << 8 * i for i, f in enumerate(x)) for x in itertools.product((1, 2), repeat=4)
    ],
}
"""Every value that could make one of the planned tilings legal by itself."""


def broken_by_two_fields(rule_id):
    """Yield cases in which a legal tiling breaks `rule_id` and another rule after two moves."""
    for case, reader, reading in legal_cases(rule_id):
        moved = next(moved_once(case, reader), None)
        others = [r for r in reading if not r.reads & reader.reads]
        random.Random(rule_id).shuffle(others)
        for other in others if moved is not None else ():
            second = next(moved_once(case, other), None)
            if second is not None:
                (name,) = (n for n in FIELDS if differ(second, case, n))
                yield moved.with_tiling({name: getattr(second.tiling, name)})
                break


def differ(one, other, name):
    return getattr(one.tiling, name) != getattr(other.tiling, name)


@pytest.mark.parametrize("rule_id", [r.id for r in rules() if r.id not in READS_NO_FIELD])
@pytest.mark.thinned(4)
def test_where_two_rules_are_broken_no_single_change_is_enough_unless_it_is_the_repair(rule_id):
    case = next(broken_by_two_fields(rule_id))
    broken = check_tiling(case.tiling, case.problem, case.chip).findings
    assert rule_id in {finding.rule for finding in broken}
    assert len(broken) > 1
    found = repair(case)
    assert check_tiling(found.tiling, case.problem, case.chip).legal
    assert found.fewest
    single = list(changes_of_size(case, 1, WIDE))
    assert len(found.changes) == (1 if single else 2)


@pytest.mark.parametrize("pair", strided(PAIRS, 2), ids=lambda pair: f"{pair.rule}-{pair.how}")
@pytest.mark.thinned(4)
def test_every_wrong_tiling_of_the_pairs_is_mended(pair):
    p = problem(**(pair.problem if pair.wrong_problem is None else pair.wrong_problem))
    case = RuleCase(tiling(p, **pair.wrong), p, chip(pair.soc), **pair.how)
    found = repair(case)
    conflict = find_conflict(case, (), Narrowing((), lambda _: (p, case.chip)))
    assert (found is None) == (conflict is not None)
    if found is None:
        broken = check_tiling(case.tiling, p, case.chip, case.edition, case.reading).findings
        named = {constraint.name for constraint in conflict.constraints}
        assert named & {finding.rule for finding in broken}
    else:
        assert check_tiling(found.tiling, p, case.chip, case.edition, case.reading).legal
        # The letter lets depths grow to where the search ends first.
        assert found.fewest or (pair.rule, "documented") == ("UB-CAPACITY", case.reading)
        for change in found.changes:
            back = case.with_tiling(
                found.tiling.to_json() | {change.field: getattr(case.tiling, change.field)}
            )
            findings = check_tiling(back.tiling, p, case.chip, case.edition, case.reading).findings
            assert change.findings == findings != ()


# --- what else is promised


def test_a_legal_tiling_is_its_own_repair():
    found = repair(RuleCase(tiling(), problem(), B3))
    assert (found.tiling, found.changes) == (tiling(), ())
    assert found.fewest
    assert found.fastest


def test_kept_fields_stay():
    t = tiling(baseK=192)
    assert [c.field for c in repair(RuleCase(t, problem(), B3)).changes] == ["baseK"]
    found = repair(RuleCase(t, problem(), B3), keep=("baseK",))
    assert found.tiling.baseK == 192
    assert check_tiling(found.tiling, problem(), B3).legal
    assert found.fewest
    assert len(found.changes) == 2


@pytest.mark.sweep
def test_nothing_but_the_extents_is_right():
    """Every field wrong: each that a rule reads alone must change, which proves the fewest."""
    for p in (problem(), problem(m=8192, n=8192, k=8192, bias="float32"), problem(m=1, n=1, k=1)):
        zeros = dict.fromkeys(set(FIELDS) - {"M", "N", "Ka", "Kb"}, 0)
        found = repair(RuleCase(replace(tiling(p), **zeros), p, B3))
        assert check_tiling(found.tiling, p, B3).legal
        assert found.fewest
        best = solve(p, B3).best.predicted.cycles
        assert found.predicted.cycles <= best
        wild = dict.fromkeys(zeros, 2**31 - 1)
        wildest = repair(RuleCase(replace(tiling(p), **wild), p, B3))
        assert check_tiling(wildest.tiling, p, B3).legal


def test_the_same_request_gives_the_same_repair():
    case = RuleCase(tiling(baseM=256, stepM=3, usedCoreNum=7), problem(), B3)
    assert repair(case) == repair(case)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("reading", READINGS)
def test_a_repair_is_legal_in_the_edition_and_reading_that_was_asked_for(edition, reading):
    case = RuleCase(tiling(baseK=128, dbL0C=2, depthA1=9), problem(), B3, edition, reading)
    found = repair(case)
    assert check_tiling(found.tiling, problem(), B3, edition, reading).legal
    assert found.fewest


def test_a_chip_without_a_known_rate_is_repaired_without_a_time():
    soc = chip("Kirin9030")
    p = problem(chip="Kirin9030", cores=1)
    t = tiling(p, usedCoreNum=1, singleCoreM=256, singleCoreN=512, baseM=24)
    found = repair(RuleCase(t, p, soc))
    assert check_tiling(found.tiling, p, soc).legal
