"""Pipes, queues, flags and barriers of one core: cycles by hand, and by a naive clock."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.dtypes import ELEMENT_TYPES
from cubecore.errors import DeadlockError, RequestError
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_registers import SetNdPara
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Issue, LoadScalar, Program
from cubecore.isa.scalar.control_registers import ScalarWork, SetHf32Mode
from cubecore.isa.vector.common.mask import SetMaskCount, SetVectorMask
from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.pipes.core_clock import CoreClock
from parts import examples
from timing.clock import (
    HERE,
    ROUND,
    WORD,
    barrier,
    busy,
    clock_of,
    done,
    fetch,
    issue,
    load,
    mad,
    raises,
    waits,
)

# --- one pipe


def test_one_product():
    """Issued in cycle 1; the Cube was idle: 1 + 9 + 50."""
    clock = clock_of(mad())
    assert clock.finish() == 61
    assert busy(clock) == {"M": 60}
    assert clock.stalls == {("M", "scalar issue"): 1}
    assert clock.issued == 1


def test_a_product_right_behind_another_has_no_head():
    clock = clock_of(mad(), mad(160), mad())
    assert clock.finish() == 61 + 19 + 10
    assert busy(clock) == {"M": 89}


def test_a_product_after_a_gap_has_a_head_again():
    slow = replace(ROUND, scalar_issue_cycles=100)
    # issued at 100 and 200; the first ends at 160
    assert clock_of(mad(), mad(), on=slow).finish() == 260


def test_float32_is_faster_from_the_instruction_that_sets_hf32_on():
    single = ELEMENT_TYPES["float32"]
    template = Mad(a_type=single, b_type=single, c_type=single, m=16, k=16, n=16)
    on = replace(ROUND, cube_k={"float32": 1}, hf32_speedup=2)
    product = issue(template, 0, 0, 0)
    enable = issue(SetHf32Mode(enable=True))
    # busy in M: head 50 once, and 9 + 16 or 9 + 8 cycles each
    assert busy(clock_of(product, product, on=on))["M"] == 50 + 2 * (9 + 16)
    assert busy(clock_of(enable, product, product, on=on))["M"] == 50 + 2 * (9 + 8)


def test_a_product_of_nothing_takes_no_time():
    clock = clock_of(mad(0))
    assert clock.finish() == 1
    assert busy(clock) == {}


def test_two_pipes_run_at_once():
    clock = clock_of(load(), mad())
    assert (done(clock, "MTE1"), done(clock, "M")) == (1 + 8 + 2 + 28, 2 + 60)
    assert clock.finish() == 62


def test_fixpipe():
    template = CopyMatrixCcToGm(
        src_type=WORD, n_size=16, m_size=8, dst_stride=16, src_stride=16, nz2nd_en=True
    )
    # head 20, 8 rows, 8 * 64 B over 64 B a cycle
    assert clock_of(template).finish() == 1 + 20 + 8 + 8


def test_vectors():
    chip = replace(ROUND, vector_head_cycles=24, vector_repeat_cycles=3)
    vadd = instruction_named("vadd")
    assert clock_of(vadd(dtype=WORD, repeat=10), on=chip).finish() == 1 + 24 + 30
    assert clock_of(vadd(dtype=WORD, repeat=0), on=chip).finish() == 1


# --- flags


def test_a_flag_orders_two_pipes():
    """The load ends at 39; the product starts then, with a head."""
    clock = clock_of(load(), raises("MTE1", "M"), waits("MTE1", "M"), mad())
    assert done(clock, "MTE1") == 39
    assert clock.finish() == 39 + 60
    assert clock.stalls[("M", "flag MTE1 -> M 0")] == 39
    assert clock.issued == 4


def test_without_the_flag_it_starts_at_once():
    assert clock_of(load(), mad()).finish() == 2 + 60


def test_a_flag_that_is_long_up_costs_nothing():
    slow = replace(ROUND, scalar_issue_cycles=100)
    clock = clock_of(load(), raises("MTE1", "M"), waits("MTE1", "M"), mad(), on=slow)
    assert clock.finish() == 400 + 60
    assert clock.stalls == {("MTE1", "scalar issue"): 100, ("M", "scalar issue"): 400}


def test_a_wait_for_a_flag_that_is_raised_later_in_the_program():
    """The pipe waits, the scalar unit goes on: the load is issued third and ends at 41."""
    clock = clock_of(waits("MTE1", "M"), mad(), load(), raises("MTE1", "M"))
    assert done(clock, "MTE1") == 3 + 38
    assert clock.finish() == 41 + 60
    assert clock.stalls[("M", "flag MTE1 -> M 0")] == 41


def test_a_wait_holds_everything_behind_it_and_nothing_else():
    clock = clock_of(waits("MTE1", "M"), mad(), mad(), load(), raises("MTE1", "M"), mad())
    assert clock.finish() == (4 + 38) + 60 + 10 + 10


def test_flags_of_other_events_and_pairs_do_not_count():
    for other in (raises("MTE1", "M", 1), raises("MTE2", "M"), raises("MTE1", "FIX")):
        with pytest.raises(DeadlockError):
            clock_of(waits("MTE1", "M"), mad(), load(), other).finish()


def test_a_flag_passed_on_by_a_pipe_that_does_nothing_else():
    """M only waits for the load and tells V: V starts when the load ends."""
    chip = replace(ROUND, vector_head_cycles=5, vector_repeat_cycles=1)
    steps = [load(), raises("MTE1", "M"), waits("MTE1", "M"), raises("M", "V"), waits("M", "V")]
    vadd = instruction_named("vadd")(dtype=WORD)
    assert clock_of(*steps, vadd, on=chip).finish() == 39 + 6


def test_double_buffering():
    """Two buffers: the third load waits until the first product has read its buffer.

    Loads of 100 fractals take 202 cycles (230 when idle), products of k = 160 take 19 (69).
    """
    steps = []
    for i in range(3):
        if i >= 2:
            steps.append(waits("M", "MTE1", i % 2))
        steps += [load(100), raises("MTE1", "M", i % 2)]
        steps += [waits("MTE1", "M", i % 2), mad(160), raises("M", "MTE1", i % 2)]
    clock = clock_of(*steps)
    # loads end at 231, 433, 635 (never held up); every product finds the Cube idle
    assert done(clock, "MTE1") == 1 + 230 + 202 + 202
    assert clock.finish() == 635 + 69


def test_single_buffering():
    steps = []
    for i in range(3):
        if i:
            steps.append(waits("M", "MTE1"))
        steps += [load(100), raises("MTE1", "M"), waits("MTE1", "M"), mad(160), raises("M", "MTE1")]
    clock = clock_of(*steps)
    # 231, 300, then every load waits for the product: a head of its own
    assert clock.finish() == 1 + 3 * (230 + 69)
    assert clock.stalls[("MTE1", "flag M -> MTE1 0")] == 2 * 69
    assert clock.stalls[("M", "flag MTE1 -> M 0")] == 231 + 2 * 230


def test_a_flag_to_the_scalar_unit_holds_what_is_issued_after_it():
    clock = clock_of(load(), raises("MTE1", "S"), waits("MTE1", "S"), mad())
    assert clock.scalar == 39 + 1
    assert clock.finish() == 40 + 60


def test_a_flag_from_the_scalar_unit():
    clock = clock_of(waits("S", "M"), mad(), raises("S", "M"))
    assert clock.finish() == 3 + 60


def test_scalar_work_delays_what_is_issued_after_it():
    steps = {"BASIC": 57, "MDL": 450}
    chip = replace(ROUND, scalar_step_cycles=steps)
    assert clock_of(ScalarWork(step="BASIC"), mad(), on=chip).finish() == 58 + 1 + 60
    clock = clock_of(ScalarWork(step="MDL"), mad(), on=chip)
    assert clock.finish() == 451 + 1 + 60
    assert busy(clock) == {"S": 451, "M": 60}


# --- barriers


def test_a_barrier_joins_every_pipe():
    clock = clock_of(load(), barrier(), mad())
    assert clock.finish() == 39 + 1 + 60
    assert clock.issued == 3


def test_a_barrier_of_one_pipe_empties_it():
    """The second product starts when the first ends, but finds the Cube empty: a head."""
    assert clock_of(mad(), barrier("M"), mad()).finish() == 61 + 60
    assert clock_of(mad(), barrier("MTE1"), mad()).finish() == 61 + 10


def test_a_barrier_of_mte2_waits_for_the_latency():
    """Without it the second load starts when the first has been asked for: 18 cycles later."""
    first, second = issue(fetch(), 0, 0), issue(fetch(), 512, 4096)
    assert clock_of(first, second).finish() == 1 + 18 + 18 + 1000
    assert clock_of(first, barrier("MTE2"), second).finish() == (1 + 1018) + 1018


def test_a_barrier_with_nothing_before_it():
    assert clock_of(barrier(), barrier("M"), mad()).finish() == 3 + 60


# --- the depth of a queue


def test_the_scalar_unit_waits_for_room_in_a_queue():
    """Two may wait: the fourth enters when the second starts, at 61; the fifth at 71."""
    short = replace(ROUND, pipe_queue_depth=2)
    clock = clock_of(*[mad()] * 5, load(), on=short)
    assert done(clock, "M") == 61 + 4 * 10
    assert clock.scalar == 71 + 1
    assert done(clock, "MTE1") == 72 + 38
    assert clock.stalls[("S", "queue of M full")] == (61 - 4) + (71 - 62)


def test_a_deep_queue_never_holds_the_scalar_unit():
    clock = clock_of(*[mad()] * 30, load())
    assert clock.scalar == 31
    assert not [key for key in clock.stalls if key[0] == "S"]


def test_instructions_behind_a_wait_take_room_too():
    """Two may wait: the second product (until 61) and the wait; the third product finds no room.

    The scalar unit stands until 61, and issues the load and its flag only then.
    """
    short = replace(ROUND, pipe_queue_depth=2)
    steps = [mad(), mad(), waits("MTE1", "M"), mad(), load(), raises("MTE1", "M")]
    clock = clock_of(*steps, on=short)
    assert done(clock, "MTE1") == 62 + 38


# --- deadlock


def test_a_flag_that_nobody_raises():
    clock = clock_of(waits("MTE1", "M"), mad(), waits("M", "FIX"), load())
    with pytest.raises(DeadlockError) as caught:
        clock.finish()
    assert str(caught.value) == "deadlock: no set_flag for a wait_flag on M, FIX"


def test_a_flag_is_raised_once_and_waited_for_twice():
    clock = clock_of(load(), raises("MTE1", "M"), waits("MTE1", "M"), waits("MTE1", "M"), mad())
    with pytest.raises(DeadlockError) as caught:
        clock.finish()
    assert str(caught.value) == "deadlock: no set_flag for a wait_flag on M"


def test_two_pipes_that_wait_for_each_other():
    steps = [waits("MTE1", "M"), mad(), raises("M", "MTE1")]
    steps += [waits("M", "MTE1"), load(), raises("MTE1", "M")]
    with pytest.raises(DeadlockError) as caught:
        clock_of(*steps).finish()
    message = "deadlock: no set_flag for a wait_flag on M, MTE1"
    assert str(caught.value) == message


def test_a_queue_that_fills_behind_a_wait():
    short = replace(ROUND, pipe_queue_depth=3)
    steps = [waits("MTE1", "M"), mad(), mad(), mad(), load(), raises("MTE1", "M")]
    with pytest.raises(DeadlockError) as caught:
        clock_of(*steps, on=short)
    assert str(caught.value) == ("deadlock: 3 instructions fill M's queue behind a wait_flag")
    del steps[3]
    assert clock_of(*steps, on=short).finish() == (4 + 38) + 60 + 10


def test_the_scalar_unit_cannot_pass_its_own_wait():
    with pytest.raises(DeadlockError):
        clock_of(waits("MTE1", "S"), load(), raises("MTE1", "S")).finish()


def test_a_barrier_cannot_pass_a_pipe_that_waits():
    with pytest.raises(DeadlockError):
        clock_of(waits("MTE1", "M"), mad(), barrier(), load(), raises("MTE1", "M")).finish()


# --- loads


def test_a_load_is_done_after_its_latency_and_at_work_until_then():
    clock = clock_of(issue(fetch(), 0, 0), raises("MTE2", "MTE1"), waits("MTE2", "MTE1"), load())
    assert done(clock, "MTE2") == 1 + 18 + 1000
    assert busy(clock)["MTE2"] == 18 + 1000
    assert clock.finish() == 1019 + 38


def test_time_with_several_loads_on_their_way_counts_once():
    clock = clock_of(issue(fetch(), 0, 0), issue(fetch(), 512, 4096))
    assert done(clock, "MTE2") == 1 + 18 + 18 + 1000
    assert busy(clock)["MTE2"] == 18 + 18 + 1000


def test_what_misses_l2_is_asked_for_at_its_own_rate():
    """512 B at 16 instead of 64 B a cycle: 24 cycles more before the next load."""
    slow = replace(ROUND, gm_miss_bytes_per_cycle=16)
    clock = clock_of(issue(fetch(), 0, 0), issue(fetch(), 512, 4096), on=slow)
    assert done(clock, "MTE2") == 1 + 2 * (18 + 24) + 1000


def test_mte1_is_slower_while_mte2_fills_l1():
    """10 cycles of a move behind its head, a quarter more while a load is being asked for."""
    slow = replace(ROUND, l1_to_l0_contention=0.25)
    for loads, more in (((), 0), ((issue(fetch(4096), 0, 0),), round(10 * 0.25))):
        clock = clock_of(*loads, load(), on=slow)
        assert busy(clock)["MTE1"] == 10 + 28 + more
    # the load has been asked for when the second move begins
    clock = clock_of(issue(fetch(1), 0, 0), load(), load(), on=slow)
    assert busy(clock)["MTE1"] == (10 + round(10 * 0.25)) + 10 + 28


def test_what_a_kernel_does_before_its_first_instruction_is_the_scalar_units():
    clock = CoreClock(chip=ROUND, memory=MemoryPort(ROUND), shares={}, scalar=77)
    assert busy(clock) == {"S": 77}


def test_half_of_the_latency_may_hold_the_next_load():
    half = replace(ROUND, gm_latency_overlap=0.5)
    clock = clock_of(issue(fetch(), 0, 0), issue(fetch(), 512, 4096), on=half)
    assert done(clock, "MTE2") == 1 + (18 + 500) + 18 + 1000
    assert busy(clock)["MTE2"] == (18 + 500) + 18 + 1000


def test_a_flag_waits_for_every_earlier_load_not_only_for_the_last():
    """The last load hits L2 and overtakes; the flag must wait for the slow one all the same."""
    warm, slow, quick = (issue(fetch(), 0, a) for a in (0, 4096, 0))
    flag = raises("MTE2", "MTE1"), waits("MTE2", "MTE1")
    clock = clock_of(warm, barrier(), slow, quick, *flag, load())
    started = 1019 + 1  # behind the barrier
    assert clock.finish() == started + 18 + 1000 + 38


def test_a_program_ends_with_its_slowest_load():
    warm, slow, quick = (issue(fetch(), 0, a) for a in (0, 4096, 0))
    assert clock_of(warm, barrier(), slow, quick).finish() == 1020 + 18 + 1000


# --- what the model does not time


def test_a_value_from_memory_is_refused():
    read = LoadScalar(Var("n", 0), Mem.GM, WORD, Expr(512), HERE)
    with pytest.raises(RequestError) as caught:
        clock_of(read) if isinstance(read, Issue) else Program((read,)).run(clock_of(), {})
    assert str(caught.value) == (
        "kernel.py:1 (kernel) must not read memory in a program that is timed alone, "
        "got n from GM 512"
    )


def test_fixpipe_of_several_matrices_takes_longer():
    fixpipe = CopyMatrixCcToGm(
        src_type=WORD, n_size=16, m_size=8, dst_stride=16, src_stride=16, nz2nd_en=True
    )
    several = SetNdPara(nd_num=4, src_nd_stride=1, dst_nd_stride=128)
    assert clock_of(several, fixpipe).finish() == 2 + 20 + 4 * (8 + 8)


def test_counter_mode_takes_as_many_repeats_as_it_counts():
    chip = replace(ROUND, vector_head_cycles=24, vector_repeat_cycles=3)
    count = SetMaskCount(), SetVectorMask(mask_high=0, mask_low=640)
    clock = clock_of(*count, instruction_named("vadd")(dtype=WORD, repeat=1), on=chip)
    assert clock.finish() == 3 + 24 + 30


# --- a naive clock

PIPE_NAMES = ("MTE1", "M", "V")


def naive(steps: list) -> int | None:
    """Times by recursion over what each instruction waits for; None if they wait in a circle."""
    behind: dict[str, list[int]] = {pipe: [] for pipe in PIPE_NAMES}
    raised: dict[tuple, list[int]] = {}
    asked: dict[tuple, list[int]] = {}
    queue_of, before, partner = {}, {}, {}
    for i, (kind, *rest) in enumerate(steps):
        pipe = {"set": lambda r: r[0], "wait": lambda r: r[1]}.get(kind, lambda r: r[0])(rest)
        queue_of[i] = pipe
        before[i] = behind[pipe][-1] if behind[pipe] else None
        behind[pipe].append(i)
        if kind == "set":
            raised.setdefault(tuple(rest), []).append(i)
        elif kind == "wait":
            asked.setdefault(tuple(rest), []).append(i)
    for key, waiting in asked.items():
        for i, number in zip(waiting, range(len(waiting)), strict=True):
            found = raised.get(key, [])
            partner[i] = found[number] if number < len(found) else None
    cache: dict[int, tuple[int, bool]] = {}
    open_: set[int] = set()

    def end(i: int | None) -> tuple[int, bool]:
        """When an instruction is complete, and whether its pipe has drained by then."""
        if i is None:
            return 0, True
        if i in cache:
            return cache[i]
        if i in open_:
            raise RecursionError
        open_.add(i)
        kind, *rest = steps[i]
        behind_end, drained = end(before[i])
        at, own_end = i + 1, ends_of_work(before[i])
        if kind in {"set", "barrier"}:
            result = (max(at, behind_end), drained or kind == "barrier")
        elif kind == "wait":
            if partner[i] is None:
                raise RecursionError
            result = (max(behind_end, end(partner[i])[0]), drained)
        else:
            start = max(at, behind_end if kind == "work" else 0, own_end)
            head = rest[2] if start > own_end or drained else 0
            result = (start + rest[1] + head, False)
        cache[i] = result
        open_.discard(i)
        return result

    def ends_of_work(i: int | None) -> int:
        """When the last instruction of a pipe that is no flag ended."""
        while i is not None and steps[i][0] != "work":
            i = before[i]
        return 0 if i is None else end(i)[0]

    try:
        ends = [end(i)[0] for i in range(len(steps)) if steps[i][0] == "work"]
        for i in range(len(steps)):
            end(i)
    except RecursionError:
        return None
    return max([len(steps), *ends])


WORK = {"M": (16, 160, 1600), "MTE1": (1, 8, 100), "V": (1, 200)}
PAIRS = [(src, dst) for src in PIPE_NAMES for dst in PIPE_NAMES if src != dst]
STEP = st.one_of(
    *(st.tuples(st.just("work"), st.just(pipe), st.sampled_from(WORK[pipe])) for pipe in WORK),
    *(
        st.tuples(st.just(kind), st.sampled_from(PAIRS), st.integers(0, 1))
        for kind in ("set", "wait")
    ),
    st.tuples(st.just("barrier"), st.sampled_from(PIPE_NAMES)),
)


def written(step: tuple) -> tuple:
    """Return an instruction, and (cycles, more when idle) or what it orders for the naive clock."""
    kind, *rest = step
    if kind == "barrier":
        return barrier(rest[0]), ("barrier", rest[0])
    if kind != "work":
        (src, dst), event = rest
        return (raises if kind == "set" else waits)(src, dst, event), (kind, src, dst, event)
    pipe, size = rest
    if pipe == "M":
        return mad(size), ("work", pipe, size // 16 + 9, 50)
    if pipe == "MTE1":
        return load(size), ("work", pipe, 2 * size + 2, 28)
    return instruction_named("vadd")(dtype=WORD, repeat=size), ("work", pipe, 5 + size, 0)


@examples(400)
@given(st.lists(STEP, max_size=25))
def test_flags_and_barriers_against_a_naive_clock(drawn):
    pairs = [written(step) for step in drawn]
    plain = [p for _, p in pairs]
    wanted = naive(plain)
    chip = replace(ROUND, pipe_queue_depth=100, vector_head_cycles=5, vector_repeat_cycles=1)
    clock = clock_of(*[template for template, _ in pairs], on=chip)
    if wanted is None:
        with pytest.raises(DeadlockError):
            clock.finish()
        return
    assert clock.finish() == wanted
    # no barrier: every cycle of a pipe until its end is busy or a stall with a reason
    if not any(kind == "barrier" for kind, *_ in plain):
        for pipe in PIPE_NAMES:
            waited = sum(cycles for (name, _), cycles in clock.stalls.items() if name == pipe)
            assert waited + busy(clock).get(pipe, 0) == done(clock, pipe)
