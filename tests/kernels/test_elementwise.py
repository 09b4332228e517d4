"""Streaming kernels: what they compute, on the machine; where loads go."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.mte.copies import CopyGmToUbuf
from cubecore.kernels.elementwise import Elementwise, elementwise_launch, loads_launch
from cubecore.timing.launch import time_launch
from machine.agreement import answer

HALF = element_type("float16")


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize(("elements", "cores"), [(2048, 1), (2048 * 5, 3), (640, 2)])
def test_a_sum_of_two_arrays_is_right_and_in_order(elements, cores, buffers):
    rng = np.random.default_rng(elements + buffers)
    x0, x1 = (rng.integers(-99, 99, elements).astype(np.float16) for _ in range(2))
    kernel = Elementwise(elements, HALF, 2, (("vadd", 1, HALF),), 1024, buffers, cores)
    inputs = {"x0": x0.view(np.uint8), "x1": x1.view(np.uint8)}
    done = answer(elementwise_launch(kernel), inputs, "reference")
    assert done.findings == []
    assert done.written.all()
    assert np.array_equal(done.data.view(np.float16), x0 + x1)


def test_a_ring_that_goes_whole_computes_the_same_and_takes_longer():
    rng = np.random.default_rng(5)
    x = rng.integers(-99, 99, 2048 * 5).astype(np.float16)
    times = []
    for whole in (False, True):
        work = (("vabs", 8, HALF),)
        kernel = Elementwise(2048 * 5, HALF, 1, work, 1024, 2, 1, drains_rings=whole)
        launch = elementwise_launch(kernel)
        done = answer(launch, {"x0": x.view(np.uint8)}, "reference")
        assert done.findings == []
        assert np.array_equal(done.data.view(np.float16), abs(x))
        times.append(time_launch(launch, chip("Ascend910B3")).cycles)
    assert times[1] > times[0]


def test_work_is_done_as_often_as_asked():
    x = -np.arange(256, dtype=np.float16)
    once, thrice = (
        answer(
            elementwise_launch(Elementwise(256, HALF, 1, (("vabs", times, HALF),), 256, 1, 1)),
            {"x0": x.view(np.uint8)},
            "reference",
        )
        for times in (1, 3)
    )
    assert thrice.issued == once.issued + 2 * 2  # each with its barrier
    assert thrice.findings == []
    assert np.array_equal(thrice.data.view(np.float16), abs(x))


class Seen:
    """Collects the addresses of a program's loads."""

    def __init__(self):
        self.addresses = []

    def handler(self, issue):
        return lambda *addresses: self.addresses.append(addresses[1])

    def load_scalar(self, load, address):
        raise AssertionError


@pytest.mark.parametrize(
    ("tiles", "offsets"),
    [
        ([3], [0, 64, 128]),
        ([-2, 3], [0, 64, 128] * 2),
        ([2, -2, 2], [0, 64] * 2 + [128, 192] * 2),
    ],
)
def test_loads_walk_their_loops(tiles, offsets):
    launch = loads_launch(CopyGmToUbuf(n_burst=1, len_burst=2), tiles, 2, 64)
    for number, core in enumerate(launch.cores):
        assert (core.core, core.sub) == (0, 1 + number)
        seen = Seen()
        ((slot, (name, distance)),) = core.slots.items()
        core.program.run(seen, {slot: 1000 + distance})
        assert name == "x"
        assert seen.addresses == [1000 + number * (max(offsets) + 64) + at for at in offsets]
