"""A chip file of one's own: what it replaces, what it keeps, and every way to get it wrong."""

import json
import pickle

import pytest

import cubecore
from cubecore.chips.model import FACT_FIELDS
from cubecore.errors import RequestError
from workflows.command import DONE, assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

MINE = """
base = "910B3"
name = "Mine"
[facts]
aic_count = 30
hbm_bytes_per_second = { value = 3.0e12, source = "data sheet", note = "of ours" }
cube_k = { int8 = 64 }
"""
SHAPE = ("--m", "1024", "--n", "1024", "--k", "512")
PROBLEM = {"m": 1024, "n": 1024, "k": 512}


@pytest.fixture
def mine(folder):
    (folder / "my.toml").write_text(MINE, encoding="utf-8")
    return "my.toml"


def test_facts_are_replaced_and_the_others_kept(mine):
    chip, base = cubecore.chip(mine), cubecore.chip("Ascend910B3")
    assert (chip.name, chip.arch) == ("Mine", base.arch)
    assert (chip.aic_count, chip.hbm_bytes_per_second) == (30, 3.0e12)
    assert chip.cube_k == {**base.cube_k, "int8": 64}
    for name in set(FACT_FIELDS) - {"aic_count", "hbm_bytes_per_second", "cube_k"}:
        assert getattr(chip, name) == getattr(base, name)
    fact = chip.sources["hbm_bytes_per_second"]
    assert (fact.source, fact.note, fact.reliability) == ("data sheet", "of ours", "OWN")
    assert chip.sources["aic_count"].source == mine
    assert chip.sources["l2_bytes"] == base.sources["l2_bytes"]


def test_a_file_without_facts_is_its_base(folder):
    (folder / "same.toml").write_text('base = "Ascend910B3"\n', encoding="utf-8")
    assert cubecore.chip("same.toml").name == "same"
    same, base = (cubecore.plan(**PROBLEM, chip=c) for c in ("same.toml", "Ascend910B3"))
    assert same.tiling == base.tiling
    assert same.predicted == base.predicted


@pytest.mark.thinned(3)
@pytest.mark.parametrize("verb", ["plan", "run", "time"])
def test_a_file_is_as_good_as_the_same_facts_set(mine, verb):
    """The table has no --set, so the Cube's rate of int8 is of no matter here."""
    settings = [f"--set={name}={value}" for name, value in
                (("aic_count", 30), ("hbm_bytes_per_second", 3.0e12))]  # fmt: skip
    ours = cli(verb, *SHAPE, "--chip", mine, "--json").json
    theirs = cli(verb, *SHAPE, *settings, "--json").json
    for answer in (ours, theirs):
        answer.get("problem", {}).pop("chip", None)
        for name in [name for name in answer if name.endswith("wall_s") or name == "peak_bytes"]:
            answer.pop(name)
    assert ours == theirs


@pytest.mark.parametrize(
    "words",
    [
        ("check", "t.json"),
        ("compare", "t.json", "t.json"),
        ("tune", "t.json"),
        ("chips",),
        ("explain", "mad"),
        ("sweep", "m=64,128", "--n", "64", "--k", "64"),
    ],
)
@pytest.mark.thinned(2)
def test_every_command_takes_it(mine, folder, words):
    tiling = cubecore.plan(**PROBLEM, chip=mine).tiling.to_json()
    (folder / "t.json").write_text(json.dumps(tiling), encoding="utf-8")
    assert cli(*words, "--chip", mine).code == DONE


def test_the_environment_s_chip_may_be_a_file(mine, monkeypatch):
    monkeypatch.setenv("CUBECORE_CHIP", mine)
    assert cubecore.plan(**PROBLEM).problem.chip == mine
    assert " on Mine\n" in cli("plan", *SHAPE).out


def test_it_is_what_the_file_says_now(mine, folder):
    first = cubecore.chip(mine)
    assert cubecore.chip(mine) is first
    (folder / mine).write_text(MINE.replace("30", "10"), encoding="utf-8")
    assert cubecore.chip(mine).aic_count == 10
    (folder / mine).write_text(MINE, encoding="utf-8")
    assert cubecore.chip(mine) is first


def test_a_store_does_not_answer_for_a_file_that_changed(mine, folder):
    def planned():
        (answer,) = cubecore.plan_many([{**PROBLEM, "chip": mine}], store="p.sqlite")
        return answer.to_json()["tiling"]["usedCoreNum"], answer.stored

    first = planned()
    assert planned() == (first[0], True)
    (folder / mine).write_text(MINE.replace("30", "4"), encoding="utf-8")
    assert planned() == (4, False)
    (folder / mine).unlink()
    with cubecore.Store.open("p.sqlite") as store:
        assert [plan.problem["chip"] for plan in store.plans()] == [mine, mine]
        assert store.damaged == 0


def test_resumed_answers_are_of_the_file_as_it_is(mine, folder):
    from cubecore.workflows.sweep.answers import SweepOptions
    from cubecore.workflows.sweep.queries import open_queries
    from cubecore.workflows.sweep.resume import signature

    (folder / "q.jsonl").write_text("{}\n", encoding="utf-8")
    with open_queries("q.jsonl") as file:
        first = signature(file, SweepOptions({}, 0), {"chip": mine})
        (folder / mine).write_text(MINE.replace("30", "4"), encoding="utf-8")
        assert signature(file, SweepOptions({}, 0), {"chip": mine}) != first


def test_a_plan_on_it_can_be_pickled(mine):
    plan = cubecore.plan(**PROBLEM, chip=mine)
    assert pickle.loads(pickle.dumps(plan)).to_json() == plan.to_json()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 'my.toml has no field base; base = "Ascend910B3" takes the facts of that SoC'),
        ("base = 3", "my.toml: base must be a name, got 3"),
        ('base = "910B9"', "my.toml: base must be the full name of a SoC, got '910B9'; "
         "cubecore chips lists them"),
        ('base = "you.toml"', "my.toml: base must be a SoC of the catalogue, got 'you.toml'"),
        ('base = "910B3"\nname = ""', "my.toml: name must be a name, got ''"),
        ('base = "910B3"\nl2_bytes = 3', "my.toml must have no keys but base, name and facts, got "
         "'l2_bytes'; facts stand under [facts]: l2_bytes"),
        ('base = "910B3"\nnames = "x"', "my.toml must have no keys but base, name and facts, got "
         "'names'; did you mean name?"),
        ('base = "910B3"\nfacts = 3', "my.toml: facts must be a table, got 3"),
        ('base = "910B3"\n[facts]\nl2_byte = 3', "my.toml: no chip field named l2_byte; did you "
         "mean l2_bytes?"),
        ('base = "910B3"\n[facts]\nxyzzy = 3', "my.toml: no chip field named xyzzy; cubecore "
         "chips Ascend910B3 lists them"),
        ('base = "910B3"\n[facts]\nl2_bytes = "x"', "my.toml: l2_bytes must be a whole number, "
         "got 'x'"),
        ('base = "910B3"\n[facts]\nl2_bytes = true', "my.toml: l2_bytes must be a whole number, "
         "got True"),
        ('base = "910B3"\n[facts]\nl2_bytes = 1.5', "my.toml: l2_bytes must be a whole number, "
         "got 1.5"),
        ('base = "910B3"\n[facts]\nl2_bytes = -1', "my.toml: l2_bytes must be from 0 to "
         "9007199254740992, got -1"),
        ('base = "910B3"\n[facts]\nl2_bytes = 0', "my.l2_bytes must be greater than 0, got 0"),
        ('base = "910B3"\n[facts]\nhbm_bytes_per_second = inf', "my.toml: hbm_bytes_per_second "
         "must be a whole number, got inf"),
        ('base = "910B3"\n[facts]\nl2_write_reach = nan', "my.toml: l2_write_reach "
         "must be from 0 to 9007199254740992, got nan"),
        ('base = "910B3"\n[facts]\nl2_bytes = {source = "x"}', "my.toml: l2_bytes has no field "
         "value"),
        ('base = "910B3"\n[facts]\nl2_bytes = {value = 3, unit = "B"}', "my.toml: l2_bytes must "
         "have value, source and note only, got 'unit'"),
        ('base = "910B3"\n[facts]\nl2_bytes = {value = 3, note = 3}', "my.toml: l2_bytes: note "
         "must be a text, got 3"),
        ('base = "910B3"\n[facts]\ncube_k = 3', "my.toml: cube_k must be a table of numbers, "
         "got 3"),
        ('base = "910B3"\n[facts]\ncube_k = {int8 = "x"}', "my.toml: cube_k.int8 must be a "
         "number, got 'x'"),
        ('base = "910B3"\n[facts]\nl1_user_bytes = 999999999', "my.l1_user_bytes must be at most "
         "l1_bytes = 524288 B, got 999999999"),
        ("base", "my.toml must be TOML, got Expected '=' after a key in a key/value pair (at end "
         "of document)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(folder, text, line):
    (folder / "my.toml").write_text(text, encoding="utf-8")
    assert_refused(cli("time", *SHAPE, "--chip", "my.toml"), line)


def test_a_file_that_cannot_be_read_is_one_line(folder):
    line = "cannot read none.toml: no such file"
    assert_refused(cli("plan", *SHAPE, "--chip", "none.toml"), line)
    (folder / "raw.toml").write_bytes(b"\xff\xfe")
    assert_refused(
        cli("plan", *SHAPE, "--chip", "raw.toml"),
        "raw.toml must be TOML, got bytes that are no UTF-8",
    )
    with pytest.raises(RequestError) as caught:
        cubecore.MultiCoreMatmulTiling("none.toml")
    assert str(caught.value) == line
