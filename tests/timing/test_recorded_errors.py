"""No published measurement that can be timed gets worse than it was recorded to be.

The record is made from the model's own errors, so it proves nothing of the model.
"""

import tomllib

from tools.calibration.recorded_errors import RECORD, worst

from cubecore.workflows.calibration.measured_points import published as points

RECORDED = tomllib.loads(RECORD.read_text(encoding="utf-8"))


def test_every_timed_case_is_recorded_and_no_record_is_left_over(published):
    drawn, timed = (
        {case.point.id for case in cases} for cases in (published.cases, published.timed)
    )
    assert set(RECORDED) <= {point.id for point in points()}
    assert timed == drawn & set(RECORDED), (
        "python -m tools.calibration.recorded_errors writes the file"
    )


def test_no_case_gets_worse(published):
    now = {case.point.id: 100 * worst(case) for case in published.timed}
    worse = [
        f"{name}: {now[name]:.1f} %, recorded {recorded} %"
        for name, recorded in RECORDED.items()
        if now.get(name, 0) > recorded
    ]
    assert worse == []


def mapped(cases):
    cases = list(cases)
    return sum(case.skipped is None for case in cases) / len(cases)


def test_enough_points_are_mapped(published):
    cases = published.cases
    known = ("baseM", "L0", "L1tileB")
    matmul = [case for case in cases if case.point.kind == "matmul"]
    stated = [c for c in matmul if any(name in c.point.tiling for name in known)]
    assert mapped(stated) >= 0.9
    assert mapped(matmul) >= 0.75
    assert mapped(c for c in cases if c.point.kind in {"vector", "dma_read"}) >= 0.75


def test_a_skipped_point_says_why_and_a_timed_one_is_timed(published):
    for case in published.cases:
        if case.skipped is not None:
            assert case.skipped
            assert (case.wall, dict(case.pipes)) == (None, {})
        else:
            assert case.wall is not None or case.pipes
