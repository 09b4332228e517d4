"""The time of TIK programs: of those that read memory, and on chips without published costs."""

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.frontends.launch_timing import rough_chip
from cubecore.isa.mte.copies_joined_core import CopyMatrixCcToUbuf
from cubecore.workflows.scripts.script import time_script

PROGRAM = """
import numpy as np
from tbe import tik

t = tik.Tik()
x = t.Tensor("int32", (8,), tik.scope_gm, "x")
y = t.Tensor("float16", (128,), tik.scope_gm, "y")
held = t.Tensor("int32", (8,), tik.scope_ubuf, "held")
ub = t.Tensor("float16", (128,), tik.scope_ubuf, "ub")
t.data_move(held, x, 0, 1, 1, 0, 0)
t.vec_dup(128, ub, 0.0, 1, 8)
{read}
with t.for_range(0, {trips}):
    t.vec_adds(128, ub, ub, 1.0, 1, 8, 8)
t.data_move(y, ub, 0, 1, 8, 0, 0)
t.BuildCCE("k", [x], [y])
(found,) = t.tikdb.start_debug({{"x": np.full(8, {given}, np.int32)}})
assert (found == {done}).all(), found
"""
READ = 'count = t.Scalar("int32", "count")\ncount.set_as(held[0])'


def cycles(tmp_path, trips, given, read=READ):
    path = tmp_path / "program.py"
    done = given if trips == "count" else trips
    text = PROGRAM.format(read=read, trips=trips, given=given, done=done)
    path.write_text(text, encoding="utf-8")
    (timed,) = time_script(str(path), chip="Ascend910B3").launches
    return timed.timeline.cycles


@pytest.mark.parametrize("given", [3, 40])
def test_a_loop_that_memory_bounds_takes_as_long_as_one_of_that_length(tmp_path, given):
    assert cycles(tmp_path, "count", given) == cycles(tmp_path, given, 9)


def test_a_longer_loop_takes_longer(tmp_path):
    short, long = (cycles(tmp_path, "count", given) for given in (3, 40))
    assert long - short > 37 * 20  # an instruction, and the barrier behind it


MOVED = """
import numpy as np
from tbe import tik

t = tik.Tik(tik.Dprofile({profile}))
x = t.Tensor("float16", (100, 16384), tik.scope_gm, "x")
y = t.Tensor("float16", (16,), tik.scope_gm, "y")
ub = t.Tensor("float16", (16384,), tik.scope_ubuf, "ub")
with t.for_range(0, 100) as i:
    t.data_move(ub, x[i, 0], 0, 1, 1024, 0, 0)
t.data_move(y, ub, 0, 1, 1, 0, 0)
t.BuildCCE("k", [x], [y])
t.tikdb.start_debug({{"x": np.zeros((100, 16384), np.float16)}})
"""
EARLIER = [
    ('"v100", "mini"', "Ascend310", 128, 0.68),
    ('"v100", "cloud"', "Ascend910A", 110, 1.0),
    ('"v200", "aic"', "Ascend310P3", 114, 1.06),
]


@pytest.mark.parametrize(("profile", "named", "rate", "gigahertz"), EARLIER)
def test_an_earlier_chips_time_is_rough_and_no_shorter_than_its_rates_allow(
    tmp_path, profile, named, rate, gigahertz
):
    path = tmp_path / "program.py"
    path.write_text(MOVED.format(profile=profile), encoding="utf-8")
    done = time_script(str(path))
    (timed,) = done.launches
    line = timed.timeline
    assert line.cycles >= 100 * 32768 / rate
    assert line.us == pytest.approx(line.cycles / gigahertz / 1000)
    assert timed.rough == (
        f"rough: no costs of {named} are published; its own clock, cores and configured rates were "
        "taken, and Ascend910B3's costs of instructions"
    )
    assert timed.rough in done.text.splitlines()
    assert timed.to_json()["rough"] == timed.rough


def test_a_chip_whose_costs_are_known_has_no_rough_time(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(MOVED.format(profile='"v100", "mini"'), encoding="utf-8")
    done = time_script(str(path), chip="Ascend910B3")
    assert done.launches[0].rough is None
    assert "rough" not in done.text
    assert "rough" not in done.to_json()


def test_a_move_from_l0c_takes_its_configured_rate():
    move = CopyMatrixCcToUbuf(
        src_type=element_type("float32"), dst_type=element_type("float32"), n_burst=2, len_burst=8
    )
    rough, _ = rough_chip(chip("Ascend910A"))
    assert move.cost(rough).busy == 2 * 8 * 1024 / 256
