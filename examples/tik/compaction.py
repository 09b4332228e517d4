"""The positive elements, one behind another: a comparison gives the bits, vreduce packs."""

import numpy as np
from tbe import tik

N = 256
t = tik.Tik(tik.Dprofile("v200", "aic"))
x = t.Tensor("float16", (N,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (N,), name="y", scope=tik.scope_gm)
values = t.Tensor("float16", (N,), name="values", scope=tik.scope_ubuf)
packed = t.Tensor("float16", (N,), name="packed", scope=tik.scope_ubuf)
zeros = t.Tensor("float16", (128,), name="zeros", scope=tik.scope_ubuf)
bits = t.Tensor("uint16", (N // 16,), name="bits", scope=tik.scope_ubuf)
t.data_move(values, x, 0, 1, N // 16, 0, 0)
t.vec_dup(128, zeros, 0.0, 1, 8)
t.vec_dup(128, packed, -1.0, N // 128, 8)
t.vec_cmpv_gt(bits, values, zeros, N // 128, 8, 0)
t.vreduce(N, packed, values, bits, 1, 1, 8, 0, mask_mode="counter")
t.data_move(y, packed, 0, 1, N // 16, 0, 0)
t.BuildCCE(kernel_name="compaction", inputs=[x], outputs=[y])

given = np.random.default_rng(13).uniform(-5, 5, N).astype(np.float16)
(got,) = t.tikdb.start_debug({"x": given})
kept = given[given > 0]
assert np.array_equal(got[: kept.size], kept)
assert (got[kept.size :] == -1).all()
print("verified")
