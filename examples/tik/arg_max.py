"""The largest of 8192 halves and its index, by two levels of vcmax."""

import numpy as np
from tbe import tik

N = 8192
ROWS = N // 128
t = tik.Tik()
x = t.Tensor("float16", (N,), name="x", scope=tik.scope_gm)
index = t.Tensor("int32", (8,), name="index", scope=tik.scope_gm)
values = t.Tensor("float16", (N,), name="values", scope=tik.scope_ubuf)
first = t.Tensor("float16", (2 * ROWS,), name="first", scope=tik.scope_ubuf)
second = t.Tensor("float16", (16,), name="second", scope=tik.scope_ubuf)
found = t.Tensor("int32", (8,), name="found", scope=tik.scope_ubuf)
t.data_move(values, x, 0, 1, N // 16, 0, 0)
# a value and its index side by side for every row, so that the values alone are every other lane
t.vcmax(128, first, values, ROWS, 1, 1, 8)
every_other = 0x5555555555555555
t.vcmax([every_other, every_other], second, first, 1, 1, 1, 8)
# an index is the bits of an unsigned integer where a half would stand
row, column = t.Scalar("uint16", name="row"), t.Scalar("uint16", name="column")
row.set_as(second[1])
column.set_as(first[row + 1])
t.vec_dup(8, found, 0, 1, 8)
found[0].set_as(row // 2 * 128 + column)
t.data_move(index, found, 0, 1, 1, 0, 0)
t.BuildCCE(kernel_name="arg_max", inputs=[x], outputs=[index])

for seed in range(3):
    given = np.random.default_rng(seed).uniform(-60000, 60000, N).astype(np.float16)
    (got,) = t.tikdb.start_debug({"x": given})
    assert got[0] == int(np.argmax(given))
print("verified")
