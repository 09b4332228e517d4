"""Published times of kernels of threads: our times order the variants of a sample."""

import pytest
from tools.evidence import thread_times
from tools.evidence.thread_times import SAMPLES, median_error, pairs, predicted_us, rows

from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.isa.vector.simt.thread_work import ThreadWork


def test_rows_are_variants_of_the_samples_in_order():
    keys = [(row["sample"], row["variant"]) for row in rows()]
    known = [(name, variant) for name, sample in SAMPLES.items() for variant in sample.times]
    assert keys == [key for key in known if key in set(keys)]
    for row in rows():
        sample = SAMPLES[row["sample"]]
        assert row["us"] == pytest.approx(sample.times[row["variant"]] / sample.smaller[2], 1e-3)


def test_nine_of_ten_pairs_are_in_the_published_order():
    right = [each for *_, each in pairs(rows())]
    assert len(right) > 150
    assert sum(right) / len(right) >= 0.9


def test_the_rough_time_is_near_the_published_one():
    assert median_error(rows()) < 0.3


def test_a_pair_is_right_where_both_times_say_the_same():
    def row(us, predicted):
        return {"sample": "transpose", "variant": "", "us": us, "predicted_us": predicted} | WITHOUT

    assert [each for *_, each in pairs([row(1, 2), row(2, 3)])] == [True]
    assert [each for *_, each in pairs([row(1, 3), row(2, 2)])] == [False]
    assert not list(pairs([row(1, 3), row(1, 2)]))


WITHOUT = {"work": None}


def test_a_time_is_a_sum_and_no_less_than_the_busiest_line():
    of = chip(thread_times.CHIP)
    costs = of.thread_cycles
    assert ThreadWork(lines=1000, barriers=2).cycles(of) == round(
        1000 * costs["lines"] + 2 * costs["barriers"]
    )
    assert ThreadWork(lines=1, line_atomics=1000).cycles(of) == 1000 * costs["line_atomics"]
    launch = {"work": {"barriers": 10}, "launch_cycles": 1650, "predicted_us": 0}
    us = (1650 + 10 * costs["barriers"]) / of.frequency_hz * 1e6
    assert predicted_us(launch) == pytest.approx(us)
    with pytest.raises(RequestError, match="thread_cycles"):
        ThreadWork().cycles(chip("Ascend910B3"))
