"""The vector unit's schedule against a unit that is run cycle by cycle."""

import random

import pytest

from cubecore.isa.vector.registers.issue.reliefs import Relief, relieved
from cubecore.isa.vector.registers.issue.schedule import VectorUnit, Wait, schedule
from cubecore.isa.vector.registers.issue.work import Port, UnitWork

UNIT = VectorUnit(window=96, queue=32, forward_cycles=4, loop_cycles=4)
ADD = UnitWork(0, Port.COMPUTE, 1, 7, False, 1, 0, 0, ())


class StepByStep:
    """The unit as its description has it, one cycle after another; slow, and the oracle."""

    def __init__(self, work, unit):
        self.work, self.unit = work, unit
        self.start, self.done = [None] * len(work), [None] * len(work)
        self.next = self.head = self.closed_until = 0
        self.written, self.busy = {}, {Port.LOAD: {}, Port.STORE: {}}
        self.slow = {}

    def run(self):
        cycle = 0
        while self.head < len(self.work):
            while self.head < self.next and self.is_done(self.head, cycle):
                self.head += 1
            self.enter(cycle)
            self.issue(cycle)
            cycle += 1
        return self.start, self.done

    def is_done(self, number, cycle):
        return self.done[number] is not None and self.done[number] <= cycle

    def enter(self, cycle):
        for place in range(8):
            if cycle < self.closed_until or self.next == len(self.work):
                return
            work = self.work[self.next]
            waiting = [
                n
                for n in range(self.head, self.next)
                if self.work[n].port is Port.COMPUTE and self.start[n] is None
            ]
            full = self.next - self.head == self.unit.window
            crowded = work.port is Port.COMPUTE and len(waiting) == self.unit.queue
            blocked = work.port is Port.BARRIER and self.head < self.next
            if full or crowded or blocked or (work.loops and place):
                return
            self.next += 1
            if work.loops:
                self.closed_until = cycle + 1 + self.unit.loop_cycles

    def issue(self, cycle):
        slots = 2
        for number in range(self.head, self.next):
            work = self.work[number]
            if self.start[number] is not None:
                continue
            if not all(self.is_done(need, cycle) for need in work.needs):
                continue
            if work.port is Port.COMPUTE:
                taken = 2 if work.alone else 1
                spans = range(cycle, cycle + work.cycles) if work.cycles > 1 else ()
                if taken > slots or any(self.slow.get(c, 0) == 2 for c in spans):
                    continue
                slots -= taken
                for c in spans:
                    self.slow[c] = self.slow.get(c, 0) + 1
            elif work.port is not Port.BARRIER:
                other = Port.STORE if work.port is Port.LOAD else Port.LOAD
                if cycle in self.busy[work.port]:
                    continue
                if self.busy[other].get(cycle, 0) & work.banks:
                    continue
                for c in range(cycle, cycle + work.cycles):
                    self.busy[work.port][c] = work.banks
            self.start[number] = cycle
            done = cycle + max(work.latency - self.unit.forward_cycles, 1)
            while work.writes and self.written.get(done, 0) + work.writes > 2:
                done += 1
            self.written[done] = self.written.get(done, 0) + work.writes
            self.done[number] = done


def random_work(rng, count, cycles=(1,), writes=(0,)):
    """Return instructions of all ports, most of which need results of late ones before them."""
    work = []
    for number in range(count):
        port = rng.choices([*Port], [4, 2, 8, 0.2])[0]
        needs = {rng.randrange(max(0, number - 12), number) for _ in range(2) if number}
        compute, memory = port is Port.COMPUTE, port in {Port.LOAD, Port.STORE}
        work.append(
            UnitWork(
                entry=number,
                port=port,
                cycles=rng.choice(cycles) if compute or memory else 1,
                latency=rng.choice([5, 6, 7, 9, 16, 22]),
                alone=compute and rng.random() < 0.2,
                writes=rng.choice(writes) if compute or port is Port.LOAD else 0,
                banks=rng.choice([0x00FF, 0xFF00, 0x0FF0, 0xFFFF]) if memory else 0,
                loops=int(rng.random() < 0.05),
                needs=tuple(needs) if rng.random() < 0.7 else (),
            )
        )
    return work


@pytest.mark.parametrize("seed", range(40))
def test_the_schedule_is_that_of_a_unit_run_cycle_by_cycle(seed):
    rng = random.Random(seed)
    unit = VectorUnit(rng.choice([8, 24, 96]), rng.choice([4, 12, 32]), 4, rng.choice([0, 4]))
    work = random_work(rng, 120)
    start, done = StepByStep(work, unit).run()
    found = schedule(work, unit)
    assert [each.start for each in found] == start
    assert [each.done for each in found] == done


def test_what_takes_several_cycles_or_writes_is_scheduled_nearly_so():
    """A younger one may hold a unit or a port when an older one is ready: that is not looked at."""
    for seed in range(20):
        work = random_work(random.Random(seed), 400, cycles=(1, 1, 1, 2, 4), writes=(0, 1, 1, 2))
        _, done = StepByStep(work, UNIT).run()
        assert max(each.done for each in schedule(work, UNIT)) == pytest.approx(max(done), rel=0.03)


def chain(count, latency):
    return [ADD._replace(latency=latency, needs=(n - 1,) if n else ()) for n in range(count)]


def test_a_chain_costs_its_latencies_but_for_what_is_forwarded():
    found = schedule(chain(78, 7), UNIT)
    assert [each.start for each in found] == [3 * n for n in range(78)]
    assert {(each.wait, each.by) for each in found[1:]} == {(Wait.OPERAND, n) for n in range(77)}


def test_independent_work_is_issued_two_a_cycle_and_one_if_it_is_alone():
    assert schedule([ADD] * 60, UNIT)[-1].start == 29
    assert schedule([ADD._replace(alone=True)] * 60, UNIT)[-1].start == 59


def test_one_load_and_one_store_share_a_cycle_where_their_banks_differ():
    load = UnitWork(0, Port.LOAD, 1, 9, False, 1, 0x00FF, 0, ())
    store = UnitWork(0, Port.STORE, 1, 9, True, 0, 0xFF00, 0, ())
    assert [each.start for each in schedule([load, load, load], UNIT)] == [0, 1, 2]
    assert [each.start for each in schedule([load, store], UNIT)] == [0, 0]
    clash = schedule([load, store._replace(banks=0x00FF)], UNIT)
    assert [each.start for each in clash] == [0, 1]
    assert (clash[1].wait, clash[1].by) == (Wait.BANK, 0)


def test_a_loop_that_begins_lets_nothing_in_for_its_cycles():
    found = schedule([ADD._replace(loops=1), ADD], UNIT)
    assert [each.start for each in found] == [0, 5]
    assert found[1].wait is Wait.LOOP


def test_a_full_window_waits_for_its_oldest_instruction():
    small = VectorUnit(window=2, queue=32, forward_cycles=4, loop_cycles=4)
    found = schedule([ADD._replace(latency=22), ADD, ADD], small)
    assert [each.start for each in found] == [0, 0, 18]
    assert (found[2].wait, found[2].by) == (Wait.WINDOW, 0)


def test_a_barrier_waits_for_everything_and_so_does_what_follows():
    barrier = UnitWork(0, Port.BARRIER, 1, 7, False, 0, 0, 0, ())
    found = schedule([ADD._replace(latency=22), barrier, ADD], UNIT)
    assert [each.start for each in found] == [0, 18, 18]
    assert found[1].wait is Wait.BARRIER


def last(work, places, relief):
    return max(each.done for each in schedule(*relieved(work, places, UNIT, relief)))


def test_a_chain_in_four_parts_takes_a_quarter():
    work = chain(80, 7)
    assert last(work, [0] * 80, Relief.CHAIN) == pytest.approx(3 * 20, abs=2)
    assert last(work, [*range(80)], Relief.CHAIN) == 3 * 80


def test_a_limit_that_is_left_out_costs_nothing():
    load = UnitWork(0, Port.LOAD, 1, 9, False, 1, 0x00FF, 0, ())
    store = UnitWork(0, Port.STORE, 1, 9, True, 0, 0x00FF, 0, ())
    places = [0] * 100
    assert last([load] * 100, places, Relief.LOADS) < last([load] * 100, places, Relief.STORES)
    assert last([load, store], places, Relief.BANKS) == 5
    loops = [ADD._replace(loops=1)] * 10
    assert last(loops, places, Relief.LOOPS) < last(loops, places, Relief.CHAIN)
    slow = [ADD._replace(cycles=8)] * 10
    assert last(slow, places, Relief.SLOW) < last(slow, places, Relief.LOOPS)
    assert last([ADD] * 100, places, Relief.COMPUTE) < last([ADD] * 100, places, Relief.SLOW)
    long = [ADD._replace(latency=22)] * 400
    assert last(long, places * 4, Relief.WINDOW) <= last(long, places * 4, Relief.LOOPS)
