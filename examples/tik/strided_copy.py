"""Columns of a matrix by gaps, and a tail that overlaps the piece before it."""

import numpy as np
from tbe import tik

ROWS, COLUMNS, FIRST, WIDTH, TAIL = 10, 64, 16, 32, 71
t = tik.Tik()
x = t.Tensor("int16", (ROWS, COLUMNS), name="x", scope=tik.scope_gm)
y = t.Tensor("int16", (ROWS, WIDTH), name="y", scope=tik.scope_gm)
odd = t.Tensor("int16", (TAIL,), name="odd", scope=tik.scope_gm)
even = t.Tensor("int16", (TAIL,), name="even", scope=tik.scope_gm)
ub = t.Tensor("int16", (ROWS, WIDTH + 16), name="ub", scope=tik.scope_ubuf)
block = COLUMNS * 2 // 32
# gaps count blocks, from one piece's tail to the next one's head
t.data_move(ub, x[0, FIRST], 0, ROWS, WIDTH // 16, block - WIDTH // 16, 1)
t.data_move(y, ub, 0, ROWS, WIDTH // 16, 1, 0)
line = t.Tensor("int16", (64,), name="line", scope=tik.scope_ubuf)
for begin, blocks in ((0, TAIL // 16), (TAIL - 16, 1)):
    t.data_move(line, odd[begin], 0, 1, blocks, 0, 0)
    t.data_move(even[begin], line, 0, 1, blocks, 0, 0)
t.BuildCCE(kernel_name="strided_copy", inputs=[x, odd], outputs=[y, even])

rng = np.random.default_rng(2)
matrix = rng.integers(-999, 999, (ROWS, COLUMNS)).astype(np.int16)
vector = rng.integers(-999, 999, TAIL).astype(np.int16)
piece, copied = t.tikdb.start_debug({"x": matrix, "odd": vector})
assert np.array_equal(piece, matrix[:, FIRST : FIRST + WIDTH])
assert np.array_equal(copied, vector)
print("verified")
