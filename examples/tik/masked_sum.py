"""The first 100 lanes of a repeat are added; the others keep what they held."""

import numpy as np
from tbe import tik

t = tik.Tik()
x, y, z = (t.Tensor("float16", (128,), name=n, scope=tik.scope_gm) for n in ("x", "y", "z"))
a, b = (t.Tensor("float16", (128,), name=n, scope=tik.scope_ubuf) for n in ("a", "b"))
t.data_move(a, x, 0, 1, 8, 0, 0)
t.data_move(b, y, 0, 1, 8, 0, 0)
t.vec_add(100, a, a, b, 1, 8, 8, 8)
# and as bits: the high word holds lanes 64 to 127, here the last lane alone
t.vec_add([1 << 63, 0], a, a, b, 1, 8, 8, 8)
t.data_move(z, a, 0, 1, 8, 0, 0)
t.BuildCCE(kernel_name="masked_sum", inputs=[x, y], outputs=[z])

rng = np.random.default_rng(0)
left, right = (rng.uniform(-4, 4, 128).astype(np.float16) for _ in range(2))
(got,) = t.tikdb.start_debug({"x": left, "y": right})
want = left.copy()
want[:100] += right[:100]
want[127] += right[127]
assert np.array_equal(got, want)
print("verified")
