"""A tuned tiling: judged as check does, timed as time does, and changes that do what they say."""

import csv
import io
import json
from dataclasses import replace
from functools import cache

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.rules.checker import check_tiling
from cubecore.workflows.tune import LEAST_GAIN
from workflows.command import DONE, FOUND, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

SHAPE = {"m": 512, "n": 512, "k": 512}
CASES = {
    "shallow": (SHAPE, {"stepKa": 1, "stepKb": 1, "baseM": 48}),
    "narrow": ({"m": 128, "n": 2048, "k": 1024, "trans_b": True}, {"baseN": 64, "depthB1": 1}),
    "few cores": ({"m": 256, "n": 1024, "k": 512, "a": "int8"}, {"usedCoreNum": 4}),
    "bias": ({"m": 256, "n": 512, "k": 512, "bias": "float32"}, {"baseN": 32}),
}
every_case = pytest.mark.parametrize("name", CASES)


@cache
def planned(name):
    """Return the plan of a case, with the fields that make it slow."""
    shape, fix = CASES[name]
    return cubecore.plan(**shape, fix=fix)


@cache
def tuned_case(name):
    """Return what `tune` says of a case's tiling."""
    return cubecore.tune(planned(name).tiling, CASES[name][0])


@every_case
@pytest.mark.thinned(4)
def test_a_legal_tiling_is_timed_as_time_does(name):
    tuned, plan = tuned_case(name), planned(name)
    assert tuned.legal
    assert tuned.findings == cubecore.check(plan.tiling, CASES[name][0])
    assert tuned.timed.timeline == cubecore.time(CASES[name][0], tiling=plan.tiling).timeline
    assert tuned.best.tiling == cubecore.plan(CASES[name][0]).tiling


@every_case
@pytest.mark.thinned(4)
def test_each_change_is_legal_and_takes_what_it_says(name):
    tuned, shape = tuned_case(name), CASES[name][0]
    assert tuned.changes
    for change in tuned.changes:
        request = tuned.request
        assert not check_tiling(change.tiling, request.problem, request.chip).findings
        line = cubecore.time(shape, tiling=change.tiling).timeline
        assert (change.cycles, change.us) == (line.cycles, line.us)
        assert change.gain == pytest.approx(1 - line.cycles / tuned.timed.timeline.cycles)


@every_case
@pytest.mark.thinned(4)
def test_a_change_is_of_as_many_fields_as_it_says_and_keeps_the_rest(name):
    tuned = tuned_case(name)
    old = tuned.tiling.to_json()
    for change in tuned.changes:
        new = change.tiling.to_json()
        changed = [field for field in old if old[field] != new[field]]
        assert change.kind.split()[0] == str(len(changed))
        assert set(changed) <= set(PLANNED_FIELDS)
        assert change.what.split(", ") == [
            f"{field} {old[field]} -> {new[field]}" for field in PLANNED_FIELDS if field in changed
        ]


@every_case
@pytest.mark.thinned(4)
def test_more_fields_are_shown_where_they_save_more(name):
    best = tuned_case(name).timed.timeline.cycles
    for number in ("1 field", "2 fields", "3 fields"):
        some = [change.cycles for change in tuned_case(name).changes if change.kind == number]
        assert some == sorted(some)
        assert all(cycles <= (1 - LEAST_GAIN) * best for cycles in some)
        best = min([*some, best])


@pytest.mark.parametrize("name", ["shallow", "bias"])
@pytest.mark.thinned(4)
def test_no_single_value_is_faster(name):
    """Every value of every field is tried that could keep the rules, by the event model."""
    tuned, shape = tuned_case(name), CASES[name][0]
    request, t = tuned.request, tuned.tiling
    values = {
        "baseM": range(16, 513, 16), "baseN": range(16, 513, 16), "baseK": range(16, 513, 16),
        "stepKa": range(1, 33), "stepKb": range(1, 33), "depthA1": range(1, 65),
        "depthB1": range(1, 65), "iterateOrder": (0, 1), "dbL0A": (1, 2), "dbL0B": (1, 2),
        "dbL0C": (1, 2), "usedCoreNum": range(1, 21),
    }  # fmt: skip
    cycles = []
    for field, some in values.items():
        for value in some:
            changed = replace(t, **{field: value})
            if not check_tiling(changed, request.problem, request.chip).findings:
                cycles.append(cubecore.time(shape, tiling=changed).timeline.cycles)
    best = min(c.cycles for c in tuned.changes if c.kind == "1 field")
    assert best <= 1.01 * min(cycles)


def test_an_illegal_tiling_is_repaired_first():
    wrong = replace(planned("shallow").tiling, baseK=4096)
    tuned = cubecore.tune(wrong, SHAPE)
    assert not tuned.legal
    repaired = cubecore.check(wrong, SHAPE, repair=True).repair
    assert tuned.timed.tiling == tuned.findings.repair.tiling == repaired.tiling
    assert tuned.findings.repair.predicted.us == tuned.timed.timeline.us
    text = str(tuned)
    assert "illegal: " in text
    assert "\nAs repaired: " in text


def test_the_plan_is_not_beaten_by_itself():
    best = cubecore.plan(**SHAPE)
    tuned = cubecore.tune(best)
    assert tuned.best.tiling == best.tiling
    us = str(tuned).splitlines()[-1]
    assert us.startswith("The best plan takes ")
    assert us.endswith(": the planner knows none faster")


def test_fields_that_are_asked_for_are_kept():
    wanted = {"baseM": "48..64", "stepKa": "1..2"}
    tuned = cubecore.tune(planned("shallow").tiling, SHAPE, fix=wanted)
    assert tuned.changes
    for change in tuned.changes:
        assert 48 <= change.tiling.baseM <= 64
        assert change.tiling.stepKa in {1, 2}
    changes = [change.tiling for change in tuned_case("shallow").changes]
    assert any(t.baseM not in range(48, 65) or t.stepKa not in {1, 2} for t in changes)


def test_a_chip_that_cannot_be_timed_is_one_sentence():
    with pytest.raises(RequestError) as caught:
        cubecore.tune(planned("shallow").tiling, SHAPE, chip="Ascend310P3")
    assert str(caught.value) == (
        "time supports architectures 2201 and 3510; Ascend310P3 is 2002 (plan and check support it)"
    )


# --- the command

LOG = """[INFO] {0} usedCoreNum={1.usedCoreNum}, M={1.M}, N={1.N}, Ka={1.Ka}, Kb={1.Kb}
singleCoreM: {1.singleCoreM} singleCoreN: {1.singleCoreN} singleCoreK: {1.singleCoreK}
baseM {1.baseM} baseN {1.baseN} baseK {1.baseK} depthA1 {1.depthA1} depthB1 {1.depthB1}
stepM = {1.stepM}; stepN = {1.stepN}; stepKa = {1.stepKa}; stepKb = {1.stepKb}; isBias = 0;
iterateOrder={1.iterateOrder} dbL0A={1.dbL0A} dbL0B={1.dbL0B} dbL0C={1.dbL0C}
"""


@pytest.fixture
def log(folder):
    (folder / "mine.log").write_text(LOG.format("t", planned("shallow").tiling), encoding="utf-8")
    return "mine.log"


def test_the_command_takes_a_log_and_extents_from_it(log):
    answer = cli("tune", log, "--chip", "910b3")
    assert answer.code == DONE
    assert answer.err.startswith("mine.log, line 1: absent fields are 0: ")
    told = cli("tune", log, "--json").json
    assert told["legal"] is True
    assert told["changes"][0]["what"] == tuned_case("shallow").changes[0].what
    assert told["timed"]["cycles"] == tuned_case("shallow").timed.timeline.cycles
    assert told["best"]["tiling"] == tuned_case("shallow").best.tiling.to_json()
    rows = list(csv.DictReader(io.StringIO(cli("tune", log, "--csv").out)))
    assert rows[-1 - [row["kind"] for row in reversed(rows)].index("plan")]["us"]


def test_an_illegal_tiling_is_exit_code_1(folder):
    wrong = replace(planned("shallow").tiling, baseK=4096)
    (folder / "t.json").write_text(json.dumps(wrong.to_json()), encoding="utf-8")
    assert cli("tune", "t.json", "--report", "r.html").code == FOUND
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "L0A-CAPACITY" in page
    assert "t.json, repaired" in page


FULL_L1 = {
    "baseM": 128,
    "baseN": 256,
    "baseK": 64,
    "singleCoreM": 128,
    "singleCoreN": 896,
    "depthA1": 16,
    "stepKa": 16,
    "depthB1": 8,
    "stepKb": 4,
    "dbL0C": 1,
}
"""A tiling that fills L1, more than plans take of it."""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("base_n", [128, 256])
def test_nothing_that_is_printed_is_faster_than_the_best(base_n):
    shape = {"m": 512, "n": 4096, "k": 4096}
    start = cubecore.plan(shape, fix={"singleCoreM": 128, "singleCoreN": 896}, search="quick")
    given = replace(start.tiling, **FULL_L1) if base_n == 256 else start.tiling
    tuned = cubecore.tune(given, shape)
    best = tuned.best.predicted.cycles
    assert best == cubecore.time(shape, tiling=tuned.best.tiling).timeline.cycles
    shown = [tuned.timed.timeline.cycles, *(one.cycles for one in tuned.changes)]
    shown += [one.predicted.cycles for one in tuned.best.alternatives]
    assert best <= min(shown)
    assert tuned.best.predicted.us < 113


def test_advice_about_a_full_l1_does_not_contradict_itself():
    shape = {"m": 512, "n": 4096, "k": 4096}
    start = cubecore.plan(shape, fix={"singleCoreM": 128, "singleCoreN": 896}, search="quick")
    advice = cubecore.check(replace(start.tiling, **FULL_L1), shape).advice
    assert [one.message for one in advice] == [
        "L1 use = 524288 B is more than the 524032 B that the tiling library plans: measured to "
        "work, but leaves no room for anything else; a budget of 524032 B for L1 plans with less",
        "depthA1 = 16 is one step, which serialises MTE2 and MTE1: 32 does not fit L1, a shorter "
        "step in two buffers would",
    ]
