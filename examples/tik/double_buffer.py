"""Tiles are scaled in a loop of two threads; the tensor made inside exists twice in UB."""

import numpy as np
from tbe import tik

TILES, TILE = 9, 1024
t = tik.Tik(tik.Dprofile("v200", "aic"))
x = t.Tensor("float16", (TILES * TILE,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (TILES * TILE,), name="y", scope=tik.scope_gm)
with t.for_range(0, TILES, thread_num=2) as i:
    tile = t.Tensor("float16", (TILE,), name="tile", scope=tik.scope_ubuf)
    t.data_move(tile, x[i * TILE], 0, 1, TILE // 16, 0, 0)
    t.vec_muls(128, tile, tile, 0.25, TILE // 128, 8, 8)
    t.data_move(y[i * TILE], tile, 0, 1, TILE // 16, 0, 0)
t.BuildCCE(kernel_name="double_buffer", inputs=[x], outputs=[y])

given = np.random.default_rng(3).uniform(-8, 8, TILES * TILE).astype(np.float16)
(got,) = t.tikdb.start_debug({"x": given})
assert np.array_equal(got, given * np.float16(0.25))
print("verified")
