"""One block of attention: a product, a softmax over rows, and a second product."""

import numpy as np
from tbe import tik

L, D = 16, 32
t = tik.Tik(tik.Dprofile("v200", "aic"))
q, k = (t.Tensor("float16", (D // 16, L, 16), name=n, scope=tik.scope_gm) for n in ("q", "k"))
v = t.Tensor("float16", (1, D, 16), name="v", scope=tik.scope_gm)
out = t.Tensor("float16", (D // 16, L, 16), name="out", scope=tik.scope_gm)
q_l1, k_l1 = (
    t.Tensor("float16", (D // 16, L, 16), name=f"{n}_l1", scope=tik.scope_cbuf) for n in "qk"
)
v_l1 = t.Tensor("float16", (1, D, 16), name="v_l1", scope=tik.scope_cbuf)
p_l1 = t.Tensor("float16", (1, L, 16), name="p_l1", scope=tik.scope_cbuf)
scores = t.Tensor("float32", (1, L, 16), name="scores", scope=tik.scope_cbuf_out)
mixed = t.Tensor("float32", (D // 16, L, 16), name="mixed", scope=tik.scope_cbuf_out)
t.data_move(q_l1, q, 0, 1, L * D // 16, 0, 0)
t.data_move(k_l1, k, 0, 1, L * D // 16, 0, 0)
t.data_move(v_l1, v, 0, 1, L * D // 16, 0, 0)
t.matmul(scores, q_l1, k_l1, L, D, L)
s = t.Tensor("float32", (L, 16), name="s", scope=tik.scope_ubuf)
row, total = (t.Tensor("float32", (2 * L,), name=n, scope=tik.scope_ubuf) for n in ("row", "total"))
probability = t.Tensor("float16", (L, 16), name="probability", scope=tik.scope_ubuf)
value = t.Scalar("float32", name="value")
t.data_move(s, scores, 0, 1, 1, 0, 0)
t.vec_muls(64, s, s, D**-0.5, L * 16 // 64, 8, 8)
with t.for_range(0, L) as i:
    t.vcmax(16, row, s[i, 0], 1, 1, 1, 8)
    value.set_as(row[0])
    t.vec_adds(16, s[i, 0], s[i, 0], value * -1.0, 1, 8, 8)
    t.vec_exp(16, s[i, 0], s[i, 0], 1, 8, 8)
    t.vcadd(16, total, s[i, 0], 1, 1, 1, 8)
    t.vec_rec_high_preci(1, row, total, s, 1, 8, 8)
    value.set_as(row[0])
    t.vec_muls(16, s[i, 0], s[i, 0], value, 1, 8, 8)
t.vec_conv(64, "", probability, s, L * 16 // 64, 4, 8)
t.data_move(p_l1, probability, 0, 1, L, 0, 0)
t.matmul(mixed, p_l1, v_l1, L, L, D)
result = t.Tensor("float16", (D // 16, L, 16), name="result", scope=tik.scope_ubuf)
t.tensor_mov(result, mixed, "m", 1, L * D // 256, 0, 0)
t.data_move(out, result, 0, 1, L * D // 16, 0, 0)
t.BuildCCE(kernel_name="attention", inputs=[q, k, v], outputs=[out])

rng = np.random.default_rng(15)
queries, keys, values = (rng.uniform(-1, 1, (L, D)).astype(np.float16) for _ in range(3))


def blocked(matrix: np.ndarray) -> np.ndarray:
    """Return [rows, columns] as [columns / 16, rows, 16]."""
    return np.ascontiguousarray(matrix.reshape(matrix.shape[0], -1, 16).transpose(1, 0, 2))


feeds = {"q": blocked(queries), "k": blocked(keys), "v": blocked(values.T)}
(got,) = t.tikdb.start_debug(feeds)
weights = np.exp((queries.astype(np.float64) @ keys.T.astype(np.float64)) / D**0.5)
want = weights / weights.sum(axis=1, keepdims=True) @ values
assert np.abs(got.transpose(1, 0, 2).reshape(L, D) - want).max() < 2e-3
print("verified")
