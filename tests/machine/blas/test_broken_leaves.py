"""Kernels with one leaf broken: the fast engine proves what they compute now, or falls back."""

import numpy as np
import pytest

from cubecore.isa.program.launch import Launch
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from harness import A2, as_stored, make_tiling
from kernels.cases import QUANTISED, draw_operands, make
from machine.agreement import assert_agree
from machine.broken_leaves import CHANGES, assert_broken_agrees, ways
from parts import part

FIELDS = dict.fromkeys(("baseM", "baseN", "baseK"), 32) | dict.fromkeys(
    ("depthA1", "depthB1", "dbL0A", "dbL0B", "dbL0C"), 2
)
NZ = {"format_a": "NZ", "format_b": "NZ", "format_c": "NZ"}
PLAIN = {"trans_a": False, "trans_b": False}
PROBLEMS = {
    "half with bias": (Problem(m=50, n=70, k=100, bias="float32"), {}),
    "half turned": (Problem(m=33, n=33, k=70, trans_a=True, trans_b=True), {}),
    "int8 with bias": (Problem(m=50, n=70, k=100, a="int8", bias="int32", trans_a=True), {}),
    "NZ": (Problem(m=64, n=96, k=96, **NZ), {}),
    "NZ turned": (Problem(m=64, n=64, k=96, a="int8", trans_a=True, **NZ), {}),
    "NZ out of two heights": (Problem(m=50, n=70, k=40, format_c="NZ", bias="float16"), {}),
    "float32 turned": (Problem(m=33, n=50, k=40, a="float32", trans_a=True, hf32=True), {}),
    "float32 NZ": (Problem(m=48, n=48, k=48, a="float32", trans_a=True, **NZ), {}),
    "int4": (Problem(m=20, n=128, k=128, a="int4", c="int32"), {"baseN": 64, "baseK": 64}),
    "int4 NZ": (Problem(m=64, n=128, k=128, a="int4", **NZ), {"baseN": 64, "baseK": 64}),
    "scales": (make(PLAIN | QUANTISED[3], 40, 70, 64, format_c="NZ"), {}),
    "one scale": (make(PLAIN | QUANTISED[5], 40, 70, 64), {}),
    "slices of K": (
        Problem(m=50, n=64, k=128, a="int8", split_k=True),
        {"singleCoreK": 64, "singleCoreM": 32},
    ),
    "NORM, in a batch": (Problem(m=40, n=40, k=70, batch=2, template="NORM"), {}),
}


def intact(name: str) -> tuple[Launch, dict]:
    problem, fields = PROBLEMS[name]
    launch = matmul_launch(problem, make_tiling(problem, **(FIELDS | fields)), A2)
    return launch, as_stored(problem, draw_operands(np.random.default_rng(1), problem))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.thinned(3)
def test_the_intact_kernel_is_proven(name):
    assert assert_agree(*intact(name)) == "blas"


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.thinned(6)
def test_a_kernel_with_one_leaf_broken_is_the_same_on_both_engines(name, drawn_seed):
    rng, found = np.random.default_rng(drawn_seed), ways(intact(name)[0], CHANGES)
    for place in rng.choice(len(found), part(12, 6), replace=False):
        assert_broken_agrees(intact(name), CHANGES, found[place], A2)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kernel_with_any_leaf_broken_is_the_same_on_both_engines(name):
    for way in ways(intact(name)[0], CHANGES):
        assert_broken_agrees(intact(name), CHANGES, way, A2)
