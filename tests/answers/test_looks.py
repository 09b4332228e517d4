"""Results print as their commands print them, in one line, and as cards of a notebook."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.presented.text import duration
from cubecore.tiling.model.tcubetiling import FIELDS
from workflows.command import cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

PROBLEM = {"m": 256, "n": 512, "k": 256}
WORDS = [word for name, value in PROBLEM.items() for word in (f"--{name}", value)]


@pytest.fixture(scope="module")
def results():
    plan = cubecore.plan(**PROBLEM)
    wrong = replace(plan.tiling, baseM=17)
    return {
        "plan": plan,
        "time": cubecore.time(plan),
        "run": cubecore.run(**PROBLEM),
        "check": cubecore.check(wrong, plan.problem),
        "check --repair": cubecore.check(wrong, plan.problem, repair=True),
        "compare": cubecore.compare(plan.tiling, plan.alternatives[0].tiling, plan.problem),
        "sweep": cubecore.sweep({"baseM": [16, 32, 17]}, **PROBLEM),
        "tune": cubecore.tune(wrong, plan.problem),
    }


NAMES = ("plan", "time", "run", "check", "check --repair", "compare", "sweep", "tune")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["plan", "time"])
def test_a_result_prints_as_its_command_does(results, name):
    assert f"{results[name]}\n" == cli(name, *WORDS).out


def test_findings_print_as_their_command_does(results, folder):
    tiling = replace(results["plan"].tiling, baseM=17)
    (folder / "t.bin").write_bytes(tiling.to_bytes())
    assert f"{results['check']}\n" == cli("check", "t.bin").out


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_one_short_line(results, name):
    line = repr(results[name])
    assert line.startswith(f"<{type(results[name]).__name__} ")
    assert line.endswith(">")
    assert len(line) < 400
    assert "\n" not in line


def test_a_line_has_what_decides(results):
    plan, best = results["plan"], results["plan"].predicted
    assert f"limited by {best.limited_by}" in repr(plan)
    assert f"base {plan.tiling.baseM} x {plan.tiling.baseN} x {plan.tiling.baseK}" in repr(plan)
    assert repr(results["check"]) == ("<Findings illegal: 1 rule broken: rules BASE-M-ALIGNMENT>")
    assert "without a time 1" in repr(results["sweep"])


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_a_table_and_a_picture(results, name):
    card = ET.fromstring(results[name]._repr_html_())
    assert card.find(".//table") is not None
    drawn = card.findall(".//{http://www.w3.org/2000/svg}svg")
    assert len(drawn) == (0 if name in {"run", "check", "check --repair"} else 1)


def test_the_card_of_a_tuned_tiling_has_the_rules_that_it_breaks(results):
    (finding,) = results["tune"].findings.findings
    card = ET.fromstring(results["tune"]._repr_html_())
    assert finding.message in [cell.text for cell in card.iter("td")]


def test_a_card_escapes_what_it_shows(results):
    chip = replace(results["plan"].request.chip, name="<b>&")
    plan = replace(results["plan"], request=replace(results["plan"].request, chip=chip))
    assert "<b>" not in plan._repr_html_()
    ET.fromstring(plan._repr_html_())


def test_a_plans_picture_has_the_block_of_each_core(results):
    plan = results["plan"]
    card = ET.fromstring(plan._repr_html_())
    assert len(card.findall(".//{http://www.w3.org/2000/svg}rect")) == len(plan.blocks)


def test_rows(results):
    plan = results["plan"]
    table = plan.to_rows()
    assert [row["cycles"] for row in table] == [
        plan.predicted.cycles, *(one.predicted.cycles for one in plan.alternatives)
    ]  # fmt: skip
    assert all({*FIELDS} <= set(row) for row in table)
    line = results["time"].timeline
    assert {row["pipe"]: row["cycles"] for row in results["time"].to_rows()} == line.pipes
    assert [row["baseM"] for row in results["sweep"].to_rows()] == [16, 32, 17]
    assert results["run"].to_rows() == []
    assert [row["rule"] for row in results["check"].to_rows()] == ["BASE-M-ALIGNMENT"]


@pytest.mark.parametrize("name", ["plan", "time", "compare", "tune"])
def test_the_page_of_a_result(results, folder, name):
    results[name].report("r.html")
    assert (folder / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_page_of_a_comparison_is_of_its_what_if_chip(results, folder):
    plan, slow = results["plan"], {"hbm_bytes_per_second": "1e11", "l2_bytes": "1000"}
    other = plan.alternatives[0].tiling
    comparison = cubecore.compare(plan.tiling, other, plan.problem, settings=slow)
    comparison.report("slow.html")
    page = (folder / "slow.html").read_text("utf-8")
    assert f'"{duration(comparison.first.timed.timeline.us)}"' in page


def test_what_cannot_be_is_one_sentence(results, folder, monkeypatch):
    with pytest.raises(RequestError) as error:
        results["run"].report("r.html")
    assert (
        str(error.value) == "a Run has no page; plans, times, comparisons, models, tuned "
        "tilings and validations do"
    )
    assert list(folder.iterdir()) == []
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(RequestError) as error:
        results["plan"].to_frame()
    assert str(error.value) == "to_frame needs pandas; pip install pandas"


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, "unknown us"),
        (0, "0 us"),
        (0.5, "0.5 us"),
        (999.4, "999.4 us"),
        (1000, "1 ms"),
        (1289, "1.289 ms"),
        (43_700, "43.7 ms"),
        (8_897_452_342, "8,897 s"),
    ],
)
def test_a_time_has_the_unit_that_fits(us, said):
    assert duration(us) == said


def test_a_launch_prints_what_it_did_and_what_was_found():
    @cubecore.kernel(types={"x": "float"})
    def reaches(core, x):
        core.asc_copy_gm2ub(core.ubuf("float", 64), x, 256)

    run = reaches[1](np.zeros(16, np.float32))
    assert repr(run) == (
        "<KernelRun reaches[1] on Ascend910B3: findings out-of-bounds, issued 1, engine lockstep>"
    )
    (found,) = run.findings
    title, *findings = str(run).splitlines()
    assert title.startswith("reaches[1] on Ascend910B3: 1 instruction in ")
    assert findings == [
        "Findings: 1",
        f"  out-of-bounds: asc_copy_gm2ub (copy_gm_to_ubuf) at {found.location.file}:"
        f"{found.location.line} reads bytes [0, 256) of x, which has 64 B: 192 B past its end; "
        "take fewer elements there, or start elsewhere (1 time; block 0 (core 0 AIV0))",
    ]
    ET.fromstring(run._repr_html_())


def test_a_validation_prints_shows_and_writes_its_page(folder):
    header = "Op Name,OP Type,Task Duration(us),Block Dim,Input Shapes,Input Data Types,"
    header += "Input Formats,Output Shapes,Output Data Types\n"
    row = 'dense,MatMulV3,44.1,20,"256,128;128,256",FLOAT16;FLOAT16,ND;ND,"256,256",FLOAT16\n'
    (folder / "op_summary.csv").write_text(header + row, "utf-8")
    answer = cubecore.validate("op_summary.csv", chip="Ascend910B3")
    printed = cli("validate", "--points", "op_summary.csv", "--chip", "Ascend910B3")
    assert f"{answer}\n" == printed.out
    assert repr(answer).startswith("<Validation predictions beside measurements: cases 1, ")
    assert "median error" in answer._repr_html_()
    answer.report("page.html")
    assert "row1_dense" in (folder / "page.html").read_text("utf-8")


def test_an_answer_of_many_is_short_and_an_explanation_prints_its_text():
    (answer,) = cubecore.plan_many([PROBLEM | {"label": "one"}])
    assert len(repr(answer)) < 400
    assert str(cubecore.explain("L0C-CAPACITY")).startswith("L0C-CAPACITY: ")


@cubecore.kernel(outputs="y")
def copied(core, x, y):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub_sync(tile, x, 256)
    core.asc_copy_ub2gm_sync(y, tile, 256)


def test_a_launch_is_timed_and_prints_shows_and_writes_its_page(folder):
    x = np.ones(64, np.float32)
    run = copied.using(trace=True)[1](x, np.empty_like(x))
    timed = cubecore.time_kernel(run)
    assert str(timed).startswith(f"copied[1] on Ascend910B3\n{duration(timed.timeline.us)} (")
    assert repr(timed).startswith("<TimedLaunch copied[1] on Ascend910B3: time ")
    assert "<svg" in timed._repr_html_()
    assert [row["pipe"] for row in timed.to_rows()] == list(timed.timeline.pipes)
    timed.report("page.html")
    assert "copied[1] on Ascend910B3" in (folder / "page.html").read_text("utf-8")
    assert run.to_rows() == []
    with pytest.raises(RequestError) as error:
        cubecore.time_kernel(copied[1](x, x.copy()))
    line = "a launch is timed by its instructions; launch it with trace=True"
    assert str(error.value) == line


def test_records_of_a_plan_have_cards_of_their_own(results):
    """Tables of what a reader set or asks for: no field that is 0, no key at its default."""
    plan = results["plan"]
    tiling = ET.fromstring(plan.tiling._repr_html_())
    shown = {row.find("th").text: row.find("td").text for row in tiling.iter("tr")}
    fields = {name: getattr(plan.tiling, name) for name in FIELDS}
    assert shown == {name: str(value) for name, value in fields.items() if value}
    problem = ET.fromstring(plan.problem._repr_html_())
    assert [row.find("th").text for row in problem.iter("tr")] == [*"mnkabc"]
    turned = ET.fromstring(replace(plan.problem, trans_b=True)._repr_html_())
    assert [row.find("th").text for row in turned.iter("tr")] == [*"mnkabc", "trans_b"]
    prediction = ET.fromstring(plan.predicted._repr_html_())
    assert f"{plan.predicted.cycles:,}" in [cell.text for cell in prediction.iter("td")]
    assert prediction.findall(".//{http://www.w3.org/2000/svg}svg")


def test_a_plans_picture_says_what_it_is_of(results):
    card = ET.fromstring(results["plan"]._repr_html_())
    texts = [text.text for text in card.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["C, 256 x 512: each cell the block of a core"]
