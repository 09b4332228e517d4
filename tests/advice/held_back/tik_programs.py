"""Slow TIK programs that no rule was written by; with the argument `better`, without it."""

import sys

import numpy as np
from tbe import tik
from tbe.common import platform

NAME, BETTER = sys.argv[1], "better" in sys.argv[2:]
ROWS, WIDTH = 40, 12288
TILE = 128 if NAME == "crumbs" and not BETTER else 4096
BLOCKS = 8 if NAME == "idle" and not BETTER else ROWS
LANES = 32 if NAME == "halves" and not BETTER else 64
SHAPE = (TILE // LANES, LANES // 8, LANES // 8)
platform.set_current_compile_soc_info("Ascend910B3")
t = tik.Tik()
x = t.Tensor("float32", (ROWS * WIDTH,), name="x", scope=tik.scope_gm)
y = t.Tensor("float32", (ROWS * WIDTH,), name="y", scope=tik.scope_gm)


def moved(to, source):
    t.data_move(to, source, 0, 1, TILE // 8, 0, 0)  # slow: crumbs


with t.for_range(0, BLOCKS, block_num=BLOCKS) as block:
    share = ROWS // BLOCKS * WIDTH
    with t.for_range(0, share // TILE) as i:
        given = t.Tensor("float32", (TILE,), name="given", scope=tik.scope_ubuf)
        at = block * share + i * TILE
        moved(given, x[at])
        for _ in range(2):
            t.vec_abs(LANES, given, given, *SHAPE)  # slow: halves
            t.vec_exp(LANES, given, given, *SHAPE)  # slow: halves
        moved(y[at], given)
t.BuildCCE(kernel_name=NAME, inputs=[x], outputs=[y])
t.tikdb.start_debug({"x": (np.arange(ROWS * WIDTH) % 7 / 64).astype(np.float32)})
