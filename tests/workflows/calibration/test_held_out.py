"""Fits without a publication: they find what made the points, and their errors are on its cases."""

import math
from dataclasses import replace

import pytest
from tools.calibration.fit_cases import (
    HALVES,
    IDENTIFYING,
    fit_cases,
    refitted,
    unseen_cases,
    with_values,
)
from tools.calibration.fitting import Cases, Fit
from tools.calibration.held_out import record, written
from tools.calibration.refit import STARTS, shipped
from tools.pages.validation_page import validation_page

from cubecore.chips import chip
from cubecore.workflows.calibration.held_out import OF_OTHER_HALF, held_out, held_out_cases
from workflows.command import assert_refused, cli

B1 = chip("Ascend910B1")
same_process = pytest.mark.usefixtures("published")
"""For tests of the cases: the process that makes the validation has them."""


@pytest.fixture
def without_publications(published):
    return held_out(published)


def test_values_replace_fields_and_parts_of_tables():
    made = with_values(
        B1,
        {
            "gm_to_l1_row_cycles": 2.5,
            "mad_queued_cycles": 10.6,
            "scalar_step_cycles.MDL": 99.4,
            "short_start_cycles.BASIC": 7.0,
            "gm_to_l1_misaligned_block_cycles.*": 2 * B1.gm_to_l1_misaligned_block_cycles["128"],
        },
    )
    assert made.gm_to_l1_row_cycles == 2.5
    assert made.mad_queued_cycles == 11
    assert made.scalar_step_cycles == {**B1.scalar_step_cycles, "MDL": 99}
    assert made.short_start_cycles == {**B1.short_start_cycles, "BASIC": 7}
    twice = {key: 2 * value for key, value in B1.gm_to_l1_misaligned_block_cycles.items()}
    assert made.gm_to_l1_misaligned_block_cycles == pytest.approx(twice)
    assert with_values(B1, {"mad_queued_cycles": 0.2}).mad_queued_cycles == 1
    empty = with_values(B1, {"mad_queued_cycles": 10, "launch_cycles": 5}, launch_only=True)
    assert (empty.mad_queued_cycles, empty.launch_cycles) == (B1.mad_queued_cycles, 5)


@same_process
@pytest.mark.sweep
def test_every_publication_of_the_fits_is_left_out_once():
    fits = refitted()
    assert set(fits) == {one.case.chip.arch for one in fit_cases()} == set(STARTS)
    for arch, of_arch in fits.items():
        sources = {
            one.point.repository
            for one in fit_cases()
            if one.case.chip.arch == arch and one.case.group not in IDENTIFYING
        }
        assert set(of_arch) == {"", *sources, *HALVES}
        for values in of_arch.values():
            assert set(values) <= set(STARTS[arch])
            assert all(math.isfinite(value) and value > 0 for value in values.values())


ONE_OF = 40
"""A quick look at the record makes this share of it anew."""


@same_process
@pytest.mark.sweep
@pytest.mark.parametrize("share", [ONE_OF, 1], ids=["a few", "all"])
def test_the_record_is_what_the_cases_take_with_the_values_of_the_fits(share):
    cases = [one for one in (*fit_cases(), *unseen_cases()) if one.case.group not in IDENTIFYING]
    known = {one.id: written(one) for one in held_out_cases()}
    made = {one.id: written(one) for one in record(refitted(), cases[::share])}
    assert len(made) >= len(known) // share
    for name, line in made.items():
        same = [e if e is None else pytest.approx(e, abs=2e-6, rel=0) for e in known[name][1:]]
        assert line[1:] == same, f"{name}: python -m tools.calibration.held_out writes the record"
    if share == 1:
        assert set(made) == set(known)


def test_errors_of_the_chip_files_are_those_of_the_cases(published, without_publications):
    ids = {one.id for one in held_out_cases()}
    for one in without_publications:
        if not one.arch:
            continue
        walls = [
            abs(case.wall.error)
            for case in published.timed
            if case.wall is not None
            and case.point.id in ids
            and chip(case.chip).arch == one.arch
            and case.point.repository == one.source
        ]
        assert list(one.shipped.values) == sorted(walls)
        assert len(one.held.values) == len(one.fitted.values) == len(walls) > 0
        assert 0 <= one.inside <= len(walls)


def test_kinds_of_all_chips_count_every_case_once(without_publications):
    once = [one for one in without_publications if one.source != OF_OTHER_HALF]
    publications = sum(len(one.held.values) for one in once if one.arch)
    whole = [one for one in once if not one.arch and not one.chip]
    of_chips = [one for one in once if not one.arch and one.chip]
    assert sum(len(one.held.values) for one in whole) == publications
    assert sum(len(one.held.values) for one in of_chips) == publications
    assert sum(one.inside for one in whole) == sum(one.inside for one in of_chips)


@pytest.mark.sweep
def test_the_errors_left_out_keep_their_bounds(without_publications):
    """The headline: what the fit is off on publications that it has not seen."""
    whole = {one.source: one for one in without_publications if not one.arch and not one.chip}
    known, library = whole["products, tiling published"], whole["products of libraries"]
    assert known.held.median <= 0.08
    assert round(known.held.p90, 2) <= 0.22
    assert known.fitted.median <= 0.03
    assert known.fitted.p90 <= 0.12
    assert library.held.median <= 0.14
    assert library.fitted.median <= 0.10
    for name in ("element-wise kernels, code published", "element-wise kernels of libraries"):
        assert whole[name].held.median <= 0.18
        assert whole[name].held.p90 <= 0.45
    assert whole[OF_OTHER_HALF].held.median <= 0.25


@pytest.mark.sweep
def test_nested_intervals_hold_what_they_are_made_for(without_publications):
    own = [one for one in without_publications if one.arch]
    inside, cases = sum(one.inside for one in own), sum(len(one.held.values) for one in own)
    assert 0.75 <= inside / cases <= 0.85


@same_process
@pytest.mark.sweep
def test_a_fit_finds_what_made_its_points_without_seeing_the_others():
    """Points that a chip with other constants would have measured; those of one source are off."""
    start = {"launch_cycles": 5000.0, "gm_to_l1_row_cycles": 1.0, "start_cycles": 5000.0}
    true = {"launch_cycles": 9000.0, "gm_to_l1_row_cycles": 2.2, "start_cycles": 8000.0}
    known = [one for one in fit_cases() if one.case.group == "known" and one.point.cores]
    cases = []
    for one in [x for x in known if x.case.chip.arch == "2201"][::6]:
        wall, _ = one.errors(true)
        if wall is None:
            continue
        wrong = 3.0 if one.point.repository == "catlass" else 1.0
        name = next(n for n in one.point.measured if one.point.measured[n] == wall.measured_us)
        measured = {name: wall.predicted_us * wrong}
        cases.append(replace(one, point=replace(one.point, measured=measured)))
    assert {one.point.repository for one in cases} >= {"asc-devkit", "catlass"}
    fit = Fit(start, Cases(cases, workers=1))
    found = fit.on_all()
    assert fit.ended
    assert fit.on_all(found) == found, "a fit that begins at its result stays there"
    found = fit.without("catlass")
    own = [one for one in cases if one.point.repository != "catlass"]
    errors = [abs(one.errors(found)[0].error) for one in own]
    assert max(errors) < 0.02 < max(abs(one.errors(start)[0].error) for one in own)
    assert fit.without("catlass") == found, "the same points give the same values"


@pytest.mark.sweep
def test_the_table_is_part_of_the_page_and_of_the_answer(published, without_publications):
    answer = replace(published, held_out=without_publications)
    page, text = validation_page(answer), answer.text
    for one in without_publications:
        row = [line for line in page.splitlines() if line.startswith(f"| {one.name} |")]
        assert len(row) == 1
        median, p90 = one.held.median, one.held.p90
        share = one.inside / len(one.held.values)
        assert row[0].endswith(f"| {median:.1%}, {p90:.1%} | {share:.1%} |")
        assert f"{one.name} " in text
    made = answer.to_json()["held_out"]
    assert [(one["arch"], one["source"]) for one in made] == [
        (one.arch, one.source) for one in without_publications
    ]
    assert "held_out" not in published.to_json()


def test_it_is_of_the_published_points_alone(tmp_path):
    line = "--held-out excludes --points and --set"
    assert_refused(cli("validate", "--held-out", "--points", tmp_path / "x"), line)
    assert_refused(cli("validate", "--held-out", "--set", "l2_bytes=5"), line)


def test_shipped_values_take_the_place_of_the_old_ones_with_their_source():
    lines = [
        'a_cycles = { value = 42, source = "mm", note = "kept" }',
        'b_bytes = { value = { MDL = 150, NORM = 449 }, source = "mm" }',
        'c_cycles = { value = { 128 = 0.50, 64 = 1.0 }, source = "mm" }',
        'd_cycles = { value = 7, source = "perf" }',
        'e_per_second = { value = 1_490_000_000_000, source = "copy" }',
    ]
    text = "".join(f"{line}\n" for line in lines)
    values = {"a_cycles": 17.6, "b_bytes.MDL": 201.0, "c_cycles.*": 0.25, "e_per_second": 1.5e12}
    assert shipped(text, values).splitlines() == [
        'a_cycles = { value = 18, source = "refit", note = "kept" }',
        'b_bytes = { value = { MDL = 201, NORM = 449 }, source = "refit" }',
        'c_cycles = { value = { 128 = 0.25, 64 = 0.5 }, source = "refit" }',
        'd_cycles = { value = 7, source = "perf" }',
        'e_per_second = { value = 1_500_000_000_000, source = "refit" }',
    ]
