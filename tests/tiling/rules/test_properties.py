"""What holds of every rule of the registry, on random tilings; a new rule is tested by itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.chips import chip
from cubecore.chips.products import IBSHARE_ARCHS, combinations
from cubecore.citations import EDITIONS
from cubecore.tiling.model.mx_type_para import PLAIN, MxTypePara
from cubecore.tiling.model.problem import SCALE_TYPE, SCALED_ONLY, SCALED_TYPES, Problem
from cubecore.tiling.repair.neighbourhood import GROWING
from cubecore.tiling.rules.checker import check_tiling, explain, legal_mask, rule_named, rules
from cubecore.tiling.rules.model import READINGS, RuleCase
from cubecore.units import INT32_MAX
from parts import examples
from tiling.cases import B3, problem, stack, tiling

CHIPS = (
    *("Ascend910B3", "Ascend950PR_9589", "Ascend310P3", "Ascend910A"),
    *("Ascend310", "Ascend310B1", "Kirin9030", "KirinX90"),
)
SMALL = st.integers(-1, 9)
BLOCK = st.one_of(st.integers(-1, 4200), st.integers(0, 64).map(lambda i: 16 * i))
FIELDS = {
    "usedCoreNum": st.integers(-1, 50),
    "singleCoreM": st.integers(-1, 600),
    "singleCoreN": st.integers(-1, 600),
    "baseM": BLOCK,
    "baseN": BLOCK,
    "baseK": BLOCK,
    "depthA1": st.integers(-1, 70),
    "depthB1": st.integers(-1, 70),
    **dict.fromkeys(("stepM", "stepN"), SMALL),
    **dict.fromkeys(("stepKa", "stepKb"), st.integers(-1, 40)),
    **dict.fromkeys(("isBias", "iterateOrder"), st.integers(-1, 3)),
    **dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), st.integers(-1, 4)),
    "transLength": st.integers(-1, 300_000),
    "mxTypePara": st.one_of(
        st.integers(-(2**31), 2**31 - 1),
        st.tuples(*[st.integers(1, 6)] * 4).map(lambda f: MxTypePara(*f).pack()),
    ),
}
CHANGES = st.fixed_dictionaries({}, optional=FIELDS)


EXTENT = st.one_of(st.integers(1, 700), st.sampled_from([4096, 65535, 65536]))
POSITIONS_DRAWN = st.sampled_from([*["GM"] * 4, "TSCM", "VECOUT", "VECIN", "VECCALC"])
FORMATS_DRAWN = st.sampled_from(["ND", "ND", "NZ"])


@st.composite
def requests(draw):
    """Return a problem that its chip multiplies, on any architecture."""
    soc = draw(st.sampled_from(CHIPS))
    row = draw(st.sampled_from(combinations(chip(soc).arch)))
    scaled = row.a in SCALED_TYPES and (row.a in SCALED_ONLY or draw(st.booleans()))
    shared = ["IBSHARE"] if chip(soc).arch in IBSHARE_ARCHS and not scaled else []
    return Problem(
        chip=soc,
        m=draw(EXTENT),
        n=draw(EXTENT),
        k=draw(EXTENT),
        kb=draw(st.one_of(st.none(), st.none(), EXTENT)),
        a=row.a,
        b=row.b,
        bias=draw(st.sampled_from([None, *row.bias_inputs])),
        scale_a=SCALE_TYPE if scaled else None,
        cores=draw(st.one_of(st.none(), st.integers(1, 50))),
        trans_a=draw(st.booleans()),
        trans_b=draw(st.booleans()),
        template=draw(st.sampled_from(["MDL", "MDL", "NORM", *shared])),
        split_k=draw(st.booleans()),
        **{f"format_{x}": draw(FORMATS_DRAWN) for x in "abc"},
        **{f"pos_{x}": draw(POSITIONS_DRAWN) for x in "abc"},
    )


@examples(150)
@given(requests(), st.lists(CHANGES, min_size=2, max_size=6))
def test_a_rule_over_columns_is_the_rule_over_each(p, changes):
    soc = p.chip_record
    tilings = [tiling(p, **change) for change in changes]
    for edition in EDITIONS:
        for reading in READINGS:
            columns = RuleCase(stack(tilings), p, soc, edition, reading)
            for declared in rules():
                together = declared.measure(columns)
                for index, t in enumerate(tilings):
                    alone = declared.measure(RuleCase(t, p, soc, edition, reading))
                    assert (alone is None) == (together is None), declared.id
                    if alone is not None:
                        holds = np.broadcast_to(together.holds(), len(tilings))
                        assert bool(alone.holds()) == bool(holds[index]), declared.id


@examples(150)
@given(requests(), st.lists(CHANGES, min_size=1, max_size=6))
def test_the_mask_is_the_check(p, changes):
    soc = p.chip_record
    tilings = [tiling(p, **change) for change in changes]
    mask, excluded = legal_mask(stack(tilings), p, soc)
    checks = [check_tiling(t, p, soc) for t in tilings]
    assert mask.tolist() == [c.legal for c in checks]
    found = [f.rule for c in checks for f in c.findings]
    assert excluded == {rule: found.count(rule) for rule in set(found)}


@examples(600)
@given(requests(), CHANGES, st.sampled_from(tuple(EDITIONS)), st.sampled_from(READINGS))
def test_every_remedy_is_true(p, changes, edition, reading):
    soc = p.chip_record
    t = tiling(p, **changes)
    for found in check_tiling(t, p, soc, edition, reading).findings:
        assert found.message.startswith(f"{found.rule}: ")
        assert found.source
        if not found.remedy:
            beyond = found.rule == "TRANS-LENGTH" and found.limit > INT32_MAX
            assert beyond or found.rule in {"A-INNER-EXTENT", "B-INNER-EXTENT"}
            continue
        assert found.message.endswith(f"; {found.remedy}")
        better = RuleCase(
            replace(t, **found.tiling_changes),
            replace(p, **found.problem_changes),
            soc,
            edition,
            reading,
        )
        measure = rule_named(found.rule).measure(better)
        assert measure is None or measure.holds(), found.message


def asked(declared, t, p, edition, reading):
    """What a rule asks for in one edition and reading."""
    measure = declared.measure(RuleCase(t, p, p.chip_record, edition, reading))
    if measure is None or not np.all(measure.applies):
        return None
    return measure.used, measure.limit, measure.relation


@examples(150)
@given(requests(), CHANGES)
def test_where_readings_or_editions_differ_the_declaration_says_so(p, changes):
    t = tiling(p, **changes)
    for declared in rules():
        effective, letter = (
            [asked(declared, t, p, edition, reading) for edition in EDITIONS]
            for reading in READINGS
        )
        shown = explain(declared.id)
        if effective != letter:
            assert "ocumented reading" in shown or "ffective reading only" in shown, declared.id
        if effective[0] != effective[1] or letter[0] != letter[1]:
            assert "edition" in shown or "001" in declared.text, declared.id


def whole(name, value):
    """Round a base block up to whole fractals."""
    return -(-value // 16) * 16 if name.startswith("base") else value


@examples(300)
@given(requests(), CHANGES, st.sampled_from(tuple(EDITIONS)), st.sampled_from(READINGS), st.data())
def test_what_grows_never_shrinks(p, changes, edition, reading, data):
    given_tiling = tiling(p, **{n: whole(n, max(value, 1)) for n, value in changes.items()})
    more = {
        name: whole(name, getattr(given_tiling, name) + data.draw(st.integers(0, 500)))
        for name in data.draw(st.sets(st.sampled_from(sorted(GROWING)), min_size=1))
    }
    for declared in rules():
        if declared.grows:
            small, large = (
                declared.measure(RuleCase(t, p, p.chip_record, edition, reading))
                for t in (given_tiling, replace(given_tiling, **more))
            )
            assert (small is None) == (large is None)
            if small is not None:
                assert small.relation in {"<=", "<"}
                assert small.used <= large.used
                assert small.limit == large.limit
                plain = replace(given_tiling, mxTypePara=PLAIN)
                least = declared.measure(RuleCase(plain, p, p.chip_record, edition, reading))
                assert least.used <= small.used


@examples(300)
@given(requests(), CHANGES, st.sampled_from(tuple(EDITIONS)), st.data())
def test_what_counts_sees_only_how_many_shares_there_are(p, changes, edition, data):
    t = tiling(p, **{n: max(value, 1) for n, value in changes.items()})
    extents = {"singleCoreM": p.m, "singleCoreN": p.n, "singleCoreK": p.shared_k}
    moved = {}
    for name, extent in extents.items():
        number = -(-extent // getattr(t, name))
        least = -(-extent // number)
        most = extent + 40 if number == 1 else -(-extent // (number - 1)) - 1
        moved[name] = data.draw(st.integers(least, most))
        assert -(-extent // moved[name]) == number
    for declared in rules():
        if declared.counts:
            one, other = (
                declared.measure(RuleCase(x, p, p.chip_record, edition))
                for x in (t, replace(t, **moved))
            )
            assert one is not None
            assert (one.used, one.limit, one.relation) == (other.used, other.limit, other.relation)


CAPACITIES = {
    "L0A-CAPACITY": ("baseM", "baseK", "dbL0A"),
    "L0B-CAPACITY": ("baseN", "baseK", "dbL0B"),
    "L0C-CAPACITY": ("baseM", "baseN", "dbL0C"),
    "L1-CAPACITY": ("baseM", "baseN", "baseK", "depthA1", "depthB1"),
    "BIAS-TABLE-CAPACITY": ("baseN",),
}


@pytest.mark.parametrize("name", CAPACITIES)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("edition", EDITIONS)
def test_capacities_grow_with_their_fields_only(name, reading, edition):
    for p in (problem(bias="float32"), problem(a="int8", bias="int32", trans_a=True)):
        used = {}
        for field, value in tiling(p).to_json().items():
            more = replace(tiling(p), **{field: 4 * value + 64})
            case = RuleCase(more, p, B3, edition, reading)
            used[field] = rule_named(name).measure(case).used
        least = rule_named(name).measure(RuleCase(tiling(p), p, B3, edition, reading)).used
        assert {field for field, value in used.items() if value > least} == set(CAPACITIES[name])
        assert min(used.values()) == least


@pytest.mark.parametrize("name", CAPACITIES)
def test_the_letter_never_counts_more_than_a_kernel_needs(name):
    for p in (problem(bias="float16"), problem(a="int8", bias="int32", trans_a=True)):
        for changes in ({}, {"baseM": 48, "baseN": 48, "baseK": 48}):
            measures = [
                rule_named(name).measure(RuleCase(tiling(p, **changes), p, B3, "000", reading))
                for reading in READINGS
            ]
            assert measures[0].used >= measures[1].used
            assert measures[0].unit == measures[1].unit == "B"
            assert measures[0].limit == measures[1].limit or name == "L1-CAPACITY"
