"""A picture of 3 channels becomes blocks of 16 channels, transposed 16 x 16 at a time."""

import numpy as np
from tbe import tik

C, HW = 3, 64
t = tik.Tik()
x = t.Tensor("float16", (C, HW), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (HW, 16), name="y", scope=tik.scope_gm)
planes = t.Tensor("float16", (16, HW), name="planes", scope=tik.scope_ubuf)
points = t.Tensor("float16", (HW, 16), name="points", scope=tik.scope_ubuf)
t.vec_dup(128, planes, 0.0, 16 * HW // 128, 8)
t.data_move(planes, x, 0, 1, C * HW // 16, 0, 0)
# sixteen rows of blocks in, sixteen rows out; a repeat goes on by a block of each
sources = [planes[channel * HW] for channel in range(16)]
targets = [points[point * 16] for point in range(16)]
t.vnchwconv(False, False, targets, sources, HW // 16, 16, 1)
t.data_move(y, points, 0, 1, HW, 0, 0)
t.BuildCCE(kernel_name="nc1hwc0", inputs=[x], outputs=[y])

given = np.arange(C * HW, dtype=np.float16).reshape(C, HW)
(got,) = t.tikdb.start_debug({"x": given})
want = np.zeros((HW, 16), np.float16)
want[:, :C] = given.T
assert np.array_equal(got, want)
print("verified")
