"""UB is used three times over: what a scope made is gone at its end, names included."""

import numpy as np
from tbe import tik

t = tik.Tik()
UB_BYTES = t.d_profiling.get_unified_buffer_size()
PART = UB_BYTES // 2 // 2 // 128 * 128
x = t.Tensor("float16", (PART,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (PART,), name="y", scope=tik.scope_gm)
for source, scale in ((x, 2.0), (y, 3.0), (y, 0.5)):
    with t.new_stmt_scope():
        given = t.Tensor("float16", (PART,), name="given", scope=tik.scope_ubuf)
        scaled = t.Tensor("float16", (PART,), name="scaled", scope=tik.scope_ubuf)
        t.data_move(given, source, 0, 1, PART // 16, 0, 0)
        for first in range(0, PART, 255 * 128):
            repeats = min(255, (PART - first) // 128)
            t.vec_muls(128, scaled[first], given[first], scale, repeats, 8, 8)
        t.data_move(y, scaled, 0, 1, PART // 16, 0, 0)
t.BuildCCE(kernel_name="scopes", inputs=[x], outputs=[y])

values = np.random.default_rng(4).integers(-50, 50, PART).astype(np.float16)
(got,) = t.tikdb.start_debug({"x": values})
assert np.array_equal(got, values * 3)
print("verified")
