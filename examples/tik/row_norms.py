"""Squared lengths of 32 rows: a product with itself, of which the diagonal is read."""

import numpy as np
from tbe import tik

ROWS, K = 32, 64
t = tik.Tik()
x = t.Tensor("float16", (K // 16, ROWS, 16), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (ROWS,), name="y", scope=tik.scope_gm)
x_l1 = t.Tensor("float16", (K // 16, ROWS, 16), name="x_l1", scope=tik.scope_cbuf)
gram = t.Tensor("float32", (ROWS // 16, ROWS, 16), name="gram", scope=tik.scope_cbuf_out)
t.data_move(x_l1, x, 0, 1, ROWS * K // 16, 0, 0)
t.matmul(gram, x_l1, x_l1, ROWS, K, ROWS)
# the fractals on the diagonal: each lies one more row of fractals on
squares = t.Tensor("float32", (ROWS // 16, 16, 16), name="squares", scope=tik.scope_ubuf)
t.tensor_mov(squares, gram, "m", ROWS // 16, 1, 0, ROWS // 16)
norms = t.Tensor("float32", (ROWS,), name="norms", scope=tik.scope_ubuf)
element = t.Scalar("float32", name="element")
with t.for_range(0, ROWS) as i:
    element.set_as(squares[i // 16, i % 16, i % 16])
    norms[i].set_as(element)
t.data_move(y, norms, 0, 1, ROWS * 4 // 32, 0, 0)
t.BuildCCE(kernel_name="row_norms", inputs=[x], outputs=[y])

given = np.random.default_rng(8).integers(-5, 6, (ROWS, K)).astype(np.float16)
blocks = np.ascontiguousarray(given.reshape(ROWS, -1, 16).transpose(1, 0, 2))
(got,) = t.tikdb.start_debug({"x": blocks})
assert np.array_equal(got, (given.astype(np.float32) ** 2).sum(axis=1))
print("verified")
