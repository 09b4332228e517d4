"""A trace is Chrome JSON that says what the timeline says."""

import json
import re
from collections import defaultdict

import pytest

from cubecore.reports.lanes import PIPE_ORDER, groups, ranges
from cubecore.reports.trace import MAX_EVENTS, TRACED_INSTRUCTIONS, trace_bytes, trace_json
from reports.cases import BIASED, HOSTILE, LARGE, RAGGED, SMALL, hostile, timed

PROBLEMS = (SMALL, RAGGED, BIASED)


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


@pytest.mark.parametrize("problem", [*PROBLEMS, LARGE], ids=str)
def test_events_of_a_thread_follow_each_other_even_in_truncated_nanoseconds(problem):
    for events in by_thread(trace_json(timed(**problem), 5000)).values():
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
    cut = trace_json(timed(**LARGE), 1000)
    for group in cut["otherData"]["groups"]:
        assert group["instructions"] == 1000
        assert not group["complete"]
        assert 0 < group["recorded_until_cycle"] < group["end_cycle"]
    whole = trace_json(timed(**SMALL))
    assert [group["complete"] for group in whole["otherData"]["groups"]] == [True]


def test_the_default_stays_small():
    data = trace_bytes(timed(**LARGE))
    per_event = len(data) / sum(g["instructions"] for g in json.loads(data)["otherData"]["groups"])
    assert per_event * max(MAX_EVENTS, TRACED_INSTRUCTIONS) < 20e6


def test_names_stay_names():
    trace = json.loads(trace_bytes(hostile(timed(**SMALL))))
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {event["name"] for event in events} == {HOSTILE}


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
