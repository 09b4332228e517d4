"""Signals between cores, in time; all expectations are worked out from the round chip's numbers."""

from dataclasses import replace

import pytest

from cubecore.errors import DeadlockError, RequestError
from cubecore.isa.mte.copies import CopyGmToCbuf, CopyUbufToGm
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Loop, Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.timing.launch import time_launch
from timing.clock import HERE, ROUND, issue, mad

HEARD = 500
CHIP = replace(ROUND, cross_core_cycles=HEARD)
START, LAUNCH = 100, 1000
FIRST, NEXT = 60, 10  # cycles of a mad that M waited for, and of one right behind another


def tell(on="S", mode=2, flag=3):
    return FftsCrossCoreSync(on=on, mode=mode, flag_id=flag)


def hear(flag=3):
    return WaitFlagDev(flag_id=flag)


def body(*steps):
    return tuple(s if isinstance(s, Loop) else issue(s) for s in steps)


def times(cores, chip=CHIP, full=False):
    """Return the end of each core, by (core, part), from the cores' start on."""
    made = {steps: Program(body(*steps), name=str(n)) for n, steps in enumerate({*cores.values()})}
    programs = tuple(CoreProgram(core, made[s], {}, sub) for (core, sub), s in cores.items())
    line = time_launch(Launch((), programs), chip, full=full)
    assert line.cycles == LAUNCH + max(group.end_cycles for group in line.groups)
    return line


def ends(line):
    """Return (AIC or AIV, how many, end from the cores' start) of each group."""
    return sorted((g.part.rstrip("01"), len(g.cores), g.end_cycles - START) for g in line.groups)


def test_a_signal_follows_its_pipe_and_takes_its_time():
    """The AIC's mad ends at 1 + 60; its AIVs hear of it 500 cycles later."""
    line = times({(0, 0): (mad(), tell("M")), (0, 1): (hear(),), (0, 2): (hear(),)})
    assert ends(line) == [("AIC", 1, 1 + FIRST)] + [("AIV", 1, 1 + FIRST + HEARD)] * 2
    assert {(s.pipe, s.reason): s.cycles for s in line.stalls}[
        "AIV S", "cross-core flag 3"
    ] == 1 + FIRST + HEARD - 1
    assert line.pipes == {"AIC S": 100, "AIC M": FIRST, "AIV S": 100}  # S: until they start
    assert line.limited_by == "start-up"


def test_an_aic_hears_its_two_aivs_together():
    early, late = (tell(),), (mad(), mad(), mad(), tell("M"))
    line = times({(0, 0): (hear(),), (0, 1): early, (0, 2): late})
    assert ends(line)[0] == ("AIC", 1, 1 + FIRST + 2 * NEXT + HEARD)


def test_the_first_core_may_wait_for_a_later_one():
    """AIV1, walked last, tells the AIC, which only then tells both."""
    line = times(
        {(0, 0): (hear(1), tell()), (0, 1): (tell(flag=1), hear()), (0, 2): (tell(flag=1), hear())}
    )
    assert ends(line) == [("AIC", 1, 1 + HEARD + 1), *[("AIV", 1, 2 * (1 + HEARD))] * 2]


def test_signals_are_counted():
    """The second wait takes the second signal, even where both came before the first wait."""
    line = times(
        {(0, 0): (tell(), mad(), tell("M")), (0, 1): (hear(), hear()), (0, 2): (hear(), hear())}
    )
    assert ends(line)[1:] == [("AIV", 1, 2 + FIRST + HEARD)] * 2


def test_all_cores_of_a_kind_wait_for_the_slowest():
    slow, quick = (mad(), tell("M", 0), hear()), (tell("M", 0), hear())
    line = times({(0, 0): slow, (1, 0): quick, (2, 0): quick})
    assert ends(line) == [("core", 1, 1 + FIRST + HEARD), ("core", 2, 1 + FIRST + HEARD)]


def test_only_ai_cores_that_are_alike_in_all_parts_are_one_group():
    """Of three AIVs with one program, those of the core whose AIC is slow wait longer."""
    slow, quick, aiv = (mad(), mad(), tell("M")), (mad(), tell("M")), (hear(),)
    line = times(
        {(c, s): aiv if s else (quick, quick, slow)[c] for c in range(3) for s in range(3)}
    )
    quick_end, slow_end = 1 + FIRST + HEARD, 1 + FIRST + NEXT + HEARD
    aivs = [end for end in ends(line) if end[0] == "AIV"]
    assert aivs == [("AIV", 1, slow_end)] * 2 + [("AIV", 2, quick_end)] * 2


@pytest.mark.parametrize("rounds", [1, 2, 7, 100])
def test_turns_that_cores_take(rounds):
    """AIC and AIVs answer each other; a round is a mad that M waited for and two signals.

    The AIC issues the mad and its signal (2 cycles), which follows the mad; the AIVs hear it,
    answer a cycle later, and the AIC goes on.
    """
    aic = Loop(Var("i", 0), Expr(rounds), body(mad(), tell("M", flag=1), hear(2)))
    aiv = Loop(Var("i", 0), Expr(rounds), body(hear(1), tell("S", flag=2)))
    cores = {(0, 0): (aic,), (0, 1): (aiv,), (0, 2): (aiv,)}
    each = 1 + FIRST + HEARD + 1 + HEARD
    line, full = times(cores), times(cores, full=True)
    if rounds == 100:
        assert line.limited_by == "AIC S waiting for cross-core flag 2"
    assert ends(line)[0] == ("AIC", 1, rounds * each)
    assert ends(line) == ends(full)
    assert line.issued == rounds * (3 + 2 * 2)


@pytest.mark.parametrize(("read", "from_memory"), [("workspace", 0), ("other", 512)])
def test_what_the_other_kind_of_core_has_written_is_in_l2(read, from_memory):
    written, given = Var("workspace", 0), Var(read, 0)
    store = Issue(CopyUbufToGm(n_burst=1, len_burst=16), (Expr.of(written), Expr(0)), HERE)
    load = Issue(CopyGmToCbuf(n_burst=1, len_burst=16), (Expr(0), Expr.of(given)), HERE)
    aiv = Program((store, issue(tell("MTE3"))), (written,), "aiv")
    aic = Program((issue(hear()), load), (given,), "aic")
    tensors = (TensorSpec("workspace", 1024), TensorSpec("other", 1024))
    cores = (
        CoreProgram(0, aic, {given: (read, 0)}),
        *(CoreProgram(0, aiv, {written: ("workspace", 512 * i)}, 1 + i) for i in range(2)),
    )
    line = time_launch(Launch(tensors, cores), CHIP)
    assert (line.read_bytes, line.hbm_read_bytes) == (512, from_memory)


def test_cores_that_wait_for_each_other_for_ever():
    with pytest.raises(DeadlockError) as caught:
        times({(0, 0): (hear(1), tell()), (0, 1): (hear(2), tell()), (0, 2): (tell(),)})
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 0 AIC waits for flag 1, core 0 AIV0 waits for "
        "flag 2"
    )


def test_a_chip_without_a_measured_signal():
    with pytest.raises(RequestError, match=r"^Round\.cross_core_cycles must be known for timing"):
        times({(0, 0): (tell("S", 0), hear())}, replace(CHIP, cross_core_cycles=None))
