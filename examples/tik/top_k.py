"""The 8 largest of 128 scores and their places: four sorted runs, merged."""

import numpy as np
from tbe import tik
from tbe.common import platform

N, K = 128, 8
platform.set_current_compile_soc_info("Ascend910B3")
t = tik.Tik()
x = t.Tensor("float32", (N,), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (K, 2), name="y", scope=tik.scope_gm)
scores = t.Tensor("float32", (N,), name="scores", scope=tik.scope_ubuf)
places = t.Tensor("uint32", (N,), name="places", scope=tik.scope_ubuf)
runs = t.Tensor("float32", (4, 32, 2), name="runs", scope=tik.scope_ubuf)
ranked = t.Tensor("float32", (N, 2), name="ranked", scope=tik.scope_ubuf)
t.data_move(scores, x, 0, 1, N // 8, 0, 0)
with t.for_range(0, N) as i:
    places[i].set_as(i)
t.vsort32(runs, scores, places, N // 32)
t.vmrgsort(ranked, [runs[queue, 0, 0] for queue in range(4)], 32, False, 1)
t.data_move(y, ranked, 0, 1, K * 8 // 32, 0, 0)
t.BuildCCE(kernel_name="top_k", inputs=[x], outputs=[y])

given = np.random.default_rng(12).permutation(N).astype(np.float32)
(got,) = t.tikdb.start_debug({"x": given})
order = np.argsort(-given)[:K]
assert np.array_equal(got[:, 0], given[order])
assert np.array_equal(np.ascontiguousarray(got).view(np.uint32)[:, 1], order)
print("verified")
