"""The critical path by hand, what every path has in common, and bytes over links."""

from dataclasses import replace

import pytest

import cubecore
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.timing.critical_path import critical_path
from cubecore.timing.launch import time_launch
from cubecore.timing.pipes.queues import NAMES
from cubecore.workflows.calibration.measured_points import published
from cubecore.workflows.calibration.validate import case_of
from timing.clock import ROUND, fetch, load, mad, raises, waits
from timing.test_launch import flat, launch
from workflows.command import cli


def path_of(*templates, on=ROUND):
    """Return the critical path of a flat program on one core, from its start at cycle 100."""
    (group,) = time_launch(launch(*flat(*templates)), on, record=1000).groups
    return group, group.path


def told(path):
    return [(step.pipe, step.start - 100, step.end - 100) for step in path.steps]


def test_one_product_waits_for_its_issue():
    """Issued in cycle 1; 1 + 9 + 50 cycles on the Cube."""
    _, path = path_of(mad())
    assert told(path) == [("M", 1, 61)]
    assert path.cycles == {"start-up": 101, "M": 60}
    assert path.complete


def test_products_in_a_row_wait_for_each_other():
    _, path = path_of(mad(), mad(160), mad())
    assert told(path) == [("M", 1, 61), ("M", 61, 80), ("M", 80, 90)]


def test_a_flag_leads_to_the_pipe_that_raised_it():
    """A move of 8 + 30 from cycle 1, a product of 60 behind it."""
    _, path = path_of(load(), raises("MTE1", "M"), waits("MTE1", "M"), mad())
    assert told(path) == [("MTE1", 1, 39), ("M", 39, 99)]


def test_what_ends_in_time_is_not_on_the_path():
    """The second move, of 38 cycles, ends while the Cube has 60 + 5 x 19 cycles to go."""
    _, path = path_of(
        *(load(), raises("MTE1", "M"), waits("MTE1", "M"), mad(), *[mad(160)] * 5),
        *(load(), raises("MTE1", "M", 1), waits("MTE1", "M", 1), mad()),
    )
    assert [pipe for pipe, _, _ in told(path)] == ["MTE1", *["M"] * 7]


def test_a_load_hands_over_when_its_data_is_there():
    """Asked for in 10 + 8 cycles from 1 on; the first byte of device memory takes 1000."""
    _, path = path_of(fetch(), raises("MTE2", "MTE1"), waits("MTE2", "MTE1"), load())
    (first, second) = told(path)
    assert first[:2] == ("MTE2", 1)
    assert first[2] == second[1] >= 1000
    assert second[0] == "MTE1"


def test_a_slow_scalar_unit_is_on_the_path():
    """500 cycles and an issue between two products of 60; the second one has a head again."""
    slow = replace(ROUND, scalar_step_cycles={"MDL": 500})
    _, path = path_of(mad(), ScalarWork(step="MDL"), mad(), on=slow)
    assert told(path) == [("S", 1, 503), ("M", 503, 563)]
    assert path.cycles == {"start-up": 101, "S": 502, "M": 60}


def test_a_full_queue_leads_to_what_made_room():
    """Two places: the move is issued when the fourth product of 19 cycles starts."""
    short = replace(ROUND, pipe_queue_depth=2)
    slow = replace(short, l1_to_l0_head_cycles=1000)
    _, path = path_of(*[mad(160)] * 6, load(), on=slow)
    products = [("M", 1, 70), ("M", 70, 89), ("M", 89, 108), ("M", 108, 108)]
    assert told(path) == [*products, ("S", 108, 109), ("MTE1", 109, 1117)]


PROBLEMS = (
    {"m": 512, "n": 512, "k": 1024},
    {"m": 300, "n": 77, "k": 2000, "a": "int8"},
    {"m": 512, "n": 640, "k": 512, "bias": "float32"},
    {"m": 640, "n": 640, "k": 640, "template": "NORM"},
    {"m": 700, "n": 900, "k": 300, "unit_flag": True},
    {"m": 512, "n": 512, "k": 512, "launch": "mix"},
    {"m": 512, "n": 512, "k": 512, "chip": "Ascend950PR_9589"},
)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.thinned(6)
def test_a_path_covers_the_run_from_its_start_to_its_end(problem):
    timeline = cubecore.time(problem, record=10**6).timeline
    for group in timeline.groups:
        path = group.path
        assert path.complete
        assert sum(path.cycles.values()) == group.end_cycles == path.steps[-1].end
        for one, following in zip(path.steps, path.steps[1:], strict=False):
            assert one.start <= one.end == following.start
        lanes = {pipe: [s for s in group.segments if s.pipe == pipe] for pipe in NAMES}
        for step in path.steps:
            if step.number is not None:
                own = lanes[step.pipe][step.number]
                assert (own.name, own.start) == (step.name, step.start)
    slowest = max(timeline.groups, key=lambda group: group.end_cycles)
    assert timeline.to_json()["critical_path"] == slowest.path.to_json()


def test_a_part_of_a_run_has_a_path_of_that_part():
    part = cubecore.time(PROBLEMS[0], record=50).timeline
    for group in part.groups:
        assert not group.path.complete
        assert group.path.steps[-1].end == max(s.done for s in group.segments)
    none = cubecore.time(PROBLEMS[0]).timeline
    assert none.critical is None
    assert "critical_path" not in none.to_json()
    assert critical_path([], [], {}) is None


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.thinned(4)
def test_recording_changes_no_cycle_and_waits_are_the_stalls(problem):
    whole = cubecore.time(problem, record=10**6).timeline
    assert whole.cycles == cubecore.time(problem).timeline.cycles
    found = {}
    for group in whole.groups:
        cores = len(group.cores)
        for wait in group.aside:
            assert wait.start <= wait.end
            key = wait.pipe, wait.name
            found[key] = found.get(key, 0) + (wait.end - wait.start) * cores
    cores = sum(len(group.cores) for group in whole.groups)
    assert problem.get("launch") == "mix" or {
        (s.pipe, s.reason): s.cycles for s in whole.stalls
    } == {
        key: total // cores
        for key, total in found.items()
        if total // cores and (key[0] != "S" or key[1].startswith(("queue", "flag")))
    }


def test_bytes_over_links_are_those_of_the_run():
    timeline = cubecore.time(m=2048, n=2048, k=2048).timeline
    target = cubecore.chip("Ascend910B3")
    links = {link.name: link for link in timeline.links}
    seconds = max(group.end_cycles for group in timeline.groups) / target.frequency_hz
    assert links["L2 to L1"].bytes == timeline.read_bytes
    assert links["device memory to L2"].bytes == timeline.hbm_read_bytes
    assert links["L0C to L2"].bytes == timeline.written_bytes == 2048 * 2048 * 4
    for link in timeline.links:
        assert link.bytes_per_second == pytest.approx(link.bytes / seconds)
        assert 0 < link.share < 1
    cores = sum(len(group.cores) for group in timeline.groups)
    peak = target.l2_read_bytes_per_cycle * cores * target.frequency_hz
    assert links["L2 to L1"].peak_bytes_per_second == peak
    assert [link["link"] for link in timeline.to_json()["links"]] == list(links)


def test_a_vector_kernels_links_are_those_of_ub():
    (point,) = [p for p in published() if p.id == "asc_vadd_a2_case1"]
    case = case_of(point)
    names = [link.name for link in time_launch(case.launch(), case.chip).links]
    assert names == ["device memory to L2", "L2 to UB", "UB to L2"]


def test_the_command_shows_the_path_where_it_is_asked_for():
    words = ("time", "--m", 512, "--n", 512, "--k", 1024)
    plain, asked = cli(*words), cli(*words, "--critical-path")
    assert asked.out.startswith(plain.out)
    path = cubecore.time(m=512, n=512, k=1024, record=10**6).timeline.critical
    rows = [line.split() for line in asked.out[len(plain.out) :].splitlines() if line]
    assert rows[0] == ["Critical", "path,", "cycles", "on"]
    longest = sorted(path.cycles.items(), key=lambda part: -part[1])
    assert [row[:2] for row in rows[1:]] == [[name, f"{cycles:,}"] for name, cycles in longest]
    made = cli(*words, "--critical-path", "--json").json
    assert made["critical_path"] == path.to_json()
