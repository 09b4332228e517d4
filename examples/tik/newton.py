"""A reciprocal that the unit gives, made better by steps of Newton; timed on an A2 chip."""

import numpy as np
from tbe import tik
from tbe.common import platform

N = 64 * 20
platform.set_current_compile_soc_info("Ascend910B3")
t = tik.Tik()
x = t.Tensor("float32", (N,), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (N,), name="y", scope=tik.scope_gm)
with t.for_range(0, N // 64, block_num=N // 64) as core:
    a, r, e = (t.Tensor("float32", (64,), name=n, scope=tik.scope_ubuf) for n in "are")
    t.data_move(a, x[core * 64], 0, 1, 8, 0, 0)
    t.vec_rec(64, r, a, 1, 8, 8)
    for _ in range(2):
        t.vec_mul(64, e, a, r, 1, 8, 8, 8)
        t.vec_muls(64, e, e, -1.0, 1, 8, 8)
        t.vec_adds(64, e, e, 2.0, 1, 8, 8)
        t.vec_mul(64, r, r, e, 1, 8, 8, 8)
    t.data_move(y[core * 64], r, 0, 1, 8, 0, 0)
t.BuildCCE(kernel_name="newton", inputs=[x], outputs=[y])

given = np.random.default_rng(17).uniform(0.1, 9, N).astype(np.float32)
(got,) = t.tikdb.start_debug({"x": given})
assert np.abs(got * given.astype(np.float64) - 1).max() < 3e-7
print("verified")
