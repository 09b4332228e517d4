"""The alignment of two sequences, cell by cell, by Scalars on elements of UB."""

import numpy as np
from tbe import tik

M, N = 7, 9
WIDTH = 16
t = tik.Tik()
a = t.Tensor("int32", (8,), name="a", scope=tik.scope_gm)
b = t.Tensor("int32", (16,), name="b", scope=tik.scope_gm)
d = t.Tensor("int32", (M + 1, WIDTH), name="d", scope=tik.scope_gm)
left = t.Tensor("int32", (8,), name="left", scope=tik.scope_ubuf)
right = t.Tensor("int32", (16,), name="right", scope=tik.scope_ubuf)
table = t.Tensor("int32", (M + 1, WIDTH), name="table", scope=tik.scope_ubuf)
t.data_move(left, a, 0, 1, 1, 0, 0)
t.data_move(right, b, 0, 1, 2, 0, 0)
t.vec_dup(64, table, 0, (M + 1) * WIDTH // 64, 8)
with t.for_range(0, M + 1) as i:
    table[i, 0].set_as(i)
with t.for_range(0, N + 1) as j:
    table[0, j].set_as(j)
one, other, best = (t.Scalar("int32", name=name) for name in ("one", "other", "best"))
with t.for_range(1, M + 1) as i, t.for_range(1, N + 1) as j:
    one.set_as(left[i - 1])
    other.set_as(right[j - 1])
    best.set_as(table[i - 1, j - 1])
    with t.if_scope(one != other):
        best.set_as(best + 1)
    for neighbour in (table[i - 1, j], table[i, j - 1]):
        other.set_as(neighbour)
        t.scalar_min(best, best, other + 1)
    table[i, j].set_as(best)
t.data_move(d, table, 0, 1, (M + 1) * WIDTH * 4 // 32, 0, 0)
t.BuildCCE(kernel_name="edit_distance", inputs=[a, b], outputs=[d])

words = [list(b"sitting"), list(b"kittening")]
feeds = {"a": np.array([*words[0], 0], np.int32), "b": np.array([*words[1], *[0] * 7], np.int32)}
(got,) = t.tikdb.start_debug(feeds)
want = np.add.outer(np.arange(M + 1), np.arange(N + 1))
for row in range(1, M + 1):
    for column in range(1, N + 1):
        change = want[row - 1, column - 1] + (words[0][row - 1] != words[1][column - 1])
        want[row, column] = min(change, want[row - 1, column] + 1, want[row, column - 1] + 1)
assert np.array_equal(got[:, : N + 1], want)
print("verified")
