"""Bytes 30 x 64 times 64 x 160 into integers, ReLU on their way out: padded rows are dropped."""

import numpy as np
from tbe import tik

M, K, N = 30, 64, 160
t = tik.Tik()
a = t.Tensor("int8", (K // 32, 32, 32), name="a", scope=tik.scope_gm)
b = t.Tensor("int8", (K // 32, N, 32), name="b", scope=tik.scope_gm)
c = t.Tensor("int32", (N // 16, M, 16), name="c", scope=tik.scope_gm)
a_l1 = t.Tensor("int8", (K // 32, 32, 32), name="a_l1", scope=tik.scope_cbuf)
b_l1 = t.Tensor("int8", (K // 32, N, 32), name="b_l1", scope=tik.scope_cbuf)
c_l1out = t.Tensor("int32", (N // 16, 32, 16), name="c_l1out", scope=tik.scope_cbuf_out)
t.data_move(a_l1, a, 0, 1, K * 32 // 32, 0, 0)
t.data_move(b_l1, b, 0, 1, K * N // 32, 0, 0)
t.matmul(c_l1out, a_l1, b_l1, M, K, N)
t.fixpipe(c, c_l1out, N // 16, M * 16 * 4 // 32, 0, 0, extend_params={"relu": True})
t.BuildCCE(kernel_name="matmul_int8", inputs=[a, b], outputs=[c])

rng = np.random.default_rng(7)
left = rng.integers(-128, 128, (32, K)).astype(np.int8)
right = rng.integers(-128, 128, (N, K)).astype(np.int8)
feeds = {
    "a": np.ascontiguousarray(left.reshape(32, -1, 32).transpose(1, 0, 2)),
    "b": np.ascontiguousarray(right.reshape(N, -1, 32).transpose(1, 0, 2)),
}
(got,) = t.tikdb.start_debug(feeds)
want = np.maximum(left[:M].astype(np.int32) @ right.T.astype(np.int32), 0)
assert np.array_equal(got.transpose(1, 0, 2).reshape(M, N), want)
print("verified")
