"""A trace is Chrome JSON that says what the timeline says."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.answers.compare.pair_page import pair_data, pair_report
from cubecore.errors import RequestError
from cubecore.reports.files import chrome_trace
from cubecore.reports.files.chrome_trace import MAX_EVENTS, require_openable
from cubecore.reports.files.trace_view import TRACED_INSTRUCTIONS, WHOLE, TraceView
from cubecore.reports.html.lanes import PIPE_ORDER, groups, ranges, signals
from cubecore.tiling.model.export import load_tiling
from cubecore.workflows.scripts.script import time_kernel
from cubecore.workflows.time import time
from frontends.cpp.cpp_kernels import needs_compiler
from reports.browser import browser, chromium
from reports.cases import BIASED, HOSTILE, LARGE, RAGGED, SMALL, hostile, timed
from workflows.command import BAD_REQUEST, assert_refused, cli, names_in

PROBLEMS = (SMALL, RAGGED, BIASED)


def trace_json(of, view=WHOLE):
    return of.trace(view)


def trace_bytes(of, view=WHOLE):
    return chrome_trace.trace_bytes(of.trace(view))


def nanoseconds(microseconds):
    """Return what Perfetto makes of a time: microseconds times 1000, truncated."""
    return int(microseconds * 1000)


def by_thread(trace):
    found = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    return found


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_every_segment_is_an_event_with_its_times(problem):
    of = timed(**problem)
    trace = json.loads(trace_bytes(of))
    hertz = of.request.chip.frequency_hz
    names = {
        (e["pid"], e["tid"]): e["args"]["name"].split()[0]
        for e in trace["traceEvents"]
        if e["name"] == "thread_name"
    }
    events = by_thread(trace)
    assert set(events) == set(names)
    for number, group in enumerate(of.timeline.groups):
        for (process, thread), found in events.items():
            if process != number:
                continue
            segments = [s for s in group.segments if s.pipe == names[process, thread]]
            assert [
                (e["name"], e["args"]["start_cycle"], e["args"]["end_cycle"]) for e in found
            ] == [(s.name, s.start, s.end) for s in segments]
            for event, segment in zip(found, segments, strict=True):
                assert abs(event["ts"] * hertz - segment.start * 1e6) <= 0.0006 * hertz
                wanted = (segment.end - segment.start) * 1e6 / hertz
                assert abs(event["dur"] - wanted) <= 0.0011
    assert sum(map(len, events.values())) == sum(len(g.segments) for g in of.timeline.groups)


@pytest.mark.parametrize(
    "problem", [*PROBLEMS, pytest.param(LARGE, marks=pytest.mark.sweep)], ids=str
)
def test_events_of_a_thread_follow_each_other_even_in_truncated_nanoseconds(problem):
    for events in by_thread(trace_json(timed(**problem), TraceView(5000))).values():
        end = 0
        for event in events:
            start = nanoseconds(event["ts"])
            assert start >= end
            assert event["dur"] >= 0
            end = start + nanoseconds(event["dur"])


def test_processes_are_groups_and_threads_are_pipes_in_a_fixed_order():
    of = timed(**RAGGED)
    trace = trace_json(of)
    meta = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    processes = [e["args"]["name"] for e in meta if e["name"] == "process_name"]
    assert processes == [group.label for group in groups(of.timeline, 1)]
    assert re.fullmatch(r"\d+ cores: 0\.\.\d+ matmul_\d+x77x3000", processes[0])
    threads = {e["args"]["name"]: e["tid"] for e in meta if e["name"] == "thread_name"}
    pipes = [name.split()[0] for name in sorted(threads, key=threads.__getitem__)]
    assert pipes == [pipe for pipe in PIPE_ORDER if pipe in pipes]


def test_what_is_cut_is_said():
    cut = trace_json(timed(**LARGE), TraceView(1000))
    for group in cut["otherData"]["groups"]:
        assert group["instructions"] == 1000
        assert not group["complete"]
        assert 0 < group["recorded_until_cycle"] < group["end_cycle"]
    whole = trace_json(timed(**SMALL))
    assert [group["complete"] for group in whole["otherData"]["groups"]] == [True]


def test_the_end_of_a_recording_is_marked_in_the_viewer():
    """An instant over the whole process, where the last recorded instruction ends."""
    cut = trace_json(timed(**LARGE), TraceView(1000))
    marks = [event for event in cut["traceEvents"] if event["ph"] == "i"]
    extents = cut["otherData"]["groups"]
    assert [mark["pid"] for mark in marks] == list(range(len(extents)))
    for mark, extent in zip(marks, extents, strict=True):
        share = extent["recorded_until_cycle"] / extent["end_cycle"]
        assert extent["recorded_share"] == share < 0.1
        assert mark["name"] == f"recording ends here: {share:.1%} of the run"
        assert (mark["s"], mark["args"]["cycle"]) == ("p", extent["recorded_until_cycle"])
        ends = [e["ts"] + e["dur"] for e in cut["traceEvents"]
                if e["ph"] == "X" and e["pid"] == mark["pid"]]  # fmt: skip
        assert mark["ts"] == pytest.approx(max(ends), abs=1e-3)
    whole = trace_json(timed(**SMALL))
    assert [event for event in whole["traceEvents"] if event["ph"] == "i"] == []
    assert [group["recorded_share"] for group in whole["otherData"]["groups"]] == [1]
    early = trace_json(timed(**LARGE), TraceView(1000, window=(0.0, marks[0]["ts"] / 2)))
    assert [event for event in early["traceEvents"] if event["ph"] == "i"] == []


def test_the_default_stays_small():
    data = trace_bytes(timed(**LARGE))
    per_event = len(data) / sum(g["instructions"] for g in json.loads(data)["otherData"]["groups"])
    assert per_event * max(MAX_EVENTS, TRACED_INSTRUCTIONS) < 20e6


def test_arrows_lead_from_who_raises_a_flag_to_who_waits_for_it():
    """The wait ends when the last result before it is there, and no later result is."""
    of = timed(**SMALL)
    trace = json.loads(trace_bytes(of))["traceEvents"]
    starts = {e["id"]: e for e in trace if e["ph"] == "s"}
    ends = {e["id"]: e for e in trace if e["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    pipes = {(e["pid"], e["tid"]): e["args"]["name"].split()[0]
             for e in trace if e["ph"] == "M" and e["name"] == "thread_name"}  # fmt: skip
    for key, start in starts.items():
        end = ends[key]
        _, raised, _, waited, _ = start["name"].split()
        assert pipes[start["pid"], start["tid"]] == raised
        assert pipes[end["pid"], end["tid"]] == waited
        assert start["ts"] < end["ts"]
    for group in groups(of.timeline, 10_000):
        for signal in signals(group):
            lane, place = signal.raised
            begin = group.lanes[signal.waited[0]].segments[signal.waited[1]].start
            done = [segment.done for segment in group.lanes[lane].segments]
            assert done[place] <= begin
            assert all(later > begin for later in done[place + 1 :])


def test_operands_and_waits_are_told():
    events = shown(json.loads(trace_bytes(timed(**SMALL))))
    operands = {(e["cat"], e["args"]["operand"]) for e in events if "operand" in e["args"]}
    assert operands == {("MTE2", "A"), ("MTE2", "B"), ("MTE1", "A"), ("MTE1", "B"), ("FIX", "C")}
    assert {e["args"]["waited_for"] for e in events if "waited_for" in e["args"]}


def test_a_counter_says_how_many_pipes_are_at_work():
    of = timed(**SMALL)
    trace = json.loads(trace_bytes(of))["traceEvents"]
    for number, group in enumerate(of.timeline.groups):
        counted = [e for e in trace if e["ph"] == "C" and e["pid"] == number]
        edges = sorted({cycle for s in group.segments for cycle in (s.start, s.end)})
        busy = [sum(s.start <= cycle < s.end for s in group.segments) for cycle in edges]
        changed = [now for before, now in pairwise([0, *busy]) if now != before]
        assert [event["args"]["pipes"] for event in counted] == changed
        assert changed[-1] == 0


def test_names_stay_names():
    trace = json.loads(trace_bytes(hostile(timed(**SMALL))))
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {event["name"] for event in events} == {HOSTILE}


# --- what of a launch


def shown(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


@pytest.mark.sweep
def test_more_instructions_can_be_asked_for():
    of = timed(record=60_000, **LARGE)
    held = trace_json(of, TraceView(50_000))["otherData"]["groups"]
    assert [group["instructions"] for group in held] == [50_000] * len(of.timeline.groups)


def test_only_some_cores():
    of = timed(**RAGGED)
    last = max(core for group in of.timeline.groups for core in group.cores)
    trace = trace_json(of, TraceView(cores=frozenset({last})))
    (group,) = [g for g in groups(of.timeline, 1) if last in g.time.cores]
    assert [g["name"] for g in trace["otherData"]["groups"]] == [group.label]
    with pytest.raises(RequestError) as caught:
        trace_json(timed(**SMALL), TraceView(cores=frozenset({7, 9})))
    assert str(caught.value) == "--trace-cores must name some of the cores 0, got 7, 9"


def test_only_a_window():
    of = timed(**RAGGED)
    whole = shown(trace_json(of))
    begin, end = 8.0, 12.5
    cut = shown(trace_json(of, TraceView(window=(begin, end))))
    inside = [e for e in whole if e["ts"] + e["dur"] > begin + 0.001 and e["ts"] < end - 0.001]
    assert 0 < len(inside) < len(whole)
    assert [e for e in inside if e not in cut] == []
    assert all(e["ts"] + e["dur"] > begin - 0.001 and e["ts"] < end + 0.001 for e in cut)


def test_waits_have_lanes_of_their_own_where_they_are_asked_for():
    of = timed(**BIASED)
    plain, asked = shown(trace_json(of)), shown(trace_json(of, TraceView(waits=True)))
    assert [e for e in asked if e["cat"] != "aside"] == plain
    for number, group in enumerate(of.timeline.groups):
        found = {
            (e["name"], e["args"]["start_cycle"], e["args"]["end_cycle"])
            for e in asked
            if e["cat"] == "aside" and e["pid"] == number
        }
        last = max(s.end for s in group.segments)
        lasting = [s for s in group.aside if s.start < last and s.start < s.end]
        assert found == {(s.name, s.start, s.end) for s in lasting}
    names = {
        e["args"]["name"]
        for e in trace_json(of, TraceView(waits=True))["traceEvents"]
        if e["name"] == "thread_name"
    }
    assert {"S work", "S waits", "M waits"} <= names


@pytest.mark.parametrize(
    "problem", [*PROBLEMS, pytest.param(LARGE, marks=pytest.mark.sweep)], ids=str
)
def test_a_trace_is_measured_before_it_is_made(problem, monkeypatch):
    of = timed(**problem)
    size = len(trace_bytes(of))
    monkeypatch.setattr("cubecore.reports.files.chrome_trace.MOST_BYTES", size // 2)
    with pytest.raises(RequestError) as caught:
        trace_bytes(of)
    told = re.fullmatch(
        r"--trace must take at most \d+ MB to be opened, got \d+ MB \(([\d,]+) events\); "
        r"(?:--trace-cores (\d+), or )?--trace-window (\d+\.\.\d+), keeps less",
        str(caught.value),
    )
    assert told is not None, str(caught.value)
    monkeypatch.setattr("cubecore.reports.files.chrome_trace.MOST_BYTES", 5 * size // 2)
    assert len(trace_bytes(of)) == size
    assert int(told[1].replace(",", "")) == len(shown(trace_json(of)))


def test_no_more_is_recorded_than_a_trace_can_hold(monkeypatch):
    """However many are asked for: the trace is refused, and the memory stays free."""
    assert TraceView(instructions=10**9).record < 2_000_000
    for module in ("chrome_trace", "trace_view"):
        monkeypatch.setattr(f"cubecore.reports.files.{module}.MOST_BYTES", 130 * 400)
    view = TraceView(instructions=10**9)
    run = time(m=2048, n=2048, k=2048, chip="Ascend910B3", record=view.record)
    assert max(len(group.segments) for group in run.timeline.groups) == 401
    with pytest.raises(RequestError, match="--trace must take at most"):
        trace_bytes(run, view)


@pytest.mark.parametrize(
    "problem", [*PROBLEMS, pytest.param(LARGE, marks=pytest.mark.sweep)], ids=str
)
def test_a_trace_is_refused_before_anything_is_recorded(problem, monkeypatch):
    """By as many events as it would hold, whose names alone are not counted."""
    view, plain = TraceView(instructions=10**9), time(**problem)
    of, chip = time(**problem, record=10**6), plain.request.chip
    events = shown(trace_json(of, view))
    size = 130 * len(events)
    monkeypatch.setattr("cubecore.reports.files.chrome_trace.MOST_BYTES", size)
    require_openable([plain.timeline], chip, view)
    monkeypatch.setattr("cubecore.reports.files.chrome_trace.MOST_BYTES", size - 1)
    with pytest.raises(RequestError) as caught:
        require_openable([plain.timeline], chip, view)
    assert f"got {size / 1e6:,.0f} MB ({len(events):,} events); " in str(caught.value)
    with pytest.raises(RequestError, match=f"{len(events):,} events"):
        trace_bytes(of, view)


def test_a_billion_instructions_are_refused_at_once(tmp_path):
    """A launch of days: the sentence says what keeps less, and no file is there."""
    path = tmp_path / "t.json"
    words = ("time", "--m", 65536, "--n", 65536, "--k", 65536, "--chip", "Ascend910B3")
    asked = (*words, "--cores", 20, "--trace-instructions", 10**9, "--trace", path)
    line = time(m=65536, n=65536, k=65536, chip="Ascend910B3", cores=20).timeline
    counts = [
        min(sum(count for pipe, count in group.started.items() if pipe != "S"), 10**9)
        for group in line.groups
    ]
    whole = [sum(c for p, c in group.started.items() if p != "S") for group in line.groups]
    hertz = 1.8e9
    ends = [
        group.end_cycles * 1e6 / hertz * count / of
        for group, count, of in zip(line.groups, counts, whole, strict=True)
    ]
    size = 130 * sum(counts)
    remedy = f"--trace-window 0..{max(ends) * 2e8 / size:.0f}"
    remedy = f"--trace-cores 0, or {remedy}" if len(counts) > 1 else remedy
    for more in ((), ("--report", tmp_path / "r.html", "--metrics", tmp_path / "m.json")):
        answer = cli(*asked, *more)
        assert answer.code == BAD_REQUEST
        assert answer.out == ""
        assert answer.err.splitlines() == [
            f"--trace must take at most 200 MB to be opened, got {size / 1e6:,.0f} MB"
            f" ({sum(counts):,} events); {remedy}, keeps less"
        ]
        assert names_in(tmp_path) == []


def test_a_window_far_too_large_is_refused_before_anything_is_recorded():
    """Twice of what can be opened, by an even spread; a small window is left to be measured."""
    line = time(m=65536, n=65536, k=65536, chip="Ascend910B3", cores=20)
    view = TraceView(instructions=10**9, window=(0.0, 1e6))
    with pytest.raises(RequestError, match=r"--trace-window 0\.\.\d+, keeps less"):
        require_openable([line.timeline], line.request.chip, view)
    require_openable([line.timeline], line.request.chip, replace(view, window=(0.0, 10.0)))


def test_a_trace_that_is_too_large_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("cubecore.reports.files.chrome_trace.MOST_BYTES", 1000)
    path = tmp_path / "t.json"
    answer = cli("time", "--m", 64, "--n", 64, "--k", 64, "--trace", path)
    assert answer.code == BAD_REQUEST
    assert answer.err.startswith("--trace must take at most 0 MB to be opened, got 0 MB (")
    assert names_in(tmp_path) == []


def test_the_commands_view(tmp_path):
    path = tmp_path / "t.json"
    words = ("time", "--m", 64, "--n", 64, "--k", 64, "--trace", path)
    view = ("--trace-cores", "0", "--trace-window", "0..5", "--trace-instructions", 4)
    assert cli(*words, *view, "--trace-waits").code == 0
    asked = TraceView(4, frozenset({0}), (0.0, 5.0), waits=True)
    assert path.read_bytes() == trace_bytes(timed(record=4, m=64, n=64, k=64), asked)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--trace-cores", "a"), "--trace-cores must be numbers of cores, such as 0,4..7, got 'a'"),
        (("--trace-window", "5"), "--trace-window must be microseconds, such as 0..250, got '5'"),
        (
            ("--trace-window", "9..5"),
            "--trace-window must be microseconds, such as 0..250, got '9..5'",
        ),
        (("--trace-window", "0..inf"),
         "--trace-window must be microseconds, such as 0..250, got '0..inf'"),
        (("--trace-instructions", 0), "--trace-instructions must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_views_that_are_none(tmp_path, options, line):
    words = ("time", "--m", 64, "--n", 64, "--k", 64)
    assert_refused(cli(*words, "--trace", tmp_path / "t.json", *options), line)
    alone = cli(*words, "--trace-waits")
    assert_refused(alone, "--trace-... needs --trace")


# --- two runs, and figures


def pair(tmp_path):
    """Two tilings of one product, in files."""
    problem = {"m": 256, "n": 320, "k": 512}
    words = [x for name, value in problem.items() for x in (f"--{name}", value)]
    for name, fix in (("a", []), ("b", ["--fix", "baseM=48", "--fix", "baseK=64"])):
        assert cli("plan", *words, *fix, "--out", tmp_path / f"{name}.json").code == 0
    return problem, words, tmp_path / "a.json", tmp_path / "b.json"


def test_two_runs_lie_on_one_axis(tmp_path):
    problem, words, a, b = pair(tmp_path)
    trace, report = tmp_path / "t.json", tmp_path / "r.html"
    answer = cli("compare", a, b, *words, "--trace", trace, "--report", report)
    assert answer.code == 0
    assert answer.out == cli("compare", a, b, *words).out
    runs = [time(tiling=load_tiling(str(f)), record=20_000, **problem) for f in (a, b)]
    made = json.loads(trace.read_text("utf-8"))
    names = [g["name"] for g in made["otherData"]["groups"]]
    expected = [
        f"{side}: {group.label}"
        for side, run in zip(("first", "second"), runs, strict=True)
        for group in groups(run.timeline, 1)
    ]
    assert names == expected
    segments = [len(g.segments) for run in runs for g in run.timeline.groups]
    assert [g["instructions"] for g in made["otherData"]["groups"]] == segments
    data = pair_data(*runs, "two", ("a", "b"), 5000)
    (group,) = data["timeline"]["groups"]
    labels = [lane["label"] for lane in group["lanes"]]
    assert labels == [f"{p} {i}" for p in ("MTE2", "MTE1", "M", "FIX") for i in (1, 2)]
    assert group["end"] == max(g.end_cycles for run in runs for g in run.timeline.groups)
    for lane in group["lanes"]:
        run = runs[int(lane["label"][-1]) - 1]
        slowest = max(run.timeline.groups, key=lambda g: g.end_cycles)
        own = [s for s in slowest.segments if s.pipe == lane["pipe"]]
        assert lane["length"] == [s.end - s.start for s in own]
    told = {name: values for name, *values in data["pair"]["rows"]}
    bases = [run.tiling.baseM for run in runs]
    assert told["baseM"] == [*map(str, bases), f"{bases[1] - bases[0]:+}"]
    times = [run.timeline.us for run in runs]
    assert told["time"][2] == f"{times[1] / times[0] - 1:+.1%}"
    assert "Which of the two runs is faster?" in report.read_text("utf-8")
    figures = tmp_path / "m"
    assert cli("compare", a, b, *words, "--metrics", figures).code == 0
    both = json.loads(figures.read_text("utf-8"))
    for side, run in zip(("first", "second"), runs, strict=True):
        assert both[side]["cycles"] == run.timeline.cycles
        assert both[side]["tiling"] == run.tiling.to_json()
        assert both[side]["roofline"]["tflops"] == run.timeline.tflops


def test_the_page_of_two_runs_opens(tmp_path):
    program = chromium()
    if program is None:
        pytest.skip("no browser")
    one, two = timed(**BIASED), timed(**RAGGED)
    path = tmp_path / "pair.html"
    path.write_text(pair_report(one, two, HOSTILE), "utf-8")
    with browser(program, tmp_path / "profile") as page:
        page.open(path)
        assert page.console == []
        sections = "[...document.querySelectorAll('main section')].map((s) => s.id)"
        assert page.ask(sections) == ["pair", "timeline"]
        assert HOSTILE in page.ask("document.getElementById('pair').textContent")
        drawn = "Number(document.querySelector('canvas.lanes').dataset.drawn)"
        assert page.ask(drawn) > 0


def test_figures_stand_in_a_file_of_their_own(tmp_path):
    path = tmp_path / "m.json"
    words = ("time", "--m", 256, "--n", 320, "--k", 512)
    answer = cli(*words, "--metrics", path, "--json")
    made = json.loads(path.read_text("utf-8"))
    assert {k: v for k, v in made.items() if k in answer.json} == answer.json
    assert set(made) - set(answer.json) == {"cubecore", "chip", "roofline"}
    assert {"links", "critical_path", "pipes", "stalls"} <= set(made)
    assert made["roofline"]["tflops"] == made["tflops"]
    same = f"--metrics must name another file than --trace, got {path}"
    assert_refused(cli(*words, "--metrics", path, "--trace", path), same)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1, 2, 5, 7, 8), "0..2, 5, 7..8"),
        (tuple(range(0, 40, 2)), "0, 2, 4, 6, 8, 10, ..."),
    ],
)
def test_ranges(numbers, text):
    assert ranges(numbers) == text


@needs_compiler
def test_a_vector_function_opens_into_its_instructions():
    """On the ports of the vector unit, inside of the function's time, each at its line."""
    file = Path(__file__).parents[2] / "advice" / "pairs" / "vf_chain.cpp"
    kernel = cubecore.load(file, trace=True, chip="Ascend950PR_9589").column_sums
    x, z = np.ones(1 << 15, np.float32), np.zeros(256, np.float32)
    launch = time_kernel(kernel[1](x, z), record=10)
    trace = chrome_trace.trace_json("sums", launch.run.chip, [("", launch.timeline)])
    events = [event for event in trace["traceEvents"] if event["ph"] in "MX"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    inside = [e for e in events if e["ph"] == "X" and lanes[e["tid"]].startswith("V ")]
    ports = {lanes[e["tid"]] for e in inside} - {"V (Vector unit)"}
    assert ports == {"V loads", "V stores", "V instructions 1", "V instructions 2"}
    whole, *_ = (e["args"] for e in inside if e["name"] == "vector_function")
    first = [e for e in inside if e["args"]["end_cycle"] <= whole["end_cycle"]][1:]
    assert all(e["args"]["start_cycle"] >= whole["start_cycle"] for e in first)
    adds = [e for e in first if e["name"] == "Add"]
    slow = [n for n, line in enumerate(file.read_text().splitlines(), 1) if "// slow" in line]
    assert len(adds) == 320
    assert {e["args"]["line"].rpartition(":")[2] for e in adds} == {str(slow[0])}
    waits = Counter(e["args"].get("waited_for", "") for e in adds)
    assert waits.most_common(1) == [(f"an operand: Add at line {slow[0]}", 312)]
