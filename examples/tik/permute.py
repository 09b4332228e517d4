"""The axes of a tensor in another order, moved by strides alone."""

import numpy as np
from tbe import tik

A, B, C = 4, 6, 32
t = tik.Tik()
x = t.Tensor("int16", (A, B, C), name="x", scope=tik.scope_gm)
y = t.Tensor("int16", (B, A, C), name="y", scope=tik.scope_gm)
ub = t.Tensor("int16", (A, C), name="ub", scope=tik.scope_ubuf)
blocks = C * 2 // 32
with t.for_range(0, B) as j:
    t.data_move(ub, x[0, j, 0], 0, A, blocks, (B - 1) * blocks, 0)
    t.data_move(y[j, 0, 0], ub, 0, 1, A * blocks, 0, 0)
t.BuildCCE(kernel_name="permute", inputs=[x], outputs=[y])

given = np.arange(A * B * C, dtype=np.int16).reshape(A, B, C)
(got,) = t.tikdb.start_debug({"x": given})
assert np.array_equal(got, given.transpose(1, 0, 2))
print("verified")
