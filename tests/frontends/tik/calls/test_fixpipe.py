"""TIK's fixpipe: planes of L1OUT with gaps between them, by a fixpipe and by way of UB."""

import numpy as np
import pytest

from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, L1 = "global", "local.L1"


@pytest.mark.parametrize("target", [("v100", "cloud"), ("v200", "aic")])
@pytest.mark.parametrize("rows", [16, 7])
def test_gaps_of_the_source_are_fractals_and_of_the_target_blocks(target, rows):
    """Every other one of four planes, and 64 B between them in global memory."""
    t = Tik(Dprofile(*target))
    a = t.Tensor("float16", (1, 16, 16), GM, "a")
    b = t.Tensor("float16", (1, 64, 16), GM, "b")
    out = t.Tensor("float32", (2, rows * 16 + 16), GM, "out")
    held = [t.Tensor("float16", x.shape, L1, f"{x.name}_l1") for x in (a, b)]
    sums = t.Tensor("float32", (4, 16, 16), "local.L1OUT", "sums")
    t.data_move(held[0], a, 0, 1, 16, 0, 0)
    t.data_move(held[1], b, 0, 1, 64, 0, 0)
    t.matmul(sums, *held, rows, 16, 64)
    t.fixpipe(out, sums, 2, rows * 2, 2, 1)
    t.BuildCCE("k", [a, b], [out])
    rng = np.random.default_rng(rows)
    left, right = (rng.integers(-4, 5, x.shape).astype(np.float16) for x in (a, b))
    got = t.launch({"a": left, "b": right}).outputs["out"][:, : rows * 16]
    product = left[0, :rows].astype(np.float32) @ right[0].astype(np.float32).T
    for plane, columns in enumerate((product[:, :16], product[:, 32:48])):
        assert np.array_equal(got[plane].reshape(rows, 16), columns)
