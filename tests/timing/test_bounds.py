"""Every published measurement that can be timed stays as near as it was recorded to be."""

import sys
import tomllib
from pathlib import Path

import pytest

from cubecore.workflows.calibration.validate import published_validation

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.bounds import BOUNDS, worst  # noqa: E402 - tools is a folder of the repository

RECORDED = tomllib.loads(BOUNDS.read_text(encoding="utf-8"))


def test_every_timed_case_has_a_bound_and_no_bound_is_left_over():
    timed = {case.point.id for case in published_validation().timed}
    assert timed == set(RECORDED), "python -m tools.bounds writes the file"


@pytest.mark.parametrize("name", RECORDED)
def test_a_case_stays_within_its_bound(name):
    (case,) = [case for case in published_validation().timed if case.point.id == name]
    assert 100 * worst(case) <= RECORDED[name]


def mapped(cases):
    cases = list(cases)
    return sum(case.skipped is None for case in cases) / len(cases)


def test_enough_points_are_mapped():
    cases = published_validation().cases
    known = ("baseM", "L0", "L1tileB")
    matmul = [case for case in cases if case.point.kind == "matmul"]
    stated = [c for c in matmul if any(name in c.point.tiling for name in known)]
    assert mapped(stated) >= 0.9
    assert mapped(c for c in matmul if c not in stated) >= 0.75
    assert mapped(c for c in cases if c.point.kind in {"vector", "dma_read"}) >= 0.75


def test_a_skipped_point_says_why_and_a_timed_one_is_timed():
    for case in published_validation().cases:
        if case.skipped is not None:
            assert case.skipped
            assert (case.wall, dict(case.pipes)) == (None, {})
        else:
            assert case.wall is not None or case.pipes
