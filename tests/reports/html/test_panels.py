"""Panels of the page: the verdict, bytes between memories, cores, and the timeline's search."""

from dataclasses import replace

import pytest

from cubecore.reports.html.core_bars import MOST_BARS, core_bars
from cubecore.reports.html.memory_diagram import memory_diagram
from cubecore.reports.html.why import launch_verdict
from cubecore.tiling.cost.closed_form import predict
from cubecore.timing.records import CoreTime
from cubecore.workflows.operators.operators import time_operator
from reports.browser import browser, chromium
from reports.cases import BIASED, LARGE, RAGGED, SMALL, timed

QUESTIONS = [
    "What sets the time?", "What runs when?", "Where do the bytes go?", "How full are the links?",
    "Is it bound by memory or by the Cube?", "How busy is each pipe?",
    "How far is it from the lower bound?", "What do the pipes wait for?",
    "What does the end wait for?", "Do the cores end together?",
    "Which core computes which block of C?", "Which tiling is it?",
    "How full are the buffers of a core?", "Which rules come close to their limits?",
    "Facts and assumptions",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    program = chromium()
    if program is None:
        pytest.skip("no chromium on this machine: the report is not opened")
    with browser(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def open_page(page, tmp_path):
    def opened(text, **options):
        path = tmp_path / "report.html"
        path.write_text(text, "utf-8")
        page.open(path, **options)
        return page

    return opened


# --- the data


@pytest.mark.parametrize("problem", [SMALL, RAGGED, BIASED, LARGE], ids=str)
def test_edges_have_the_bytes_of_the_links_and_operands_add_up(problem):
    of = timed(**problem)
    line, tiling = of.timeline, of.tiling
    closed = predict(tiling, of.request.problem, of.request.chip).bytes
    made = of.page_data()["memory"]
    edges = {(edge["from"], edge["to"]): edge["bytes"] for edge in made["edges"]}
    assert edges["GM", "L2"] == line.hbm_read_bytes
    assert edges["L2", "L1"] == line.read_bytes
    assert edges["L0C", "L2"] == line.written_bytes
    assert edges["L1", "L0A"] == closed["L1->L0A"] * tiling.usedCoreNum
    read = sum(operand["read_bytes"] for operand in made["operands"])
    missed = sum(operand["missed_bytes"] for operand in made["operands"])
    assert read == line.read_bytes
    assert missed == pytest.approx(line.hbm_read_bytes, rel=0.02)
    assert {operand["operand"] for operand in made["operands"]} >= {"A", "B"}
    for operand in made["operands"]:
        rate = 1 - operand["missed_bytes"] / operand["read_bytes"]
        assert operand["l2_hit_rate"] == pytest.approx(rate)


def test_an_operator_moves_between_l2_and_ub():
    line = time_operator("softmax", "640x512").timeline
    edges = {(edge["from"], edge["to"]) for edge in memory_diagram(line)["edges"]}
    assert edges == {("GM", "L2"), ("L2", "UB"), ("UB", "L2")}
    assert [operand.hit_rate for operand in line.operands] == [0]


def test_each_core_has_a_bar_unless_there_are_many():
    line = timed(**RAGGED).timeline
    made = core_bars(line, 10)
    cores = sorted(core for group in line.groups for core in group.cores)
    assert [row["cores"] for row in made["rows"]] == [[core] for core in cores]
    ends = {core: group.end_cycles for group in line.groups for core in group.cores}
    busy = {core: group.busy_cycles for group in line.groups for core in group.cores}
    for row in made["rows"]:
        (core,) = row["cores"]
        assert row["end"] == ends[core]
        assert row["busy"] == busy[core][row["pipe"]]
        assert row["busy"] == max(cycles for pipe, cycles in busy[core].items() if pipe != "S")
    assert made["end"] == max(ends.values())


def test_equal_cores_are_one_bar_where_there_are_many():
    line = timed(**SMALL).timeline
    many = CoreTime("p", tuple(range(MOST_BARS + 1)), 100, {"S": 90, "M": 50})
    (row,) = core_bars(replace(line, groups=(many,)), 0)["rows"]
    assert (row["cores"], row["pipe"], row["busy"]) == ([*range(MOST_BARS + 1)], "M", 50)


def test_the_verdict_of_a_launch_names_its_busiest_pipe_and_that_ones_wait():
    line = time_operator("softmax", "640x512").timeline
    said = launch_verdict(line)
    pipes = {pipe: busy for pipe, busy in line.pipes.items() if pipe != "S"}
    busiest = max(pipes, key=pipes.get)
    assert f" set by {line.limited_by}. {busiest} is the busiest pipe, with " in said
    assert said.endswith("%.")


# --- in a browser


def test_a_card_has_one_question_and_the_verdict_comes_first(open_page):
    page = open_page(timed(**SMALL).page())
    heads = "[...document.querySelectorAll('main h2')].map((h) => h.textContent)"
    assert page.ask(heads) == QUESTIONS


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_diagram_and_the_bars_are_drawn(open_page, width, scheme):
    of = timed(**RAGGED)
    page = open_page(of.page(), width=width, scheme=scheme)
    assert page.console == []
    texts = "[...document.querySelectorAll('#memory svg text')].map((t) => t.textContent)"
    shown = page.ask(texts)
    assert {"GM", "L2", "L1", "L0A", "L0B", "L0C", "Cube"} <= set(shown)
    assert len([text for text in shown if text.endswith("%")]) == len(of.timeline.links)
    rows = "[...document.querySelectorAll('#memory tbody tr')].map((r) => r.cells[0].textContent)"
    assert page.ask(rows) == [operand.name for operand in of.timeline.operands]
    bars = page.ask("document.querySelectorAll('.core').length")
    assert bars == sum(len(group.cores) for group in of.timeline.groups)
    assert page.ask("document.documentElement.scrollWidth") <= width


def test_idle_cores_are_counted(open_page):
    page = open_page(timed(**SMALL).page())
    assert "19 of 20 AI Cores have no work." in page.ask(
        "document.getElementById('cores').textContent"
    )


def test_a_long_run_says_what_of_it_is_drawn(open_page):
    told = "document.getElementById('recorded').textContent"
    said = open_page(timed(**LARGE).page()).ask(told)
    assert said.startswith("Recorded: the first 4.9% of the run. ")
    assert open_page(timed(**SMALL).page()).ask("document.getElementById('recorded')") is None


def test_an_instruction_is_found_by_its_name(open_page):
    of = timed(**SMALL)
    page = open_page(of.page())
    (group,) = of.timeline.groups
    hits = [s for s in group.segments if "mad" in s.name]
    field = "document.querySelector('input[type=search]')"
    press = f"{field}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}))"
    page.ask(f"{field}.value = ' MAD '")
    told = "document.getElementById('selection').textContent"
    for number in range(1, min(len(hits), 3) + 1):
        page.ask(press)
        assert page.ask(told).startswith(f"{number} of {len(hits)}: mad, ")
        low, high = page.ask("[view.from, view.to]")
        segment = sorted(hits, key=lambda s: s.start)[number - 1]
        assert low <= segment.start < segment.end <= high
    page.ask(f"{field}.value = 'nothing so named'")
    page.ask(press)
    assert page.ask(told) == "no instruction that is shown has nothing so named"
    assert page.console == []


def test_a_selection_has_its_duration_and_its_instructions(open_page):
    of = timed(**SMALL)
    page = open_page(of.page(), height=1400)
    page.ask("document.getElementById('timeline').scrollIntoView()")
    left, top, width = page.ask(
        "(() => { const b = document.querySelector('canvas.lanes').getBoundingClientRect();"
        " return [b.left, b.top, b.width]; })()"
    )
    button = "[...document.querySelectorAll('button')].find((b) => b.textContent === 'measure')"
    page.ask(f"{button}.click()")
    before = page.ask("[view.from, view.to]")
    page.mouse("mousePressed", left + width * 0.4, top + 20, button="left", clickCount=1)
    page.mouse("mouseMoved", left + width * 0.8, top + 20, button="left", buttons=1)
    page.mouse("mouseReleased", left + width * 0.8, top + 20, button="left", clickCount=1)
    assert page.ask("[view.from, view.to]") == before  # it selects and does not move
    low, high = page.ask("[shown.range.from, shown.range.to]")
    inside = [s for s in of.timeline.groups[0].segments if s.end >= low and s.start < high]
    told = page.ask("document.getElementById('selection').textContent")
    assert told.startswith("selection: ")
    assert f"({round(high - low):,} cycles), {len(inside)} instructions" in told
    page.ask(f"{button}.click()")
    shift = {"button": "left", "modifiers": 8}
    page.mouse("mousePressed", left + width * 0.4, top + 20, clickCount=1, **shift)
    page.mouse("mouseMoved", left + width * 0.5, top + 20, buttons=1, **shift)
    page.mouse("mouseReleased", left + width * 0.5, top + 20, button="left", clickCount=1)
    assert page.ask("shown.range.to - shown.range.from") < high - low
    assert page.console == []
