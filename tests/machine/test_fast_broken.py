"""Kernels with one leaf broken: the fast engine proves what they compute now, or falls back."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cubecore.isa.launch import Launch
from cubecore.isa.program import Issue
from cubecore.isa.sync import Sync
from cubecore.isa.system import ScalarWork
from cubecore.kernels.matmul import matmul_launch
from cubecore.tiling.problem import Problem
from harness import A2, as_stored, make_tiling
from kernels.broken import changed, leaves
from kernels.cases import QUANTISED, draw_operands, make
from machine.agreement import assert_agree

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


def moved(amount: int, place: int) -> Callable[[Issue], Issue]:
    def change(leaf):
        at = list(leaf.addresses)
        if place >= len(at):
            return leaf
        at[place] = at[place] + amount
        return replace(leaf, addresses=tuple(at))

    return change


def longer(field: str, amount: int, least: int = 0) -> Callable[[Issue], Issue]:
    """Change a parameter of the instructions that have it, where it stays at least `least`."""

    def change(leaf):
        value = getattr(leaf.template, field, None)
        if value is None or isinstance(value, bool) or value + amount < least:
            return leaf
        return replace(leaf, template=replace(leaf.template, **{field: value + amount}))

    return change


def flipped(field: str) -> Callable[[Issue], Issue]:
    def change(leaf):
        if not hasattr(leaf.template, field):
            return leaf
        template = replace(leaf.template, **{field: not getattr(leaf.template, field)})
        alike = len(template.operands()) == len(leaf.addresses)
        return replace(leaf, template=template) if alike else leaf

    return change


SHORTER = (
    *("n_value", "d_value", "repeat", "m", "n", "k", "m_size", "n_size", "n_burst", "len_burst"),
    *("src_stride", "dst_stride", "src_d_value", "dst_nz_c0_stride"),
)
LONGER = ("src_gap", "dst_gap", "dst_frac_gap", "index_id", "start_index", "src_stride")
FLAGS = ("k_direction_align", "relu_pre", "nz2nd_en", "decrement", "enable", "c_matrix_init_val")
CHANGES: dict[str, Callable[[Issue], Issue | None]] = (
    {"dropped": lambda _: None}
    | {f"operand {i} {n} B on": moved(n, i) for i in range(3) for n in (32, 512, 1024)}
    | {f"{name} less 1": longer(name, -1, 1) for name in SHORTER}
    | {f"{name} less 16": longer(name, -16, 1) for name in ("n_size", "d_value", "k")}
    | {f"{name} more by 1": longer(name, 1) for name in LONGER}
    | {f"{name} flipped": flipped(name) for name in FLAGS}
)


def intact(name: str) -> tuple[Launch, dict]:
    problem, fields = PROBLEMS[name]
    launch = matmul_launch(problem, make_tiling(problem, **(FIELDS | fields)), A2)
    return launch, as_stored(problem, draw_operands(np.random.default_rng(1), problem))


def ways(launch: Launch) -> list[tuple[str, int]]:
    """Return every (change, number of the leaf) that changes something."""
    return [
        (change, number)
        for number, leaf in enumerate(leaves(launch))
        if not isinstance(leaf.template, Sync | ScalarWork)
        for change, alter in CHANGES.items()
        if alter(leaf) is not leaf
    ]


def assert_broken_agrees(name: str, change: str, number: int) -> None:
    launch, operands = intact(name)
    count = iter(range(100_000))

    def alter(leaf: Issue) -> Issue | None:
        return CHANGES[change](leaf) if next(count) == number else leaf

    leaf = leaves(launch)[number]
    told = f"{name}: {change}, {leaf.template} at {leaf.location} (leaf {number})"
    assert_agree(changed(launch, alter), operands, told)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_intact_kernel_is_proven(name):
    assert assert_agree(*intact(name)) == "fast"


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kernel_with_one_leaf_broken_is_the_same_on_both_engines(name, drawn_seed):
    rng, found = np.random.default_rng(drawn_seed), ways(intact(name)[0])
    for place in rng.choice(len(found), 12, replace=False):
        assert_broken_agrees(name, *found[place])


@pytest.mark.sweep
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kernel_with_any_leaf_broken_is_the_same_on_both_engines(name):
    for change, number in ways(intact(name)[0]):
        assert_broken_agrees(name, change, number)
