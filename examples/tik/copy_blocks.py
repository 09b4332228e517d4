"""256 integers through UB: the smallest program."""

import numpy as np
from tbe import tik

t = tik.Tik()
x = t.Tensor("int32", (256,), name="x", scope=tik.scope_gm)
y = t.Tensor("int32", (256,), name="y", scope=tik.scope_gm)
ub = t.Tensor("int32", (256,), name="ub", scope=tik.scope_ubuf)
t.data_move(ub, x, 0, 1, 256 * 4 // 32, 0, 0)
t.data_move(y, ub, 0, 1, 256 * 4 // 32, 0, 0)
t.BuildCCE(kernel_name="copy_blocks", inputs=[x], outputs=[y])

given = np.arange(256, dtype=np.int32)
(got,) = t.tikdb.start_debug({"x": given})
assert np.array_equal(got, given)
print("verified")
