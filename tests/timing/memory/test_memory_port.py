"""L2 and device memory as a group of cores sees them: requests, one server, and what recurs."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.errors import RequestError
from cubecore.isa.declare.instruction import GlobalTraffic
from cubecore.timing.memory.l2_reuse import MemoryShare
from cubecore.timing.memory.memory_port import MemoryPort, MemoryRequest
from parts import examples
from timing.clock import ROUND

# ROUND: HBM gives 32 B a cycle, first byte after 1000 cycles; L2 holds 1 MiB, first byte after 20

LOAD = GlobalTraffic(3200, 64, writes=False)
STORE = GlobalTraffic(3200, 64, writes=True)


def share(gone=64, cores=1, blocks=1) -> MemoryShare:
    return MemoryShare(cores, Fraction(blocks), (gone,))


def cycles(count: int) -> MemoryRequest:
    return MemoryRequest(count, 1000, 0, 64, 64)


def test_a_block_that_is_gone_comes_from_device_memory():
    request = MemoryPort(ROUND).request(LOAD, share())
    assert request == MemoryRequest(100, 1000, 0, 3200, 3200)


def test_a_block_that_l2_holds_does_not():
    assert MemoryPort(ROUND).request(LOAD, share(0)) == MemoryRequest(0, 20, 0, 3200, 0)


def test_what_is_gone_in_part_comes_in_part():
    request = MemoryPort(ROUND).request(LOAD, share(16))
    assert request == MemoryRequest(25, 20 + 980 // 4, 0, 3200, 800)


def test_cores_that_want_the_same_block_share_one_transfer():
    request = MemoryPort(ROUND).request(LOAD, share(cores=8))
    assert request == MemoryRequest(100, 1000, 0, 8 * 3200, 3200)


def test_cores_that_want_different_blocks_ask_for_all_of_them():
    request = MemoryPort(ROUND).request(LOAD, share(cores=4, blocks=3))
    assert request == MemoryRequest(300, 1000, 0, 4 * 3200, 3 * 3200)


def test_a_block_of_two_groups_is_paid_for_in_halves():
    request = MemoryPort(ROUND).request(LOAD, share(cores=3, blocks=Fraction(3, 2)))
    assert request.missing_bytes == 4800


def test_a_group_with_a_quarter_of_device_memory_waits_four_times_as_long():
    assert MemoryPort(ROUND, part=0.25).request(LOAD, share()).server_cycles == 400


def test_a_row_costs_more_than_its_bytes():
    port = MemoryPort(replace(ROUND, hbm_row_bytes=64))
    assert port.request(LOAD, share()).server_cycles == 200
    longer = GlobalTraffic(3200, 128, writes=False)
    assert port.request(longer, share()).server_cycles == 150


def test_rows_meet_in_a_bank_of_l2_as_far_as_l2_holds_them():
    port, load = MemoryPort(ROUND), replace(LOAD, conflict_cycles=64.0)
    more = {gone: port.request(load, share(gone)).more_cycles for gone in (0, 16, 64)}
    assert more == {0: 64, 16: 48, 64: 0}


def test_the_level_says_what_is_gone():
    several = MemoryShare(1, Fraction(1), (64, 0, 32))
    port = MemoryPort(ROUND)
    assert [port.request(LOAD, several, i).missing_bytes for i in range(3)] == [3200, 0, 1600]


def test_stores_go_on_to_device_memory_as_far_as_l2_has_no_room():
    assert MemoryPort(ROUND, written_back=0).request(STORE, share()).missing_bytes == 0
    assert MemoryPort(ROUND, written_back=48).request(STORE, share()).missing_bytes == 2400


# --- the server


def test_device_memory_serves_one_request_after_the_other():
    port = MemoryPort(ROUND)
    assert [port.load(0, cycles(100)) for _ in range(3)] == [(0, 100), (100, 200), (200, 300)]
    assert (port.read_bytes, port.hbm_read_bytes) == (192, 192)


def test_a_hit_waits_for_nobody():
    port = MemoryPort(ROUND)
    port.load(0, cycles(1000))
    assert port.load(5, MemoryRequest(0, 20, 0, 64, 0)) == (5, 5)


def test_device_memory_rests_when_nobody_asks():
    port = MemoryPort(ROUND)
    port.load(0, cycles(100))
    assert port.load(5000, cycles(100)) == (5000, 5100)


def test_slack_lets_device_memory_serve_in_the_past():
    port = MemoryPort(replace(ROUND, hbm_slack_cycles=50))
    port.load(0, cycles(100))
    # the server may have begun at 950, the load itself starts when it asks
    assert port.load(1000, cycles(100)) == (1000, 1050)


def test_before_the_cores_start_device_memory_works_for_nobody():
    port = MemoryPort(replace(ROUND, hbm_slack_cycles=50), busy_until=990)
    assert port.load(1000, cycles(100)) == (1000, 1090)


def test_what_misses_comes_to_each_core_at_its_own_rate():
    """The core's own 3200 B, half of them gone: 1600 B at 16 instead of 64 B a cycle."""
    port = MemoryPort(replace(ROUND, gm_miss_bytes_per_cycle=16))
    assert port.request(LOAD, share(32, cores=8)).more_cycles == 1600 // 16 - 1600 // 64
    assert port.request(LOAD, share(0)).more_cycles == 0
    assert port.request(STORE, share()).more_cycles == 0


def test_the_unified_buffer_has_a_latency_and_a_rate_of_its_own():
    chip = replace(
        ROUND,
        hbm_ub_latency_cycles=400,
        gm_to_ub_bytes_per_cycle=64,
        gm_miss_ub_bytes_per_cycle=32,
    )
    request = MemoryPort(chip).request(replace(LOAD, of_ub=True), share())
    assert (request.latency_cycles, request.more_cycles) == (400, 3200 // 32 - 3200 // 64)


def test_rows_of_the_unified_buffer_may_cost_less():
    port = MemoryPort(replace(ROUND, hbm_row_bytes=64, hbm_ub_row_bytes=16))
    assert port.request(LOAD, share()).server_cycles == 200
    assert port.request(replace(LOAD, of_ub=True), share()).server_cycles == 125


def test_bytes_written_may_take_longer():
    port = MemoryPort(replace(ROUND, hbm_write_weight=1.5), written_back=64)
    assert port.request(STORE, share()).server_cycles == 150
    assert port.request(LOAD, share()).server_cycles == 100


def test_stores_hold_up_the_loads_behind_them():
    port = MemoryPort(ROUND, written_back=64)
    port.store(0, port.request(STORE, share()))
    assert port.written_bytes == 3200
    assert port.load(0, cycles(10)) == (100, 110)


def test_work_is_conserved():
    """However it is asked for, device memory is busy for what it brings."""
    port = MemoryPort(ROUND)
    lengths = [10, 200, 2, 50, 1, 300]
    last = [port.load(0, cycles(length)) for length in lengths][-1]
    assert last[1] == sum(lengths)


REQUESTS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200)), min_size=1, max_size=8)


@examples(300)
@given(REQUESTS, st.integers(0, 3000), st.integers(0, 1000), st.integers(1, 20), st.data())
def test_periods_that_hold_up_nobody_can_be_told_in_advance(gaps, apart, slack, periods, data):
    """`repeat` against serving every request of every period."""
    chip = replace(ROUND, hbm_slack_cycles=slack)
    length = sum(gap for gap, _ in gaps) + apart
    early = data.draw(st.lists(st.integers(0, 500), max_size=5))
    walked, told = MemoryPort(chip), MemoryPort(chip)
    for port in (walked, told):
        for cost in early:
            port.load(0, cycles(cost + 1))
    start = max(early, default=0)

    def period(port: MemoryPort, number: int) -> list[int]:
        now, waits = start + number * length, []
        for gap, cost in gaps:
            now += gap
            begin, _ = port.load(now, cycles(cost))
            waits.append(begin - now)
        return waits

    since = told.requests
    first = period(told, 0)
    served = sum(cost for _, cost in gaps)
    rest = [period(walked, number) for number in range(periods + 1)]
    if served > length or any(any(waits) for waits in [first, *rest]):
        return  # the server does not keep up, or holds somebody up
    told.repeat(len(gaps), served, length, told.peak_since(since), periods)
    assert (told.busy_until, told.served, told.requests) == (
        walked.busy_until,
        walked.served,
        walked.requests,
    )
    # and whatever comes next finds both alike
    assert period(told, periods + 1) == period(walked, periods + 1)
    assert told.busy_until == walked.busy_until


NEEDED = (
    *("l2_latency_cycles", "hbm_latency_cycles", "hbm_slack_cycles"),
    *("hbm_bytes_per_second", "frequency_hz"),
)


@pytest.mark.parametrize("name", NEEDED)
def test_a_constant_that_nobody_knows_is_refused(name):
    assert name in {f.name for f in fields(ROUND)}
    with pytest.raises(RequestError) as caught:
        MemoryPort(replace(ROUND, **{name: None}))
    assert str(caught.value) == (
        f"Round.{name} must be known for timing, got no published value; "
        f"give one with --set {name}=VALUE"
    )
