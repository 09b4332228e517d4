"""Products of slices of K over a C that vector cores clear: the sums alone are left in it."""

import numpy as np
import pytest

from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.kernels.operators.products.cleared import cleared
from cubecore.tiling.model.problem import Problem
from harness import A2, expected, make_tiling, run_product
from kernels.cases import draw_operands


@pytest.mark.parametrize(("m", "n"), [(48, 80), (16, 16), (200, 96)])
def test_slices_add_up_in_a_cleared_c(m, n):
    """Without the clearing C is not initialised; zeros stored late would lose a slice."""
    problem = Problem(chip=A2.name, m=m, n=n, k=128, split_k=True)
    tiling = make_tiling(problem, singleCoreK=32, baseM=16, baseN=16, baseK=32)
    product = matmul_launch(problem, tiling, A2)
    operands = draw_operands(np.random.default_rng(7), problem)
    done = run_product(cleared(product), problem, operands)
    assert done.findings == ()
    assert done.written.all()
    assert (done.c == expected(problem, operands)).all()
