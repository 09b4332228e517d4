"""Rows less their mean, by the root of their variance, scaled and shifted."""

import numpy as np
from tbe import tik

ROWS, N = 8, 64
t = tik.Tik(tik.Dprofile("v100", "cloud"))
x = t.Tensor("float32", (ROWS, N), name="x", scope=tik.scope_gm)
gain, shift = (t.Tensor("float32", (N,), name=n, scope=tik.scope_gm) for n in ("gain", "shift"))
y = t.Tensor("float32", (ROWS, N), name="y", scope=tik.scope_gm)
row, square, g, b = (t.Tensor("float32", (N,), name=n, scope=tik.scope_ubuf) for n in "rsgb")
total = t.Tensor("float32", (8,), name="total", scope=tik.scope_ubuf)
mean, factor = t.Scalar("float32", name="mean"), t.Scalar("float32", name="factor")
t.data_move(g, gain, 0, 1, N // 8, 0, 0)
t.data_move(b, shift, 0, 1, N // 8, 0, 0)
with t.for_range(0, ROWS) as i:
    t.data_move(row, x[i, 0], 0, 1, N // 8, 0, 0)
    t.vcadd(N, total, row, 1, 1, 1, 8)
    mean.set_as(total[0])
    t.vec_adds(N, row, row, mean * (-1.0 / N), 1, 8, 8)
    t.vec_mul(N, square, row, row, 1, 8, 8, 8)
    t.vcadd(N, total, square, 1, 1, 1, 8)
    mean.set_as(total[0])
    t.scalar_sqrt(factor, mean / N + 1e-5)
    t.vec_muls(N, row, row, 1.0 / factor, 1, 8, 8)
    t.vec_mul(N, row, row, g, 1, 8, 8, 8)
    t.vec_add(N, row, row, b, 1, 8, 8, 8)
    t.data_move(y[i, 0], row, 0, 1, N // 8, 0, 0)
t.BuildCCE(kernel_name="layer_norm", inputs=[x, gain, shift], outputs=[y])

rng = np.random.default_rng(16)
given = rng.uniform(-3, 3, (ROWS, N)).astype(np.float32)
scale, offset = (rng.uniform(-1, 1, N).astype(np.float32) for _ in range(2))
(got,) = t.tikdb.start_debug({"x": given, "gain": scale, "shift": offset})
wide = given.astype(np.float64)
centred = wide - wide.mean(axis=1, keepdims=True)
want = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + offset
assert np.abs(got - want).max() < 1e-5
print("verified")
