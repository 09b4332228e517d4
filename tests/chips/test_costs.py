"""Costs against the fact sheet's worked examples, and what holds for all of them."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.chips import chip, chip_names, costs
from cubecore.dtypes import ELEMENT_TYPES, element_type
from cubecore.errors import RequestError
from parts import examples

A2 = chip("Ascend910B1")
A5 = chip("Ascend950PR_9589")
HALF = ELEMENT_TYPES["float16"]
CHIPS = [chip(name) for name in chip_names()]
chips = st.sampled_from(CHIPS)
sizes = st.integers(1, 1 << 20)
extents = st.integers(1, 1 << 13)


@pytest.mark.parametrize(
    ("c", "dtype", "shape", "cycles"),
    [
        (A2, "half", (128, 256, 64), 512),
        (A2, "half", (64, 64, 64), 64),
        (A2, "half", (128, 128, 64), 256),
        (A2, "half", (128, 64, 128), 256),
        (A2, "half", (40, 50, 60), 48),
        (A2, "int8", (6, 7, 8), 1),
        (A2, "int8", (128, 256, 64), 256),
        (A2, "int4", (128, 256, 64), 128),
        (A2, "float", (64, 64, 64), 256),
        (A5, "half", (64, 64, 64), 64),
        (A5, "half", (256, 256, 64), 1024),
        (A5, "float4_e2m1fn", (256, 256, 256), 1024),
        (A5, "float8_e4m3fn", (256, 256, 128), 1024),
        (A5, "float", (64, 64, 64), 1024),
    ],
)
def test_mad_of_the_worked_examples(c, dtype, shape, cycles):
    assert costs.mad_cycles(c, element_type(dtype), *shape) == cycles


@pytest.mark.parametrize(
    ("c", "shape", "to_a", "to_b"),
    [
        (A2, (64, 64, 64), 32, 64),
        (A2, (128, 256, 64), 64, 256),
        (A5, (64, 64, 64), 32, 32),
        (A5, (256, 256, 64), 128, 128),
    ],
)
def test_l1_to_l0_of_the_worked_examples(c, shape, to_a, to_b):
    m, n, k = shape
    assert costs.l1_to_l0a_cycles(c, m * k * 2) == to_a
    assert costs.l1_to_l0b_cycles(c, k * n * 2) == to_b


def test_vector_add_of_the_bank_benchmark():
    assert costs.vector_cycles(A2, 64) == pytest.approx(88.4, rel=0.02)


@pytest.mark.parametrize(("elements", "cycles"), [(4096, 99.7), (21760, 380.8)])
def test_adds_of_half_on_950(elements, cycles):
    assert costs.vector_cycles(A5, elements // 128) == pytest.approx(cycles, rel=0.03)


@pytest.mark.parametrize(
    ("name", "dtype", "tera_ops"),
    [
        ("Ascend910B1", "float16", 363.7),
        ("Ascend910B2", "float16", 353.9),
        ("Ascend910B3", "float16", 294.9),
        ("Ascend910B4", "float16", 245.8),
        ("Ascend950PR_9589", "float16", 432.5),
        ("Ascend950PR_9589", "float8_e4m3fn", 865.1),
        ("Ascend950PR_9589", "float4_e2m1fn", 1730.2),
        ("Ascend310", "float16", 11.1),
        ("Ascend310", "int8", 22.3),
        ("Ascend310B1", "int8", 20.1),
        ("Ascend310P3", "int8", 138.9),
        ("Ascend910A", "float16", 262.1),
    ],
)
def test_peak_throughput(name, dtype, tera_ops):
    c = chip(name)
    peak = costs.peak_ops_per_cycle(c, ELEMENT_TYPES[dtype]) * c.frequency_hz / 1e12
    assert peak == pytest.approx(tera_ops, abs=0.06)


LINKS = replace(
    A2,
    gm_to_l1_bytes_per_cycle=125,
    gm_to_l1_transfer_cycles=43,
    gm_to_l1_row_cycles=1.11,
    gm_to_l1_pitch_row_cycles=0.69,
    gm_to_l1_misaligned_block_cycles={"128": 0.49, "64": 0.97, "32": 1.2, "16": 1.8},
    gm_miss_bytes_per_cycle=50,
    gm_to_ub_bytes_per_cycle=64,
    gm_to_ub_transfer_cycles=20,
    gm_miss_ub_bytes_per_cycle=32,
    l0c_to_gm_bytes_per_cycle=80,
    l0c_to_gm_row_cycles=1.2,
    l0c_to_gm_head_cycles=20,
    l0c_to_gm_misaligned_row_cycles=23,
    l2_bytes=1000,
    l2_survival_power=4,
    l2_write_reach=1.5,
)


def test_transfer_of_aligned_rows_costs_transfer_rows_and_bytes():
    # 12800 B is no multiple of 8 KiB
    assert costs.gm_to_l1_cycles(LINKS, 64, 128, 12800) == pytest.approx(
        43 + 64 * (1.11 + 128 / 125)
    )


def test_rows_at_multiples_of_8_kib_meet_in_a_bank_unless_alone():
    for pitch in (8192, 16384, 24576):
        assert costs.pitch_conflict_cycles(LINKS, 64, pitch) == pytest.approx(64 * 0.69)
        assert costs.pitch_conflict_cycles(LINKS, 1, pitch) == 0
    for pitch in (4096, 12800, 8192 + 32):
        assert costs.pitch_conflict_cycles(LINKS, 64, pitch) == 0


def test_rows_without_a_gap_are_one_stretch():
    assert costs.stretch_bytes(16, 512, 512) == 16 * 512
    assert costs.stretch_bytes(16, 512, 544) == 512


OFF = [(512, 0), (384, 0.49), (320, 0.97), (288, 1.2), (272, 1.8), (514, 1.8)]


@pytest.mark.parametrize(("pitch", "a_block"), OFF)
def test_rows_off_their_boundary_cost_by_block(pitch, a_block):
    aligned = costs.gm_to_l1_cycles(LINKS, 16, 256, 512)
    assert costs.gm_to_l1_cycles(LINKS, 16, 256, pitch) - aligned == pytest.approx(16 * 8 * a_block)


@pytest.mark.parametrize(("pitch", "a_block"), OFF)
def test_rows_into_ub_cost_by_block_too(pitch, a_block):
    whole = 20 + 16 * (256 / 64 + 8 * a_block)
    assert costs.gm_to_ub_cycles(LINKS, 16 * 256, 16, pitch) == pytest.approx(whole)
    assert costs.gm_to_ub_cycles(LINKS, 16 * 256) == pytest.approx(20 + 16 * 256 / 64)


@pytest.mark.parametrize("pitch", [pitch for pitch, _ in OFF] + [8192])
def test_950_pays_nothing_for_where_rows_begin(pitch):
    assert costs.gm_to_l1_cycles(A5, 16, 256, pitch) == costs.gm_to_l1_cycles(A5, 16, 256, 512)
    assert costs.pitch_conflict_cycles(A5, 16, pitch) == 0


@given(
    step=st.integers(1, 40),
    row=st.integers(1, 600),
    share=st.integers(0, 20),
    cores=st.integers(1, 30),
    among=st.booleans(),
)
def test_rows_cost_the_mean_over_where_they_may_start(step, row, share, cores, among):
    """Every start in a line that a multiple of the step leads to, of the slowest core."""
    line = costs.LINE_BYTES
    apart = math.gcd(16 * step, line) if among else line
    means = [
        statistics.mean(
            costs.row_start_cycles(A2, start, row)
            for start in range(16 * share * core % apart, line, apart)
        )
        if among
        else costs.row_start_cycles(A2, 16 * share * core, row)
        for core in range(cores)
    ]
    told = costs.mean_row_start_cycles(
        A2, row, step_bytes=16 * step, share_bytes=16 * share, cores=cores, among=among
    )
    assert told == pytest.approx(max(means))


@pytest.mark.parametrize(("cores", "cycles"), [(1, 0), (2, 3 * 1.58), (20, 3 * 1.58)])
def test_rows_of_shares_off_16_bytes_may_start_anywhere(cores, cycles):
    assert A2.gm_to_l1_misaligned_block_cycles["16"] == 1.58
    told = costs.mean_row_start_cycles(
        A2, 78, step_bytes=96, share_bytes=78, cores=cores, among=False
    )
    assert told == pytest.approx(cycles)


def test_bytes_that_l2_does_not_hold_come_at_their_own_rate():
    """1000 B at 50 instead of 125 B a cycle into L1, at 32 instead of 64 into UB."""
    assert costs.gm_miss_cycles(LINKS, 1000) == pytest.approx(1000 / 50 - 1000 / 125)
    assert costs.gm_miss_cycles(LINKS, 1000, into_ub=True) == pytest.approx(1000 / 32 - 1000 / 64)
    for unlimited in (None, 125, 200):
        chip_ = replace(LINKS, gm_miss_bytes_per_cycle=unlimited)
        assert costs.gm_miss_cycles(chip_, 1000) == 0


@pytest.mark.parametrize("power", [1, 2, 4])
@pytest.mark.parametrize("brought", [0, 1, 400, 1000, 1500, 5000])
def test_what_l2_loses(brought, power):
    lost = costs.l2_gone(replace(LINKS, l2_survival_power=power), brought)
    assert lost == pytest.approx(1 - 2.718281828459045 ** -((brought / 1000) ** power))
    assert np.asarray(costs.l2_gone(LINKS, np.array([brought, 7.0]))).shape == (2,)
    assert costs.l2_gone(replace(LINKS, l2_bytes=None), brought) == 1


@pytest.mark.parametrize("brought", [0, 1, 400, 1500, 5000])
def test_what_l2_keeps_of_the_output(brought):
    kept = costs.l2_kept_dirty(LINKS, brought)
    assert kept == pytest.approx(2.718281828459045 ** -((brought / 1500) ** 2))
    assert costs.l2_kept_dirty(replace(LINKS, l2_bytes=None), brought) == 0


def test_fixpipe_costs_head_rows_and_bytes():
    whole = 20 + 128 * 1.2 + 65536 / 80
    for pitch, more in ((0, 0), (512, 0), (976, 0), (4076, 23), (2, 23)):
        found = costs.l0c_to_gm_cycles(LINKS, 128, 65536, pitch)
        assert found == pytest.approx(whole + 128 * more)
    silent = replace(LINKS, l0c_to_gm_misaligned_row_cycles=None)
    assert costs.l0c_to_gm_cycles(silent, 128, 65536, 2) == pytest.approx(whole)


def test_device_memory_serves_its_rate_less_the_cost_of_rows():
    rate, row = A2.hbm_bytes_per_second, A2.hbm_row_bytes
    seconds = costs.hbm_cycles(A2, rate / 1000, 1e9) / A2.frequency_hz
    assert seconds == pytest.approx(1e-3, rel=1e-6)
    assert costs.hbm_cycles(A2, 1 << 20, row) == pytest.approx(
        2 * costs.hbm_cycles(A2, 1 << 20, 1e12)
    )


def test_device_memory_without_a_measured_rate_has_the_configured_one():
    assert costs.hbm_cycles(chip("Ascend310P3"), 17 * 8 * 100, 512) == 100


def test_an_unknown_rate_of_the_cube_is_refused():
    with pytest.raises(RequestError) as error:
        costs.mad_cycles(chip("Ascend910A"), ELEMENT_TYPES["bfloat16"], 16, 16, 16)
    assert str(error.value) == (
        "Ascend910A.cube_k must give the Cube's rate for bfloat16, got no published value"
    )
    assert costs.peak_ops_per_cycle(chip("Ascend910A"), ELEMENT_TYPES["bfloat16"]) is None


SIZED = {
    "l1_to_l0a": costs.l1_to_l0a_cycles,
    "l1_to_l0b": costs.l1_to_l0b_cycles,
    "l1_to_bt": costs.l1_to_bt_cycles,
    "gm_to_ub": costs.gm_to_ub_cycles,
    "ub_to_gm": costs.ub_to_gm_cycles,
    "vector": costs.vector_cycles,
    "gm_to_l1 by bytes": lambda c, size: costs.gm_to_l1_cycles(c, 8, size, 1 << 21),
    "gm_to_l1 by rows": lambda c, size: costs.gm_to_l1_cycles(c, size, 96, 1000),
    "fixpipe by bytes": lambda c, size: costs.l0c_to_gm_cycles(c, 16, size),
    "fixpipe by rows": lambda c, size: costs.l0c_to_gm_cycles(c, size, 4096),
    "hbm": lambda c, size: costs.hbm_cycles(c, size, 512),
    "mad by m": lambda c, size: costs.mad_cycles(c, HALF, size, 48, 48),
    "mad by n": lambda c, size: costs.mad_cycles(c, HALF, 48, size, 48),
    "mad by k": lambda c, size: costs.mad_cycles(c, HALF, 48, 48, size),
}
every_cost = pytest.mark.parametrize("cost", SIZED.values(), ids=SIZED)


@every_cost
@examples(100)
@given(c=chips, one=sizes, other=sizes)
@pytest.mark.thinned(3)
def test_more_never_costs_less(cost, c, one, other):
    small, large = sorted((one, other))
    assert 0 <= cost(c, small) <= cost(c, large)


@every_cost
@examples(100)
@given(c=chips, values=st.lists(sizes, min_size=1, max_size=8))
@pytest.mark.thinned(3)
def test_an_array_costs_what_its_elements_cost(cost, c, values):
    assert np.array_equal(
        np.asarray(cost(c, np.array(values))), [cost(c, value) for value in values]
    )


@given(c=chips, data=st.data())
def test_pitches_in_an_array_cost_what_each_costs(c, data):
    pitches = data.draw(st.lists(st.integers(1, 1 << 16), min_size=1, max_size=8))
    whole = costs.gm_to_l1_cycles(c, 8, 96, np.array(pitches))
    each = [costs.gm_to_l1_cycles(c, 8, 96, pitch) for pitch in pitches]
    assert np.array_equal(np.broadcast_to(whole, len(each)), each)
    whole = costs.pitch_conflict_cycles(c, 8, np.array(pitches))
    assert np.array_equal(whole, [costs.pitch_conflict_cycles(c, 8, pitch) for pitch in pitches])


@given(c=chips, data=st.data(), m=extents, n=extents, k=extents)
def test_whole_fractals_run_at_the_peak_rate(c, data, m, n, k):
    dtype = ELEMENT_TYPES[data.draw(st.sampled_from(sorted(c.cube_k)))]
    m, n, k = m * c.cube_m, n * c.cube_n, k * dtype.c0
    peak = costs.peak_ops_per_cycle(c, dtype)
    assert costs.mad_cycles(c, dtype, m, n, k) * peak == 2 * m * n * k * c.aic_count
