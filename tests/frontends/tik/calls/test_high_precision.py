"""TIK's high-precision forms: every half, masks of all kinds, and the page's restrictions."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
LAST = np.float16(11.0859375)
"""The largest half whose exp(x) - 1 is finite as half."""


def test_high_precision_is_correctly_rounded():
    t = Tik(Dprofile("v100", "cloud"))
    x, y = (t.Tensor("float32", (64,), GM, name) for name in ("x", "y"))
    ub, work = t.Tensor("float32", (64,), UB, "ub"), t.Tensor("float32", (256,), UB, "work")
    t.data_move(ub, x, 0, 1, 8, 0, 0)
    t.vec_rec_high_preci(64, ub, ub, work, 1, 8, 8)
    t.data_move(y, ub, 0, 1, 8, 0, 0)
    t.BuildCCE("k", [x], [y])
    values = np.random.default_rng(1).uniform(0.1, 9, 64).astype(np.float32)
    assert np.array_equal(t.launch({"x": values}).outputs["y"], np.float32(1) / values)


@pytest.mark.parametrize("target", [("v100", "mini"), ("v200", "aic")])
def test_expm1_of_every_half_is_the_nearest_but_for_a_few(target):
    t = Tik(Dprofile(*target))
    x, y = (t.Tensor("float16", (65_536,), GM, name) for name in ("x", "y"))
    with t.for_range(0, 16, block_num=16) as block:
        ub, work = (t.Tensor("float16", (n,), UB, "ub") for n in (4096, 11 * 4096))
        t.data_move(ub, x[block * 4096], 0, 1, 256, 0, 0)
        t.vec_expm1_high_preci(128, ub, ub, work, 32, 8, 8)
        t.data_move(y[block * 4096], ub, 0, 1, 256, 0, 0)
    t.BuildCCE("k", [x], [y])
    halves = np.arange(65_536, dtype=np.uint16).view(np.float16)
    ran = t.launch({"x": halves})
    assert ran.findings == ()
    got = ran.outputs["y"]
    with np.errstate(all="ignore"):
        wanted = np.expm1(halves.astype(float)).astype(np.float16)
    assert set(got[halves > LAST].tolist()) == {65_504.0}
    finite = (halves <= LAST) & (halves != 0)
    apart = np.abs(got.view(np.int16).astype(int) - wanted.view(np.int16))[finite]
    assert apart.max() == 1
    assert apart.sum() < 10


def expm1(mask, *, count=None, room=11 * 128, dtype="float16"):
    """Take exp(x) - 1 of -3 to 3 in place, and return the values before and after."""
    t = Tik(Dprofile("v100", "cloud"))
    x, y = (t.Tensor(dtype, (128,), GM, name) for name in ("x", "y"))
    ub, work = t.Tensor(dtype, (128,), UB, "ub"), t.Tensor("float16", (room,), UB, "work")
    t.data_move(ub, x, 0, 1, 8, 0, 0)
    if count is not None:
        mask = t.Scalar("int32", init_value=count)
    if isinstance(mask, tuple):
        mask = [t.Scalar("int64", init_value=word) for word in mask]
    t.vec_expm1_high_preci(mask, ub, ub, work, 1, 8, 8)
    t.data_move(y, ub, 0, 1, 8, 0, 0)
    t.BuildCCE("k", [x], [y])
    values = np.linspace(-3, 3, 128).astype(np.float16)
    ran = t.launch({"x": values})
    assert ran.findings == ()
    return values, ran.outputs["y"]


@pytest.mark.parametrize(
    ("options", "lanes"),
    [
        ({"mask": 128}, range(128)),
        ({"mask": 10}, range(10)),
        ({"mask": 100}, range(100)),
        ({"mask": [0, 7]}, range(3)),
        ({"mask": [5, 0]}, (64, 66)),
        ({"mask": (1, 2)}, (1, 64)),
        ({"mask": (0, 3)}, (0, 1)),
        ({"mask": None, "count": 10}, range(10)),
        ({"mask": None, "count": 64}, range(64)),
        ({"mask": None, "count": 65}, range(65)),
    ],
)
def test_expm1_takes_the_lanes_of_the_mask_alone(options, lanes):
    values, got = expm1(**options)
    wanted = values.copy()
    wanted[list(lanes)] = np.expm1(values[list(lanes)].astype(float))
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mask": 129}, "vec_expm1_high_preci.mask must be in [1, 128], got 129"),
        ({"mask": 0}, "vec_expm1_high_preci.mask must be in [1, 128], got 0"),
        (
            {"mask": 128, "room": 1407},
            "vec_expm1_high_preci.work_tensor must hold 1408 elements, 11 times the source's 128, "
            "got 1407",
        ),
        (
            {"mask": 64, "dtype": "float32"},
            "vec_expm1_high_preci.dst must be float16 in UB, got float32 in UB",
        ),
    ],
)
def test_expm1_refuses_what_its_page_does_not_have(options, sentence):
    with pytest.raises(RequestError) as caught:
        expm1(**options)
    assert str(caught.value).partition(": ")[2] == sentence
