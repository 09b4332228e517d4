"""Rows of a length that only the launch gives: an InputScalar, and tensors of that size in UB."""

import numpy as np
from tbe import tik

ROWS, MOST = 6, 512
t = tik.Tik(tik.Dprofile("v200", "aic"))
length = t.InputScalar("int32", name="length")  # a multiple of 16
x = t.Tensor("float16", (ROWS, MOST), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (ROWS, MOST), name="y", scope=tik.scope_gm)
with t.for_range(0, ROWS) as row:
    held = t.Tensor("float16", (length,), name="held", scope=tik.scope_ubuf)
    doubled = t.Tensor("float16", (length,), name="doubled", scope=tik.scope_ubuf)
    t.data_move(held, x[row, 0], 0, 1, length // 16, 0, 0)
    with t.if_scope(length == MOST):
        t.vec_muls(128, doubled, held, 2.0, MOST // 128, 8, 8)
    with t.else_scope():
        t.vec_muls(16, doubled, held, 2.0, length // 16, 1, 1)
    t.data_move(y[row, 0], doubled, 0, 1, length // 16, 0, 0)
t.BuildCCE(kernel_name="run_time_shape", inputs=[x, length], outputs=[y])

given = np.random.default_rng(29).integers(-99, 99, (ROWS, MOST)).astype(np.float16)
for size in (512, 48, 160):
    done = t.launch({"x": given, "length": np.int32(size)}, {"y": np.zeros_like(given)})
    assert done.findings == ()
    want = np.zeros_like(given)
    want[:, :size] = 2 * given[:, :size]
    assert np.array_equal(done.outputs["y"], want)
print("verified")
