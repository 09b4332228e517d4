"""A 64 x 64 transpose of halves by 16 x 16 squares and strided moves."""

import numpy as np
from tbe import tik

EDGE = 64
t = tik.Tik()
x = t.Tensor("float16", (EDGE, EDGE), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (EDGE, EDGE), name="y", scope=tik.scope_gm)
squares = EDGE // 16
with t.for_range(0, squares) as i, t.for_range(0, squares) as j:
    square = t.Tensor("float16", (16, 16), name="square", scope=tik.scope_ubuf)
    turned = t.Tensor("float16", (16, 16), name="turned", scope=tik.scope_ubuf)
    t.data_move(square, x[i * 16, j * 16], 0, 16, 1, squares - 1, 0)
    t.vec_trans(turned, square, 1, 1, 1)
    t.data_move(y[j * 16, i * 16], turned, 0, 16, 1, 0, squares - 1)
t.BuildCCE(kernel_name="transpose", inputs=[x], outputs=[y])

given = np.arange(EDGE * EDGE, dtype=np.float16).reshape(EDGE, EDGE)
(got,) = t.tikdb.start_debug({"x": given})
assert np.array_equal(got, given.T)
print("verified")
