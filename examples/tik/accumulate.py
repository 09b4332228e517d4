"""Rows are summed into one block by a repeat stride of 0; every other block of a row counts."""

import numpy as np
from tbe import tik

ROWS = 12
t = tik.Tik()
x = t.Tensor("float32", (ROWS, 128), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (64,), name="y", scope=tik.scope_gm)
rows = t.Tensor("float32", (ROWS, 128), name="rows", scope=tik.scope_ubuf)
total = t.Tensor("float32", (64,), name="total", scope=tik.scope_ubuf)
t.data_move(rows, x, 0, 1, ROWS * 128 * 4 // 32, 0, 0)
t.vector_dup(64, total, 0, 1, 1, 8)
t.vadd(64, total, rows, total, ROWS, 1, 2, 1, 0, 16, 0)
t.data_move(y, total, 0, 1, 8, 0, 0)
t.BuildCCE(kernel_name="accumulate", inputs=[x], outputs=[y])

given = np.random.default_rng(1).integers(-9, 10, (ROWS, 128)).astype(np.float32)
(got,) = t.tikdb.start_debug({"x": given})
want = given.reshape(ROWS, 16, 8)[:, ::2].sum(axis=0).reshape(64)
assert np.array_equal(got, want)
print("verified")
