"""Time by source line: what each line of a launch takes, and that all lines add up to it."""

from dataclasses import replace

from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Location, Loop, Program
from cubecore.timing.launch import time_launch
from timing.clock import ROUND, assert_adds_up, fetch, load, mad, raises, waits

LINES = [Location("kernel.py", number, "kernel") for number in range(9)]
SLOT = Var("a", 0)


def at(line: int, template, *addresses) -> Issue:
    """Return a leaf of a line; operands without an address get 0."""
    places = [*addresses, *[0] * len(template.operands())][: len(template.operands())]
    return Issue(template, tuple(map(Expr.of, places)), LINES[line])


def launch_of(*body, cores: int = 1) -> Launch:
    program = Program(tuple(body), (SLOT,))
    shares = tuple(CoreProgram(i, program, {SLOT: ("t", i << 16)}) for i in range(cores))
    return Launch((TensorSpec("t", cores << 16),), shares)


def timed(*body, cores: int = 1):
    """Time a launch with its lines, skipping and in full, which must agree."""
    launch = launch_of(*body, cores=cores)
    timeline = time_launch(launch, ROUND, lines=True)
    full = time_launch(launch, ROUND, lines=True, full=True)
    assert replace(timeline, simulated_fraction=1.0) == full
    assert replace(timeline, lines=()) == time_launch(launch, ROUND)
    assert_adds_up(timeline)
    return {line.location: line for line in timeline.lines}


def test_lines_are_told_apart():
    """A load of 4 fractals takes 2 cycles each and 2, and 28 more on a pipe that had to wait."""
    lines = timed(at(1, load(4)), at(2, mad()), at(3, mad(k=64)))
    assert lines[LINES[1]].busy_cycles == {"MTE1": 2 * 4 + 2 + 28}
    assert lines[LINES[2]].busy_cycles == {"M": 1 + 9 + 50}
    assert lines[LINES[3]].busy_cycles == {"M": 4 + 9}
    assert [line.instructions for line in lines.values()].count(1) == 3


def test_a_stall_is_the_line_s_whose_instruction_waited():
    lines = timed(
        at(1, load(40)), at(2, raises("MTE1", "M")), at(3, waits("MTE1", "M")), at(4, mad())
    )
    [stall] = lines[LINES[4]].stalls
    assert (stall.pipe, stall.reason) == ("M", "flag MTE1 -> M 0")
    assert stall.cycles == lines[LINES[1]].busy_cycles["MTE1"] + 100 + 1  # from cycle 0 on
    assert lines[LINES[2]].stall_cycles == lines[LINES[3]].stall_cycles == 0


def test_a_full_queue_is_the_line_s_that_found_it_full():
    """The queue has 32 places: those before fill it without a wait."""
    first = [at(1, mad(k=4080)) for _ in range(33)]
    lines = timed(*first, at(2, mad(k=4080)), at(3, load()))
    assert [s.reason for s in lines[LINES[2]].stalls] == ["queue of M full"]
    assert not any(s.pipe == "S" for s in lines[LINES[3]].stalls)


def test_a_line_behind_a_wait_that_is_raised_later_keeps_its_cycles():
    """The product waits in its queue while later lines are issued, one of them on its own pipe."""
    lines = timed(
        at(1, waits("MTE1", "M")),
        at(2, mad(k=64)),
        at(3, mad()),
        at(4, load()),
        at(5, raises("MTE1", "M")),
    )
    assert lines[LINES[2]].busy_cycles == {"M": 4 + 9 + 50}
    assert lines[LINES[3]].busy_cycles == {"M": 1 + 9}


def test_skipped_periods_count():
    index = Var("i", 1)
    body = (at(1, fetch(), Expr.of(SLOT)), at(2, load()), at(3, mad()), at(3, mad()))
    lines = timed(Loop(index, Expr(1000), body), cores=3)
    counts = {n: lines[LINES[n]].instructions for n in (1, 2, 3)}
    assert counts == {1: 3000, 2: 3000, 3: 6000}
    assert lines[LINES[1]].bytes == 3 * 1000 * 16 * 32


def test_a_loop_of_one_leaf_and_loops_in_loops():
    outer, inner, alone = (Var(name, 1 + n) for n, name in enumerate("oia"))
    body = (
        at(1, load()),
        Loop(inner, Expr(70), (at(2, mad()), at(3, load()))),
        Loop(alone, Expr(50), (at(4, mad(k=32)),)),
    )
    lines = timed(at(5, mad()), Loop(outer, Expr(100), body))
    counts = {n: lines[LINES[n]].instructions for n in range(1, 6)}
    assert counts == {1: 100, 2: 7000, 3: 7000, 4: 5000, 5: 1}
    assert lines[LINES[4]].busy_cycles["M"] >= 5000 * (2 + 9)


def test_what_a_kernel_does_before_its_first_instruction_is_no_line_s():
    lines = timed(at(1, mad()))
    assert lines[None].busy_cycles == {"S": 100}
    assert lines[None].to_json()["file"] is None


def test_without_lines_there_are_none():
    assert time_launch(launch_of(at(1, mad())), ROUND).lines == ()
