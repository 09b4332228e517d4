"""L2 and device memory: what misses, what survives, and how long one server is busy."""

import math
from dataclasses import fields, replace

import pytest

from cubecore.errors import RequestError
from cubecore.timing.memory_system import Demand, MemorySystem
from timing.clock import ROUND

ONE = Demand((0,), (1,))
MIB = 1 << 20
# ROUND: HBM gives 32 B a cycle, first byte after 1000 cycles; L2 holds 1 MiB, first byte after 20


def test_the_first_touch_misses_and_the_second_hits():
    memory = MemorySystem(ROUND)
    first = memory.load(500, 3200, 64, 0, ONE)
    assert (first.start, first.latency, first.missing_bytes) == (500, 1000, 3200)
    assert first.data_at == 500 + 100
    second = memory.load(5000, 3200, 64, 0, ONE)
    assert (second.start, second.latency, second.data_at) == (5000, 20, 5000)
    assert second.missing_bytes == 0
    assert (memory.read_bytes, memory.hbm_read_bytes) == (6400, 3200)


def test_another_address_misses():
    memory = MemorySystem(ROUND)
    memory.load(0, 64, 64, 0, ONE)
    assert memory.load(9000, 64, 64, 64, ONE).missing_bytes == 64


def test_survival_falls_with_the_bytes_brought_in_since():
    """After s bytes a block is gone with probability 1 - exp(-s / L2), in 64ths."""
    seen = []
    for between in (0, MIB // 8, MIB // 2, MIB, 2 * MIB, 8 * MIB):
        memory = MemorySystem(ROUND)
        memory.load(0, 6400, 64, 0, ONE)
        if between:
            memory.load(0, between, 64, 1 << 30, ONE)
        missing = memory.load(10**6, 6400, 64, 0, ONE).missing_bytes
        gone = 1 - math.exp(-(between + 6400) / MIB)
        assert abs(missing / 6400 - gone) <= 1 / 64 + 1e-9
        seen.append(missing)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 6400


def test_latency_lies_between_l2_and_hbm_by_the_missing_part():
    memory = MemorySystem(ROUND)
    memory.load(0, 6400, 64, 0, ONE)
    memory.load(0, MIB, 64, 1 << 30, ONE)
    half = memory.load(10**6, 6400, 64, 0, ONE)
    gone = half.missing_bytes * 64 // 6400
    assert 0 < gone < 64
    assert half.latency == 20 + 980 * gone // 64


def test_device_memory_serves_one_request_after_the_other():
    memory = MemorySystem(ROUND)
    services = [memory.load(0, 3200, 64, 10_000 * i, ONE) for i in range(4)]
    assert [s.start for s in services] == [0, 100, 200, 300]
    assert [s.data_at for s in services] == [100, 200, 300, 400]


def test_device_memory_rests_when_nobody_asks():
    memory = MemorySystem(ROUND)
    memory.load(0, 3200, 64, 0, ONE)
    late = memory.load(5000, 3200, 64, 10_000, ONE)
    assert (late.start, late.data_at) == (5000, 5100)


def test_slack_lets_device_memory_serve_in_the_past():
    memory = MemorySystem(replace(ROUND, hbm_slack_cycles=50))
    memory.load(0, 3200, 64, 0, ONE)
    early = memory.load(1000, 3200, 64, 10_000, ONE)
    # the server may have begun at 950, the load itself starts when it asks
    assert (early.start, early.data_at) == (1000, 1050)


def test_work_is_conserved():
    """However it is asked for, device memory is busy for the bytes that it brings."""
    memory = MemorySystem(ROUND)
    sizes = [320, 6400, 64, 1600, 32, 9600]
    last = [memory.load(0, size, 64, i << 20, ONE) for i, size in enumerate(sizes)][-1]
    assert last.data_at == sum(sizes) // 32
    assert memory.hbm_read_bytes == sum(sizes)


def test_a_row_costs_more_than_its_bytes():
    memory = MemorySystem(replace(ROUND, hbm_row_bytes=64))
    assert memory.load(0, 3200, 64, 0, ONE).data_at == 200
    assert memory.load(1000, 3200, 128, 9999, ONE).data_at == 1000 + 150


def test_cores_that_want_the_same_block_share_one_transfer():
    memory = MemorySystem(ROUND)
    service = memory.load(0, 3200, 64, 0, Demand((0,), (8,)))
    assert service.data_at == 100
    assert (memory.read_bytes, memory.hbm_read_bytes) == (8 * 3200, 3200)


def test_cores_that_want_different_blocks_share_the_server():
    memory = MemorySystem(ROUND)
    service = memory.load(0, 3200, 64, 0, Demand((0, 4096, 8192), (1, 1, 2)))
    assert service.data_at == 300
    assert (memory.read_bytes, memory.hbm_read_bytes) == (4 * 3200, 3 * 3200)


def test_latency_is_the_cores_mean():
    memory = MemorySystem(ROUND)
    memory.load(0, 64, 64, 0, ONE)
    # three of four cores hit
    mixed = memory.load(5000, 64, 64, 0, Demand((0, 1 << 30), (3, 1)))
    assert mixed.latency == 20 + 980 // 4


def test_stores_leave_what_they_wrote_in_l2():
    memory = MemorySystem(ROUND)
    memory.store(0, 6400, 64, 0, ONE)
    assert memory.written_bytes == 6400
    assert memory.load(100, 6400, 64, 0, ONE).missing_bytes == 0
    # nothing was written back yet
    assert memory.load(100, 3200, 64, 1 << 30, ONE).data_at == 200


def test_stores_beyond_l2_evict_to_device_memory():
    memory = MemorySystem(ROUND)
    for i in range(4):
        memory.store(0, MIB // 4, 64, i << 20, ONE)
    assert memory.load(0, 3200, 64, 1 << 30, ONE).start == 0
    memory.store(200, 3200, 64, 5 << 20, ONE)
    assert memory.load(200, 3200, 64, 1 << 31, ONE).start == 300


NEEDED = (
    *("l2_bytes", "l2_latency_cycles", "hbm_latency_cycles", "hbm_slack_cycles"),
    *("hbm_bytes_per_second", "frequency_hz"),
)


@pytest.mark.parametrize("name", NEEDED)
def test_a_constant_that_nobody_knows_is_refused(name):
    assert name in {f.name for f in fields(ROUND)}
    with pytest.raises(RequestError) as caught:
        MemorySystem(replace(ROUND, **{name: None}))
    assert str(caught.value) == (
        f"Round.{name} must be known for timing, got no published value; "
        f"give one with --set {name}=VALUE"
    )
