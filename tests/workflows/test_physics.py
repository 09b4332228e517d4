"""Times of plans obey physics, in random pairs: more work is never done sooner, and so on."""

import random

import pytest

import cubecore
from cubecore.chips import chip, chip_names
from cubecore.dtypes import element_type
from cubecore.planning.event_ranking import can_be_timed
from cubecore.tiling.model.problem import Problem
from cubecore.units import align_up
from parts import crossed, strided

CHIPS = [name for name in chip_names() if can_be_timed(Problem(m=1, n=16, k=16), chip(name))]
"""Every chip that `time` takes."""
LINE_BYTES = 256
PLANNED_APART = 1.01
"""Times by which the plan for a faster chip may be slower: the search times other tilings for it.

A given tiling is never slower on it.
"""


def drawn(source):
    """Return a random product whose rows all start on 256 B, and the elements of such a line."""
    kind = source.choice(["float16", "bfloat16", "int8", "float32"])
    line = 8 * LINE_BYTES // element_type(kind).bits
    keys = {
        "m": source.choice([1, 2, 8, 16, 33, 50, 64, 128, 300, 1000]),
        "n": line * int(2 ** source.uniform(0, 6)),
        "k": line * int(2 ** source.uniform(0, 7)),
        "a": kind,
        "chip": source.choice(CHIPS),
        "trans_b": source.random() < 0.5,
    }
    return keys, line


def planned(keys, **settings):
    plan = cubecore.plan(keys, alternatives=0, settings=settings or None)
    assert plan.predicted.us >= plan.lower_bound_us
    return plan


SEEDS = crossed("mnk", range(350), every=176)


@pytest.mark.parametrize(("axis", "seed"), SEEDS)
@pytest.mark.thinned(4)
def test_more_rows_or_columns_or_a_longer_k_never_take_less_time(axis, seed):
    source = random.Random(f"{axis} {seed}")
    keys, line = drawn(source)
    more = source.randint(1, 200) if axis == "m" else line * source.randint(1, 8)
    longer = {**keys, axis: keys[axis] + more}
    assert planned(longer).predicted.cycles >= planned(keys).predicted.cycles / 1.01, longer


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("what", "seed"), crossed(["cores"], range(350), every=117))
def test_more_cores_never_take_longer(what, seed):
    source = random.Random(f"{what} {seed}")
    keys, _ = drawn(source)
    most = chip(keys["chip"]).aic_count
    few = source.randint(1, most - 1)
    many = source.randint(few + 1, most)
    cycles = [planned({**keys, "cores": cores}).predicted.cycles for cores in (few, many)]
    assert cycles[1] <= 1.02 * cycles[0], (keys, few, many)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("field", "seed"),
    crossed(["hbm_bytes_per_second", "frequency_hz"], range(301), every=151),
)
def test_faster_memory_or_a_faster_clock_is_never_slower(field, seed):
    """Of one tiling to the last digit; of the plans as far as the same tilings are timed."""
    source = random.Random(f"{field} {seed}")
    keys, _ = drawn(source)
    settings = {field: str(int(getattr(chip(keys["chip"]), field) * source.uniform(1.05, 3)))}
    plain, faster = planned(keys), planned(keys, **settings)
    kept = cubecore.time(keys, tiling=plain.tiling, settings=settings).timeline
    assert kept.us <= plain.predicted.us
    assert faster.predicted.us <= PLANNED_APART * plain.predicted.us


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", strided(range(60), every=20))
def test_a_padded_size_that_would_be_faster_is_named(seed):
    """Rows of B off the boundary: where padding pays, the plan says so, with the size."""
    source = random.Random(f"padded {seed}")
    keys, line = drawn(source)
    while not chip(keys["chip"]).gm_to_l1_misaligned_block_cycles:
        keys, line = drawn(source)
    n = keys["n"] + source.randint(1, line - 1)
    keys |= {"n": n, "trans_b": False}
    plain, padded = planned(keys), planned({**keys, "n": align_up(n, line)})
    if padded.predicted.cycles < 0.97 * plain.predicted.cycles:
        told = [reason.text for reason in plain.reasons if reason.cause == "row starts"]
        assert any(f"N padded to {align_up(n, line):,} puts them on it" in text for text in told)
