"""All of a tensor summed in float32, 200 repeats at a time."""

import numpy as np
from tbe import tik

REPEATS = 200
t = tik.Tik()
x = t.Tensor("float32", (REPEATS * 64,), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (8,), name="y", scope=tik.scope_gm)
values = t.Tensor("float32", (REPEATS * 64,), name="values", scope=tik.scope_ubuf)
work = t.Tensor("float32", (REPEATS,), name="work", scope=tik.scope_ubuf)
total = t.Tensor("float32", (8,), name="total", scope=tik.scope_ubuf)
t.data_move(values, x, 0, 1, REPEATS * 8, 0, 0)
t.vec_dup(8, total, 0.0, 1, 8)
t.vec_reduce_add(64, total, values, work, REPEATS, 8)
t.data_move(y, total, 0, 1, 1, 0, 0)
t.BuildCCE(kernel_name="reduce_sum", inputs=[x], outputs=[y])

given = np.random.default_rng(5).integers(-1000, 1000, REPEATS * 64).astype(np.float32)
(got,) = t.tikdb.start_debug({"x": given})
assert got[0] == given.sum(dtype=np.float64)
print("verified")
