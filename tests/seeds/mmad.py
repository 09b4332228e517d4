"""One Mmad on hand-laid-out memories: what the tests of seed 002 share."""

import numpy as np
import pytest

from cubecore.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, INT32
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from harness import A2, lay_out, read_out, run_core, whole_numbers

C_FRACTAL = (16, 16)
COMBINATIONS = [(FLOAT16, FLOAT32), (BFLOAT16, FLOAT32), (FLOAT32, FLOAT32), (INT8, INT32)]
both_types = pytest.mark.parametrize("types", COMBINATIONS, ids=lambda t: str(t[0]))


def mad(types=(FLOAT16, FLOAT32), **fields):
    """Return a template; 16 x 16 x 16 unless `fields` say otherwise."""
    inputs, result = types
    extents = {"m": 16, "k": 16, "n": 16} | fields
    return Mad(a_type=inputs, b_type=inputs, c_type=result, **extents)


def matrices(m, k, n, types=(FLOAT16, FLOAT32), seed=0):
    rng = np.random.default_rng(seed)
    name = types[0].name
    return whole_numbers(rng, (m, k), name), whole_numbers(rng, (k, n), name)


def product(a, b):
    wide = np.int64 if a.dtype.kind == "i" else np.float64
    return a.astype(wide) @ b.astype(wide)


def laid_out(a, b, fill=0):
    """Return L0A and L0B as seed 002 lays them out, padding filled."""
    c0 = 32 // a.dtype.itemsize
    return {
        (Mem.L0A, 0): lay_out(a, "ZZ", (16, c0), fill),
        (Mem.L0B, 0): lay_out(b, "ZN", (c0, 16), fill),
    }


def run_mad(template, local, on=A2, c=0, a=0, b=0, bias=0):
    """Run one mad on hand-laid-out memories; c, a, b and bias are addresses."""
    addresses = (c, a, b, *((bias,) if template.starts_from_bias else ()))
    return run_core(lambda builder, _: builder.issue(template, *addresses), local=local, on=on)


def result(ran, template, address=0):
    size = -(-template.m // 16) * -(-template.n // 16) * 256
    flat = ran.at(Mem.L0C, template.c_type.name, size, address)
    return read_out(flat, "NZ", (template.m, template.n), C_FRACTAL)


def bias_row(n, kind):
    """Return a bias whose values differ from column to column."""
    return (np.arange(n) * 3 - 50).astype(kind.numpy)
