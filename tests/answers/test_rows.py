"""Every answer with a table prints it as CSV: the figures of its JSON, a line for each row."""

import csv
import io
import json

import pytest

import cubecore
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from workflows.command import BAD_REQUEST, DONE, FOUND, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

SHAPE = ("--m", "256", "--n", "512", "--k", "256")
PROBLEM = {"m": 256, "n": 512, "k": 256}


def table(*words, code=DONE):
    answer = cli(*words, "--csv")
    assert answer.code == code
    return list(csv.DictReader(io.StringIO(answer.out)))


@pytest.fixture
def tiling(folder):
    (folder / "t.json").write_text(json.dumps(cubecore.plan(**PROBLEM).tiling.to_json()))
    return "t.json"


def test_a_plan_has_a_line_for_each_tiling():
    told = cli("plan", *SHAPE, "--json").json
    ranked = [told, *told["alternatives"]]
    rows = table("plan", *SHAPE)
    assert [float(row["us"]) for row in rows] == [one["predicted"]["us"] for one in ranked]
    for row, one in zip(rows, ranked, strict=True):
        assert {name: int(row[name]) for name in one["tiling"]} == one["tiling"]


def test_a_timing_has_a_line_for_each_pipe():
    told = cli("time", *SHAPE, "--json").json["pipes"]
    busy = {pipe: figures["busy_cycles"] for pipe, figures in told.items()}
    assert {row["pipe"]: int(row["cycles"]) for row in table("time", *SHAPE)} == busy


def test_a_sweep_has_a_line_for_each_point():
    words = ("sweep", "m=64,0,128", "--n", "64", "--k", "64")
    told = cli(*words, "--json").json["points"]
    rows = table(*words, code=FOUND)
    assert [row["m"] for row in rows] == ["64", "0", "128"]
    assert [row["us"] for row in rows] == ["" if p["us"] is None else str(p["us"]) for p in told]
    assert rows[1]["error"] == "m must be at least 1, got 0"


def test_findings_have_a_line_each(tiling, folder):
    wrong = {**json.loads((folder / tiling).read_text()), "baseK": 4096}
    (folder / "w.json").write_text(json.dumps(wrong))
    told = cli("check", "w.json", "--json").json["findings"]
    rows = table("check", "w.json", code=FOUND)
    assert [row["rule"] for row in rows] == [finding["rule"] for finding in told]
    assert table("check", tiling) == []


def test_a_comparison_has_two_lines(tiling):
    us = cubecore.time(**PROBLEM).timeline.us
    rows = table("compare", tiling, tiling)
    assert [(row["legal"], float(row["us"])) for row in rows] == [("true", us)] * 2


def test_chips_have_a_line_each_and_a_chip_one_for_each_fact():
    told = cli("chips", "--json").json["chips"]
    assert [row["name"] for row in table("chips")] == [chip["name"] for chip in told]
    facts = cli("chips", "Ascend910B3", "--json").json["facts"]
    rows = {row["field"]: row for row in table("chips", "Ascend910B3")}
    assert rows.keys() == facts.keys()
    assert json.loads(rows["cube_k"]["value"]) == facts["cube_k"]["value"]
    assert rows["l2_bytes"]["value"] == str(facts["l2_bytes"]["value"])


def test_a_script_has_a_line_for_each_launch(folder):
    (folder / "k.py").write_text(
        "import numpy as np\nimport cubecore\n\n\n@cubecore.kernel\ndef k(core, x):\n"
        "    core.pipe_barrier(core.PIPE_ALL) if hasattr(core, 'PIPE_ALL') else None\n\n\n"
        "k[1](np.zeros(16, np.float16))\nk[2](np.zeros(16, np.float16))\n"
    )
    rows = table("time", "k.py")
    assert [(row["kernel"], row["blocks"]) for row in rows] == [("k", "1"), ("k", "2")]


@pytest.mark.usefixtures("folder")
def test_a_store_is_listed_and_says_when_it_has_more():
    problems = [{**PROBLEM, "m": m} for m in (16, 32, 48)]
    list(cubecore.plan_many(problems, store="p.sqlite"))
    assert [row["m"] for row in table("store", "show", "p.sqlite")] == ["16", "32", "48"]
    shown = cli("store", "show", "p.sqlite", "--limit", "2").out
    assert shown.endswith("\nThe first 2 plans; --limit shows more\n")
    assert "The first" not in cli("store", "show", "p.sqlite", "--limit", "3").out


# --- queries

QUERIES = [
    {**PROBLEM, "label": "qkv"},
    {"m": 0, "n": 64, "k": 64, "label": "none"},
    {**PROBLEM, "m": 64},
    {**PROBLEM, "label": 3},
]


@pytest.fixture
def queries(folder):
    (folder / "q.jsonl").write_text("".join(f"{json.dumps(query)}\n" for query in QUERIES))
    return "q.jsonl"


def test_queries_have_labels_and_a_table(queries):
    rows = table("plan", "--queries", queries, "--alternatives", "0", code=FOUND)
    assert [row["label"] for row in rows] == ["qkv", "none", "", ""]
    plan = cubecore.plan(**PROBLEM)
    assert float(rows[0]["us"]) == plan.predicted.us
    for name in PLANNED_FIELDS:
        assert int(rows[0][name]) == getattr(plan.tiling, name)
    assert [row["error"] for row in rows] == [
        "", "m must be at least 1, got 0", "", "label must be a text, got 3",
    ]  # fmt: skip
    told = cli("plan", "--queries", queries, "--alternatives", "0").out.splitlines()
    assert [json.loads(line).get("label") for line in told] == ["qkv", "none", None, None]


@pytest.mark.usefixtures("folder")
def test_a_label_is_of_the_question_and_not_of_its_answer():
    """A stored answer is another question's too."""
    asked = [{**PROBLEM, "label": name} for name in ("a", "b")]
    list(cubecore.plan_many(asked[:1], store="p.sqlite"))
    answers = list(cubecore.plan_many([*asked, PROBLEM], store="p.sqlite"))
    assert [answer.label for answer in answers] == ["a", "b", None]
    assert all(answer.stored for answer in answers)
    records = [answer.to_json() for answer in answers]
    assert [record.pop("label", None) for record in records] == ["a", "b", None]
    assert records[0] == records[1] == records[2]


@pytest.mark.parametrize("words", [("plan", *SHAPE), ("chips",), ("time", *SHAPE)])
def test_two_forms_are_refused(words):
    answer = cli(*words, "--csv", "--json")
    assert answer.code == BAD_REQUEST
    assert answer.json["error"]["message"] == "--csv excludes --json"
