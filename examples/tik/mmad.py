"""A product by hand: fractals to L0A and L0B, two steps of K onto one sum in L0C."""

import numpy as np
from tbe import tik

M, K, N = 16, 64, 32
t = tik.Tik(tik.Dprofile("v100", "cloud"))
a = t.Tensor("float16", (K // 16, M, 16), name="a", scope=tik.scope_gm)
b = t.Tensor("float16", (K // 16, N, 16), name="b", scope=tik.scope_gm)
c = t.Tensor("float16", (N // 16, M, 16), name="c", scope=tik.scope_gm)
a_l1 = t.Tensor("float16", (K // 16, M, 16), name="a_l1", scope=tik.scope_cbuf)
b_l1 = t.Tensor("float16", (K // 16, N, 16), name="b_l1", scope=tik.scope_cbuf)
total = t.Tensor("float32", (N // 16, M, 16), name="total", scope=tik.scope_cc)
half = t.Tensor("float16", (N // 16, M, 16), name="half", scope=tik.scope_ubuf)
t.data_move(a_l1, a, 0, 1, K * M // 16, 0, 0)
t.data_move(b_l1, b, 0, 1, K * N // 16, 0, 0)
for step in range(2):
    with t.new_stmt_scope():
        a_l0 = t.Tensor("float16", (1, 2, 16, 16), name="a_l0", scope=tik.scope_ca)
        b_l0 = t.Tensor("float16", (2, N // 16, 16, 16), name="b_l0", scope=tik.scope_cb)
        t.load2dv1(a_l0, a_l1[step * 2 * M * 16], 0, 2, 1, 0)
        t.load2dv1(b_l0, b_l1[step * 2 * N * 16], 0, 2 * N // 16, 1, 0)
        t.mmad(total, a_l0, b_l0, M, K // 2, N, step)
t.data_move(half, total, 0, 1, N // 16, 0, 0, 1)
t.data_move(c, half, 0, 1, M * N // 16, 0, 0)
t.BuildCCE(kernel_name="mmad", inputs=[a, b], outputs=[c])

rng = np.random.default_rng(9)
left, right = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (N, K)))
feeds = {
    "a": np.ascontiguousarray(left.reshape(M, -1, 16).transpose(1, 0, 2)),
    "b": np.ascontiguousarray(right.reshape(N, -1, 16).transpose(1, 0, 2)),
}
(got,) = t.tikdb.start_debug(feeds)
want = (left.astype(np.float64) @ right.T).astype(np.float16)
assert np.array_equal(got.transpose(1, 0, 2).reshape(M, N), want)
print("verified")
