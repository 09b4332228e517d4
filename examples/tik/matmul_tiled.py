"""A half product whose K is summed in L1OUT over two loads, drained to UB and converted."""

import numpy as np
from tbe import tik

M, K, N, STEP = 64, 256, 96, 128
t = tik.Tik(tik.Dprofile("v200", "aic"))
a = t.Tensor("float16", (K // 16, M, 16), name="a", scope=tik.scope_gm)
b = t.Tensor("float16", (K // 16, N, 16), name="b", scope=tik.scope_gm)
c = t.Tensor("float16", (N // 16, M, 16), name="c", scope=tik.scope_gm)
a_l1 = t.Tensor("float16", (STEP // 16, M, 16), name="a_l1", scope=tik.scope_cbuf)
b_l1 = t.Tensor("float16", (STEP // 16, N, 16), name="b_l1", scope=tik.scope_cbuf)
sums = t.Tensor("float32", (N // 16, M, 16), name="sums", scope=tik.scope_cbuf_out)

with t.for_range(0, K // STEP) as k:
    t.data_move(a_l1, a[k * (STEP * M)], 0, 1, STEP * M // 16, 0, 0)
    t.data_move(b_l1, b[k * (STEP * N)], 0, 1, STEP * N // 16, 0, 0)
    with t.if_scope(k == 0):
        t.matmul(sums, a_l1, b_l1, M, STEP, N)
    with t.else_scope():
        t.matmul(sums, a_l1, b_l1, M, STEP, N, init_l1out=False)
half = t.Tensor("float16", (N // 16, M, 16), name="half", scope=tik.scope_ubuf)
t.tensor_mov(half, sums, "m", 1, M * N // 256, 0, 0)
t.data_move(c, half, 0, 1, M * N // 16, 0, 0)
t.BuildCCE(kernel_name="matmul_tiled", inputs=[a, b], outputs=[c])

rng = np.random.default_rng(2)
left, right = (rng.integers(-4, 5, s).astype(np.float16) for s in ((M, K), (K, N)))
feeds = {
    "a": np.ascontiguousarray(left.reshape(M, K // 16, 16).transpose(1, 0, 2)),
    "b": np.ascontiguousarray(right.T.reshape(N, K // 16, 16).transpose(1, 0, 2)),
}
(got,) = t.tikdb.start_debug(feeds)
want = (left.astype(np.float64) @ right).astype(np.float16)
assert np.array_equal(got.transpose(1, 0, 2).reshape(M, N), want)
print("verified")
