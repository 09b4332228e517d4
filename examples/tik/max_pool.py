"""The largest of every 2 x 2 window, the four corners of the windows compared by strides."""

import numpy as np
from tbe import tik

H, W = 8, 8
t = tik.Tik()
x = t.Tensor("float16", (H, W, 16), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (H // 2, W // 2, 16), name="y", scope=tik.scope_gm)
image = t.Tensor("float16", (H, W, 16), name="image", scope=tik.scope_ubuf)
best = t.Tensor("float16", (H // 2, W // 2, 16), name="best", scope=tik.scope_ubuf)
t.data_move(image, x, 0, 1, H * W, 0, 0)
t.vec_dup(128, best, -65504.0, H * W // 4 // 8, 8)
for row in range(2):
    for column in range(2):
        # a repeat takes a row of windows: a block is the 16 channels of a point
        lanes = W // 2 * 16
        steps = (1, 2, 1, W // 2, 2 * W, W // 2)
        t.vmax(lanes, best, image[row, column, 0], best, H // 2, *steps)
t.data_move(y, best, 0, 1, H * W // 4, 0, 0)
t.BuildCCE(kernel_name="max_pool", inputs=[x], outputs=[y])

given = np.random.default_rng(10).uniform(-9, 9, (H, W, 16)).astype(np.float16)
(got,) = t.tikdb.start_debug({"x": given})
want = given.reshape(H // 2, 2, W // 2, 2, 16).max(axis=(1, 3))
assert np.array_equal(got, want)
print("verified")
