"""Kernels of TIK, each slow for one reason; with the argument `better`, without it."""

import sys

import numpy as np
from tbe import tik
from tbe.common import platform

NAME, BETTER = sys.argv[1], "better" in sys.argv[2:]
ROWS, WIDTH = 40, 4096 if NAME == "small_copies" else 32768
TILE = 64 if NAME == "small_copies" and not BETTER else 2048
BLOCKS = 5 if NAME == "few_blocks" and not BETTER else ROWS
LANES = 32 if NAME == "masked_lanes" and not BETTER else min(TILE, 128)
SHAPE = (TILE // LANES, LANES // 16, LANES // 16)
platform.set_current_compile_soc_info("Ascend910B3")
t = tik.Tik()
x = t.Tensor("float16", (ROWS, WIDTH), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (ROWS, WIDTH), name="y", scope=tik.scope_gm)

with (
    t.for_range(0, BLOCKS, block_num=BLOCKS) as block,
    t.for_range(0, ROWS // BLOCKS * WIDTH // TILE) as i,
):
    tile = t.Tensor("float16", (TILE,), name="tile", scope=tik.scope_ubuf)
    at = block * (ROWS // BLOCKS) * WIDTH + i * TILE
    t.data_move(tile, x[at], 0, 1, TILE // 16, 0, 0)  # slow: small_copies
    for _ in range(4):
        t.vec_muls(LANES, tile, tile, 0.25, *SHAPE)  # slow: masked_lanes
    t.data_move(y[at], tile, 0, 1, TILE // 16, 0, 0)
t.BuildCCE(kernel_name=NAME, inputs=[x], outputs=[y])
given = (np.arange(ROWS * WIDTH) % 7 / 8).astype(np.float16)
t.tikdb.start_debug({"x": given.reshape(ROWS, WIDTH)})
