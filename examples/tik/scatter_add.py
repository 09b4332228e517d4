"""Rows added into a table at positions that a tensor holds, from several cores at once."""

import numpy as np
from tbe import tik

ROWS, TABLE, WIDTH = 16, 6, 64
t = tik.Tik(tik.Dprofile("v200", "aic"))
index = t.Tensor("int32", (ROWS,), name="index", scope=tik.scope_gm)
rows = t.Tensor("float32", (ROWS, WIDTH), name="rows", scope=tik.scope_gm)
table = t.Tensor("float32", (TABLE, WIDTH), name="table", scope=tik.scope_gm, is_atomic_add=True)

with t.for_range(0, 4, block_num=4) as core:
    places = t.Tensor("int32", (ROWS,), name="places", scope=tik.scope_ubuf)
    t.data_move(places, index, 0, 1, ROWS * 4 // 32, 0, 0)
    with t.for_range(0, ROWS // 4, thread_num=2) as i:
        row = t.Tensor("float32", (WIDTH,), name="row", scope=tik.scope_ubuf)
        place = t.Scalar("int32", init_value=places[core * 4 + i])
        t.data_move(row, rows[(core * 4 + i) * WIDTH], 0, 1, WIDTH * 4 // 32, 0, 0)
        t.set_atomic_add(1)
        t.data_move(table[place * WIDTH], row, 0, 1, WIDTH * 4 // 32, 0, 0)
        t.set_atomic_add(0)
t.BuildCCE(kernel_name="scatter_add", inputs=[index, rows], outputs=[table])

rng = np.random.default_rng(3)
where = rng.integers(0, TABLE, ROWS).astype(np.int32)
what = rng.integers(-9, 10, (ROWS, WIDTH)).astype(np.float32)
(got,) = t.tikdb.start_debug({"index": where, "rows": what})
want = np.zeros((TABLE, WIDTH), np.float32)
np.add.at(want, where, what)
assert np.array_equal(got, want)
print("verified")
