"""Both engines on the same programs: the fast one may fall back, it may not differ."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube import CopyCbufToBt, Mad
from cubecore.isa.expr import Expr
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.moves import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCbTranspose,
)
from cubecore.isa.sync import Sync
from cubecore.isa.system import ScalarWork
from cubecore.kernels.builder import Builder
from cubecore.kernels.matmul import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory import GlobalMemory
from cubecore.tiling.problem import Problem
from harness import A2, as_stored, make_tiling
from kernels.broken import changed, leaves
from kernels.cases import draw_operands, draw_problem, draw_tiling

HALF, SINGLE = element_type("float16"), element_type("float32")
BIT_PATTERNS = element_type("uint16")


def execute(launch, operands, engine):
    """Return (C's bytes, which are written, findings, the engine that ran)."""
    gm, placed = GlobalMemory(), {}
    for spec in launch.tensors:
        placed[spec.name] = (
            gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
            if spec.output
            else gm.place(spec.name, operands[spec.name])
        )
    bases = {name: tensor.address for name, tensor in placed.items()}
    outcome, ran = run_launch(launch, A2, gm, bases, engine)
    (output,) = (placed[spec.name].buffer for spec in launch.tensors if spec.output)
    return output.data, output.valid, outcome.findings, ran


def assert_agree(launch, operands, about=""):
    """Run on both engines: the same bytes, the same findings. Return the engine that ran."""
    fast, slow = (execute(launch, operands, engine) for engine in ("fast", "reference"))
    assert fast[2] == slow[2], about
    assert (fast[1] == slow[1]).all(), about
    assert (fast[0][fast[1] == 1] == slow[0][slow[1] == 1]).all(), about
    return fast[3]


@pytest.mark.parametrize("seed", range(40))
def test_random_tilings_give_the_same_bytes_on_both_engines(seed):
    rng = np.random.default_rng(4000 + seed)
    problem = draw_problem(rng, 120)
    tiling = draw_tiling(rng, problem)
    operands = as_stored(problem, draw_operands(rng, problem))
    assert assert_agree(matmul_launch(problem, tiling, A2), operands) == "fast"


FIELDS = dict.fromkeys(("baseM", "baseN", "baseK"), 32) | dict.fromkeys(
    ("depthA1", "depthB1", "dbL0A", "dbL0B", "dbL0C"), 2
)
BROKEN = [
    Problem(m=50, n=70, k=100, bias="float32"),
    Problem(m=33, n=33, k=70, trans_a=True, trans_b=True),
    Problem(m=50, n=70, k=100, a="int8", bias="int32", trans_a=True),
]


def moved(amount, place):
    def change(leaf):
        at = list(leaf.addresses)
        at[place] = at[place] + amount
        return replace(leaf, addresses=tuple(at))

    return change


def shorter(field):
    def change(leaf):
        value = getattr(leaf.template, field, 1)
        if value <= 1:
            return leaf
        return replace(leaf, template=replace(leaf.template, **{field: value - 1}))

    return change


CHANGES = {
    "dropped": lambda _: None,
    "destination 32 B on": moved(32, 0),
    "destination 512 B on": moved(512, 0),
    "source 32 B on": moved(32, 1),
    "source 512 B on": moved(512, 1),
    "one row less": shorter("n_value"),
    "one column less": shorter("d_value"),
    "one fractal less": shorter("repeat"),
    "m less 1": shorter("m"),
    "n less 1": shorter("n"),
    "k less 1": shorter("k"),
    "a store one row less": shorter("m_size"),
    "a store one column less": shorter("n_size"),
    "another source stride": shorter("src_stride"),
    "another row distance": shorter("src_d_value"),
    "another column distance": shorter("dst_nz_c0_stride"),
}


def assert_leaves_agree(problem, change, every):
    """Change one leaf at a time, each `every`-th of those that it changes."""
    launch = matmul_launch(problem, make_tiling(problem, **FIELDS), A2)
    operands = draw_operands(np.random.default_rng(1), problem)
    chosen = [
        number
        for number, leaf in enumerate(leaves(launch))
        if not isinstance(leaf.template, Sync | ScalarWork) and CHANGES[change](leaf) is not leaf
    ]
    for number in chosen[::every]:
        count = iter(range(10_000))

        def alter(one, count=count, number=number):
            return CHANGES[change](one) if next(count) == number else one

        leaf = leaves(launch)[number]
        with np.errstate(all="ignore"):
            assert_agree(changed(launch, alter), operands, f"{leaf.template} at {leaf.location}")


every_broken = pytest.mark.parametrize(
    "problem", BROKEN, ids=lambda p: f"{p.a}-{int(p.trans_a)}{int(p.trans_b)}"
)


@pytest.mark.parametrize("change", CHANGES)
@every_broken
def test_a_kernel_with_one_leaf_broken_is_the_same_on_both_engines(problem, change):
    assert_leaves_agree(problem, change, every=9)


@pytest.mark.sweep
@pytest.mark.parametrize("change", CHANGES)
@every_broken
def test_a_kernel_with_any_leaf_broken_is_the_same_on_both_engines(problem, change):
    assert_leaves_agree(problem, change, every=1)


# --- programs by hand: one 16 x 16 x 16 product on each core

SIZE = 16
BYTES = SIZE * SIZE * 2
FILL = CopyGmToCbufMultiNd2Nz(
    dtype=HALF, n_value=SIZE, d_value=SIZE, src_d_value=SIZE, dst_nz_c0_stride=SIZE
)
PRODUCT = Mad(a_type=HALF, b_type=HALF, c_type=SINGLE, m=SIZE, k=SIZE, n=SIZE)
STORE = CopyMatrixCcToGm(
    src_type=SINGLE, n_size=SIZE, m_size=SIZE, dst_stride=SIZE, src_stride=SIZE, nz2nd_en=True
)


def by_hand(write, cores=1, **inputs):
    """Return a launch of `cores` cores; core i's slots point at its own part of each tensor."""
    builder = Builder("by_hand")
    names = [*inputs, "c"]
    slots = {name: builder.slot(name) for name in names}
    write(builder, slots)
    program = builder.finish()
    sizes = {name: values.nbytes for name, values in inputs.items()} | {"c": 1024 * cores}
    tensors = tuple(TensorSpec(name, sizes[name], output=name == "c") for name in names)
    placed = tuple(
        CoreProgram(
            core, program, {slots[name]: (name, core * sizes[name] // cores) for name in names}
        )
        for core in range(cores)
    )
    return Launch(tensors, placed)


def halves(*shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float16)


def multiply(b, a, right, c, fill=FILL, product=PRODUCT, store=True):
    """Issue one product of the matrices at two global addresses, stored at a third."""
    b.issue(fill, 0, a)
    b.issue(fill, 1024, right)
    b.issue(LoadCbufToCa(repeat=1), 0, 0)
    b.issue(LoadCbufToCbTranspose(dtype=HALF, repeat=1), 0, 1024)
    b.issue(product, 0, 0, 0)
    if store:
        b.issue(STORE, c, 0)


def test_a_product_by_hand_is_the_same_on_both_engines():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        multiply(b, *(slots[name] for name in ("a", "b", "c")))

    assert assert_agree(by_hand(write, cores=2, **operands), operands) == "fast"


def test_a_pointer_kept_in_a_scalar_is_each_cores_own():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        pointer = b.scalar("pointer", slots["a"])
        multiply(b, pointer.value, slots["b"], slots["c"])

    assert_agree(by_hand(write, cores=2, **operands), operands)


def test_a_branch_over_a_slot_is_taken_by_each_core_for_itself():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        first, second, c = (Expr.of(slots[name]) for name in ("a", "b", "c"))
        for odd in b.choose((first // BYTES) % 2, "==", 1):
            multiply(b, second if odd else first, second, c)

    assert_agree(by_hand(write, cores=2, **operands), operands)


def test_halves_moved_as_bit_patterns_are_still_halves():
    operands = {"a": halves(SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}

    def write(b, slots):
        fill = replace(FILL, dtype=BIT_PATTERNS)
        multiply(b, *(slots[name] for name in ("a", "b", "c")), fill=fill)

    assert_agree(by_hand(write, **operands), operands)


def test_the_last_of_two_stores_to_one_place_stays():
    """The first is the sum of many products and takes longer."""
    count = 3000
    operands = {"a": halves(count, SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}

    def write(b, slots):
        left, right, c = (Expr.of(slots[name]) for name in ("a", "b", "c"))
        multiply(b, left, right, c)
        with b.loop("i", count) as i:
            adding = replace(PRODUCT, c_matrix_init_val=False)
            multiply(b, left + (i * 7 % count) * BYTES, right, c, product=adding, store=False)
        b.issue(STORE, c, 0)
        multiply(b, left, right, c)

    assert_agree(by_hand(write, **operands), operands)


def test_a_sum_that_saturates_on_the_way_is_the_same_on_both_engines():
    problem = Problem(m=16, n=16, k=64, a="int8", bias="int32")
    a = np.ones((16, 64), np.int8)
    a[:, 32:] = -1
    operands = {"a": a, "b": np.ones((64, 16), np.int8)}
    operands["bias"] = np.full(16, 2**31 - 5, np.int32)
    launch = matmul_launch(problem, make_tiling(problem, baseK=32), A2)
    assert_agree(launch, operands)


def test_a_bias_of_another_type_is_read_as_its_bits():
    operands = {"a": halves(SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}
    operands["bias"] = np.full(SIZE, 3, np.int32)

    def write(b, slots):
        row = CopyGmToCbufMultiNd2Nz(
            dtype=element_type("int32"),
            n_value=1,
            d_value=SIZE,
            src_d_value=SIZE,
            dst_nz_c0_stride=1,
        )
        b.issue(row, 4096, slots["bias"])
        b.issue(CopyCbufToBt(src_type=element_type("int32"), len_burst=2), 0, 4096)
        b.issue(FILL, 0, slots["a"])
        b.issue(FILL, 1024, slots["b"])
        b.issue(LoadCbufToCa(repeat=1), 0, 0)
        b.issue(LoadCbufToCbTranspose(dtype=HALF, repeat=1), 0, 1024)
        with_bias = replace(PRODUCT, c_matrix_init_val=False, c_matrix_source=True)
        b.issue(with_bias, 0, 0, 0, 0)
        b.issue(STORE, slots["c"], 0)

    assert_agree(by_hand(write, **operands), operands)
