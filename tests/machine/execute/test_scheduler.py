"""The execution protocol: who runs when, flags between cores, deadlock, values that steer."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.errors import DeadlockError
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.tree import Branch, Issue, LoadScalar, Location, Loop, Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.machine.execute.core import FLUSH_AFTER, Core, CoreId
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.memory.buffers import GlobalMemory
from isa.bench import A2

HERE = Location("kernel.py", 3, "kernel")
INT = element_type("int32")
VADD = instruction_named("vadd")(dtype=INT)
BLOCK = {"n_burst": 1, "len_burst": 1}


class Script:
    """Bodies that write down what happens, in the order in which it does."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.tasks: list[Task] = []

    def core(self, core: int, sub: int, *steps) -> None:
        """Steps are words to write down, (signal, mode, flag) or (wait, flag), or functions."""

        def body(machine: Core) -> None:
            for step in steps:
                if isinstance(step, str):
                    self.seen.append(f"{core}.{sub} {step}")
                elif callable(step):
                    step(machine)
                elif step[0] == "signal":
                    sync = FftsCrossCoreSync(on="MTE3", mode=step[1], flag_id=step[2])
                    machine.record(sync, (), HERE)
                else:
                    machine.record(WaitFlagDev(flag_id=step[1]), (), HERE)

        self.tasks.append(Task(CoreId(core, sub), body))

    def run(self, gm: GlobalMemory | None = None):
        return run(A2, gm or GlobalMemory(), self.tasks)


def wait(flag):
    return ("wait", flag)


def signal(mode, flag):
    return ("signal", mode, flag)


def copy_in(tensor, address=0):
    return lambda core: core.record(CopyGmToUbuf(**BLOCK), (address, tensor.address), HERE)


def copy_out(tensor, address=0):
    return lambda core: core.record(CopyUbufToGm(**BLOCK), (tensor.address, address), HERE)


def double(core):
    core.record(SetVectorMask(mask_high=0, mask_low=0xFF), (), HERE)
    core.record(VADD, (0, 0, 0), HERE)


def integers(gm, name, *values):
    return gm.allocate_from(name, np.resize(np.array(values, np.int32), 8))


def values(tensor):
    return tensor.buffer.data.view(np.int32).tolist()


# --- order


def test_cores_run_in_the_order_of_core_and_sub_core():
    script = Script()
    for core, sub in ((1, 0), (0, 2), (2, 1), (0, 0), (0, 1)):
        script.core(core, sub, "runs")
    script.run()
    assert script.seen == ["0.0 runs", "0.1 runs", "0.2 runs", "1.0 runs", "2.1 runs"]


def test_a_core_goes_on_until_it_waits_and_then_the_first_ready_one_does():
    script = Script()
    script.core(0, 0, "starts", wait(1), "goes on", signal(2, 2), "ends")
    script.core(0, 1, "starts", signal(2, 1), wait(2), "goes on")
    script.core(0, 2, "starts", signal(2, 1), "still runs", wait(2), "goes on")
    script.run()
    assert script.seen == [
        *("0.0 starts", "0.1 starts", "0.2 starts", "0.2 still runs"),
        *("0.0 goes on", "0.0 ends", "0.1 goes on", "0.2 goes on"),
    ]


def test_core_id_in_words():
    assert [str(CoreId(3, sub)) for sub in (0, 1, 2)] == [
        "core 3 AIC",
        "core 3 AIV0",
        "core 3 AIV1",
    ]


# --- the three modes


@pytest.mark.parametrize("sub", [0, 1])
def test_mode_0_waits_for_every_core(sub):
    script = Script()
    for core in range(4):
        script.core(core, sub, "before", signal(0, 3), wait(3), "after")
    script.run()
    assert script.seen[:4] == [f"{core}.{sub} before" for core in range(4)]
    # the last one to signal is running and goes on first
    assert sorted(script.seen[4:]) == [f"{core}.{sub} after" for core in range(4)]
    assert script.seen[4:] == [f"{c}.{sub} after" for c in (3, 0, 1, 2)]


def test_mode_0_is_among_cores_of_one_kind():
    script = Script()
    script.core(0, 0, signal(0, 3), wait(3), "after")
    script.core(0, 1, "aiv")
    script.core(1, 0, signal(0, 3), wait(3), "after")
    script.run()
    assert script.seen == ["0.1 aiv", "1.0 after", "0.0 after"]


def test_mode_0_with_one_core_that_does_not_signal():
    script = Script()
    script.core(0, 1, signal(0, 3), wait(3), "after")
    script.core(1, 1, signal(0, 3), wait(3), "after")
    script.core(2, 1, "leaves")
    with pytest.raises(DeadlockError) as caught:
        script.run()
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 0 AIV0 waits for flag 3 at kernel.py:3 (kernel), "
        "which core 2 AIV0 (at its end) has not sent; core 1 AIV0 waits for flag 3 at kernel.py:3 "
        "(kernel), which core 2 AIV0 (at its end) has not sent"
    )
    assert [(f.id, f.core, f.message) for f in caught.value.findings] == [
        (
            "deadlock",
            f"core {core} AIV0",
            f"core {core} AIV0 waits for flag 3 at kernel.py:3 (kernel), which core 2 AIV0 (at its "
            "end) has not sent",
        )
        for core in (0, 1)
    ]


def test_mode_1_is_between_the_two_vector_cores_of_one_core():
    script = Script()
    for core in (0, 1):
        for sub in (1, 2):
            script.core(core, sub, "before", signal(1, 5), wait(5), "after")
    script.run()
    half = ["0.1 before", "0.2 before", "0.2 after", "0.1 after"]
    assert sorted(script.seen) == sorted(half + [s.replace("0.", "1.", 1) for s in half])
    assert [s for s in script.seen if s.startswith("0.")] == half


def test_mode_2_from_the_cube_core_tells_both_vector_cores():
    script = Script()
    script.core(0, 0, "works", signal(2, 4))
    script.core(0, 1, wait(4), "after")
    script.core(0, 2, wait(4), "after")
    script.core(1, 0, "works", signal(2, 4))
    script.core(1, 1, wait(4), "after")
    script.run()
    assert script.seen == ["0.0 works", "0.1 after", "0.2 after", "1.0 works", "1.1 after"]


def test_mode_2_from_the_vector_cores_needs_both():
    script = Script()
    script.core(0, 0, wait(4), "after")
    script.core(0, 1, "works", signal(2, 4))
    script.core(0, 2, "works", signal(2, 4))
    script.run()
    assert script.seen == ["0.1 works", "0.2 works", "0.0 after"]
    script = Script()
    script.core(0, 0, wait(4), "after")
    script.core(0, 1, "works", signal(2, 4))
    script.core(0, 2, "works")
    with pytest.raises(DeadlockError) as caught:
        script.run()
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 0 AIC waits for flag 4 at kernel.py:3 (kernel), "
        "which core 0 AIV1 (at its end) has not sent"
    )


def test_a_deadlock_says_where_the_cores_stand_that_do_not_signal():
    script = Script()
    script.core(0, 1, signal(0, 3), wait(3), "after")
    script.core(1, 1, "works", wait(5), signal(0, 3))
    with pytest.raises(DeadlockError) as caught:
        script.run()
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 0 AIV0 waits for flag 3 at kernel.py:3 (kernel), "
        "which core 1 AIV0 (waiting at kernel.py:3 (kernel)) has not sent; core 1 AIV0 waits for "
        "flag 5 at kernel.py:3 (kernel), which no core has sent"
    )


def test_a_deadlock_says_that_no_flag_was_sent_before_the_waits():
    script = Script()
    script.core(0, 0, wait(2), signal(2, 0))
    script.core(0, 1, wait(0), signal(2, 2))
    script.core(0, 2, wait(0), signal(2, 2))
    with pytest.raises(DeadlockError) as caught:
        script.run()
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 0 AIC waits for flag 2 at kernel.py:3 (kernel), "
        "which no core has sent; core 0 AIV0 waits for flag 0 at kernel.py:3 (kernel), which no "
        "core has sent; core 0 AIV1 waits for flag 0 at kernel.py:3 (kernel), which no core has "
        "sent; none of these flags was ever sent: send one once before its first wait"
    )


def test_a_signal_reaches_no_other_core_and_no_other_flag():
    for other in ((1, 4), (0, 5)):
        script = Script()
        script.core(0, 0, signal(2, 4))
        script.core(other[0], 1, wait(other[1]), "after")
        with pytest.raises(DeadlockError):
            script.run()
        assert script.seen == []


def test_counters_count():
    script = Script()
    script.core(0, 0, *[signal(2, 1)] * 3)
    script.core(0, 1, *[wait(1)] * 3, "after")
    assert script.run().findings == ()
    assert script.seen == ["0.1 after"]
    script = Script()
    script.core(0, 0, *[signal(2, 1)] * 2)
    script.core(0, 1, *[wait(1)] * 3, "after")
    with pytest.raises(DeadlockError):
        script.run()


def test_a_counter_holds_15():
    script = Script()
    script.core(0, 0, *[signal(2, 1)] * 15)
    script.core(0, 1, *[wait(1)] * 15)
    assert script.run().findings == ()
    script = Script()
    script.core(0, 0, *[signal(2, 1)] * 16)
    script.core(0, 1, *[wait(1)] * 16)
    (finding,) = script.run().findings
    assert (finding.id, finding.check) == ("flag-overflow", "synccheck")
    assert finding.message == (
        "flag 1 of core 0 AIV0 must stand at 15 at most, got 16; wait for it in between"
    )


def test_ping_pong():
    script = Script()
    script.core(0, 0, *[step for i in range(3) for step in (f"{i}", signal(2, 0), wait(1))])
    script.core(0, 1, *[step for i in range(3) for step in (wait(0), f"{i}", signal(2, 1))])
    script.run()
    assert script.seen == ["0.0 0", "0.1 0", "0.0 1", "0.1 1", "0.0 2", "0.1 2"]


# --- data between cores


def test_two_vector_cores_exchange_data_through_global_memory():
    gm = GlobalMemory()
    start, middle, end = integers(gm, "start", 5), gm.allocate("middle", 32), gm.allocate("end", 32)
    script = Script()
    steps = copy_in(start), double, copy_out(middle), signal(1, 0), wait(0)
    script.core(0, 1, *steps)
    script.core(0, 2, signal(1, 0), wait(0), copy_in(middle), double, copy_out(end))
    assert script.run(gm).findings == ()
    assert values(middle) == [10] * 8
    assert values(end) == [20] * 8


def test_without_the_wait_the_reader_reads_too_early():
    gm = GlobalMemory()
    start, middle, end = integers(gm, "start", 5), gm.allocate("middle", 32), gm.allocate("end", 32)
    script = Script()
    script.core(0, 1, copy_in(middle), double, copy_out(end), signal(1, 0))
    script.core(0, 2, copy_in(start), double, copy_out(middle), signal(1, 0))
    found = script.run(gm).findings
    assert [f.message for f in found] == [
        f"vadd.{operand} must be initialised in UB, "
        "got 8 of 64 elements never written, first repeat 0, lane 0"
        for operand in ("src0", "src1")
    ]
    assert values(middle) == [10] * 8


def test_a_signal_publishes_what_was_issued_before_it():
    """Issues are only recorded until a core signals; the reader must see them all the same."""
    gm = GlobalMemory()
    cell = integers(gm, "cell", 1)
    copy = gm.allocate("copy", 32)
    script = Script()
    script.core(0, 1, copy_in(cell), double, copy_out(cell), signal(1, 0), wait(0))
    script.core(0, 2, signal(1, 0), wait(0), copy_in(cell), copy_out(copy))
    script.run(gm)
    assert values(copy) == [2] * 8


def test_every_core_has_its_own_local_memories():
    gm = GlobalMemory()
    one, out = integers(gm, "one", 1), gm.allocate("out", 32)
    script = Script()
    script.core(0, 1, copy_in(one))
    script.core(0, 2, copy_out(out))
    script.core(1, 1, copy_out(out))
    assert script.run(gm).findings == ()
    assert not out.buffer.valid.any()


def test_more_issues_than_a_core_records_at_once():
    gm = GlobalMemory()
    cell = integers(gm, "cell", 1)
    count = FLUSH_AFTER + 10

    def body(core: Core) -> None:
        copy_in(cell)(core)
        copy_in(integers(gm, "more", 3), 32)(core)
        core.record(SetVectorMask(mask_high=0, mask_low=0xFF), (), HERE)
        for _ in range(count):
            core.record(VADD, (0, 0, 32), HERE)
        copy_out(cell)(core)

    outcome = run(A2, gm, [Task(CoreId(0, 1), body)])
    assert outcome.findings == ()
    assert outcome.issued == count + 4
    assert values(cell) == [1 + 3 * count] * 8


# --- values that steer


def program_that_reads(cell, table, out):
    """for i in range(3): if cell[i] > 10 copy table[i] else table[i + 3], and double it."""
    index, seen = Var("i", 0), Var("seen", 1)
    at = Expr.of(index)
    mask = Issue(SetVectorMask(mask_high=0, mask_low=0xFF), (), HERE)
    load = LoadScalar(seen, Mem.GM, INT, Expr(cell.address) + at * 4, HERE)

    def copy(base: int) -> Issue:
        return Issue(CopyGmToUbuf(**BLOCK), (Expr(0), Expr(table.address) + (at + base) * 32), HERE)

    branch = Branch(Condition.of(Expr.of(seen), ">", 10), (copy(0),), (copy(3),))
    twice = Issue(VADD, (Expr(0),) * 3, HERE)
    store = Issue(CopyUbufToGm(**BLOCK), (Expr(out.address) + at * 32, Expr(0)), HERE)
    return Program((mask, Loop(index, Expr(3), (load, branch, twice, store))))


def test_a_value_in_memory_steers_a_branch():
    gm = GlobalMemory()
    cell = gm.allocate_from("cell", np.array([11, 10, -1], np.int32))
    table = gm.allocate_from("table", np.repeat(np.arange(1, 7, dtype=np.int32), 8))
    out = gm.allocate("out", 96)
    program = program_that_reads(cell, table, out)
    outcome = run(A2, gm, [Task(CoreId(0, 1), lambda core: program.run(core, {}))])
    assert outcome.findings == ()
    assert values(out) == [2] * 8 + [10] * 8 + [12] * 8


def test_a_value_that_the_program_itself_wrote():
    """Reading flushes: the store before it has happened."""
    gm = GlobalMemory()
    cell = integers(gm, "cell", 4)
    got = Var("n", 0)
    read = LoadScalar(got, Mem.GM, INT, Expr(cell.address), HERE)
    seen = []

    def body(core: Core) -> None:
        for step in (copy_in(cell), double, copy_out(cell)):
            step(core)
        seen.append(core.load_scalar(read, cell.address))

    run(A2, gm, [Task(CoreId(0, 1), body)])
    assert seen == [8]


def test_a_value_that_another_core_wrote():
    gm = GlobalMemory()
    cell = integers(gm, "cell", 4)
    read = LoadScalar(Var("n", 0), Mem.GM, INT, Expr(cell.address), HERE)
    seen = []

    def look(core: Core) -> None:
        seen.append(core.load_scalar(read, cell.address))

    script = Script()
    script.core(0, 1, look, signal(1, 0), wait(0), look)
    script.core(0, 2, copy_in(cell), double, copy_out(cell), signal(1, 0))
    assert script.run(gm).findings == ()
    assert seen == [4, 8]


# --- flags inside a core, and what goes wrong


def test_flags_and_barriers_inside_a_core_change_no_value():
    gm = GlobalMemory()
    cell = integers(gm, "cell", 3)

    def body(core: Core) -> None:
        copy_in(cell)(core)
        core.record(SetFlag(src="MTE2", dst="V", event_id=0), (), HERE)
        core.record(WaitFlag(src="MTE2", dst="V", event_id=0), (), HERE)
        double(core)
        core.record(PipeBarrier(on="V"), (), HERE)
        core.record(PipeBarrier(), (), HERE)
        copy_out(cell)(core)

    assert run(A2, gm, [Task(CoreId(0, 1), body)]).findings == ()
    assert values(cell) == [6] * 8


def test_a_pipe_that_signals_itself():
    script = Script()
    flag = SetFlag(src="V", dst="V", event_id=0)
    script.core(0, 1, lambda core: core.record(flag, (), HERE))
    (finding,) = script.run().findings
    assert finding.message == "set_flag must name two different pipes, got V twice"


def test_an_exception_in_a_body_propagates():
    script = Script()

    def fail(core: Core) -> None:
        raise ZeroDivisionError(f"in {core.id}")

    script.core(0, 1, wait(0), "never")
    script.core(1, 1, "first", fail)
    script.core(2, 1, "never")
    with pytest.raises(ZeroDivisionError, match="in core 1 AIV0"):
        script.run()
    assert script.seen == ["1.1 first"]


def test_a_run_after_a_failed_one_starts_afresh():
    failed = Script()
    failed.core(0, 1, wait(0))
    with pytest.raises(DeadlockError):
        failed.run()
    script = Script()
    script.core(0, 1, "runs")
    assert script.run().findings == ()
    assert script.seen == ["0.1 runs"]


def test_an_empty_run():
    outcome = Script().run()
    assert (outcome.findings, outcome.issued) == ((), 0)


def test_mode_1_from_a_cube_core_is_a_finding():
    script = Script()
    script.core(0, 0, signal(1, 0))
    script.core(0, 1, "runs")
    assert script.run().findings != ()
