"""Sweeps: every point is what time says, every axis is what was written, and the plot shows it."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

import cubecore
from cubecore.advice.intervals import interval_range
from cubecore.errors import RequestError
from cubecore.workflows.sweep.vary import MOST_POINTS, SweptAxis, sweep
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, names_in

SVG = "{http://www.w3.org/2000/svg}"
SHAPE = {"m": 256, "n": 256, "k": 256}


# --- axes


@pytest.mark.parametrize(
    ("text", "of", "values"),
    [
        ("m=64,128,512", "problem", (64, 128, 512)),
        ("k=512..2048/512", "problem", (512, 1024, 1536, 2048)),
        ("k=512..2047/512", "problem", (512, 1024, 1536)),
        ("cores=1..4", "problem", (1, 2, 3, 4)),
        ("n=1024..65536x4", "problem", (1024, 4096, 16384, 65536)),
        ("m=16,64..256x2", "problem", (16, 64, 128, 256)),
        ("trans-b=true,false", "problem", (True, False)),
        ("unit_flag=false", "problem", (False,)),
        ("a=half,int8", "problem", ("half", "int8")),
        ("chip=Ascend910B1,Ascend910B3", "problem", ("Ascend910B1", "Ascend910B3")),
        ("baseM=64,128", "tiling", (64, 128)),
        ("l2_bytes=1e8", "chip", (100_000_000,)),
        ("hbm_bytes_per_second=5e11..2e12/5e11", "chip",
         (500_000_000_000, 1_000_000_000_000, 1_500_000_000_000, 2_000_000_000_000)),
        ("gm_to_l1_row_cycles=0.5..1.5/0.5", "chip", (0.5, 1.0, 1.5)),
    ],
)  # fmt: skip
def test_an_axis_is_what_its_text_says(text, of, values):
    axis = SweptAxis.from_text(text)
    assert (axis.of, axis.values) == (of, values)
    assert [type(v) for v in axis.values] == [type(v) for v in values]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("m", "a sweep must be given as NAME=VALUES, got 'm'"),
        ("m=", "a sweep must be given as NAME=VALUES, got 'm='"),
        ("=4", "a sweep must be given as NAME=VALUES, got '=4'"),
        ("basem=4", "a sweep must be over a key of the problem, or a field of the tiling or the "
         "chip, got 'basem'; did you mean baseM?"),
        ("m=4,x", "m must take whole numbers, got 'x'"),
        ("m=4.5", "m must take whole numbers, got '4.5'"),
        ("m=4,4", "m must take each value once, got 4, 4"),
        ("m=8..4", "m must have a range that rises, as 512..4096/512 or 1024..65536x2, got '8..4'"),
        ("m=4..8/0", "m must have a range that rises, as 512..4096/512 or 1024..65536x2, "
         "got '4..8/0'"),
        ("m=4..8x1", "m must have a range that rises, as 512..4096/512 or 1024..65536x2, "
         "got '4..8x1'"),
        ("m=0..8x2", "m must have a range that rises, as 512..4096/512 or 1024..65536x2, "
         "got '0..8x2'"),
        ("m=a..8", "m must have a range of numbers, got 'a'"),
        ("m=4..nan", "m must have a range of numbers, got 'nan'"),
        ("m=1..9999", f"m must have at most {MOST_POINTS} values, got 9,998"),
        ("trans_a=1", "trans_a must be true or false, got '1'"),
        ("cube_k=4", "cube_k must be a field with one number to be varied, got a table by name"),
        ("gm_to_l1_row_cycles=fast", "gm_to_l1_row_cycles must take numbers, got 'fast'"),
    ],
)  # fmt: skip
def test_what_is_no_axis_is_refused(text, line):
    with pytest.raises(RequestError) as caught:
        SweptAxis.from_text(text)
    assert str(caught.value) == line
    assert_refused(cli("sweep", text, "--m", 16, "--n", 16, "--k", 16), line)


# --- points


@pytest.mark.parametrize(
    ("axes", "asked"),
    [
        ({"k": [128, 512], "cores": [1, 4]}, lambda v: ({**SHAPE, **v}, {})),
        ({"hbm_bytes_per_second": [10**11, 10**12]},
         lambda v: (SHAPE, {name: str(value) for name, value in v.items()})),
        ({"baseM": [32, 64]}, lambda v: ({**SHAPE, "fix": v}, {})),
    ],
    ids=["shape", "chip", "tiling"],
)  # fmt: skip
@pytest.mark.thinned(3)
def test_a_point_is_what_time_says(axes, asked):
    answer = sweep(axes, SHAPE)
    assert [axis.name for axis in answer.axes] == list(axes)
    expected = [{}]
    for name, values in axes.items():
        expected = [{**point, name: value} for point in expected for value in values]
    assert [dict(a.values) for a in answer.answers] == expected
    for a in answer.answers:
        keys, settings = asked(dict(a.values))
        assert a.timed.timeline == cubecore.time(keys, settings=settings).timeline
    assert answer.complete


def test_a_given_tiling_and_a_kept_one_stay():
    tiling = cubecore.plan(SHAPE, fix={"baseM": 32}).tiling
    axes = {"l2_bytes": [10**7, 10**8]}
    given = sweep(axes, SHAPE, tiling=tiling)
    assert [a.timed.tiling for a in given.answers] == [tiling, tiling]
    kept = sweep({"aic_count": [4, 20]}, {**SHAPE, "cores": 4}, keep_tiling=True)
    plan = cubecore.plan(SHAPE, cores=4).tiling
    assert [a.timed.tiling for a in kept.answers] == [plan, plan]


def test_fields_of_a_given_tiling_are_replaced():
    keys = {**SHAPE, "cores": 4}
    tiling = cubecore.plan(keys, fix={"baseN": 64, "baseK": 32}).tiling
    for options in ({"tiling": tiling}, {"tiling": tiling.to_json()}, {"keep_tiling": True}):
        fix = {"baseN": 64, "baseK": 32} if "keep_tiling" in options else {}
        answer = sweep({"baseN": [16, 32, 64]}, {**keys, "fix": fix}, **options)
        for value, point in zip((16, 32, 64), answer.answers, strict=True):
            changed = replace(tiling, baseN=value)
            assert point.timed.tiling == changed
            assert point.timed.timeline == cubecore.time(keys, tiling=changed).timeline
        assert len({point.timed.timeline.cycles for point in answer.answers}) == 3


def test_a_value_that_makes_a_given_tiling_illegal_names_the_rule():
    tiling = cubecore.plan(SHAPE).tiling
    good, bad = sweep({"baseK": [tiling.baseK, 8192]}, SHAPE, tiling=tiling).answers
    assert good.error is None
    assert bad.error.startswith("MMAD-K-EXTENT: ")


def test_a_point_without_a_time_says_why_and_the_others_are_timed():
    answer = sweep({"baseM": [64, 8192]}, SHAPE)
    good, bad = answer.answers
    assert good.error is None
    assert bad.timed is None
    assert bad.error.startswith("no legal tiling for 256 x 256 x 256 on Ascend910B3")
    assert not answer.complete
    assert answer.to_json()["points"][1]["us"] is None
    assert "baseM = 8192" in answer.text
    assert len(circles(answer.plot())) == 2  # a dot in each panel


def test_sweeps_that_are_refused():
    for axes, line in (
        ({}, "a sweep must vary one or two names, got 0"),
        ({"m": [1], "n": [1], "k": [1]}, "a sweep must vary one or two names, got 3"),
        ({"m": []}, "m must have values, got none"),
        ({"m": range(1, 41), "n": range(1, 41)}, "a sweep must have at most 1000 points, got 1600"),
    ):
        with pytest.raises(RequestError) as caught:
            sweep(axes, SHAPE)
        assert str(caught.value) == line
    same = [SweptAxis.from_text("m=1"), SweptAxis.from_text("m=2")]
    with pytest.raises(RequestError, match="vary two different names, got m and m"):
        sweep(same, SHAPE)
    with pytest.raises(RequestError) as caught:
        sweep({"k": [64, 128]}, {"m": 64})
    assert str(caught.value) == ("no point of the sweep can be timed: missing n")


# --- shown


def circles(svg):
    return list(ET.fromstring(svg).iter(f"{SVG}circle"))


def place(circle):
    return float(circle.get("cx")), float(circle.get("cy"))


def test_the_plot_has_a_dot_for_every_point_where_its_values_are():
    answer = sweep({"k": [128, 256, 1024], "cores": [1, 4]}, SHAPE)
    dots = circles(answer.plot())
    times = [a.timed.timeline.us for a in answer.answers]
    assert len(dots) == 2 * len(times)
    by_curve = [dots[:3], dots[3:6]]
    for curve, cores in zip(by_curve, (1, 4), strict=True):
        own = [a for a in answer.answers if a.values["cores"] == cores]
        xs, ys = zip(*map(place, curve), strict=True)
        # 128 to 256 is a third of the way from 128 to 1024 where an axis is logarithmic
        assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(1 / 3, abs=2e-3)
        us = [a.timed.timeline.us for a in own]
        rising = sorted(range(3), key=us.__getitem__)
        assert sorted(range(3), key=lambda i: -ys[i]) == rising, "longer is higher"
        for dot, a in zip(curve, own, strict=True):
            assert f"cores {cores}: " in dot.find(f"{SVG}title").text
            assert a.timed.timeline.limited_by in dot.find(f"{SVG}title").text


def test_words_are_drawn_side_by_side_and_cannot_become_markup():
    answer = sweep({"template": ["MDL", "NORM"]}, SHAPE)
    svg = answer.plot()
    (first, second, *_) = circles(svg)
    assert place(first)[0] < place(second)[0]
    assert not list(ET.fromstring(svg).iter(f"{SVG}polyline")), "words have nothing in between"
    texts = {t.text for t in ET.fromstring(svg).iter(f"{SVG}text")}
    assert {"MDL", "NORM", "template", "time, us", "TFLOPS"} <= texts


def test_the_command(tmp_path):
    plot = tmp_path / "k.svg"
    words = ("sweep", "k=128,256", "--m", 256, "--n", 256)
    answer = cli(*words, "--plot", plot)
    assert answer.code == DONE
    expected = sweep({"k": [128, 256]}, {"m": 256, "n": 256})
    assert answer.out == expected.text
    rows = [re.split(r" {2,}", line) for line in answer.out.splitlines()]
    assert rows[0] == ["k", "us", "in 8 of 10 cases", "TFLOPS", "of peak", "limited by"]
    assert [row[0] for row in rows[1:]] == ["128", "256"]
    for row, point in zip(rows[1:], expected.answers, strict=True):
        assert row[2] == interval_range(point.timed.interval)
        assert point.to_json()["interval"] == point.timed.interval.to_json()
    assert plot.read_text("utf-8") == expected.plot()
    assert cli(*words, "--json").json == json.loads(json.dumps(expected.to_json()))
    bad = cli("sweep", "baseM=64,8192", "--m", 256, "--n", 256, "--k", 256)
    assert bad.code == FOUND


def test_the_commands_bad_requests(tmp_path):
    words = ("sweep", "k=128,256", "--m", 256, "--n", 256)
    line = f"--plot must name a .svg file, got '{tmp_path}/k.png'"
    assert_refused(cli(*words, "--plot", tmp_path / "k.png"), line)
    assert cli(*words, "--plot", tmp_path / "none/k.svg").code == BAD_REQUEST
    assert cli("sweep").code == BAD_REQUEST
    assert names_in(tmp_path) == []
