"""The time of TIK programs whose course depends on what they read."""

import pytest

from cubecore.workflows.script import time_script

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
