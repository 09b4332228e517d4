"""One ordinary problem and a legal tiling of it, from which the tests depart."""

from dataclasses import replace

import numpy as np

from cubecore.chips import chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.solver.candidates import TilingColumns

B3 = chip("Ascend910B3")


def problem(**changes):
    return Problem(**({"m": 256, "n": 512, "k": 1024} | changes))


def tiling(p=None, **changes):
    """Return the tiling with base 128 x 256 x 64 on four cores, adapted to `p`'s extents."""
    p = p or problem()
    values = dict.fromkeys(FIELDS, 0) | {
        "usedCoreNum": 4,
        "M": p.m,
        "N": p.n,
        "Ka": p.k,
        "Kb": p.k if p.kb is None else p.kb,
        "singleCoreM": 128,
        "singleCoreN": 256,
        "singleCoreK": p.shared_k,
        "baseM": 128,
        "baseN": 256,
        "baseK": 64,
        "depthA1": 8,
        "depthB1": 8,
        "stepM": 1,
        "stepN": 1,
        "stepKa": 4,
        "stepKb": 4,
        "isBias": int(p.bias is not None),
        "dbL0A": 2,
        "dbL0B": 2,
        "dbL0C": 1,
    }
    return replace(TCubeTiling(**values), **changes)


def stack(tilings):
    """Return `tilings` as a struct of arrays."""
    return TilingColumns(
        {name: np.array([getattr(t, name) for t in tilings], dtype=np.int64) for name in FIELDS}
    )
