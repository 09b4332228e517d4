"""The sum of two half vectors on every core, UB filled by halves, a tail by overlap."""

import numpy as np
from tbe import tik
from tbe.common import platform

N = 100_000
platform.set_current_compile_soc_info("Ascend310")
t = tik.Tik()
CORES = platform.get_soc_spec("CORE_NUM")
SHARE = N // CORES
CHUNK = platform.get_soc_spec("UB_SIZE") // 2 // 2 // 128 * 128

x = t.Tensor("float16", (N,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (N,), name="y", scope=tik.scope_gm)
z = t.Tensor("float16", (N,), name="z", scope=tik.scope_gm)


def add(first: object, count: int) -> None:
    """Add `count` elements from `first` on."""
    a = t.Tensor("float16", (CHUNK,), name="a", scope=tik.scope_ubuf)
    b = t.Tensor("float16", (CHUNK,), name="b", scope=tik.scope_ubuf)
    blocks = -(-count // 16)
    t.data_move(a, x[first], 0, 1, blocks, 0, 0)
    t.data_move(b, y[first], 0, 1, blocks, 0, 0)
    done = 0
    while done < count:
        repeats = min(255, (count - done) // 128)
        if repeats:
            t.vec_add(128, a[done], a[done], b[done], repeats, 8, 8, 8)
            done += repeats * 128
        else:
            t.vec_add(count - done, a[done], a[done], b[done], 1, 8, 8, 8)
            done = count
    t.data_move(z[first], a, 0, 1, blocks, 0, 0)


with t.for_range(0, CORES, block_num=CORES) as core:
    start = core * SHARE
    for _ in range(SHARE // CHUNK):
        with t.new_stmt_scope():
            add(start, CHUNK)
        start += CHUNK
    with t.new_stmt_scope():
        add(start, SHARE % CHUNK)
t.BuildCCE(kernel_name="vector_sum", inputs=[x, y], outputs=[z])

rng = np.random.default_rng(0)
a, b = (rng.uniform(-4, 4, N).astype(np.float16) for _ in range(2))
(got,) = t.tikdb.start_debug({"x": a, "y": b})
assert np.array_equal(got, a + b)
print("verified")
