"""The report opens in a browser, draws everything, asks for nothing and trusts no name."""

import json
import re
from dataclasses import fields, replace

import pytest
from click.testing import CliRunner

from cubecore.chips import chip, chip_names
from cubecore.chips.model import Chip
from cubecore.cli.commands import main
from cubecore.frontends.kernels.session import KernelRun
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.reports.html.charts.occupancy import occupancy
from cubecore.reports.html.charts.roofline import roofline
from cubecore.reports.html.core_map import MAX_CELLS, core_map
from cubecore.reports.html.facts import RELIABILITY, USED_FACTS
from cubecore.reports.html.page import (
    SHOWN_INSTRUCTIONS,
    embed,
)
from cubecore.reports.html.slack import slack
from cubecore.tiling.model.core_grid import CoreBlock
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.model import RuleCase
from cubecore.workflows.scripts.script import TimedLaunch
from cubecore.workflows.time import time
from reports.browser import browser, chromium
from reports.cases import BIASED, HOSTILE, LARGE, RAGGED, SMALL, hostile, timed

PROBLEMS = (SMALL, RAGGED, BIASED)
NAMESPACE = "http://www.w3.org/2000/svg"
LANES = "[...document.querySelectorAll('canvas.lanes')]"


def case_of(of):
    return RuleCase(of.tiling, of.request.problem, of.request.chip)


# --- the data


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_every_rule_is_there_once_and_holds_or_does_not_apply(problem):
    rows = slack(case_of(timed(**problem)))
    assert sorted(row["rule"] for row in rows) == sorted(rule.id for rule in rules())
    assert all(row["holds"] in (True, None) for row in rows)
    shares = [row["share"] for row in rows if row["share"] is not None]
    assert shares == sorted(shares, reverse=True)
    assert 0 < max(shares) <= 1


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_buffers_hold_what_the_capacity_rules_count(problem):
    case = case_of(timed(**problem))
    rules_by_id = {rule.id: rule for rule in rules()}
    names = {"L1": "L1", "L0A": "L0A", "L0B": "L0B", "L0C": "L0C", "BiasTable": "BIAS-TABLE"}
    for buffer in occupancy(case):
        measure = rules_by_id[f"{names[buffer['name']]}-CAPACITY"].measure(case)
        assert buffer["used"] == (0 if measure is None else measure.used)
        end = 0
        for part in buffer["parts"]:
            assert part["start"] >= end
            end = part["start"] + part["size"]
        assert end <= buffer["size"]


@pytest.mark.parametrize("problem", [*PROBLEMS, LARGE], ids=str)
def test_the_product_is_under_its_roof(problem):
    of = timed(**problem)
    found = roofline(of.request.problem, of.request.chip, of.timeline)
    assert found["tflops"] <= found["peak"]
    assert found["tflops"] == pytest.approx(found["peak"] * of.timeline.utilisation)
    l2 = found["points"][-1]
    assert found["tflops"] <= l2["intensity"] * found["bands"][-1]["tbps"]
    for point in found["points"]:
        assert point["intensity"] * point["bytes"] == pytest.approx(
            2 * problem["m"] * problem["n"] * problem["k"]
        )


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 5), (100, 1), (40, 70)])
def test_the_map_has_every_core_in_few_cells(m, n):
    blocks = [CoreBlock(i, i % m * 16, i // m * 16, 16, 16) for i in range(m * n)]
    found = core_map(blocks, [range(m * n)])
    assert sum(cell["blocks"] for cell in found["cells"]) == m * n
    assert len(found["cells"]) <= MAX_CELLS**2
    assert found["aggregated"] == (max(m, n) > MAX_CELLS)
    assert sum((c["m1"] - c["m0"]) * (c["n1"] - c["n0"]) for c in found["cells"]) == 256 * m * n


def test_facts_are_fields_and_their_tags_are_explained():
    assert set(USED_FACTS) <= {field.name for field in fields(Chip)}
    tags = {fact.reliability for name in chip_names() for fact in chip(name).sources.values()}
    assert tags <= set(RELIABILITY)


@pytest.mark.parametrize("text", [HOSTILE, "<!--", "]]>", "\u2029", "\ud800"])
def test_embedded_json_holds_any_text_and_ends_no_element(text):
    found = embed({"name": text})
    assert json.loads(found) == {"name": text}
    assert not re.search("[<>&\u2028\u2029]", found)


def test_the_page_is_one_small_file():
    page = timed(**LARGE).page()
    assert len(page.encode()) < 5e6
    assert set(re.findall(r"https?://[^\"'\s;]+", page)) == {NAMESPACE}
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)


def test_equal_products_give_equal_pages():
    assert timed(**SMALL).page() == timed(**SMALL).page()


def test_the_timeline_is_whole_or_says_what_it_holds():
    small = timed(**SMALL).page_data()["timeline"]
    assert [group["complete"] for group in small["groups"]] == [True]
    large = timed(**LARGE).page_data()["timeline"]
    assert [(g["shown"], g["complete"]) for g in large["groups"]] == [
        (SHOWN_INSTRUCTIONS, False) for _ in timed(**LARGE).timeline.groups
    ]
    unrecorded = timed(0, **SMALL).page_data()["timeline"]
    assert [(g["shown"], g["complete"]) for g in unrecorded["groups"]] == [(0, False)]


# --- the command line


def test_time_writes_both_files(tmp_path):
    report, trace = tmp_path / "r.html", tmp_path / "t.json"
    options = ["time", "--m", "64", "--n", "64", "--k", "64"]
    plain = CliRunner().invoke(main, options)
    done = CliRunner().invoke(main, [*options, "--report", str(report), "--trace", str(trace)])
    assert (done.exit_code, done.stdout, done.stderr) == (0, plain.stdout, "")
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "t.json"]


@pytest.mark.parametrize("option", ["--report", "--trace"])
def test_a_path_that_cannot_be_written_is_refused_before_any_work(option, tmp_path, monkeypatch):
    monkeypatch.setattr("cubecore.workflows.time.time", lambda **_: pytest.fail("work was done"))
    path = tmp_path / "none" / "file"
    options = ["time", "--m", "64", "--n", "64", "--k", "64", option, str(path)]
    done = CliRunner().invoke(main, options)
    assert done.exit_code == 2
    assert done.stderr == (f"cannot write {option} {path}: no such file or directory\n")


def test_one_file_cannot_be_both(tmp_path):
    path = str(tmp_path / "x")
    options = ["time", "--m", "64", "--n", "64", "--k", "64", "--report", path, "--trace", path]
    done = CliRunner().invoke(main, options)
    assert done.exit_code == 2
    assert done.stderr == f"--trace must name another file than --report, got {path}\n"


# --- in a browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    program = chromium()
    if program is None:
        pytest.skip("no chromium on this machine: the report is not opened")
    with browser(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def open_report(page, tmp_path):
    def opened(of, **options):
        path = tmp_path / "report.html"
        path.write_text(of.page(**options), "utf-8")
        page.open(path)
        return page

    return opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("problem", [*PROBLEMS, LARGE], ids=str)
def test_it_opens_quietly_and_draws_everything(problem, scheme, page, tmp_path):
    of = timed(**problem)
    path = tmp_path / "report.html"
    path.write_text(of.page(), "utf-8")
    page.open(path, scheme=scheme)
    assert page.console == []
    assert page.requests == [path.as_uri()]
    wanted = [min(len(g.segments), SHOWN_INSTRUCTIONS) for g in of.timeline.groups]
    assert page.ask(f"{LANES}.map((c) => Number(c.dataset.segments))") == wanted
    assert page.ask(f"{LANES}.map((c) => Number(c.dataset.drawn))") == wanted
    rows = [row for row in slack(case_of(of)) if row["holds"] is not None]
    assert page.ask("document.querySelectorAll('.rule[data-holds=true]').length") == len(rows)
    assert page.ask("document.querySelectorAll('.buffer').length") == 5
    assert page.ask("document.querySelectorAll('#roofline circle').length") == 2
    assert page.ask("document.querySelectorAll('#map rect').length") == of.tiling.usedCoreNum
    assert page.ask("document.documentElement.scrollWidth") <= 1400
    painted = page.ask(
        f"{LANES}.every((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height)"
        ".data.some((v) => v > 0))"
    )
    assert painted


def test_what_is_cut_is_said_on_the_page(open_report):
    text = "document.getElementById('timeline').textContent"
    assert re.search(r"complete, \d+ instructions;", open_report(timed(**SMALL)).ask(text))
    shown = f"the first {SHOWN_INSTRUCTIONS:,} instructions"
    assert shown in open_report(timed(**LARGE)).ask(text)


@pytest.mark.parametrize("problem", [SMALL, LARGE], ids=["microseconds", "milliseconds"])
def test_the_head_has_the_time_and_the_interval_that_the_text_has(problem, open_report):
    of = timed(**problem)
    head = open_report(of).ask("document.getElementById('head').textContent")
    lines = of.text.splitlines()
    (line,) = [line for line in lines if line.startswith("80% interval ")]
    assert line in head
    (duration,) = [line.split(" (")[0] for line in lines if "cycles), limited by" in line]
    assert duration.endswith("ms" if problem is LARGE else " us")
    assert duration in head


def test_hostile_names_stay_names(open_report):
    page = open_report(hostile(timed(**SMALL)), tiling_from=HOSTILE)
    assert page.console == []
    assert page.ask("document.scripts.length") == 2
    assert page.ask("document.images.length") == 0
    assert page.ask("document.getElementById('tiling-from').textContent").endswith(HOSTILE)
    for place in ("timeline", "stalls", "head"):
        assert HOSTILE in page.ask(f"document.getElementById('{place}').textContent")


def show_lanes(page):
    """Scroll to the timeline; return the first group's left, top and width in the window."""
    page.ask("document.getElementById('timeline').scrollIntoView()")
    page.ask(f"const first = {LANES}[0].getBoundingClientRect()")
    return page.ask("[first.left, first.top, first.width]")


def test_hover_names_the_instruction_and_its_times(open_report):
    of = timed(**SMALL)
    page = open_report(of)
    group = of.timeline.groups[0]
    segment = next(s for s in group.segments if s.pipe == "M")
    left, top, width = show_lanes(page)
    lane, low, high, margin = page.ask(
        "[clock.groups[0].lanes.findIndex((l) => l.pipe === 'M'), view.from, view.to, LEFT]"
    )
    middle = (segment.start + segment.end) / 2
    x = left + margin + (width - margin) * (middle - low) / (high - low)
    page.mouse("mouseMoved", x, top + lane * page.ask("LANE + GAP") + 8)
    text = page.ask("document.getElementById('tip').textContent")
    assert text.startswith(segment.name)
    assert f"start {segment.start:,}, end {segment.end:,} cycles" in text
    assert f"{segment.end - segment.start} cycles = " in text
    page.mouse("mouseMoved", x, top - 60)
    assert page.ask("document.getElementById('tip').hidden")


def test_an_instruction_is_told_with_its_operand_tile_and_step_along_k(open_report):
    of = timed(**SMALL)
    page = open_report(of)
    group, t = of.timeline.groups[0], of.tiling
    steps = -(-min(t.singleCoreK, t.Ka) // t.baseK)
    tiles, rest = divmod(group.started["M"], steps)
    assert rest == 0
    told = page.ask(
        "clock.groups[0].lanes.flatMap((lane) => lane.from.map((_, place) => "
        "[lane.pipe, ...describe({ lane, place })]))"
    )
    lanes = [row for row in told if row[0] == "M"]
    assert [row[2] for row in lanes] == [
        f"tile {tile + 1} of {tiles}, K step {step + 1} of {steps}"
        for tile in range(tiles)
        for step in range(steps)
    ]
    by_pipe = {(row[0], row[1].split()[-1]) for row in told if row[0] != "M"}
    assert by_pipe == {("MTE2", "A"), ("MTE2", "B"), ("MTE1", "A"), ("MTE1", "B"), ("FIX", "C")}
    stores = [row for row in told if row[0] == "FIX"]
    assert [row[2] for row in stores] == [f"tile {n + 1} of {tiles}" for n in range(tiles)]
    assert any(row[3].startswith("waited for flag M -> FIX ") for row in stores)


def test_signals_are_drawn_when_asked_for(open_report):
    page = open_report(timed(**SMALL))
    picture = f"{LANES}[0].toDataURL()"
    before = page.ask(picture)
    button = "[...document.querySelectorAll('button')].find((b) => b.textContent === 'signals')"
    page.ask(f"{button}.click()")
    assert page.ask(f"{button}.getAttribute('aria-pressed')") == "true"
    assert page.ask(picture) != before
    page.ask(f"{button}.click()")
    assert page.ask(picture) == before


def test_wheel_zooms_about_the_pointer_and_drag_moves(open_report):
    page = open_report(timed(**LARGE))
    left, top, width = show_lanes(page)
    x, y = left + width / 2, top + 30
    view = "[view.from, view.to]"
    low, high = page.ask(view)
    at = page.ask(f"timeAt({LANES}[0], {{ clientX: {x} }}, view)")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    low_in, high_in = page.ask(view)
    assert high_in - low_in < high - low
    assert page.ask(f"timeAt({LANES}[0], {{ clientX: {x} }}, view)") == pytest.approx(at, rel=1e-6)
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    page.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    low_moved, high_moved = page.ask(view)
    assert low_moved > low_in
    assert high_moved - low_moved == pytest.approx(high_in - low_in)
    assert page.console == []


def test_what_would_help_is_a_panel_where_it_was_asked_for(open_report):
    page = open_report(time(m=256, n=320, k=512, advise=True))
    rows = "[...document.querySelectorAll('#changes tbody tr')].map((r) => r.textContent)"
    told = page.ask(rows)
    changes = time(m=256, n=320, k=512, advise=True).changes
    assert len(told) == len(changes.tried)
    for row, change in zip(told, changes.tried, strict=True):
        assert change.kind in row
        assert change.what in row
    text = page.ask("document.getElementById('changes').textContent")
    assert all(f"{kind.kind} ({kind.reason})" in text for kind in changes.untried)
    assert page.console == []
    page = open_report(timed(**SMALL))
    assert page.ask("document.getElementById('changes')") is None


def test_lanes_of_the_scalar_unit_and_of_waits_are_hidden_until_asked_for(open_report):
    of = timed(**BIASED)
    page = open_report(of)
    groups = page.ask("clock.groups.map((g) => g.aside.map((l) => l.label))")
    for labels, group in zip(groups, of.timeline.groups, strict=True):
        waits = {s.pipe for s in group.aside if s.pipe != "S" and s.end > s.start}
        assert {label.split()[0] for label in labels if label.endswith("waits")} >= waits
        assert "S work" in labels
    height = f"{LANES}.map((c) => c.clientHeight)"
    press = "[...document.querySelectorAll('button')].find((b) => b.textContent === '{}').click()"
    before = page.ask(height)
    page.ask(press.format("inside of functions, scalar unit and waits"))
    after = page.ask(height)
    lane = page.ask("LANE + GAP")
    assert [b + lane * len(labels) for b, labels in zip(before, groups, strict=True)] == after
    page.ask(press.format("inside of functions, scalar unit and waits"))
    assert page.ask(height) == before
    assert page.console == []


def test_the_critical_path_is_marked_where_it_is_asked_for(open_report):
    of = timed(**SMALL)
    page = open_report(of)
    (group,) = of.timeline.groups
    marks = page.ask("clock.groups[0].lanes.map((l) => [l.pipe, [...l.marks]])")
    for pipe, numbers in marks:
        own = [step.number for step in group.path.steps if step.pipe == pipe]
        assert sorted(numbers) == sorted(own)
    red = "[...document.querySelectorAll('canvas.lanes')][0].getContext('2d')"
    colours = f"""(() => {{ const c = {LANES}[0], x = {red}.getImageData(0, 0, c.width, c.height);
      let found = 0; for (let i = 0; i < x.data.length; i += 4) {{
        if (x.data[i] > 150 && x.data[i + 1] < 60 && x.data[i + 2] < 60) found++; }}
      return found; }})()"""
    assert page.ask(colours) == 0
    button = "[...document.querySelectorAll('button')].find((b) => b.textContent === '{}')"
    page.ask(button.format("critical path") + ".click()")
    assert page.ask(colours) > 0
    assert page.ask(button.format("critical path") + ".getAttribute('aria-pressed')") == "true"


def test_links_and_the_path_are_panels(open_report):
    of = timed(**RAGGED)
    page = open_report(of)
    rows = "[...document.querySelectorAll('#{} tbody tr')].map((r) => r.textContent)"
    links = page.ask(rows.format("links"))
    assert len(links) == len(of.timeline.links)
    for row, link in zip(links, of.timeline.links, strict=True):
        assert row.startswith(link.name)
    parts = page.ask(rows.format("critical"))
    assert len(parts) == len(of.timeline.critical.cycles)
    longest = max(of.timeline.critical.cycles, key=of.timeline.critical.cycles.get)
    assert parts[0].startswith(longest)


def test_printing_is_in_light_colours_and_leaves_the_page_as_it_was(open_report, tmp_path):
    page = open_report(timed(**SMALL))
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert not page.ask("document.documentElement.hasAttribute('data-print')")
    assert page.console == []


def test_a_launch_of_ones_own_kernel_opens_without_the_panels_of_products(page, tmp_path):
    hostile_file = Location("</script><b>k.py", 3, "add")
    finding = SanitizerFinding("race-raw", HOSTILE, "vadd", hostile_file, "core 0 AIV0", 7)
    line = timed(**SMALL).timeline
    run = KernelRun(
        kernel="add",
        blocks=8,
        chip=chip("Ascend910B3"),
        findings=(finding,),
        issued=100,
        engine="reference",
        wall_s=0.1,
        traces={},
        tensors=(),
    )
    path = tmp_path / "report.html"
    path.write_text(TimedLaunch(run, line).page(), "utf-8")
    page.open(path)
    assert page.console == []
    assert page.requests == [path.as_uri()]
    sections = "[...document.querySelectorAll('main section')].map((s) => s.id)"
    common = [
        *("why", "findings", "timeline", "memory", "links", "stalls", "critical", "cores"),
        "facts",
    ]
    assert page.ask(sections) == common
    assert HOSTILE in page.ask("document.getElementById('findings').textContent")
    assert page.ask("document.scripts.length") == 2
    shown = TimedLaunch(replace(run, findings=()), line)
    path.write_text(shown.page([TimedLaunch(run, line), shown]), "utf-8")
    page.open(path)
    rows = "[...document.querySelectorAll('#launches tbody tr')].map((r) => r.textContent)"
    assert [row[-1] for row in page.ask(rows)] == ["1", "0"]
    assert page.ask("document.querySelectorAll('#launches b').length") == 1
    assert "None." in page.ask("document.getElementById('findings').textContent")
