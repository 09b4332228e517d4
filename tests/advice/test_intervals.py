"""Intervals: as far as most of the nearest residuals were off, wider with their distance."""

import math

import pytest

from cubecore.advice.intervals import (
    Interval,
    Residual,
    interval,
    interval_among,
    interval_line,
    residuals,
)
from workflows.command import cli

EVEN = [Residual("a", "2201", "known", 16, 100.0, (i - 12) / 100) for i in range(25)]


def test_the_interval_reaches_as_far_as_most_of_the_nearest_were_off():
    made = interval_among(EVEN[:24], 100.0, "2201", "known", 16)
    sizes = sorted(abs(one.ratio) for one in EVEN[:24])
    off = sizes[18] + 0.4 * (sizes[19] - sizes[18])
    assert made.low_us == pytest.approx(100 * math.exp(-off))
    assert made.high_us == pytest.approx(100 * math.exp(off))


def test_it_is_wider_far_from_what_was_measured():
    near = interval_among(EVEN, 100.0, "2201", "known", 16)
    for far in (
        interval_among(EVEN, 1.0, "2201", "known", 16),
        interval_among(EVEN, 100.0, "3510", "known", 16),
        interval_among(EVEN, 100.0, "2201", "known", 8),
        interval_among(EVEN, 100.0, "2201", "library", 16),
    ):
        assert far.high_us / far.low_us > near.high_us / near.low_us


def test_other_kinds_have_no_part_in_it_and_the_prediction_is_always_inside():
    vector = [Residual("a", "2201", "vector", 16, 100.0, 3.0)] * 30
    assert interval_among(EVEN + vector, 100.0, "2201", "known", 16).high_us < 200
    slow = [Residual("a", "2201", "known", 16, 100.0, 0.5)] * 30
    made = interval_among(slow, 100.0, "2201", "known", 16)
    assert made.low_us < 100 < made.high_us == pytest.approx(100 * math.exp(0.5))


def test_an_operator_that_nobody_measured_has_a_wider_interval_and_says_so():
    softmax = [Residual("a", "2201", "operator", 16, 100.0, i / 100, "softmax") for i in range(25)]
    known, unknown = (
        interval_among(softmax, 100.0, "2201", "operator", 16, op) for op in ("softmax", "rotary")
    )
    assert math.log(unknown.high_us / 100) == pytest.approx(1.2 * math.log(known.high_us / 100))
    assert (known.measured, unknown.measured) == (True, False)
    after = "(no measured kernel of this kind: from errors on others, and wider)"
    assert interval_line(unknown).endswith(after)
    assert unknown.to_json()["measured"] is False


def test_every_residual_is_of_a_publication_and_finite():
    assert len(residuals()) > 200
    for one in residuals():
        assert one.source
        assert one.us > 0
        assert math.isfinite(one.ratio)


def test_answers_have_the_interval():
    request = ("--m", "512", "--n", "512", "--k", "512")
    timed = cli("time", *request, "--json").json
    planned = cli("plan", *request, "--json").json
    assert timed["interval"] == planned["interval"]
    assert timed["interval"]["low_us"] <= timed["us"] <= timed["interval"]["high_us"]
    made = interval(timed["us"], "2201", "known", 16)
    assert timed["interval"] == made.to_json()
    for verb in ("time", "plan"):
        assert interval_line(made) in cli(verb, *request).out.splitlines()


def test_both_ends_share_a_unit_where_they_can():
    after = "(from errors on similar measured kernels)"
    assert interval_line(Interval(34.0, 45.0)) == f"80% interval 34 to 45 us {after}"
    assert interval_line(Interval(900.0, 1200.0)) == f"80% interval 900 us to 1.2 ms {after}"
