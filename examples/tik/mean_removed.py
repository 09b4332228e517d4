"""The mean over all cores is taken from every element: cores add up, meet, and read."""

import numpy as np
from tbe import tik

CORES, EACH = 4, 64
t = tik.Tik(tik.Dprofile("v200", "aic"))
x = t.Tensor("float32", (CORES, EACH), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (CORES, EACH), name="y", scope=tik.scope_gm)
total = t.Tensor("float32", (8,), name="total", scope=tik.scope_gm, is_atomic_add=True)
meeting = t.Tensor("int64", (CORES * 4,), name="meeting", scope=tik.scope_gm, is_workspace=True)
with t.for_range(0, CORES, block_num=CORES) as core:
    part = t.Tensor("float32", (EACH,), name="part", scope=tik.scope_ubuf)
    one = t.Tensor("float32", (8,), name="one", scope=tik.scope_ubuf)
    t.data_move(part, x[core, 0], 0, 1, EACH // 8, 0, 0)
    t.vec_dup(8, one, 0.0, 1, 8)
    t.vcadd(EACH, one, part, 1, 1, 1, 8)
    t.set_atomic_add(1)
    t.data_move(total, one, 0, 1, 1, 0, 0)
    t.set_atomic_add(0)
    t.block_barrier(meeting)
    t.data_move(one, total, 0, 1, 1, 0, 0)
    mean = t.Scalar("float32", name="mean")
    mean.set_as(one[0])
    mean.set_as(mean * (-1.0 / (CORES * EACH)))
    t.vec_adds(EACH, part, part, mean, 1, 8, 8)
    t.data_move(y[core, 0], part, 0, 1, EACH // 8, 0, 0)
t.BuildCCE(kernel_name="mean_removed", inputs=[x], outputs=[y, total])

given = np.random.default_rng(11).integers(-64, 65, (CORES, EACH)).astype(np.float32)
(got, _) = t.tikdb.start_debug({"x": given})
assert np.array_equal(got, given - given.mean(dtype=np.float32))
print("verified")
