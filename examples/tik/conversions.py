"""Halves rounded to integers in four ways, and integers scaled back to halves."""

import numpy as np
from tbe import tik

N = 128
t = tik.Tik(tik.Dprofile("v200", "aic"))
x = t.Tensor("float16", (N,), name="x", scope=tik.scope_gm)
MODES = {"round": np.rint, "floor": np.floor, "ceil": np.ceil, "to-zero": np.trunc}
outs = [t.Tensor("int32", (N,), name=mode, scope=tik.scope_gm) for mode in MODES]
back = t.Tensor("float16", (N,), name="back", scope=tik.scope_gm)
half = t.Tensor("float16", (N,), name="half", scope=tik.scope_ubuf)
whole = t.Tensor("int32", (N,), name="whole", scope=tik.scope_ubuf)
t.data_move(half, x, 0, 1, 8, 0, 0)
for mode, out in zip(MODES, outs, strict=True):
    t.vec_conv(64, mode, whole, half, 2, 8, 4)
    t.data_move(out, whole, 0, 1, 16, 0, 0)
t.vec_conv(64, "", half, whole, 2, 4, 8, 0.5)
t.data_move(back, half, 0, 1, 8, 0, 0)
t.BuildCCE(kernel_name="conversions", inputs=[x], outputs=[*outs, back])

given = np.random.default_rng(6).uniform(-20, 20, N).astype(np.float16)
given[:4] = (0.5, 1.5, -0.5, -2.5)
*rounded, scaled = t.tikdb.start_debug({"x": given})
for got, rule in zip(rounded, MODES.values(), strict=True):
    assert np.array_equal(got, rule(given).astype(np.int32))
assert np.array_equal(scaled, np.trunc(given) * np.float16(0.5))
print("verified")
