"""A user's kernel under its roof: operations are those of what it issued."""

from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.chips import chip
from cubecore.dtypes import FLOAT16
from cubecore.reports.html.charts.kernel_roofline import kernel_roofline, operations
from cubecore.timing.records import Timeline
from cubecore.workflows.scripts.script import time_script

KERNELS = Path(__file__).resolve().parents[3] / "examples" / "kernels"


def scaled(cores, count, repeats):
    """Return a launch that scales `count` halves `repeats` times on each core."""

    @cubecore.kernel(outputs="y")
    def scale(core, x, y):
        tile = core.ubuf("half", 256)
        core.asc_copy_gm2ub_sync(tile, x + 256 * core.block_idx, 512)
        for _ in range(repeats):
            core.asc_mul_scalar_sync(tile, tile, 2.0, count)
        core.asc_copy_ub2gm_sync(y + 256 * core.block_idx, tile, 512)

    x = np.ones(256 * cores, np.float16)
    return scale.using(trace=True)[cores](x, np.empty_like(x))


@pytest.mark.parametrize(("cores", "count", "repeats"), [(1, 256, 1), (3, 200, 1), (2, 50, 4)])
def test_a_vector_kernel_counts_the_lanes_that_its_mask_lets_through(cores, count, repeats):
    run, lanes = scaled(cores, count, repeats), cores * count * repeats
    assert operations(run.traces) == {("Vector", FLOAT16): lanes}
    line = Timeline(1800, 1.0, "V", {}, (), (), 0, 1024 * cores, 512 * cores, 0)
    found = kernel_roofline(run.traces, chip("Ascend910B3"), line)
    assert found["tflops"] * 1e6 == pytest.approx(lanes)
    assert found["peak"] == pytest.approx(128 * 40 * 1.8e9 / 1e12)
    assert [point["bytes"] for point in found["points"]] == [512 * cores, 1024 * cores]
    for point in found["points"]:
        assert point["intensity"] * point["bytes"] == pytest.approx(lanes)


def test_a_launch_without_work_or_traffic_has_no_roof():
    line = Timeline(1800, 1.0, "V", {}, (), (), 0, 0, 0, 0)
    assert kernel_roofline({}, chip("Ascend910B3"), line) is None
    assert kernel_roofline(scaled(1, 256, 1).traces, chip("Ascend910B3"), line) is None


def test_a_cube_kernel_counts_its_products():
    timed = time_script(str(KERNELS / "matmul.py"), quiet=True).launches[-1]
    counts = operations(timed.run.traces)
    assert counts == {("Cube", FLOAT16): 2 * 1024 * 1280 * 1024}
    found = kernel_roofline(timed.run.traces, timed.run.chip, timed.timeline)
    assert found["tflops"] < found["peak"] == pytest.approx(294.912)
    deep = found["points"][-1]
    assert found["tflops"] <= deep["intensity"] * found["bands"][-1]["tbps"]
