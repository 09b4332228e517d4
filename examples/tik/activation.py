"""A leaky ReLU by comparison and selection, and its count of negatives by a state machine."""

import numpy as np
from tbe import tik

N = 128
t = tik.Tik()
x = t.Tensor("float16", (N,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (N,), name="y", scope=tik.scope_gm)
count = t.Tensor("int32", (8,), name="count", scope=tik.scope_gm)
line, zero, small = (
    t.Tensor("float16", (N,), name=name, scope=tik.scope_ubuf) for name in ("line", "zero", "small")
)
found = t.Tensor("int32", (8,), name="found", scope=tik.scope_ubuf)
t.data_move(line, x, 0, 1, N // 16, 0, 0)
t.vec_dup(N, zero, 0.0, 1, 8)
t.vec_muls(N, small, line, 0.125, 1, 8, 8)
positive = t.vcmp_gt(N, line, zero, 1, 1)
t.vsel(N, 0, small, positive, line, small, 1, 1, 1, 1, 8, 8, 8)
t.data_move(y, small, 0, 1, N // 16, 0, 0)
negatives = t.Scalar("int32", init_value=0)
bits = line.reinterpret_cast_to("int16")
with t.for_range(0, N) as i:
    word = t.Scalar("int16", init_value=bits[i])
    with t.if_scope(word < 0):
        negatives.set_as(negatives + 1)
t.vec_dup(8, found, negatives, 1, 8)
t.data_move(count, found, 0, 1, 1, 0, 0)
t.BuildCCE(kernel_name="activation", inputs=[x], outputs=[y, count])

given = np.random.default_rng(4).uniform(-4, 4, N).astype(np.float16)
got, counted = t.tikdb.start_debug({"x": given})
good = np.array_equal(got, np.where(given > 0, given, given * np.float16(0.125)))
assert good
assert counted[0] == (given < 0).sum()
print("verified")
