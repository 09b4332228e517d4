"""Published series that measure alternatives of one product: the model would choose the fastest.

Each series is one product on one chip, done in several ways that a request and a tiling can say.
Choosing by predicted time must give the one that was measured to be the fastest, or one within 3 %
of it. The closed form predicts the tilings below; the event timing is `validate`'s.
"""

from dataclasses import replace

import pytest

from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.workflows.calibration.measured_points import published
from cubecore.workflows.calibration.validate import validation_of
from tiling.cases import tiling

WITHIN = 1.03
HUGE = Problem(m=8192, n=8192, k=8192, c="float16", trans_b=True, chip="Ascend910B1", cores=24)
BLOCK = {"baseM": 128, "baseN": 256, "baseK": 64}
GRID = {"usedCoreNum": 24, "singleCoreM": 2048, "singleCoreN": 1536}
ONE = {"usedCoreNum": 1, "singleCoreM": 8192, "singleCoreN": 8192}
STEPS = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}
NO_STEPS = {"stepKa": 1, "stepKb": 1, "depthA1": 1, "depthB1": 1}
WIDE = Problem(m=128, n=30720, k=1024, c="float16", chip="Ascend910B1", cores=24)
SHORT = replace(WIDE, k=64)
NARROW = Problem(m=16, n=16, k=1024, chip="Ascend910B1")
SMALL = {"singleCoreM": 16, "singleCoreN": 16, "baseM": 16, "baseN": 16, "baseK": 512}


def wide(cores, share):
    return {"usedCoreNum": cores, "singleCoreM": 128, "singleCoreN": share, **BLOCK, **STEPS}


SERIES = {
    "matmul_high_performance": {
        "asc_mmhp_a2_case0": (
            replace(HUGE, template="NORM", cores=1),
            {**ONE, "baseM": 64, "baseN": 64, "baseK": 64, **NO_STEPS},
        ),
        "asc_mmhp_a2_case1": (
            replace(HUGE, template="NORM", cores=1),
            {**ONE, **BLOCK, **NO_STEPS},
        ),
        "asc_mmhp_a2_case2": (
            replace(HUGE, template="NORM"),
            {"usedCoreNum": 24, "singleCoreM": 4096, "singleCoreN": 683, **BLOCK, **NO_STEPS},
        ),
        "asc_mmhp_a2_case3": (replace(HUGE, template="NORM"), {**GRID, **BLOCK, **NO_STEPS}),
        "asc_mmhp_a2_case4": (
            HUGE,
            {**GRID, **BLOCK, "stepKa": 2, "stepKb": 2, "depthA1": 4, "depthB1": 4},
        ),
        "asc_mmhp_a2_case5": (
            HUGE,
            {**GRID, **BLOCK, "stepKa": 8, "stepKb": 4, "depthA1": 16, "depthB1": 8},
        ),
    },
    "NORM or MDL": {
        "ascdoc_mdl_before": (replace(WIDE, template="NORM"), wide(24, 1280)),
        "ascdoc_mdl_after": (WIDE, wide(24, 1280)),
    },
    "unit flag": {
        "ascdoc_unitflag_before": (
            replace(SHORT, chip="Ascend910B3", cores=20),
            wide(20, 1536),
        ),
        "ascdoc_unitflag_after": (
            replace(SHORT, chip="Ascend910B3", cores=20, unit_flag=True),
            wide(20, 1536),
        ),
    },
    "mix or cube": {
        "ascdoc_purecube_before": (replace(SHORT, launch="mix", cores=48), wide(48, 640)),
        "ascdoc_purecube_after": (SHORT, wide(24, 1280)),
    },
    "split K": {
        "ascdoc_splitk_before": (
            replace(NARROW, cores=1),
            {"usedCoreNum": 1, **SMALL, **NO_STEPS},
        ),
        "ascdoc_splitk_after": (
            replace(NARROW, cores=2, split_k=True),
            {"usedCoreNum": 2, "singleCoreK": 512, **SMALL, **NO_STEPS},
        ),
    },
}
TIMED = {
    **{name: tuple(members) for name, members in SERIES.items()},
    "written by hand, in one round over L2 or two": ("asc_mmbasic_a2_s1", "asc_mmbasic_a2_s2"),
    "tiles of 128 x 256 or 256 x 128": (
        "catlass_tune_0_1024_576_6144",
        "catlass_tune_1_1024_576_6144",
    ),
    "tiles of 128 x 256 or 32 x 320": (
        "catlass_tune_6_20_6144_16384",
        "catlass_tune_7_20_6144_16384",
    ),
    "IBSHARE or NORM": ("ascdoc_ibshareB_before", "ascdoc_ibshareB_after"),
}
"""Series for the event timing, which has dealt-out tiles and rounds over L2 besides."""
MISSED_BY_THE_CLOSED_FORM = {
    "NORM or MDL": (
        "NORM with eight base blocks of each operand in L1 is predicted 1.6 % faster than MDL, "
        "whose prediction is 7 % off; 83.7 us were measured, at depths that are not stated"
    ),
}


def measured(name):
    """Return what a published point takes, as a launch or on the cores."""
    point = next(p for p in published() if p.id == name)
    return point.wall_us or point.core_us


def chosen_over_fastest(predicted):
    """Return the measured time of the one with the least prediction over the least measured."""
    choice = min(predicted, key=predicted.get)
    return measured(choice) / min(measured(name) for name in predicted)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xfail(reason=MISSED_BY_THE_CLOSED_FORM[name], strict=True)]
            if name in MISSED_BY_THE_CLOSED_FORM
            else [],
        )
        for name in SERIES
    ],
)
def test_the_closed_form_chooses_the_fastest(name):
    predicted = {}
    for point, (p, fields) in SERIES[name].items():
        t = tiling(p, dbL0C=1, **fields)
        assert check_tiling(t, p, p.chip_record).legal
        predicted[point] = predict(t, p, p.chip_record).cycles
    assert chosen_over_fastest(predicted) <= WITHIN


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.thinned(8)
def test_the_event_timing_chooses_the_fastest(name):
    cases = validation_of([point for point in published() if point.id in TIMED[name]]).cases
    timed = {case.point.id: case.wall.predicted_us for case in cases}
    assert set(timed) == set(TIMED[name])
    assert chosen_over_fastest(timed) <= WITHIN
