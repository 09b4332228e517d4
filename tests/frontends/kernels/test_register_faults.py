"""Faults in Python kernels of Ascend 950: each is reported at its line, its right form is clean."""

import re
from pathlib import Path

import numpy as np
import pytest

from cubecore import kernel, vector_function
from cubecore.errors import CubecoreError
from workflows.command import cli

CHIP = "Ascend950PR_9589"
COUNT = 512
FRAME = """
def function(core, x, y, z, t, kept):
    a, b, c, d = (core.vector_float() for _ in range(4))
    h, s, n = core.vector_half(), core.vector_int32_t(), core.vector_uint32_t()
    u, v = core.vector_load_unalign(), core.vector_load_unalign()
    every, few = core.asc_create_mask_b32("PAT_ALL"), core.asc_create_mask_b32("PAT_VL8")
    few16 = core.asc_create_mask_b16("PAT_VL8")
    {body}
"""
PASS_ON = """core.asc_loadalign(a, x)
    core.asc_storealign(t, a, every)
    {0}
    core.asc_loadalign(b, t)  #!
    core.asc_storealign(z, b, every)"""
TWO_STORES = """core.asc_loadalign(a, x)
    core.asc_loadalign(b, y)
    core.asc_storealign(z, a, every)
    {0}
    core.asc_storealign(z + 8, b, every)  #!"""
LOAD = """core.asc_loadalign(a, x + {0})  #!
    core.asc_storealign(z, a, every)"""
STORE = """core.asc_loadalign(a, x)
    core.asc_storealign(z + {0}, a, every)  #!"""
ADD = """core.asc_loadalign(a, x)
    {1}
    core.asc_add(c, a, {0})  #!
    core.asc_storealign(z, c, every)"""
MERGED = """core.asc_loadalign(a, x)
    {0}
    core.asc_copy(b, a, few)
    core.asc_storealign(z, b, every)  #!"""
LOADS = """p = x + 3
    {0}
    for at in range(0, 256, 64):
        p = core.asc_loadunalign_postupdate(a, u, p, 64)  #!
        core.asc_storealign(z + at, a, every)"""
GATHER = """core.asc_arange(s, {0})
    core.asc_gather(a, x, s.cast("uint32"), every)  #!
    core.asc_storealign(z, a, every)"""
SCATTER = """core.asc_arange(s, 0)
    core.asc_duplicate_scalar(n, 3, every)
    core.asc_loadalign(a, x)
    core.asc_scatter(z, a, {0}, every)  #!"""
SHIFT = """core.asc_arange(s, 0)
    core.asc_shiftleft_scalar(s, s, {0}, every)  #!
    core.asc_storealign(z, s.cast("float"), every)"""
LOOP = """for at in range(0, 512, 64):
        core.asc_loadalign(a, x + at)
        core.asc_storealign(z + at, a, every)
    {0}
    for at in range(0, 512, 64):
        core.asc_loadalign(b, z + at)  #!
        core.asc_add(b, b, b, every)
        core.asc_storealign(t + at, b, every)"""
PACK = """{0}
    core.asc_loadalign(a, x)
    core.asc_squeeze_v2(b, a, every)
    w = core.vector_store_unalign()
    core.asc_storeunalign_postupdate(z, w, b)  #!
    core.asc_storeunalign_post(z, w)"""
MANY = """kept = [core.vector_float() for _ in range({0})]
    for number, each in enumerate(kept):
        core.asc_loadalign(each, x + 8 * number)  #!
    core.asc_duplicate_scalar(a, 0.0, every)
    for each in kept:
        core.asc_add(a, a, each, every)
    core.asc_storealign(z, a, every)"""
BAR, ORDER = (f'core.asc_mem_bar("{word}")' for word in ("VST_VLD", "VST_VST"))
FAULTS = {
    "store_then_load": ("vf-race", PASS_ON, (BAR,), ("",)),
    "barrier_of_others": ("vf-race", PASS_ON, (BAR,), ('core.asc_mem_bar("VLD_VST")',)),
    "barrier_of_scalars": ("vf-race", PASS_ON, (BAR,), ('core.asc_mem_bar("VS_ALL")',)),
    "two_loops": ("vf-race", LOOP, (BAR,), ("",)),
    "two_stores": ("vf-store-order", TWO_STORES, (ORDER,), ("",)),
    "load_behind_array": ("out-of-bounds", LOAD, (COUNT - 64,), (COUNT - 8,)),
    "load_before_array": ("out-of-bounds", LOAD, (0,), (-8,)),
    "store_behind_array": ("out-of-bounds", STORE, (COUNT - 64,), (COUNT - 8,)),
    "load_aligned_by_4": ("misaligned", LOAD, (8,), (1,)),
    "store_aligned_by_4": ("misaligned", STORE, (8,), (1,)),
    "unwritten_register": ("register-uninitialised", ADD, ("a, every", ""), ("d, every", "")),
    "mask_of_halves": ("mask-width", ADD, ("a, every", ""), ("a, few16", "")),
    "merged_into_nothing": ("lanes-stale", MERGED, ("core.asc_loadalign(b, y)",), ("",)),
    "no_pre": ("unalign-protocol", LOADS, ("core.asc_loadunalign_pre(u, p)",), ("",)),
    "pre_of_another": (
        "unalign-protocol",
        LOADS,
        ("core.asc_loadunalign_pre(u, p)",),
        ("core.asc_loadunalign_pre(v, p)",),
    ),
    "index_twice": ("scatter-duplicate", SCATTER, ('s.cast("uint32")',), ("n",)),
    "shift_by_less_than_0": ("shift-amount", SHIFT, (3,), (-3,)),
    "squeeze_without_clear": ("squeeze-order", PACK, ("core.asc_clear_ar_spr()",), ("",)),
    "forty_values": ("registers-spilled", MANY, (30,), (40,)),
    "gather_behind_ub": ("out-of-bounds", GATHER, (0,), (100000,)),
    "mask_for_register": (None, ADD, ("a, every", ""), ("every, every", "")),
    "register_for_mask": (None, ADD, ("a, every", ""), ("a, a", "")),
    "another_type": (None, ADD, ("a, every", ""), ("h, every", "")),
    "no_mask": (None, ADD, ("a, every", ""), ("a", "")),
    "register_of_another_call": (
        None,
        ADD,
        ("a, every", ""),
        ("kept.setdefault(0, d), every", ""),
    ),
    "scalar_read": (None, ADD, ("a, every", ""), ("x[0], every", "")),
}


def text_of(name, arguments):
    return FRAME.format(body=FAULTS[name][1].format(*arguments))


def launched(name, arguments, count=1):
    """Return the launch of a fault's function, which the kernel calls so many times."""
    names = {}
    exec(compile(text_of(name, arguments), f"{name}.py", "exec"), names)
    function, kept = vector_function(names["function"]), {}

    @kernel(outputs="out", chip=CHIP, checks="all")
    def launch(core, one, other, out):
        x, y, z, t = (core.ubuf("float", COUNT) for _ in range(4))
        for to, of in ((x, one), (y, other), (z, one), (t, one)):
            core.asc_copy_gm2ub(to, of, 4 * COUNT)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        for _ in range(count):
            function(core, x, y, z, t, kept)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(out, z, 4 * COUNT)

    one, other = np.random.default_rng(2).normal(size=(2, COUNT)).astype(np.float32)
    return launch[1](one, other, np.zeros_like(one))


@pytest.mark.parametrize("name", FAULTS)
def test_the_right_form_is_clean(name):
    assert [each.message for each in launched(name, FAULTS[name][2]).findings] == []


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_reported_at_its_line(name):
    kind, _, _, wrong = FAULTS[name]
    if kind is None:
        with pytest.raises(CubecoreError) as caught:
            launched(name, wrong, count=2)
        found = [int(re.match(rf"{name}\.py:(\d+) ", str(caught.value))[1])]
    else:
        run = launched(name, wrong)
        found = sorted({each.location.line for each in run.findings if each.id == kind})
    lines = text_of(name, wrong).split("\n")
    assert found == [number for number, line in enumerate(lines, 1) if "#!" in line]


SENTENCES = {
    "mask_for_register": "asc_add.src1 must be a vector register, got vector_bool",
    "register_for_mask": "asc_add.mask must be a mask register (vector_bool), got vector_float",
    "another_type": "asc_add.src1 must be a vector_float, as dst is, got vector_half",
    "no_mask": (
        "asc_add takes dst, src0, src1, mask or carry, dst, src0, src1, mask; got 3 arguments"
    ),
    "register_of_another_call": (
        "asc_add.src1 must be a register of the vector function function that is open, got one of "
        "another call"
    ),
    "scalar_read": (
        "a scalar read must stand outside of the vector function function, got a call in it; it "
        "holds calls on registers alone"
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_refusal_is_one_sentence(name):
    with pytest.raises(CubecoreError) as caught:
        launched(name, FAULTS[name][3], count=2)
    assert str(caught.value).partition(" (function): ")[2] == SENTENCES[name]


def outside(core, x):
    core.asc_loadalign(core.vector_float(), x)


@vector_function
def inside(core, x):
    core.asc_loadalign(core.vector_float(), x)


@vector_function
def with_a_copy(core, x):
    core.asc_copy_ub2gm(x, x, 32)


@vector_function
def with_a_misspelt_pattern(core, _):
    core.asc_create_mask_b32("PAT_AL")


REMEDY = "decorate the function that calls it with @cubecore.vector_function"
ON_950 = "run it on Ascend950PR_9589"
IN_A_FUNCTION = "in a function with @cubecore.vector_function"
KERNELS = {
    "outside": (
        *(outside, CHIP),
        f"vector_float must stand in a vector function, got a call outside of any; {REMEDY}",
    ),
    "of_2201": (
        *(inside, "Ascend910B3"),
        f"a vector function is of architecture 3510 (Ascend 950); Ascend910B3 is 2201; {ON_950}",
    ),
    "call_of_3510": (
        *(lambda core, x: core.asc_loadalign(x, x), "Ascend910B3"),
        f"asc_loadalign is of architecture 3510 (Ascend 950); Ascend910B3 is 2201; {ON_950}",
    ),
    "register_of_3510": (
        *(lambda core, _: core.vector_float(), "Ascend910B3"),
        f"a register is of architecture 3510 (Ascend 950); Ascend910B3 is 2201; {ON_950}",
    ),
    "mutex_of_3510": (
        *(lambda core, _: core.asc_lock("PIPE_V", 0), "Ascend910B3"),
        f"asc_lock is of architecture 3510; Ascend910B3 is 2201; {ON_950}",
    ),
    "vectors_of_2201": (
        *(lambda core, x: core.asc_add(x, x, x, 64), CHIP),
        f"asc_add on UB is of architecture 2201; {CHIP} is 3510; use asc_add on registers "
        f"{IN_A_FUNCTION}",
    ),
    "mask_of_2201": (
        *(lambda core, _: core.asc_set_vector_mask(0, 1), CHIP),
        f"asc_set_vector_mask is of architecture 2201; {CHIP} is 3510; use registers "
        f"{IN_A_FUNCTION}",
    ),
    "misspelt": (
        *(with_a_misspelt_pattern, CHIP),
        "asc_create_mask_b32.pattern must be a word of asc_mask_pattern, got PAT_AL; did you mean "
        "PAT_ALL?",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_call_that_cannot_be_is_refused_in_one_sentence(name):
    function, chip, sentence = KERNELS[name]

    @kernel(chip=chip)
    def launch(core):
        function(core, core.ubuf("float", 64))

    with pytest.raises(CubecoreError) as caught:
        launch[1]()
    assert str(caught.value).partition("): ")[2] == sentence


KERNEL_FILES = Path(__file__).parents[3] / "examples" / "kernels"


@pytest.mark.parametrize(
    ("name", "chip", "said"),
    [
        ("reg_softmax", "Ascend910B3", "; run it with --chip Ascend950PR_9589"),
        ("softmax", CHIP, "use registers in a function with @cubecore.vector_function"),
        ("matmul", CHIP, "asc_copy_l0c2gm takes these arguments on architecture 2201;"),
    ],
)
def test_a_file_for_another_chip_is_a_bad_request(name, chip, said):
    """One sentence, exit code 2."""
    answer = cli("run", KERNEL_FILES / f"{name}.py", "--chip", chip)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("verb", ["run", "time"])
def test_a_file_for_950_is_refused_before_its_tiles_are_too_large(verb):
    answer = cli(verb, KERNEL_FILES / "reg_add.py", "--chip", "Ascend910B3")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "the kernel is for Ascend950PR_9589 (architecture 3510), and Ascend910B3 is 2201; "
        "run it with --chip Ascend950PR_9589\n"
    )
