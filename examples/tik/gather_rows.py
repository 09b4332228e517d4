"""Rows of a table whose size only the launch knows, chosen by a tiling tensor and indices."""

import numpy as np
from tbe import tik

WIDTH = 32
HUGE = 2**31 - 1
t = tik.Tik(tik.Dprofile("v200", "aic"))
table = t.Tensor("float16", (HUGE,), name="table", scope=tik.scope_gm)
index = t.Tensor("int32", (HUGE,), name="index", scope=tik.scope_gm)
out = t.Tensor("float16", (HUGE,), name="out", scope=tik.scope_gm)
tiling = t.Tensor("int64", (4,), name="tiling", scope=tik.scope_gm)
numbers = t.Tensor("int64", (4,), name="numbers", scope=tik.scope_ubuf)
t.data_move(numbers, tiling, 0, 1, 1, 0, 0)
rows, cores = t.Scalar("int64", name="rows"), t.Scalar("int64", name="cores")
rows.set_as(numbers[0])
cores.set_as(numbers[1])
with t.for_range(0, 8, block_num=8) as core, t.if_scope(core < cores):
    place = t.Tensor("int32", (8,), name="place", scope=tik.scope_ubuf)
    row = t.Tensor("float16", (WIDTH,), name="row", scope=tik.scope_ubuf)
    chosen = t.Scalar("int32", name="chosen")
    with t.for_range(0, (rows - core + cores - 1) // cores) as i:
        number = core + i * cores
        t.data_move(place, index[number], 0, 1, 1, 0, 0)
        chosen.set_as(place[0])
        t.data_move(row, table[chosen * WIDTH], 0, 1, WIDTH // 16, 0, 0)
        t.data_move(out[number * WIDTH], row, 0, 1, WIDTH // 16, 0, 0)
t.BuildCCE(kernel_name="gather_rows", inputs=[table, index], outputs=[out], flowtable=[tiling])

rng = np.random.default_rng(14)
given = rng.uniform(-1, 1, (50, WIDTH)).astype(np.float16)
where = rng.integers(0, 50, 21).astype(np.int32)
feeds = {"table": given, "index": where, "tiling": np.array([21, 5, 0, 0], np.int64)}
result = t.launch(feeds, outputs={"out": np.zeros((21, WIDTH), np.float16)})
assert result.findings == ()
assert np.array_equal(result.outputs["out"], given[where])
print("verified")
