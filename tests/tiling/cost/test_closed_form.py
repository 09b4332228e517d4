"""The closed form against a walk that is written out, arithmetic by hand, and its trends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cubecore.chips import chip, costs
from cubecore.errors import RequestError
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.tiling.cost.closed_form import cost, lower_bound, predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.units import align_up, ceil_div
from parts import examples
from tiling.cases import B3, problem, stack, tiling


def spans(extent, step):
    return [min(step, extent - start) for start in range(0, extent, step)]


def written_out(t, p):
    """Walk the fullest core as the kernel does and count: bytes and transfers by operand, Mmads."""
    size = p.a_type.size_bytes
    m_tiles = spans(min(t.singleCoreM, p.m), t.baseM)
    n_tiles = spans(min(t.singleCoreN, p.n), t.baseN)
    k_steps = spans(p.k, t.baseK)
    chunks_m = [m_tiles[i : i + t.stepM] for i in range(0, len(m_tiles), t.stepM)]
    chunks_n = [n_tiles[i : i + t.stepN] for i in range(0, len(n_tiles), t.stepN)]
    counts = dict.fromkeys(
        ("A", "B", "A loads", "B loads", "L0A", "L0B", "steps", "C", "chunks"), 0
    )
    counts["tiles"] = len(m_tiles) * len(n_tiles)
    resident = {"A": None, "B": None}

    def load(name, key, own, base, step):
        whole = ceil_div(len(k_steps), step) == 1
        if whole and resident[name] == key:
            return
        resident[name] = key
        k_inner = not p.trans_a if name == "A" else p.trans_b
        k_inner = k_inner or (name == "A" and p.m == 1)
        for k in (k_steps[i : i + step] for i in range(0, len(k_steps), step)):
            counts[name] += sum(own) * sum(k) * size
            counts["chunks"] += 1
            # blocks that would start inside a piece of C0 travel one by one
            apart = (t.baseK if k_inner else base) % p.a_type.c0
            counts[f"{name} loads"] += len(k if k_inner else own) if apart else 1

    def tile(m, n):
        for k in k_steps:
            c0 = p.a_type.c0
            rows = align_up(m, max(c0, 16) if p.trans_a else 16)
            columns = align_up(n, 16 if p.trans_b else max(c0, 16))
            counts["L0A"] += rows * align_up(k, c0) * size
            counts["L0B"] += columns * align_up(k, c0) * size
            counts["steps"] += 1
        counts["C"] += m * n * p.c_type.size_bytes

    pairs = [(i, j) for j in range(len(chunks_n)) for i in range(len(chunks_m))]
    if t.iterateOrder == 1:
        pairs = [(i, j) for i in range(len(chunks_m)) for j in range(len(chunks_n))]
    for i, j in pairs:
        for mi, m in enumerate(chunks_m[i]):
            for ni, n in enumerate(chunks_n[j]):
                whole_a = len(k_steps) <= t.stepKa
                whole_b = len(k_steps) <= t.stepKb
                load("A", i if whole_a else (i, j, mi, ni), chunks_m[i], t.baseM, t.stepKa)
                load("B", j if whole_b else (i, j, mi, ni), chunks_n[j], t.baseN, t.stepKb)
                tile(m, n)
    return counts


@st.composite
def legal(draw):
    p = Problem(
        m=draw(st.integers(1, 300)),
        n=draw(st.integers(1, 300)),
        k=draw(st.integers(1, 300)),
        a=draw(st.sampled_from(["float16", "int8"])),
        trans_a=draw(st.booleans()),
        trans_b=draw(st.booleans()),
    )
    block = st.integers(1, 6).map(lambda i: 16 * i)
    step_ka, step_kb = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    step_m, step_n = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    single_m, single_n = draw(st.integers(1, p.m)), draw(st.integers(1, p.n))
    t = tiling(
        p,
        usedCoreNum=ceil_div(p.m, single_m) * ceil_div(p.n, single_n),
        singleCoreM=single_m,
        singleCoreN=single_n,
        baseM=draw(block),
        baseN=draw(block),
        baseK=draw(st.integers(1, 8)) * 16,
        stepM=step_m,
        stepN=step_n,
        stepKa=step_ka,
        stepKb=step_kb,
        depthA1=step_m * step_ka * draw(st.integers(1, 2)),
        depthB1=step_n * step_kb * draw(st.integers(1, 2)),
        iterateOrder=draw(st.integers(0, 1)),
        dbL0A=draw(st.integers(1, 2)),
        dbL0B=draw(st.integers(1, 2)),
        dbL0C=draw(st.integers(1, 2)),
    )
    found = {f.rule for f in check_tiling(t, p, B3).findings}
    assume(found <= {"USED-CORE-NUM-RANGE"})
    return p, t


@examples(250)
@given(legal())
def test_links_carry_what_the_walk_carries(case):
    p, t = case
    want = written_out(t, p)
    found = predict(t, p, B3).bytes
    assert found["GM->L1"] == want["A"] + want["B"]
    assert found["L1->L0A"] == want["L0A"]
    assert found["L1->L0B"] == want["L0B"]
    assert found["L0C->GM"] == want["C"]
    tables = B3.scalar_step_cycles, B3.scalar_load_cycles, B3.scalar_tile_cycles
    step, load, of_tile = (table["MDL"] for table in tables)
    scalar = want["steps"] * step + want["chunks"] * load + want["tiles"] * of_tile
    assert predict(t, p, B3).pipes["S"] == scalar


@examples(100)
@given(legal())
def test_transfers_are_counted_as_walked(case):
    """With nothing but a cost per transfer, MTE2's cycles are the number of transfers."""
    p, t = case
    soc = replace(
        B3,
        gm_to_l1_transfer_cycles=1,
        gm_to_l1_bytes_per_cycle=1e30,
        gm_to_l1_row_cycles=None,
        gm_to_l1_pitch_row_cycles=None,
        gm_to_l1_misaligned_block_cycles=None,
        gm_latency_overlap=1.0,
        gm_miss_bytes_per_cycle=None,
    )
    want = written_out(t, p)
    assert float(cost(t, p, soc).pipes["MTE2"]) == pytest.approx(want["A loads"] + want["B loads"])


@examples(60)
@given(st.lists(legal(), min_size=1, max_size=4))
def test_many_cost_what_each_costs(cases):
    p = cases[0][0]
    tilings = [t for q, t in cases if q == p]
    together = cost(stack(tilings), p, B3).total
    for index, t in enumerate(tilings):
        assert float(cost(t, p, B3).total) == pytest.approx(float(together[index]), rel=1e-12)


@examples(150)
@given(legal())
def test_no_tiling_beats_the_bound_and_no_pipe_exceeds_the_total(case):
    p, t = case
    assume(t.usedCoreNum <= B3.aic_count)
    found = predict(t, p, B3)
    assert lower_bound(p, B3) <= found.cycles
    assert max(found.pipes.values()) <= found.cycles
    assert found.us == B3.microseconds(found.cycles)


@examples(150)
@given(legal())
def test_a_second_buffer_never_costs(case):
    p, t = case
    changes = [
        {"dbL0A": 2, "dbL0B": 2},
        {"dbL0C": 2},
        {"depthA1": 2 * t.stepM * t.stepKa},
        {"depthB1": 2 * t.stepN * t.stepKb},
    ]
    for change in changes:
        assert cost(replace(t, **change), p, B3).total <= cost(t, p, B3).total * (1 + 1e-12)


def test_one_tile_by_hand():
    """16 x 16 x 16 on one core: every number follows from the chip file."""
    p = problem(m=16, n=16, k=16)
    t = tiling(p, usedCoreNum=1, singleCoreM=16, singleCoreN=16, baseM=16, baseN=16, baseK=16)
    t = replace(t, stepKa=1, stepKb=1, depthA1=1, depthB1=1)
    found = predict(t, p, B3)
    assert dict(found.bytes) == {
        "GM->L1": 1024,
        "L1->L0A": 512,
        "L1->L0B": 512,
        "L0C->GM": 1024,
        "HBM": 1024,
    }
    c = B3
    off = c.gm_to_l1_misaligned_block_cycles["32"]  # rows 32 B apart: off the 64-byte boundary
    row = c.gm_to_l1_row_cycles + 32 / c.gm_to_l1_bytes_per_cycle + off
    slower = 512 / c.gm_miss_bytes_per_cycle - 512 / c.gm_to_l1_bytes_per_cycle
    load = c.gm_to_l1_transfer_cycles + 16 * row + slower
    latency = (1 - c.gm_latency_overlap) * c.hbm_latency_cycles
    mte1 = 512 / 256 + 512 / 128 + c.l1_to_l0_head_cycles + c.l1_to_l0_queued_cycles
    fix = 20 + 16 * c.l0c_to_gm_row_cycles + 1024 / c.l0c_to_gm_bytes_per_cycle
    tables = c.scalar_step_cycles, c.scalar_load_cycles, c.scalar_tile_cycles
    step, of_load, of_tile = (table["MDL"] for table in tables)
    assert dict(found.pipes) == {
        "M": 1 + c.mad_queued_cycles,
        "MTE1": int(np.ceil(mte1)),
        "MTE2": int(np.ceil(2 * (load + latency))),
        "FIX": int(np.ceil(fix)),
        "S": step + 2 * of_load + of_tile,
    }
    # A is asked for, and B once A has been or is on its way; B's load and latency, then one block
    # through the pipes, MTE1's part of it slowed; the scalar unit has long been there
    start = c.launch_cycles + c.start_cycles
    slowed = 1 + c.l1_to_l0_contention * min(1, (2 * load + 2 * latency) / found.pipes["S"])
    total = start + of_load + max(load + latency, of_load) + load + c.hbm_latency_cycles
    total += mte1 * slowed + 1 + c.mad_queued_cycles + fix
    assert found.cycles == int(np.ceil(total))
    assert found.limited_by == "start-up"
    assert found.not_modelled == ()


def test_a_single_l0_buffer_serialises_mte1_and_the_cube():
    p = problem(m=128, n=256, k=512, cores=1)
    double = tiling(p, usedCoreNum=1, stepKa=8, stepKb=8)
    single = replace(double, dbL0A=1)
    fast = replace(quick_loads(), scalar_step_cycles=None)
    two, one = cost(double, p, fast), cost(single, p, fast)
    m, mte1, steps = two.pipes["M"], two.pipes["MTE1"], 8
    waits = steps * (fast.mad_head_cycles - fast.mad_queued_cycles)
    overlapped = max(mte1 + m / steps, m + mte1 / steps)
    assert one.total - two.total == pytest.approx(mte1 + m + waits - overlapped)


def quick_loads(**changes):
    """Return a chip whose loads take no time but what `changes` say."""
    free = dict.fromkeys(
        ("gm_to_l1_row_cycles", "gm_to_l1_pitch_row_cycles", "gm_to_l1_misaligned_block_cycles")
    )
    nothing = {"gm_to_l1_transfer_cycles": 0, "gm_to_l1_bytes_per_cycle": 1e30}
    latency = {"l2_latency_cycles": 0, "hbm_latency_cycles": 0, "gm_latency_overlap": 1.0}
    beside = {"gm_miss_bytes_per_cycle": None, "l1_to_l0_contention": 0.0}
    scalar = {"scalar_load_cycles": None, "scalar_tile_cycles": None}
    return replace(B3, **(free | nothing | latency | beside | scalar | changes))


def test_one_buffer_of_l0c_serialises_fixpipe():
    p = problem(m=256, n=256, k=64, cores=1)
    t = tiling(p, usedCoreNum=1, singleCoreM=256, baseN=128, stepKa=1, stepKb=1)
    t = replace(t, depthA1=2, depthB1=2)
    fast = replace(quick_loads(), scalar_step_cycles=None)
    two, one = cost(replace(t, dbL0C=2), p, fast), cost(t, p, fast)
    assert one.pipes["FIX"] == two.pipes["FIX"]
    m, mte1, fix = (two.pipes[name] for name in ("M", "MTE1", "FIX"))
    stage = max(mte1 + m / 4, m + mte1 / 4)  # four tiles of one step
    drained = max(stage + fix / 4, fix + stage / 4)
    assert one.total - two.total == pytest.approx(stage + fix - drained)


def test_the_scalar_unit_runs_ahead_of_the_first_loads_by_what_queues_hold():
    p = problem(m=128, n=256, k=512, cores=1)
    t = tiling(p, usedCoreNum=1)  # 8 steps, two chunks of each operand
    slow = {"MDL": 10_000, "NORM": 0}
    for latency, steps_after in ((0, 8), (25_000, 8), (100_000, 4)):
        soc = quick_loads(hbm_latency_cycles=latency, scalar_step_cycles=slow)
        found = cost(t, p, soc)
        m, mte1, fix = (found.pipes[name] for name in ("M", "MTE1", "FIX"))
        begin = latency if steps_after < 8 else 0
        last = (m + mte1) / 8 + fix
        assert found.total - found.start == pytest.approx(begin + steps_after * 10_000 + last)


def test_a_rare_chunk_delays_the_frequent_ones_behind_it():
    """B stays for four tiles, A is loaded for each; 300 cycles a transfer, nothing for bytes."""
    p = problem(m=512, n=512, k=256, cores=1)
    t = tiling(p, usedCoreNum=1, singleCoreM=512, singleCoreN=512, baseN=128, dbL0C=2)
    t = replace(t, depthA1=8, depthB1=8)
    base = {"scalar_step_cycles": None}
    free = cost(t, p, quick_loads(**base))
    chunks = 16  # of A: four in each of four columns, and four of B
    pace = (free.total - free.start) / chunks
    for load in (pace / 4, pace / 2, pace * 0.75):
        soc = quick_loads(gm_to_l1_transfer_cycles=load, **base)
        late = max(2 * load - pace, 0)  # behind B's; what is in L1 lasts for one chunk's tiles
        want = 2 * load + 16 * pace + 3 * late
        assert cost(t, p, soc).total - free.start == pytest.approx(want)


def test_with_one_buffer_of_b_the_next_chunk_of_a_waits_behind_it():
    """Four chunks of each, L cycles a load: after the first, each of B and then of A is awaited."""
    p = problem(m=128, n=256, k=1024, cores=1)
    t = tiling(p, usedCoreNum=1, depthB1=4)
    base = {"scalar_step_cycles": None}
    free = cost(t, p, quick_loads(**base))
    load = 1000
    found = cost(t, p, quick_loads(gm_to_l1_transfer_cycles=load, **base))
    assert found.total - free.total == pytest.approx(2 * load + 3 * 2 * load)
    alone = cost(replace(t, depthA1=4), p, quick_loads(gm_to_l1_transfer_cycles=load, **base))
    assert alone.total == pytest.approx(found.total)


def test_mte2_stands_still_while_fixpipe_empties_the_only_l0c():
    p = problem(m=128, n=1024, k=1024, cores=1)
    t = tiling(p, usedCoreNum=1, singleCoreN=1024, depthA1=16, stepKa=16)
    base = {"scalar_step_cycles": None}
    free = cost(t, p, quick_loads(**base))
    m, mte1, fix = (free.pipes[name] for name in ("M", "MTE1", "FIX"))
    stage = m + mte1 / 64
    load = stage / 16 * 1.2  # of B: more than its four steps take, less with fixpipe's pause
    soc = quick_loads(gm_to_l1_transfer_cycles=load, **base)
    idle = 3 * min(fix / 4 + stage / 16 - load, fix / 4)
    want = 17 * load + idle + (stage + fix) / 16
    assert idle > 0
    assert cost(t, p, soc).total - free.start == pytest.approx(want)


def test_squares_of_32_bits_come_in_bands_of_16_rows():
    plain, turned = problem(a="float32"), problem(a="float32", trans_a=True)
    t = tiling(baseK=32, depthA1=4, depthB1=2, stepKa=2, stepKb=1, stepN=1)
    count = quick_loads(gm_to_l1_transfer_cycles=1)
    chunks = 1024 // 64  # of A: 128 x 64 each, bands of 16 along K where A is stored [k, m]
    b_bands = 1024 // 32 * 2
    assert float(cost(t, plain, count).pipes["MTE2"]) == pytest.approx(chunks + b_bands)
    assert float(cost(t, turned, count).pipes["MTE2"]) == pytest.approx(4 * chunks + b_bands)


def test_two_clients_of_a_mix_launch_take_turns():
    t = tiling()
    alone = cost(t, problem(), B3)
    mixed = cost(t, problem(launch="mix"), B3)
    assert mixed.pipes["M"] == 2 * alone.pipes["M"]
    one = tiling(usedCoreNum=1, singleCoreM=256, singleCoreN=512)
    assert cost(one, problem(launch="mix"), B3).pipes["M"] == cost(one, problem(), B3).pipes["M"]


def test_memory_serves_unique_bytes_once_and_evicted_ones_again():
    p = problem(m=4096, n=4096, k=4096)
    t = tiling(p, usedCoreNum=16, singleCoreM=1024, singleCoreN=1024)
    roomy = replace(B3, l2_bytes=10**15)
    none = replace(B3, l2_bytes=None)
    unique = 2 * 4096 * 4096 * 2
    assert cost(t, p, roomy).bytes["HBM"] == pytest.approx(unique)
    a_passes, b_passes = 4, 8
    everything = (a_passes + b_passes) * 4096 * 4096 * 2
    assert cost(t, p, none).bytes["HBM"] == pytest.approx(everything)
    assert unique < cost(t, p, B3).bytes["HBM"] < everything


def test_rows_beyond_the_stride_of_a_transfer_come_one_by_one():
    near, far = problem(m=64, n=64, k=65408), problem(m=64, n=64, k=65536)
    changes = {"usedCoreNum": 1, "singleCoreM": 64, "singleCoreN": 64, "baseM": 64, "baseN": 64}
    one = cost(tiling(near, **changes), near, B3).pipes["MTE2"]
    many = cost(tiling(far, **changes), far, B3).pipes["MTE2"]
    chunks = ceil_div(65536, 4 * 64)
    least = 63 * chunks * B3.gm_to_l1_transfer_cycles
    assert many - one > least


@pytest.mark.parametrize(
    ("base_n", "kind"), [(160, "float16"), (176, "float16"), (208, "float16"), (144, "int8")]
)
def test_short_last_rows_of_b_cost_mte2_as_the_event_timing_has_them(base_n, kind):
    """Rows of B [k, n] that begin off a line and end in it cost nothing for where they begin."""
    p = problem(m=1408, n=1280, k=2048, a=kind, chip="Ascend910B3")
    fields = {"singleCoreM": 352, "singleCoreN": 256, "usedCoreNum": 20, "baseM": 128}
    fields |= {"baseN": base_n, "baseK": 64, "stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}
    t = tiling(p, **fields, dbL0A=2, dbL0B=2)
    timed = launch_time(p, t, p.chip_record)
    assert cost(t, p, p.chip_record).pipes["MTE2"] == pytest.approx(timed.pipes["MTE2"], rel=0.01)


def test_bias_costs_a_little():
    p = problem(bias="float32")
    plain, biased = cost(tiling(), problem(), B3), cost(tiling(p), p, B3)
    row = costs.gm_to_l1_cycles(B3, 1, 1024, 2048)
    assert biased.pipes["MTE2"] - plain.pipes["MTE2"] == pytest.approx(row)
    assert biased.pipes["MTE1"] - plain.pipes["MTE1"] == pytest.approx(20 + 1024 / 32)


def test_unknown_constants_are_named_and_cost_nothing():
    old = chip("Ascend310P3")
    found = predict(tiling(), problem(), old)
    assert "scalar_step_cycles" in found.not_modelled
    assert found.pipes["S"] == 0
    assert found.us is not None
    kirin = chip("Kirin9030")
    p = problem(chip="Kirin9030")
    t = tiling(p, usedCoreNum=1, singleCoreM=256, singleCoreN=512, baseM=64, baseN=128)
    assert predict(t, p, kirin).us is None
    with pytest.raises(RequestError, match=r"^Kirin9030.cube_k must give the Cube's rate for int8"):
        predict(tiling(), problem(a="int8"), chip("Kirin9030"))


def test_the_bound_is_the_largest_of_its_parts():
    start = B3.launch_cycles + B3.start_cycles
    square = problem(m=8192, n=8192, k=8192)
    cube = 8192**3 / (16 * 16 * 16 * 20)
    assert lower_bound(square, B3) == int(np.ceil(start + cube))
    half = problem(m=8192, n=8192, k=8192, cores=10)
    assert lower_bound(half, B3) == int(np.ceil(start + 2 * cube))
    assert lower_bound(replace(half, launch="mix", cores=20), B3) == lower_bound(half, B3)
    decode = problem(m=1, n=8192, k=8192)
    row = B3.hbm_row_bytes
    bytes_ = 8192 * 8192 * 2 + row + 8192 * 2 + row  # each in one stretch at best
    assert lower_bound(decode, B3) == int(np.ceil(start + bytes_ * 1.8e9 / B3.hbm_bytes_per_second))
    outer = problem(m=8192, n=8192, k=1)
    assert lower_bound(outer, B3) == int(
        np.ceil(start + 8192 * 8192 * 4 / (B3.l0c_to_gm_bytes_per_cycle * 20))
    )


def test_a_row_of_one_4_bit_element_is_a_byte_at_least():
    p = Problem(m=16, n=16, k=1, a="float4_e2m1fn", trans_b=True, chip="Ascend950PR_957d")
    assert lower_bound(p, p.chip_record) > 0
